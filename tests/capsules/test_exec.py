"""The contract suite of capsules.exec, over every backend."""

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from capsules import Buffer, ExecContext, Prefix, Role, ShapeKey
from capsules.errors import BufferMisuse, CapsuleError, CaptureError, GraphMissing
from tests.capsules.toy import dead_view

ONE = ShapeKey(n=1)


def io(ctx: ExecContext, name: str, *values: float) -> Tensor:
    tensor = ctx.buffer(name, [len(values)], torch.float32, role=Role.IO).tensor
    tensor.copy_(torch.tensor(values))
    return tensor


class TestBuffers:
    def test_are_zero_filled_named_and_found(self, ctx: ExecContext) -> None:
        made = ctx.buffer("a.x", [2, 3], torch.bfloat16, role=Role.STATE, live=Prefix(1))
        assert made.tensor.eq(0).all()
        assert ctx["a.x"] is made
        assert ctx.owner_of(made.tensor[1:, :2]) is made
        assert ctx.owner_of(torch.zeros(3, device=ctx.device)) is None
        assert made.layout == "a.x bfloat16 [2, 3] prefix of axis 1"
        assert (made.scope, made.nbytes) == ("a", 12)

    def test_a_name_is_taken_once(self, ctx: ExecContext) -> None:
        io(ctx, "a.x", 1)
        with pytest.raises(BufferMisuse, match=r"'a\.x' exists already"):
            io(ctx, "a.x", 1)
        ctx.graph("a.g")
        with pytest.raises(BufferMisuse, match=r"'a\.g' exists already"):
            ctx.graph("a.g")

    def test_an_unknown_name_lists_what_exists(self, ctx: ExecContext) -> None:
        io(ctx, "a.x", 1)
        with pytest.raises(BufferMisuse, match=r"'b'; declared: a\.x"):
            ctx["b"]

    def test_two_names_may_share_one_allocation(self, ctx: ExecContext) -> None:
        whole = torch.zeros(8, device=ctx.device)
        left, right = ctx.adopt("w.left", whole[:4]), ctx.adopt("w.right", whole[4:])
        assert ctx.owner_of(whole[4:6]) is right
        assert ctx.owner_of(whole[:4]) is left
        assert ctx.owner_of(whole) is None

    @pytest.mark.parametrize("position", [-1, 5])
    def test_a_live_extent_is_bounded(self, ctx: ExecContext, position: int) -> None:
        made = ctx.buffer("a.kv", [4], torch.float32, role=Role.STATE, live=Prefix(0))
        with pytest.raises(BufferMisuse, match=r"outside 0\.\.4"):
            made.live_view(position)

    def test_the_live_extent_is_a_prefix_of_its_axis(self, ctx: ExecContext) -> None:
        made = ctx.buffer("a.kv", [2, 5], torch.float32, role=Role.STATE, live=Prefix(1))
        assert (made.live_view(2).shape, dead_view(made, 2).shape) == ((2, 2), (2, 3))

    def test_release_frees_one_scope(self, ctx: ExecContext) -> None:
        gone, kept = weakref.ref(io(ctx, "a.x", 1)), io(ctx, "b.x", 1)
        ctx.graph("a.g").capture(ONE, lambda: ctx["a.x"].tensor.add_(1))
        ctx.release("a")
        gc.collect()
        assert gone() is None
        assert ctx.owner_of(kept) is ctx["b.x"]
        assert [b.name for b in ctx.buffers()] == ["b.x"]


class TestShapeKey:
    def test_is_exact_printable_and_unordered(self) -> None:
        assert ShapeKey(tokens=64, lanes=1) == ShapeKey(lanes=1, tokens=64)
        assert str(ShapeKey(tokens=64, lanes=1)) == "(lanes=1, tokens=64)"
        assert ShapeKey(tokens=64) != ShapeKey(tokens=65)
        assert ShapeKey(tokens=64)["tokens"] == 64

    @pytest.mark.parametrize("bad", [-1, 1.5, True, None])
    def test_takes_only_sizes(self, bad: object) -> None:
        with pytest.raises(ValueError, match="integers from 0 up"):
            ShapeKey(n=bad)  # type: ignore[arg-type]


