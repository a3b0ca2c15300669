"""The registry against a plain dictionary under random operations, and each policy by itself."""

import errno
import os
import shutil
import tempfile
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from capsules import Capsule, CapsuleError, ExecContext, Fingerprint
from capsules.delta import completed
from capsules.disk import CapsuleNotSaved
from capsules.errors import CapsuleDamaged, CapsuleMismatch
from capsules.exec.sync import Event, HostEvent, HostStream
from capsules.metrics import Counters
from capsules.prefix import StateKey, prefix_digests
from capsules.reentry import Live, Reentry, Way, choose
from capsules.registry import Budgets, Registry, named_key
from capsules.tiers import DiskTier, Held, MemoryTier, Mover, copy_flat

HERE = Fingerprint((("weights", "one"),))
ELSEWHERE = Fingerprint((("weights", "two"),))
CHAT, OTHER = StateKey("toy", template="a"), StateKey("toy", template="b")
CPU = torch.device("cpu")


class SetClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def capsule(tokens, nbytes: int = 100, mark: int = 0, fingerprint: Fingerprint = HERE) -> Capsule:
    return Capsule(
        f"mark {mark}", "toy", len(tokens), fingerprint, tuple(tokens), {"mark": mark},
        {"toy.s": torch.full((nbytes,), mark % 251, dtype=torch.uint8)},
    )  # fmt: skip


def grown(tokens, nbytes: int = 100, mark: int = 0, twist: int = 0) -> Capsule:
    """With a row for each token, and so fit to be a base or what follows one; `twist`: as if folded otherwise."""
    made = capsule(tokens, nbytes, mark)
    return replace(made, tensors={**made.tensors, "toy.kv": rows(tokens, twist)}, axes={"toy.kv": 1})


def rows(tokens, twist: int = 0) -> torch.Tensor:
    """[2, tokens, 30] uint8"""
    one = torch.tensor([(token * 7 + twist) % 251 for token in tokens], dtype=torch.uint8)
    return one[None, :, None].expand(2, -1, 30).contiguous()


def all_rows(found: Capsule) -> torch.Tensor:
    return completed(found, lambda count: torch.empty(count, dtype=torch.uint8)).tensors["toy.kv"]


def registry(
    folder: Path | None = None, gpu=1000, host=1000, disk=100_000, clock=None, writer=None, ttl_s=None
) -> Registry:
    """Three tiers; the two memory tiers both lie in host memory here, which only saves the copies."""
    mover = Mover(ExecContext("cpu"))
    tiers = [MemoryTier(name, CPU, budget, mover) for name, budget in (("gpu", gpu), ("host", host)) if budget]
    return Registry([*tiers, DiskTier(folder, disk, writer)] if folder else tiers, mover, clock or SetClock(), ttl_s)


def called(name: str) -> str:
    """The key of a name in the usual realm."""
    return named_key(name, CHAT)


