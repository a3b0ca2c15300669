"""Calls with arguments that mean nothing: a TTSError says so at once, and the session is as it was."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from capsules import ExecContext
from tests.tts_engine.sessions import run, state_bytes
from tts_engine import ConfigRefused, EngineMisuse, HiggsTTS, ReferenceRefused, TTSError, Voice, VoiceSampling
from tts_engine.reference import prepare_reference

TEXT = "Hello there."
Case = tuple[Callable[[HiggsTTS], Any], type[TTSError], str]


@dataclass(frozen=True)
class Half:
    """Some of what a sampling has."""

    temperature: float = 1.0


def _voice(m: HiggsTTS, **change: Any) -> Any:
    return m.codes(TEXT, replace(Voice("", None, None), **change))


CALLS: dict[str, Case] = {
    "codes of nothing": (lambda m: m.codes(None), EngineMisuse, "text is None"),  # type: ignore[arg-type]
    "codes of bytes": (lambda m: m.codes(b"Hi"), EngineMisuse, "text is b'Hi'"),  # type: ignore[arg-type]
    "a voice by name": (lambda m: m.codes(TEXT, "ada"), EngineMisuse, "voice is 'ada'.*None"),  # type: ignore[arg-type]
    "a capsule as voice": (lambda m: m.codes(TEXT, m.snapshot()), EngineMisuse, "voice is"),  # type: ignore[arg-type]
    "speak as a name": (lambda m: m.speak(TEXT, voice="ada"), EngineMisuse, "voice is 'ada'"),  # type: ignore[arg-type]
    "open a name": (lambda m: m.open("ada"), EngineMisuse, "voice is 'ada'"),  # type: ignore[arg-type]
    "a voice of floats": (lambda m: _voice(m, codes=torch.zeros(8, 3)), ReferenceRefused, "integers"),
    "a voice of text": (lambda m: _voice(m, codes="abc"), ReferenceRefused, "integers"),
    "a transcript of ids": (lambda m: _voice(m, transcript=[1]), EngineMisuse, "transcript is"),
    "a name of ids": (lambda m: _voice(m, name=3), EngineMisuse, "name is 3"),
    "no rows": (lambda m: m.codes(TEXT, max_rows=0), EngineMisuse, "max_rows is 0"),
    "fewer rows than none": (lambda m: m.codes(TEXT, max_rows=-4), EngineMisuse, "max_rows is -4"),
    "half a row": (lambda m: m.codes(TEXT, max_rows=1.5), EngineMisuse, "max_rows is 1.5"),  # type: ignore[arg-type]
    "sampling by name": (lambda m: m.codes(TEXT, sampling="greedy"), EngineMisuse, "sampling is"),  # type: ignore[arg-type]
    "half a sampling": (lambda m: m.set_sampling(Half()), EngineMisuse, "top_k"),  # type: ignore[arg-type]
    "no sampling": (lambda m: m.set_sampling(None), EngineMisuse, "sampling is None"),  # type: ignore[arg-type]
    "too hot": (lambda m: m.set_sampling(VoiceSampling(temperature=11)), EngineMisuse, "temperature is 11"),
    "hot in words": (lambda m: m.set_sampling(VoiceSampling(temperature="hot")), EngineMisuse, "temperature is"),  # type: ignore[arg-type]
    "not a number": (lambda m: m.set_sampling(VoiceSampling(temperature=float("nan"))), EngineMisuse, "temperature is"),
    "half a code": (lambda m: m.set_sampling(VoiceSampling(top_k=1.5)), EngineMisuse, "top_k is 1.5"),  # type: ignore[arg-type]
    "a seed in words": (lambda m: m.set_sampling(VoiceSampling(seed="x")), EngineMisuse, "seed is 'x'"),  # type: ignore[arg-type]
    "another policy": (lambda m: m.speak(TEXT, first_chunk="slow"), EngineMisuse, "exact, fast, steady"),
    "a policy of many": (lambda m: m.begin(TEXT, ["fast"]), EngineMisuse, "first_chunk is"),  # type: ignore[arg-type]
    "speak nothing": (lambda m: m.speak(None), EngineMisuse, "text is None"),  # type: ignore[arg-type]
    "speak numbers": (lambda m: list(m.speak([1, 2])), EngineMisuse, "text is 1"),  # type: ignore[list-item]
    "decode floats": (lambda m: m.decode(torch.zeros(8, 3)), ReferenceRefused, "float32.*integers"),
    "decode nothing": (lambda m: m.decode(None), ReferenceRefused, "integers"),  # type: ignore[arg-type]
    "decode ragged": (lambda m: m.decode([[1, 2], [1]]), ReferenceRefused, "table"),  # type: ignore[arg-type]
    "decode one row": (lambda m: m.decode(torch.zeros(8, dtype=torch.int64)), ReferenceRefused, r"\[8, frames\]"),
    "decode no code": (lambda m: m.decode(torch.full((8, 2), 1024)), ReferenceRefused, "0 to 1023"),
    "a voice of nothing": (lambda m: m.voice(None), ReferenceRefused, "samples as numbers, or a path"),
    "a voice from nowhere": (lambda m: m.voice("/nowhere.wav"), ReferenceRefused, "/nowhere.wav"),
    "a voice with no words": (lambda m: m.voice(np.ones(24_000), 3), EngineMisuse, "transcript is 3"),  # type: ignore[arg-type]
    "a voice without a name": (lambda m: m.voice(np.ones(24_000), name=None), EngineMisuse, "name is"),  # type: ignore[arg-type]
    "cut beyond": (lambda m: m.cut(10**6), EngineMisuse, "not held"),
    "cut in words": (lambda m: m.cut("all"), EngineMisuse, "frame is 'all'"),  # type: ignore[arg-type]
    "cut to no text": (lambda m: m.cut(1, 3), EngineMisuse, "text is 3"),  # type: ignore[arg-type]
    "restore nothing": (lambda m: m.restore(None), EngineMisuse, "capsule is None"),  # type: ignore[arg-type]
    "restore a voice": (lambda m: m.restore(Voice("a", None, None)), EngineMisuse, "capsule is"),  # type: ignore[arg-type]
    "rebuild nothing": (lambda m: m.rebuild(None), EngineMisuse, "capsule is None"),  # type: ignore[arg-type]
    "name a snapshot 3": (lambda m: m.snapshot(3), EngineMisuse, "name is 3"),  # type: ignore[arg-type]
    "measure no row": (lambda m: m.measure(0), EngineMisuse, "rows is 0"),
    "fit to nothing": (lambda m: m.fit(3), EngineMisuse, "costs is 3"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", CALLS)
def test_calls_that_mean_nothing(tts: HiggsTTS, case: str) -> None:
    call, error, told = CALLS[case]
    tts.set_sampling(VoiceSampling(seed=5))
    tts.begin(TEXT, max_rows=12)
    run(tts)
    before = state_bytes(tts)
    with pytest.raises(error, match=told):
        call(tts)
    assert state_bytes(tts) == before or case == "speak numbers", "it was refused too late"
    assert tts.codes(TEXT, sampling=VoiceSampling(seed=5), max_rows=12).shape[0] == 8


def test_any_integer_is_a_seed(tts: HiggsTTS) -> None:
    one, two = (tts.codes(TEXT, sampling=VoiceSampling(seed=seed), max_rows=12) for seed in (-1, 2**64 - 1))
    assert torch.equal(one, two)


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"path": None}, ConfigRefused, "path"), ({"path": "/nowhere"}, ConfigRefused, "config.json"),
        ({"ctx": "cpu"}, EngineMisuse, "ctx"), ({"dtype": "float16"}, ConfigRefused, "float32"),
        ({"dtype": torch.float32}, ConfigRefused, "float32"), ({"max_positions": 0}, EngineMisuse, "max_pos"),
        ({"max_positions": -5}, EngineMisuse, "max_positions"), ({"max_positions": "9"}, EngineMisuse, "max_positions"),
        ({"progress": 3}, EngineMisuse, "progress"),
    ],
    ids=str,
)  # fmt: skip
def test_loading_with_wrong_arguments(
    miniature: Path, change: dict[str, Any], error: type[TTSError], told: str
) -> None:
    ctx = ExecContext("cpu")
    with pytest.raises(error, match=told):
        HiggsTTS.load(**({"path": miniature, "ctx": ctx} | change))  # type: ignore[arg-type]
    assert ctx.buffers() == ()


@pytest.mark.parametrize(
    ("wave", "rate"),
    [(None, 24_000), ("nothing.wav", 24_000), ([["a"]], 24_000), ([[1.0], [1.0, 2.0]], 24_000), (True, 24_000),
     (np.ones(24_000), "fast"), (np.ones(24_000), None), (np.ones(24_000, dtype=complex), 24_000)],
)  # fmt: skip
def test_references_of_the_wrong_kind(wave: Any, rate: Any) -> None:
    with pytest.raises(ReferenceRefused):
        prepare_reference(wave, rate)
