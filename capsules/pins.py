"""Pins that end by themselves."""

from collections.abc import Callable

from capsules.store import TieredStore


class TimedPins:
    """At most one pin for each capsule. Each is a pin of the store until its time is over."""

    def __init__(self, store: TieredStore, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock
        self._until: dict[str, float] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._until

    def pin_for(self, key: str, seconds: float) -> bool:
        """Pin a capsule in the store, or pin it longer. False if pins would take more than half of a tier."""
        if key not in self._until:
            if not self._store.may_hold(key):
                return False
            self._store.pin(key)
        self._until[key] = self._clock() + seconds
        return True

    def end_pin(self, key: str) -> None:
        """End a capsule's pin, if there is one."""
        if self._until.pop(key, None) is not None:
            self._store.unpin(key)

    def end_overdue(self) -> None:
        """End the pins whose time is over: those capsules rest on disk, if they have a copy there."""
        now = self._clock()
        for key in [key for key, until in self._until.items() if now > until]:
            self.rest(key)

    def rest(self, key: str) -> bool:
        """End a capsule's pin, and leave it to its durable copy. False if it stays in memory."""
        self.end_pin(key)
        return self._store.rest(key)
