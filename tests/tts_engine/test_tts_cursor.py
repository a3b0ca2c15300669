"""The small voice's shape: four codebooks, a text cursor, a causal codec, phones. Random weights, the same engine."""

import json
import shutil
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from capsules import ExecContext
from tests.tts_engine.sessions import rows, run, sound, state_bytes
from tts_engine.backbone import (
    BackboneWeights,
    CursorTrack,
    advance_logits,
    audio_logits,
    forward_train,
    init_weights,
)
from tts_engine.config import TTSConfig, parse_config
from tts_engine.engine import HiggsTTS, VoiceSampling
from tts_engine.frontend import Encoded, Word
from tts_engine.istft_codec import CodecShape, IstftCodec
from tts_engine.streaming import Costs
from tts_engine.weights import load_checkpoint, to_checkpoint

SPECIALS = {"<|tts|>": 0, "<|text|>": 1, "<|audio|>": 2, "<|ref_audio|>": 3}
CODEC = CodecShape(
    codebooks=4, codebook_size=64, code_dim=8, latent=16, width=16, encoder_blocks=1, decoder_blocks=2, mels=20
)
RAW = {
    "model_type": "higgs_multimodal_qwen3",
    "audio_encoder_config": {
        "model_type": "higgs_audio_encoder", "encoder_type": "discrete", "num_codebooks": 4, "vocab_size": 66,
        "out_dim": 48, "tie_word_embeddings": True, "use_delay_pattern": True,
    },
    "text_config": {
        "model_type": "qwen3", "num_hidden_layers": 2, "hidden_size": 48, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "vocab_size": 40,
        "max_position_embeddings": 512, "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_theta": 10000, "rope_type": "default"},
    },
    "cursor_config": {"offsets": [-1, 0, 1, 2, 3], "max_rows": 6, "max_advance": 3, "max_hold": 9},
    "frontend": "phones",
    "special_tokens": SPECIALS,
}  # fmt: skip
TEXT = "abc de fghi"


class LetterFrontend:
    """One phone per letter."""

    specials: Mapping[str, int] = SPECIALS

    def text_ids(self, text: str) -> Encoded:
        ids, words, at = [], [], 0
        for word in text.split():
            at = text.index(word, at)
            words.append(Word(at, at + len(word), len(ids), len(ids) + len(word)))
            ids += [4 + ord(c) % 32 for c in word]
            at += len(word)
        return Encoded(tuple(ids), tuple(words))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cursor")
    config = parse_config(RAW)
    torch.manual_seed(4)
    codec = IstftCodec(CODEC)
    torch.nn.init.normal_(codec.quantiser.codebook)
    weights = init_weights(config, seed=4)
    assert weights.cursor is not None
    for tensor in (weights.audio, weights.text, weights.cursor.phones, weights.cursor.rows, weights.cursor.advance):
        tensor.mul_(20)
    save_file(to_checkpoint(weights, config, codec.state_dict()), made / "model.safetensors")
    (made / "config.json").write_text(json.dumps(RAW))
    (made / "codec_config.json").write_text(json.dumps(CODEC.to_json()))
    return made


@pytest.fixture(scope="module")
def small(folder: Path) -> HiggsTTS:
    return HiggsTTS.load(folder, ExecContext("cpu"), max_positions=300, frontend=LetterFrontend())


@pytest.fixture
def tts(small: HiggsTTS) -> HiggsTTS:
    small.open()
    small.set_sampling(VoiceSampling(seed=1))
    return small


def test_it_ends_with_its_text_and_never_by_chance(tts: HiggsTTS) -> None:
    for seed in range(5):
        codes = tts.codes(TEXT, sampling=VoiceSampling(seed=seed))
        piece = tts._generator.session.pieces[0]
        index = [i for i, _ in piece.track]
        assert piece.ended == "end" and codes.shape == (4, piece.total)
        assert all(0 <= b - a <= 3 for a, b in pairwise(index)), "never back, never far"
        assert index[piece.total - 1] < 9 <= index[piece.total], "the last frame is the one that leaves the text"
        assert len(piece.rows) == piece.total + 3 and int(codes.max()) < 64
        assert max(spent for _, spent in piece.track[: piece.total]) < 9, "no phone is held longer than max_hold"


def test_each_codebook_has_its_part_of_the_temperature(folder: Path, tmp_path: Path, tts: HiggsTTS) -> None:
    """Halves of 0.8 are 0.4 bit for bit, and a first book at next to nothing begins with its likeliest code."""

    def with_parts(*parts: float) -> HiggsTTS:
        made = tmp_path / str(parts)
        shutil.copytree(folder, made)
        (made / "config.json").write_text(json.dumps({**RAW, "codebook_temperatures": parts}))
        return HiggsTTS.load(made, ExecContext("cpu"), max_positions=300, frontend=LetterFrontend())

    cool = tts.codes(TEXT, sampling=VoiceSampling(0.4, seed=3))
    assert torch.equal(with_parts(0.5, 0.5, 0.5, 0.5).codes(TEXT, sampling=VoiceSampling(0.8, seed=3)), cool)
    for first, others in ((1e-6, 10.0), (10.0, 1e-6)):
        engine = with_parts(first, others, others, others)
        begun = {int(engine.codes(TEXT, sampling=VoiceSampling(seed=seed))[0, 0]) for seed in range(6)}
        assert (len(begun) == 1) == (first < others)


