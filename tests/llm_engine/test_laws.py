"""The capsule laws on a small hybrid, a mixture and plain decoders, bit for bit, in every form, greedy and sampled."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from capsules import Role
from capsules.disk import CapsuleFolder
from capsules.errors import CapsuleMismatch
from llm_engine import Cancelled, HybridLLM, Sampling, StateError
from tests.capsules.toy import dead_view

pytestmark = pytest.mark.slow

GREEDY = Sampling.greedy()
WARM = Sampling(temperature=0.9, top_k=40, top_p=0.95, presence_penalty=1.0, repetition_penalty=1.1, seed=11)
DTYPES = ["float32", "bfloat16", "float8", "int8", "int4"]
PROMPT = torch.randint(0, 160, (150,), generator=torch.Generator().manual_seed(5)).tolist()
OTHER = torch.randint(0, 160, (217,), generator=torch.Generator().manual_seed(6)).tolist()


@pytest.fixture(scope="session", params=["two", "crowd", "qwen3"])
def shape(request: pytest.FixtureRequest) -> str:
    """One of each kind of layers; a llama is held to them by a published file (gguf/test_smollm.py)."""
    return str(request.param)


@pytest.fixture(scope="session")
def engine(engine: Callable[..., Any], shape: str) -> Callable[..., Any]:
    """That shape's engine. Without parameters of its own: they would replace those of the fixture that it extends."""

    def make(shape: str = shape, **options: Any) -> Any:
        return engine(shape, **options)

    return make


def state_of(llm: HybridLLM) -> dict[str, Tensor]:
    """A copy of all live bytes."""
    return dict(llm.snapshot().tensors)


