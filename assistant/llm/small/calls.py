"""Hold a call to the values that were said: each is given to one parameter only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from llm_engine.callguide import CallGuide, listed


class SaidCallGuide(CallGuide):
    """As far as other values are left. See `CallGuide`."""

    def _values(
        self, schema: Mapping[str, Any], key: str, given: Sequence[str], wanted: Collection[str]
    ) -> Sequence[str]:
        return _leaving(_left(listed(schema, key), given), [listed(schema, other) for other in wanted])


def _left(listed: Sequence[str], given: Sequence[str]) -> Sequence[str]:
    """The listed values that share no word with the given ones, or else neither hold nor lie in one; switches apart."""
    if {*listed} <= {"true", "false"}:
        return listed
    taken = {word for value in given for word in value.split()}
    apart = [value for value in listed if taken.isdisjoint(value.split())]
    rows = [f" {value} " for value in given]
    other = [value for value in listed if not any(f" {value} " in row or row in f" {value} " for row in rows)]
    return apart or other or listed


def _leaving(values: Sequence[str], others: Sequence[Sequence[str]]) -> Sequence[str]:
    """The values that leave one to each of the other parameters that are still to be given, if there are any."""
    ways = [[{*value.split()} for value in listed] for listed in others if listed]
    leaving = [value for value in values if all(any(map({*value.split()}.isdisjoint, way)) for way in ways)]
    return leaving or values