def test_word_times_come_from_the_cursor(tts: HiggsTTS) -> None:
    tts.codes(TEXT, sampling=VoiceSampling(seed=1))
    track = [i for i, _ in tts._generator.session.pieces[0].track]
    words = tts.pieces[0].words
    assert [w[:2] for w in words] == [(0, 3), (4, 6), (7, 11)][: len(words)]
    for (_, _, frame), first in zip(words, (0, 3, 5), strict=False):
        assert track[frame] >= first and (frame == 0 or track[frame - 1] < first)


def teacher_forced(config: TTSConfig, weights: BackboneWeights, tts: HiggsTTS) -> tuple[Tensor, Tensor]:
    """Logits of every row and advance of the piece just spoken, by the training function."""
    piece = tts._generator.session.pieces[0]
    opening = [0, 1, *piece.ids, 2]
    fed = piece.rows[:-1]
    tokens = torch.tensor([[*opening, *[-1] * len(fed)]])
    codes = torch.zeros(1, tokens.shape[1], 4, dtype=torch.int64)
    codes[0, len(opening) :] = torch.tensor(fed)
    at = len(opening) - 1
    index, spent = torch.zeros_like(tokens), torch.zeros_like(tokens)
    index[0, at:], spent[0, at:] = torch.tensor(piece.track[:-1]).t()
    active = torch.arange(tokens.shape[1])[None] >= at
    track = CursorTrack(torch.tensor([[1, *piece.ids, 2]]), index, spent, active)
    hidden = forward_train(weights, config, tokens, codes, track)[0, at:]
    assert weights.cursor is not None
    return audio_logits(weights, config, hidden), advance_logits(weights.cursor, hidden)


def test_the_captured_row_is_the_training_function(tts: HiggsTTS, folder: Path) -> None:
    """Greedy: every code and every advance that the engine chose is the largest logit of `forward_train`."""
    config = tts.config
    weights = load_checkpoint(folder, config, torch.device("cpu")).backbone
    tts.codes(TEXT, sampling=VoiceSampling.greedy())
    piece = tts._generator.session.pieces[0]
    assert len(piece.rows) > 6, "too little was said to compare"
    logits, advance = teacher_forced(config, weights, tts)
    logits[..., 64:] = -torch.inf
    for r, row in enumerate(piece.rows):
        for q, code in enumerate(row):
            if code < 64:
                assert code == int(logits[r, q].argmax()), (r, q)
    index = [i for i, _ in piece.track]
    for r in range(piece.total or 0):
        if piece.track[r][1] + 1 < 9:
            assert index[r + 1] == min(index[r] + int(advance[r].argmax()), 9)


def test_first_sound_after_four_rows_and_streaming_is_exact(tts: HiggsTTS) -> None:
    tts.fit(Costs(row_ms=0.1, frame_ms=0.01))
    tts.begin(TEXT)
    first = None
    parts = []
    while tts.step().kind != "idle":
        pcm = sound(tts)
        if pcm.numel():
            first = first or len(rows(tts))
            parts.append(pcm)
    piece = tts._generator.session.pieces[0]
    whole = tts.decode(piece.codes(tts.config.audio, 0, piece.total or 0))
    assert first == 4
    assert torch.equal(torch.cat(parts), whole)


@pytest.mark.parametrize("row", [0, 2, 3, 5])
def test_l1_with_a_cursor(tts: HiggsTTS, row: int) -> None:
    tts.begin(TEXT)
    tts.begin("more")
    tts.step()
    run(tts, row)
    capsule = tts.snapshot()
    expected = (run(tts), state_bytes(tts))
    tts.codes("other words", sampling=VoiceSampling(seed=9))
    tts.restore(capsule)
    assert (run(tts), state_bytes(tts)) == expected


def test_a_cut_keeps_the_heard_words(tts: HiggsTTS) -> None:
    tts.begin(TEXT)
    run(tts)
    frame = tts.pieces[0].words[-1][2]
    if frame == 0:
        pytest.skip("all words in one frame under this seed")
    tts.cut(frame, "abc de")
    assert [p.text for p in tts.pieces] == ["abc de"] and tts.frames == frame
    tts.begin("more")
    run(tts)
    assert [p.ended for p in tts.pieces] == ["cut", "end"]


def test_reference_voices_work_with_a_cursor(tts: HiggsTTS) -> None:
    voice = tts.voice_from_codes(torch.randint(0, 64, (4, 11)), name="b")
    a, b = tts.codes(TEXT, voice, VoiceSampling(seed=1)), tts.codes(TEXT, None, VoiceSampling(seed=1))
    assert a.shape != b.shape or not torch.equal(a, b)


def test_checkpoint_round_trip_keeps_every_bit(folder: Path) -> None:
    config = parse_config(RAW)
    checkpoint = load_checkpoint(folder, config, torch.device("cpu"))
    weights = init_weights(config, seed=4)
    assert torch.equal(checkpoint.backbone.layers[1].qkv, weights.layers[1].qkv)
    assert torch.equal(checkpoint.backbone.text, weights.text * 20)
