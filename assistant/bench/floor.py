"""What the engines cost by themselves, and what merely reading their weights costs, measured in turn in one process.

Every step of either engine has to read its weights once, so the time of a plain sum over them is a floor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Protocol

from assistant.app.start import LocalEngines
from assistant.device.schedule import EngineKind
from capsules import Role

STEPS = 100
WARM_UP = 10
TEXT = "It is a quarter past three, and there is nothing on your list for the rest of the day."


class Summed(Protocol):
    """A tensor, as far as reading it once goes."""

    def sum(self) -> object: ...

    def numel(self) -> int: ...

    def element_size(self) -> int: ...


async def floors(engines: LocalEngines) -> dict[str, dict[str, float]]:
    """Medians in milliseconds of `step`s and of `read`ing the weights, and their ratio, for both engines."""
    llm = await engines.engine_thread.call(EngineKind.LLM, lambda: _decode(engines))
    voice = await engines.engine_thread.call(EngineKind.TTS, lambda: _rows(engines))
    return {"llm token": llm, "voice row": voice}


def _decode(engines: LocalEngines) -> dict[str, float]:
    llm = engines.llm
    llm.reset()
    llm.append(list(range(3, 67)))

    def step() -> bool:
        llm.step()
        llm.settle()
        return True

    return _compared(step, _weights(engines, "llm.w."))


def _rows(engines: LocalEngines) -> dict[str, float]:
    tts = engines.tts
    tts.open(None)
    tts.begin(TEXT, "steady")

    def step() -> bool:
        kind = tts.step().kind
        if kind == "idle":
            tts.begin(TEXT, "steady")
        return kind == "row"

    return _compared(step, _weights(engines, "tts.w.body."))


def _weights(engines: LocalEngines, prefix: str) -> list[Summed]:
    """The matrices that a step reads."""
    held = engines.ctx.buffers(prefix.partition(".")[0], Role.WEIGHT)
    return [buffer.tensor for buffer in held if buffer.name.startswith(prefix) and buffer.tensor.dim() > 1]


def _compared(step: Callable[[], bool], weights: Sequence[Summed]) -> dict[str, float]:
    """`step` says whether what it did counts."""
    steps: list[float] = []
    reads: list[float] = []
    while len(steps) < STEPS + WARM_UP:
        begin = perf_counter()
        counts = step()
        between = perf_counter()
        for tensor in weights:
            tensor.sum()
        if counts:
            steps.append((between - begin) * 1000)
            reads.append((perf_counter() - between) * 1000)
    step_ms, read_ms = median(steps[WARM_UP:]), median(reads[WARM_UP:])
    size = sum(tensor.numel() * tensor.element_size() for tensor in weights)
    return {
        "n": STEPS,
        "step_ms": round(step_ms, 3),
        "read_ms": round(read_ms, 3),
        "ratio": round(step_ms / read_ms, 2),
        "bytes": size,
    }
