"""Chunks, buckets and the log of folds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_engine.grid import GRID, Fold, FoldLog, bucket_for, capacity, chunk_buckets, chunks, step_buckets


@given(position=st.integers(0, 5000), tokens=st.integers(0, 700))
def test_chunks_cover_the_tokens_once_and_in_order(position: int, tokens: int) -> None:
    at = position
    for chunk in chunks(position, tokens):
        assert chunk.start == at
        assert 0 < chunk.count <= chunk.rows <= GRID
        at += chunk.count
    assert at == position + tokens


@given(cells=st.integers(0, 20), total=st.integers(1, 2000))
def test_from_a_grid_boundary_the_calls_are_those_of_a_cold_run(cells: int, total: int) -> None:
    boundary = cells * GRID
    if boundary < total:
        cold = chunks(0, total)
        assert [c for c in cold if c.start >= boundary] == chunks(boundary, total - boundary)


@given(position=st.integers(0, 500), tokens=st.integers(65, 700))
def test_long_appends_come_onto_the_grid(position: int, tokens: int) -> None:
    assert all(chunk.start % GRID == 0 for chunk in chunks(position, tokens)[1:])


@pytest.mark.parametrize("max_positions", [1, 63, 64, 65, 4096, 32768])
def test_buckets_hold_every_chunk_and_step(max_positions: int) -> None:
    rows = capacity(max_positions)
    for sizes in (step_buckets(rows), chunk_buckets(rows)):
        assert sizes[-1] == rows and list(sizes) == sorted(set(sizes))
        assert bucket_for(1, sizes) == sizes[0]
    last = chunks(0, max_positions)[-1]
    assert bucket_for(last.start + last.rows, chunk_buckets(rows)) <= rows
    odd = chunks(max_positions - 1, 1)[0]
    assert odd.start + odd.rows <= rows + GRID


@given(st.lists(st.one_of(st.integers(1, 64), st.none()), max_size=40), st.data())
def test_the_log_gives_back_what_was_folded(folds: list[int | None], data: st.DataObject) -> None:
    log, plain = FoldLog(), []
    for count in folds:
        if count is None:
            log.step()
            plain += [("steps", len(plain))]
        else:
            log.chunk(count)
            plain += [("chunk", len(plain))] * count
    assert log.position == len(plain)
    assert FoldLog.from_json(log.to_json()).to_json() == log.to_json()
    cut = data.draw(st.integers(0, len(plain)))
    log.truncate(cut)
    assert log.position == cut
    replay = log.between(0, cut)
    assert sum(fold.count for fold in replay) == cut
    rebuilt = []
    for fold in replay:
        start = len(rebuilt)
        rebuilt += [(fold.kind, len(rebuilt)) if fold.kind == "steps" else ("chunk", start) for _ in range(fold.count)]
        if fold.kind == "steps":
            rebuilt[start:] = [("steps", start + i) for i in range(fold.count)]
    assert rebuilt == plain[:cut]


def test_between_starts_inside_a_run_of_steps_but_not_inside_a_chunk() -> None:
    log = FoldLog([Fold("chunk", 10), Fold("steps", 6)])
    assert log.between(12, 15) == [Fold("steps", 3)]
    with pytest.raises(AssertionError, match="inside a chunk"):
        log.between(5, 15)
