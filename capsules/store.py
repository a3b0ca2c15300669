"""Places capsules in tiers: budgets, demotion of the least worthy, eviction at the end, promotion on use.

If worths are equal, the least recently used capsule goes first. A capsule has one home in memory or on disk, and may
have a durable copy below. A tier's budget is never exceeded, not even in between. Pinned capsules stay where they are.
A capsule that fits nowhere is refused, and nothing is moved for it.

A delta counts for its own bytes. Its base stays as long as a delta leans on it, and has a durable copy wherever a delta
has one. A requested delta is returned joined with its base; if somebody removed or replaced the base, the delta is
gone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from capsules.accounts import TierAccounts, TierSlot
from capsules.capsule import Base, Capsule
from capsules.delta import joined, parted
from capsules.disk import CapsuleNotSaved
from capsules.errors import CapsuleDamaged, CapsuleMismatch
from capsules.metrics import Counters
from capsules.tiers import DiskTier, Held, Mover, Tier


class TieredStore:
    """Tiers from fast to slow.

    gone   is called with the key of each capsule that leaves by itself
    worth  of a capsule with this many bytes in a tier; the least goes first
    """

    def __init__(
        self, tiers: Sequence[Tier], mover: Mover, counters: Counters, gone: Callable[[str], None],
        worth: Callable[[str, int], float],
    ) -> None:  # fmt: skip
        self.tiers = tuple(tiers)
        self._mover, self._counters = mover, counters
        self._gone, self._worth = gone, worth
        self._accounts = TierAccounts(self.tiers, counters)
        self._slots = self._accounts.slots
        self._accounts.report()

    def __contains__(self, key: str) -> bool:
        return key in self._slots

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._slots))

    def homes(self, key: str) -> Mapping[str, int]:
        """Tier name -> bytes there, the fastest first."""
        return self._accounts.homes(key)

    def pins(self, key: str) -> int:
        return self._slots[key].pins

    def leaning(self, key: str) -> bool:
        """Whether any delta has this capsule as its base."""
        return self._accounts.leaning(key)

    def needed(self, key: str) -> bool:
        """Whether it is pinned, or the base of others."""
        return self.pins(key) > 0 or self.leaning(key)

    def base_at_hand(self, key: str) -> Capsule | None:
        """A capsule that may serve as a base: pinned, and in memory. Asking is not a use, and moves nothing."""
        slot = self._slots[key]
        tier = self.tiers[slot.tier]
        return self._mover.deliver(tier.fetch(key)) if slot.pins and not tier.durable else None

    def used_bytes(self, tier: str) -> int:
        return sum(used for used, t in zip(self._accounts.used, self.tiers, strict=True) if t.name == tier)

    def charge(self, what: str, nbytes: int) -> None:
        """Count state beside the capsules, in the fastest memory, towards its budget; 0 ends it.

        Capsules make room for it. The sum may exceed the budget if they cannot be evicted: the state is there already.
        """
        self._accounts.charge(what, nbytes)
        self._fit()

    def _fit(self) -> None:
        while self.tiers and self._accounts.overfull(0) and self._relieve(0):
            pass
        self._accounts.report()

    def may_hold(self, key: str) -> bool:
        """Whether pinning it would leave half of each of its tiers free of pins."""
        return self._accounts.may_hold(key)

    def adopt(self, key: str, tier: str, cost: int, notes: Mapping[str, str], base: Base | None = None) -> None:
        """Take over a capsule that another process left in a durable tier; call in order of use."""
        t = self._accounts.number(tier)
        self._accounts.place(key, TierSlot({t: cost}, notes, base=base))
        self._counters.add("stored")
        while self._accounts.overfull(t) and self._relieve(t):
            pass
        self._accounts.report()

    def put(self, key: str, capsule: Capsule, notes: Mapping[str, str]) -> bool:
        """Store a capsule in the fastest tier that can hold it. False if none can; then nothing has changed."""
        old = self._slots.get(key)
        held = self._mover.fresh(parted(capsule))
        for t, tier in enumerate(self.tiers):
            cost = tier.cost(capsule, notes)
            before = old.homes.get(t, 0) if old else 0
            with self._accounts.steady(key):
                if not (self._accounts.fits(t, cost - before) and self._founded(capsule.base, t, cost - before)):
                    continue
                self._make_room(t, cost - before)
                try:
                    tier.place_copy(key, held, notes)
                except CapsuleNotSaved:
                    if not tier.durable:
                        self._counters.add("refused", cause="no memory")
                        continue
                    self._counters.add("refused", cause="disk error")
                    self._accounts.report()
                    return False
            if old is not None:
                self._counters.add("evictions", cause="replaced")
                for home in [home for home in old.homes if home != t]:
                    self._leave(key, old, home)
                self._accounts.leave(old, t)
            self._accounts.place(key, TierSlot({t: cost}, notes, old.pins if old else 0, capsule.base))
            self._counters.add("stored")
            self._accounts.report()
            return True
        self._counters.add("refused", cause="too large")
        return False

    def get(self, key: str) -> Capsule:
        """A capsule that is there, moved to the fastest tier that can hold it, and marked as used.

        Raises CapsuleDamaged if its bytes cannot be used, CapsuleMismatch if its base is gone or has changed. Then the
        capsule is removed.
        """
        slot = self._slots[key]
        try:
            held = self.tiers[slot.tier].fetch(key)
        except CapsuleDamaged:
            self._evict(key, "damaged")
            self._accounts.report()
            raise
        self._slots.move_to_end(key)
        for t in range(slot.tier):
            if self._accounts.fits(t, cost := self.tiers[t].cost(held.capsule, slot.notes)):
                held = self._promote(key, slot, held, t, cost)
                break
        self._accounts.report()
        return self._joined(key, self._mover.deliver(held))

    def _joined(self, key: str, capsule: Capsule) -> Capsule:
        if capsule.base is None:
            return capsule
        base, slot = None, self._slots.get(capsule.base.key)
        if slot is not None and slot.base is None:  # a delta is never a base: another capsule has the key
            with self._accounts.steady(key), suppress(CapsuleDamaged, CapsuleMismatch):
                base = self.get(capsule.base.key)
            self._slots.move_to_end(key)
        try:
            return joined(capsule, base)
        except CapsuleMismatch:
            self._evict(key, "base")
            self._accounts.report()
            raise

    def save(self, key: str) -> bool:
        """Make sure that a durable copy exists. False if there is no durable tier, no room, or the disk refuses."""
        slot = self._slots[key]
        for t, tier in enumerate(self.tiers):
            if not tier.durable:
                continue
            if t in slot.homes:
                return True
            held = self.tiers[slot.tier].fetch(key)
            cost = tier.cost(held.capsule, slot.notes)
            with self._accounts.steady(key):
                fits = self._accounts.fits(t, cost) and self._founded(slot.base, t, cost)
            if not fits:
                self._counters.add("copies", outcome="too large")
                return False
            try:
                with self._accounts.steady(key):
                    self._make_room(t, cost)
                    tier.place_copy(key, held, slot.notes)
            except CapsuleNotSaved:
                self._counters.add("copies", outcome="disk error")
                self._accounts.report()
                return False
            self._accounts.enter(slot, t, cost)
            self._counters.add("copies", outcome="written")
            self._accounts.report()
            return True
        return False

    def rest(self, key: str) -> bool:
        """Leave a capsule to its durable copy. False if it has none, or is needed where it is."""
        *upper, last = sorted(self._slots[key].homes)
        if self.needed(key) or not self.tiers[last].durable:
            return False
        for t in upper:
            self._leave(key, self._slots[key], t)
            self._counters.add("demotions", source=self.tiers[t].name, target=self.tiers[last].name)
        self._accounts.report()
        return True

    def evict(self, key: str, cause: str) -> None:
        """Remove a capsule, pinned or not."""
        if key in self._slots:
            self._evict(key, cause)
            self._accounts.report()

    def pin(self, key: str) -> None:
        self._slots[key].pins += 1

    def unpin(self, key: str) -> None:
        """Undo one pin; it is not an error if the capsule was dropped meanwhile, or has none."""
        if key in self._slots:
            self._slots[key].pins = max(0, self._slots[key].pins - 1)
            self._fit()  # a charge may have waited for it

    def lose(self, key: str, tier: str) -> None:
        """Note that another process removed the copy in a durable tier, pinned or not: a pin holds in one process."""
        t, slot = self._accounts.number(tier), self._slots[key]
        self._accounts.leave(slot, t)
        if slot.homes:
            self._counters.add("copies", outcome="taken")
        else:
            self._evict(key, "taken")
        self._accounts.report()

    def tidy(self) -> None:
        """Account for failed background writes. Until then, their capsules stay readable."""
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
        self._accounts.report()

    def _founded(self, base: Base | None, t: int, cost: int) -> bool:
        """Whether a delta may lie in a tier. In a durable tier its base must lie too: it is copied there if it fits
        beside the delta."""
        if base is None or not self.tiers[t].durable:
            return True
        return base.key in self._slots and self.save(base.key) and self._accounts.fits(t, cost)

    def _make_room(self, t: int, cost: int) -> None:
        while self._accounts.overfull(t, cost):
            relieved = self._relieve(t)
            assert relieved, "asked for room that _fits denies"

    def _relieve(self, t: int) -> bool:
        """Move one capsule out of a tier; False if all are pinned."""
        movable = self._accounts.movable(t)
        if not movable:
            return False
        key, slot = min(movable, key=lambda one: self._worth(one[0], one[1].homes[t]))
        if slot.tier == t:
            self._demote(key, slot, t)
        else:
            self._leave(key, slot, t)
            self._counters.add("copies", outcome="given up")
        return True

    def _demote(self, key: str, slot: TierSlot, t: int) -> None:
        held = None
        for lower in range(t + 1, len(self.tiers)):
            tier = self.tiers[lower]
            if lower not in slot.homes:
                held = held or self.tiers[t].fetch(key)
                cost = tier.cost(held.capsule, slot.notes)
                with self._accounts.steady(key):
                    fits = self._accounts.fits(lower, cost) and self._founded(slot.base, lower, cost)
                if not fits:
                    continue
                try:
                    with self._accounts.steady(key):
                        self._make_room(lower, cost)
                        tier.place_copy(key, held, slot.notes)
                except CapsuleNotSaved:
                    self._counters.add("copies", outcome="disk error" if tier.durable else "no memory")
                    continue
                self._accounts.enter(slot, lower, cost)
            self._leave(key, slot, t)
            self._counters.add("demotions", source=self.tiers[t].name, target=tier.name)
            return
        self._evict(key, "capacity")

    def _promote(self, key: str, slot: TierSlot, held: Held, t: int, cost: int) -> Held:
        source = slot.tier
        if not self.tiers[source].durable:
            self._leave(key, slot, source)  # first, so that a demoted capsule may take its place
        with self._accounts.steady(key):
            self._make_room(t, cost)
        try:
            self.tiers[t].place_copy(key, held, slot.notes)
        except CapsuleNotSaved:
            self._counters.add("copies", outcome="no memory")
            if not slot.homes:  # back to where it was; capsules demoted there meanwhile go further down
                with self._accounts.steady(key):
                    self._make_room(source, cost)
                self.tiers[source].place_copy(key, held, slot.notes)
                self._accounts.enter(slot, source, cost)
            return held
        self._accounts.enter(slot, t, cost)
        self._counters.add("promotions", source=self.tiers[source].name, target=self.tiers[t].name)
        return self.tiers[t].fetch(key)

    def _evict(self, key: str, cause: str) -> None:
        slot = self._accounts.strike_out(key)
        for t in tuple(slot.homes):
            self._leave(key, slot, t)
        self._counters.add("evictions", cause=cause)
        self._gone(key)

    def _leave(self, key: str, slot: TierSlot, t: int) -> None:
        self.tiers[t].delete_copy(key)
        self._accounts.leave(slot, t)
