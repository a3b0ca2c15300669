"""The local voice engine behind the Speaker contract: pieces of text to sound, and its memory cut to what was heard.

The engine holds one session; a talk that is not the present owner has its session in a capsule and gets it back at its
next row. All engine calls run on the engines' thread, one row per step; between two rows another talk may speak. A talk
whose front has left keeps its session in the registry, on disk too, and goes on in the same tone when it is resumed.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from assistant.base.errors import EngineFailed
from assistant.contracts import Cost, Mark, SpeechChunk, Synced, Uttered
from assistant.device.schedule import EngineKind
from assistant.device.thread import EngineThread, Work
from assistant.tts.alignment import Aloud, aloud
from capsules import Capsule
from capsules.errors import CapsuleError, CapsuleTooLarge
from capsules.prefix import Realm
from capsules.registry import Registry
from tts_engine.engine import HiggsTTS
from tts_engine.errors import TextRefused
from tts_engine.sampling import Sampling
from tts_engine.voices import Voice, checked_codes

FRAME_SAMPLES = 960
PLAYING_S = 0.4
"""With less sound than this still to be played somebody waits for the next: the first chunk is short again."""


def load_voices(tts: HiggsTTS, path: Path, registry: Registry) -> dict[str, Voice]:
    """The voices of a checkpoint, each with its capsule: from the registry (disk included), else made and kept there.

    `voices.json` beside the weights names them: codes [Q][T] of a reference, or null for the model's own voice.
    Without that file there is one voice, the model's own.
    """
    file = path / "voices.json"
    named = json.loads(file.read_text("utf-8")) if file.is_file() else {"own": None}
    realm = Realm(f"voice {path.name}", precision=tts.fingerprint.digest)
    voices = {}
    for name, codes in named.items():
        voice = Voice(name, None if codes is None else _codes(tts, codes), None)
        key = f"voice/{path.name}/{name}/{voice.key}"
        try:
            capsule = registry.get(key, tts.fingerprint)
        except CapsuleError:
            capsule = None
        if capsule is None:
            tts.open(voice)
            capsule = tts.snapshot(name)
            registry.put(capsule, realm, name=key, pin=True, save=True)
        else:
            registry.pin(key)
        voices[name] = replace(voice, capsule=capsule)
    return voices


def _codes(tts: HiggsTTS, codes: Any) -> Any:
    audio = tts.config.audio
    return checked_codes(codes, audio.codebooks, audio.size)


@dataclass(slots=True)
class _Said:
    """A piece in the session: its first frame counted through the session, and how many frames of it hold."""

    piece_id: str
    first_frame: int
    frames: int


@dataclass(slots=True)
class _VoiceTalk:
    voice: str
    said: list[_Said] = field(default_factory=list)
    capsule: Capsule | None = None
    """Its session, while another talk has the engine."""
    plays_until: float = 0.0
    """When all that was made will have been played at the earliest."""

    def parked(self) -> Capsule:
        """Its session with what was said in it, for one that goes on later."""
        assert self.capsule is not None
        facts = {"voice": self.voice, "said": [[one.piece_id, one.first_frame, one.frames] for one in self.said]}
        return replace(self.capsule, host={**self.capsule.host, "talk": facts})

    @classmethod
    def resumed(cls, capsule: Capsule) -> _VoiceTalk:
        facts = capsule.host["talk"]
        return cls(facts["voice"], [_Said(*row) for row in facts["said"]], capsule)


class LocalTTS:
    """`voices` by name; the first is the default. `first_chunk` is the engine's policy for a reply's first piece."""

    capsules = True
    paces = False
    """Stretched sound would no longer be the frames that the session remembers."""

    def __init__(
        self,
        engine_thread: EngineThread,
        tts: HiggsTTS,
        voices: Mapping[str, Voice | None],
        registry: Registry,
        name: str,
        *,
        first_chunk: str = "exact",
        spoken: Callable[[str], str],
        sampling: Sampling | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._engine_thread, self._tts, self._registry = engine_thread, tts, registry
        self._realm = Realm(name, precision=tts.fingerprint.digest)
        self._voices = dict(voices)
        self._first_chunk, self._sampling, self._spoken = first_chunk, sampling, spoken
        self._now = now
        self._talks: dict[str, _VoiceTalk] = {}
        self._owner: str | None = None

    @property
    def voices(self) -> Sequence[str]:
        return tuple(self._voices)

    async def speak(
        self, talk: str, voice: str | None, piece_id: str, text: str, *, speed: float = 1.0
    ) -> AsyncGenerator[SpeechChunk, None]:
        words = aloud(text, self._spoken)
        if not words.text:
            return
        work = partial(self._speak, talk, self._voice(voice), piece_id, words)
        async with self._engine_thread.job(EngineKind.TTS, work, talk=talk) as job:
            async for sound in job.results():
                if job.played_from is None and sound.pcm.size:
                    job.played_from = self._now()
                job.made_s += sound.pcm.size / 24_000
                yield sound

    async def sync(self, talk: str, uttered: Sequence[Uttered]) -> Synced:
        return await self._engine_thread.call(EngineKind.TTS, lambda: self._sync(talk, uttered), talk=talk)

    async def warm(self, voice: str | None) -> Synced:
        name = self._voice(voice)
        return await self._engine_thread.call(EngineKind.TTS, lambda: self._warm(name))

    async def park(self, talk: str) -> None:
        await self._engine_thread.call(EngineKind.TTS, lambda: self._park(talk), talk=talk)

    async def forget(self, talk: str) -> None:
        await self._engine_thread.call(EngineKind.TTS, lambda: self._forget(talk), talk=talk)

    def _voice(self, name: str | None) -> str:
        return name if name in self._voices else next(iter(self._voices))

    # ---------------------------------------------------------------------- on the engines' thread

    def _speak(self, talk: str, voice: str, piece_id: str, words: Aloud) -> Work[SpeechChunk]:
        begin = self._now()
        state = self._own(talk, voice)
        costs = [Cost("tts_restore", _ms(begin, self._now()))]
        first = self._tts.frames
        waited_for = state.plays_until < begin + PLAYING_S
        try:
            self._tts.begin(words.text, self._first_chunk if waited_for else "steady")
        except TextRefused:
            return
        said = _Said(piece_id, first, 0)
        state.said.append(said)
        try:
            yield from self._rows(talk, state, said, words, costs)
        finally:
            self._take_back(talk, state)
            if self._tts.busy:
                self._tts.cancel()
            if self._tts.frames > first + said.frames:
                self._tts.cut(first + said.frames)
            if not said.frames:
                state.said.remove(said)

    def _rows(self, talk: str, state: _VoiceTalk, said: _Said, words: Aloud, costs: list[Cost]) -> Work[SpeechChunk]:
        rows = 0
        told = 0
        rows_ms = 0.0
        while True:
            begin = self._now()
            self._take_back(talk, state)
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
                state.plays_until = max(state.plays_until, self._now()) + chunk.frames * FRAME_SAMPLES / 24_000
                pcm = np.ascontiguousarray(chunk.pcm.numpy(), np.float32)
                yield SpeechChunk(pcm, marks, rows, tuple(costs))
                self._take_back(talk, state)
                costs, rows, rows_ms = [], 0, 0.0
            if stepped.kind == "idle":
                return
            if not made:
                yield None

    def _own(self, talk: str, voice: str) -> _VoiceTalk:
        """Make the engine's session this talk's, in this voice."""
        state = self._talk(talk)
        if state is not None and state.voice == voice and self._owner == talk:
            return state
        self._release()
        if state is not None and state.voice == voice and state.capsule is not None:
            try:
                self._tts.restore(state.capsule)
            except CapsuleError:
                state = None
            else:
                state.capsule = None
        else:
            state = None
        if state is None:
            self._tts.open(self._voices[voice])
            state = self._talks[talk] = _VoiceTalk(voice)
        if self._sampling is not None:
            self._tts.set_sampling(self._sampling)
        self._owner = talk
        return state

    def _take_back(self, talk: str, state: _VoiceTalk) -> None:
        """Another talk may have had the engine since the last step: go on where this one was."""
        if self._own(talk, state.voice) is not state:
            raise EngineFailed("the voice lost its state in mid-sentence and cannot go on; ask again")

    def _release(self) -> None:
        """The present owner's session moves into a capsule."""
        owner = self._talks.get(self._owner) if self._owner is not None else None
        if owner is not None and owner.said:
            with suppress(CapsuleTooLarge):
                owner.capsule = self._tts.snapshot(self._owner or "")
        if self._owner is not None and (owner is None or owner.capsule is None):
            self._talks.pop(self._owner, None)
        self._owner = None

    def _talk(self, talk: str) -> _VoiceTalk | None:
        """What is known of a talk; one that was parked goes on from its capsule, which is its own again."""
        name = _parked_name(talk)
        if talk not in self._talks and name in self._registry:
            with suppress(CapsuleError):
                if (capsule := self._registry.get(name, self._tts.fingerprint)) is not None:
                    self._talks[talk] = _VoiceTalk.resumed(capsule)
            self._registry.remove(name)
        return self._talks.get(talk)

    def _park(self, talk: str) -> None:
        """Let go of a talk; the registry keeps its session if there is room."""
        if self._owner == talk:
            self._release()
        state = self._talks.pop(talk, None)
        if state is not None and state.capsule is not None:
            self._registry.put(state.parked(), self._realm, name=_parked_name(talk), save=True)

    def _forget(self, talk: str) -> None:
        self._talks.pop(talk, None)
        self._registry.remove(_parked_name(talk))
        if self._owner == talk:
            self._owner = None

    def _sync(self, talk: str, uttered: Sequence[Uttered]) -> Synced:
        """Cut behind the first piece that no longer counts as said in full."""
        state = self._talk(talk)
        if state is None:
            return Synced(None, 0, 0.0)
        begin = self._now()
        frames = {piece.piece_id: piece.samples // FRAME_SAMPLES for piece in uttered}
        keep = 0
        while keep < len(state.said) and frames.get(state.said[keep].piece_id) == state.said[keep].frames:
            keep += 1
        if keep == len(state.said):
            return Synced(None, self._tts.frames, 0.0)
        self._own(talk, state.voice)
        cut = state.said[keep]
        cut.frames = min(cut.frames, frames.get(cut.piece_id, 0))
        end = cut.first_frame + cut.frames
        held = self._tts.pieces[0].first_frame if self._tts.pieces else 0
        if end < held:
            self._tts.open(self._voices[state.voice])
            state.said = []
            return Synced("rebuild", 0, _ms(begin, self._now()))
        self._tts.cut(end)
        state.said = state.said[: keep + (1 if cut.frames else 0)]
        return Synced("rollback", end, _ms(begin, self._now()))

    def _warm(self, voice: str) -> Synced:
        begin = self._now()
        self._release()
        self._tts.open(self._voices[voice])
        return Synced("restore", self._tts.position, _ms(begin, self._now()))


def _ms(begin: float, end: float) -> float:
    return (end - begin) * 1000


def _parked_name(talk: str) -> str:
    return f"talk/{talk}/voice"
