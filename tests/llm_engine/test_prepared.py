"""Weights kept beside the model: the same to the bit, made again when stale, and never in the way of a start."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from capsules import ExecContext, Role, prepared
from capsules.exec import away
from capsules.exec.away import Away
from capsules.exec.buffer import storage_key
from capsules.nn.fp8 import Fp8Weight
from capsules.nn.int4 import Int4Weight
from capsules.nn.panels import BITS
from capsules.prepared import NotPrepared, write_prepared
from llm_engine import HybridLLM, published, weights
from llm_engine.options import DTYPES
from llm_engine.weights import load_weights, prepare_weights
from tests.capsules.toy import own_pages

FILE = "weights.float32.prepared"


@pytest.fixture
def model(oracle: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint of its own. Models this small are not worth a file; here they are."""
    monkeypatch.setattr(prepared, "SMALL_BYTES", 0)
    return Path(shutil.copytree(oracle("eyes 24").path, tmp_path / "model"))


def prepare(path: Path, dtype: str = "float32", eyes: bool = False) -> list[str]:
    told: list[str] = []
    prepare_weights(path, DTYPES[dtype], BITS.get(dtype), eyes, None, told.append)
    return told


def start(path: Path, dtype: str = "float32", eyes: bool = False) -> tuple[HybridLLM, ExecContext, list[str]]:
    told: list[str] = []
    ctx = ExecContext("cpu")
    llm = HybridLLM.load(path, ctx, dtype, 64, eyes="auto" if eyes else "off", tell=told.append, capture=False)
    return llm, ctx, told


def talk(llm: HybridLLM, ctx: ExecContext) -> tuple[Any, dict[str, Tensor]]:
    """Tokens, facts and fingerprint; and every byte of the weights, of the state and of the logits."""
    llm.warm()
    logits = llm.append([1, 2, 3, 4, 5])
    tokens = llm.decode(4)
    capsule = llm.snapshot()
    held = {buffer.name: buffer.tensor.clone() for buffer in ctx.buffers(role=Role.WEIGHT)}
    return (tokens, capsule.host, llm.fingerprint, llm.loaded.skipped), {**held, **capsule.tensors, "logits": logits}


def assert_equal(one: tuple[Any, dict[str, Tensor]], two: tuple[Any, dict[str, Tensor]]) -> None:
    assert one[0] == two[0] and one[1].keys() == two[1].keys()
    for name, tensor in one[1].items():
        other = two[1][name]
        assert tensor.dtype == other.dtype and tensor.stride() == other.stride() and torch.equal(tensor, other), name


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "eyes"), [("float32", True), ("bfloat16", False), ("int8", True), ("int4", False)])
def test_a_prepared_model_is_the_same_model(
    model: Path, dtype: str, eyes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm, ctx, told = start(model, dtype, eyes)
    plain = talk(llm, ctx)
    assert told == [] and not list(model.glob("*.prepared"))  # nothing is written that nobody asked for
    assert len(lines := prepare(model, dtype, eyes)) == 1 and "GB, mapped" in lines[0]

    def read(*_: object) -> None:
        raise AssertionError("a prepared model reads no tensor of its files")

    monkeypatch.setattr(published, "load", read)
    llm, ctx, told = start(model, dtype, eyes)
    assert told == []
    assert_equal(plain, talk(llm, ctx))
    assert all(buffer.address % 64 == 0 for buffer in ctx.buffers(role=Role.WEIGHT))


@pytest.mark.slow
def test_a_prepared_model_that_slept_goes_on_and_is_still_mapped(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two decodes; the file of what was let go holds state alone, no weight."""
    monkeypatch.setattr(away, "SMALLEST", 1)
    prepare(model)
    llm, ctx, _ = start(model)
    expected = talk(llm, ctx)[0][0] + llm.decode(8)
    llm, ctx, _ = start(model)
    weights_there = {buffer.name: buffer.tensor.clone() for buffer in ctx.buffers(role=Role.WEIGHT)}
    said = talk(llm, ctx)[0][0]
    gone = Away(ctx.buffers(), tmp_path / "away")
    for _ in gone.let_go():
        pass
    assert {block.address for block, offset in gone._out if offset is None} == {
        storage_key(buffer.tensor) for buffer in ctx.buffers(role=Role.WEIGHT)
    }
    gone.bring_back()
    assert said + llm.decode(8) == expected
    for buffer in ctx.buffers(role=Role.WEIGHT):
        assert torch.equal(buffer.tensor, weights_there[buffer.name]), buffer.name
        assert own_pages(buffer.tensor.data_ptr()) == 0


@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "read as on a device"])
@pytest.mark.parametrize("made", ["fp8", "int4"])
def test_a_gpus_form_is_packed_once(
    model: Path, made: str, mapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a processor, which packs the same values; a device's own tensors are filled from the file."""
    monkeypatch.setattr(prepared, "maps", lambda device: mapped)
    monkeypatch.setattr(weights, "maps", lambda device: mapped)
    told: list[str] = []

    def load() -> tuple[ExecContext, weights.LoadedWeights]:
        ctx = ExecContext("cpu")
        packed = {"packed": True, "made": made, "eyes": True, "tell": told.append}
        return ctx, load_weights(model, ctx, torch.bfloat16, **packed)

    plain, loaded = load()
    assert not told and not list(model.glob("*.prepared"))
    assert prepare_weights(model, torch.bfloat16, None, True, None, told.append, made)
    assert [path.name for path in model.glob("*.prepared")] == [f"weights.gpu-{made}-eyes.prepared"]
    assert ("mapped from" if mapped else "read as it is from") in told.pop()

    def packing(*_: object) -> None:
        raise AssertionError("a second start packs nothing and reads no published tensor")

    monkeypatch.setattr(published, "load", packing)
    for kind in (Fp8Weight, Int4Weight):
        monkeypatch.setattr(kind, "fill", packing)
    again, found = load()
    assert not told and found.digest == loaded.digest and found.skipped == loaded.skipped
    for one, two in zip(plain.buffers(role=Role.WEIGHT), again.buffers(role=Role.WEIGHT), strict=True):
        assert one.name == two.name and one.tensor.stride() == two.tensor.stride()
        assert torch.equal(one.tensor.view(torch.uint8), two.tensor.view(torch.uint8)), one.name
    assert any(two.tensor.dtype in (torch.int32, torch.float8_e4m3fn) for two in again.buffers())


def test_it_is_a_safetensors_file_like_any_other(model: Path) -> None:
    prepare(model)
    with safe_open(model / FILE, "pt") as file:
        assert file.metadata()["form"] == "float32" and "norm" in file.keys()  # noqa: SIM118
        norm = file.get_tensor("norm")
    assert torch.equal(norm, start(model)[0].loaded.model.norm)


def change_weights(model: Path) -> None:
    tensors = load_file(model / "model.safetensors")
    name = next(name for name in tensors if name.endswith("embed_tokens.weight"))
    tensors[name][0, 0] += 1
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})


