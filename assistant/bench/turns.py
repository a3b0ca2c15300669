"""Talks in real time with the assistant's own voice as the user: what each turn took, some turns interrupted.

The front here is a player that plays at once what it gets; when the user speaks into a reply it stops and truncates
like a stock client. It keeps its own times too, from the sound that it sends and gets, beside the session's timeline.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import numpy as np

from assistant.contracts import TTS
from assistant.events import (
    REPLY_RATE,
    AppendAudio,
    AudioDelta,
    Pcm,
    ResponseCreated,
    ResponseDone,
    SpeechStarted,
    SpokenText,
    Timeline,
    TimelineReady,
    ToolUsed,
    TranscriptCompleted,
    TruncateItem,
)
from assistant.talk import Session

BLOCK_S = 0.02
BARGE_AFTER_S = 1.0
"""How much of a reply an interrupted turn lets play."""
PAUSE_S = 0.3
"""Between the end of a reply and the next question."""
PATIENCE_S = 60.0
AUDIBLE = 0.02
"""A fraction of full scale: a question begins and ends with its first and last sample above it."""
SHORT = ("what time is it", "what day is it", "what is seven plus five", "who are you", "how are you")
LONG = ("count to twenty", "tell me a story")
"""Questions whose replies will be interrupted."""


@dataclass(frozen=True)
class Question:
    """`begin` and `end`: its first and last audible sample."""

    text: str
    pcm: Pcm
    begin: int
    end: int


@dataclass
class MeasuredTurn:
    """One turn as the front saw it. `timeline` None: no reply came in time."""

    question: str
    interrupted: bool
    heard: str = ""
    said: str = ""
    tools: list[str] = field(default_factory=list)
    timeline: Timeline | None = None
    figures: dict[str, float] = field(default_factory=dict)
    """Milliseconds by the front's own clock. `voice_to_voice`: last audible sample sent to first sample got. `yield`:
    first audible sample sent into a reply to the player's stop. `processor`: what the process worked meanwhile, on all
    its threads."""


class Caller:
    """One person at the microphone of one session. Run `read` beside the session's own `run`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._now = asyncio.get_running_loop().time
        self._replied = asyncio.Event()
        self._done = asyncio.Event()
        self._reply = ""
        """The answer to the present turn; what an earlier one still sends is played and counts for nothing."""
        self._item: str | None = None
        self._item_began = 0.0
        self._play_end = 0.0
        self._began = self._ended = 0.0
        self._turn = MeasuredTurn("", False)

    async def read(self) -> None:
        """The session's events, to their end."""
        async for event in self._session.events:
            match event:
                case AudioDelta():
                    if event.item_id != self._item:
                        self._item, self._item_began = event.item_id, self._now()
                    self._play_end = max(self._play_end, self._now()) + event.pcm.size / REPLY_RATE
                    if event.response_id == self._reply and not self._replied.is_set():
                        self._turn.figures["voice_to_voice"] = (self._now() - self._ended) * 1000
                        self._replied.set()
                case SpeechStarted() if self._item is not None and self._play_end > self._now():
                    self._turn.figures["yield"] = (self._now() - self._began) * 1000
                    heard_ms = (self._now() - self._item_began) * 1000
                    item, self._item = self._item, None
                    self._play_end = self._now()
                    await self._session.send(TruncateItem(item, 0, int(heard_ms)))
                case TranscriptCompleted():
                    self._turn.heard = event.transcript
                case ResponseCreated():
                    self._reply = event.response.id
                case SpokenText() if event.response_id == self._reply:
                    self._turn.said += event.delta
                case ToolUsed():
                    self._turn.tools.append(event.name)
                case TimelineReady() if event.timeline.response_id == self._reply:
                    self._turn.timeline = event.timeline
                case ResponseDone() if event.response.id == self._reply and event.response.status == "completed":
                    self._done.set()

    async def turn(self, question: Question, *, interrupt: bool) -> MeasuredTurn:
        """Ask and hear the reply out, or only `BARGE_AFTER_S` of it."""
        turn = self._turn = MeasuredTurn(question.text, interrupt)
        worked = time.process_time()
        self._reply = ""
        self._replied.clear()
        self._done.clear()
        speaking = asyncio.ensure_future(self._speak(question))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._replied.wait()
                if interrupt:
                    await asyncio.sleep(BARGE_AFTER_S)
                    return turn
                await self._done.wait()
            await asyncio.sleep(max(0.0, self._play_end - self._now()) + PAUSE_S)
        except TimeoutError:
            turn.timeline = None
        finally:
            speaking.cancel()
            turn.figures["processor"] = (time.process_time() - worked) * 1000
        return turn

    async def _speak(self, question: Question) -> None:
        """Silence behind it until somebody cancels: a microphone does not stand still while a reply sounds."""
        begin = self._now()
        self._began, self._ended = begin + question.begin / REPLY_RATE, begin + question.end / REPLY_RATE
        await send_in_real_time(self._session, question.pcm)
        while True:
            await send_in_real_time(self._session, np.zeros(REPLY_RATE, np.float32))


async def send_in_real_time(session: Session, pcm: Pcm) -> None:
    """At `REPLY_RATE`, block by block, each when its last sample would have come from a microphone."""
    now, block = asyncio.get_running_loop().time, int(BLOCK_S * REPLY_RATE)
    begin = now()
    for start in range(0, len(pcm), block):
        await asyncio.sleep(max(0.0, begin + (start + block) / REPLY_RATE - now()))
        await session.send(AppendAudio(pcm[start : start + block], REPLY_RATE))


async def speak_without_end(session: Session, asked: Sequence[Question]) -> None:
    """One question runs into the next, so words are written down all the while and no turn ends. Until cancelled."""

    async def drain() -> None:
        async for _ in session.events:
            pass

    async with asyncio.TaskGroup() as group:
        group.create_task(session.run())
        group.create_task(drain())
        try:
            while True:
                for question in asked:
                    await send_in_real_time(session, question.pcm[question.begin : question.end])
        finally:
            session.close()


async def questions(tts: TTS, texts: Sequence[str]) -> list[Question]:
    """The questions as sound, in the last voice, which is not the one that answers where there are several."""
    voice = tts.voices[-1] if tts.voices else None
    spoken = []
    for index, text in enumerate(texts):
        talk = f"bench_{index}"
        async with aclosing(tts.speak(talk, voice, f"{talk}.0", text)) as sounds:
            pcm = np.concatenate([sound.pcm async for sound in sounds])
        if (state := tts.state) is not None:
            await state.forget_talk(talk)
        audible = np.flatnonzero(np.abs(pcm) > AUDIBLE)
        begin, end = (int(audible[0]), int(audible[-1])) if audible.size else (0, pcm.size)
        spoken.append(Question(text, pcm, begin, end))
    return spoken


async def hold(
    session: Session,
    short: Sequence[Question],
    long: Sequence[Question],
    turns: int,
    every: int,
    told: Callable[[MeasuredTurn], None] = lambda turn: None,
) -> None:
    """`turns` turns, each `every`-th of them a long answer interrupted by the next question (0: none). `told` gets
    each as it ends. Closes the session."""
    caller = Caller(session)
    async with asyncio.TaskGroup() as group:
        group.create_task(session.run())
        group.create_task(caller.read())
        try:
            for index in range(turns):
                interrupt = every > 0 and index % every == every - 1 and index + 1 < turns
                asked = long if interrupt else short
                place = index // every if interrupt else index
                told(await caller.turn(asked[place % len(asked)], interrupt=interrupt))
        finally:
            session.close()
