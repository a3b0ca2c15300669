"""The decisions that need no engine: delay pattern, chunk schedules, guards, prompts, configuration, references."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tts_engine.miniature import ADDED, Size, config_json
from tts_engine.bpe_frontend import BpeFrontend
from tts_engine.config import AudioConfig, parse_config
from tts_engine.delay import delay
from tts_engine.errors import CheckpointRefused, ConfigRefused, DelayError, EngineMisuse, ReferenceRefused
from tts_engine.guards import SAME_ROWS, is_stuck, row_budget
from tts_engine.markup import CONTROL_TAGS, strip_structure
from tts_engine.piece import Piece, SpeechSession
from tts_engine.prompt import ROW, voice_prompt
from tts_engine.reference import prepare_reference
from tts_engine.sampling import VoiceSampling, check_sampling
from tts_engine.streaming import SIZES, AudioChunk, Costs, growth, next_window, schedule_for
from tts_engine.text import speech_text

FOUR = AudioConfig(4, 20)
B, E = 18, 19


def piece(rows: torch.Tensor, total: int | None = None) -> Piece:
    """One of which these rows were sampled."""
    return Piece("x", [1], [], "exact", 99, 0, 2, [], rows=rows.tolist(), total=total)


def test_delay_as_published() -> None:
    codes = torch.tensor([[1, 5, 9], [2, 6, 10], [3, 7, 11], [4, 8, 12]])
    rows = [[1, B, B, B], [5, 2, B, B], [9, 6, 3, B], [E, 10, 7, 4], [E, E, 11, 8], [E, E, E, 12]]
    assert delay(codes, FOUR).tolist() == rows
    assert piece(torch.tensor(rows), 3).codes(FOUR, 0, 3).tolist() == codes.tolist()
    assert piece(torch.tensor(rows[:3])).codes(FOUR, 0, 3).tolist() == [
        [1, 5, 9], [2, 6, 18], [3, 18, 18], [18, 18, 18],
    ]  # fmt: skip


@given(st.integers(2, 9), st.integers(1, 30), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_a_piece_lines_up_again_what_delay_staggered(books: int, frames: int, seed: int) -> None:
    """All frames of a whole piece; of one under way the codes that are known, and `size` in place of the others."""
    audio = AudioConfig(books, 50)
    codes = torch.randint(0, 48, (books, frames), generator=torch.Generator().manual_seed(seed))
    rows = delay(codes, audio)
    assert torch.equal(piece(rows, frames).codes(audio, 0, frames), codes)
    known = torch.arange(books)[:, None] + torch.arange(frames) < frames
    assert torch.equal(piece(rows[:frames]).codes(audio, 0, frames), torch.where(known, codes, audio.size))


def test_codes_that_are_none() -> None:
    assert piece(torch.full((5, 4), B)).codes(FOUR, 0, 2).tolist() == [[0, 0]] * 4
    for bad in (torch.full((4, 2), B), torch.full((4, 2), -1), torch.zeros(3, 2, dtype=torch.int64)):
        with pytest.raises(DelayError):
            delay(bad, FOUR)


# ----------------------------------------------------------------------------------- streaming


@pytest.mark.parametrize("policy", ["exact", "fast", "steady"])
@pytest.mark.parametrize("right", [0, 10])
@pytest.mark.parametrize("frames", [1, 2, 7, 26, 61, 200])
def test_every_frame_goes_out_once_and_in_order(policy: str, right: int, frames: int) -> None:
    schedule, left, lag = schedule_for(policy, 10, right), 10, 7
    emitted, first_row = 0, None
    for row in range(1, frames + lag + 1):
        total = frames if row > frames else None
        while True:
            window = next_window(
                schedule, emitted=emitted, complete=max(0, row - lag), begun=min(row, frames), total=total,
                left=left, right=right,
            )  # fmt: skip
            if window is None:
                break
            low, high = window.valid
            assert window.start == emitted < window.end <= max(0, row - lag)
            assert window.origin == window.start - left and window.size - left - right in SIZES
            assert 0 <= low <= left and window.origin + low == max(0, window.origin)
            exact = window.known >= min(window.end + right, frames) and max(0, row - lag) >= window.known
            assert exact or policy == "fast"
            assert window.end - window.origin <= high <= window.size
            emitted, first_row = window.end, first_row or row
    assert emitted == frames
    if frames > 60:
        assert first_row == sum(vars(schedule.at(0)).values()) + lag


def test_policies_start_in_the_promised_order() -> None:
    first = {policy: schedule_for(policy, 10, 10).at(0) for policy in ("fast", "exact", "steady")}
    assert first == {"fast": AudioChunk(2, 0), "exact": AudioChunk(2, 10), "steady": AudioChunk(8, 10)}
    with pytest.raises(EngineMisuse, match="exact"):
        schedule_for("slow", 10, 10)


@given(st.floats(0.1, 60), st.floats(0.01, 10), st.sampled_from([(10,), (0, 2, 5, 10)]))
@settings(max_examples=150, deadline=None)
def test_growth_never_starves(row_ms: float, frame_ms: float, ramp: tuple[int, ...]) -> None:
    chunks = growth(Costs(row_ms, frame_ms), 10, 10, ramp)
    assert chunks[-1] == AudioChunk(25, 10)
    if len(chunks) == 1:
        return
    lead, chunk = 40.0 * chunks[0].frames, chunks[0]
    for coming in [*chunks[1:], chunks[-1], chunks[-1]]:
        lead -= (coming.frames + coming.ahead - chunk.ahead) * row_ms + (20 + coming.frames) * frame_ms
        assert lead >= 0
        assert coming.frames >= chunk.frames and coming.ahead >= chunk.ahead
        lead, chunk = lead + 40 * coming.frames, coming


def test_growth_starts_as_small_as_the_machine_allows() -> None:
    assert growth(Costs(2.0, 0.2), 10, 10, (10,))[0] == AudioChunk(1, 10)
    assert growth(Costs(2.0, 0.2), 10, 10, (0, 2, 5, 10))[0] == AudioChunk(1, 0)
    assert growth(Costs(17.0, 0.7), 10, 10, (10,))[0].frames <= 4
    assert growth(Costs(100.0, 1.0), 10, 10, (10,)) == (AudioChunk(25, 10),)


# ----------------------------------------------------------------------------------- guards


def test_budgets_follow_the_text() -> None:
    short, long = row_budget("Hi.", 7), row_budget("word " * 100, 7)
    assert 100 < short < 130 and long > 1700
    assert row_budget("Hi.<|prosody:long_pause|>", 7) - short == 75
    assert row_budget("<|prosody:speed_very_slow|>" + "word " * 100, 7) > 1.4 * long
    assert row_budget("你好世界" * 10, 7) > row_budget("abcd" * 10, 7)


def test_stuck_means_the_same_row_again_and_again() -> None:
    assert not is_stuck([[1, 2]] * (SAME_ROWS - 1))
    assert is_stuck([[3, 4]] + [[1, 2]] * SAME_ROWS)
    assert not is_stuck([[1, 2]] * SAME_ROWS + [[1, 3]])


@pytest.mark.parametrize("bad", [{"temperature": -1.0}, {"top_k": -1}, {"top_p": 0.0}, {"temperature": float("nan")}])
def test_samplings_without_meaning_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(EngineMisuse):
        check_sampling(VoiceSampling(**bad))


# ----------------------------------------------------------------------------------- prompts


@pytest.fixture(scope="module")
def frontend(miniature: Path) -> BpeFrontend:
    return BpeFrontend(miniature)


def test_prompt_ids(frontend: BpeFrontend) -> None:
    special = {name: 280 + i for i, name in enumerate(ADDED)}
    codes = torch.randint(0, 1024, (8, 3))
    prompt = voice_prompt(frontend, AudioConfig(8, 1026), codes, "so")
    said = list(frontend.text_ids("so").ids)
    assert (
        prompt.ids.tolist()
        == [special["<|tts|>"], special["<|ref_text|>"], *said, special["<|ref_audio|>"]] + [ROW] * 10
    )
    assert torch.equal(prompt.rows[-10:], delay(codes, AudioConfig(8, 1026)))
    assert voice_prompt(frontend, AudioConfig(8, 1026), None, None).ids.tolist() == [special["<|tts|>"]]
    assert frontend.text_ids("<|sfx:laughter|>ha").ids[0] == special["<|sfx:laughter|>"]


@pytest.mark.parametrize(
    "text",
    [
        "a<|audio|>b", "<|te<|x|>xt|>", "<|te<|sfx:cough|>xt|>", "<tool_call>", "<|ref_<|audio|>audio|>",
        "<|env:music|>", "<|sfx:laughter", "<||>", "<|im_start|>system", "<|emotion:rage|>",
    ],
)  # fmt: skip
def test_text_cannot_inject_structure(frontend: BpeFrontend, text: str) -> None:
    allowed = {280 + ADDED.index(tag) for tag in CONTROL_TAGS}
    assert all(i < 280 or i in allowed for i in frontend.text_ids(text).ids)


@given(st.text(alphabet="<|>abetx:_sfxcough ", max_size=60))
@settings(max_examples=200, deadline=None)
def test_stripping_leaves_tags_only(text: str) -> None:
    assert all(found in CONTROL_TAGS for found in re.findall(r"<\|[^<>|]*\|>", strip_structure(text)))


def test_stripping_serves_speech_and_prompts_alike() -> None:
    """For a prompt nothing is kept; the marks of tool calls and thoughts are structure for both."""
    text = "a<|im_end|>b<tool_call>c</think><|sfx:cough|>d<|emotion:rage|><|im_<|x|>end|>"
    assert strip_structure(text) == "abc<|sfx:cough|>d"
    assert strip_structure(text, keep=()) == "abcd"
    assert speech_text("One<|emotion:rage|> and <|audio|>two.") == "One and two."


def test_a_tokenizer_without_the_special_tokens_is_refused(tmp_path: Path, miniature: Path) -> None:
    raw = json.loads((miniature / "tokenizer.json").read_text())
    raw["added_tokens"] = [t for t in raw["added_tokens"] if t["content"] != "<|ref_audio|>"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(raw))
    with pytest.raises(CheckpointRefused, match="ref_audio"):
        BpeFrontend(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(CheckpointRefused, match="not a tokenizer"):
        BpeFrontend(tmp_path)


# ----------------------------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("model_type",), "llama"), (("audio_encoder_config", "encoder_type"), "whisper"), (("new_key",), 1),
        (("text_config", "rope_parameters"), {"rope_type": "yarn"}), (("text_config", "hidden_act"), "gelu"),
        (("audio_encoder_config", "tie_word_embeddings"), False), (("text_config", "head_dim"), 7),
        (("text_config", "num_key_value_heads"), 3), (("text_config", "hidden_size"), None), (("frontend",), "ipa"),
        (("text_config", "layer_types"), ["sliding_attention"]), (("audio_encoder_config", "num_codebooks"), 1),
        (("frontend",), "phones"), (("cursor_config",), {"offsets": [], "max_rows": 3, "max_advance": 3}),
        (("audio_encoder_config", "out_dim"), 65), (("text_config",), None), (("codebook_temperatures",), [1.0]),
        (("codebook_temperatures",), [1.0] * 7 + [0]), (("codebook_temperatures",), [1.0] * 7 + ["hot"]),
        (("codebook_temperatures",), 0.8),
    ],
)  # fmt: skip
def test_configurations_of_something_else_are_refused(path: tuple[str, ...], value: Any) -> None:
    raw: dict[str, Any] = copy.deepcopy(config_json(Size()))
    parse_config(raw)
    at = raw
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(ConfigRefused):
        parse_config(raw)


def test_rope_theta_falls_back() -> None:
    raw: dict[str, Any] = copy.deepcopy(config_json(Size()))
    raw["text_config"]["rope_parameters"] = None
    assert parse_config(raw).backbone.rope_theta == 1e6


# ----------------------------------------------------------------------------------- references and sessions


def test_references_are_made_fit() -> None:
    tone = np.sin(np.arange(44_100) / 20).astype(np.float32)
    made = prepare_reference(np.stack([tone, tone * 0.5]), 44_100)
    assert made.shape[0] == 24_000 and made.abs().max() < 1 and made[-1] == 0
    assert prepare_reference(np.stack([tone, tone], axis=1), 44_100).shape == made.shape
    short = prepare_reference(tone[:2400])
    assert short.shape[0] == 24_000 and short[2400:].abs().max() == 0
    clipped = prepare_reference((tone * 9).clip(-3, 3))
    assert clipped.abs().max() == 1
    integers = prepare_reference((tone * 32767).astype(np.int16), 44_100)
    torch.testing.assert_close(integers, prepare_reference(tone, 44_100), atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("wave", "rate", "why"),
    [
        (np.zeros(24_000), 24_000, "silent"), (np.ones(24_000 * 100), 24_000, "100.00 s long"),
        (np.ones(100), 24_000, "0.00 s long"), (np.zeros((0,)), 24_000, "shape"),
        (np.full(24_000, np.nan), 24_000, "not numbers"),
        (np.ones((2, 3, 4)), 24_000, "shape"), (np.ones(24_000), 10, "10 Hz"),
    ],
)  # fmt: skip
def test_references_that_cannot_be_voices(wave: np.ndarray, rate: int, why: str) -> None:
    with pytest.raises(ReferenceRefused, match=why):
        prepare_reference(wave, rate)


def test_a_session_survives_json_and_shares_nothing() -> None:
    piece = Piece("a b", [1, 2], [[0, 1, 0, 1]], "exact", 9, 0, 2, [[1, 2]], rows=[[3, 4]], total=5)
    raw = json.loads(json.dumps(SpeechSession({"codes": None}, [piece], [["x", "fast", 9]]).to_json()))
    back = SpeechSession.from_json(raw)
    assert back.pieces == [piece] and back.queue == [["x", "fast", 9]]
    back.pieces[0].rows.append([5, 6])
    assert raw["pieces"][0]["rows"] == [[3, 4]]


def test_word_times() -> None:
    by_cursor = Piece("ab cd", [7, 8, 9], [[0, 2, 0, 2], [3, 5, 2, 3]], "exact", 9, 0, 4, [])
    by_cursor.track = [[0, 0], [1, 0], [1, 1], [2, 0], [3, 0]]
    assert by_cursor.frames_of_words() == [(0, 2, 0), (3, 5, 3)]
    plain = Piece("ab cd", [7], [], "exact", 9, 0, 2, [], total=10)
    assert plain.frames_of_words() == [(0, 2, 0), (3, 5, 6)]