class TestGraphs:
    def test_a_replay_equals_the_plain_call(self, ctx: ExecContext) -> None:
        noise = torch.Generator().manual_seed(0)
        x = ctx.adopt("m.x", torch.randn(3, 64, generator=noise).to(ctx.device), role=Role.IO).tensor
        w = ctx.adopt("m.w", torch.randn(64, 64, generator=noise).to(ctx.device)).tensor
        at = ctx.buffer("m.at", [1], torch.int64, role=Role.STATE).tensor
        seen = ctx.buffer("m.seen", [64, 3, 64], torch.float32, role=Role.STATE, live=Prefix(0)).tensor

        def step() -> None:
            h = torch.nn.functional.silu(x @ w.T)
            a, b = h.split(32, -1)
            heads = h.view(3, 4, 16).transpose(0, 1)[None]
            mixed = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
            top, where = torch.cat([b, a], -1).to(torch.bfloat16).topk(5)
            y = torch.nn.functional.layer_norm(mixed[0].transpose(0, 1).reshape(3, 64), [64])
            y = y + w[where.flatten()[:3]] * top.float().sum() * 1e-3
            seen.index_copy_(0, at, y[None])
            x.copy_(torch.where(y > 0, y, y.cumsum(-1) * 0.1))
            at.add_(1)

        start = x.clone()
        graph = ctx.graph("m.step", pool=ctx.pool("m"))
        graph.capture(ONE, step)
        assert torch.equal(x, start), "a capture leaves no trace"
        assert int(at) == 0
        for _ in range(20):
            graph.replay(ONE)
        replayed, state = x.clone(), seen.clone()
        x.copy_(start)
        at.zero_()
        seen.zero_()
        with torch.no_grad():
            for _ in range(20):
                step()
        assert torch.equal(x, replayed)
        assert torch.equal(seen, state)
        assert {b.name for b in graph.touched(ONE)} == {"m.x", "m.at", "m.seen"}

    def test_overwritten_input_changes_the_next_replay_without_recapture(self, ctx: ExecContext) -> None:
        x, y = io(ctx, "a.x", 1, 2), io(ctx, "a.y", 0, 0)
        graph = ctx.graph("a.double")
        graph.capture(ONE, lambda: y.copy_(x * 2))
        graph.replay(ONE)
        assert y.tolist() == [2, 4]
        x.copy_(torch.tensor([5.0, 7.0]))
        graph.replay(ONE)
        assert y.tolist() == [10, 14]

    def test_a_capture_without_preserve_keeps_what_the_step_did(self, ctx: ExecContext) -> None:
        x = io(ctx, "a.x", 1)
        ctx.graph("a.g").capture(ONE, lambda: x.add_(1), preserve=False)
        assert x.tolist() == [2]

    def test_a_missing_variant_lists_what_exists(self, ctx: ExecContext) -> None:
        x = io(ctx, "a.x", 1)
        graph = ctx.graph("a.g")
        with pytest.raises(GraphMissing, match=r"a\.g: no variant for \(n=2\); captured: nothing"):
            graph.replay(ShapeKey(n=2))
        graph.capture(ONE, lambda: x.add_(1))
        with pytest.raises(GraphMissing, match=r"captured: \(n=1\)\. Pad"):
            graph.replay(ShapeKey(n=2))
        with pytest.raises(CaptureError, match="captured already"):
            graph.capture(ONE, lambda: None)

    def test_a_moved_buffer_is_noticed_before_the_replay(self, ctx: ExecContext) -> None:
        x = io(ctx, "a.x", 1, 2)
        graph = ctx.graph("a.g")
        graph.capture(ONE, lambda: x.add_(1))
        x.set_(torch.zeros(2, device=ctx.device))
        with pytest.raises(BufferMisuse, match=r"a\.x: moved from 0x"):
            graph.replay(ONE)


