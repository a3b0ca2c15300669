"""The assistant's personas: one TOML file each, shipped here or put into `ASSISTANT_HOME/personas` by its owner."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from assistant.base.errors import SettingError
from assistant.base.tongues import is_code

DEFAULT = "ada"
PHRASES = ("looks", "works", "thinks", "ask", "using", "yes", "no_answer", "done", "broken", "cannot_see", "unsayable")
"""Our own sentences, which no model writes: covers of a silence, a question before a call and its announcement (with
{tool} and {server}), the answers that mean yes (joined by `|`), and the ends of replies that came to nothing."""
_SAMPLING = {"temperature": (0, 2), "top_k": (0, 1_000_000), "top_p": (0, 1), "seed": (-(2**63), 2**63 - 1)}
"""Limits of the values in a persona's file, as in a chat completion."""


@dataclass(frozen=True, slots=True)
class PersonaSampling:
    """None leaves a value to the model's own default."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Persona:
    """A name, how it behaves and how it sounds. `tools`: names of tools, built-in or a person's own; None for all.

    `description` is for the person who chooses; the model reads the instructions alone.
    """

    name: str
    title: str
    instructions: str
    voice: str | None = None
    tools: tuple[str, ...] | None = None
    sampling: PersonaSampling = PersonaSampling()
    description: str = ""
    language: str | None = None
    """The code of the language that it speaks; None: the front's, or whatever the models make of it."""
    phrases: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Our own sentences in its words, by their names in `PHRASES`."""


def load_personas(folder: Path | None = None) -> dict[str, Persona]:
    """The shipped personas, and those of the folder, which win over shipped ones of the same name."""
    found: dict[str, Persona] = {}
    for shipped in resources.files(__package__).iterdir():
        if shipped.name.endswith(".toml"):
            name = shipped.name.removesuffix(".toml")
            found[name] = read_persona(name, shipped.read_text("utf-8"), shipped.name)
    if folder is not None and folder.is_dir():
        for path in sorted(folder.glob("*.toml")):
            found[path.stem] = read_persona(path.stem, path.read_text("utf-8"), str(path))
    return found


def read_persona(name: str, text: str, origin: str) -> Persona:
    """One file. Raises SettingError with the file's name for anything it does not know."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{origin} is not valid TOML: {error}") from error
    known = {"title", "description", "instructions", "voice", "tools", "sampling", "language", "phrases"}
    if unknown := sorted(set(data) - known):
        raise SettingError(f"{origin} has unknown {', '.join(unknown)}; a persona may have {', '.join(sorted(known))}")
    instructions = _text(data, "instructions", origin)
    if not instructions:
        raise SettingError(f"{origin} has no instructions; write at least a sentence about who this is")
    tools = data.get("tools")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, str) for tool in tools)):
        raise SettingError(f"{origin}: tools must be a list of names")
    return Persona(
        name,
        _text(data, "title", origin) or name,
        instructions,
        _text(data, "voice", origin) or name,
        None if tools is None else tuple(tools),
        _sampling(data.get("sampling", {}), origin),
        _text(data, "description", origin),
        _language(data, origin),
        _phrases(data.get("phrases", {}), origin),
    )


def _language(data: Mapping[str, object], origin: str) -> str | None:
    code = _text(data, "language", origin)
    if code and not is_code(code):
        raise SettingError(f"{origin}: language is {code!r}; write its code, such as de or pt-BR")
    return code or None


def _phrases(data: object, origin: str) -> Mapping[str, str]:
    if not isinstance(data, dict) or not set(data) <= set(PHRASES):
        raise SettingError(f"{origin}: [phrases] may have {', '.join(PHRASES)}, not {data!r}")
    return {name: _text(data, name, origin) for name in data}


def _text(data: Mapping[str, object], key: str, origin: str) -> str:
    value = data.get(key, "")
    if not isinstance(value, str):
        raise SettingError(f"{origin}: {key} must be text, not {value!r}")
    return value.strip()


def _sampling(data: object, origin: str) -> PersonaSampling:
    kinds: dict[str, type] = {"temperature": float, "top_k": int, "top_p": float, "seed": int}
    if not isinstance(data, dict) or not set(data) <= set(kinds):
        raise SettingError(f"{origin}: [sampling] may have {', '.join(kinds)}, not {data!r}")
    for key, value in data.items():
        fits = isinstance(value, int | kinds[key]) and not isinstance(value, bool)
        if not fits or not isinstance(value, int | float):
            raise SettingError(f"{origin}: sampling.{key} must be a number, not {value!r}")
        least, most = _SAMPLING[key]
        if not least <= value <= most:
            raise SettingError(f"{origin}: sampling.{key} is {value}; allowed: {least} to {most}")
    return PersonaSampling(**data)
