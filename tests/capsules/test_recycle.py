"""Recycled host memory: used again as soon as nothing looks at it, and never before."""

import torch

from capsules import ExecContext, Prefix, Role
from capsules.capsule import Fingerprint, snapshot
from capsules.exec.recycle import SMALLEST, Recycler

SIZE = 1 << 20


def test_a_block_comes_back_when_its_last_view_is_gone():
    recycler = Recycler()
    first = recycler.lend(SIZE - 5)
    assert first.shape == (SIZE - 5,) and first.dtype == torch.uint8
    address, view = first.data_ptr(), first[64:128].view(torch.float32)
    del first
    assert recycler.kept_bytes == 0 and recycler.lend(SIZE).data_ptr() != address
    view.fill_(1.5)
    del view
    assert recycler.kept_bytes == 2 * SIZE
    held = [recycler.lend(SIZE - 100), recycler.lend(SIZE)]
    assert address in {block.data_ptr() for block in held} and recycler.kept_bytes == 0


def test_another_size_does_not_fit_and_small_ones_are_not_kept():
    recycler = Recycler()
    recycler.lend(SIZE)
    assert recycler.kept_bytes == SIZE
    block = recycler.lend(SIZE + SIZE // 4)
    assert recycler.kept_bytes == SIZE
    del block
    assert recycler.lend(SMALLEST - 1).shape == (SMALLEST - 1,) and recycler.lend(0).shape == (0,)
    assert recycler.kept_bytes == 2 * SIZE + SIZE // 4


def test_no_more_is_kept_than_allowed():
    recycler = Recycler(keep_bytes=2 * SIZE)
    blocks = [recycler.lend(SIZE) for _ in range(5)]
    addresses = [block.data_ptr() for block in blocks]
    while blocks:
        blocks.pop(0)
    assert recycler.kept_bytes == 2 * SIZE
    assert recycler.lend(SIZE).data_ptr() == addresses[-1]


def test_waste_is_at_most_an_eighth():
    recycler = Recycler()
    for nbytes in range(SMALLEST, 40 * SMALLEST, 12345):
        recycler.lend(nbytes)
        assert nbytes <= recycler.kept_bytes <= nbytes * 1.125
        recycler = Recycler()


def test_snapshots_use_memory_again_without_touching_those_that_live():
    ctx = ExecContext("cpu")
    kv = ctx.buffer("toy.kv", [2, 1000, 300], torch.float32, role=Role.STATE, live=Prefix(1)).tensor
    fingerprint = Fingerprint.of(ctx, "toy", weights="w", code="1")
    seen = set()
    kept = None
    for step in range(6):
        kv.fill_(step)
        capsule = snapshot(ctx, "toy", 990 + step, fingerprint)
        seen.add(capsule.tensors["toy.kv"].data_ptr())
        if step == 0:
            kept = capsule
        del capsule
    assert kept is not None and (kept.tensors["toy.kv"] == 0).all()
    assert len(seen) == 2


def test_a_state_that_grows_leaves_no_trail_of_old_sizes():
    """Each size in its turn, as the snapshots of a long talk: what is kept is bounded by the largest."""
    recycler = Recycler(keep_bytes=SIZE)
    for nbytes in range(SIZE, 20 * SIZE, SIZE // 3):
        recycler.lend(nbytes)
    assert recycler.kept_bytes <= 2 * 1.125 * 20 * SIZE
    assert recycler.lend(nbytes).numel() == nbytes and recycler.kept_bytes > 0
