"""How a turn reaches the state it needs with the least replay: append, roll back, restore or rebuild."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Way(StrEnum):
    """In order of what it costs besides the replay."""

    APPEND = "append"  # the live state is a prefix of what is wanted
    ROLLBACK = "rollback"  # an earlier boundary of the live state is
    RESTORE = "restore"  # a stored capsule is
    REBUILD = "rebuild"  # nothing is: from an empty state


@dataclass(frozen=True)
class Live:
    """The state an engine holds now: the tokens folded in, and the boundaries it can roll back to (rising)."""

    tokens: Sequence[int] = ()
    boundaries: Sequence[int] = ()


@dataclass(frozen=True)
class Reentry:
    """Reach `position` this way, then fold in `replay` tokens."""

    way: Way
    position: int
    replay: int
    key: str = ""  # of the capsule, if the way is RESTORE


def choose(wanted: Sequence[int], live: Live, stored: tuple[int, str] | None, reserve: int = 0) -> Reentry:
    """The way with the least replay; of equals the cheapest.

    wanted   all tokens that shall be folded in
    stored   length and key of the longest capsule that is a prefix of `wanted`
    reserve  tokens that must be left to fold in; 1 if the engine needs the last one to get its logits
    """
    limit = len(wanted) - reserve
    common = shared(wanted, live.tokens)
    options = [(Way.REBUILD, 0, "")]
    if stored is not None and 0 < stored[0] <= limit:
        options.append((Way.RESTORE, stored[0], stored[1]))
    reachable = [b for b in live.boundaries if 0 < b <= min(common, limit)]
    if reachable:
        options.append((Way.ROLLBACK, max(reachable), ""))
    if common == len(live.tokens) <= limit and common:
        options.append((Way.APPEND, common, ""))
    order = list(Way)
    way, position, key = min(options, key=lambda option: (len(wanted) - option[1], order.index(option[0])))
    return Reentry(way, position, len(wanted) - position, key)


def shared(one: Sequence[int], two: Sequence[int]) -> int:
    """Length of the common prefix."""
    for at, (a, b) in enumerate(zip(one, two, strict=False)):
        if a != b:
            return at
    return min(len(one), len(two))
