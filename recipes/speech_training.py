"""Train the small voice: codes of the teacher's speech, predicted row by row under a text cursor.

Input codes are corrupted, so that the model learns to recover from its own mistakes. `speech_data` makes the sequences,
`speech` is the command.
"""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from recipes.muon import Muon
from recipes.speech_data import Batch, Builder, Utterance, load_utterances, split_at_pause
from tts_engine.backbone import (
    BackboneWeights,
    advance_logits,
    audio_logits,
    forward_train,
    init_weights,
)
from tts_engine.config import TTSConfig, parse_config
from tts_engine.phones import PHONES, SPECIAL_TOKENS

REFERENCE_FRAMES = 25
DEFAULT_VOICE = "ada"
CODEBOOK_TEMPERATURES = (0.3, 0.3, 0.25, 0.2, 0.2, 0.2)
"""Shares of the engine's usual temperature, 0.8: at the full value the small model, more certain of the first codebook
than of the others, is understood less well. The best of five sets for three recognisers, for the first four; the last
two have the fourth's. With the present weights 0.2 for all was understood no better."""


def published_config() -> dict[str, Any]:
    """config.json of the small voice, in the published layout with the cursor and the phones front end."""
    vocab = len(SPECIAL_TOKENS) + len(PHONES)
    return {
        "model_type": "higgs_multimodal_qwen3",
        "architectures": ["HiggsMultimodalQwen3ForConditionalGeneration"],
        "audio_encoder_config": {
            "model_type": "higgs_audio_encoder",
            "encoder_type": "discrete",
            "num_codebooks": len(CODEBOOK_TEMPERATURES),
            "vocab_size": 514,
            "out_dim": 256,
            "tie_word_embeddings": True,
            "use_delay_pattern": True,
        },
        "text_config": {
            "model_type": "qwen3",
            "hidden_size": 256,
            "num_hidden_layers": 5,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 64,
            "intermediate_size": 640,
            "hidden_act": "silu",
            "vocab_size": vocab,
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-6,
            "rope_parameters": {"rope_theta": 10_000.0, "rope_type": "default"},
            "attention_bias": False,
            "tie_word_embeddings": True,
        },
        "cursor_config": {"offsets": [-1, 0, 1, 2, 3], "max_rows": 20, "max_advance": 7},
        "codebook_temperatures": list(CODEBOOK_TEMPERATURES),
        "frontend": "phones",
        "special_tokens": dict(SPECIAL_TOKENS),
    }


@dataclass(frozen=True)
class VoicePlan:
    """One training run. `corrupt` is the share of input codes replaced at random, half singly and half by rows.

    `matrix_rate` is Muon's, for the layers' matrices; `rate` is AdamW's, for embeddings, heads and norms.
    """

    steps: int = 4000
    batch: int = 16
    rate: float = 2e-3
    matrix_rate: float = 0.02
    corrupt: float = 0.16
    held_out: int = 96
    seed: int = 0
    average: float = 0.995
    half: bool = False
    """Matrix products in bfloat16, 1.7 times as fast on a processor that has them."""


CODEBOOK_SHARES = (1.0, 0.8, 0.55, 0.4, 0.3, 0.25)
ADVANCE_SHARE = 0.5


def losses(weights: BackboneWeights, config: TTSConfig, batch: Batch) -> tuple[Tensor, Tensor]:
    """Cross-entropies: [Q] of the codes by codebook, and of the advance."""
    assert weights.cursor is not None
    hidden = forward_train(weights, config, batch.tokens, batch.rows, batch.track)
    taught = hidden[batch.track.active]  # [M, h]
    targets = batch.targets[batch.track.active]
    logits = audio_logits(weights, config, taught)
    each = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="none").view_as(targets)
    codes = each.sum(0) / (targets >= 0).sum(0)
    advance = F.cross_entropy(
        advance_logits(weights.cursor, taught), batch.advance[batch.track.active], ignore_index=-1
    )
    return codes, advance