@pytest.fixture
def quick(monkeypatch):
    """Without waiting for the disk's own cache; the order of syncs has its own test."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


def tier_of(kept: Registry, key: str) -> str:
    return next(iter(kept.store.homes(key)))


# --- against a plain dictionary -------------------------------------------------------------------------------------

NAMES = ["ada", "bea", "cy", ""]
SIZES = [0, 40, 200, 330, 500, 900, 1500, 2600]


class Model(RuleBasedStateMachine):
    """`kept` is the registry; `marks`, a dictionary from key to mark, is all it may ever answer from."""

    @initialize(
        disk=st.sampled_from([0, 3000, 6000]), gpu=st.sampled_from([0, 1000]), ttl=st.sampled_from([None, 80.0]),
        shared=st.booleans(),
    )  # fmt: skip
    def start(self, disk: int, gpu: int, ttl: float | None, shared: bool) -> None:
        self.ttl, self.charged, self.held = ttl, 0, {}
        self.other: Registry | None = None
        self.folder = Path(tempfile.mkdtemp())
        self.budgets = {"gpu": gpu, "host": 700, "disk": disk}
        self.clock = SetClock()
        self.full = False
        self.marks: dict[str, int] = {}
        self.twists: dict[int, int] = {}
        self.pins: dict[str, int] = {}
        self.count = 0
        self.open()
        if disk and shared:  # another process over the same folder
            self.other = registry(self.folder, 0, 500, disk, clock=self.clock)

    def open(self) -> None:
        folder = self.folder if self.budgets["disk"] else None
        self.kept = registry(folder, *self.budgets.values(), clock=self.clock, ttl_s=self.ttl)
        self.gets = 0
        evict = self.kept.store._evict

        def watched(key: str, cause: str) -> None:
            assert not self.kept.store.leaning(key) or cause not in {"capacity", "expired", "superseded"}, "a base went"
            evict(key, cause)

        self.kept.store._evict = watched

    def look(self) -> None:
        """What time and the other process did is accounted for."""
        self.limited(lambda: self.kept.pins("nobody"))
        for key, until in list(self.held.items()):
            if self.clock.now > until or key not in self.kept.store:
                del self.held[key]

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def limited(self, call):
        """With the disk full or not."""
        real = os.write

        def write(file: int, chunk: memoryview) -> int:
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(file, chunk)

        os.write = write
        try:
            return call()
        finally:
            os.write = real

    @rule(
        name=st.sampled_from(NAMES), length=st.integers(1, 5), size=st.sampled_from(SIZES), state_key=st.booleans(),
        pin=st.sampled_from([False, False, False, True]), ttl=st.sampled_from([None, None, 50.0]),
        save=st.booleans(), twist=st.sampled_from([0, 0, 0, 1]),
        bases=st.sampled_from([[], [CHAT], [OTHER], [CHAT, OTHER], [CHAT, OTHER]]),
    )  # fmt: skip
    def put(self, name, length, size, state_key, pin, ttl, save, twist, bases) -> None:
        self.count += 1
        made = grown(range(length), size, self.count, twist)
        self.twists[self.count] = twist
        assert self.kept.get("nobody") is None  # lets go of what is out of time
        self.gets += 1
        before = {key: self.kept.store.homes(key) for key in self.kept.store}
        key = self.limited(
            lambda: self.kept.put(
                made, CHAT if state_key else OTHER, name=name, ttl_s=ttl, pin=pin, save=save, bases=bases
            )
        )
        if key is None:
            if not self.full and not bases:
                assert {k: self.kept.store.homes(k) for k in self.kept.store} == before, "refused, but not harmless"
            return
        self.marks[key] = self.count
        self.pins[key] = self.pins.get(key, 0) + pin
        self.held.pop(key, None)  # it was for what lay there before

    @rule(length=st.integers(1, 3), state_key=st.booleans(), twist=st.sampled_from([0, 0, 1]), listed=st.booleans())
    def list_persona(self, length, state_key, twist, listed) -> None:
        """Pinned once and saved, as personas are, with another text now and then; or listed no more."""
        realm = CHAT if state_key else OTHER
        key = named_key("persona", realm)
        self.look()
        if not listed:
            self.kept.remove(key)
            self.pins.pop(key, None)
            return
        self.count += 1
        self.twists[self.count] = twist
        made = grown(range(length), 40, self.count, twist)
        if self.limited(lambda: self.kept.put(made, realm, name="persona", save=True)) is not None:
            self.marks[key] = self.count
            self.held.pop(key, None)
            if not self.kept.pins(key):
                self.kept.pin(key)
                self.pins[key] = 1

    @precondition(lambda self: self.marks)
    @rule(data=st.data())
    def get(self, data) -> None:
        key = data.draw(st.sampled_from(sorted(self.marks)))
        self.look()
        there = key in self.kept.store
        found = self.asked(key)
        assert (found is not None) == (there and key in self.kept.store)
        if found is not None:
            self.is_what_was_put(found, key)
            assert list(self.kept.store)[-1] == key

    def asked(self, key: str) -> Capsule | None:
        self.gets += 1
        try:
            return self.limited(lambda: self.kept.get(key))
        except CapsuleMismatch:  # somebody removed or replaced its base
            assert key not in self.kept.store
            self.pins.pop(key, None)
            return None

    def there(self, key: str) -> bool:
        return self.asked(key) is not None

    def is_what_was_put(self, found: Capsule, key: str) -> None:
        mark = self.marks[key]
        assert found.host["mark"] == mark and (found.tensors["toy.s"] == mark % 251).all()
        assert torch.equal(all_rows(found), rows(found.tokens, self.twists[mark]))

    @rule(length=st.integers(0, 7), state_key=st.booleans(), reserve=st.integers(0, 1))
    def reenter(self, length, state_key, reserve) -> None:
        chat = CHAT if state_key else OTHER
        self.look()
        there, passed = set(self.kept.store), self.kept.counters.total("misses", cause="base")
        plan, found = self.limited(lambda: self.kept.reenter(chat, range(length), reserve=reserve))
        self.gets += 1 + int(self.kept.counters.total("misses", cause="base") - passed)
        self.pins = {key: count for key, count in self.pins.items() if key in self.kept.store or key not in there}
        assert plan.position + plan.replay == length
        if found is not None:
            self.is_what_was_put(found, plan.key)
            assert found.tokens == tuple(range(plan.position)) and plan.position <= length - reserve
        elif there == set(self.kept.store):
            digests = prefix_digests(chat, range(length), range(1, length - reserve + 1))
            assert not any("p-" + digest in there for digest in digests.values())

    @precondition(lambda self: self.marks)
    @rule(data=st.data(), up=st.booleans())
    def pin(self, data, up) -> None:
        key = data.draw(st.sampled_from(sorted(self.marks)))
        if up and self.there(key):
            self.kept.pin(key)
            self.pins[key] = self.pins.get(key, 0) + 1
        elif not up and self.pins.get(key, 0):
            self.kept.unpin(key)
            self.pins[key] -= 1

    @precondition(lambda self: self.marks)
    @rule(data=st.data(), remove=st.sampled_from([True, False, False]))
    def save_or_remove(self, data, remove) -> None:
        key = data.draw(st.sampled_from(sorted(self.marks)))
        if remove:
            there = self.there(key)
            assert self.kept.remove(key) == there
            self.pins.pop(key, None)
            assert key not in self.kept.store
        elif self.limited(lambda: self.kept.save(key)):
            assert "disk" in self.kept.store.homes(key)

    @precondition(lambda self: self.marks)
    @rule(data=st.data(), seconds=st.sampled_from([20.0, 70.0]))
    def hold(self, data, seconds) -> None:
        key = data.draw(st.sampled_from(sorted(self.marks)))
        self.look()
        pins, before = self.kept.pins(key), key in self.held
        if self.kept.hold(key, seconds):
            assert self.kept.pins(key) == pins + (not before)
            self.held[key] = self.clock.now + seconds
        else:
            assert self.kept.pins(key) == pins

    @precondition(lambda self: self.marks)
    @rule(data=st.data())
    def rest(self, data) -> None:
        key = data.draw(st.sampled_from(sorted(self.marks)))
        self.look()
        if self.limited(lambda: self.kept.rest(key)):
            assert set(self.kept.store.homes(key)) == {"disk"} and not self.pins.get(key, 0)
        self.held.pop(key, None)

    @rule(nbytes=st.sampled_from([0, 100, 400, 900]))
    def charge(self, nbytes) -> None:
        self.limited(lambda: self.kept.charge("beside", nbytes))
        self.charged = nbytes

    @precondition(lambda self: self.other is not None)
    @rule(
        length=st.integers(6, 9), size=st.sampled_from(SIZES), save=st.booleans(), forget=st.booleans(),
        pin=st.booleans(),
    )  # fmt: skip
    def other_process(self, length, size, save, forget, pin) -> None:
        self.count += 1
        self.twists[self.count] = 0
        made, name = grown(range(length), size, self.count), f"o{self.count}"
        key = self.limited(lambda: self.other.put(made, CHAT, name=name, save=save, pin=pin, bases=[CHAT]))
        if key is not None:
            self.marks[key] = self.count
        if forget and (here := list(self.other.store)):
            self.limited(lambda: self.other.remove(here[0]))

    @rule(seconds=st.sampled_from([1.0, 30.0, 60.0]))
    def wait(self, seconds) -> None:
        self.clock.now += seconds

    @rule(full=st.booleans())
    def fill_the_disk(self, full) -> None:
        self.full = full

    @precondition(lambda self: self.budgets["disk"])
    @rule()
    def start_again(self) -> None:
        self.look()
        saved = {key for key in self.kept.store if "disk" in self.kept.store.homes(key)}
        self.open()
        assert set(self.kept.store) == saved
        self.pins.clear()
        self.held.clear()
        self.charged = 0

    @invariant()
    def nothing_pinned_is_gone(self) -> None:
        if hasattr(self, "kept"):
            self.look()
            gone = {key for key, count in self.pins.items() if count and key not in self.kept.store}
            assert len(gone) <= self.kept.counters.total("evictions", cause="taken")  # a pin is of one process
            for key in gone:
                del self.pins[key]
            assert all(self.kept.pins(key) == self.pins.get(key, 0) + 1 for key in self.held)

    @invariant()
    def budgets_hold_and_the_books_are_right(self) -> None:
        if not hasattr(self, "kept"):
            return
        self.look()
        first = self.kept.store.tiers[0]
        if not first.durable and self.kept.store.used_bytes(first.name) + self.charged > first.budget_bytes:
            leaning = {one.base.key for one in self.kept.listing() if one.base is not None}
            there = [key for key in self.kept.store if first.name in self.kept.store.homes(key)]
            assert all(self.kept.pins(key) or key in leaning for key in there)  # a base stays for its deltas
        for tier in self.kept.store.tiers:
            if isinstance(tier, DiskTier):
                really = sum(file.stat().st_size for file in tier.folder.path.iterdir())
            else:
                really = sum(held.capsule.nbytes for held in tier._held.values())
                assert all(one.capsule.base is None or one.capsule.base.rows is None for one in tier._held.values())
            assert self.kept.store.used_bytes(tier.name) == really <= tier.budget_bytes
            assert self.kept.counters.total("bytes", tier=tier.name) == really

    @invariant()
    def counters_add_up(self) -> None:
        if not hasattr(self, "kept"):
            return
        counters, held = self.kept.counters, list(self.kept.store)
        assert counters.total("stored") - counters.total("evictions") == len(held)
        assert counters.total("shared") == sum(one.base.nbytes for one in self.kept.listing() if one.base is not None)
        assert len(held) == len(self.kept.listing())
        for tier in self.kept.store.tiers:
            there = sum(tier.name in self.kept.store.homes(key) for key in held)
            assert counters.total("capsules", tier=tier.name) == there
            assert there or not counters.total("bytes", tier=tier.name)  # one may be of no bytes
        assert counters.total("hits") + counters.total("misses") == self.gets

    @invariant()
    def every_capsule_can_be_found(self) -> None:
        if hasattr(self, "kept"):
            assert set(self.kept._entries) == set(self.kept.store)
            assert self.kept._index.found_by_prefix() == set(self.kept.store)


@pytest.mark.slow
def test_against_a_dictionary_under_random_operations(quick):
    run_state_machine_as_test(
        Model,
        settings=settings(
            max_examples=80, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


# --- budgets and order ----------------------------------------------------------------------------------------------


def places(kept: Registry, keys) -> list[str]:
    return [tier_of(kept, key) if key in kept.store else "" for key in keys]


def test_the_least_recently_used_goes_down_step_by_step_and_out_at_the_end(quick, tmp_path):
    file_bytes = len(one_file(tmp_path / "probe"))
    kept = registry(tmp_path / "c", gpu=200, host=200, disk=2 * file_bytes + 50)
    keys = [kept.put(capsule([i], 100, i), CHAT) for i in range(4)]
    assert places(kept, keys) == ["host", "host", "gpu", "gpu"]
    assert kept.get(keys[0]).host == {"mark": 0}
    assert places(kept, keys) == ["gpu", "host", "host", "gpu"]
    keys += [kept.put(capsule([i], 100, i), CHAT) for i in range(4, 7)]
    assert places(kept, keys) == ["host", "", "disk", "disk", "host", "gpu", "gpu"]
    counters = kept.counters
    assert counters.total("evictions", cause="capacity") == 1
    assert counters.total("demotions", source="gpu", target="host") == 6
    assert counters.total("demotions", source="host", target="disk") == 3
    assert counters.total("promotions", source="host", target="gpu") == 1
    assert counters.total("hits", way="prefix", tier="host") == 1


def one_file(path: Path) -> bytes:
    kept = registry(path, gpu=0, host=0)
    key = kept.put(capsule([0], 100, 0), CHAT)
    return (path / f"{key}.safetensors").read_bytes()


def test_pinned_capsules_stay_and_what_cannot_fit_beside_them_goes_elsewhere():
    kept = registry(gpu=300, host=300)
    voice = kept.put(capsule([1], 250), CHAT, name="voice", pin=True)
    first = kept.put(capsule([2], 100), CHAT)
    assert places(kept, [voice, first]) == ["gpu", "host"]
    with kept.pinned(first):
        assert kept.put(capsule([3], 250), CHAT) is None
        assert kept.counters.total("refused", cause="too large") == 1
        assert places(kept, [voice, first]) == ["gpu", "host"]
    second = kept.put(capsule([3], 250), CHAT)
    assert places(kept, [voice, first, second]) == ["gpu", "", "host"]
    kept.unpin(called("voice"))
    third = kept.put(capsule([4], 300), CHAT)
    assert places(kept, [voice, second, third]) == ["host", "", "gpu"]
    with pytest.raises(KeyError, match="no capsule 'first' to pin"), kept.pinned("first"):
        pass


def test_a_pinned_capsule_keeps_its_place_however_long_it_lies_idle():
    kept = registry(gpu=200, host=200)
    keys = [kept.put(capsule([0], 100), CHAT, pin=True)] + [kept.put(capsule([n], 100), CHAT) for n in (1, 2, 3, 4)]
    assert places(kept, keys) == ["gpu", "", "host", "host", "gpu"]


class FullTier(MemoryTier):
    """Has room by its budget, but from some moment on the device has not."""

    full = False

    def place_copy(self, key, held, notes):
        if self.full:
            raise CapsuleNotSaved("no room")
        super().place_copy(key, held, notes)


def test_a_device_that_is_full_before_its_budget_costs_speed_and_no_capsule():
    mover = Mover(ExecContext("cpu"))
    gpu = FullTier("gpu", CPU, 300, mover)
    kept = Registry([gpu, MemoryTier("host", CPU, 200, mover)], mover, SetClock())
    keys = [kept.put(capsule([n], 100, n), CHAT) for n in range(4)]
    assert places(kept, keys) == ["host", "gpu", "gpu", "gpu"]
    gpu.full = True
    assert kept.get(keys[0]).host == {"mark": 0}
    assert places(kept, keys) == ["host", "host", "gpu", "gpu"]
    keys.append(kept.put(capsule([4], 100, 4), CHAT))
    assert kept.counters.total("refused", cause="no memory") == 1
    assert places(kept, keys)[4] == "host" and kept.get(keys[4]).host == {"mark": 4}
    for tier in ("gpu", "host"):
        held = sum(kept.store.homes(key).get(tier, 0) for key in kept.store)
        assert kept.store.used_bytes(tier) == held


def test_a_copy_that_no_memory_is_left_for_is_told(monkeypatch):
    tensors, empty = capsule([1], 3_000_000).tensors, torch.empty

    def refuse(shape, **options):
        if shape == 0:
            return empty(shape, **options)
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch, "empty", refuse)
    with pytest.raises(CapsuleNotSaved, match=r"no room for 3\.0 MB in cpu: CUDA out of memory"):
        copy_flat(tensors, CPU)


def test_too_big_to_keep_is_no_error_and_harms_nothing():
    kept = registry(gpu=300, host=300)
    small = kept.put(capsule([1], 300), CHAT, name="small")
    assert kept.put(capsule([2], 301), CHAT) is None
    assert kept.put(capsule([3], 301), CHAT, name="small") is None
    assert kept.get(called("small")).tokens == (1,) and kept.get(small).tokens == (1,)
    with kept.pinned(called("small")):
        assert kept.put(capsule([4], 300), CHAT, name="small") == small and kept.get(called("small")).tokens == (4,)


def test_a_name_finds_its_latest_capsule_and_a_prefix_its_latest_too():
    kept = registry()
    kept.put(capsule([1, 2], mark=1), CHAT, name="ada")
    kept.put(capsule([1, 2, 3], mark=2), CHAT, name="ada")
    kept.put(capsule([7], mark=3), CHAT)
    kept.put(capsule([7], mark=4), CHAT)
    assert kept.get(called("ada")).host == {"mark": 2}
    assert [entry.name for entry in kept.listing()] == ["", "ada"]
    assert kept.counters.total("evictions", cause="replaced") == 2
    assert kept.reenter(CHAT, [1, 2, 9])[0].way is Way.REBUILD
    assert kept.reenter(CHAT, [7, 8])[1].host == {"mark": 4}
    assert kept.remove(called("ada")) and not kept.remove(called("ada")) and kept.get(called("ada")) is None


def test_a_name_means_something_in_its_realm_alone():
    kept = registry()
    kept.put(capsule([1], mark=1), CHAT, name="ada")
    kept.put(capsule([1], mark=2), OTHER, name="ada")
    assert kept.get(named_key("ada", CHAT)).host == {"mark": 1}
    assert kept.get(named_key("ada", OTHER)).host == {"mark": 2}
    assert kept.remove(named_key("ada", OTHER)) and kept.get(named_key("ada", CHAT)) is not None
    assert kept.counters.total("evictions") == kept.counters.total("evictions", cause="removed") == 1


def test_a_pin_too_few_is_no_pin_owed():
    kept = registry(gpu=100, host=0)
    key = kept.put(capsule([1], 100), CHAT)
    kept.unpin(key)
    kept.unpin(key)
    assert kept.pins(key) == 0 and kept.pins("nobody") == 0
    kept.pin(key)
    assert kept.pins(key) == 1 and kept.put(capsule([2], 100), CHAT) is None
    kept.unpin(key)
    kept.unpin(key)
    other = kept.put(capsule([2], 100), CHAT)
    assert places(kept, [key, other]) == ["", "gpu"]


# --- two processes over one folder ----------------------------------------------------------------------------------


def folder_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())


def test_two_processes_share_one_disk_budget(quick, tmp_path):
    size = len(one_file(tmp_path / "probe"))
    path, budget, clock = tmp_path / "c", 3 * size + 50, SetClock()
    one, two = (registry(path, gpu=0, host=0, disk=budget, clock=clock) for _ in range(2))
    keys = []
    for n, kept in enumerate((one, one, two, two), 1):
        keys.append(kept.put(capsule([n], 100, n), CHAT))
        clock.now += 1
    first, second = keys[:2], keys[2:]
    assert folder_bytes(path) <= budget
    assert places(two, [*first, *second]) == ["", "disk", "disk", "disk"]
    assert one.get(first[0]) is None and one.get(second[0]).host == {"mark": 3}
    assert one.counters.total("evictions", cause="taken") == 1
    assert two.reenter(CHAT, [2, 9])[1].host == {"mark": 2}
    assert two.remove(first[1]) and one.put(capsule([5], 100, 5), CHAT)
    for kept in (one, two):
        assert first[1] not in kept and kept.store.used_bytes("disk") == folder_bytes(path)


def test_a_process_that_has_not_seen_the_other_writes_nothing_that_does_not_fit(quick, tmp_path, monkeypatch):
    size = len(one_file(tmp_path / "probe"))
    path = tmp_path / "c"
    one, two = (registry(path, gpu=0, host=0, disk=2 * size + 50) for _ in range(2))
    one.put(capsule([1], 100, 1), CHAT)
    with monkeypatch.context() as patch:
        patch.setattr(DiskTier, "folder_changed", lambda tier: False)
        two.put(capsule([2], 100, 2), CHAT)
        assert two.put(capsule([3], 100, 3), CHAT) is None
    assert folder_bytes(path) <= 2 * size + 50 and two.counters.total("refused", cause="disk error") == 1
    assert two.put(capsule([3], 100, 3), CHAT) and folder_bytes(path) <= 2 * size + 50


def test_what_another_process_wrote_under_a_key_of_ours_is_its_own(quick, tmp_path):
    """The one in memory stays; the file is counted by whoever wrote it, until ours replaces it."""
    one, two = (registry(tmp_path, gpu=0, host=500) for _ in range(2))
    key = one.put(capsule([1], 100, 1), CHAT, name="ada", save=True)
    two.put(capsule([1], 300, 2), CHAT, name="ada", save=True)
    assert one.get(key).host == {"mark": 1} and dict(one.store.homes(key)).keys() == {"host"}
    assert one.save(key) and two.get(key).host == {"mark": 2} and dict(two.store.homes(key)).keys() == {"host"}


def test_a_capsule_that_could_never_be_found_is_refused():
    made = Capsule("x", "toy", 5, HERE, (1, 2), {}, {"s": torch.zeros(1)})
    kept = registry()
    with pytest.raises(ValueError, match="its 2 tokens do not cover position 5"):
        kept.put(made, CHAT)
    assert kept.put(made, CHAT, name="x") and kept.get(called("x")) is made
    assert kept.reenter(CHAT, [1, 2, 3, 4, 5])[0].way is Way.REBUILD


def test_time_limits_count_from_the_last_use_and_spare_the_pinned():
    clock = SetClock()
    kept = registry(clock=clock)
    kept.put(capsule([1]), CHAT, name="a", ttl_s=10)
    kept.put(capsule([2]), CHAT, name="b", ttl_s=10, pin=True)
    kept.put(capsule([3]), CHAT, name="c")
    clock.now += 10
    assert kept.get(called("a")) is not None
    clock.now += 10
    assert kept.get(called("a")) is not None
    clock.now += 10.5
    assert kept.get(called("a")) is None and kept.get(called("b")) is not None and kept.get(called("c")) is not None
    assert kept.counters.total("evictions", cause="expired") == 1
    kept.unpin(called("b"))
    clock.now += 10.5
    assert [entry.name for entry in kept.listing()] == ["b", "c"] and kept.get(called("b")) is None


# --- prefixes -------------------------------------------------------------------------------------------------------


def test_prefix_digests_are_those_of_the_prefix_alone():
    tokens = [i * 7919 % 1000 for i in range(200)]
    lengths = [0, 1, 63, 64, 65, 127, 128, 129, 200, 201]
    digests = prefix_digests(CHAT, tokens, lengths)
    assert set(digests) == set(lengths) - {201}
    assert len(set(digests.values())) == len(digests)
    for n in digests:
        assert digests[n] == prefix_digests(CHAT, tokens[:n], [n])[n]
        for at in {0, n // 2, n - 1} & set(range(n)):
            changed = [*tokens[:at], tokens[at] + 1, *tokens[at + 1 :]]
            assert prefix_digests(CHAT, changed, [n])[n] != digests[n]


def test_every_part_of_the_realm_counts():
    base = StateKey("m", "p", "a", "t", "x", "s")
    others = [
        StateKey(*("!" if i == j else part for j, part in enumerate(("m", "p", "a", "t", "x", "s")))) for i in range(6)
    ]
    moved = StateKey("mp", "", "a", "t", "x", "s")
    digests = {state_key.digest for state_key in (base, *others, moved)}
    assert len(digests) == 8
    assert len({prefix_digests(state_key, [1], [1])[1] for state_key in (base, *others, moved)}) == 8


WANTED = [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("live", "stored", "reserve", "expected"),
    [
        (Live(), None, 0, Reentry(Way.REBUILD, 0, 6)),
        (Live(), (4, "k"), 0, Reentry(Way.RESTORE, 4, 2, "k")),
        (Live(), (6, "k"), 1, Reentry(Way.REBUILD, 0, 6)),
        (Live(3, 3), (3, "k"), 0, Reentry(Way.APPEND, 3, 3)),
        (Live(3, 3), (4, "k"), 0, Reentry(Way.RESTORE, 4, 2, "k")),
        (Live(4, 2), None, 0, Reentry(Way.ROLLBACK, 2, 4)),
        (Live(4, 2), (2, "k"), 0, Reentry(Way.ROLLBACK, 2, 4)),
        (Live(4, 2), (3, "k"), 0, Reentry(Way.RESTORE, 3, 3, "k")),
        (Live(2, 0), None, 0, Reentry(Way.REBUILD, 0, 6)),
        (Live(6, 6), None, 0, Reentry(Way.APPEND, 6, 0)),
        (Live(6, 6), (4, "k"), 1, Reentry(Way.RESTORE, 4, 2, "k")),
        (Live(8, 5), None, 1, Reentry(Way.ROLLBACK, 5, 1)),
    ],
)
def test_the_way_with_the_least_replay(live, stored, reserve, expected):
    assert choose(len(WANTED), live, stored, reserve) == expected


def test_reentry_takes_the_longest_usable_prefix_of_the_same_realm():
    kept = registry()
    for length in (2, 3, 5):
        kept.put(capsule(WANTED[:length], mark=length), CHAT)
    kept.put(capsule(WANTED[:4], mark=40), OTHER)
    kept.put(capsule(WANTED[:6], mark=60, fingerprint=ELSEWHERE), CHAT)
    plan, found = kept.reenter(CHAT, WANTED, fingerprint=HERE)
    assert plan == Reentry(Way.RESTORE, 5, 1, plan.key) and found.host == {"mark": 5}
    assert kept.reenter(CHAT, [1, 2, 3, 4, 9])[0].position == 3
    assert kept.reenter(OTHER, WANTED)[0].position == 4
    assert kept.reenter(CHAT, WANTED[:5], reserve=1)[0].position == 3
    assert kept.reenter(CHAT, WANTED, Live(6, 6))[0].way is Way.APPEND
    assert kept.counters.total("reentries") == 5 and kept.counters.total("reentries", way="restore") == 4
    assert kept.counters.total("replayed_tokens") == 1 + 2 + 2 + 2 + 0


def test_a_capsule_is_found_at_its_checkpoints_and_only_where_calls_ended_alike(tmp_path, quick):
    kept = registry(tmp_path)
    kept.put(capsule(WANTED, mark=6), CHAT, ends=[2, 4, 6], points=[2, 4], save=True)
    kept.flush()
    for one in (kept, registry(tmp_path)):
        plan, found = one.reenter(CHAT, [1, 2, 3, 4, 9], ends=[2, 4, 5])
        assert (plan.way, plan.position, found.position) == (Way.RESTORE, 4, 6)
        assert one.reenter(CHAT, [1, 2, 3, 9], ends=[2, 4])[0].position == 2
        assert one.reenter(CHAT, WANTED, ends=[6])[0].position == 0, "in other calls"
        assert one.reenter(CHAT, WANTED, ends=[3, 4, 6])[0].position == 0
        assert one.reenter(CHAT, WANTED, ends=[2, 4])[0].position == 4
        assert one.reenter(CHAT, WANTED)[0].position == 0, "and to those who do not say how, not at all"
        assert one.reenter(OTHER, WANTED, ends=[2, 4, 6])[0].position == 0
        assert one.reenter(OTHER, WANTED, also=[CHAT], ends=[2, 4, 6])[0].position == 6


def test_what_is_superseded_goes_unless_somebody_named_or_pinned_it():
    kept = registry()
    plain, pinned = kept.put(capsule([1]), CHAT), kept.put(capsule([2]), CHAT, pin=True)
    named = kept.put(capsule([3]), CHAT, name="ada")
    for key in (plain, pinned, named, "none"):
        kept.superseded(key)
    assert [key in kept for key in (plain, pinned, named)] == [False, True, True]
    assert kept.counters.total("evictions", cause="superseded") == 1


# --- what can go wrong ----------------------------------------------------------------------------------------------


def test_another_deployment_is_refused_by_name_and_stays():
    kept = registry()
    kept.put(capsule([1], fingerprint=ELSEWHERE), CHAT, name="ada")
    with pytest.raises(CapsuleMismatch, match="another deployment"):
        kept.get(called("ada"), HERE)
    assert kept.get(called("ada"), ELSEWHERE) is not None
    assert kept.counters.total("misses", cause="mismatch") == 1


def test_a_delta_that_lost_its_base_takes_nothing_along_that_has_the_name_now():
    kept = registry()
    base, other = (kept.put(grown(range(2)), realm, name="ada", pin=True) for realm in (CHAT, OTHER))
    delta = kept.put(grown(range(4)), CHAT, name="cy", bases=[CHAT])
    kept.put(grown(range(3)), CHAT, name="ada", bases=[OTHER])  # itself a delta from here on,
    kept.put(grown(range(2), twist=1), OTHER, name="ada")  # and one that lost its own base
    with pytest.raises(CapsuleMismatch, match="'mark 0' was kept as what follows"):
        kept.get(delta)
    assert [key in kept.store for key in (base, other, delta)] == [True, True, False]
    assert kept.counters.total("evictions", cause="base") == 1


def damage(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("harm", [damage, lambda file: os.truncate(file, 20)], ids=["bit", "cut"])
def test_damaged_files_fall_back_to_the_next_best_way(quick, tmp_path, harm):
    kept = registry(tmp_path, gpu=0, host=0)
    keys = [kept.put(capsule(WANTED[:n], mark=n), CHAT) for n in (2, 4)]
    harm(tmp_path / f"{keys[1]}.safetensors")
    plan, found = kept.reenter(CHAT, WANTED)
    assert plan.position == 2 and found.host == {"mark": 2}
    assert keys[1] not in kept.store and len(list(tmp_path.iterdir())) == 1
    harm(tmp_path / f"{keys[0]}.safetensors")
    with pytest.raises(CapsuleDamaged):
        kept.get(keys[0])
    assert kept.reenter(CHAT, WANTED) == (Reentry(Way.REBUILD, 0, 6), None)
    assert kept.counters.total("misses", cause="damaged") == 2
    assert kept.put(capsule(WANTED, mark=9), CHAT) and kept.reenter(CHAT, WANTED)[1].host == {"mark": 9}


def test_a_file_that_somebody_removed_is_a_capsule_less(quick, tmp_path):
    kept = registry(tmp_path, gpu=0, host=0)
    keys = [kept.put(capsule(WANTED[:n], mark=n), CHAT) for n in (2, 4)]
    (tmp_path / f"{keys[1]}.safetensors").unlink()
    assert kept.reenter(CHAT, WANTED)[1].host == {"mark": 2} and kept.get(keys[1]) is None
    assert kept.counters.total("evictions", cause="taken") == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiskTier, "folder_changed", lambda tier: False)
        (tmp_path / f"{keys[0]}.safetensors").unlink()
        with pytest.raises(CapsuleDamaged, match="cannot be read"):
            kept.get(keys[0])
    assert not list(kept.store) and kept.store.used_bytes("disk") == 0


def test_a_full_disk_loses_only_what_had_to_leave_memory(quick, tmp_path, monkeypatch):
    kept = registry(tmp_path, gpu=0, host=200)
    first, second = (kept.put(capsule([n], 100, n), CHAT, save=n == 0) for n in (0, 1))

    def write(file: int, chunk: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        assert not kept.save(second)
        third = kept.put(capsule([3], 200, 3), CHAT)
        assert kept.put(capsule([4], 300), CHAT) is None
    assert places(kept, [first, second, third]) == ["disk", "", "host"]
    assert kept.counters.total("evictions", cause="disk error") == 0
    assert kept.counters.total("evictions", cause="capacity") == 1
    assert kept.counters.total("refused", cause="disk error") == 1
    assert kept.counters.total("copies", outcome="disk error") == 2
    assert kept.get(first).host == {"mark": 0}


def test_a_new_start_finds_what_was_saved_and_forgets_the_rest(quick, tmp_path):
    clock = SetClock()
    kept = registry(tmp_path, clock=clock)
    kept.put(capsule([1, 2], mark=1), CHAT, name="ada", save=True, ttl_s=100)
    kept.put(capsule([1, 2, 3], mark=2), CHAT, save=True)
    kept.put(capsule([5], mark=3), CHAT, name="bea")
    clock.now += 5
    assert kept.get(called("ada")) is not None
    (tmp_path / "x.safetensors").write_bytes(b"something else")
    clock.now += 50
    again = registry(tmp_path, clock=clock)
    assert [(entry.name, entry.position, entry.idle_s) for entry in again.listing()] == [
        ("", 3, 55.0),
        ("ada", 2, 50.0),
    ]
    assert again.get(called("bea")) is None and again.get(called("ada")).host == {"mark": 1}
    assert again.reenter(CHAT, [1, 2, 3, 4])[1].host == {"mark": 2}
    assert dict(again.store.homes(called("ada"))).keys() == {"gpu", "disk"}
    assert again.counters.total("unreadable") == 1 and (tmp_path / "x.safetensors").exists()
    clock.now += 101
    assert registry(tmp_path, clock=clock).get(called("ada")) is None
    assert len(list(registry(tmp_path, disk=100, clock=clock).store)) == 0


# --- background writes ----------------------------------------------------------------------------------------------


class Later(Executor):
    """Runs nothing until told."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future, object, tuple]] = []

    def submit(self, fn, /, *args, **kwargs):
        self.jobs.append((Future(), fn, args))
        return self.jobs[-1][0]

    def run(self) -> None:
        while self.jobs:
            future, fn, args = self.jobs.pop(0)
            try:
                future.set_result(fn(*args))
            except CapsuleError as error:
                future.set_exception(error)


