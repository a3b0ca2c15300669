"""Memory that is let go and comes back: the same addresses, the same bits, and less of it meanwhile."""

import mmap
import os
from pathlib import Path

import pytest
import torch

from capsules import ExecContext, Role
from capsules.exec import away
from capsules.exec.away import Away
from tests.capsules.toy import STEP, ToyHybrid, ToySampling, own_pages

MIB = 1 << 20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def context(mib: int = 64) -> ExecContext:
    ctx = ExecContext("cpu")
    ctx.buffer("a.w", [mib * MIB], torch.uint8, role=Role.WEIGHT).tensor.copy_(torch.arange(mib * MIB) % 251)
    ctx.buffer("a.kv", [1000, 333], torch.float32, role=Role.STATE).tensor.normal_()
    ctx.buffer("a.small", [3], torch.float32, role=Role.STATE)
    return ctx


def test_all_of_it_comes_back_and_less_is_held_meanwhile(tmp_path: Path) -> None:
    ctx = context()
    before = {buffer.name: (buffer.address, buffer.tensor.clone()) for buffer in ctx.buffers()}
    gone = Away(ctx.buffers(), tmp_path)
    held = resident()
    for _ in gone.let_go():
        pass
    assert gone.nbytes >= 64 * MIB and held - resident() > 60 * MIB
    gone.bring_back()
    assert gone.nbytes == 0
    for buffer in ctx.buffers():
        buffer.check_address()
        address, content = before[buffer.name]
        assert buffer.address == address and torch.equal(buffer.tensor, content)
    gone.discard()
    assert list(tmp_path.iterdir()) == []


def test_it_may_stop_midway_and_come_back(tmp_path: Path) -> None:
    ctx = context(1)
    before = [buffer.tensor.clone() for buffer in ctx.buffers()]
    gone = Away(ctx.buffers(), tmp_path)
    next(gone.let_go())
    gone.bring_back()
    assert all(torch.equal(buffer.tensor, content) for buffer, content in zip(ctx.buffers(), before, strict=True))


def test_what_changes_is_written_each_time(tmp_path: Path) -> None:
    ctx = context(1)
    gone = Away(ctx.buffers(), tmp_path)
    for round_ in range(3):
        ctx["a.kv"].tensor.fill_(round_)
        for _ in gone.let_go():
            pass
        gone.bring_back()
        assert ctx["a.kv"].tensor.eq(round_).all() and int(ctx["a.w"].tensor[250]) == 250


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = context(1)
    before = [buffer.tensor.clone() for buffer in ctx.buffers()]
    gone = Away(ctx.buffers(), tmp_path)
    write, count = away.os.pwrite, []

    def full(*args: object) -> int:
        count.append(1)
        if len(count) > 1:
            raise OSError(28, "No space left on device")
        return write(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(away.os, "pwrite", full)
    with pytest.raises(OSError, match="space"):
        list(gone.let_go())
    gone.bring_back()
    assert all(torch.equal(buffer.tensor, content) for buffer, content in zip(ctx.buffers(), before, strict=True))


def mapped_context(path: Path) -> ExecContext:
    """A weight of 32 MiB that is mapped from a file, and another one behind it in the same file."""
    path.write_bytes(bytes(range(256)) * (33 * MIB // 256))
    with path.open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    ctx = ExecContext("cpu")
    ctx.adopt("a.w", torch.frombuffer(memory, dtype=torch.uint8, count=32 * MIB))
    ctx.adopt("a.v", torch.frombuffer(memory, dtype=torch.uint8, count=MIB, offset=32 * MIB))
    return ctx


def test_weights_mapped_from_a_file_are_not_written_and_stay_mapped(tmp_path: Path) -> None:
    ctx = mapped_context(tmp_path / "weights")
    weight, before = ctx["a.w"].tensor, ctx["a.w"].tensor.clone()
    folder = tmp_path / "away"
    gone = Away(ctx.buffers(), folder)
    for _ in range(2):
        held = resident()
        for _ in gone.let_go():
            pass
        assert gone.nbytes == 33 * MIB and held - resident() > 30 * MIB
        assert os.fstat(gone._file).st_size == 0  # no second copy
        gone.bring_back()
        assert gone.nbytes == 0 and torch.equal(weight, before)
        assert own_pages(weight.data_ptr()) == 0


def test_a_mapped_weight_that_somebody_wrote_to_comes_back_as_it_was(tmp_path: Path) -> None:
    ctx = mapped_context(tmp_path / "weights")
    ctx["a.w"].tensor[5 * MIB] = 77
    before = {buffer.name: buffer.tensor.clone() for buffer in ctx.buffers()}
    gone = Away(ctx.buffers(), tmp_path / "away")
    for _ in gone.let_go():
        pass
    gone.bring_back()
    assert int(ctx["a.w"].tensor[5 * MIB]) == 77
    assert all(torch.equal(buffer.tensor, before[buffer.name]) for buffer in ctx.buffers())


@pytest.mark.parametrize("seed", [None, 7])
def test_a_sequence_goes_on_as_if_it_had_never_been_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int | None
) -> None:
    """Between any two steps, with the same graphs."""
    monkeypatch.setattr(away, "SMALLEST", 1)
    expected = ToyHybrid(ExecContext("cpu")).open([1, 2, 3], ToySampling(seed)).decode(30)
    toy = ToyHybrid(ExecContext("cpu")).open([1, 2, 3], ToySampling(seed))
    gone = Away(toy.ctx.buffers(), tmp_path)
    said = []
    for _ in range(30):
        for _ in gone.let_go():
            pass
        gone.bring_back()
        said += toy.decode(1)
    assert said == expected and STEP in toy.graph