def assert_same(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert actual.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(actual[name], tensor), name


def scramble(llm: HybridLLM) -> None:
    """Large finite junk in everything that is not a weight, dead extents included."""
    for role in (Role.STATE, Role.IO, Role.SCRATCH):
        for buffer in llm._ctx.buffers("llm", role):
            buffer.tensor.fill_(-3e4 if buffer.tensor.is_floating_point() else 1)


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "sampled"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_restore_is_never_having_left(engine: Callable[..., Any], dtype: str, sampling: Sampling) -> None:
    llm = engine(dtype=dtype)
    llm.append(PROMPT)
    llm.decode(7, sampling)
    capsule = llm.snapshot("here")
    expected = llm.decode(24)
    after = state_of(llm)
    llm.reset()
    llm.append(OTHER)
    llm.decode(40, WARM)
    scramble(llm)
    llm.restore(capsule)
    assert llm.position == 157
    assert llm.decode(24) == expected
    assert_same(state_of(llm), after)


@pytest.mark.parametrize(("dtype", "total", "boundary"), [
    *((dtype, total, boundary) for dtype in DTYPES[:2] for total in (129, 150, 192, 193) for boundary in (64, 128)),
    *((dtype, total, boundary) for dtype in DTYPES[2:] for total, boundary in ((150, 128), (193, 64))),
])  # fmt: skip
def test_append_after_restore_is_a_cold_run(
    engine: Callable[..., Any], dtype: str, boundary: int, total: int
) -> None:
    llm = engine(dtype=dtype)
    ids = (PROMPT + OTHER)[:total]
    cold = llm.append(ids)
    expected = state_of(llm)
    llm.reset()
    llm.append(ids[:boundary])
    capsule = llm.snapshot()
    llm.append(OTHER[:77])
    scramble(llm)
    llm.restore(capsule)
    assert torch.equal(llm.append(ids[boundary:]), cold)
    assert_same(state_of(llm), expected)


def test_branches_do_not_see_each_other(engine: Callable[..., Any]) -> None:
    llm = engine()
    llm.append(PROMPT)
    root = llm.snapshot()
    alone = []
    for branch in range(3):
        llm.restore(root)
        llm.append([branch])
        alone.append(llm.decode(10, WARM))
    together = []
    for branch in llm.fork(root, 3):
        llm.append([branch])
        together.append(llm.decode(10, WARM))
    assert together == alone
    assert len(set(map(tuple, alone))) > 1


@pytest.mark.parametrize(("dtype", "stride"), [("float32", 1), ("bfloat16", 25)])
def test_rollback_is_the_state_that_was_at_every_depth(
    engine: Callable[..., Any], dtype: str, stride: int
) -> None:
    """One long reply whose state is recorded at every position; then back by one position after the other."""
    llm = engine(dtype=dtype)
    llm.append(PROMPT)
    was = {llm.position: state_of(llm)}
    llm.set_sampling(WARM)
    for _ in range(200):
        llm.step()
        if llm.position % stride == 0:
            was[llm.position] = state_of(llm)
    for position in sorted(was, reverse=True):
        scramble_dead(llm)
        llm.rollback(position)
        assert llm.position == position
        assert_same(state_of(llm), was[position])


def scramble_dead(llm: HybridLLM) -> None:
    for buffer in llm._ctx.buffers("llm", Role.STATE):
        dead_view(buffer, llm.position).fill_(1e4)


@pytest.mark.parametrize("depth", [1, 16, 17, 99, 100, 120, 200, 250])
def test_rollback_of_any_depth_at_once_goes_on_as_a_fresh_run(engine: Callable[..., Any], depth: int) -> None:
    llm = engine()
    llm.append(PROMPT)
    reply = llm.decode(100, WARM)
    llm.rollback(250 - depth)
    rolled = state_of(llm) if depth < 250 else None
    onward = llm.decode(12, WARM) if depth < 250 else []
    llm.reset()
    if depth == 250:
        assert llm.position == 0
        return
    llm.append(PROMPT[: 250 - depth])
    for token in reply[: max(0, 100 - depth)]:
        assert llm.step() == token
    assert_same(state_of(llm), rolled or {})
    assert llm.decode(12, WARM) == onward


def test_rollback_of_exactly_the_last_append_and_of_an_unfolded_token(engine: Callable[..., Any]) -> None:
    llm = engine()
    llm.append(PROMPT)
    before = state_of(llm)
    llm.append(OTHER)
    llm.rollback(150)
    assert_same(state_of(llm), before)
    llm.set_sampling(WARM)
    first = llm.step()
    llm.rollback(150)
    assert_same(state_of(llm), before)
    assert llm.step() == first


def test_rollback_reaches_back_past_a_restore(engine: Callable[..., Any]) -> None:
    llm = engine()
    llm.append(PROMPT)
    reply = llm.decode(20, WARM)
    llm.rollback(160)
    expected = state_of(llm)
    assert llm.decode(10) == reply[10:]
    capsule = llm.snapshot()
    llm.reset()
    llm.append(OTHER)
    scramble(llm)
    llm.restore(capsule)
    llm.rollback(160)  # no checkpoint of this session lies there: everything is folded again, as it was
    assert_same(state_of(llm), expected)


@pytest.mark.parametrize("forgotten", ["recurrent", "window", "kv", "logits"])
def test_each_part_of_the_closure_matters(engine: Callable[..., Any], forgotten: str) -> None:
    llm = engine()
    if forgotten in ("recurrent", "window") and not llm.config.linear_layers:
        assert f"llm.{forgotten}" not in {buffer.name for buffer in llm._ctx.buffers("llm", Role.STATE)}
        return
    llm.append(PROMPT)
    capsule = llm.snapshot()
    expected = llm.decode(24, WARM)
    llm.reset()
    llm.append(OTHER)
    stale = llm.state.logits if forgotten == "logits" else llm._ctx[f"llm.{forgotten}"].tensor
    kept = stale.clone()
    llm.restore(capsule)
    stale.copy_(kept)
    assert llm.decode(24, WARM) != expected


def test_a_foreign_capsule_is_refused_and_nothing_changes(engine: Callable[..., Any]) -> None:
    other = engine("three")
    other.append([1, 2, 3])
    foreign = other.snapshot("theirs")
    llm = engine()
    llm.append(PROMPT)
    before = state_of(llm)
    with pytest.raises(CapsuleMismatch, match=r"weights|layout"):
        llm.restore(foreign)
    for dtype in DTYPES[1:]:
        other = engine(dtype=dtype)
        other.append([1, 2, 3])
        with pytest.raises(CapsuleMismatch, match=rf"dtype is torch\.float32 here and .*{dtype} there"):
            llm.restore(other.snapshot())
    assert_same(state_of(llm), before)


def test_asking_whether_the_turn_is_over_leaves_no_trace(engine: Callable[..., Any]) -> None:
    llm = engine()
    llm.end_of_turn = 17
    llm.append(PROMPT)
    before, expected = state_of(llm), None
    for ids in ([3], OTHER[:70], []):
        got = llm.turn_end_probability(ids)
        assert_same(state_of(llm), before)
        assert llm.position == 150
        logits = llm.append(ids) if ids else llm.logits
        expected = float(logits.softmax(-1)[17])
        llm.rollback(150)
        assert got == expected
    llm.end_of_turn = None
    with pytest.raises(StateError, match="end-of-turn"):
        llm.turn_end_probability([3])


def test_cancel_stops_between_steps_and_between_chunks(engine: Callable[..., Any]) -> None:
    llm = engine()
    llm.append(PROMPT)
    whole = llm.decode(9, WARM)
    llm.rollback(150)
    answers = iter([False, False, False, True])
    assert llm.decode(9, WARM, cancel=lambda: next(answers)) == whole[:3]
    assert llm.decode(6) == whole[3:]
    assert llm.decode(9, stop={0, *range(160)}) == [llm.tokens[-1]]

    llm.reset()
    answers = iter([False, False, True])
    with pytest.raises(Cancelled, match="128 of 217"):
        llm.append(OTHER, cancel=lambda: next(answers))
    assert llm.position == 128
    with pytest.raises(StateError, match="no logits"):
        llm.step()
    resumed = llm.append(OTHER[128:])
    llm.reset()
    assert torch.equal(llm.append(OTHER), resumed)


def test_nothing_is_captured_as_a_talk_grows(engine: Callable[..., Any]) -> None:
    llm = engine()
    captured = llm.graphs.captured
    llm.append(PROMPT)
    llm.decode(200, WARM)
    llm.append(OTHER[:100])
    llm.decode(llm.max_positions - llm.position, GREEDY)
    assert llm.graphs.captured == captured
    with pytest.raises(StateError, match="max_positions"):
        llm.step()
    with pytest.raises(StateError, match="max_positions"):
        llm.append([1])


def test_bad_requests_change_nothing(engine: Callable[..., Any]) -> None:
    llm = engine()
    with pytest.raises(StateError, match="no logits"):
        llm.step()
    llm.append(PROMPT)
    before = state_of(llm)
    for ids in ([], [160], [-1]):
        with pytest.raises(StateError):
            llm.append(ids)
    with pytest.raises(StateError, match="holds 0 to 150"):
        llm.rollback(151)
    assert_same(state_of(llm), before)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rolled_back_saved_and_loaded_is_still_the_state_that_was(
    engine: Callable[..., Any], tmp_path: Path, dtype: str
) -> None:
    llm = engine(dtype=dtype)
    llm.append(PROMPT)
    reply = llm.decode(30, WARM)
    llm.rollback(171)
    expected = state_of(llm)
    folder = CapsuleFolder(tmp_path)
    folder.save("talk", llm.snapshot("talk"))
    llm.reset()
    llm.append(OTHER)
    scramble(llm)
    llm.restore(folder.load("talk", llm.fingerprint))
    assert_same(state_of(llm), expected)
    assert llm.decode(9) == reply[21:]


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "sampled"])
def test_a_draw_among_some_changes_nothing_but_the_token(engine: Callable[..., Any], sampling: Sampling) -> None:
    llm = engine()
    llm.append(PROMPT)
    llm.set_sampling(sampling)
    before, logits = state_of(llm), llm.logits
    likely = llm.step()
    llm.rollback(llm.position - 1)
    among = [token for token in range(5, 25) if token != likely]
    drawn = llm.step(among)
    assert drawn in among
    if sampling is GREEDY:
        assert drawn == max(among, key=lambda token: logits[token])
    llm.rollback(llm.position - 1)
    assert_same(state_of(llm), before)
    assert llm.step() == likely
    with pytest.raises(StateError, match="among"):
        llm.step([10**6])
