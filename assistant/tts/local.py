"""The local voice engine behind its contract: pieces of text to sound, and its memory cut to what was heard.

All engine calls run on the engines' thread, one row per step; between two rows another talk may speak. A talk whose
front has left, or whose process was killed, keeps its session and goes on in the same tone when it is resumed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from assistant.base.errors import EngineFailed
from assistant.base.sound import REPLY_RATE
from assistant.contracts import Cost, Mark, SpeechChunk, Synced, Uttered
from assistant.device.deployment import Deployment
from assistant.device.guess import Guess, Guesses, urgency_of
from assistant.device.lease import EngineLease
from assistant.device.schedule import EngineKind, Urgency
from assistant.device.thread import Job, Work
from assistant.tts.frozen import FrozenSessions, Said, SpokenState
from assistant.tts.voice_folder import VoiceFolder
from assistant.tts.voices import Voices, voice_key
from capsules.prefix import StateKey
from tts_engine.engine import HiggsTTS
from tts_engine.errors import RetraceFailed, TextRefused
from tts_engine.reading.alignment import Aloud, aloud
from tts_engine.sampling import VoiceSampling
from tts_engine.text import say

log = logging.getLogger(__name__)

T = TypeVar("T")

FRAME_SAMPLES = 960
KEPT_EVERY = 256
"""Positions by which a session grows or shrinks until its capsule is written to disk again."""
PLAYING_S = 0.4
"""With less sound than this still to be played somebody waits for the next: the first chunk is short again."""


@dataclass(frozen=True)
class VoiceOptions:
    """How a voice speaks.

    first_chunk   the engine's policy for a reply's first piece
    sampling      None: the checkpoint's own
    spoken        writes a text the way it is said
    history       positions: a session that is longer begins anew when all of it was heard; None: it grows until the
                  context is full
    """

    first_chunk: str = "exact"
    sampling: VoiceSampling | None = None
    spoken: Callable[[str], str] = say
    history: int | None = None


@dataclass(frozen=True, slots=True)
class VoiceBefore:
    """A session before a guess: its frames, its pieces, and when it will have been played. `known`: there was one."""

    known: bool
    frames: int
    said: int
    plays_until: float


class LocalTTS:
    """`voices` may come and go; the first is the default."""

    capsules = True
    paces = False
    """Stretched sound would no longer be the frames that the session remembers."""

    def __init__(
        self, deployment: Deployment, engine: HiggsTTS, voices: Voices, name: str,
        options: VoiceOptions | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.engine = engine
        """For a benchmark, while no talk is open."""
        options = options or VoiceOptions()
        self._engine_thread, self._now = deployment.thread, deployment.now
        self._tts, self._voices = engine, voices
        self._options = options
        self._preparing: dict[str, Job[None]] = {}
        self._frozen = FrozenSessions(engine, self._voices, options.sampling)
        state_key = StateKey(name, precision=engine.fingerprint.digest)
        self._lease = EngineLease(
            self._frozen, deployment.registry, state_key, "tts", deployment.journals, bases=[voice_key(engine)]
        )
        self._guesses: Guesses[VoiceBefore, SpokenState] = Guesses(deployment.thread, EngineKind.TTS, self._lease)

    @property
    def voices(self) -> Sequence[str]:
        return tuple(self._voices)

    @property
    def voice_folder(self) -> VoiceFolder:
        """Where they are kept."""
        return self._voices.folder

    async def speak(
        self, talk: str, voice: str | None, piece_id: str, text: str, *, speed: float = 1.0
    ) -> AsyncGenerator[SpeechChunk, None]:
        words = aloud(text, self._options.spoken)
        if not words.text:
            return
        guess = self._guesses.find(talk)
        if guess is None:
            self._interrupt(talk)
        work = partial(self._speak, talk, self._voice(voice), piece_id, words, guess)
        job: Job[SpeechChunk]
        async with self._engine_thread.job(EngineKind.TTS, work, talk=talk, urgency=urgency_of(guess)) as job:
            if guess is not None:
                guess.jobs.append(job)
            async for sound in job.results():
                if job.played_from is None and sound.pcm.size and self._guesses.find(talk) is None:
                    job.played_from = self._now()
                job.made_s += sound.pcm.size / REPLY_RATE
                yield sound

    def guess(self, talk: str) -> None:
        self._guesses.begin(talk)

    def confirm(self, talk: str) -> None:
        self._guesses.confirm(talk)

    async def drop(self, talk: str) -> float:
        return await self._guesses.drop(talk, partial(self._drop, talk))

    async def sync(self, talk: str, uttered: Sequence[Uttered]) -> Synced:
        self._interrupt(talk)
        synced = Synced(None, 0, 0.0)
        job: Job[Synced]
        async with self._engine_thread.job(EngineKind.TTS, partial(self._sync, talk, uttered), talk=talk) as job:
            async for made in job.results():
                synced = made
        return synced

    async def prepare(self, talk: str) -> None:
        self._interrupt(talk)
        job: Job[None]
        work = partial(self._prepare, talk)
        async with self._engine_thread.job(EngineKind.TTS, work, talk=talk, urgency=Urgency.IDLE) as job:
            self._preparing[talk] = job
            async for _ in job.results():
                pass

    async def warm(self, voice: str | None) -> Synced:
        return await self._call(lambda: self._warm(voice))

    async def park(self, talk: str) -> None:
        await self._call(lambda: self._lease.park(talk), talk)

    async def fork(self, talk: str, branch: str) -> None:
        await self._call(lambda: self._lease.fork(talk, branch), talk)

    async def forget(self, talk: str) -> None:
        await self._call(lambda: self._lease.forget(talk), talk)

    def _interrupt(self, talk: str) -> None:
        """Somebody waits: what is done ahead of time stops, and what it did stays."""
        if (job := self._preparing.pop(talk, None)) is not None:
            self._engine_thread.cancel(job)

    async def _call(self, work: Callable[[], T], talk: str | None = None) -> T:
        if talk is not None:
            self._interrupt(talk)
        return await self._engine_thread.call(EngineKind.TTS, work, talk=talk)

    def _voice(self, name: str | None) -> str:
        return name if name is not None and name in self._voices else next(iter(self._voices))

    # ---------------------------------------------------------------------- on the engines' thread

    def _speak(
        self, talk: str, voice: str, piece_id: str, words: Aloud, guess: Guess[VoiceBefore] | None
    ) -> Work[SpeechChunk]:
        begin = self._now()
        if guess is not None:
            self._check_way_back(talk, voice, words.text)
        known = talk in self._lease
        state = self._own(talk, voice)
        yield from self._catch_up(talk, state)
        if guess is not None and guess.before is None:
            guess.before = VoiceBefore(known, self._tts.frames, len(state.said), state.plays_until)
        costs = [Cost("tts_restore", _ms(begin, self._now()))]
        first = self._tts.frames
        waited_for = state.plays_until < begin + PLAYING_S
        try:
            self._tts.begin(words.text, self._options.first_chunk if waited_for else "steady")
        except TextRefused:
            return
        said = Said(piece_id, first, 0)
        state.said.append(said)
        try:
            yield from self._rows(talk, state, said, words, costs)
        finally:
            self._take_back(talk)
            if self._tts.busy:
                self._tts.cancel()
            if self._tts.frames > first + said.frames:
                self._tts.cut(first + said.frames)
            if not said.frames:
                state.said.remove(said)
            self._note(talk, state)

    def _rows(self, talk: str, state: SpokenState, said: Said, words: Aloud, costs: list[Cost]) -> Work[SpeechChunk]:
        rows = 0
        told = 0
        rows_ms = 0.0
        while True:
            begin = self._now()
            self._take_back(talk)
            stepped = self._tts.step()
            spent = _ms(begin, self._now())
            if stepped.kind == "prefill":
                costs.append(Cost("tts_prefill", spent))
            else:
                rows += stepped.kind == "row"
                rows_ms += spent
            made = False
            while True:
                begin = self._now()
                chunk = self._tts.take_audio()
                if chunk is None:
                    break
                made = True
                costs += [Cost("tts_rows", rows_ms), Cost("codec", _ms(begin, self._now()))]
                known = self._tts.pieces[-1].words
                marks = tuple(Mark(frame * FRAME_SAMPLES, words.raw(char)) for char, _, frame in known[told:])
                told = len(known)
                said.frames += chunk.frames
                state.plays_until = max(state.plays_until, self._now()) + chunk.frames * FRAME_SAMPLES / REPLY_RATE
                pcm = np.ascontiguousarray(chunk.pcm.numpy(), np.float32)
                self._note(talk, state, midway=True)  # before it can be heard
                yield SpeechChunk(pcm, marks, rows, tuple(costs))
                self._take_back(talk)
                costs, rows, rows_ms = [], 0, 0.0
            if stepped.kind == "idle":
                return
            if not made:
                yield None

    def _check_way_back(self, talk: str, voice: str, text: str) -> None:
        """Raises EngineFailed where a guess could not be taken back: another voice ends the session, and where the
        context is full its oldest pieces would go."""
        state = self._lease.find(talk)
        if state is None:
            return
        if state.voice != voice:
            raise EngineFailed(f"a guess cannot change the voice from {state.voice} to {voice}; the reply itself will")
        self._lease.own(talk)
        if not self._tts.roomy(text):
            raise EngineFailed("there is no room for a guess in the voice's context; the reply itself will make room")

    def _drop(self, talk: str, guess: Guess[VoiceBefore]) -> None:
        """The guess never was said."""
        self._lease.show(talk)
        before, state = guess.before, self._lease.find(talk)
        if before is None or state is None:
            return
        if not before.known:
            self._lease.forget(talk)
        elif self._lease.own(talk):
            self._tts.cut(before.frames)
            del state.said[before.said :]
            state.plays_until = before.plays_until
            self._note(talk, state)

    def _own(self, talk: str, voice: str) -> SpokenState:
        """Make the engine's session this talk's, in this voice; another voice begins another session."""
        state = self._lease.find(talk)
        if state is not None and state.voice != voice:
            self._lease.forget(talk)
        state = self._lease.begin(talk, partial(SpokenState, voice))
        self._lease.own(talk)
        return state

    def _take_back(self, talk: str) -> None:
        """Another talk may have had the engine since the last step: go on where this one was."""
        if (state := self._lease.find(talk)) is None:
            raise EngineFailed("the talk was forgotten in mid-sentence and cannot go on; ask again")
        if self._lease.owner != talk:
            self._lease.own(talk)
            for _ in self._catch_up(talk, state):
                pass
            if not state.said:
                raise EngineFailed("the voice lost its state in mid-sentence and cannot go on; ask again")

    def _catch_up(self, talk: str, state: SpokenState) -> Work[None]:
        """Where the engine is behind what is known of the owner's session, make the rest of it again."""
        while state.behind and state.session is not None:
            try:
                for _ in self._tts.retrace(state.session):
                    yield None
                    if self._lease.owner != talk:
                        self._lease.own(talk)
                        break  # begun anew, or from the last capsule: half a session is not kept
                else:
                    state.behind = False
            except RetraceFailed as error:
                log.warning("the voice of talk %s begins anew: %s", talk, error)
                state.said, state.session, state.behind = [], None, False
                self._frozen.clear(state)

    def _note(self, talk: str, state: SpokenState, *, midway: bool = False) -> None:
        if self._lease.owner == talk and not state.behind:
            state.session = self._tts.facts()
        self._lease.note(talk, midway=midway)

    def _prepare(self, talk: str) -> Work[None]:
        """Make what was lost of the session again, and see that the next time there will be less to make. Or begin it
        anew: every row reads all before it."""
        if (state := self._lease.find(talk)) is not None and state.said:
            self._lease.own(talk)
            yield from self._catch_up(talk, state)
            if self._has_had_its_time(talk, state):
                self._begin_anew(talk, state)
            elif abs(self._tts.position - state.kept) >= KEPT_EVERY:
                state.kept = self._tts.position
                self._lease.keep(talk)

    def _has_had_its_time(self, talk: str, state: SpokenState) -> bool:
        """What may still be cut to what was heard, or taken back with a guess, stays."""
        history = self._options.history
        if history is None or self._tts.position <= history:
            return False
        return state.plays_until <= self._now() and self._guesses.find(talk) is None

    def _begin_anew(self, talk: str, state: SpokenState) -> None:
        self._tts.open(self._voices[state.voice])
        state.said, state.kept = [], 0
        self._note(talk, state)

    def _sync(self, talk: str, uttered: Sequence[Uttered]) -> Work[Synced]:
        """Cut behind the first piece that no longer counts as said in full."""
        state = self._lease.find(talk)
        if state is None:
            return
        begin = self._now()
        frames = {piece.piece_id: piece.samples // FRAME_SAMPLES for piece in uttered}
        keep = 0
        while keep < len(state.said) and frames.get(state.said[keep].piece_id) == state.said[keep].frames:
            keep += 1
        if keep == len(state.said):
            yield Synced(None, self._tts.frames, 0.0)
            return
        self._lease.own(talk)
        yield from self._catch_up(talk, state)
        if keep >= len(state.said):  # it could not be made again
            yield Synced("rebuild", 0, _ms(begin, self._now()))
            return
        state.plays_until = begin
        cut = state.said[keep]
        cut.frames = min(cut.frames, frames.get(cut.piece_id, 0))
        end = cut.first_frame + cut.frames
        held = self._tts.pieces[0].first_frame if self._tts.pieces else 0
        if end < held:
            self._begin_anew(talk, state)
            yield Synced("rebuild", 0, _ms(begin, self._now()))
            return
        self._tts.cut(end)
        state.said = state.said[: keep + (1 if cut.frames else 0)]
        self._note(talk, state)
        yield Synced("rollback", end, _ms(begin, self._now()))

    def _warm(self, voice: str | None) -> Synced:
        begin = self._now()
        self._lease.release()
        if voice is not None:
            self._voices.design(voice)
        self._tts.open(self._voices[self._voice(voice)])
        return Synced("restore", self._tts.position, _ms(begin, self._now()))


def _ms(begin: float, end: float) -> float:
    return (end - begin) * 1000
