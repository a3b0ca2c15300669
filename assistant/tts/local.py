"""The local voice engine behind its contract: pieces of text to sound, and its memory cut to what was heard."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from assistant.base.sound import REPLY_RATE
from assistant.base.tongues import is_english
from assistant.contracts import SpeechChunk, Synced, Uttered
from assistant.device.deployment import Deployment
from assistant.device.guess import Guesses, urgency_of
from assistant.device.lease import EngineLease
from assistant.device.schedule import EngineKind, Urgency
from assistant.device.thread import Job
from assistant.tts.frozen import FrozenSessions, SpokenState
from assistant.tts.guessed import VoiceBefore, undo_speech
from assistant.tts.sessions import SpokenSessions
from assistant.tts.speaking import SpeechWork
from assistant.tts.voice_folder import VoiceFolder
from assistant.tts.voices import Voices, voice_key
from capsules.prefix import StateKey
from tts_engine.engine import HiggsTTS
from tts_engine.reading.alignment import aloud
from tts_engine.sampling import VoiceSampling
from tts_engine.text import say, say_as_written

T = TypeVar("T")


@dataclass(frozen=True)
class VoiceOptions:
    """The way a voice speaks.

    first_chunk   the engine's policy for a reply's first piece
    sampling      None: the checkpoint's own
    spoken        writes a text the way it is spoken
    history       positions: a longer session begins anew once all of it was heard; None: it grows until the context is
                  full
    """

    first_chunk: str = "exact"
    sampling: VoiceSampling | None = None
    spoken: Callable[[str], str] = say
    history: int | None = None


class LocalTTS:
    """`voices` may come and go; the first is the default."""

    paces = False
    """Stretched sound would no longer match the frames that the session remembers."""

    def __init__(
        self, deployment: Deployment, engine: HiggsTTS, voices: Voices, name: str,
        options: VoiceOptions | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.engine = engine
        """For benchmarks, while no talk is open."""
        options = options or VoiceOptions()
        self._engine_thread, self._now = deployment.thread, deployment.now
        self._voices, self._spoken = voices, options.spoken
        self._preparing: dict[str, Job[None]] = {}
        frozen = FrozenSessions(engine, voices, options.sampling)
        state_key = StateKey(name, precision=engine.fingerprint.digest)
        self._lease = EngineLease(
            frozen, deployment.registry, state_key, "tts", deployment.journals, bases=[voice_key(engine)]
        )
        self._guesses: Guesses[VoiceBefore, SpokenState] = Guesses(deployment.thread, EngineKind.TTS, self._lease)
        self._sessions = SpokenSessions(
            frozen, self._lease, lambda talk: self._guesses.find(talk) is not None, options.history, deployment.now
        )
        self._work = SpeechWork(self._sessions, options.first_chunk)

    @property
    def state(self) -> LocalTTS:
        return self

    @property
    def languages(self) -> tuple[str, ...]:
        """A voice that reads phones has those of English."""
        return ("en",) if self.engine.config.frontend == "phones" else ()

    @property
    def voices(self) -> Sequence[str]:
        return tuple(self._voices)

    @property
    def voice_folder(self) -> VoiceFolder:
        """The store of voices."""
        return self._voices.folder

    async def speak(
        self, talk: str, voice: str | None, piece_id: str, text: str, *, speed: float = 1.0,
        language: str | None = None,
    ) -> AsyncGenerator[SpeechChunk, None]:  # fmt: skip
        words = aloud(text, self._spoken if is_english(language) else say_as_written)
        if not words.text:
            return
        guess = self._guesses.find(talk)
        if guess is None:
            self._interrupt(talk)
        work = partial(self._work.speak_piece, talk, self._voice(voice), piece_id, words, guess)
        job: Job[SpeechChunk]
        async with self._engine_thread.job(EngineKind.TTS, work, talk=talk, urgency=urgency_of(guess)) as job:
            if guess is not None:
                guess.jobs.append(job)
            async for sound in job.results():
                if job.played_from is None and sound.pcm.size and self._guesses.find(talk) is None:
                    job.played_from = self._now()
                job.made_s += sound.pcm.size / REPLY_RATE
                yield sound

    async def warm(self, voice: str | None) -> Synced:
        return await self._call(lambda: self._open_voice(voice))

    def _open_voice(self, voice: str | None) -> Synced:
        begin = self._now()
        self._lease.release()
        if voice is not None:
            self._voices.design(voice)
        self.engine.open(self._voices[self._voice(voice)])
        return Synced("restore", self.engine.position, (self._now() - begin) * 1000)

    def _voice(self, name: str | None) -> str:
        return name if name is not None and name in self._voices else next(iter(self._voices))

    # ------------------------------------------------------------------ a talk's state, stored here

    def guess(self, talk: str) -> None:
        self._guesses.begin(talk)

    def confirm(self, talk: str) -> None:
        self._guesses.confirm(talk)

    async def take_back(self, talk: str) -> float:
        return await self._guesses.take_back(talk, partial(undo_speech, self._sessions, talk))

    async def sync(self, talk: str, uttered: Sequence[Uttered]) -> Synced:
        self._interrupt(talk)
        synced = Synced(None, 0, 0.0)
        work = partial(self._work.settle_heard, talk, uttered)
        job: Job[Synced]
        async with self._engine_thread.job(EngineKind.TTS, work, talk=talk) as job:
            async for made in job.results():
                synced = made
        return synced

    async def prepare(self, talk: str) -> None:
        self._interrupt(talk)
        job: Job[None]
        work = partial(self._sessions.refresh, talk)
        async with self._engine_thread.job(EngineKind.TTS, work, talk=talk, urgency=Urgency.IDLE) as job:
            self._preparing[talk] = job
            async for _ in job.results():
                pass

    async def park(self, talk: str) -> None:
        await self._call(lambda: self._lease.park(talk), talk)

    async def fork(self, talk: str, branch: str) -> None:
        await self._call(lambda: self._lease.fork(talk, branch), talk)

    async def forget_talk(self, talk: str) -> None:
        await self._call(lambda: self._lease.discard(talk), talk)

    def _interrupt(self, talk: str) -> None:
        """Stop work done ahead of time, because somebody waits; its results so far stay."""
        if (job := self._preparing.pop(talk, None)) is not None:
            self._engine_thread.cancel(job)

    async def _call(self, work: Callable[[], T], talk: str | None = None) -> T:
        if talk is not None:
            self._interrupt(talk)
        return await self._engine_thread.call(EngineKind.TTS, work, talk=talk)
