"""The language model chosen in the page, kept in the home folder for the next start of the server.

A profile or a model that the settings name wins over it. A model that is gone or does not load is told in a sentence,
and the settings' own answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from assistant.app.config import DTYPES, PROFILES, Config
from assistant.app.places import check_models
from assistant.base.errors import SettingError

FILE = "chosen.json"
_KEPT = ("llm", "profile", "dtype")


@dataclass(frozen=True, slots=True)
class SwitchState:
    """The last switch. `told`: why the model named here could not be opened; then the one before answers."""

    phase: Literal["none", "switching", "done", "failed"] = "none"
    model: str = ""
    told: str = ""


def keep_choice(config: Config) -> None:
    """For later starts. Raises OSError."""
    from capsules.durable import write_json  # the package loads torch; who only reads needs none

    write_json(config.home / FILE, {name: getattr(config, name) for name in _KEPT}, indent=1)


def kept_choice(config: Config) -> tuple[Config, SwitchState]:
    """The settings to begin with, and what is to be told of them: "switching" to the kept choice, "failed" if it is not
    there, or "none"."""
    kept = _read(config.home / FILE)
    if kept is None or "llm" in config.origins or "profile" in config.origins:
        return config, SwitchState()
    origins = {**config.origins, **dict.fromkeys(_KEPT, "the model chosen in the page")}
    dtype = config.dtype or kept["dtype"]
    chosen = replace(config, llm=kept["llm"], profile=kept["profile"], dtype=dtype, origins=origins)
    name = kept["llm"] or kept["profile"]
    try:
        check_models(chosen)
    except SettingError as error:
        return config, SwitchState("failed", name, str(error))
    return chosen, SwitchState("switching", name)


def _read(path: Path) -> dict[str, str] | None:
    """None if nothing was chosen, or the file is not ours."""
    try:
        kept = json.loads(path.read_text("utf-8"))
        found = {name: kept[name] for name in _KEPT}
    except (OSError, ValueError, TypeError, KeyError):
        return None
    known = all(isinstance(value, str) for value in found.values())
    dtypes = {*DTYPES, ""}.issuperset(part.strip() for part in str(found["dtype"]).split(","))
    return found if known and dtypes and found["profile"] in PROFILES else None
