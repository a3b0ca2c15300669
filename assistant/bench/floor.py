"""Measures the engines alone, and merely reading their weights, in turn in one process.

Every step of either engine has to read its weights once, so the time of a plain sum over them is a floor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Protocol

from assistant.app.models import Models
from assistant.device.schedule import EngineKind
from assistant.llm.local import LocalLLM
from assistant.tts.local import LocalTTS
from capsules import ExecContext, Role
from llm_engine import HybridLLM
from tts_engine.engine import HiggsTTS

STEPS = 100
WARM_UP = 10
TEXT = "It is a quarter past three, and there is nothing on your list for the rest of the day."


class Summed(Protocol):
    """A tensor, as far as reading it once goes."""

    def sum(self) -> object: ...

    def numel(self) -> int: ...

    def element_size(self) -> int: ...


async def floors(models: Models) -> dict[str, dict[str, float]]:
    """Medians in milliseconds of `step`s and of `read`ing the weights, and their ratio, for each engine that is here.

    Only while no talk is open.
    """
    contexts, thread = models.contexts, models.deployment.thread
    found = {}
    if isinstance(models.llm, LocalLLM):
        llm = models.llm.engine
        found["llm token"] = await thread.call(EngineKind.LLM, lambda: _decode(contexts["llm"], llm))
    if isinstance(models.tts, LocalTTS):
        tts = models.tts.engine
        found["voice row"] = await thread.call(EngineKind.TTS, lambda: _rows(contexts["tts"], tts))
    return found


def _decode(ctx: ExecContext, llm: HybridLLM) -> dict[str, float]:
    llm.reset()
    llm.append(list(range(3, 67)))

    def step() -> bool:
        llm.step()
        llm.catch_up()
        return True

    return _compared(step, _weights(ctx, "llm.w."))


def _rows(ctx: ExecContext, tts: HiggsTTS) -> dict[str, float]:
    tts.open(None)
    tts.begin(TEXT, "steady")

    def step() -> bool:
        kind = tts.step().kind
        if kind == "idle":
            tts.begin(TEXT, "steady")
        return kind == "row"

    return _compared(step, _weights(ctx, "tts.w.body."))


def _weights(ctx: ExecContext, prefix: str) -> list[Summed]:
    """The matrices that a step reads."""
    held = ctx.buffers(prefix.partition(".")[0], Role.WEIGHT)
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
