"""Beginnings of prompts that were folded once are found again, within their realm, at token granularity.

A request that sends its whole talk finds the furthest state that a run from nothing would pass through too. Sums in a
matrix product depend on how many rows go through it, so a stored state is as good only where a call of that run ends,
and only if it was folded in the same calls (`cold_ends`). A capsule is found at its end and at checkpoints inside; the
boundaries that get one are chosen from the overlaps that were actually requested. No realm finds another's states.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np

from assistant.llm.frozen import points_in, with_points
from assistant.llm.token_log import FoldStep, alike
from capsules import Capsule, Checkpoint, Live, Reentry
from capsules.errors import CapsuleError, CapsuleTooLarge
from capsules.placement import RollbackHistogram, optimal
from capsules.prefix import StateKey, prefix_digests
from capsules.registry import Registry, named_key
from llm_engine import HybridLLM
from llm_engine.grid import GRID, chunks

POINTS = 8
"""Checkpoints inside a capsule."""
LISTED = "listed"
"""The realm that everybody may find: personas."""
REMEMBERED = 256
"""Number of beginnings whose requests are counted."""


@dataclass(slots=True)
class Gathered:
    """The checkpoints of a prompt that should be found again: the boundaries worth their bytes, and those at hand."""

    at: frozenset[int] = frozenset()
    points: dict[int, Checkpoint] = field(default_factory=dict)
    source: str = ""
    """Key of the capsule that it continues, all of it."""


def cold_ends(steps: Sequence[FoldStep]) -> tuple[int, ...]:
    """The ends of the calls that fold these steps from nothing, up to the first token that was written one by one."""
    ends: list[int] = []
    at = 0
    for step in takewhile(lambda step: not step.written, steps):
        for chunk in chunks(at, len(step.ids)):
            at += chunk.count
            ends.append(at)
    return tuple(ends)


class Prefixes:
    """The stored beginnings of one engine. Everything here runs on the engines' thread."""

    def __init__(self, llm: HybridLLM, registry: Registry, state_key: StateKey) -> None:
        self._llm, self._registry, self._state_key = llm, registry, state_key
        self._overlaps = Overlaps()
        self._asked: OrderedDict[str, int] = OrderedDict()
        self._held: set[str] = set()

    def find(self, realm: str, wanted: Sequence[FoldStep], live: Live) -> tuple[Reentry, Capsule | None]:
        """The way to these steps that replays least, with the capsule if it restores one."""
        ids = [token for step in wanted for token in step.ids]
        found, capsule = self._registry.reenter(
            self.key(realm), ids, live, also=(self.key(LISTED),), ends=cold_ends(wanted),
            fingerprint=self._llm.fingerprint,
        )  # fmt: skip
        if capsule is not None:
            self._overlaps.observe(capsule.position - alike(capsule.tokens, ids))
        return found, capsule

    def restore(self, capsule: Capsule, position: int) -> dict[int, Checkpoint]:
        """Put the engine at a position that a capsule was found for; returns the checkpoints up to there."""
        points = {point.position: point for point in points_in(capsule) if point.position <= position}
        self._llm.restore(capsule, None if position == capsule.position else points[position])
        for point in points.values():
            self._llm.hold(point)
        return points

    def gather(self, wanted: Sequence[FoldStep]) -> Gathered:
        """Return where to take checkpoints while these steps are folded."""
        ends = cold_ends(wanted)
        return Gathered(frozenset((*self._overlaps.place(wanted, ends), ends[-1])))

    def take_point(self, gathered: Gathered) -> None:
        """Take a checkpoint, if one is due: the engine is at the end of a call."""
        if (at := self._llm.position) in gathered.at:
            point = self._llm.checkpoint_before(at)
            if point is not None and point.position == at:
                gathered.points[at] = point

    def store(self, realm: str, folded: Sequence[FoldStep], gathered: Gathered, name: str = "") -> str | None:
        """Store the engine's present state, which these steps led to from nothing; return the key, or None without
        room.

        name   the state is held under it until `hold_only` omits it, and written to disk
        """
        ends = cold_ends(folded)
        at = self._overlaps.place(folded, [end for end in ends if end in gathered.points or end == ends[-1]])
        points = [gathered.points[position] for position in at]
        try:
            capsule = with_points(self._llm.snapshot(name=name or "prompt"), points)
        except CapsuleTooLarge:
            return None
        key = self._registry.put(
            capsule, self.key(realm), name=name, save=bool(name), ends=ends,
            points=[point.position for point in points], bases=() if name else (self.key(realm), self.key(LISTED)),
        )  # fmt: skip
        if key is not None and name:
            self._pin(name, key)
        if key is not None and gathered.source not in ("", key):
            self._registry.superseded(gathered.source)
        return key

    def hold_listed(self, name: str, folded: Sequence[FoldStep]) -> bool:
        """Hold the state listed under a name; False if it is missing, or does not match these steps."""
        key, ids = named_key(name, self.key(LISTED)), tuple(token for step in folded for token in step.ids)
        try:
            capsule = self._registry.get(key, self._llm.fingerprint)
        except CapsuleError:
            return False
        if capsule is None or capsule.tokens != ids or not capsule.axes:  # stored before there were deltas: not a base
            return False
        self._pin(name, key)
        return True

    def hold_only(self, names: Collection[str]) -> None:
        """Let go of states that are no longer listed."""
        for name in self._held.difference(names):
            self._held.remove(name)
            self._registry.remove(named_key(name, self.key(LISTED)))

    def _pin(self, name: str, key: str) -> None:
        self._held.add(name)
        if not self._registry.pins(key):
            self._registry.pin(key)

    def asked(self, realm: str, first: FoldStep) -> int:
        """How often this beginning was requested and not found, including this time."""
        length = len(first.ids)
        digest = prefix_digests(self.key(realm), first.ids, [length])[length]
        times = self._asked[digest] = self._asked.pop(digest, 0) + 1
        while len(self._asked) > REMEMBERED:
            self._asked.popitem(last=False)
        return times

    def key(self, realm: str) -> StateKey:
        return replace(self._state_key, salt=realm)


class Overlaps:
    """How far before a stored prompt's end requests part from it; recent ones count more. Before the first request:
    near the end, where the last question stands, rather than far from it."""

    def __init__(self) -> None:
        self._seen = RollbackHistogram()
        self._count = 0.0

    def observe(self, back: int) -> None:
        """Note a request that shared all but the last `back` tokens of a stored prompt."""
        self._seen.add_rollback(back)
        self._count = self._count * 0.99 + 1

    def place(self, steps: Sequence[FoldStep], ends: Sequence[int]) -> tuple[int, ...]:
        """At most POINTS of these boundaries, rising: the end of the instructions, the beginning of the last step, and
        those with the least expected recompute for a request that parts from the prompt. The last one is the capsule
        itself."""
        if len(ends) <= POINTS + 1:
            return tuple(ends[:-1])
        length = ends[-1]
        surely = {len(steps[0].ids), length - len(steps[-1].ids)} & set(ends[:-1])
        prior = 1.0 / (GRID + np.arange(length, -1, -1.0)) ** 2
        law = prior / prior.sum()
        if self._count:
            law = (law + self._count * self._seen.law(length)) / (1 + self._count)
        return tuple(sorted({*surely, *optimal(law, POINTS - len(surely), ends[:-1])}))
