"""Delta capsules: what follows a base is kept; what comes back is the whole, byte for byte, or a refusal by name."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from capsules import Budgets, Capsule, CapsuleError, ExecContext, Live, Registry, StateKey, Way
from capsules import restore as put_back
from capsules.capsule import earlier, snapshot
from capsules.delta import beyond, completed, joined, parted, rows_digest
from capsules.errors import CapsuleMismatch
from capsules.registry import named_key
from tests.capsules.toy import WIDTH, ToyHybrid, ToySampling, poison_dead, scramble

PROMPT, MORE, WARM = [3, 1, 4, 1, 5, 9, 2, 6, 5, 35], [8, 9, 7, 9, 3, 2, 3, 8], ToySampling(seed=11)
LISTED, TALKS = StateKey("toy", salt="listed"), StateKey("toy")
ROW = 2 * WIDTH * 4  # bytes


def follow(toy: ToyHybrid, tokens: list[int]) -> None:
    for token in tokens:
        toy.token.fill_(token)
        toy.decode(1)


def taken(toy: ToyHybrid, tokens: list[int], label: str = "talk") -> Capsule:
    return snapshot(toy.ctx, "toy", int(toy.position), toy.fingerprint, tokens=tokens, label=label)


def begun(toy: ToyHybrid) -> tuple[Capsule, Capsule]:
    """A persona, and a talk that began with it."""
    toy.open(PROMPT, WARM)
    base = taken(toy, PROMPT, "ada")
    follow(toy, MORE)
    return base, taken(toy, PROMPT + MORE)


def both(ctx: ExecContext) -> tuple[ToyHybrid, Capsule, Capsule]:
    toy = ToyHybrid(ctx)
    return toy, *begun(toy)


def equal(one: Capsule, two: Capsule) -> bool:
    same = one.tensors.keys() == two.tensors.keys() and one.position == two.position
    return same and all(torch.equal(t, two.tensors[n]) for n, t in one.tensors.items())


def test_what_follows_restores_to_the_very_state(ctx: ExecContext) -> None:
    toy, base, talk = both(ctx)
    expected = toy.decode(30)
    delta = beyond(talk, base, "ada", ctx.bytes)
    assert delta is not None and delta.base is not None and delta.base.position == len(PROMPT)
    assert talk.nbytes - delta.nbytes == delta.base.nbytes == len(PROMPT) * ROW
    with pytest.raises(CapsuleMismatch, match=r"toy\.kv at position 18 .* holds nothing"):
        toy.restore(delta)
    there = joined(delta, base)
    assert equal(completed(there, ctx.bytes), talk) and completed(talk, ctx.bytes) is talk
    scramble(ctx, "toy")
    toy.restore(there)
    poison_dead(ctx, "toy", talk.position)
    assert toy.decode(30) == expected


@pytest.mark.parametrize("at", [4, len(PROMPT), len(PROMPT) + 3])
def test_a_checkpoint_inside_is_found_before_at_and_behind_the_end_of_the_base(ctx: ExecContext, at: int) -> None:
    toy = ToyHybrid(ctx).open((PROMPT + MORE)[:at], WARM)
    point = toy.checkpoint()
    expected = toy.decode(20)
    base, talk = begun(toy)
    there = joined(beyond(talk, base, "ada", ctx.bytes) or talk, base)
    assert there.base is not None
    put_back(ctx, earlier(ctx, there, point), toy.fingerprint)
    poison_dead(ctx, "toy", at)
    assert toy.decode(20) == expected


def test_only_the_same_bytes_make_a_base(ctx: ExecContext) -> None:
    toy, base, talk = both(ctx)
    assert beyond(base, base, "ada", ctx.bytes) is not None, "nothing follows, and that is a delta too"
    for name in ("sign", "nan"):
        rows = base.tensors["toy.kv"].clone()
        rows[0, 3, 2] = 0.0 if name == "sign" else float("nan")
        changed = talk.tensors["toy.kv"].clone()
        changed[0, 3, 2] = -0.0 if name == "sign" else float("nan")
        other = replace(base, tensors={**base.tensors, "toy.kv": rows})
        found = beyond(replace(talk, tensors={**talk.tensors, "toy.kv": changed}), other, "ada", ctx.bytes)
        assert (found is None) == (name == "sign"), "bytes are compared, not numbers"
    assert beyond(base, talk, "ada", ctx.bytes) is None, "longer than what would follow it"
    assert beyond(talk, replace(base, axes={}), "ada", ctx.bytes) is None
    delta = beyond(talk, base, "ada", ctx.bytes)
    assert delta is not None and beyond(delta, base, "ada", ctx.bytes) is None
    assert beyond(talk, joined(delta, base), "x", ctx.bytes) is None, "a base is whole"
    toy.open(MORE, WARM)
    assert beyond(talk, taken(toy, MORE), "bea", ctx.bytes) is None


def test_a_base_that_is_gone_or_another_is_refused_by_name(ctx: ExecContext) -> None:
    _, base, talk = both(ctx)
    delta = beyond(talk, base, "ada", ctx.bytes)
    assert delta is not None
    with pytest.raises(CapsuleMismatch, match=r"'talk' was kept as what follows 'ada' \(10 tokens\), which is gone"):
        joined(delta, None)
    changed = {**base.tensors, "toy.kv": base.tensors["toy.kv"] + 1}
    with pytest.raises(CapsuleMismatch, match="which is another one now"):
        joined(delta, replace(base, tensors=changed))
    assert rows_digest(base) == rows_digest(replace(base, label="renamed", tokens=())), "of the rows alone"
    there = parted(joined(delta, base))
    assert there.base is not None and there.base.rows is None and parted(talk) is talk


# --- kept ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)


class Seconds:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def opened(ctx: ExecContext, folder: Path, host: int = 1 << 20, disk: int = 1 << 20, ttl_s: int = 0) -> Registry:
    return Registry.standard(ctx, Budgets(host, host, disk, ttl_s), Seconds(), folder)


def kept_both(kept: Registry, base: Capsule, talk: Capsule, save: bool = True) -> tuple[str, str]:
    one = kept.put(base, LISTED, name="ada", pin=True)
    two = kept.put(talk, TALKS, name="talk", save=save, bases=[LISTED])
    assert one is not None and two is not None
    return one, two


def bytes_of(kept: Registry, key: str) -> int:
    return next(iter(kept.store.homes(key).values()))


def test_a_talk_is_kept_as_what_follows_its_persona_and_comes_back_whole(
    ctx: ExecContext, tmp_path: Path, quick: None
) -> None:
    kept = opened(ctx, tmp_path)
    _, base, talk = both(ctx)
    ada, key = kept_both(kept, base, talk)
    assert bytes_of(kept, key) == talk.nbytes - len(PROMPT) * ROW
    assert kept.counters.total("shared") == len(PROMPT) * ROW
    told = {one.name: one for one in kept.listing()}
    assert told["ada"].base is None and told["talk"].base is not None and told["talk"].base.key == ada
    assert "disk" in kept.store.homes(ada), "its base is saved with it"
    again = opened(ctx, tmp_path)
    for one in (kept, again):
        found = one.get(key)
        assert found is not None and equal(completed(found, ctx.bytes), talk)
        plan, found = one.reenter(TALKS, PROMPT + MORE + [1])
        assert plan.way is Way.RESTORE and found is not None and equal(completed(found, ctx.bytes), talk)


def test_without_a_pinned_beginning_in_those_realms_it_is_whole(ctx: ExecContext, tmp_path: Path) -> None:
    kept = opened(ctx, tmp_path)
    toy, base, talk = both(ctx)
    ada = kept.put(base, LISTED, name="ada")
    assert ada is not None
    for pin, bases in ((False, [LISTED]), (True, [TALKS]), (True, [])):
        (kept.pin if pin else kept.unpin)(ada)
        key = kept.put(talk, TALKS, name="talk", bases=bases)
        assert key is not None and bytes_of(kept, key) == talk.nbytes
    kept.unpin(ada)
    kept.unpin(ada)
    kept.hold(ada, 60)
    assert kept.put(talk, TALKS, name="talk", bases=[LISTED]) and kept.counters.total("shared") == 0, "held, not pinned"
    toy.open(PROMPT, WARM)
    longer = kept.put(base, LISTED, name="ada", pin=True)
    assert longer == ada and kept.put(base, LISTED, name="ada", pin=True, bases=[LISTED]) == ada
    assert kept.counters.total("shared") == 0, "nothing is its own base"


def test_of_several_the_longest_is_the_base(ctx: ExecContext, tmp_path: Path) -> None:
    kept = opened(ctx, tmp_path)
    toy = ToyHybrid(ctx).open(PROMPT, WARM)
    short = kept.put(taken(toy, PROMPT), LISTED, name="short", pin=True)
    follow(toy, MORE[:3])
    long = kept.put(taken(toy, PROMPT + MORE[:3]), LISTED, name="long", pin=True)
    follow(toy, MORE[3:])
    kept.put(taken(toy, PROMPT + MORE), TALKS, name="talk", bases=[LISTED])
    assert [one.base.key for one in kept.listing() if one.base is not None] == [long] != [short]


def test_a_base_stays_as_long_as_a_delta_leans_on_it(ctx: ExecContext, tmp_path: Path, quick: None) -> None:
    _, base, talk = both(ctx)
    kept = opened(ctx, tmp_path, host=2 * talk.nbytes, ttl_s=100)
    ada, key = kept_both(kept, base, talk, save=False)
    kept.unpin(ada)
    clock = kept._clock
    assert isinstance(clock, Seconds)
    kept.pin(key)
    clock.now += 200
    assert ada in kept and key in kept, "out of time, and needed"
    filler = [kept.put(replace(talk, label=str(n)), TALKS, name=f"filler {n}") for n in range(8)]
    assert any(one is not None for one in filler) and ada in kept
    found = kept.get(key)
    assert found is not None and equal(completed(found, ctx.bytes), talk)
    kept.remove(key)
    clock.now += 200
    assert ada not in kept, "nothing leans on it any more"


def test_on_disk_too_the_base_is_the_last_to_go(ctx: ExecContext, tmp_path: Path, quick: None) -> None:
    _, base, talk = both(ctx)
    ada, key = kept_both(opened(ctx, tmp_path, disk=40_000), base, talk)
    alone = opened(ctx, tmp_path, host=0, disk=40_000)  # another process; nothing is pinned in it
    for n in range(40):
        alone.put(replace(talk, label=str(n)), TALKS, name=f"filler {n}")
        assert key not in alone or ada in alone
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 40_000


@pytest.mark.parametrize("how", ["removed", "changed", "damaged"])
def test_a_talk_whose_base_went_is_refused_and_rebuilt(ctx: ExecContext, tmp_path: Path, quick: None, how: str) -> None:
    _, base, talk = both(ctx)
    ada, key = kept_both(opened(ctx, tmp_path), base, talk)
    kept = opened(ctx, tmp_path)
    if how == "removed":
        kept.remove(ada)
    elif how == "changed":
        kept.put(replace(base, tensors={n: t.clone() + 1 for n, t in base.tensors.items()}), LISTED, name="ada")
    else:
        file = tmp_path / f"{ada}.safetensors"
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    assert kept.reenter(TALKS, PROMPT + MORE + [1], Live())[0].way is Way.REBUILD
    assert key not in kept and kept.counters.total("evictions", cause="base") == 1
    assert kept.counters.total("misses", cause="base") == 1 and kept.counters.total("shared") == 0


def test_a_base_made_again_with_the_same_bytes_serves_again(ctx: ExecContext, tmp_path: Path, quick: None) -> None:
    _, base, talk = both(ctx)
    ada, key = kept_both(opened(ctx, tmp_path), base, talk)
    kept = opened(ctx, tmp_path)
    kept.remove(ada)
    assert kept.put(base, LISTED, name="ada", pin=True) == ada
    found = kept.get(key)
    assert found is not None and equal(completed(found, ctx.bytes), talk)


def test_where_the_base_finds_no_room_on_disk_neither_does_the_delta(ctx: ExecContext, tmp_path: Path) -> None:
    _, base, talk = both(ctx)
    kept = opened(ctx, tmp_path, disk=base.nbytes // 2 + 8000)
    ada = kept.put(base, LISTED, name="ada", pin=True)
    key = kept.put(talk, TALKS, name="talk", bases=[LISTED])
    assert ada is not None and key is not None
    big = replace(base, label="in the way" * 700)
    assert kept.put(big, LISTED, name="ada", pin=True) == ada
    assert not kept.save(key) and not list(tmp_path.iterdir())


def test_what_was_given_out_can_be_put_under_another_name_and_stands_alone(ctx: ExecContext, tmp_path: Path) -> None:
    kept = opened(ctx, tmp_path)
    _, base, talk = both(ctx)
    ada, key = kept_both(kept, base, talk, save=False)
    found = kept.get(key)
    assert found is not None
    copied = kept.put(found, TALKS, name="copy")
    kept.remove(ada)
    assert copied is not None and copied == named_key("copy", TALKS)
    alone = kept.get(copied)
    assert alone is not None and alone.base is None and equal(alone, talk)
    with pytest.raises(CapsuleError, match="'ada'"):
        kept.get(key)