def test_background_writes_are_readable_before_they_are_written(quick, tmp_path):
    later = Later()
    kept = registry(tmp_path, gpu=0, host=100, writer=later)
    first = kept.put(capsule([1], 100, 1), CHAT)
    second = kept.put(capsule([2], 100, 2), CHAT)
    assert places(kept, [first, second]) == ["disk", "host"] and not list(tmp_path.iterdir())
    held = kept.store.tiers[-1].fetch(first)
    assert held.capsule.host == {"mark": 1}
    later.run()
    assert [file.name for file in tmp_path.iterdir()] == [f"{first}.safetensors"]
    kept.flush()
    assert kept.store.tiers[-1].fetch(first).capsule is not held.capsule
    assert kept.get(first).host == {"mark": 1}
    later.run()


def test_a_background_write_that_fails_is_accounted_for_later(quick, tmp_path, monkeypatch):
    later = Later()
    kept = registry(tmp_path, gpu=0, host=100, writer=later)
    first = kept.put(capsule([1], 100, 1), CHAT)
    second = kept.put(capsule([2], 100, 2), CHAT, save=True)
    monkeypatch.setattr(os, "write", lambda file, chunk: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    later.run()
    assert kept.get(first) is None
    assert dict(kept.store.homes(second)) == {"host": 100}
    assert kept.store.used_bytes("disk") == 0
    assert kept.counters.total("evictions", cause="disk error") == 1
    assert kept.counters.total("copies", outcome="disk error") == 2


def test_waiting_writes_are_bounded(quick, tmp_path):
    class Now(Later):
        """A future whose result is asked for runs everything before it."""

        def submit(self, fn, /, *args, **kwargs):
            future = super().submit(fn, *args, **kwargs)
            future.exception = lambda timeout=None: (self.run(), Future.exception(future))[1]
            return future

    later = Now()
    tier = DiskTier(tmp_path, 10_000, later, max_pending_bytes=250)
    mover = Mover(ExecContext("cpu"))
    for n in range(3):
        tier.place_copy(f"k{n}", mover.fresh(capsule([n], 100, n)), {})
        assert len(later.jobs) <= 2
    tier.flush()
    assert len(list(tmp_path.iterdir())) == 3


def test_other_errors_of_a_writer_are_not_swallowed(quick, tmp_path):
    later = Later()
    tier = DiskTier(tmp_path, 10_000, later)
    tier.place_copy("k", Mover(ExecContext("cpu")).fresh(capsule([1])), {})
    later.jobs[0][0].set_exception(RuntimeError("broken"))
    with pytest.raises(RuntimeError, match="broken"):
        tier.failed()


# --- small parts ----------------------------------------------------------------------------------------------------


def test_the_usual_tiers(tmp_path):
    ctx = ExecContext("cpu")
    kept = Registry.standard(ctx, Budgets(10, 20, 3000), SetClock(), tmp_path)
    assert [(tier.name, tier.budget_bytes) for tier in kept.store.tiers] == [("host", 20), ("disk", 3000)]
    assert Registry.standard(ctx, Budgets(), SetClock()).put(capsule([1]), CHAT) is None
    with pytest.raises(ValueError, match="needs a folder"):
        Registry.standard(ctx, Budgets(disk_bytes=1), SetClock())


def test_flat_copies_equal_their_source():
    flat = torch.arange(64, dtype=torch.uint8)
    views = {"a": flat[:16].view(torch.float32).view(2, 2), "b": flat[32:40].view(torch.int64)[0], "c": flat[64:]}
    apart = {"a": torch.arange(3), "b": torch.ones(2, 2, dtype=torch.bfloat16)}
    for tensors in (views, apart):
        copies = copy_flat(tensors, CPU)
        for name, tensor in tensors.items():
            assert copies[name].dtype == tensor.dtype and copies[name].shape == tensor.shape
            assert torch.equal(copies[name].reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8))
            assert copies[name].numel() == 0 or copies[name].data_ptr() != tensor.data_ptr()


