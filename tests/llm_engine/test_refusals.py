"""Calls with arguments that mean nothing: an LLMError says so at once, and the sequence is as it was."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from capsules import ExecContext
from llm_engine import ConfigError, HybridLLM, LLMError, Sampling, StateError
from tts_engine import VoiceSampling

TINY = Path(__file__).parents[2] / "llm_engine" / "tiny"
POSITIONS = 64


@pytest.fixture(scope="module")
def llm() -> HybridLLM:
    return HybridLLM.load(TINY, ExecContext("cpu"), max_positions=POSITIONS)


CALLS: dict[str, tuple[Callable[[HybridLLM], Any], str]] = {
    "append nothing": (lambda m: m.append([]), "at least one"),
    "append none": (lambda m: m.append(None), "ids is None"),  # type: ignore[arg-type]
    "append one id": (lambda m: m.append(3), r"ids is 3 \(int\)"),  # type: ignore[arg-type]
    "append text": (lambda m: m.append("hello"), "ids is 'hello'"),
    "append a tensor": (lambda m: m.append(torch.tensor([3, 4])), "list of"),  # type: ignore[arg-type]
    "append an array": (lambda m: m.append(np.array([3, 4])), "list of"),  # type: ignore[arg-type]
    "append floats": (lambda m: m.append([3, 4.0]), "4.0"),  # type: ignore[list-item]
    "append bools": (lambda m: m.append([True]), "True"),
    "append none of many": (lambda m: m.append([3, None]), "None"),  # type: ignore[list-item]
    "append array elements": (lambda m: m.append(list(np.array([3]))), "tolist"),
    "append below": (lambda m: m.append([-1]), "vocabulary"),
    "append beyond": (lambda m: m.append([10**6]), "vocabulary"),
    "append too many": (lambda m: m.append([3] * (POSITIONS + 1)), "max_positions"),
    "append a wrong cancel": (lambda m: m.append([3], cancel=True), "cancel"),  # type: ignore[arg-type]
    "decode fewer than none": (lambda m: m.decode(-1), "n is -1"),
    "decode half": (lambda m: m.decode(1.5), "n is 1.5"),  # type: ignore[arg-type]
    "decode text": (lambda m: m.decode("8"), "n is '8'"),  # type: ignore[arg-type]
    "stream none": (lambda m: m.stream(None), "n is None"),  # type: ignore[arg-type]
    "sampling by name": (lambda m: m.decode(1, "greedy"), "sampling is 'greedy'"),  # type: ignore[arg-type]
    "the voice's sampling": (lambda m: m.decode(1, VoiceSampling()), "llm_engine.Sampling"),  # type: ignore[arg-type]
    "stop at one id": (lambda m: m.decode(1, stop=3), "stop is 3"),  # type: ignore[arg-type]
    "stop at text": (lambda m: m.decode(1, stop="end"), "stop is 'end'"),  # type: ignore[arg-type]
    "stop at texts": (lambda m: m.decode(1, stop=["end"]), "stop"),  # type: ignore[list-item]
    "cancel by value": (lambda m: m.decode(1, cancel=False), "cancel"),  # type: ignore[arg-type]
    "set no sampling": (lambda m: m.set_sampling(None), "sampling is None"),  # type: ignore[arg-type]
    "restore nothing": (lambda m: m.restore(None), "capsule is None"),  # type: ignore[arg-type]
    "restore a name": (lambda m: m.restore("ada"), "capsule is 'ada'"),  # type: ignore[arg-type]
    "name a snapshot 3": (lambda m: m.snapshot(3), "name is 3"),  # type: ignore[arg-type]
    "roll back beyond": (lambda m: m.rollback(99), "holds 0 to 3"),
    "roll back below": (lambda m: m.rollback(-1), "holds 0 to 3"),
    "roll back half": (lambda m: m.rollback(1.5), "position is 1.5"),  # type: ignore[arg-type]
    "roll back none": (lambda m: m.rollback(None), "position is None"),  # type: ignore[arg-type]
    "fork fewer than none": (lambda m: m.fork(m.snapshot(), -1), "branches is -1"),
    "fork nothing": (lambda m: m.fork(None, 2), "capsule is None"),  # type: ignore[arg-type]
    "hold a capsule": (lambda m: m.hold(m.snapshot()), "checkpoint"),  # type: ignore[arg-type]
    "the end after none": (lambda m: m.turn_end_probability(None), "ids is None"),  # type: ignore[arg-type]
    "the end after text": (lambda m: m.turn_end_probability("so"), "ids is 'so'"),
    "the end after floats": (lambda m: m.turn_end_probability([0.5]), "0.5"),  # type: ignore[list-item]
    "warm in mid sequence": (lambda m: m.warm(), "reset"),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls_that_mean_nothing(llm: HybridLLM, case: str) -> None:
    call, told = CALLS[case]
    llm.reset()
    llm.append([3, 4, 5])
    llm.set_sampling(Sampling.greedy())
    logits = llm.logits
    with pytest.raises(StateError, match=told):
        call(llm)
    assert llm.tokens == (3, 4, 5) and torch.equal(llm.logits, logits)
    assert len(llm.decode(2)) == 2


def test_an_empty_engine_has_nothing_to_decode(llm: HybridLLM) -> None:
    llm.reset()
    with pytest.raises(StateError, match="append tokens first"):
        llm.decode(1)
    assert llm.decode(0) == []


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"path": None}, ConfigError, "path"), ({"path": "/nowhere"}, ConfigError, "config.json"),
        ({"ctx": "cpu"}, StateError, "ctx"),
        ({"dtype": "float16"}, StateError, "float32, bfloat16, float8, int8, int4"),
        ({"dtype": torch.float32}, StateError, "float32, bfloat16"), ({"max_positions": 0}, StateError, "max_pos"),
        ({"max_positions": 9.5}, StateError, "max_positions"), ({"max_positions": None}, StateError, "max_positions"),
        ({"checkpoints": 0}, StateError, "checkpoints"), ({"checkpoint_every": 0}, StateError, "checkpoint_every"),
        ({"scope": ""}, StateError, "scope"), ({"scope": "a.b"}, StateError, "scope"),
        ({"progress": 3}, StateError, "progress"),
    ],
    ids=str,
)  # fmt: skip
def test_loading_with_wrong_arguments(change: dict[str, Any], error: type[LLMError], told: str) -> None:
    ctx = ExecContext("cpu")
    with pytest.raises(error, match=told):
        HybridLLM.load(**({"path": TINY, "ctx": ctx} | change))  # type: ignore[arg-type]
    assert ctx.buffers() == (), "nothing is left of a load that was refused"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1), ("temperature", "hot"), ("temperature", None), ("temperature", float("nan")),
        ("top_k", 2.5), ("top_k", -1), ("top_k", 2000), ("top_p", 0), ("top_p", "all"), ("min_p", 1), ("min_p", None),
        ("presence_penalty", float("inf")), ("presence_penalty", "x"), ("repetition_penalty", 0), ("seed", 1.5),
        ("seed", None), ("seed", "7"), ("top_k", True),
    ],
)  # fmt: skip
def test_sampling_that_means_nothing(name: str, value: Any) -> None:
    with pytest.raises(StateError, match=f"{name} is"):
        Sampling(**(asdict(Sampling()) | {name: value}))
