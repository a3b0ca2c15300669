"""Pictures in a sequence: positions as the oracle's, logits and tokens as the oracle's, and the laws bit for bit."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from capsules.disk import CapsuleFolder
from capsules.errors import CapsuleMismatch
from capsules.prefix import StateKey, prefix_digests
from llm_engine import Cancelled, HybridLLM, Sampling, StateError
from llm_engine.pictures import PictureGrid, PlacedPictures, SeenPicture, virtual_id
from llm_engine.rowstore import PictureStore
from tests.llm_engine.conftest import PAD
from tests.llm_engine.test_laws import assert_same, scramble, scramble_dead, state_of

pytestmark = pytest.mark.slow

GREEDY = Sampling.greedy()
WARM = Sampling(temperature=0.9, top_k=40, top_p=0.95, presence_penalty=1.0, repetition_penalty=1.1, seed=11)
DTYPES = ["float32", "bfloat16"]
WORDS: list[int] = torch.randint(0, 150, (400,), generator=torch.Generator().manual_seed(7)).tolist()

Part = list[int] | tuple[int, int] | tuple[int, int, int]
"""Words, or a picture: rows, columns, and which one of that size."""
LAYOUTS: dict[str, list[Part]] = {
    "none": [WORDS[:70]],
    "first": [(3, 5), WORDS[:9]],
    "middle": [WORDS[:20], (5, 3), WORDS[20:33]],
    "last": [WORDS[:20], (4, 7)],
    "two": [WORDS[:20], (5, 3), WORDS[20:22], (2, 9), WORDS[22:40]],
    "one word between": [WORDS[:7], (3, 4), WORDS[7:8], (3, 4, 1), WORDS[8:9], (2, 2), WORDS[9:14]],
    "over four cells": [WORDS[:40], (13, 15), WORDS[40:57]],
    "strip": [WORDS[:10], (1, 30), WORDS[10:20]],
    "tower": [WORDS[:10], (30, 1), WORDS[10:20]],
    "one row": [WORDS[:10], (1, 1), WORDS[10:20]],
    "twice": [WORDS[:10], (4, 3), WORDS[10:20], (4, 3), WORDS[20:30]],
    "late": [(WORDS * 3)[:1000], (6, 4), WORDS[:12]],
}
TALK: list[Part] = [WORDS[:30], (5, 3), WORDS[30:50], (1, 9), WORDS[50:60], (5, 3), WORDS[60:65], (9, 10), WORDS[65:73]]


def picture_id(part: tuple[int, ...]) -> int:
    rows, columns, which = (*part, 0)[:3]
    return virtual_id(bytes([rows, columns, which, 0, 7, 7, 7, 7]))


def ids_of(parts: Sequence[Part]) -> list[int]:
    return [i for part in parts for i in (part if isinstance(part, list) else [picture_id(part)] * part[0] * part[1])]


def patches_of(part: tuple[int, ...]) -> Tensor:
    """[4 · rows · columns, 1536] as the image processor makes them; a still picture fills both moments alike."""
    generator = torch.Generator().manual_seed(hash(part) % 2**31)
    still = torch.rand(4 * part[0] * part[1], 3, 1, 16, 16, generator=generator) * 2 - 1
    return still.expand(-1, 3, 2, 16, 16).flatten(1)


def show(llm: HybridLLM, parts: Sequence[Part], rows_of: Callable[[tuple[int, ...]], Tensor]) -> None:
    for part in parts:
        if isinstance(part, tuple):
            rows = rows_of(part).to(llm.state.pictures.dtype)
            llm.pictures.put(picture_id(part), SeenPicture(PictureGrid(part[0], part[1]), rows))


def noise(part: tuple[int, ...]) -> Tensor:
    return torch.randn(part[0] * part[1], 48, generator=torch.Generator().manual_seed(hash(part) % 2**31))


def grids_of(parts: Sequence[Part]) -> Tensor:
    return torch.tensor([[1, 2 * part[0], 2 * part[1]] for part in parts if isinstance(part, tuple)])


def expected_logits(reference: Any, parts: Sequence[Part], reply: Sequence[int]) -> Tensor:
    """[T, V] of the oracle, teacher-forced."""
    ids = torch.tensor([[i if i >= 0 else PAD for i in ids_of(parts)] + list(reply)])
    shown = [patches_of(part) for part in parts if isinstance(part, tuple)]
    reference.model.rope_deltas = None
    seen = {
        "pixel_values": torch.cat(shown), "image_grid_thw": grids_of(parts),
        "mm_token_type_ids": (ids == PAD).int(),
    } if shown else {}  # fmt: skip
    with torch.no_grad():
        return reference(ids, use_cache=False, **seen).logits[0]


def embeddings_of(reference: Any) -> Callable[[tuple[int, ...]], Tensor]:
    def look(part: tuple[int, ...]) -> Tensor:
        with torch.no_grad():
            return reference.model.visual(patches_of(part), grids_of([part])).pooler_output

    return look


# ------------------------------------------------------------------------------------------ against the oracle


@pytest.mark.parametrize("layout", LAYOUTS)
def test_positions_are_the_oracles(oracle: Callable[[str], Any], layout: str) -> None:
    parts, model = LAYOUTS[layout], oracle("eyes 12").model.model
    ids = ids_of(parts)
    store = {picture_id(p): SeenPicture(PictureGrid(p[0], p[1]), noise(p)) for p in parts if isinstance(p, tuple)}
    placed = PlacedPictures().with_more(0, ids, store)
    plain = torch.tensor([[i if i >= 0 else PAD for i in ids]])
    positions, deltas = model.get_rope_index(
        plain, mm_token_type_ids=(plain == PAD).int(), image_grid_thw=grids_of(parts) if store else None
    )
    for start in range(0, len(ids), 64):
        rows = min(64, len(ids) - start)
        assert torch.equal(placed.axes(start, rows), positions[-3:, 0, start : start + rows])
    assert placed.delta(len(ids)) == int(deltas)
    assert PlacedPictures.from_json(placed.to_json(), ids) == placed


@pytest.mark.parametrize("layout", LAYOUTS)
def test_prefill_and_32_greedy_tokens_with_pictures(
    oracle: Callable[[str], Any], engine: Callable[..., Any], layout: str
) -> None:
    parts, reference = LAYOUTS[layout], oracle("eyes 12").model
    llm = engine("eyes 12", max_positions=1100 if layout == "late" else 500)
    show(llm, parts, embeddings_of(reference))
    logits = llm.append(ids_of(parts))
    reply = llm.decode(32, GREEDY)
    assert PAD not in reply
    expected = expected_logits(reference, parts, reply)[len(ids_of(parts)) - 1 :]
    assert float((logits.cpu() - expected[0]).abs().max()) < 1e-3
    assert reply == expected[:-1].argmax(-1).tolist()
    assert float((llm.logits.cpu() - expected[-1]).abs().max()) < 1e-3
    if layout != "none":
        assert int(llm.state.rope_delta) == int(reference.model.rope_deltas)


def test_bfloat16_with_a_picture_is_as_close_to_float32_as_the_oracle_is(
    oracle: Callable[[str], Any], engine: Callable[..., Any]
) -> None:
    parts, reference = TALK, oracle("eyes 12").model
    llm = engine("eyes 12", "bfloat16")
    show(llm, parts, embeddings_of(reference))
    exact = expected_logits(reference, parts, [])[-8:]
    rounded = expected_logits(copy.deepcopy(reference).bfloat16(), parts, [])[-8:].float()
    ids = ids_of(parts)
    llm.append(ids[:-7])
    rows = [llm.logits]
    for token in ids[-7:]:
        rows.append(llm.append([token]))

    def error(logits: Tensor) -> float:
        return float((logits - exact).square().mean().sqrt() / exact.square().mean().sqrt())

    ours = torch.stack(rows).cpu()
    print(f"rms error to float32: ours {error(ours):.4f}, transformers {error(rounded):.4f}")
    assert error(ours) < 1.2 * error(rounded)


def test_other_pictures_and_other_places_are_other_states(engine: Callable[..., Any]) -> None:
    llm = engine("eyes 12")
    parts: list[Part] = [WORDS[:20], (5, 3), WORDS[20:30]]
    show(llm, [*parts, (5, 3, 1), (3, 5)], noise)
    one = llm.append(ids_of(parts))
    for other in ((5, 3, 1), (3, 5)):
        llm.reset()
        assert not torch.equal(llm.append(ids_of([WORDS[:20], other, WORDS[20:30]])), one)


# ------------------------------------------------------------------------------------------ laws


@pytest.fixture
def seeing(engine: Callable[..., Any]) -> Callable[..., HybridLLM]:
    """An empty engine that has every picture of TALK."""

    def make(dtype: str = "float32") -> HybridLLM:
        llm: HybridLLM = engine("eyes 12", dtype)
        show(llm, [*TALK, (5, 3, 1), (8, 8)], noise)
        return llm

    return make


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "sampled"])
@pytest.mark.parametrize("at", [20, 38, 64, 72, 128, len(ids_of(TALK))])
@pytest.mark.parametrize("dtype", DTYPES)
def test_restore_before_inside_and_behind_a_picture(
    seeing: Callable[..., HybridLLM], tmp_path: Path, dtype: str, at: int, sampling: Sampling
) -> None:
    llm, ids = seeing(dtype), ids_of(TALK)
    llm.set_sampling(sampling)
    llm.append(ids[:at])
    capsule = llm.snapshot("here")
    if ids[at:]:
        llm.append(ids[at:])
    expected = llm.decode(16)
    after = state_of(llm)
    folder = CapsuleFolder(tmp_path)
    folder.save("here", capsule)
    for again in (capsule, folder.load("here", llm.fingerprint)):
        llm.reset()
        llm.append(ids_of([WORDS[100:140], (8, 8), WORDS[140:170]]))
        llm.decode(30, WARM)
        scramble(llm)
        llm.restore(again)
        llm.set_sampling(sampling)
        if ids[at:]:
            llm.append(ids[at:])
        assert llm.decode(16) == expected
        assert_same(state_of(llm), after)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("boundary", [64, 128, 192])
def test_append_after_restore_is_a_cold_run_with_pictures(
    seeing: Callable[..., HybridLLM], dtype: str, boundary: int
) -> None:
    """The grid cuts the 9 × 10 picture twice."""
    llm, ids = seeing(dtype), ids_of(TALK)
    cold = llm.append(ids)
    expected = state_of(llm)
    llm.reset()
    llm.append(ids[:boundary])
    capsule = llm.snapshot()
    llm.append(ids[boundary:])
    scramble(llm)
    llm.restore(capsule)
    assert torch.equal(llm.append(ids[boundary:]), cold)
    assert_same(state_of(llm), expected)


def test_branches_with_pictures_do_not_see_each_other(seeing: Callable[..., HybridLLM]) -> None:
    llm = seeing()
    llm.append(ids_of(TALK[:4]))
    root = llm.snapshot()
    ways: list[list[Part]] = [[WORDS[:3]], [(8, 8), WORDS[:3]], [(5, 3, 1), WORDS[:3]]]
    alone = []
    for way in ways:
        llm.restore(root)
        llm.append(ids_of(way))
        alone.append((llm.decode(10, WARM), state_of(llm)))
    for branch in llm.fork(root, 3):
        llm.append(ids_of(ways[branch]))
        assert llm.decode(10, WARM) == alone[branch][0]
        assert_same(state_of(llm), alone[branch][1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_rollback_across_pictures_is_the_state_that_was(seeing: Callable[..., HybridLLM], dtype: str) -> None:
    """Step by step as a talk appends, with replies between; then back over one and several pictures at once, and the
    same or another picture after."""
    llm = seeing(dtype)
    llm.set_sampling(WARM)
    was = {0: state_of(llm)}
    for part in TALK:
        llm.append(ids_of([part]))
        was[llm.position] = state_of(llm)
        for _ in range(5):
            llm.step()
        was[llm.position] = state_of(llm)
    places = sorted(was, reverse=True)
    whole = llm.snapshot()
    for position in places:
        scramble_dead(llm)
        llm.rollback(position)
        assert llm.position == position
        assert_same(state_of(llm), was[position])
    for position in places[2::3]:
        llm.restore(whole)
        llm.rollback(position)
        assert_same(state_of(llm), was[position])
        other = llm.append(ids_of([(5, 3, 1), WORDS[:4]]))
        state = state_of(llm)
        llm.rollback(position)
        llm.append(ids_of([(8, 8)]))
        llm.rollback(position)
        assert torch.equal(llm.append(ids_of([(5, 3, 1), WORDS[:4]])), other)
        assert_same(state_of(llm), state)


def test_an_undo_inside_a_picture_folds_its_rows_again(seeing: Callable[..., HybridLLM]) -> None:
    llm, ids = seeing(), ids_of(TALK)
    llm.append(ids)
    begun = next(one for one in llm._sequence.placed.grids if one.grid == PictureGrid(9, 10)).first
    llm.rollback(begun + 20)
    rolled = state_of(llm)
    llm.append(ids[begun + 20 : -8])
    llm.reset()
    for chunk in (64, begun + 20 - 64):
        llm.append(ids[llm.position : llm.position + chunk])
    assert_same(state_of(llm), rolled)


def test_a_dropped_candidate_with_a_picture_never_was(seeing: Callable[..., HybridLLM]) -> None:
    llm = seeing()
    llm.append(ids_of(TALK[:2]))
    before = state_of(llm)
    llm.append(ids_of([WORDS[:5], (8, 8), WORDS[5:9]]))
    llm.decode(9, WARM)
    llm.rollback(len(ids_of(TALK[:2])))
    assert_same(state_of(llm), before)
    llm.append(ids_of(TALK[2:4]))
    after = llm.decode(12, WARM), state_of(llm)
    llm.reset()
    llm.append(ids_of(TALK[:2]))
    llm.append(ids_of(TALK[2:4]))
    assert llm.decode(12, WARM) == after[0]
    assert_same(state_of(llm), after[1])


def test_ahead_or_with_the_words_is_the_same(seeing: Callable[..., HybridLLM]) -> None:
    """A picture ends a call of its own, so that it may be folded while the words are still spoken."""
    llm = seeing()
    llm.append(ids_of(TALK[:1]))
    llm.append(ids_of([WORDS[:3], (8, 8), WORDS[3:4]]))
    llm.end_of_turn = 17
    llm.turn_end_probability(WORDS[4:20])
    llm.end_of_turn = None
    early = llm.append(WORDS[4:20])
    state = state_of(llm)
    llm.reset()
    for part in ([WORDS[:30]], [WORDS[:3], (8, 8), WORDS[3:4]], [WORDS[4:20]]):
        late = llm.append(ids_of(part))
    assert torch.equal(early, late)
    assert_same(state_of(llm), state)


# ------------------------------------------------------------------------------------------ mutations


def test_an_offset_left_out_of_the_closure_is_found(seeing: Callable[..., HybridLLM]) -> None:
    llm = seeing()
    llm.append(ids_of(TALK))
    capsule = llm.snapshot()
    expected = llm.decode(24, WARM)
    llm.reset()
    llm.append(WORDS[:100])
    kept = llm.state.rope_delta.clone()
    llm.restore(capsule)
    assert llm.decode(24, WARM) == expected
    llm.restore(capsule)
    llm.state.rope_delta.copy_(kept)
    assert llm.decode(24, WARM) != expected


def test_a_digest_left_out_of_the_key_would_splice_pictures(seeing: Callable[..., HybridLLM]) -> None:
    llm, key = seeing(), StateKey("model")
    one, other = (ids_of([WORDS[:9], part, WORDS[9:20]]) for part in ((5, 3), (5, 3, 1)))
    states = []
    for ids in (one, other):
        llm.reset()
        states.append(llm.append(ids))
    assert not torch.equal(*states)
    size = len(one)
    digests = [prefix_digests(key, ids, range(size + 1)) for ids in (one, other)]
    assert [n for n in range(size + 1) if digests[0][n] == digests[1][n]] == list(range(10))  # what stands before
    pads = [[i if i >= 0 else PAD for i in ids] for ids in (one, other)]
    assert prefix_digests(key, pads[0], [size]) == prefix_digests(key, pads[1], [size])  # other states, one key


# ------------------------------------------------------------------------------------------ bad requests


def test_what_cuts_a_picture_is_refused_and_nothing_changes(seeing: Callable[..., HybridLLM]) -> None:
    llm, ids = seeing(), ids_of(TALK)
    llm.append(ids[:38])
    before = state_of(llm)
    for call in (lambda: llm.append(WORDS[:3]), lambda: llm.append(ids_of([(8, 8)])), lambda: llm.follow([3])):
        with pytest.raises(StateError, match="picture"):
            call()
    with pytest.raises(StateError, match="inside a picture"):
        llm.step()
    with pytest.raises(StateError, match="outside the vocabulary"):
        llm.append([*ids[38:45], -5])
    with pytest.raises(StateError, match="outside the vocabulary"):
        llm.follow([picture_id((8, 8))])
    assert_same(state_of(llm), before)
    answers = iter([False, True])
    with pytest.raises(Cancelled):
        llm.append(ids[38:], cancel=lambda: next(answers))
    assert llm.position == 64
    resumed = llm.append(ids[64:])
    llm.reset()
    llm.append(ids[:38])
    assert torch.equal(llm.append(ids[38:]), resumed)


def test_a_picture_that_is_gone_is_told_before_anything_changes(
    oracle: Callable[[str], Any], seeing: Callable[..., HybridLLM]
) -> None:
    llm, ids = seeing(), ids_of(TALK)
    llm.append(ids)
    capsule = llm.snapshot()
    before = state_of(llm)
    seen = dict(llm.pictures)
    llm.pictures.budget, budget = 0, llm.pictures.budget
    llm.pictures.put(picture_id((8, 8)), seen[picture_id((8, 8))])
    try:
        assert list(llm.pictures) == [picture_id((8, 8))]
        llm.restore(capsule)
        with pytest.raises(StateError, match="not at hand"):
            llm.rollback(len(ids) - 9)
        assert_same(state_of(llm), before)
        assert llm.decode(5, WARM)
    finally:
        llm.pictures.budget = budget
        for name, one in seen.items():
            llm.pictures.put(name, one)


def test_a_capsule_whose_pictures_are_not_listed_is_refused(seeing: Callable[..., HybridLLM]) -> None:
    llm = seeing()
    llm.append(ids_of(TALK))
    capsule = llm.snapshot()
    assert [row[:3] for row in capsule.host["pictures"]] == [[30, 5, 3], [65, 1, 9], [84, 5, 3], [104, 9, 10]]
    with pytest.raises(CapsuleMismatch, match="lists no picture"):
        llm.restore(replace(capsule, host={**capsule.host, "pictures": capsule.host["pictures"][:3]}))


def test_the_store_drops_what_was_used_last_and_nothing_that_is_held() -> None:
    store, grid = PictureStore(8, budget=3 * 4 * 8 * 4), PictureGrid(2, 2)
    seen = SeenPicture(grid, torch.zeros(4, 8))
    for name in (-1, -2, -3):
        store.put(name, seen)
    store.hold("talk", [-1])
    assert store[-2] is seen
    store.put(-4, seen)
    assert list(store) == [-1, -2, -4]
    store.put(-5, seen)
    store.put(-6, seen)
    assert list(store) == [-1, -5, -6] and store.nbytes == store.budget
    store.hold("talk", [])
    store.put(-7, seen)
    assert list(store) == [-5, -6, -7]
    short, wide = (SeenPicture(grid, torch.zeros(shape)) for shape in ((3, 8), (4, 9)))
    for name, bad in ((3, seen), (-1, short), (-1, wide)):
        with pytest.raises(StateError, match="needed"):
            store.put(name, bad)