class DeviceEvent:
    def synchronize(self) -> None:
        pass


class DeviceStream(HostStream):
    """Refuses, as a real one does, to wait for anything but an event of a device."""

    def __init__(self) -> None:
        super().__init__("side")
        self.waited: list[Event] = []

    def wait(self, event: Event) -> None:
        assert isinstance(event, DeviceEvent)
        self.waited.append(event)

    def record(self) -> Event:
        return DeviceEvent()


class DeviceContext:
    """As much of a context as a mover needs; the far device is one that holds shapes only."""

    device = torch.device("meta")

    def __init__(self) -> None:
        self.side = DeviceStream()

    def named_stream(self, name: str) -> DeviceStream:
        return self.side


def test_moves_wait_for_what_a_device_writes_and_for_nothing_else():
    ctx = DeviceContext()
    mover = Mover(ctx)  # type: ignore[arg-type]
    here = Held(capsule([1], 100), HostEvent())
    assert mover.move(here, CPU) is here
    there = mover.move(here, ctx.device)
    assert there.capsule.device.type == "meta" and there.capsule.tokens == (1,) and there.capsule.nbytes == 100
    assert ctx.side.waited == [] and isinstance(there.ready, DeviceEvent)
    on_its_way = Held(here.capsule, there.ready)
    assert mover.move(on_its_way, ctx.device).capsule.tensors.keys() == {"toy.s"}
    assert ctx.side.waited == [there.ready]


