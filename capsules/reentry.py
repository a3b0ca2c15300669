"""The way for a turn to reach the state it needs with the least replay: append, roll back, restore or rebuild."""

from dataclasses import dataclass
from enum import StrEnum


class Way(StrEnum):
    """Ordered by cost besides the replay."""

    APPEND = "append"  # the live state is a prefix of the wanted tokens
    ROLLBACK = "rollback"  # an earlier boundary of the live state is one
    RESTORE = "restore"  # a stored capsule is one
    REBUILD = "rebuild"  # nothing is: start from an empty state


@dataclass(frozen=True)
class Live:
    """The state an engine holds now.

    position  tokens folded into it
    keep      how many of these can stay, up to a boundary that a rollback reaches. The engine knows it: equal tokens
              that           were folded differently give a different state, bit for bit
    """

    position: int = 0
    keep: int = 0


@dataclass(frozen=True)
class Reentry:
    """Reach `position` this way, then fold in `replay` tokens."""

    way: Way
    position: int
    replay: int
    key: str = ""  # of the capsule, if the way is RESTORE


def choose(wanted: int, live: Live, stored: tuple[int, str] | None, reserve: int = 0) -> Reentry:
    """The way with the least replay; among equals the cheapest.

    wanted   how many tokens to fold in
    stored   length and key of the longest capsule that is a prefix of them
    reserve  tokens that must remain to be folded in; 1 if the engine needs the last one to get its logits
    """
    limit = wanted - reserve
    options = [(Way.REBUILD, 0, "")]
    if stored is not None and 0 < stored[0] <= limit:
        options.append((Way.RESTORE, stored[0], stored[1]))
    if 0 < live.keep <= limit:
        options.append((Way.APPEND if live.keep == live.position else Way.ROLLBACK, live.keep, ""))
    order = list(Way)
    way, position, key = min(options, key=lambda option: (wanted - option[1], order.index(option[0])))
    return Reentry(way, position, wanted - position, key)
