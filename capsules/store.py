"""Which capsule lies in which tier: budgets, demotion of what is worth least, eviction at the end, promotion on use.

Where worths are equal the least recently used goes first. A capsule has one home in memory or on disk, and may keep a
durable copy below. A tier's budget is never exceeded, not even in between. What is pinned stays where it is. What fits
nowhere is not taken in, and nothing is moved for it.

A delta counts for its own bytes. Its base stays as long as a delta leans on it, and has a durable copy wherever a delta
has one. Whoever asks for a delta gets it joined with its base; if somebody removed or replaced that, it is gone.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from capsules.capsule import Base, Capsule
from capsules.delta import joined, parted
from capsules.disk import CapsuleNotSaved
from capsules.errors import CapsuleDamaged, CapsuleMismatch
from capsules.metrics import Counters
from capsules.tiers import DiskTier, Held, Mover, Tier


@dataclass
class _Slot:
    """homes: tier number -> bytes there. The lowest number is where the capsule is taken from."""

    homes: dict[int, int]
    notes: Mapping[str, str] = field(default_factory=dict)
    pins: int = 0
    base: Base | None = None

    @property
    def tier(self) -> int:
        return min(self.homes)


class TieredStore:
    """Tiers from fast to slow.

    gone   is told the key of whatever leaves by itself
    worth  of a capsule that takes so many bytes in a tier; the least goes first
    """

    def __init__(
        self, tiers: Sequence[Tier], mover: Mover, counters: Counters, gone: Callable[[str], None],
        worth: Callable[[str, int], float],
    ) -> None:  # fmt: skip
        self.tiers = tuple(tiers)
        self._mover = mover
        self._counters = counters
        self._gone, self._worth = gone, worth
        self._slots: OrderedDict[str, _Slot] = OrderedDict()  # least recently used first
        self._used = [0] * len(self.tiers)
        self._charges: dict[str, int] = {}
        self._leaning: dict[str, set[str]] = {}  # base -> its deltas, whether it is here or not
        self._report()

    def __contains__(self, key: str) -> bool:
        return key in self._slots

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._slots))

    def homes(self, key: str) -> Mapping[str, int]:
        """Tier name -> bytes there, the fastest first."""
        return {self.tiers[t].name: cost for t, cost in sorted(self._slots[key].homes.items())}

    def pins(self, key: str) -> int:
        return self._slots[key].pins

    def leaning(self, key: str) -> bool:
        """Whether any delta has this for its base."""
        return key in self._leaning

    def base_at_hand(self, key: str) -> Capsule | None:
        """What may serve as a base: pinned, and in memory. Asking is no use, and moves nothing."""
        slot = self._slots[key]
        tier = self.tiers[slot.tier]
        return self._mover.deliver(tier.take(key)) if slot.pins and not tier.durable else None

    def used_bytes(self, tier: str) -> int:
        return sum(used for used, t in zip(self._used, self.tiers, strict=True) if t.name == tier)

    def charge(self, what: str, nbytes: int) -> None:
        """State that lies beside the capsules, in the fastest memory, and counts for its budget; 0 ends it.

        Capsules make room for it. What cannot be evicted may exceed the budget: it is there already.
        """
        self._charges[what] = nbytes
        if not nbytes:
            del self._charges[what]
        self._counters.set("charged", nbytes, what=what)
        self._fit()

    def _fit(self) -> None:
        while self.tiers and self._used[0] > self._room(0) and self._relieve(0):
            pass
        self._report()

    def may_hold(self, key: str) -> bool:
        """Whether half of every tier that it lies in would still be free of pins if it were pinned."""
        slot = self._slots[key]
        return all(self._pinned(t) + cost <= self.tiers[t].budget_bytes // 2 for t, cost in slot.homes.items())

    def adopt(self, key: str, tier: str, cost: int, notes: Mapping[str, str], base: Base | None = None) -> None:
        """Take over what a durable tier holds from another process; call in order of use."""
        t = self._number(tier)
        self._place(key, _Slot({t: cost}, notes, base=base))
        self._used[t] += cost
        self._counters.add("stored")
        while self._used[t] > self._room(t) and self._relieve(t):
            pass
        self._report()

    def put(self, key: str, capsule: Capsule, notes: Mapping[str, str]) -> bool:
        """Take a capsule in at the fastest tier that can hold it. False if none can; then nothing has changed."""
        old = self._slots.get(key)
        held = self._mover.fresh(parted(capsule))
        for t, tier in enumerate(self.tiers):
            cost = tier.cost(capsule, notes)
            before = old.homes.get(t, 0) if old else 0
            with self._steady(key):
                if not (self._fits(t, cost - before) and self._founded(capsule.base, t, cost - before)):
                    continue
                self._make_room(t, cost - before)
                try:
                    tier.put(key, held, notes)
                except CapsuleNotSaved:
                    if not tier.durable:
                        self._counters.add("refused", cause="no memory")
                        continue
                    self._counters.add("refused", cause="disk error")
                    self._report()
                    return False
            if old is not None:
                self._counters.add("evictions", cause="replaced")
                for home in [home for home in old.homes if home != t]:
                    self._leave(key, old, home)
                self._used[t] -= old.homes.pop(t, 0)
            self._place(key, _Slot({t: cost}, notes, old.pins if old else 0, capsule.base))
            self._used[t] += cost
            self._counters.add("stored")
            self._report()
            return True
        self._counters.add("refused", cause="too large")
        return False

    def get(self, key: str) -> Capsule:
        """A capsule that is there, moved to the fastest tier that can hold it, and marked as used.

        Raises CapsuleDamaged if its bytes cannot be used, CapsuleMismatch if its base is gone or another; then it is
        gone.
        """
        slot = self._slots[key]
        try:
            held = self.tiers[slot.tier].take(key)
        except CapsuleDamaged:
            self._evict(key, "damaged")
            self._report()
            raise
        self._slots.move_to_end(key)
        for t in range(slot.tier):
            cost = self.tiers[t].cost(held.capsule, slot.notes)
            if self._fits(t, cost):
                held = self._promote(key, slot, held, t, cost)
                break
        self._report()
        return self._joined(key, self._mover.deliver(held))

    def _joined(self, key: str, capsule: Capsule) -> Capsule:
        if capsule.base is None:
            return capsule
        base, slot = None, self._slots.get(capsule.base.key)
        if slot is not None and slot.base is None:  # a delta is nobody's base: another has the key, and is not asked
            with self._steady(key), suppress(CapsuleDamaged, CapsuleMismatch):
                base = self.get(capsule.base.key)
            self._slots.move_to_end(key)
        try:
            return joined(capsule, base)
        except CapsuleMismatch:
            self._evict(key, "base")
            self._report()
            raise

    def save(self, key: str) -> bool:
        """See that a durable copy exists. False if there is no durable tier or no room or the disk refuses."""
        slot = self._slots[key]
        for t, tier in enumerate(self.tiers):
            if not tier.durable:
                continue
            if t in slot.homes:
                return True
            held = self.tiers[slot.tier].take(key)
            cost = tier.cost(held.capsule, slot.notes)
            with self._steady(key):
                fits = self._fits(t, cost) and self._founded(slot.base, t, cost)
            if not fits:
                self._counters.add("copies", outcome="too large")
                return False
            try:
                with self._steady(key):
                    self._make_room(t, cost)
                    tier.put(key, held, slot.notes)
            except CapsuleNotSaved:
                self._counters.add("copies", outcome="disk error")
                self._report()
                return False
            self._enter(slot, t, cost)
            self._counters.add("copies", outcome="written")
            self._report()
            return True
        return False

    def drop(self, key: str, cause: str) -> None:
        """Remove a capsule, pinned or not."""
        if key in self._slots:
            self._evict(key, cause)
            self._report()

    def pin(self, key: str) -> None:
        self._slots[key].pins += 1

    def unpin(self, key: str) -> None:
        """Undo one pin; a capsule that was dropped meanwhile, or has none, is no error."""
        if key in self._slots:
            self._slots[key].pins = max(0, self._slots[key].pins - 1)
            self._fit()  # a charge may have waited for it

    def lose(self, key: str, tier: str) -> None:
        """Another process took the copy in a durable tier, pinned or not: a pin is of one process."""
        t, slot = self._number(tier), self._slots[key]
        self._used[t] -= slot.homes.pop(t)
        if slot.homes:
            self._counters.add("copies", outcome="taken")
        else:
            self._evict(key, "taken")
        self._report()

    def tidy(self) -> None:
        """Account for background writes that failed. Until then what they should have written stays readable."""
        for t, tier in enumerate(self.tiers):
            for key in tier.failed() if isinstance(tier, DiskTier) else ():
                slot = self._slots.get(key)
                if slot is None or t not in slot.homes:
                    continue
                self._counters.add("copies", outcome="disk error")
                if slot.tier == t:
                    self._evict(key, "disk error")
                else:
                    self._leave(key, slot, t)
        self._report()

    def _fits(self, t: int, cost: int) -> bool:
        """Whether there is room once everything that may move has moved."""
        return cost + self._pinned(t) <= self._room(t)

    def _founded(self, base: Base | None, t: int, cost: int) -> bool:
        """Whether a delta may lie in a tier: in a durable one its base must too, and gets a copy there if it can and
        leaves the room that the delta costs."""
        if base is None or not self.tiers[t].durable:
            return True
        return base.key in self._slots and self.save(base.key) and self._fits(t, cost)

    def _stays(self, t: int, key: str) -> bool:
        """Pinned; or deltas lean on it, and it has no other home, or this one is durable: then theirs may be too."""
        slot = self._slots[key]
        return slot.pins > 0 or (key in self._leaning and (self.tiers[t].durable or len(slot.homes) == 1))

    def _pinned(self, t: int) -> int:
        return sum(slot.homes[t] for key, slot in self._slots.items() if t in slot.homes and self._stays(t, key))

    def _room(self, t: int) -> int:
        """Bytes for capsules: of the fastest tier, what lies beside them is taken off."""
        charged = sum(self._charges.values()) if t == 0 and not self.tiers[t].durable else 0
        return self.tiers[t].budget_bytes - charged

    def _make_room(self, t: int, cost: int) -> None:
        while self._used[t] + cost > self._room(t):
            relieved = self._relieve(t)
            assert relieved, "asked for room that _fits denies"

    def _relieve(self, t: int) -> bool:
        """One capsule less in a tier; False if all are pinned."""
        loose = [(key, slot) for key, slot in self._slots.items() if t in slot.homes and not self._stays(t, key)]
        if not loose:
            return False
        key, slot = min(loose, key=lambda one: self._worth(one[0], one[1].homes[t]))
        if slot.tier == t:
            self._demote(key, slot, t)
        else:
            self._leave(key, slot, t)
            self._counters.add("copies", outcome="given up")
        return True

    def _number(self, tier: str) -> int:
        return [one.name for one in self.tiers].index(tier)

    def _demote(self, key: str, slot: _Slot, t: int) -> None:
        held = None
        for lower in range(t + 1, len(self.tiers)):
            tier = self.tiers[lower]
            if lower not in slot.homes:
                held = held or self.tiers[t].take(key)
                cost = tier.cost(held.capsule, slot.notes)
                with self._steady(key):
                    fits = self._fits(lower, cost) and self._founded(slot.base, lower, cost)
                if not fits:
                    continue
                try:
                    with self._steady(key):
                        self._make_room(lower, cost)
                        tier.put(key, held, slot.notes)
                except CapsuleNotSaved:
                    self._counters.add("copies", outcome="disk error" if tier.durable else "no memory")
                    continue
                self._enter(slot, lower, cost)
            self._leave(key, slot, t)
            self._counters.add("demotions", source=self.tiers[t].name, target=tier.name)
            return
        self._evict(key, "capacity")

    def _promote(self, key: str, slot: _Slot, held: Held, t: int, cost: int) -> Held:
        source = slot.tier
        if not self.tiers[source].durable:
            self._leave(key, slot, source)  # first, so that what is demoted may take its place
        with self._steady(key):
            self._make_room(t, cost)
        try:
            self.tiers[t].put(key, held, slot.notes)
        except CapsuleNotSaved:
            self._counters.add("copies", outcome="no memory")
            if not slot.homes:  # back to where it was; what was demoted there meanwhile goes further down
                with self._steady(key):
                    self._make_room(source, cost)
                self.tiers[source].put(key, held, slot.notes)
                self._enter(slot, source, cost)
            return held
        self._enter(slot, t, cost)
        self._counters.add("promotions", source=self.tiers[source].name, target=self.tiers[t].name)
        return self.tiers[t].take(key)

    def _evict(self, key: str, cause: str) -> None:
        slot = self._slots.pop(key)
        self._lean_no_more(key, slot.base)
        for t in tuple(slot.homes):
            self._leave(key, slot, t)
        self._counters.add("evictions", cause=cause)
        self._gone(key)

    def _place(self, key: str, slot: _Slot) -> None:
        """The newest of all, in place of what had the key."""
        if key in self._slots:
            self._lean_no_more(key, self._slots[key].base)
        self._slots[key] = slot
        self._slots.move_to_end(key)
        if slot.base is not None:
            self._leaning.setdefault(slot.base.key, set()).add(key)

    def _lean_no_more(self, key: str, base: Base | None) -> None:
        if base is not None:
            self._leaning[base.key].discard(key)
            if not self._leaning[base.key]:
                del self._leaning[base.key]

    def _enter(self, slot: _Slot, t: int, cost: int) -> None:
        slot.homes[t] = cost
        self._used[t] += cost

    def _leave(self, key: str, slot: _Slot, t: int) -> None:
        self.tiers[t].drop(key)
        self._used[t] -= slot.homes.pop(t)

    @contextmanager
    def _steady(self, key: str) -> Iterator[None]:
        """While others move, this one does not."""
        slot = self._slots.get(key)
        if slot is not None:
            slot.pins += 1
        try:
            yield
        finally:
            if slot is not None:
                slot.pins -= 1

    def _report(self) -> None:
        self._counters.set("shared", sum(slot.base.nbytes for slot in self._slots.values() if slot.base is not None))
        for t, tier in enumerate(self.tiers):
            self._counters.set("bytes", self._used[t], tier=tier.name)
            held = sum(t in slot.homes for slot in self._slots.values())
            self._counters.set("capsules", held, tier=tier.name)
