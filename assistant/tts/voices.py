"""The voices of a running model, each with its capsule; each persona's voice is designed once if it does not exist."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from assistant.base.errors import PeerError
from assistant.tts.voice_folder import DESIGNED, NAME, Stamp, VoiceFolder
from capsules import Capsule
from capsules.errors import CapsuleError
from capsules.prefix import StateKey
from capsules.registry import Registry, named_key
from tts_engine.engine import HiggsTTS
from tts_engine.reference import Voice, checked_codes
from tts_engine.sampling import VoiceSampling

UNNAMED = "own"
"""The voice of a model that has none and has none stored: a different person in each sentence."""
SENTENCE = (
    "Hello, it is good to hear you. Ask me whatever you like and I will do my best to answer, "
    "or we simply talk for a while, about the weather, a journey, or nothing much."
)
"""The words of a designed voice's recording: about nine seconds, with most sounds of English."""
LONGEST_ROWS = 400
SEEDS = 4
"""Designing tries this many seeds and takes the first that ends by itself."""

log = logging.getLogger(__name__)


class Voices(Mapping[str, Voice]):
    """Voices by name; the first is the default. `[name]` returns a voice with its capsule, from the registry (disk
    included) or newly made. Making one ends the engine's session: do it on the engines' thread, before a session is
    opened."""

    def __init__(self, tts: HiggsTTS, folder: VoiceFolder, registry: Registry) -> None:
        self.folder = folder
        self._tts, self._registry = tts, registry
        self._ready: dict[str, tuple[Stamp | None, Voice]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __getitem__(self, name: str) -> Voice:
        """A removed voice stays available to the talks that began with it."""
        ready = self._ready.get(name)
        kept = self.folder.files().get(name)
        stamp = None if kept is None else kept[0]
        if ready is not None and (ready[0] == stamp or kept is None):
            return ready[1]
        voice = self._bare(name) if kept is None else kept[1].voice
        self._ready[name] = stamp, replace(voice, capsule=self._capsule(voice))
        return self._ready[name][1]

    def design(self, name: str) -> None:
        """Make sure that a voice of this name exists, if the model imitates: the same name gives the same voice. Takes
        as long as speaking a sentence, on the engines' thread; the engine's session ends."""
        if not self.folder.imitates or name in self.folder.files() or not NAME.fullmatch(name):
            return
        log.info("a voice is designed for %s", name)
        seed = int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "big")
        best: Voice | None = None
        for number in range(SEEDS):
            codes = self._tts.codes(SENTENCE, sampling=VoiceSampling(seed=seed + number), max_rows=LONGEST_ROWS)
            ended = bool(self._tts.pieces) and self._tts.pieces[-1].ended == "end"
            if codes.shape[1] and (ended or best is None):
                best = Voice(name, codes, SENTENCE)
            if ended and best is not None:
                break
        self._tts.set_sampling(VoiceSampling())
        if best is None:
            log.warning("no voice could be designed for %s", name)
            return
        try:
            self.folder.keep(best, DESIGNED)
        except PeerError as error:
            log.warning("%s; %s will sound otherwise at each start", error, name)

    def _called(self, voice: Voice) -> str:
        return f"voice/{self.folder.model.name}/{voice.name}/{voice.key}"

    def tidy(self) -> None:
        """Prepare every voice, and drop everything of those that were removed or replaced."""
        called = {self._called(self[name]) for name in self}
        for one in self._registry.listing():
            if one.name.startswith(f"voice/{self.folder.model.name}/") and one.name not in called:
                self._registry.remove(one.key)

    def _names(self) -> tuple[str, ...]:
        return tuple(self.folder.own) or tuple(self.folder.files()) or (UNNAMED,)

    def _bare(self, name: str) -> Voice:
        """Raises KeyError."""
        codes = self.folder.own.get(name)
        if codes is None and name not in (*self.folder.own, UNNAMED):
            raise KeyError(name)
        audio = self._tts.config.audio
        return Voice(name, None if codes is None else checked_codes(codes, audio.codebooks, audio.size), None)

    def _capsule(self, voice: Voice) -> Capsule:
        state_key, called = voice_key(self._tts), self._called(voice)
        key = named_key(called, state_key)
        try:
            capsule = self._registry.get(key, self._tts.fingerprint)
        except CapsuleError:
            capsule = None
        if capsule is not None:
            self._registry.pin(key)
            return capsule
        self._tts.open(voice)
        capsule = self._tts.snapshot(voice.name)
        self._registry.put(capsule, state_key, name=called, pin=True, save=True)
        return capsule


def load_voices(tts: HiggsTTS, path: Path, registry: Registry, kept: Path | None = None) -> Voices:
    """The voices of a checkpoint, each ready, and those in the folder `kept`, if the model can imitate."""
    voices = Voices(tts, VoiceFolder(path, kept), registry)
    voices.tidy()
    return voices


def voice_key(tts: HiggsTTS) -> StateKey:
    """The realm of voices: the states that talks begin with."""
    return StateKey("voices", precision=tts.fingerprint.digest)
