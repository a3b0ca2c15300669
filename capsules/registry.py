"""Decides which capsules are kept and finds them again: by name, by the longest prefix of tokens; pins, time limits.

A key finds a capsule. `named_key` returns the key of a name. A name belongs to its realm: two realms may use the same
name and do not see each other's.

Policy only: the store decides where bytes lie, the tiers copy them. One thread uses a registry; any thread may read its
counters and its listing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import torch

from capsules.arguments import a_kind, shown, whole
from capsules.capsule import Base, Capsule, Fingerprint
from capsules.delta import beyond, completed
from capsules.errors import CapsuleAbsent, CapsuleDamaged, CapsuleMismatch, CapsuleTooLarge, ContractMisuse
from capsules.exec import ExecContext
from capsules.index import CapsuleIndex, IndexEntry
from capsules.metrics import Counters
from capsules.pins import TimedPins
from capsules.prefix import StateKey, prefix_digests
from capsules.reentry import Live, Reentry, Way, choose
from capsules.store import TieredStore
from capsules.tiers import DiskTier, MemoryTier, Mover, Tier
from capsules.worth import Arrivals, worth

Clock = Callable[[], float]


@dataclass(frozen=True)
class Budgets:
    """Bytes per tier; 0 leaves the tier out. Without a GPU there is no gpu tier.

    ttl_s  how long a capsule stays after its last use, unless `put` sets this; 0: until others need its room
    """

    gpu_bytes: int = 0
    host_bytes: int = 0
    disk_bytes: int = 0
    ttl_s: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            whole(ContractMisuse, name, value)


@dataclass(frozen=True)
class Listing:
    """One capsule, for people."""

    key: str
    name: str
    label: str
    scope: str
    position: int
    homes: Mapping[str, int]  # tier -> bytes
    pinned: bool
    idle_s: float
    realm: str  # digest of its state key
    base: Base | None  # the capsule that it builds on, if it is a delta: those rows are not in its bytes


class Registry:
    """Keeps capsules under a byte budget per tier. Any capsule may be gone when it is requested; callers can do
    without.

    tiers  from fast to slow; `Registry.standard` makes the usual ones
    clock  seconds, any origin; use the wall clock (`time.time`) if there is a disk tier, whose files are dated by it
    ttl_s  for capsules that are put without one; None: no limit
    """

    def __init__(self, tiers: Sequence[Tier], mover: Mover, clock: Clock, ttl_s: float | None = None) -> None:
        self.counters = Counters()
        self._ttl_s = ttl_s
        self._arrivals = Arrivals()
        self._clock, self._allocate = clock, mover.bytes
        self._index = CapsuleIndex()
        self._entries = self._index.entries
        self._disk = next((tier for tier in tiers if isinstance(tier, DiskTier)), None)
        self.store = TieredStore(tiers, mover, self.counters, self._forget, self._worth)
        self._timed_pins = TimedPins(self.store, clock)
        if self._disk is not None:
            self._follow(self._disk)

    @classmethod
    def standard(
        cls,
        ctx: ExecContext,
        budgets: Budgets,
        clock: Clock,
        folder: Path | None = None,
        writer: Executor | None = None,
    ) -> "Registry":
        """Device, host and disk under these budgets.

        folder  the folder of the disk tier's files; needed if it has a budget
        writer  writes them in the background; the caller shuts it down after `close`
        """
        a_kind(ContractMisuse, "ctx", ctx, ExecContext, "an ExecContext")
        a_kind(ContractMisuse, "budgets", budgets, Budgets, "a Budgets")
        a_kind(ContractMisuse, "clock", clock, Callable, "a function that gives seconds, time.time for one,")
        a_kind(ContractMisuse, "folder", folder, Path | None, "a Path or None")
        if budgets.disk_bytes and folder is None:
            raise ContractMisuse(f"a disk budget of {budgets.disk_bytes} bytes needs a folder")
        mover = Mover(ctx)
        return cls(_tiers(ctx, budgets, folder, writer, mover), mover, clock, budgets.ttl_s or None)

    def put(
        self,
        capsule: Capsule,
        state_key: StateKey,
        *,
        name: str = "",
        ttl_s: float | None = None,
        pin: bool = False,
        save: bool = False,
        ends: Sequence[int] | None = None,
        points: Iterable[int] = (),
        bases: Iterable[StateKey] = (),
    ) -> str | None:
        """Store a capsule; return its key, or None if it fits nowhere, which is never an error.

        name   finds it again whatever its tokens are (`named_key`); it replaces the capsule of the same name and
               realm. Without a name, it replaces the one with the same prefix
        ttl_s  lifetime after its last use, unless pinned; None: the registry's own
        pin    add a pin that lasts until `unpin`
        save   write a durable copy now
        ends   ends of the calls that folded its tokens; see `reenter`
        points earlier positions at which it holds a checkpoint: it is found there too
        bases  realms whose pinned capsules may become its base: the longest one that it begins with, byte for byte.
               Then only the rest is stored, and the base stays as long as this capsule does
        Raises ContractMisuse for a capsule that could never be found: no name, and tokens that end before its position.
        """
        _check_put(capsule, state_key, name, ttl_s)
        self._tidy()
        ttl_s = self._ttl_s if ttl_s is None else ttl_s
        covered, length = len(capsule.tokens) >= capsule.position, capsule.position
        prefixes = prefix_digests(state_key, capsule.tokens, [*points, length], ends) if covered else {}
        key = named_key(name, state_key) if name else "p-" + prefixes[length]
        capsule = self._lean(key, capsule, bases)
        entry = IndexEntry.of(capsule, name, state_key, prefixes, ttl_s)
        if not self.store.put(key, capsule, entry.notes):
            return None
        self._forget(key)
        self._index.add(key, entry)
        self._arrivals.note_stored(key, self._clock())
        if pin:
            self.store.pin(key)
        if save:
            self.store.save(key)
        self._use(key)
        return key

    def __contains__(self, key: str) -> bool:
        """Whether a capsule with this key is here; asking counts as neither a hit nor a miss."""
        return self._here(key)

    def get(self, key: str, fingerprint: Fingerprint | None = None) -> Capsule | None:
        """A capsule by its key, ready to be restored; None if it is not there.

        Raises CapsuleMismatch if it belongs to another deployment, or if its base is gone or has changed (then it is
        removed too), CapsuleDamaged if its bytes are not those that were written (then it is removed): rebuild from the
        tokens. `reenter` handles this by itself.
        """
        if not self._here(key):
            self._arrivals.note_request(key, self._clock())
            self.counters.add("misses", cause="absent")
            return None
        return self._fetch(key, fingerprint, "name" if self._entries[key].name else "prefix")

    def reenter(
        self,
        state_key: StateKey,
        wanted: Sequence[int],
        live: Live | None = None,
        *,
        also: Sequence[StateKey] = (),
        ends: Sequence[int] | None = None,
        fingerprint: Fingerprint | None = None,
        reserve: int = 0,
    ) -> tuple[Reentry, Capsule | None]:
        """The way to a state with these tokens that replays least, with the capsule if the way is to restore one.

        also  further realms to look in
        ends  rising; ends of the calls that a run from nothing would make. A stored state is as good as that run's only
              there, and only if it was folded in the same calls (`put`'s ends). None: anywhere, however it was folded
              The plan's position may be that of a checkpoint inside the capsule. If a capsule is damaged or belongs to
              another deployment, the next best way is returned.
        """
        a_kind(ContractMisuse, "state_key", state_key, StateKey, "a StateKey")
        if isinstance(wanted, str):
            raise ContractMisuse(f"wanted is {shown(wanted)}; a list of token ids is needed")
        a_kind(ContractMisuse, "wanted", wanted, Sequence, "a list of token ids")
        a_kind(ContractMisuse, "live", live, Live | None, "a Live or None")
        a_kind(ContractMisuse, "fingerprint", fingerprint, Fingerprint | None, "a Fingerprint or None")
        whole(ContractMisuse, "reserve", reserve)
        self._tidy()
        passed: set[str] = set()
        while True:
            within = wanted[: len(wanted) - reserve]
            stored = self._index.longest((state_key, *also), within, ends, fingerprint, passed)
            plan = choose(len(wanted), live or Live(), stored, reserve)
            capsule = None
            if plan.way is Way.RESTORE:
                try:
                    capsule = self._fetch(plan.key, fingerprint, "prefix")
                except (CapsuleDamaged, CapsuleMismatch):
                    passed.add(plan.key)
                    continue
            elif plan.way is Way.REBUILD:
                self.counters.add("misses", cause="no prefix")
            self.counters.add("reentries", way=plan.way)
            self.counters.add("replayed_tokens", plan.replay)
            return plan, capsule

    def save(self, key: str) -> bool:
        """Make a capsule survive the process; False if it is not here, or there is no room or disk for it."""
        saved = self._here(key) and self.store.save(key)
        if saved:
            self._use(key)
        return saved

    def superseded(self, key: str) -> None:
        """Forget a capsule whose contents another one holds too, unless it has a name or is pinned."""
        if self._here(key) and not self._entries[key].name and not self.store.needed(key):
            self.store.evict(key, "superseded")

    def remove(self, key: str) -> bool:
        """Forget a capsule, pinned or not; False if there was none."""
        here = self._here(key)
        self.store.evict(key, "removed")
        return here

    @contextmanager
    def pinned(self, key: str) -> Iterator[None]:
        """Inside, the capsule is not moved, evicted or expired. Raises CapsuleAbsent if it is not there."""
        self.pin(key)
        try:
            yield
        finally:
            self.store.unpin(key)

    def pin(self, key: str) -> None:
        """Add a pin, until `unpin`. Raises CapsuleAbsent if the capsule is not there."""
        if not self._here(key):
            raise CapsuleAbsent(f"no capsule {key!r} to pin; it may have been evicted, so put it again and pin it then")
        self.store.pin(key)

    def unpin(self, key: str) -> None:
        """Remove a pin; without one, or without the capsule, nothing happens."""
        a_kind(ContractMisuse, "key", key, str, "the key of a capsule")
        self.store.unpin(key)

    def hold(self, key: str, seconds: float) -> bool:
        """Add a pin for this time, or begin it anew; then a capsule that is on disk too leaves memory. False, no pin,
        if it is not here, or if pins would take more than half of a tier: held ones must not shut out used ones."""
        return self._here(key) and self._timed_pins.pin_for(key, seconds)

    def rest(self, key: str) -> bool:
        """End `hold`, and leave a capsule that is on disk too to its copy there. False if it must stay in memory."""
        return self._here(key) and self._timed_pins.rest(key)

    def charge(self, what: str, nbytes: int) -> None:
        """Count state that lies beside the capsules under the same budget, in the fastest memory; 0 ends it."""
        self.store.charge(what, whole(ContractMisuse, "nbytes", nbytes))

    def pins(self, key: str) -> int:
        """The number of pins; 0 if there is no such capsule, too."""
        return self.store.pins(key) if self._here(key) else 0

    def listing(self) -> list[Listing]:
        """Everything, least recently used first. From any thread: simultaneous changes may be missing."""
        now = self._clock()
        found = []
        for key in self.store:
            with suppress(KeyError):
                one, homes, pinned = self._entries[key], self.store.homes(key), self.store.pins(key) > 0
                told = (key, one.name, one.label, one.scope, one.position, homes, pinned, now - one.used_at)
                found.append(Listing(*told, one.state_key, one.base))
        return found

    def flush(self) -> None:
        """Wait for background writes."""
        if self._disk is not None:
            self._disk.flush()
        self._tidy()

    def _fetch(self, key: str, fingerprint: Fingerprint | None, way: str) -> Capsule:
        entry = self._entries[key]
        if fingerprint is not None and fingerprint.digest != entry.fingerprint:
            self.counters.add("misses", cause="mismatch")
            raise CapsuleMismatch(
                f"capsule {entry.label!r} was taken by another deployment (weights, precision, shapes or code differ); "
                "rebuild it from its tokens."
            )
        tier = next(iter(self.store.homes(key)))
        try:
            capsule = self.store.get(key)
        except (CapsuleDamaged, CapsuleMismatch) as error:
            self.counters.add("misses", cause="damaged" if isinstance(error, CapsuleDamaged) else "base")
            raise
        self.counters.add("hits", way=way, tier=tier)
        self._arrivals.note_request(key, self._clock())
        self._use(key)
        return capsule

    def _lean(self, key: str, capsule: Capsule, bases: Iterable[StateKey]) -> Capsule:
        """The capsule as a delta on the longest base that it begins with; whole if there is none."""
        capsule = completed(capsule, self._allocate)
        realms = {realm.digest for realm in bases}
        known = [(entry.position, one) for one, entry in self._entries.items() if entry.state_key in realms]
        for _, one in sorted(known, reverse=True):
            base = None if one == key or one in self._timed_pins else self.store.base_at_hand(one)
            if base is None:
                continue
            with suppress(CapsuleTooLarge):
                if (delta := beyond(capsule, base, one, self._allocate)) is not None:
                    return delta
        return capsule

    def _here(self, key: str) -> bool:
        a_kind(ContractMisuse, "key", key, str, "the key of a capsule")
        self._tidy()
        return key in self._entries

    def _use(self, key: str) -> None:
        entry = self._entries[key]
        entry.used_at = self._clock()
        if self._disk is not None and self._disk.name in self.store.homes(key):
            self._disk.folder.touch(key, entry.used_at)

    def _tidy(self) -> None:
        """Account for events outside: failed writes, changes by other processes, time limits."""
        self.store.tidy()
        if self._disk is not None and self._disk.folder_changed():
            self._follow(self._disk)
        now = self._clock()
        self._timed_pins.end_overdue()
        for key, entry in tuple(self._entries.items()):
            if entry.ttl_s is not None and now - entry.used_at > entry.ttl_s and not self.store.needed(key):
                self.store.evict(key, "expired")

    def _worth(self, key: str, nbytes: int) -> float:
        entry = self._entries.get(key)
        if entry is None or (entry.base is not None and entry.base.key not in self._entries):
            return 0.0
        return worth(entry.position, nbytes, self._arrivals.expected_wait_s(key, self._clock()))

    def _forget(self, key: str) -> None:
        self._timed_pins.end_pin(key)
        self._index.strike_out(key)

    def _follow(self, disk: DiskTier) -> None:
        """Take over the files of other processes, earlier ones and those that run beside this one."""
        for key in disk.lost():
            self.store.lose(key, disk.name)
        found, unreadable = disk.strangers(self._entries)
        self.counters.add("unreadable", unreadable)
        for about in found:
            self._index.add(about.key, IndexEntry.on_disk(about))
            self._arrivals.note_stored(about.key, about.used_at)
            self.store.adopt(about.key, disk.name, about.file_bytes, about.notes, about.base)


def _tiers(
    ctx: ExecContext, budgets: Budgets, folder: Path | None, writer: Executor | None, mover: Mover
) -> list[Tier]:
    """The tiers that have a budget, from fast to slow."""
    on_gpu = ctx.device.type == "cuda"
    tiers: list[Tier] = []
    if on_gpu and budgets.gpu_bytes:
        tiers.append(MemoryTier("gpu", ctx.device, budgets.gpu_bytes, mover))
    if budgets.host_bytes:
        tiers.append(MemoryTier("host", torch.device("cpu"), budgets.host_bytes, mover))
    if budgets.disk_bytes and folder is not None:
        tiers.append(DiskTier(folder, budgets.disk_bytes, writer, pin_memory=on_gpu))
    return tiers


def _check_put(capsule: Capsule, state_key: StateKey, name: str, ttl_s: float | None) -> None:
    a_kind(ContractMisuse, "capsule", capsule, Capsule, "a capsule, as snapshot gives it,")
    a_kind(ContractMisuse, "state_key", state_key, StateKey, "a StateKey")
    a_kind(ContractMisuse, "name", name, str, "text")
    a_kind(ContractMisuse, "ttl_s", ttl_s, int | float | None, "a number of seconds or None")
    if ttl_s is not None and not ttl_s >= 0:
        raise ContractMisuse(f"ttl_s is {ttl_s}; 0 seconds or more, or None, is needed")
    if not name and len(capsule.tokens) < capsule.position:
        raise ContractMisuse(
            f"capsule {capsule.label!r} has no name, and its {len(capsule.tokens)} tokens do not cover position "
            f"{capsule.position}; it could never be found again"
        )


def named_key(name: str, state_key: StateKey) -> str:
    """The key that a name of a realm is stored under; safe as a file name whatever the name is."""
    return "n-" + blake2b(state_key.digest.encode() + name.encode(), digest_size=16).hexdigest()