def parameters(weights: object) -> list[Tensor]:
    """Every tensor of the nested weight bundles, in the order of their fields."""
    if isinstance(weights, Tensor):
        return [weights]
    if isinstance(weights, tuple):
        return [t for part in weights for t in parameters(part)]
    if weights is None:
        return []
    return [t for f in fields(weights) for t in parameters(getattr(weights, f.name))]  # type: ignore[arg-type]


class VoiceRun:
    """A resumable training run; `averaged` follows the weights and is what gets shipped.

    `late` are the same utterances in other codes, or empty.
    """

    def __init__(
        self, plan: VoicePlan, config: TTSConfig, utterances: Sequence[Utterance], late: Sequence[Utterance] = ()
    ) -> None:
        self.plan, self.config = plan, config
        self.builder = Builder(config)
        every = max(2, len(utterances) // plan.held_out)
        self.test = list(utterances[::every])
        train = [u for codes in (utterances, late) for i, u in enumerate(codes) if i % every]
        self.by_voice = {
            voice: sorted((u for u in train if u.voice == voice), key=lambda u: u.codes.shape[1])
            for voice in sorted({u.voice for u in train})
        }
        self.weights = init_weights(config, plan.seed)
        self.tensors = [t.requires_grad_() for t in parameters(self.weights)]
        self.averaged = [t.detach().clone() for t in self.tensors]
        matrices = [t for layer in self.weights.layers for t in parameters(layer) if t.dim() == 2]
        others = [t for t in self.tensors if not any(t is matrix for matrix in matrices)]
        dtype = torch.bfloat16 if plan.half else torch.float32
        self.optimiser = Muon(matrices, others, plan.matrix_rate, plan.rate, dtype=dtype)
        self.rng = np.random.default_rng(plan.seed)
        self.step_index = 0
        ids = {p: len(SPECIAL_TOKENS) + i for i, p in enumerate(PHONES)}
        self.comma, self.silence = ids[","], ids["sil"]

    def reference(self, voice: str) -> NDArray[np.int64] | None:
        """A second of the voice; the default voice also trains without one."""
        if voice == DEFAULT_VOICE and self.rng.random() < 0.6:
            return None
        while True:
            u = self.by_voice[voice][self.rng.integers(len(self.by_voice[voice]))]
            if u.codes.shape[1] > REFERENCE_FRAMES:
                start = int(self.rng.integers(u.codes.shape[1] - REFERENCE_FRAMES))
                return u.codes[:, start : start + REFERENCE_FRAMES]

    def batch(self) -> Batch:
        """`plan.batch` utterances of similar length in sequences of one to three, one voice to a sequence."""
        together = int(self.rng.choice([1, 1, 2, 3]))
        place = self.rng.random()
        sequences = []
        for _ in range(max(2, self.plan.batch // together)):
            voice = list(self.by_voice)[self.rng.integers(len(self.by_voice))]
            pool = self.by_voice[voice]
            window = max(1, len(pool) // 12)
            start = int(place * max(1, len(pool) - window))
            chosen = [pool[i] for i in self.rng.integers(start, min(len(pool), start + window), together)]
            pieces = [
                part
                for u in chosen
                for part in (split_at_pause(u, self.comma, self.silence) if self.rng.random() < 0.3 else [u])
            ]
            sequences.append(self.builder.sequence(pieces, self.reference(voice)))
        return self.corrupted(self.builder.batch(sequences))

    def corrupted(self, batch: Batch) -> Batch:
        rows = batch.rows.numpy().copy()
        share, size = self.plan.corrupt / 2, self.config.audio.size
        chosen = self.rng.random(rows.shape) < share
        chosen |= (self.rng.random(rows.shape[:2]) < share)[..., None]
        chosen &= (rows < size) & (batch.tokens.numpy() < 0)[..., None]
        rows = np.where(chosen, self.rng.integers(0, size, rows.shape), rows)
        return Batch(batch.tokens, torch.from_numpy(rows), batch.targets, batch.advance, batch.track)

    def step(self) -> tuple[NDArray[Any], float]:
        """One step; returns the cross-entropy of each codebook and of the advance."""
        plan = self.plan
        cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, self.step_index / plan.steps)))
        factor = min(1.0, (self.step_index + 1) / 100) * (0.97 * cosine + 0.03)
        with torch.autocast("cpu", torch.bfloat16, enabled=plan.half):
            codes, advance = losses(self.weights, self.config, self.batch())
        shares = torch.tensor(CODEBOOK_SHARES[: len(codes)])
        loss = (codes * shares).sum() / shares.sum() + ADVANCE_SHARE * advance
        loss.backward()
        self.optimiser.step(factor)
        keep = min(plan.average, (1 + self.step_index) / (10 + self.step_index))
        with torch.no_grad():
            for slow, fast in zip(self.averaged, self.tensors, strict=True):
                slow.lerp_(fast, 1 - keep)
        self.step_index += 1
        return codes.detach().numpy(), float(advance.detach())

    @torch.no_grad()
    def evaluate(self) -> tuple[NDArray[Any], float]:
        """The same on the held-out utterances, with the averaged weights, without corruption."""
        fast = [t.detach().clone() for t in self.tensors]
        self.use(self.averaged)
        total, moves, batches = np.zeros(self.config.audio.codebooks, np.float32), 0.0, 0
        for start in range(0, len(self.test), 16):
            group = self.test[start : start + 16]
            others = {v: next(u for u in self.by_voice[v] if u.codes.shape[1] > 40) for v in self.by_voice}
            sequences = [
                self.builder.sequence([u], None if u.voice == DEFAULT_VOICE else others[u.voice].codes[:, 8:33])
                for u in group
            ]
            codes, advance = losses(self.weights, self.config, self.builder.batch(sequences))
            total, moves, batches = total + codes.numpy(), moves + float(advance), batches + 1
        self.use(fast)
        return total / batches, moves / batches

    @torch.no_grad()
    def use(self, values: Sequence[Tensor]) -> None:
        for tensor, value in zip(self.tensors, values, strict=True):
            tensor.copy_(value)

    def save(self, path: Path) -> None:
        state = {
            "plan": asdict(self.plan),
            "tensors": [t.detach() for t in self.tensors],
            "averaged": self.averaged,
            "optimiser": self.optimiser.state(),
            "rng": json.dumps(self.rng.bit_generator.state),
            "step": self.step_index,
        }
        torch.save(state, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)

    def load(self, path: Path) -> None:
        state = torch.load(path, weights_only=True)
        self.use(state["tensors"])
        self.averaged = state["averaged"]
        self.optimiser.load(state["optimiser"])
        self.rng.bit_generator.state = json.loads(state["rng"])
        self.step_index = state["step"]


def train_voice(work: Path, plan: VoicePlan, seconds: float) -> None:
    """Train until done or out of time; the checkpoint is written every two minutes."""
    run = VoiceRun(plan, parse_config(published_config()), load_utterances(work), load_utterances(work, late=True))
    path = work / "voice.pt"
    if path.exists():
        run.load(path)
    print(f"{sum(t.numel() for t in run.tensors) / 1e6:.2f} M parameters", flush=True)
    began = saved = time.monotonic()
    average: NDArray[Any] | None = None
    while run.step_index < plan.steps and time.monotonic() - began < seconds:
        codes, advance = run.step()
        now = np.append(codes, advance)
        average = now if average is None else 0.97 * average + 0.03 * now
        if run.step_index % 100 == 0:
            line = f"step {run.step_index}/{plan.steps} codes {np.round(average[:-1], 2)} advance {average[-1]:.3f}"
            if run.step_index % 500 == 0:
                test, moves = run.evaluate()
                line += f" | held out {np.round(test, 2)} advance {moves:.3f}"
            print(f"{line} {time.monotonic() - began:.0f} s, cpu {time.process_time():.0f} s", flush=True)
        if time.monotonic() - saved > 120:
            run.save(path)
            saved = time.monotonic()
    run.save(path)
    print("done" if run.step_index >= plan.steps else "paused; run again to continue")
