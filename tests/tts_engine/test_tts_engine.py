"""The engine as a whole: streaming exactness, refusals, guards, long talks, and what hostile input does to it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from capsules import ExecContext
from capsules.nn.fp8 import Fp8Weight
from tests.tts_engine.sessions import rows, run
from tts_engine.config import load_config
from tts_engine.engine import HiggsTTS, VoiceSampling
from tts_engine.errors import CheckpointRefused, ConfigRefused, ContextFull, EngineMisuse, ReferenceRefused, TextRefused
from tts_engine.streaming import SIZES, Window
from tts_engine.text import speech_text
from tts_engine.weights import FP8_BLOCK, empty_weights, load_checkpoint

TEXT = "Hello there, this is a test."
GREEDY = VoiceSampling.greedy()


# ----------------------------------------------------------------------------------- streaming


def decode_windowed(tts: HiggsTTS, codes: Tensor, left: int, right: int, step: int) -> Tensor:
    """By windows of the plain decoder, with so much context."""
    parts, frames = [], codes.shape[1]
    for start in range(0, frames, step):
        end = min(start + step, frames)
        first, last = max(0, start - left), min(frames, end + right)
        parts.append(tts.decode(codes[:, first:last])[960 * (start - first) : 960 * (end - first)])
    return torch.cat(parts)


@pytest.mark.slow
def test_l6_windows_with_ten_frames_either_side_are_one_shot_and_nine_are_not(engine: HiggsTTS) -> None:
    codes = torch.randint(0, 1024, (8, 43), generator=torch.Generator().manual_seed(1))
    whole = engine.decode(codes)
    for step in (1, 7, SIZES[-1]):
        assert torch.equal(decode_windowed(engine, codes, 10, 10, step), whole), f"{step} frames a window"
    assert (decode_windowed(engine, codes, 9, 10, 8) - whole).abs().max() > 1e-4
    assert (decode_windowed(engine, codes, 10, 9, 8) - whole).abs().max() > 1e-4


@pytest.mark.parametrize("frames", [1, 2, 10, 21, 23])
def test_l6_holds_in_every_captured_window_at_every_place(engine: HiggsTTS, frames: int) -> None:
    """The captured step over junk outside the valid columns, both true ends included."""
    codes = torch.randint(0, 1024, (8, frames), generator=torch.Generator().manual_seed(2))
    whole, state = engine.decode(codes), engine._chunks._state
    for size in engine._graphs.shapes.windows:
        for start in sorted({0, frames // 2, frames - 1}):
            window = Window(start, min(start + size - 20, frames), start - 10, size, frames)
            low, high = window.valid
            seen = torch.randint(0, 1025, (8, size), generator=torch.Generator().manual_seed(3))
            seen[:, low:high] = codes[:, window.origin + low : window.origin + high]
            state.codes[: 8 * size].copy_(seen.flatten())
            state.valid.copy_(torch.tensor([low, high]))
            engine._graphs.window(size)
            made = state.pcm[9600 : 9600 + 960 * (window.end - start)]
            assert torch.equal(made.cpu(), whole[960 * start : 960 * window.end]), (size, start)


@pytest.mark.slow
def test_l6_holds_with_any_number_of_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.tts_engine.threaded_codecs"],
        env=os.environ | {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == []


@pytest.mark.parametrize("policy", ["exact", "steady"])
def test_speech_streams_exactly_what_one_shot_gives(tts: HiggsTTS, policy: str) -> None:
    codes = tts.codes(TEXT, sampling=GREEDY)
    assert torch.equal(torch.cat(list(tts.speak(TEXT, sampling=GREEDY, first_chunk=policy))), tts.decode(codes))


def test_fast_speech_differs_in_its_first_chunks_alone(tts: HiggsTTS) -> None:
    exact = tts.decode(tts.codes(TEXT, sampling=GREEDY))
    fast = torch.cat(list(tts.speak(TEXT, sampling=GREEDY, first_chunk="fast")))
    assert fast.shape == exact.shape
    assert torch.equal(fast[960 * 15 :], exact[960 * 15 :])
    assert (fast[: 960 * 14] - exact[: 960 * 14]).abs().max() > 1e-4
    first = {}
    for policy in ("exact", "fast"):
        tts.open()
        tts.begin(TEXT, policy)
        while tts.take_audio() is None:
            tts.step()
        first[policy] = len(rows(tts))
    assert first == {"exact": 19, "fast": 9}


def test_pieces_of_text_stream_one_after_the_other(tts: HiggsTTS) -> None:
    tts.set_sampling(GREEDY)
    parts = list(tts.speak(iter([TEXT, "And more."]), sampling=GREEDY))
    assert [p.text for p in tts.pieces] == [TEXT, "And more."]
    assert sum(p.numel() for p in parts) == 960 * tts.frames
    assert tts.pieces[1].first_frame == tts.pieces[0].frames
    words = tts.pieces[0].words
    assert words[0] == (0, 5, 0) and [w[2] for w in words] == sorted(w[2] for w in words)


def test_measuring_leaves_the_state_and_fits_the_chunks(tts: HiggsTTS) -> None:
    tts.set_sampling(GREEDY)
    tts.begin(TEXT, max_rows=20)
    run(tts)
    before = tts.snapshot()
    try:
        costs = tts.measure(rows=2)
        assert costs.row_ms > 0 and costs.frame_ms > 0
        after = tts.snapshot()
        assert all(torch.equal(before.tensors[name], after.tensors[name]) for name in before.tensors)
        assert before.host == after.host
        tts.begin(TEXT, max_rows=20)
        with pytest.raises(EngineMisuse):
            tts.measure()
    finally:
        tts.fit(None)


# ----------------------------------------------------------------------------------- the row machine


def test_rows_follow_the_machine(tts: HiggsTTS) -> None:
    codes = tts.codes(TEXT, sampling=GREEDY)
    made = rows(tts)
    end = next(r for r, row in enumerate(made) if row[0] == 1025)
    assert end >= 8 and len(made) == end + 7 and codes.shape == (8, end)
    for r, row in enumerate(made):
        assert [v == 1024 for v in row] == [c > r for c in range(8)]
        assert [v == 1025 for v in row] == [r - c >= end for c in range(8)]


def test_shortest_utterance_is_eight_frames_and_a_cap_of_m_rows_gives_m_less_seven(tts: HiggsTTS) -> None:
    tts.open()
    tts.begin(TEXT)
    tts.step()
    weight = tts._ctx["tts.w.tied.embedding.modality_embeddings.0.embedding.weight"].tensor
    weight = weight if weight.shape[0] > 1025 else weight.t()  # it may lie column by column
    kept = weight[1025].clone()
    try:
        hidden_like = weight[:1024].mean(0) * 0
        weight[1025] = hidden_like  # logit 0 everywhere: never the most likely
        assert tts.codes(TEXT, sampling=GREEDY, max_rows=30).shape == (8, 23)
        assert tts.pieces[-1].ended == "budget"
        for few in (1, 7):
            assert tts.codes(TEXT, sampling=GREEDY, max_rows=few).shape == (8, 0)
            assert tts.pieces == ()
        assert tts.codes(TEXT, sampling=GREEDY, max_rows=8).shape == (8, 1)
    finally:
        weight[1025] = kept
    low = tts._ctx["tts.table.allowed"].tensor
    late = low.clone()
    try:
        low[0, :1024] = -torch.inf  # nothing but the end is allowed in codebook 0, once it is honoured
        assert tts.codes(TEXT, sampling=VoiceSampling(seed=2)).shape == (8, 8)
        assert tts.pieces[-1].ended == "end"
    finally:
        low.copy_(late)


def test_a_loop_ends_and_is_named(tts: HiggsTTS) -> None:
    table = tts._ctx["tts.table.allowed"].tensor
    kept = table.clone()
    try:
        table[:, 1:] = -torch.inf
        tts.codes(TEXT, sampling=GREEDY)
        assert tts.pieces[-1].ended == "repeat" and len(rows(tts)) < 60
        tts.begin("And then it speaks again.", max_rows=12)
        run(tts)
        assert tts.pieces[-1].ended == "budget"
    finally:
        table.copy_(kept)


def test_silence_ends_and_is_named(tts: HiggsTTS) -> None:
    gain, bias = (tts._ctx[f"tts.codec.conv2.{n}"].tensor for n in ("weight", "bias"))
    kept = gain.clone(), bias.clone()
    try:
        gain.zero_()
        bias.zero_()
        list(tts.speak("A long text " * 6, sampling=VoiceSampling(seed=3)))
        assert tts.pieces[-1].ended == "silence" and 75 <= tts.pieces[-1].frames <= 110
    finally:
        gain.copy_(kept[0])
        bias.copy_(kept[1])


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["repeat", "silence", "budget"])
def test_l6_holds_in_a_piece_that_a_guard_ended(tts: HiggsTTS, guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tts._ctx["tts.table.allowed"].tensor
    kept = table.clone()
    text, sampling = "A long text " * 12, VoiceSampling(seed=3)
    try:
        if guard == "repeat":
            table[:, 3:] = -torch.inf
            sampling = GREEDY
        else:
            table[0, 1025] = -torch.inf
        if guard == "silence":
            monkeypatch.setattr("tts_engine.chunks.SILENCE_PEAK", 2.0)  # everything passes for silence
        spoken = torch.cat(list(tts.speak(text, sampling=sampling)))
    finally:
        table.copy_(kept)
    piece = tts._generator.session.pieces[-1]
    assert piece.ended == guard
    assert torch.equal(spoken, tts.decode(piece.codes(tts.config.audio, 0, piece.total or 0)))


@pytest.mark.slow
def test_a_full_session_does_not_stand_in_the_way_of_the_next(tts: HiggsTTS) -> None:
    tts.set_sampling(VoiceSampling(seed=3))
    while tts.position <= 512 - 64:
        tts.begin("More.", max_rows=60)
        run(tts)
    tts.open()
    assert tts.position < 10


def test_numbers_that_overflow_end_the_piece(tts: HiggsTTS) -> None:
    norm = tts._ctx["tts.w.body.norm.weight"].tensor
    kept = norm.clone()
    tts.begin(TEXT)
    run(tts, 15)
    try:
        norm.fill_(torch.nan)
        run(tts, 1)
    finally:
        norm.copy_(kept)
    assert tts.pieces[-1].ended == "numbers" and not tts.busy
    tts.open()
    assert tts.codes(TEXT, sampling=GREEDY).shape[1] > 8


# ----------------------------------------------------------------------------------- texts and references


@pytest.mark.parametrize("text", ["", "   ", "<|audio|>", "<|te<|x|>xt|>", "😀<|bogus:tag|>"])
def test_nothing_to_say_is_refused_or_said(tts: HiggsTTS, text: str) -> None:
    with pytest.raises(TextRefused):
        tts.codes(speech_text(text))
    assert not tts.busy


@pytest.mark.parametrize(
    "text", ["?!", "...", "<|sfx:cough|>", "a<|emotion:rage|>b", "日本語です", "\u0000\ufffe", "x" * 200]
)
def test_odd_texts_are_spoken(tts: HiggsTTS, text: str) -> None:
    codes = tts.codes(text, sampling=VoiceSampling(seed=1), max_rows=12)
    assert codes.shape[0] == 8 and int(codes.max()) < 1024


def test_ten_thousand_characters_are_refused_with_advice(tts: HiggsTTS) -> None:
    with pytest.raises(TextRefused, match=r"[Ss]plit"):
        tts.begin("word " * 2000)
    assert not tts.busy


@pytest.mark.slow
def test_a_talk_longer_than_the_context_goes_on(tts: HiggsTTS) -> None:
    """512 positions hold about six such pieces; older ones leave, frame numbers go on."""
    tts.set_sampling(VoiceSampling(seed=3))
    frames = []
    for turn in range(10):
        tts.begin(f"Turn {turn}.", max_rows=60)
        run(tts)
        frames.append(tts.frames)
        assert tts.position <= 512
    assert frames == sorted(set(frames)) and tts.pieces[-1].text == "Turn 9."
    assert tts.pieces[0].first_frame > 0
    with pytest.raises(EngineMisuse, match="not held"):
        tts.cut(1)
    tts.cut(tts.pieces[0].first_frame + 5, "Turn")
    tts.begin("And so on.", max_rows=12)
    run(tts)
    assert [p.text for p in tts.pieces] == ["Turn", "And so on."]


@pytest.mark.parametrize("seconds", [0.1, 1.2])
def test_voices_from_recordings(tts: HiggsTTS, seconds: float) -> None:
    noise = np.random.default_rng(3).normal(0, 0.1, (int(44_100 * seconds), 2)).astype(np.float32)
    voice = tts.voice(noise, "Noise.", rate=44_100, name="noise")
    assert voice.codes is not None and voice.codes.shape == (8, round(max(1.0, seconds) * 25))
    assert tts.codes(TEXT, voice, GREEDY, max_rows=10).shape[0] == 8
    assert voice.capsule is not None and voice.capsule.position == tts._generator.session.prefix


def test_a_reference_that_fills_the_context_is_refused(tts: HiggsTTS) -> None:
    with pytest.raises(ContextFull, match="shorter reference"):
        tts.voice_from_codes(torch.zeros(8, 500, dtype=torch.int64))
    for bad in (torch.full((8, 3), 1024), torch.zeros(7, 3), torch.full((8, 3), -1), torch.zeros(8, 0)):
        with pytest.raises(ReferenceRefused):
            tts.voice_from_codes(bad)
        with pytest.raises(ReferenceRefused):
            tts.decode(bad)


# ----------------------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize(
    ("change", "error", "why"),
    [
        ("missing", CheckpointRefused, "q_norm"),
        ("unknown", CheckpointRefused, "adapter"),
        ("shape", CheckpointRefused, "shape"),
        ("codec", CheckpointRefused, "fc2.weight"),
        ("truncated", CheckpointRefused, "model.safetensors"),
        ("config", ConfigRefused, "config.json"),
        ("codec_type", ConfigRefused, "mimi"),
    ],
)
def test_checkpoints_that_do_not_fit_are_refused(
    miniature: Path, tmp_path: Path, change: str, error: type[Exception], why: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(miniature, folder)
    (folder / "model.safetensors.index.json").unlink()
    file = folder / "model.safetensors"
    tensors = load_file(file)
    codec = "tied.embedding.modality_embeddings.0.model."
    if change == "missing":
        del tensors["body.layers.1.self_attn.q_norm.weight"]
    elif change == "unknown":
        tensors["adapter.weight"] = torch.zeros(2)
    elif change == "shape":
        tensors["body.norm.weight"] = torch.ones(65)
    elif change == "codec":
        del tensors[f"{codec}fc2.weight"]
    elif change == "config":
        (folder / "config.json").write_text("{]")
    elif change == "codec_type":
        (folder / "codec_config.json").write_text(json.dumps({"codec_type": "mimi"}))
    save_file(tensors, file)
    if change == "truncated":
        file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(error, match=why):
        HiggsTTS.load(folder, ExecContext("cpu"))


def test_codec_tensors_of_any_float_type_load(miniature: Path, tmp_path: Path) -> None:
    tensors = load_file(miniature / "model.safetensors")
    save_file(
        {n: t.float() if "modality_embeddings.0.model" in n else t for n, t in tensors.items()},
        tmp_path / "m.safetensors",
    )
    config = load_config(miniature)
    a, b = (load_checkpoint(path, config, torch.device("cpu")) for path in (tmp_path / "m.safetensors", miniature))
    assert a.codec["fc2.weight"].dtype == torch.float32 and b.codec["fc2.weight"].dtype == torch.bfloat16
    assert torch.equal(a.codec["fc2.weight"], b.codec["fc2.weight"].float()) and a.digest != b.digest


@pytest.mark.slow
def test_fp8_weights_speak_as_their_unpacked_selves(miniature: Path) -> None:
    """Codes of the packed engine against those of a bfloat16 one that holds the unpacked matrices, bit for bit."""
    packed = HiggsTTS.load(miniature, ExecContext("cpu"), dtype="float8", max_positions=256)
    plain = HiggsTTS.load(miniature, ExecContext("cpu"), dtype="bfloat16", max_positions=256)
    spoken = [tts.codes(TEXT, sampling=VoiceSampling(seed=5), max_rows=24) for tts in (packed, plain)]
    assert not torch.equal(*spoken), "eight bits are not sixteen"
    for name, buffer in ((b.name, b.tensor) for b in packed._ctx.buffers("tts")):
        if buffer.dtype == torch.float8_e4m3fn:
            wide = Fp8Weight(buffer, packed._ctx[f"{name}.scale"].tensor, FP8_BLOCK).unpack(torch.bfloat16)
            plain._ctx[name].tensor.copy_(wide)
    assert torch.equal(spoken[0], plain.codes(TEXT, sampling=VoiceSampling(seed=5), max_rows=24))
    assert packed.fingerprint.difference(plain.fingerprint) is not None
    narrow = replace(packed.config, backbone=replace(packed.config.backbone, intermediate=161))
    for dtype, needed in (("float8", 32), ("int8", 16), ("int4", 16)):
        with pytest.raises(ConfigRefused, match=f"161.* rows high; {dtype} needs multiples of {needed}"):
            empty_weights(narrow, torch.device("cpu"), dtype)
