"""What a capsule is worth, and what a budget keeps by it: against least recently used, on arrivals of three kinds."""

from pathlib import Path

import pytest
import torch

from capsules import Capsule, ExecContext, Fingerprint
from capsules.prefix import StateKey
from capsules.registry import Registry, named_key
from capsules.tiers import DiskTier, MemoryTier, Mover
from capsules.worth import REMEMBERED, Arrivals, worth

HERE = Fingerprint((("weights", "one"),))
CHAT = StateKey("toy")


class SetClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def capsule(tokens: int, nbytes: int = 100) -> Capsule:
    state = {"toy.s": torch.zeros(nbytes, dtype=torch.uint8)}
    return Capsule("", "toy", tokens, HERE, tuple(range(tokens)), {}, state)


def registry(budget: int, clock: SetClock, ttl_s: float | None = None, folder: Path | None = None) -> Registry:
    mover = Mover(ExecContext("cpu"))
    disk = [] if folder is None else [DiskTier(folder, 1 << 20)]
    return Registry([MemoryTier("host", torch.device("cpu"), budget, mover), *disk], mover, clock, ttl_s)


def test_what_is_due_soon_is_worth_more_than_what_was_just_used():
    seen = Arrivals()
    for now in (0.0, 100.0, 200.0):
        seen.note_request("a", now)
    for now in (190.0, 290.0):
        seen.note_request("b", now)
    assert seen.expected_wait_s("a", 200.0) == 100 and seen.expected_wait_s("a", 260.0) == 40
    assert seen.expected_wait_s("a", 299.0) == pytest.approx(10)  # never sooner than a tenth of its interval
    assert seen.expected_wait_s("b", 290.0) > seen.expected_wait_s("a", 290.0)
    assert seen.expected_wait_s("a", 500.0) == 301  # overdue: as long again


def test_a_state_that_comes_back_longer_after_its_visit_counts_one_use_a_visit():
    seen = Arrivals()
    for visit in range(4):
        seen.note_request("a", visit * 100.0)
        seen.note_stored("a", visit * 100.0 + 30)
    assert seen.expected_wait_s("a", 300.0) == 100


def test_uses_are_remembered_of_what_has_gone_but_not_without_end():
    seen = Arrivals()
    for n in range(3 * REMEMBERED):
        seen.note_stored(f"k{n}", float(n))
    assert len(seen._uses) == REMEMBERED


def test_longer_to_fold_and_fewer_bytes_are_worth_more():
    assert worth(1000, 100, 5.0) > worth(500, 100, 5.0) > worth(500, 200, 5.0) > worth(500, 200, 50.0) > 0
    clock = SetClock()
    kept = registry(300, clock)
    dear, cheap = kept.put(capsule(200), CHAT, name="dear"), kept.put(capsule(20), CHAT, name="cheap")
    clock.now += 1
    kept.put(capsule(100), CHAT, name="third")
    kept.put(capsule(100), CHAT, name="fourth")
    assert dear in kept and cheap not in kept


def test_of_equal_worth_the_least_recently_used_goes():
    clock = SetClock()
    kept = registry(300, clock)
    keys = []
    for n in range(4):
        keys.append(kept.put(capsule(20), CHAT, name=str(n)))
        clock.now += 1
    assert [key in kept for key in keys] == [False, True, True, True]


def test_talks_in_a_circle_keep_some_of_them_where_least_recently_used_keeps_none():
    """Twelve talks one after the other, room for eight."""
    clock = SetClock()
    kept, hits = registry(800, clock), []
    for turn in range(12 * 20):
        key = named_key(f"talk {turn % 12}", CHAT)
        hits.append(kept.get(key) is not None)
        kept.put(capsule(50), CHAT, name=f"talk {turn % 12}")
        clock.now += 10
        assert kept.store.used_bytes("host") <= 800
    late = hits[12 * 5 :]
    assert sum(late) / len(late) > 0.5


def test_a_default_time_limit_holds_where_none_is_said():
    clock = SetClock()
    kept = registry(1000, clock, ttl_s=100)
    usual, short = kept.put(capsule(5), CHAT, name="usual"), kept.put(capsule(5), CHAT, name="short", ttl_s=10)
    pinned = kept.put(capsule(5), CHAT, name="pinned", pin=True)
    clock.now += 50
    assert usual in kept and short not in kept
    clock.now += 60
    assert usual not in kept and pinned in kept


def test_what_is_held_stays_until_its_time_and_no_longer():
    clock = SetClock()
    kept = registry(400, clock)
    first = kept.put(capsule(1), CHAT, name="first")
    assert kept.hold(first, 60) and kept.hold(first, 60) and kept.pins(first) == 1
    clock.now += 1
    others = [kept.put(capsule(90), CHAT, name=str(n)) for n in range(4)]
    assert first in kept and others[0] not in kept
    assert kept.hold(others[3], 60) and not kept.hold(others[2], 60)  # pins take half of the tier already
    kept.put(capsule(2), CHAT, name="first")
    assert kept.pins(first) == 0  # another state: whoever put it holds it anew
    kept.hold(first, 60)
    clock.now += 61
    assert kept.pins(first) == 0 and kept.pins(others[3]) == 0
    kept.remove(first)
    assert not kept.hold(first, 60) and not kept.hold("nobody", 60)


def test_what_was_held_rests_on_disk_and_comes_back(tmp_path):
    clock = SetClock()
    kept = registry(1000, clock, folder=tmp_path)
    held, soon, only = (kept.put(capsule(5 + n), CHAT, name=str(n), save=n < 2) for n in range(3))
    homes = kept.store.homes
    for key in (held, soon, only):
        assert kept.hold(key, 60)
    assert kept.rest(soon) and homes(soon).keys() == {"disk"} and kept.pins(soon) == 0
    assert not kept.rest(only) and homes(only).keys() == {"host"}, "without a copy on disk it would be lost"
    clock.now += 61
    assert kept.pins(held) == 0 and homes(held).keys() == {"disk"} and kept.store.used_bytes("host") == 100
    assert kept.get(held).tokens == capsule(5).tokens and homes(held).keys() == {"host", "disk"}
    kept.pin(held)
    assert not kept.rest(held) and not kept.rest("nobody") and homes(held).keys() == {"host", "disk"}


def test_a_tier_gets_a_smaller_budget():
    kept = registry(400, SetClock())
    keys = [kept.put(capsule(5 + n), CHAT, name=str(n), pin=n == 0) for n in range(4)]
    kept.store.tiers[0].budget_bytes = 250
    assert kept.put(capsule(9), CHAT) is not None and kept.store.used_bytes("host") == 200
    assert [key in kept for key in keys] == [True, False, False, False], "a pinned one stays"


def test_what_lies_beside_the_capsules_counts_for_their_budget():
    kept = registry(400, SetClock())
    keys = [kept.put(capsule(5 + n), CHAT, name=str(n)) for n in range(4)]
    kept.charge("checkpoints", 150)
    assert kept.store.used_bytes("host") == 200 and [key in kept for key in keys] == [False, False, True, True]
    assert kept.put(capsule(9, 300), CHAT) is None and kept.counters.total("charged") == 150
    with kept.pinned(keys[2]), kept.pinned(keys[3]):
        kept.charge("a voice in mid-sentence", 300)  # it is there already, and nothing can go
        assert kept.store.used_bytes("host") == 200
    kept.charge("a voice in mid-sentence", 0)
    assert kept.counters.total("charged") == 150 and kept.put(capsule(9, 250), CHAT)
    with pytest.raises(ValueError, match="nbytes"):
        kept.charge("checkpoints", -1)
