"""The accounts of all tiers: bytes used, pins, charges, and which delta leans on which base.

Nothing is moved here. The store moves bytes and enters the result.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from capsules.capsule import Base
from capsules.metrics import Counters
from capsules.tiers import Tier


@dataclass
class TierSlot:
    """homes: tier number -> bytes there. The capsule is fetched from the lowest number."""

    homes: dict[int, int]
    notes: Mapping[str, str] = field(default_factory=dict)
    pins: int = 0
    base: Base | None = None

    @property
    def tier(self) -> int:
        return min(self.homes)


class TierAccounts:
    """The accounts of tiers, numbered from 0, the fastest first."""

    def __init__(self, tiers: Sequence[Tier], counters: Counters) -> None:
        self._tiers, self._counters = tuple(tiers), counters
        self.slots: OrderedDict[str, TierSlot] = OrderedDict()
        """By key, least recently used first."""
        self.used = [0] * len(self._tiers)
        """Bytes of capsules in each tier."""
        self._charges: dict[str, int] = {}
        self._leaning: dict[str, set[str]] = {}  # base -> its deltas, whether or not the base is here

    def homes(self, key: str) -> Mapping[str, int]:
        """Tier name -> bytes there, the fastest first."""
        return {self._tiers[t].name: cost for t, cost in sorted(self.slots[key].homes.items())}

    def number(self, tier: str) -> int:
        return [one.name for one in self._tiers].index(tier)

    def leaning(self, key: str) -> bool:
        """Whether any delta has this capsule as its base."""
        return key in self._leaning

    def charge(self, what: str, nbytes: int) -> None:
        """Count state beside the capsules, in the fastest memory, towards its budget; 0 ends it."""
        self._charges[what] = nbytes
        if not nbytes:
            del self._charges[what]
        self._counters.set("charged", nbytes, what=what)

    # ------------------------------------------------------------------------------------ room

    def room(self, t: int) -> int:
        """Bytes for capsules: in the fastest tier, minus the state that lies beside them."""
        charged = sum(self._charges.values()) if t == 0 and not self._tiers[t].durable else 0
        return self._tiers[t].budget_bytes - charged

    def overfull(self, t: int, cost: int = 0) -> bool:
        """Whether a tier holds more than it may, or would with `cost` bytes more."""
        return self.used[t] + cost > self.room(t)

    def fits(self, t: int, cost: int) -> bool:
        """Whether there is room once everything movable has moved."""
        return cost + self.pinned_bytes(t) <= self.room(t)

    def may_hold(self, key: str) -> bool:
        """Whether pinning it would leave half of each of its tiers free of pins."""
        homes = self.slots[key].homes
        return all(self.pinned_bytes(t) + cost <= self._tiers[t].budget_bytes // 2 for t, cost in homes.items())

    def pinned_bytes(self, t: int) -> int:
        """Bytes that must stay in a tier."""
        return sum(slot.homes[t] for key, slot in self.slots.items() if t in slot.homes and self._stays(t, key))

    def movable(self, t: int) -> list[tuple[str, TierSlot]]:
        """The capsules that may leave a tier."""
        return [(key, slot) for key, slot in self.slots.items() if t in slot.homes and not self._stays(t, key)]

    def _stays(self, t: int, key: str) -> bool:
        """Whether it must stay. It is pinned; or deltas lean on it, and either it has no other home or this home is
        durable (so a delta's may be too)."""
        slot = self.slots[key]
        return slot.pins > 0 or (key in self._leaning and (self._tiers[t].durable or len(slot.homes) == 1))

    # --------------------------------------------------------------------------------- entries

    def place(self, key: str, slot: TierSlot) -> None:
        """Enter it as the newest, in place of any capsule with the same key."""
        if key in self.slots:
            self._lean_no_more(key, self.slots[key].base)
        self.slots[key] = slot
        self.slots.move_to_end(key)
        for t, cost in slot.homes.items():
            self.used[t] += cost
        if slot.base is not None:
            self._leaning.setdefault(slot.base.key, set()).add(key)

    def strike_out(self, key: str) -> TierSlot:
        """Remove the entry; the caller still has to empty its homes, one by one."""
        slot = self.slots.pop(key)
        self._lean_no_more(key, slot.base)
        return slot

    def enter(self, slot: TierSlot, t: int, cost: int) -> None:
        slot.homes[t] = cost
        self.used[t] += cost

    def leave(self, slot: TierSlot, t: int) -> None:
        self.used[t] -= slot.homes.pop(t, 0)

    @contextmanager
    def steady(self, key: str) -> Iterator[None]:
        """Inside, this capsule does not move, though others do."""
        slot = self.slots.get(key)
        if slot is not None:
            slot.pins += 1
        try:
            yield
        finally:
            if slot is not None:
                slot.pins -= 1

    def _lean_no_more(self, key: str, base: Base | None) -> None:
        if base is not None:
            self._leaning[base.key].discard(key)
            if not self._leaning[base.key]:
                del self._leaning[base.key]

    def report(self) -> None:
        """Pass the levels to the counters."""
        self._counters.set("shared", sum(slot.base.nbytes for slot in self.slots.values() if slot.base is not None))
        for t, tier in enumerate(self._tiers):
            self._counters.set("bytes", self.used[t], tier=tier.name)
            self._counters.set("capsules", sum(t in slot.homes for slot in self.slots.values()), tier=tier.name)