REFUSED: dict[str, tuple[Callable[[Tensor], object], str]] = {
    "item": (lambda x: x.sum().item(), "reads a tensor on the host"),
    "int": (lambda x: int(x[0]), "reads a tensor on the host"),
    "branch": (lambda x: x.add_(1) if x[0] > 0 else x, "reads a tensor on the host"),
    "tolist": (lambda x: x.tolist(), "reads a tensor on the host"),
    "numpy": (lambda x: x.cpu().numpy(), "reads a tensor on the host"),
    "equal": (lambda x: torch.equal(x, x), "reads a tensor on the host"),
    "nonzero": (lambda x: x.nonzero(), "depends on data"),
    "mask": (lambda x: x[x > 0], "depends on data"),
    "mask write": (lambda x: x.__setitem__(x > 0, x.sum()), "depends on data"),
    "unique": (lambda x: x.unique(), "depends on data"),
    "rand": (lambda x: x.copy_(torch.rand(2, device=x.device)), "hidden random state"),
    "bernoulli": (lambda x: x.bernoulli_(0.5), "hidden random state"),
    "dropout": (lambda x: torch.nn.functional.dropout(x, 0.5), "hidden random state"),
    "literal": (lambda x: x + torch.tensor([1.0, 2.0]), "host data"),
    "resize": (lambda x: x.resize_(1), "may move a buffer"),
    "set": (lambda x: x.set_(torch.zeros(2, device=x.device)), "may move a buffer"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_a_capture_cannot_replay_is_refused_and_undone(ctx: ExecContext, why: str) -> None:
    bad, message = REFUSED[why]
    x = io(ctx, "a.x", 1, 2)

    def step() -> None:
        x.add_(10)
        bad(x)

    graph = ctx.graph("a.g")
    with pytest.raises(CaptureError, match=message):
        graph.capture(ONE, step)
    assert x.tolist() == [1, 2]
    graph.capture(ONE, lambda: x.add_(1))
    graph.replay(ONE)
    assert x.tolist() == [2, 3]


def test_undeclared_memory_is_refused_with_its_shape(ctx: ExecContext) -> None:
    x, stray = io(ctx, "a.x", 1, 2), torch.ones(2, device=ctx.device)
    with pytest.raises(CaptureError, match=r"a\.g \(n=1\): the step reads a tensor \[2\].*declared buffer"):
        ctx.graph("a.g").capture(ONE, lambda: x.add_(stray))


def test_state_may_not_be_allocated_and_captures_may_not_nest(ctx: ExecContext) -> None:
    graph, inner = ctx.graph("a.g"), ctx.graph("a.inner")
    with pytest.raises(CaptureError, match="declared inside a step"):
        graph.capture(ONE, lambda: io(ctx, "a.late", 1))
    with pytest.raises(CaptureError, match="may not capture another"):
        graph.capture(ONE, lambda: inner.capture(ONE, lambda: None))


def test_an_error_in_the_step_itself_passes_through(ctx: ExecContext) -> None:
    x = io(ctx, "a.x", 1, 2)
    with pytest.raises(ZeroDivisionError):
        ctx.graph("a.g").capture(ONE, lambda: x.add_(1).mul_(1 // 0))
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("wanted", ["tpu", "meta"])
def test_an_unknown_device_says_what_there_is(wanted: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match="cpu"):
        ExecContext(wanted)


def test_cuda_without_a_device_says_what_to_do() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device; run without one to un-skip")
    with pytest.raises(ValueError, match=r"built without CUDA; install|[Ii]nstall or update the NVIDIA"):
        ExecContext("cuda")


class Body:
    """A small recurrent network whose input and output are buffers of the caller's choice."""

    def __init__(self, ctx: ExecContext, name: str, source: Buffer, target: Buffer) -> None:
        noise = torch.Generator().manual_seed(len(name))
        n = source.tensor.numel()
        weight = ctx.adopt(f"{name}.w", (torch.randn(n, n, generator=noise) / n**0.5).to(ctx.device)).tensor
        memory = ctx.buffer(f"{name}.memory", [n], torch.float32, role=Role.STATE).tensor

        def step() -> None:
            memory.copy_(torch.tanh(weight @ source.tensor + 0.5 * memory))
            target.tensor.copy_(memory)

        self.graph = ctx.graph(f"{name}.step", pool=ctx.pool(name))
        self.graph.capture(ONE, step)


class TestPlannerAndActor:
    """Two models in one context: the planner's output buffer is the actor's input buffer."""

    def run(self, ctx: ExecContext, goals: list[float]) -> list[list[float]]:
        goal = ctx.buffer("planner.goal", [6], torch.float32, role=Role.IO)
        shared = ctx.buffer("planner.latent", [6], torch.float32, role=Role.IO)
        action = ctx.buffer("actor.action", [6], torch.float32, role=Role.IO)
        planner, actor = Body(ctx, "planner", goal, shared), Body(ctx, "actor", shared, action)
        addresses = {b.name: b.tensor.data_ptr() for b in ctx.buffers()}
        actions = []
        for value in goals:
            goal.tensor.fill_(value)
            planner.graph.replay(ONE)
            actor.graph.replay(ONE)
            actions.append(action.tensor.tolist())
        assert {b.name: b.tensor.data_ptr() for b in ctx.buffers()} == addresses
        return actions

    def test_a_changed_goal_takes_effect_in_mid_run(self, ctx: ExecContext) -> None:
        steady = self.run(ctx, [1.0] * 8)
        changed = self.run(ExecContext(ctx.device.type), [1.0] * 4 + [-2.0] * 4)
        assert changed[:4] == steady[:4]
        assert all(a != b for a, b in zip(changed[4:], steady[4:], strict=True))


def test_every_refusal_shares_one_base() -> None:
    for error in (BufferMisuse, CaptureError, GraphMissing):
        assert issubclass(error, CapsuleError)
