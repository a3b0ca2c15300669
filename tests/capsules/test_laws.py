"""The capsule laws of the design on a small hybrid model: equal, never similar."""

import math

import pytest
import torch

from capsules import Capsule, Checkpoint, ExecContext, Fingerprint, Prefix, Role, ShapeKey, fork, restore, snapshot
from capsules.capsule import copy_out, copy_wide
from capsules.errors import BufferMisuse, CapsuleMismatch
from tests.capsules.toy import BACKENDS, ToyHybrid, ToySampling, poison_dead, scramble

PROMPT, OTHER = [3, 1, 4, 1, 5, 9, 2, 6, 5, 35], [8, 9, 7, 9, 3, 2, 3, 8]
GREEDY, WARM = ToySampling(), ToySampling(seed=11)
every_sampling = pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=str)
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)


def state_bytes(toy: ToyHybrid) -> dict[str, list[int]]:
    position = int(toy.position)
    return {
        b.name: b.live_view(position).contiguous().cpu().view(torch.uint8).flatten().tolist()
        for b in toy.ctx.buffers(toy.scope, Role.STATE)
    }


@every_sampling
@every_dtype
def test_l1_restore_is_never_having_left(ctx: ExecContext, sampling: ToySampling, dtype: torch.dtype) -> None:
    toy = ToyHybrid(ctx, dtype=dtype).open(PROMPT, sampling)
    capsule = toy.snapshot()
    expected, bytes_after = toy.decode(40), None
    bytes_after = state_bytes(toy)
    toy.open(OTHER, ToySampling(seed=99)).decode(60)
    scramble(ctx, "toy")
    toy.restore(capsule)
    poison_dead(ctx, "toy", capsule.position)
    assert toy.decode(40) == expected
    assert state_bytes(toy) == bytes_after


@every_sampling
def test_l3_branches_do_not_see_each_other(ctx: ExecContext, sampling: ToySampling) -> None:
    toy = ToyHybrid(ctx).open(PROMPT, sampling)
    capsule = toy.snapshot()
    expected = toy.decode(20)
    outcomes = []
    for branch in fork(ctx, capsule, toy.fingerprint, 3):
        if branch == 1:
            toy.token.fill_(12)
        outcomes.append(toy.decode(20))
    assert outcomes[0] == outcomes[2] == expected
    assert outcomes[1] != expected


@every_sampling
@every_dtype
def test_l4_rollback_is_the_state_that_was(ctx: ExecContext, sampling: ToySampling, dtype: torch.dtype) -> None:
    toy = ToyHybrid(ctx, dtype=dtype).open(PROMPT, sampling)
    points: list[tuple[Checkpoint, dict[str, list[int]]]] = [(toy.checkpoint(), state_bytes(toy))]
    said: list[int] = []
    for _ in range(50):
        said += toy.decode(1)
        points.append((toy.checkpoint(), state_bytes(toy)))
    for depth in (1, 2, 7, 13, 49, 50):
        point, was = points[50 - depth]
        toy.rollback(point)
        assert state_bytes(toy) == was
        assert toy.decode(depth) == said[50 - depth :]


def test_l5_the_prefix_rows_alone_are_wrong(ctx: ExecContext) -> None:
    toy = ToyHybrid(ctx).open(PROMPT, GREEDY)
    capsule = toy.snapshot()
    expected = toy.decode(30)
    for stale in ("memory", "window"):
        toy.restore(capsule)
        ctx[f"toy.{stale}"].tensor.zero_()
        assert toy.decode(30) != expected, stale


@pytest.mark.parametrize("forgotten", ["memory", "window", "token", "position", "seed", "kv"])
def test_a_buffer_left_out_of_the_closure_is_noticed(ctx: ExecContext, forgotten: str) -> None:
    toy = ToyHybrid(ctx, forget=forgotten).open(PROMPT, WARM)
    capsule = snapshot(ctx, "toy", int(toy.position), toy.fingerprint)
    expected = toy.decode(30)
    toy.open(OTHER, ToySampling(seed=99)).decode(30)
    scramble(ctx, "toy")
    toy.restore(capsule)
    toy.position.clamp_(max=200)
    assert toy.decode(30) != expected


def test_an_idle_neighbour_is_untouched(ctx: ExecContext) -> None:
    one, two = ToyHybrid(ctx, "one").open(PROMPT, GREEDY), ToyHybrid(ctx, "two").open(OTHER, GREEDY)
    before = state_bytes(two)
    capsule = one.snapshot()
    one.decode(5)
    one.restore(capsule)
    assert state_bytes(two) == before


