"""The store of voices: those that the model brings, and a file for each designed or recorded one. Needs no engine.

People and pages add, list and remove voices here, whether a server runs or not: the speaking process looks again
whenever a voice is asked for.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from assistant.base.errors import PeerError
from assistant.base.sound import Pcm
from assistant.contracts import KeptVoice
from capsules.durable import remove_durably
from tts_engine.codec_files import codec_digest, reference_codes
from tts_engine.errors import TTSError
from tts_engine.reference import Voice
from tts_engine.voice_file import SUFFIX, VoiceFile, read_voice_file, write_voice_file

OWN, DESIGNED, GIVEN = "own", "designed", "given"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
LONGEST_TRANSCRIPT = 1000
Stamp = tuple[int, int]

log = logging.getLogger(__name__)


class VoiceFolder:
    """Belongs to one model, whose files lie in `model`. With `path` None, nothing is stored."""

    def __init__(self, model: Path, path: Path | None = None) -> None:
        self.model, self.path = model, path
        file = model / "voices.json"
        self.own: Mapping[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
        """The voices that the model was trained on, by name: codes [Q][T] of a reference, or null for none."""
        self._known: dict[str, tuple[Stamp, VoiceFile | None]] = {}

    @property
    def imitates(self) -> bool:
        """A model with voices of its own speaks only in those; one without imitates its reference."""
        return self.path is not None and not self.own

    @property
    def refusal(self) -> str:
        """Why recordings cannot become voices; empty if they can."""
        known = f"; it has {', '.join(self.own)} and imitates no others" if self.own else ""
        return "" if self.imitates else (
            f"this voice model takes no recordings{known}. Higgs Audio v3 takes them, on a GPU with 9 GiB free: type "
            "“assistant pull desk-12” in a terminal"
        )  # fmt: skip

    @cached_property
    def codec(self) -> str:
        return codec_digest(self.model)

    def files(self) -> dict[str, tuple[Stamp, VoiceFile]]:
        """The voices stored for this model's codec, the oldest first. A damaged file is reported once and left out."""
        if not self.imitates or self.path is None or not self.path.is_dir():
            return {}
        seen: dict[str, tuple[Stamp, VoiceFile | None]] = {}
        for path in self.path.glob(f"*{SUFFIX}"):
            try:
                about = path.stat()
            except OSError:  # deleted since it was listed
                continue
            stamp = (about.st_mtime_ns, about.st_size)
            known = self._known.get(path.stem)
            seen[path.stem] = known if known is not None and known[0] == stamp else (stamp, self._voice_in(path))
        self._known = seen
        found = [(name, stamp, file) for name, (stamp, file) in seen.items() if file is not None]
        return {name: (stamp, file) for name, stamp, file in sorted(found, key=lambda one: (one[1], one[0]))}

    def listing(self) -> list[KeptVoice]:
        """Every available voice with its origin."""
        own = [KeptVoice(name, OWN) for name in self.own]
        return own + [_kept(file, stamp) for stamp, file in self.files().values()]

    def check_new(self, name: str, replace: bool = False) -> None:
        """Raises PeerError if a recording cannot become this voice. A designed voice may always be replaced."""
        if self.refusal:
            raise PeerError("voice_model", self.refusal)
        if not NAME.fullmatch(name):
            allowed = "small letters, digits, - and _, at most 40, a letter or digit first"
            raise PeerError("invalid_value", f"a voice cannot be called {name[:60]!r}; allowed: {allowed}", "name")
        found = self.files().get(name)
        if found is not None and found[1].origin == GIVEN and not replace:
            raise PeerError("voice_exists", f"there is a voice {name!r}; remove it first, or replace it", "name")

    def add(self, name: str, sound: tuple[Pcm, int], transcript: str, *, replace: bool = False) -> KeptVoice:
        """Make a checked recording (pcm, rate) a voice. Takes seconds. Raises PeerError; then nothing has changed."""
        self.check_new(name, replace)
        words = " ".join(transcript.split())
        if not words or len(words) > LONGEST_TRANSCRIPT:
            told = f"is too long: {len(words)} characters, at most {LONGEST_TRANSCRIPT}"
            told = told if words else "is empty: no words were heard; speak clearly, or write down what is said"
            raise PeerError("invalid_value", f"the transcript {told}", "transcript")
        try:
            codes = reference_codes(self.model, *sound)
        except TTSError as error:
            raise PeerError("invalid_value", str(error), "audio_sample") from error
        return self.keep(Voice(name, codes, words), GIVEN)

    def keep(self, voice: Voice, origin: str) -> KeptVoice:
        """Raises PeerError if the voice cannot be written."""
        assert self.path is not None
        file = VoiceFile(voice, origin, self.codec)
        path = self.path / f"{voice.name}{SUFFIX}"
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_voice_file(path, file)
            return _kept(file, (path.stat().st_mtime_ns, 0))
        except OSError as error:
            raise PeerError("not_kept", f"the voice cannot be kept in {self.path} ({error.strerror})") from error

    def remove(self, name: str, users: Iterable[str] = (), *, anyway: bool = False) -> None:
        """`users` names those who speak with it, in words. Raises PeerError."""
        if name in self.own:
            raise PeerError("invalid_value", f"the voice {name} is the model's own and cannot be removed", "name")
        found = self.files().get(name)
        if found is None or self.path is None:
            known = ", ".join(one.name for one in self.listing()) or "none"
            raise PeerError("voice_not_found", f"there is no voice {name[:60]!r}; choose from {known}", "name")
        if (speaking := ", ".join(users)) and not anyway:
            told = f"the voice {name} is in use by {speaking}; choose another there first, or remove it anyway"
            raise PeerError("voice_in_use", f"{told}; a persona without a voice then gets a new one", "name")
        try:
            remove_durably(self.path / f"{name}{SUFFIX}")
        except OSError as error:
            raise PeerError("not_removed", f"the voice {name} cannot be removed ({error.strerror})") from error

    def _voice_in(self, path: Path) -> VoiceFile | None:
        try:
            file = read_voice_file(path)
        except (TTSError, OSError) as error:
            log.warning("a voice is left out: %s", error)
            return None
        if file.codec != self.codec:
            log.warning("the voice %s was made for another voice model and is left out", path.stem)
            return None
        return file if NAME.fullmatch(path.stem) else None


def _kept(file: VoiceFile, stamp: Stamp) -> KeptVoice:
    transcript = file.voice.transcript or ""
    return KeptVoice(file.voice.name, file.origin, round(file.seconds, 2), transcript, stamp[0] / 1e9)
