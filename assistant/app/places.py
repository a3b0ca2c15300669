"""Where models lie: shipped, fetched, or in a directory of somebody's own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from assistant.app.config import PROFILES, TINY, Config
from assistant.app.hub import is_present, model_folder
from assistant.base.errors import SettingError
from assistant.remote import is_address, read_address


def local_path(config: Config, kind: str, repository: str) -> Path:
    """The directory of a model, `kind` llm or tts: the one asked for, the fetched one of the profile, or the shipped.

    An address is no directory and is given back as it is written. Raises SettingError where no model lies.
    """
    asked: str = getattr(config, kind)
    if is_address(asked):
        return Path(asked)
    if asked:
        path = Path(asked).expanduser()
    elif repository:
        path = model_folder(config.models, repository)
    else:
        path = shipped(kind)
    if not (path / "config.json").is_file():
        advice = f"`assistant pull {repository}` fetches it" if repository and not asked else "name another directory"
        raise SettingError(f"there is no model in {path}; {advice}")
    return path


def shipped(kind: str) -> Path:
    """The model beside an engine's code. The engine is looked for and not imported: a page that has to tell that all is
    being loaded would wait for torch."""
    found = find_spec(f"{kind}_engine")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent / "tiny"


def present_profiles(config: Config) -> list[str]:
    """Profiles whose models are on this machine."""

    def here(repository: str) -> bool:
        return is_present(model_folder(config.models, repository))

    return [name for name, profile in PROFILES.items() if profile.llm and all(map(here, profile.repositories))]


def check_models(config: Config) -> None:
    """Whether the models that the settings name are there, before anything is loaded. Raises SettingError."""
    profile = PROFILES.get(config.profile, PROFILES[TINY])  # which one `auto` takes is not known before torch is here
    for kind, repository in (("llm", profile.llm), ("tts", profile.tts)):
        local_path(config, kind, repository)
    for asked in (config.llm, config.tts, config.asr):
        if is_address(asked):
            read_address(asked)
