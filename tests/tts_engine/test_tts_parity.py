"""Against transformers: Qwen3 fed with the fused embeddings, and its Higgs audio tokenizer, over one miniature."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from capsules.exec import native
from capsules.nn.panels import BITS, FORMS, PanelWeight, pack_panels
from tests.tts_engine.miniature import Size
from tests.tts_engine.oracle import codec_oracle, qwen_oracle, slow_resample
from tts_engine import dac_encode
from tts_engine.backbone import audio_logits, forward_train
from tts_engine.config import load_config
from tts_engine.engine import HiggsTTS, VoiceSampling
from tts_engine.weights import load_checkpoint

BOC, EOC, Q, V = 1024, 1025, 8, 1026
TEXT, SECOND = "Hello there, this is a test.", "And one more."
GREEDY = VoiceSampling.greedy()


class Reference:
    """The published model, slowly: a list of embeddings, one full pass per row, and the row machine in plain Python."""

    def __init__(self, folder: Path) -> None:
        self.qwen, self.audio = qwen_oracle(folder)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def text(self, *parts: str) -> list[Tensor]:
        ids = [i for part in parts for i in self.tokenizer.encode(part, add_special_tokens=False).ids]
        return list(self.qwen.embed_tokens.weight[ids])

    def rows(self, rows: list[list[int]]) -> list[Tensor]:
        return [sum(self.audio[c * V + code] for c, code in enumerate(row)) for row in rows]

    @torch.no_grad()
    def generate(self, prompt: list[Tensor], limit: int) -> list[list[int]]:
        """Greedy rows to the end of the closing staircase or `limit`, specials masked as in the engine."""
        made: list[list[int]] = []
        past: Any = None
        feed, end = torch.stack(prompt)[None], None
        while len(made) < limit:
            out = self.qwen(inputs_embeds=feed, past_key_values=past, use_cache=True)
            past = out.past_key_values
            logits = (self.audio @ out.last_hidden_state[0, -1]).view(Q, V)
            r, row = len(made), []
            for c in range(Q):
                scores = logits[c].clone()
                scores[BOC] = -torch.inf
                if c > 0 or r < Q:
                    scores[EOC] = -torch.inf
                code = int(scores.argmax())
                if c == 0 and code == EOC and end is None:
                    end = r
                row.append(BOC if c > r else EOC if end is not None and r - c >= end else code)
            made.append(row)
            if end is not None and len(made) == end + Q - 1:
                break
            feed = torch.stack(self.rows([row]))[None]
        return made


def frames(rows: list[list[int]]) -> Tensor:
    count = len(rows) - Q + 1
    return torch.tensor([[rows[t + c][c] if rows[t + c][c] < 1024 else 0 for t in range(count)] for c in range(Q)])


def delayed(codes: Tensor) -> list[list[int]]:
    count = codes.shape[1]
    return [
        [BOC if r < c else EOC if r - c >= count else int(codes[c, r - c]) for c in range(Q)]
        for r in range(count + Q - 1)
    ]


@pytest.fixture(scope="module")
def reference(miniature: Path) -> Reference:
    return Reference(miniature)


@pytest.mark.slow
def test_logits_agree_teacher_forced(miniature: Path, reference: Reference, reference_codes: Tensor) -> None:
    config = load_config(miniature)
    weights = load_checkpoint(miniature, config, torch.device("cpu")).backbone
    ids = reference.tokenizer.encode("<|tts|><|ref_audio|>", add_special_tokens=False).ids
    rows = delayed(reference_codes)
    tail = reference.tokenizer.encode(f"<|text|>{TEXT}<|audio|>", add_special_tokens=False).ids
    tokens = torch.tensor([*ids, *[-1] * len(rows), *tail])
    fed = torch.zeros(len(tokens), Q, dtype=torch.int64)
    fed[len(ids) : len(ids) + len(rows)] = torch.tensor(rows)
    with torch.no_grad():
        mine = audio_logits(weights, config, forward_train(weights, config, tokens[None], fed[None])[0])
        embedded = [
            *reference.text("<|tts|><|ref_audio|>"),
            *reference.rows(rows),
            *reference.text(f"<|text|>{TEXT}<|audio|>"),
        ]
        hidden = reference.qwen(inputs_embeds=torch.stack(embedded)[None]).last_hidden_state[0]
    theirs = (hidden @ reference.audio.t()).view(-1, Q, V)
    assert theirs.std() > 0.05
    torch.testing.assert_close(mine.cpu(), theirs, atol=1e-3, rtol=0)


def test_greedy_codes_zero_shot(tts: HiggsTTS, reference: Reference) -> None:
    rows = reference.generate(reference.text(f"<|tts|><|text|>{TEXT}<|audio|>"), 150)
    assert len(rows) < 150, "the miniature should end by itself"
    assert torch.equal(tts.codes(TEXT, sampling=GREEDY), frames(rows))
    assert tts.pieces[-1].ended == "end"


@pytest.mark.parametrize("transcript", [None, "What the reference says."])
def test_greedy_codes_of_a_clone(
    tts: HiggsTTS, reference: Reference, reference_codes: Tensor, transcript: str | None
) -> None:
    said = f"<|ref_text|>{transcript}" if transcript else ""
    prompt = reference.text(f"<|tts|>{said}<|ref_audio|>") + reference.rows(delayed(reference_codes))
    rows = reference.generate(prompt + reference.text(f"<|text|>{TEXT}<|audio|>"), 40)
    voice = tts.voice_from_codes(reference_codes, transcript)
    assert torch.equal(tts.codes(TEXT, voice, sampling=GREEDY, max_rows=40), frames(rows))


@pytest.mark.slow
def test_greedy_codes_with_a_piece_before(tts: HiggsTTS, reference: Reference) -> None:
    opening = reference.text(f"<|tts|><|text|>{TEXT}<|audio|>")
    first = reference.generate(opening, 150)
    history = opening + reference.rows(delayed(frames(first)))
    second = reference.generate(history + reference.text(f"<|text|>{SECOND}<|audio|>"), 40)
    tts.set_sampling(GREEDY)
    tts.begin(TEXT)
    tts.begin(SECOND, max_rows=40)
    while tts.step().kind != "idle":
        pass
    made = [p.codes(tts.config.audio, 0, p.complete(tts.config.audio)) for p in tts._generator.session.pieces]
    assert torch.equal(made[0], frames(first))
    assert torch.equal(made[1], frames(second))


def test_bfloat16_agrees_teacher_forced(miniature: Path) -> None:
    """Free-running bfloat16 diverges soon, so both precisions see the same rows; most choices agree."""
    config = load_config(miniature)
    rows = torch.randint(0, 1024, (1, 60, Q), generator=torch.Generator().manual_seed(2))
    tokens = torch.full((1, 60), -1)
    wide, narrow = (
        audio_logits(w, config, forward_train(w, config, tokens, rows))
        for w in (
            load_checkpoint(miniature, config, torch.device("cpu"), dtype).backbone for dtype in ("float32", "bfloat16")
        )
    )
    assert (wide.argmax(-1) == narrow.argmax(-1)).float().mean() > 0.85
    assert torch.nn.functional.cosine_similarity(wide.flatten(), narrow.flatten(), dim=0) > 0.999


@pytest.mark.slow
@pytest.mark.parametrize("dtype", BITS)
def test_a_packed_voice_chooses_like_its_unpacked_self(
    miniature: Path, tmp_path: Path, kernel_folder: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """Teacher-forced, against float32 over the matrices that the packed ones stand for."""
    monkeypatch.setattr("capsules.weights._STRIP_VALUES", 48 * 64)  # three panels at a time
    shutil.copytree(miniature, tmp_path, dirs_exist_ok=True)
    held, config = load_file(miniature / "model.safetensors"), load_config(miniature)
    for name, value in held.items():
        if name.startswith("tied.embedding") and value.shape[-1] == config.backbone.hidden and value.dim() == 2:
            held[name] = repacked(value, 8)
        elif name.startswith("body.layers") and value.dim() == 2:
            held[name] = repacked(value, BITS[dtype])
    save_file(held, tmp_path / "model.safetensors")
    rows = torch.randint(0, 1024, (1, 60, Q), generator=torch.Generator().manual_seed(2))
    tokens = torch.cat([torch.arange(5)[None], torch.full((1, 55), -1)], 1)

    @torch.no_grad()
    def logits(place: Path, form: str, folder: Path | None = None) -> Tensor:
        weights = load_checkpoint(place, config, torch.device("cpu"), form).backbone
        assert isinstance(weights.layers[0].qkv, PanelWeight) == (form in BITS)
        with native.using(folder):
            return audio_logits(weights, config, forward_train(weights, config, tokens, rows))

    exact = logits(tmp_path, "float32")

    def error(found: Tensor) -> float:
        return float((found - exact).norm() / exact.norm())

    rounded, packing = error(logits(tmp_path, "bfloat16")), error(logits(miniature, "float32"))
    plain, kernels = error(logits(miniature, dtype)), error(logits(miniature, dtype, kernel_folder))
    print(f"bfloat16 {rounded:.4f}, {dtype} {plain:.4f}, by kernels {kernels:.4f}, lost by packing {packing:.4f}")
    assert plain < rounded * 1.1
    assert kernels < packing * 1.3  # inputs in eight bits cost about what the weights in eight bits did


def repacked(value: Tensor, bits: int) -> Tensor:
    """What packing leaves of a matrix."""
    return PanelWeight(*pack_panels(value, FORMS[bits]), value.shape).unpack(torch.float32)


@pytest.fixture(scope="module")
def codec(miniature: Path) -> Any:
    return codec_oracle(miniature, Size())


@pytest.mark.parametrize("count", [1, 9, 63])
def test_codec_decodes(engine: HiggsTTS, codec: Any, count: int) -> None:
    codes = torch.randint(0, 1024, (Q, count), generator=torch.Generator().manual_seed(count))
    with torch.no_grad():
        theirs = codec.decode(codes[None]).audio_values[0, 0]
    mine = engine.decode(codes)
    assert mine.shape == theirs.shape == (960 * count,) and theirs.std() > 1e-3
    torch.testing.assert_close(mine.cpu(), theirs, atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("samples", [24_000, 30_719])
def test_codec_encodes(engine: HiggsTTS, codec: Any, samples: int) -> None:
    """Compared before quantisation, because a near tie may fall either way; then the codes of equal vectors."""
    wave = torch.randn(samples, generator=torch.Generator().manual_seed(samples)) * 0.1
    dac: Any = engine.codec
    with torch.no_grad():
        semantic = codec.encoder_semantic(codec._extract_semantic_features(wave[None, None]).transpose(1, 2))
        acoustic = codec.acoustic_encoder(wave[None, None])
        if acoustic.shape[2] != semantic.shape[2]:
            acoustic = codec.acoustic_encoder(torch.nn.functional.pad(wave[None, None], (480, 480)))
        theirs = codec.fc(torch.cat([acoustic, semantic], dim=1).transpose(1, 2))[0]
        codes = codec.quantizer.encode(theirs.t()[None], 2)[:, 0]
    mine = dac_encode.features(dac.encoder, wave, dac.strides, dac.semantic_heads)
    assert theirs.std() > 0.1
    torch.testing.assert_close(mine.cpu(), theirs, atol=1e-4, rtol=0)
    assert torch.equal(dac_encode.quantise(dac.encoder, theirs.to(mine.device), Q).cpu(), codes)


@pytest.mark.parametrize("samples", [1, 7, 2400, 2401])
def test_resampling_is_the_definition(samples: int) -> None:
    wave = torch.randn(samples, generator=torch.Generator().manual_seed(samples))
    torch.testing.assert_close(
        dac_encode.resample_24_to_16(wave), slow_resample(wave, 24_000, 16_000), atol=1e-6, rtol=1e-5
    )


def test_the_file_has_the_published_structure(miniature: Path) -> None:
    from capsules.weights import catalogue

    index = json.loads((miniature / "model.safetensors.index.json").read_text())["weight_map"]
    assert (len(catalogue(miniature)), len(index)) == (406, 404)
