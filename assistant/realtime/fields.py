"""Reading untrusted JSON: every wrong shape raises one PeerError with the protocol's code.

A `Fields` is a JSON object and the path that error messages call it by. `null` reads as absent, except
through `has`, which sees it: in `session.update` null clears.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from assistant.base.errors import PeerError

Json: TypeAlias = dict[str, object]
Name = TypeVar("Name", bound=str)

MAX_DEPTH = 64
MAX_STRUCTURE = 100_000
"""Brackets and commas in one frame: limits what parsing may allocate. Base64 sound has none."""
MAX_EVENT = 160 * 1024
"""Bytes of an event without its sound and pictures; this limit makes its echo fit a server frame."""
MAX_ID = 512
LARGEST = 1e300
"""JSON allows integers beyond any float; they count as this."""


def parse_event(frame: str, limit: int = MAX_EVENT) -> Fields:
    """The JSON object in a text frame: not deep, finite, free of half characters, its text within `limit` bytes.

    Raises PeerError.
    """
    # Counted in the text, before a parser could turn 16 MiB of brackets into gigabytes of objects.
    if sum(map(frame.count, "[{,")) > MAX_STRUCTURE:
        raise PeerError("invalid_event", f"the event has more than {MAX_STRUCTURE} parts; send smaller events")
    try:
        value = json.loads(frame, parse_constant=_refuse_constant)
    except RecursionError:
        raise PeerError("invalid_event", f"the event is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise PeerError("invalid_event", f"this is not valid JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise PeerError("invalid_event", f"an event is a JSON object, not {_kind(value)}")
    if (size := _check_tree(value)) > limit:
        raise PeerError(
            "invalid_event", f"the event has {size} bytes besides sound and pictures; at most {limit} are allowed"
        )
    return Fields(value)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _check_tree(value: Json) -> int:
    """Refuse excessive depth, non-finite numbers and lone surrogates, wherever they are.

    Returns the bytes of all text except sound and pictures.
    """
    size = 0
    level: list[object] = [value]  # level by level: recursion would be exhausted by the peer's nesting
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for node in level:
            if isinstance(node, dict):
                below.extend(node)  # keys are echoed in errors, so they are counted and checked like any text
                below.extend(v for k, v in node.items() if not _is_media(k, v))
            elif isinstance(node, list):
                below.extend(node)
            elif isinstance(node, str):
                size += _bytes(node)
            elif isinstance(node, float) and not math.isfinite(node):
                raise PeerError("invalid_event", "a number in the event is too large for a 64-bit float")
        if not below:
            return size
        level = below
    raise PeerError("invalid_event", f"the event is nested deeper than {MAX_DEPTH} levels")


def _is_media(name: str, value: object) -> bool:
    """Base64 of sound, or a picture's data URL; both have their own limits."""
    if not isinstance(value, str) or not value.isascii():
        return False
    return name == "audio" or (name in {"image_url", "url"} and value.startswith("data:"))


def _bytes(text: str) -> int:
    try:
        return len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise PeerError("invalid_event", "a string in the event contains half of a surrogate pair") from None


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object from the peer. Getters return None if a field is absent (or null), and raise PeerError if wrong."""

    data: Mapping[str, object]
    path: str = ""

    def has(self, name: str) -> bool:
        """Whether the name is present at all, even as null."""
        return name in self.data

    def at(self, name: str) -> str:
        """The name with its path, as errors call it."""
        return f"{self.path}.{name}" if self.path else name

    def text(self, name: str, limit: int | None = None) -> str | None:
        value = self.data.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong(name, "a string", value)
        if limit is not None and len(value) > limit:
            raise PeerError(
                "invalid_value",
                f"{self.at(name)} has {len(value)} characters; at most {limit} are allowed",
                self.at(name),
            )
        return value

    def need_text(self, name: str, limit: int | None = None) -> str:
        value = self.text(name, limit)
        if value is None:
            raise self.missing(name)
        return value

    def ident(self, name: str) -> str | None:
        """A short, non-empty string."""
        value = self.text(name, MAX_ID)
        if value == "":
            raise PeerError("invalid_value", f"{self.at(name)} is empty", self.at(name))
        return value

    def need_ident(self, name: str) -> str:
        value = self.ident(name)
        if value is None:
            raise self.missing(name)
        return value

    def choice(self, name: str, allowed: tuple[Name, ...]) -> Name | None:
        value = self.text(name)
        if value is None:
            return None
        for one in allowed:
            if one == value:
                return one
        raise PeerError(
            "invalid_value",
            f"{self.at(name)} is {value[:80]!r}; allowed: {', '.join(allowed)}",
            self.at(name),
        )

    def boolean(self, name: str) -> bool | None:
        value = self.data.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise self._wrong(name, "true or false", value)

    def number(self, name: str, low: float, high: float) -> float | None:
        """A finite number in [low, high]."""
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):  # to Python True is the number 1
            raise self._wrong(name, "a number", value)
        if not low <= value <= high:
            raise PeerError(
                "invalid_value", f"{self.at(name)} is {str(value)[:40]}; allowed: {low} to {high}", self.at(name)
            )
        return float(min(max(value, -LARGEST), LARGEST))

    def integer(self, name: str, low: int, high: int) -> int | None:
        """A whole number in [low, high]; 3.0 counts as one."""
        value = self.number(name, low, high)
        if value is None:
            return None
        if value != int(value):
            raise self._wrong(name, "a whole number", value)
        return int(value)

    def clamped(self, name: str, high: int) -> int:
        """A required number, rounded and clamped to [0, high]; a position is never refused for its size."""
        value = self.number(name, -math.inf, math.inf)
        if value is None:
            raise self.missing(name)
        return int(min(max(value, 0), high))

    def obj(self, name: str) -> Fields | None:
        value = self.data.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(name, "an object", value)
        return Fields(value, self.at(name))

    def need_obj(self, name: str) -> Fields:
        value = self.obj(name)
        if value is None:
            raise self.missing(name)
        return value

    def array(self, name: str) -> list[object] | None:
        value = self.data.get(name)
        if value is None or isinstance(value, list):
            return value
        raise self._wrong(name, "an array", value)

    def objs(self, name: str) -> Iterator[Fields]:
        """The objects of an array; nothing if it is absent."""
        for index, value in enumerate(self.array(name) or []):
            where = f"{name}[{index}]"
            if not isinstance(value, dict):
                raise self._wrong(where, "an object", value)
            yield Fields(value, self.at(where))

    def missing(self, name: str) -> PeerError:
        return PeerError("missing_required_parameter", f"{self.at(name)} is required", self.at(name))

    def _wrong(self, name: str, wanted: str, value: object) -> PeerError:
        return PeerError(
            "invalid_type", f"{self.at(name)} must be {wanted}, not {_kind(value)}", self.at(name)
        )


def _kind(value: object) -> str:
    """JSON's name for the type of a value."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), "an object")
