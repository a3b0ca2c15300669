"""The folders that models lie in: shipped, fetched, or the user's own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from assistant.app.config import PROFILES, TINY, Config
from assistant.app.found import known_models
from assistant.app.hub import is_present, model_folder
from assistant.base.errors import SettingError
from assistant.remote import is_address, read_address


def local_path(config: Config, kind: str, repository: str) -> Path:
    """The place of a model, `kind` llm or tts: the one asked for, the fetched one of the profile, or the shipped.

    It is a folder; of a language model it may be a GGUF file, asked for by its name in another program as well. An
    address is returned as it is written. Raises SettingError if there is no model.
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
    if (path / "config.json").is_file() or (kind == "llm" and _begins_as_gguf(path)):
        return path
    if not asked:
        wanted = config.profile if config.profile in PROFILES else repository
        raise SettingError(f"the models of {wanted} are not on this machine; fetch them with `assistant pull {wanted}`")
    if path.is_dir():
        inside = sorted(path.glob("*.gguf"))
        also = f", or the file {inside[0]}" if inside and kind == "llm" else ""
        raise SettingError(
            f"{config.origin(kind)}: {path} does not contain a model; name a folder with a config.json{also}"
        )
    if kind == "llm" and (named := [model for model in known_models(config.models) if model.name == asked]):
        if named[0].trouble:
            raise SettingError(f"{config.origin(kind)}: {asked}: {named[0].trouble}")
        return named[0].path
    if path.is_file():
        raise SettingError(f"{config.origin(kind)}: {path} is not a GGUF file; name one, or the folder of a model")
    others = ", a GGUF file, a name of `assistant models`" if kind == "llm" else ""
    raise SettingError(
        f"{config.origin(kind)}: there is no folder {asked}; name the folder of a model{others}, or the address of a "
        "server, which begins with http:// or https://"
    )


def _begins_as_gguf(path: Path) -> bool:
    """The engine says what else is wrong with it; here nothing of an engine is imported."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"


def shipped(kind: str) -> Path:
    """The model beside an engine's code. The engine is looked for and not imported: that would load torch, and the page
    that reports the loading would wait for it."""
    found = find_spec(f"{kind}_engine")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent / "tiny"


def present_profiles(config: Config) -> list[str]:
    """Profiles whose models are on this machine."""

    def here(repository: str) -> bool:
        return is_present(model_folder(config.models, repository))

    return [name for name, profile in PROFILES.items() if profile.llm and all(map(here, profile.repositories))]


def check_models(config: Config) -> None:
    """Raises SettingError if a model that the settings name is not there. Loads nothing."""
    profile = PROFILES.get(config.profile, PROFILES[TINY])  # which one `auto` takes is not known before torch is here
    for kind, repository in (("llm", profile.llm), ("tts", profile.tts)):
        local_path(config, kind, repository)
    for asked in (config.llm, config.tts, config.asr):
        if is_address(asked):
            read_address(asked)
