"""The cost of packing the shipped voice in agreement: its matrices in fewer bits beside float32,
teacher-forced.

    python -m benchmarks.packing_voice [--sentences 40] [--kernels FOLDER] [--out benchmarks/results/packing_voice.json]

Sentences that training left out are spoken in float32, as the assistant speaks them, by both voices in turn. Every
form then sees the same rows and chooses at each, for every codebook, and for the movement of the text cursor:
`same` is how often it chooses as float32 does, `loss` the mean negative log-likelihood of what was said, `divergence`
the mean Kullback-Leibler divergence from float32, in nats. No codec runs, and nobody listens. Forty sentences take
about two minutes on one thread.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.packing import agreement
from capsules import ExecContext
from capsules.exec import native
from recipes.speech_score import OPEN
from tts_engine.backbone import BackboneWeights, CursorTrack, advance_logits, audio_logits, forward_train
from tts_engine.config import TTSConfig, load_config
from tts_engine.engine import HiggsTTS
from tts_engine.phone_frontend import PhoneFrontend
from tts_engine.prompt import join, row_prompt, text_prompt, voice_prompt
from tts_engine.sampling import VoiceSampling
from tts_engine.weights import fused, load_checkpoint

TINY = Path(__file__).parents[1] / "tts_engine" / "tiny"
VOICES = TINY / "voices.json"
FORMS = ("float32", "bfloat16", "int8", "int4", "float8")
"""The last as a GPU holds it, multiplied by torch: its own kernels add only rounding."""


@dataclass(frozen=True)
class Spoken:
    """A sentence as it was spoken.

    ids, rows  the input: [T] and [T, Q]; a row's id is -1
    track      of the cursor at each position
    said       [n, Q] the rows that the last n positions predict, as drawn
    """

    ids: Tensor
    rows: Tensor
    track: CursorTrack
    said: Tensor


def spoken(count: int) -> list[Spoken]:
    """Each sentence in a voice, and with a seed, of its own."""
    tts = HiggsTTS.load(TINY, ExecContext("cpu"), max_positions=1024)
    frontend, audio = PhoneFrontend(TINY, tts.config.special_tokens), tts.config.audio
    specials = frontend.specials
    voices = [None if codes is None else torch.tensor(codes) for codes in json.loads(VOICES.read_text()).values()]
    found = []
    for number, text in enumerate(OPEN[:count]):
        reference = voices[number % len(voices)]
        voice = None if reference is None else tts.voice_from_codes(reference)
        tts.codes(text, voice, sampling=VoiceSampling(seed=number))
        piece = tts.facts().session["pieces"][0]
        rows, track = torch.tensor(piece["rows"]), torch.tensor(piece["track"])
        words = text_prompt([specials["<|text|>"], *piece["ids"], specials["<|audio|>"]], audio)
        fed = join(voice_prompt(frontend, audio, reference, None), words, row_prompt(rows[:-1]))
        index, spent = (torch.zeros(1, len(fed), dtype=torch.int64) for _ in range(2))
        index[0, -len(rows) :], spent[0, -len(rows) :] = track[: len(rows)].t()
        active = torch.arange(len(fed))[None] >= len(fed) - len(rows)
        found.append(Spoken(fed.ids, fed.rows, CursorTrack(words.ids[None], index, spent, active), rows))
    return found


def choices(weights: BackboneWeights, config: TTSConfig, sentences: Sequence[Spoken]) -> tuple[Tensor, Tensor]:
    """Log-probabilities of every spoken code [n, V], and of the cursor's moves [m, A]."""
    assert weights.cursor is not None
    codes, moves = [], []
    for one in sentences:
        hidden = forward_train(weights, config, one.ids[None], one.rows[None], one.track)[0, -len(one.said) :]
        logits = audio_logits(weights, config, hidden)
        logits[..., config.audio.size :] = -torch.inf  # here the cursor decides the end
        codes.append(logits.log_softmax(-1)[one.said < config.audio.size])
        frames = len(one.said) - config.audio.delay
        moves.append(advance_logits(weights.cursor, hidden[:frames]).log_softmax(-1))
    return torch.cat(codes), torch.cat(moves)


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=len(OPEN))
    parser.add_argument("--kernels", type=Path, default=Path(tempfile.gettempdir()) / "llm-bench" / "kernels")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    config, sentences = load_config(TINY), spoken(args.sentences)
    said = torch.cat([one.said[one.said < config.audio.size] for one in sentences])
    exact: tuple[Tensor, Tensor] | None = None
    rows = {}
    for form in FORMS:
        weights = load_checkpoint(TINY, config, torch.device("cpu"), form).backbone
        with native.using(args.kernels):
            found = choices(weights, config, sentences)
        exact = exact or found
        cursor = agreement(found[1], exact[1], exact[1].argmax(-1))
        rows[form] = {
            **agreement(found[0], exact[0], said),
            "cursor_n": cursor["n"], "cursor_same": cursor["same"], "cursor_divergence": cursor["divergence"],
            "weight_bytes": sum(tensor.nbytes for tensor in fused(weights, config).values()),
        }  # fmt: skip
        print(form, json.dumps(rows[form]), flush=True)
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
