"""First looks at language models, kept by the digest of weights and form: each is made once and shown again."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from assistant.base.errors import AssistantError
from capsules.durable import write_json
from llm_engine import HybridLLM, TextError
from llm_engine.chat import Chat
from llm_engine.firstlook import FirstLook, look_at


def first_look(
    engine: HybridLLM, path: Path, kept: Path, report: Callable[[str], None], *, narrow: bool = False,
    again: bool = False,
) -> FirstLook:  # fmt: skip
    """The look at this model in this form: the one in the folder `kept`, or one that is made now and stored there.

    again  make it anew whatever is stored
    Raises AssistantError for a template that refuses a plain question.
    """
    file = kept / f"look-{engine.fingerprint.digest}.json"
    if not again and (known := _read(file)) is not None:
        return known
    report("checking once whether this model speaks sense")
    try:
        look = look_at(engine, Chat.load(path), narrow=narrow)
    except TextError as error:
        raise AssistantError(f"{path}: {error}") from error
    with suppress(OSError):  # a full disk: it is made again next time
        kept.mkdir(parents=True, exist_ok=True)
        write_json(file, {"look": asdict(look), "of": _place(path)}, indent=1)
    return look


def known_look(path: Path, kept: Path) -> FirstLook | None:
    """A look at the file as it lies there now, in whichever form it was loaded; nothing is loaded for it."""
    place = _place(path)
    return next((look for file in kept.glob("look-*.json") if (look := _read(file, place)) is not None), None)


def _place(path: Path) -> list[object]:
    """Place, sizes and times of a model's files: as long as they stay, it is the same model."""
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    seen = [file.stat() for file in files]
    return [str(path.resolve()), sum(one.st_size for one in seen), max((one.st_mtime_ns for one in seen), default=0)]


def _read(file: Path, place: list[object] | None = None) -> FirstLook | None:
    """A stored look, if it is one of the model at `place`; a damaged one counts as absent."""
    try:
        stored = json.loads(file.read_text("utf-8"))
        return FirstLook(**stored["look"]) if place in (None, stored["of"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
