"""Voices looked after: listed, added with the words that the ears hear in them, removed unless somebody speaks with
them. The page, programs and the command all come here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assistant.app.config import Config, choose_profile
from assistant.app.places import local_path, present_profiles
from assistant.asr.recording import words_in
from assistant.base.errors import SettingError
from assistant.contracts import ASR, KeptVoice
from assistant.device.execution import gpu_free_bytes
from assistant.personas import Persona
from assistant.remote import is_address
from assistant.tts.recording import open_recording
from assistant.tts.voice_folder import VoiceFolder


@dataclass(frozen=True)
class KeptVoices:
    """`assistant.contracts.VoiceKeeper`. `ears` are asked for when they are needed; `talking`: voices of open talks."""

    folder: VoiceFolder
    personas: Mapping[str, Persona]
    ears: Callable[[], ASR]
    talking: Callable[[], Collection[str]] = tuple

    @property
    def refusal(self) -> str:
        return self.folder.refusal

    def listing(self) -> Sequence[KeptVoice]:
        return self.folder.listing()

    def add(self, name: str, sound: Path | bytes, transcript: str | None = None, *, replace: bool = False) -> KeptVoice:
        self.folder.check_new(name, replace)
        recording = open_recording(sound)
        words = words_in(self.ears(), *recording) if transcript is None else transcript
        return self.folder.add(name, recording, words, replace=replace)

    def remove(self, name: str, *, anyway: bool = False) -> None:
        users = [f"the persona {one.name}" for one in self.personas.values() if one.voice == name]
        users += ["a talk that is open"] if name in self.talking() else []
        self.folder.remove(name, users, anyway=anyway)


def voice_folder(config: Config) -> VoiceFolder:
    """The folder of the voice model that the settings name; loads nothing. Raises SettingError for one on a server."""
    if is_address(config.tts):
        raise SettingError(f"{config.origin('tts')}: the voice runs at {config.tts}, which keeps its own voices")
    profile = choose_profile(config.profile, gpu_free_bytes(), present_profiles(config))
    return VoiceFolder(local_path(config, "tts", profile.tts), config.voices)