def test_counters():
    counters = Counters()
    counters.add("hits", way="name", tier="gpu")
    counters.add("hits", 2, way="prefix", tier="gpu")
    counters.set("bytes", 7, tier="gpu")
    counters.set("bytes", 5, tier="gpu")
    assert counters.total("hits") == 3 and counters.total("hits", way="name") == 1 and counters.total("bytes") == 5
    assert [str(sample) for sample in counters.samples()] == [
        'hits{tier="gpu",way="name"} 1', 'hits{tier="gpu",way="prefix"} 2', 'bytes{tier="gpu"} 5',
    ]  # fmt: skip
    with pytest.raises(KeyError):
        counters.add("hit")


@pytest.mark.gpu
def test_down_to_the_host_and_the_disk_and_up_again_on_a_device(quick, tmp_path):
    ctx = ExecContext("cuda")
    kept = Registry.standard(ctx, Budgets(1 << 20, 1 << 20, 1 << 24), SetClock(), tmp_path)
    made = {}
    for n in range(6):
        flat = torch.full((1 << 19,), n, dtype=torch.uint8, device="cuda")
        tensors = {"toy.kv": flat[: 1 << 18].view(torch.bfloat16), "toy.s": flat[1 << 18 :]}
        made[kept.put(Capsule("", "toy", 1, HERE, (n,), {}, tensors), CHAT)] = n
    assert places(kept, made) == ["disk", "disk", "host", "host", "gpu", "gpu"]
    for key, n in made.items():
        found = kept.get(key)
        assert found.device.type == "cuda"
        assert all((t.view(torch.uint8) == n).all() for t in found.tensors.values())
