"""Talks in real time with the assistant's own voice as the user: every turn's timeline, some turns interrupted.

The front here is a player that plays at once what it gets: it reports what was heard while it plays, and when the user
speaks into a reply it stops and truncates like a stock client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import numpy as np

from assistant.engines import Speaker
from assistant.events import (
    REPLY_RATE,
    AppendAudio,
    AudioDelta,
    Pcm,
    ResponseDone,
    SpeechStarted,
    Timeline,
    TimelineReady,
    TruncateItem,
)
from assistant.session import Session

BLOCK_S = 0.02
QUIET_S = 2.5
"""Silence behind a question; the turn ends within it."""
BARGE_AFTER_S = 1.0
"""How much of a reply an interrupted turn lets play."""
PAUSE_S = 0.3
"""Between the end of a reply and the next question."""
PATIENCE_S = 60.0
QUESTIONS = (
    "what time is it",
    "tell me a story",
    "count to ten",
    "what day is it",
    "what is seven plus five",
    "who are you",
)


@dataclass
class Measured:
    """What came of a run."""

    timelines: list[Timeline] = field(default_factory=list)
    unanswered: int = 0


class Caller:
    """One person at the microphone of one session. `run` it beside the session's own `run`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._replied = asyncio.Event()
        self._done = asyncio.Event()
        self._item: str | None = None
        self._item_began = 0.0
        self._play_end = 0.0
        self._timeline: Timeline | None = None

    async def read(self) -> None:
        """The session's events, to their end."""
        clock = asyncio.get_running_loop().time
        async for event in self._session.events:
            match event:
                case AudioDelta():
                    if event.item_id != self._item:
                        self._item, self._item_began = event.item_id, clock()
                    self._play_end = max(self._play_end, clock()) + event.pcm.size / REPLY_RATE
                    self._replied.set()
                case SpeechStarted() if self._item is not None:
                    heard_ms = (clock() - self._item_began) * 1000
                    item, self._item = self._item, None
                    self._play_end = clock()
                    await self._session.send(TruncateItem(item, 0, int(heard_ms)))
                case TimelineReady():
                    self._timeline = event.timeline
                case ResponseDone():
                    self._timeline = event.timeline or self._timeline
                    self._done.set()

    async def turn(self, question: Pcm, *, interrupt: bool) -> Timeline | None:
        """Ask and hear the reply out, or only `BARGE_AFTER_S` of it. None: no reply came."""
        self._replied.clear()
        self._done.clear()
        self._timeline = None
        speaking = asyncio.ensure_future(self._speak(question))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._replied.wait()
                if interrupt:
                    await asyncio.sleep(BARGE_AFTER_S)
                    return self._timeline
                await self._done.wait()
            await asyncio.sleep(max(0.0, self._play_end - asyncio.get_running_loop().time()) + PAUSE_S)
        except TimeoutError:
            return None
        finally:
            speaking.cancel()
        return self._timeline

    async def _speak(self, pcm: Pcm) -> None:
        """In real time, block by block, silence behind it until somebody cancels."""
        loop = asyncio.get_running_loop()
        block = int(BLOCK_S * REPLY_RATE)
        padded = np.concatenate((pcm, np.zeros(int(QUIET_S * REPLY_RATE), np.float32)))
        begin = loop.time()
        for start in range(0, len(padded), block):
            await asyncio.sleep(max(0.0, begin + (start + block) / REPLY_RATE - loop.time()))
            await self._session.send(AppendAudio(padded[start : start + block], REPLY_RATE))


async def questions(speaker: Speaker, texts: Sequence[str] = QUESTIONS) -> list[Pcm]:
    """The questions as sound, in the last voice, which is not the one that answers where there are several."""
    voice = speaker.voices[-1] if speaker.voices else None
    spoken = []
    for index, text in enumerate(texts):
        talk = f"bench_{index}"
        async with aclosing(speaker.speak(talk, voice, f"{talk}.0", text)) as sounds:
            spoken.append(np.concatenate([sound.pcm async for sound in sounds]))
        await speaker.forget(talk)
    return spoken


async def hold(session: Session, asked: Sequence[Pcm], turns: int, every: int) -> Measured:
    """`turns` turns, each `every`-th of them interrupted by the next (0: none). Closes the session."""
    measured = Measured()
    caller = Caller(session)
    async with asyncio.TaskGroup() as group:
        group.create_task(session.run())
        group.create_task(caller.read())
        try:
            for index in range(turns):
                interrupt = every > 0 and index % every == every - 1 and index + 1 < turns
                timeline = await caller.turn(asked[index % len(asked)], interrupt=interrupt)
                if timeline is None:
                    measured.unanswered += 1
                else:
                    measured.timelines.append(timeline)
        finally:
            session.close()
    return measured
