"""Every implementation of a contract, opened the same way: local on the shipped models, remote over them, fake.

The remote ones speak with a server of our own in this process, behind which the local ones work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar
from unittest import mock

from assistant.contracts import LLM, TTS, Prompt
from assistant.device.deployment import Deployment
from assistant.device.thread import EngineThread
from assistant.llm.local import LocalLLM
from assistant.llm.small import SmallMind
from assistant.remote import Address, RemoteLLM, RemoteTTS
from assistant.tts.local import LocalTTS
from assistant.tts.voices import load_voices
from capsules import ExecContext
from capsules.registry import Budgets, Registry
from llm_engine import HybridLLM, Sampling
from tests.fakes.models import Answer, FakeLLM, FakeTTS
from tests.fakes.talk import World
from tests.fakes.web import serving
from tts_engine.engine import HiggsTTS

ROOT = Path(__file__).parents[2]
TINY_LLM, TINY_TTS = ROOT / "llm_engine" / "tiny", ROOT / "tts_engine" / "tiny"
E = TypeVar("E", LLM, TTS)


@dataclass(frozen=True)
class Subject(Generic[E]):
    """An engine behind its contract, and what a test may know of the machinery behind it."""

    engine: E
    working: Callable[[], bool]
    """Whether a step is made or waited for."""
    failing: Callable[[], AbstractContextManager[object]]
    """For as long as the block lasts every step fails."""

    async def rest(self) -> None:
        """At once for what keeps its state here; a server first has to see that its client went away."""
        assert not (self.engine.state is not None and self.working())
        async with asyncio.timeout(30):
            while self.working():
                await asyncio.sleep(0.01)


# ----------------------------------------------------------------------------------------------- local


@cache
def hybrid() -> HybridLLM:
    return HybridLLM.load(TINY_LLM, ExecContext("cpu"), max_positions=1024)


@cache
def higgs() -> HiggsTTS:
    return HiggsTTS.load(TINY_TTS, ExecContext("cpu"), max_positions=1024)


def _broken(engine: object) -> AbstractContextManager[object]:
    return mock.patch.object(engine, "step", side_effect=RuntimeError("the machine is on fire"))


@asynccontextmanager
async def _threaded() -> AsyncIterator[EngineThread]:
    thread = EngineThread()
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()
        await asyncio.to_thread(thread.join)


def _registry(ctx: ExecContext) -> Registry:
    return Registry.standard(ctx, Budgets(host_bytes=1 << 28), lambda: 0.0)


@asynccontextmanager
async def local_llm() -> AsyncIterator[Subject[LLM]]:
    model = hybrid()
    model.reset()
    async with _threaded() as thread:
        deployment = Deployment(model._ctx, thread, _registry(model._ctx))
        llm = LocalLLM(deployment, model, SmallMind(TINY_LLM).language(), "tiny", Sampling.greedy())
        yield Subject(llm, lambda: thread.waiting > 0, lambda: _broken(model))


@asynccontextmanager
async def local_tts() -> AsyncIterator[Subject[TTS]]:
    model = higgs()
    registry = _registry(model._ctx)
    voices = load_voices(model, TINY_TTS, registry)
    async with _threaded() as thread:
        tts = LocalTTS(Deployment(model._ctx, thread, registry), model, voices, "tiny")
        yield Subject(tts, lambda: thread.waiting > 0, lambda: _broken(model))


# ---------------------------------------------------------------------------------------------- remote


@asynccontextmanager
async def remote_llm() -> AsyncIterator[Subject[LLM]]:
    async with local_llm() as behind, serving(World(llm=behind.engine)) as site:
        llm = RemoteLLM(Address(f"{site.http}/v1"))
        try:
            yield Subject(llm, behind.working, behind.failing)
        finally:
            await llm.close()


@asynccontextmanager
async def remote_tts() -> AsyncIterator[Subject[TTS]]:
    async with local_tts() as behind, serving(World(tts=behind.engine)) as site:
        tts = RemoteTTS(Address(f"{site.http}/v1"), behind.engine.voices)
        try:
            yield Subject(tts, behind.working, behind.failing)
        finally:
            await tts.close()


# ------------------------------------------------------------------------------------------------ fake


def mind(prompt: Prompt) -> Sequence[Answer]:
    """Counts, or sets a timer and says so: what the small model was trained to do, too."""
    asked = next(line.text for line in reversed(prompt.lines) if line.role == "user")
    if prompt.lines[-1].role == "tool":
        return [f"Your timer is set for {prompt.lines[-1].text}."]
    if "timer" in asked:
        return [("set_timer", {"duration": "5 minutes"})]
    return ["1, 2, 3, 4, 5, 6, 7, 8, 9, 10."] if "count" in asked else [f"You said {asked}."]


@contextmanager
def _set(fake: object, name: str, value: object) -> Iterator[None]:
    with mock.patch.object(fake, name, value):
        yield


@asynccontextmanager
async def fake_llm() -> AsyncIterator[Subject[LLM]]:
    llm = FakeLLM(mind, token_s=0.001, prefill_s=0.001)
    yield Subject(llm, lambda: llm.running > 0, lambda: _set(llm, "fail_after", 0))


@asynccontextmanager
async def fake_tts() -> AsyncIterator[Subject[TTS]]:
    tts = FakeTTS(prefill_s=0.001, speed=100.0)
    yield Subject(tts, lambda: tts.running > 0, lambda: _set(tts, "fail_on", ""))


LLMS: dict[str, Callable[[], AbstractAsyncContextManager[Subject[LLM]]]] = {
    "local": local_llm, "remote": remote_llm, "fake": fake_llm,
}  # fmt: skip
TTSS: dict[str, Callable[[], AbstractAsyncContextManager[Subject[TTS]]]] = {
    "local": local_tts, "remote": remote_tts, "fake": fake_tts,
}  # fmt: skip
