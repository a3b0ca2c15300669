"""A voice's weights kept beside it: the same to the bit, made again when stale, and never in the way of a start.

What the file itself promises is held by `tests/llm_engine/test_prepared.py`: one class writes and reads both."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from capsules import ExecContext, Role, prepared
from tts_engine import HiggsTTS, VoiceSampling, weights
from tts_engine.config import load_config
from tts_engine.weights import fused, load_checkpoint, prepare_weights


@pytest.fixture
def voice(miniature: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint of its own. Voices this small are not worth a file; here they are."""
    monkeypatch.setattr(prepared, "SMALL_BYTES", 0)
    return Path(shutil.copytree(miniature, tmp_path / "voice"))


def prepare(path: Path, dtype: str = "int8") -> list[str]:
    told: list[str] = []
    prepare_weights(path, dtype, None, told.append)
    return told


def start(path: Path, dtype: str = "int8") -> tuple[HiggsTTS, ExecContext, list[str]]:
    told: list[str] = []
    ctx = ExecContext("cpu")
    return HiggsTTS.load(path, ctx, dtype, max_positions=256, tell=told.append), ctx, told


def held(ctx: ExecContext) -> dict[str, Tensor]:
    return {buffer.name: buffer.tensor for buffer in ctx.buffers(role=Role.WEIGHT)}


def assert_equal(one: dict[str, Tensor], two: dict[str, Tensor]) -> None:
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        other = two[name]
        assert tensor.dtype == other.dtype and tensor.stride() == other.stride() and torch.equal(tensor, other), name


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "int4"])
def test_a_prepared_voice_is_the_same_voice(voice: Path, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tts, ctx, told = start(voice, dtype)
    codes = tts.codes("Good morning.", sampling=VoiceSampling(seed=1), max_rows=24)
    sound = tts.decode(codes)
    assert told == [] and not list(voice.glob("*.prepared"))  # nothing is written that nobody asked for
    assert len(lines := prepare(voice, dtype)) == 1 and "GB, mapped" in lines[0]

    def read(*_: object, **__: object) -> None:
        raise AssertionError("a prepared voice reads no tensor of its files")

    monkeypatch.setattr(weights, "load", read)
    again, mapped, told = start(voice, dtype)
    assert told == [] and again.fingerprint == tts.fingerprint
    assert_equal(held(ctx), held(mapped))
    assert codes.numel()
    assert torch.equal(again.codes("Good morning.", sampling=VoiceSampling(seed=1), max_rows=24), codes)
    assert torch.equal(again.decode(codes), sound)
    assert all(tensor.data_ptr() % 64 == 0 for name, tensor in held(mapped).items() if ".w." in name)


@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "read as on a device"])
@pytest.mark.parametrize("dtype", ["float8", "int4"])
def test_a_gpus_form_of_a_voice_is_packed_once(
    voice: Path, dtype: str, mapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "maps", lambda device: mapped)
    told: list[str] = []
    config, place = load_config(voice), torch.device("cpu")

    def load() -> weights.CheckpointFiles:
        return load_checkpoint(voice, config, place, dtype, tell=told.append, kind="cuda")

    plain = load()
    assert not told and not list(voice.glob("*.prepared"))
    assert prepare_weights(voice, dtype, None, told.append, "cuda")
    assert [path.name for path in voice.glob("*.prepared")] == [f"weights.gpu-{dtype}.prepared"]
    told.clear()

    def packing(*_: object) -> None:
        raise AssertionError("a second start packs nothing and reads no published tensor")

    monkeypatch.setattr(weights, "load", packing)
    again = load()
    assert not told and again.digest == plain.digest
    one, two = (fused(files.backbone, config) | dict(files.codec) for files in (plain, again))
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        assert tensor.stride() == two[name].stride()
        assert torch.equal(tensor.contiguous().view(torch.uint8), two[name].contiguous().view(torch.uint8)), name



def change_weights(voice: Path) -> None:
    tensors = load_file(voice / "model.safetensors")
    tensors["body.norm.weight"][0] += 1
    save_file(tensors, voice / "model.safetensors", metadata={"format": "pt"})


def write_into(voice: Path) -> None:
    with (voice / "weights.int8.prepared").open("r+b") as file:
        file.seek(-100, os.SEEK_END)
        file.write(b"x")


def cut(voice: Path) -> None:
    path = voice / "weights.int8.prepared"
    os.truncate(path, path.stat().st_size - 64)


def of_another_form(voice: Path) -> None:
    prepare(voice, "int4")
    (voice / "weights.int4.prepared").replace(voice / "weights.int8.prepared")


@pytest.mark.parametrize("change", [change_weights, write_into, cut, of_another_form])
def test_a_stale_file_is_made_again(voice: Path, change: Callable[[Path], None]) -> None:
    prepare(voice)
    change(voice)
    _, ctx, told = start(voice)
    assert len(told) == 2 and "made again" in told[0] and "GB, mapped" in told[1]
    _, again, told = start(voice)
    assert told == []
    assert_equal(held(ctx), held(again))


def test_a_full_disk_costs_a_line_and_not_the_start(voice: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(voice)
    change_weights(voice)
    before = (voice / "weights.int8.prepared").read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    told = start(voice)[2]
    assert "No space left on device" in told[1] and len(told) == 2
    assert (voice / "weights.int8.prepared").read_bytes() == before and not list(voice.glob(".*"))


def test_files_that_change_while_they_are_read(voice: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = weights.load

    def slow(*arguments: Any, **named: Any) -> Any:
        found = real(*arguments, **named)
        os.utime(voice / "model.safetensors", (1, 1))
        return found

    monkeypatch.setattr(weights, "load", slow)
    told = prepare(voice)
    assert len(told) == 1 and "changed while they were read" in told[0] and not list(voice.glob("*.prepared"))


def test_what_is_small_is_left_alone(miniature: Path) -> None:
    assert "gain nothing" in prepare(miniature)[0] and not list(miniature.glob("*.prepared"))