class TestL7Refusal:
    def capsule_with(self, toy: ToyHybrid, fingerprint: Fingerprint) -> Capsule:
        return snapshot(toy.ctx, "toy", int(toy.position), fingerprint, tokens=PROMPT, label="ada")

    @pytest.mark.parametrize("fact", ["weights", "code", "template"])
    def test_another_deployment_is_named(self, ctx: ExecContext, fact: str) -> None:
        toy = ToyHybrid(ctx).open(PROMPT, GREEDY)
        facts = {"weights": "toy", "code": "toy/1"} | {fact: "other"}
        before = state_bytes(toy)
        foreign = self.capsule_with(toy, Fingerprint.of(ctx, "toy", **facts))
        with pytest.raises(CapsuleMismatch, match=rf"'ada'.*{fact} is .* here and other there.*10 tokens"):
            toy.restore(foreign)
        assert state_bytes(toy) == before

    def test_another_layout_names_the_buffer(self, ctx: ExecContext) -> None:
        toy, other = ToyHybrid(ctx).open(PROMPT, GREEDY), ToyHybrid(ctx, "other", dtype=torch.bfloat16)
        facts = dict(other.fingerprint.facts)
        facts["layout"] = facts["layout"].replace("other.", "toy.")
        with pytest.raises(CapsuleMismatch, match=r"toy\.kv float32 .* here and \[toy\.kv bfloat16"):
            toy.restore(self.capsule_with(toy, Fingerprint(tuple(sorted(facts.items())))))

    def test_a_capsule_that_lacks_a_buffer_restores_nothing(self, ctx: ExecContext) -> None:
        toy = ToyHybrid(ctx).open(PROMPT, GREEDY)
        whole = toy.snapshot()
        short = Capsule("", "toy", whole.position, whole.fingerprint, (), {}, dict(list(whole.tensors.items())[:-1]))
        toy.decode(3)
        before = state_bytes(toy)
        with pytest.raises(CapsuleMismatch, match=r"toy\.seed at position 10 .* holds nothing"):
            toy.restore(short)
        assert state_bytes(toy) == before

    def test_a_scope_without_state_is_refused(self, ctx: ExecContext) -> None:
        with pytest.raises(CapsuleMismatch, match="no state buffers"):
            Fingerprint.of(ctx, "nobody", weights="", code="")


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_episode_of_a_diffusion_policy_resets_byte_for_byte(backend: str) -> None:
    """Four denoising steps per action over a plan that carries over; a reset is one restore of a small buffer."""
    ctx = ExecContext(backend)
    noise = torch.Generator().manual_seed(1)
    weight = ctx.adopt("policy.w", (torch.randn(12, 12, generator=noise) / 4).to(ctx.device)).tensor
    plan = ctx.buffer("policy.plan", [8, 12], torch.float32, role=Role.STATE).tensor
    clock = ctx.buffer("policy.clock", [1], torch.int64, role=Role.STATE, live=None).tensor
    action = ctx.buffer("policy.action", [12], torch.float32, role=Role.IO).tensor
    rows = ctx.adopt("policy.rows", torch.arange(96, device=ctx.device).view(8, 12)).tensor

    def act() -> None:
        drawn = torch.sin((rows + clock * 97).float() * 12.9898) * 43758.5453
        x = (drawn - drawn.floor()) * 2 - 1
        for level in (1.0, 0.6, 0.3, 0.1):
            x = x - level * torch.tanh(x @ weight + 0.5 * plan)
        plan.copy_(torch.roll(x, -1, 0))
        action.copy_(x[0])
        clock.add_(1)

    graph = ctx.graph("policy.act")
    graph.capture(ShapeKey(actions=1), act)

    def episode(steps: int) -> list[list[float]]:
        taken = []
        for _ in range(steps):
            graph.replay(ShapeKey(actions=1))
            taken.append(action.tolist())
        return taken

    fingerprint = Fingerprint.of(ctx, "policy", weights="p", code="p/1")
    start = snapshot(ctx, "policy", 0, fingerprint, label="episode start")
    first = episode(20)
    plan.fill_(float("nan"))
    restore(ctx, start, fingerprint)
    assert episode(20) == first
    assert start.nbytes == 8 * 12 * 4 + 8


def test_a_prefix_must_name_an_axis(ctx: ExecContext) -> None:
    with pytest.raises(BufferMisuse, match=r"axes 0\.\.0"):
        ctx.buffer("x.kv", [4], torch.float32, role=Role.STATE, live=Prefix(1))


@pytest.mark.parametrize(
    ("shape", "rows"), [((2, 2, 40, 3, 16), 7), ((2, 2, 40, 3, 5), 7), ((3, 24), 24), ((1,), 1), ((4, 10, 16), 9)]
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64, torch.bool, torch.uint8])
def test_wide_copies_move_the_same_bits(shape: tuple[int, ...], rows: int, dtype: torch.dtype) -> None:
    """Any bits, those of no number too; rows of a cache on one side, close together on the other."""
    nbytes = math.prod(shape) * dtype.itemsize
    noise = torch.randint(0, 2 if dtype == torch.bool else 256, (nbytes,), dtype=torch.uint8)
    cache = noise.view(dtype).view(shape)
    axis = len(shape) - 3 if len(shape) > 2 else 0
    rows = min(rows, shape[axis])
    live = cache.narrow(axis, 0, rows)
    copies = copy_out({"live": live}, lambda count: torch.empty(count, dtype=torch.uint8), wide=True)
    back = torch.zeros_like(cache)
    copy_wide(back.narrow(axis, 0, rows), copies["live"])
    as_bytes = [one.contiguous().view(torch.uint8) for one in (live, copies["live"], back.narrow(axis, 0, rows))]
    assert torch.equal(as_bytes[0], as_bytes[1]) and torch.equal(as_bytes[0], as_bytes[2])
    assert not back.narrow(axis, rows, shape[axis] - rows).any()
