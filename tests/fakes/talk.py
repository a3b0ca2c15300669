"""A talk written as a timeline and run in virtual time: what the front does when, and what it got when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from assistant.base.clock import LoopClock
from assistant.contracts import ASR, LLM, TTS, Prompt
from assistant.events import AppendAudio, Command, Event, ServerVad, Settings
from assistant.personas import Persona
from assistant.talk import Engines, Services, Session
from assistant.talk.talks import Talks
from assistant.tools.mcp.servers import McpServers
from assistant.tools.registry import ToolRegistry
from capsules.journal import Journals
from tests.fakes.loop import run
from tests.fakes.models import Answer, FakeEars, FakeLLM, FakeTTS, counting_ids

E = TypeVar("E")
PERSONAS = {
    "ada": Persona("ada", "Ada", "You are Ada.", "ada"),
    "ben": Persona("ben", "Ben", "You are Ben.", "ben"),
}
BLOCK_S = 0.02
"""How much sound the microphone sends at once."""


async def inline(function: Callable[[], Any]) -> Any:
    return function()


def echo(prompt: Prompt) -> Sequence[Answer]:
    """Says back the last line."""
    return [f"You said {prompt.lines[-1].text}." if prompt.lines else "Hello."]


@dataclass
class Got:
    """An event and when it came, seconds."""

    at: float
    event: Event


class World:
    """Fake models, talks over them, and the log of one session."""

    def __init__(
        self,
        answers: Callable[[Prompt], Sequence[Answer]] = echo,
        settings: Settings | None = None,
        tools: Callable[[], ToolRegistry] = ToolRegistry,
        folder: Path | None = None,
        limit: int = 4,
        speed: float = 10.0,
        llm: LLM | None = None,
        tts: TTS | None = None,
        asr: ASR | None = None,
        offload: Callable[[Callable[[], Any]], Awaitable[Any]] = inline,
        candidates: bool = True,
        sees: bool = False,
        lost: str | None = None,
        servers: McpServers | None = None,
        facts: Callable[[], tuple[str, ...]] = tuple,
        forget: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`llm`, `tts`, `asr`: others than the fake ones. `offload`: how hearing works, at once if not given.
        `lost`: see `Services.lost`."""
        self.llm = FakeLLM(answers, sees=sees)
        self.tts = FakeTTS(speed=speed)
        self.asr = FakeEars()
        services = Services(
            Engines(llm or self.llm, tts or self.tts, asr or self.asr), LoopClock(), PERSONAS,
            offload, tools=lambda session: tools(), ids=counting_ids(), candidates=candidates, lost=lost,
            servers=servers, facts=facts, forget=forget,
        )  # fmt: skip
        settings = settings or Settings(persona="ada", turn_detection=ServerVad())
        self.talks = Talks(
            services, limit=limit, settings=settings, journals=Journals(folder),
            pictures=folder and folder / "pictures",
        )
        self.servers = servers
        self.log: list[Got] = []
        self.block_s = BLOCK_S
        self.on_event: Callable[[Session, Event], Sequence[Command]] = lambda session, event: ()
        """A front that reacts: commands it sends when it gets this event."""

    def play(self, *steps: tuple[float, Command | tuple[str, float]], until: float = 20.0) -> Session:
        """Run a talk: each step is (time, command) or (time, (words, seconds of speech)); silence in between."""
        return run(self.talk(*steps, until=until))

    async def talk(
        self, *steps: tuple[float, Command | tuple[str, float]], until: float = 20.0, resume: str | None = None,
        microphone: bool = True,
    ) -> Session:  # fmt: skip
        session = self.talks.open(resume=resume)
        begin = asyncio.get_running_loop().time()
        speech = [(at, step) for at, step in steps if isinstance(step, tuple)]
        async with asyncio.TaskGroup() as group:
            running = group.create_task(session.run())
            reading = group.create_task(self._read(session))
            sending = []
            if microphone:
                sending.append(group.create_task(self._microphone(session, speech, begin, until)))
            for at, step in steps:
                if not isinstance(step, tuple):
                    sending.append(group.create_task(self._send_at(session, begin + at, step)))
            await asyncio.sleep(begin + until - asyncio.get_running_loop().time())
            for task in sending:
                task.cancel()
            session.close()
            await running
            await reading
        return session

    async def _read(self, session: Session) -> None:
        async for event in session.events:
            self.log.append(Got(asyncio.get_running_loop().time(), event))
            for command in self.on_event(session, event):
                await session.send(command)

    async def _send_at(self, session: Session, at: float, command: Command) -> None:
        await asyncio.sleep(at - asyncio.get_running_loop().time())
        await session.send(command)

    async def _microphone(
        self, session: Session, speech: Sequence[tuple[float, tuple[str, float]]], begin: float, until: float
    ) -> None:
        sound = np.zeros(int((until + 1) * 16_000), np.float32)
        for at, (text, seconds) in speech:
            start = int(at * 16_000)
            words = self.asr.spoken(text, seconds)
            sound[start : start + words.size] = words
        n = int(self.block_s * 16_000)
        for i in range(0, sound.size - n, n):
            await asyncio.sleep(max(0.0, begin + (i + n) / 16_000 - asyncio.get_running_loop().time()))
            await session.send(AppendAudio(sound[i : i + n], 16_000))

    def of(self, kind: type[E]) -> list[E]:
        return [got.event for got in self.log if isinstance(got.event, kind)]

    def when(self, kind: type) -> list[float]:
        return [round(got.at, 6) for got in self.log if isinstance(got.event, kind)]

    def names(self) -> list[str]:
        """Event names in order, runs of the same one folded."""
        out: list[str] = []
        for got in self.log:
            name = type(got.event).__name__
            if not out or out[-1] != name:
                out.append(name)
        return out