def write_into(model: Path) -> None:
    with (model / FILE).open("r+b") as file:
        file.seek(-100, os.SEEK_END)
        file.write(b"x")


def cut(model: Path) -> None:
    os.truncate(model / FILE, (model / FILE).stat().st_size - 64)


def empty(model: Path) -> None:
    (model / FILE).write_bytes(b"")


def of_another_form(model: Path) -> None:
    prepare(model, "bfloat16")
    (model / "weights.bfloat16.prepared").replace(model / FILE)


@pytest.mark.parametrize("change", [change_weights, write_into, cut, empty, of_another_form])
def test_a_stale_file_is_made_again(model: Path, change: Callable[[Path], None]) -> None:
    prepare(model)
    change(model)
    _, ctx, told = start(model)
    assert len(told) == 2 and "made again" in told[0] and "GB, mapped" in told[1]
    _, again, told = start(model)
    assert told == []
    for one, two in zip(ctx.buffers(role=Role.WEIGHT), again.buffers(role=Role.WEIGHT), strict=True):
        assert torch.equal(one.tensor, two.tensor)


def test_a_file_made_again_leaves_those_alone_who_mapped_the_old_one(model: Path) -> None:
    plain = start(model)[1]
    prepare(model)
    mapped = start(model)[1]
    change_weights(model)
    assert "made again" in start(model)[2][0]
    for one, two in zip(plain.buffers(role=Role.WEIGHT), mapped.buffers(role=Role.WEIGHT), strict=True):
        assert torch.equal(one.tensor, two.tensor)


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_costs_a_line_and_not_the_start(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(model)
    change_weights(model)
    before = (model / FILE).read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    _, _, told = start(model)
    assert "No space left on device" in told[1] and len(told) == 2
    monkeypatch.undo()
    assert (model / FILE).read_bytes() == before and not list(model.glob(".*"))
    monkeypatch.setattr(prepared.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(NotPrepared, match=r"0\.00 GB free, 0\.00 are needed"):
        write_prepared(model / FILE, {}, {"a": torch.zeros(9)})
    assert (model / FILE).read_bytes() == before


def test_a_folder_that_cannot_be_written(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: object, flags: int, *rest: int, real: Callable[..., int] = os.open) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))  # as a read-only folder does, for root too
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", refused)
    assert any("cannot be written: Permission denied" in line for line in prepare(model))
    assert not list(model.glob("*.prepared"))


def test_files_that_change_while_they_are_read(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = published.load

    def slow(*arguments: Any) -> Any:
        found = real(*arguments)
        os.utime(model / "model.safetensors", (1, 1))
        return found

    monkeypatch.setattr(published, "load", slow)
    told = prepare(model)
    assert len(told) == 1 and "changed while they were read" in told[0] and not list(model.glob("*.prepared"))


def test_one_process_at_a_time(model: Path) -> None:
    """Another process holds the folder: this one says so and goes on."""
    code = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], 0), fcntl.LOCK_EX); print(1, flush=True); input()"
    command = [sys.executable, "-c", code, str(model)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"1\n"
        told = prepare(model)
        other.communicate(b"\n")
    assert len(told) == 1 and "another process is at work" in told[0] and not list(model.glob("*.prepared"))
    assert "GB, mapped" in prepare(model)[0]


WRITER = """
import os, signal, sys, torch
from pathlib import Path
from capsules.prepared import write_prepared
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it
real = os.write
def slow(file, chunk):
    print("writing", flush=True)
    done = real(file, chunk[:4096])
    sys.stdin.readline()
    return done
os.write = slow
write_prepared(Path(sys.argv[1]), {}, {"a": torch.zeros(1 << 16)})
"""


@pytest.mark.slow
@pytest.mark.parametrize(("end", "left"), [(signal.SIGINT, 0), (signal.SIGKILL, 1)])
def test_an_end_in_the_middle_leaves_nothing_half_made(tmp_path: Path, end: signal.Signals, left: int) -> None:
    """Real processes: interrupted, one tidies up; killed, the next one that prepares does."""
    path = tmp_path / FILE
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"writing\n"
        writer.send_signal(end)
        writer.wait()
    assert not path.exists() and len(list(tmp_path.iterdir())) == left
    write_prepared(path, {}, {"a": torch.zeros(3)})
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_small_is_left_alone(oracle: Callable[[str], Any]) -> None:
    path = oracle("one").path
    assert "gain nothing" in prepare(path)[0] and not list(path.glob("*.prepared"))
