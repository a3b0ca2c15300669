"""Checks of the settings that need no model: a wrong one is refused before anything is loaded or printed."""

from __future__ import annotations

from collections.abc import Mapping

from assistant.app.config import Config
from assistant.app.ears import check_ears
from assistant.app.places import check_models
from assistant.base.errors import SettingError
from assistant.base.tongues import is_code
from assistant.personas import Persona, load_personas


def check_settings(config: Config) -> dict[str, Persona]:
    """Returns the personas. Raises SettingError for a model, ears, a persona or a voice that is not there."""
    check_models(config)
    check_ears(config)
    personas = load_personas(config.home / "personas")
    if config.language and not is_code(config.language):
        raise SettingError(f"{config.origin('language')}: {config.language!r} is not the code of a language, as de is")
    if config.persona not in personas:
        raise SettingError(
            f"{config.origin('persona')}: there is no persona {config.persona!r}; choose from {', '.join(personas)}, "
            f"or write one in {config.home / 'personas'}"
        )
    if config.voice:
        check_voice(config, config.voice, personas, f"{config.origin('voice')}: ")
    return personas


def check_voice(config: Config, name: str, personas: Mapping[str, Persona], written: str = "") -> None:
    """A voice that a persona asks for may yet be designed; a server knows its own. Raises SettingError."""
    from assistant.app.voices import voice_folder  # loads torch, to see which profile `auto` means
    from assistant.remote import is_address

    if is_address(config.tts):
        return
    folder = voice_folder(config)
    known = dict.fromkeys(one.name for one in folder.listing())
    known |= dict.fromkeys(one.voice for one in personas.values() if one.voice and folder.imitates)
    if name not in known:
        raise SettingError(f"{written}there is no voice {name!r}; choose from {', '.join(known)}")
