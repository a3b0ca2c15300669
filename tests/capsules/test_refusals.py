"""Arguments that mean nothing are told at the door: by this package's errors, with what came and what is needed."""

from pathlib import Path
from typing import Any

import pytest
import torch

from capsules import (
    Budgets,
    Capsule,
    Checkpoint,
    ExecContext,
    Fingerprint,
    Registry,
    Role,
    ShapeKey,
    StateKey,
    checkpoint,
    restore,
    rollback,
    snapshot,
)
from capsules.disk import CapsuleFolder
from capsules.errors import BufferMisuse, CapsuleAbsent, CapsuleError, CaptureError, ContractMisuse

FINGERPRINT = Fingerprint((("code", "1"),))


@pytest.fixture
def ctx() -> ExecContext:
    made = ExecContext("cpu")
    made.buffer("toy.kv", [4], torch.float32, role=Role.STATE)
    return made


@pytest.fixture
def registry(ctx: ExecContext) -> Registry:
    return Registry.standard(ctx, Budgets(host_bytes=1 << 20), lambda: 0.0)


@pytest.mark.parametrize("device", ["tpu", "", None, 0, "meta", "cuda:x"])
def test_a_device_that_is_none(device: Any) -> None:
    with pytest.raises(ContractMisuse, match="'cpu' and 'cuda'"):
        ExecContext(device)


def test_kernels_are_a_folder_of_the_processor() -> None:
    bad: Any = "here"
    with pytest.raises(ContractMisuse, match="kernels"):
        ExecContext("cpu", bad)
    with pytest.raises(ContractMisuse, match="kernels"):
        ExecContext("cuda", Path("here"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": ""}, "name"), ({"name": None}, "name"), ({"name": "toy.kv"}, "exists already"),
        ({"shape": [2, -1]}, "shape"), ({"shape": 4.0}, "shape"), ({"shape": "ab"}, "shape"),
        ({"dtype": "float32"}, "dtype"), ({"role": "state"}, "role"), ({"live": 3}, "live"),
    ],
    ids=str,
)  # fmt: skip
def test_buffers_that_cannot_be_declared(ctx: ExecContext, change: dict[str, Any], told: str) -> None:
    wanted: dict[str, Any] = {"name": "toy.x", "shape": [4], "dtype": torch.float32, "role": Role.STATE} | change
    with pytest.raises(BufferMisuse, match=told):
        ctx.buffer(wanted.pop("name"), wanted.pop("shape"), wanted.pop("dtype"), **wanted)
    assert len(ctx.buffers()) == 1


def test_what_is_no_tensor_is_not_adopted_and_what_is_no_step_not_captured(ctx: ExecContext) -> None:
    bad: Any = [1.0]
    with pytest.raises(BufferMisuse, match="tensor"):
        ctx.adopt("toy.w", bad)
    graph = ctx.graph("toy.g")
    for key, step in ((1, lambda: None), (ShapeKey(n=1), 5)):
        with pytest.raises(CaptureError, match="takes a ShapeKey and a function"):
            graph.capture(key, step)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [-1, 1.5, True, "8", None])
def test_extents_are_integers(size: Any) -> None:
    with pytest.raises(ContractMisuse, match="integers from 0 up"):
        ShapeKey(rows=size)


@pytest.mark.parametrize("bad", [None, "ada", 3, Checkpoint("toy", 1, {})], ids=str)
def test_only_capsules_are_restored(ctx: ExecContext, bad: Any) -> None:
    with pytest.raises(ContractMisuse, match="snapshot"):
        restore(ctx, bad, FINGERPRINT)


def test_only_checkpoints_are_rolled_back_to(ctx: ExecContext) -> None:
    capsule: Any = snapshot(ctx, "toy", 1, FINGERPRINT)
    for bad in (None, capsule):
        with pytest.raises(ContractMisuse, match="checkpoint"):
            rollback(ctx, bad)
    rollback(ctx, checkpoint(ctx, "toy", 1))


@pytest.mark.parametrize("bytes_", [-1, 1.5, "1", None, True])
def test_budgets_are_bytes(bytes_: Any) -> None:
    with pytest.raises(ContractMisuse, match="host_bytes"):
        Budgets(host_bytes=bytes_)


def test_a_registry_is_made_of_the_right_parts(ctx: ExecContext) -> None:
    parts: list[list[Any]] = [[None, Budgets(), float], [ctx, 5, float], [ctx, Budgets(), 0.0]]
    for arguments, told in zip(parts, ("ctx", "budgets", "clock"), strict=True):
        with pytest.raises(ContractMisuse, match=told):
            Registry.standard(*arguments)
    with pytest.raises(ContractMisuse, match="folder"):
        Registry.standard(ctx, Budgets(disk_bytes=1), lambda: 0.0)
    with pytest.raises(ContractMisuse, match="folder"):
        Registry.standard(ctx, Budgets(disk_bytes=1), lambda: 0.0, "here")  # type: ignore[arg-type]


def test_what_cannot_be_kept_is_told(ctx: ExecContext, registry: Registry) -> None:
    capsule, state_key = snapshot(ctx, "toy", 1, FINGERPRINT, tokens=[1]), StateKey("m")
    calls: list[tuple[list[Any], dict[str, Any], str]] = [
        ([None, state_key], {}, "capsule"), ([capsule, "m"], {}, "state_key"),
        ([capsule, state_key], {"name": 3}, "name"),
        ([capsule, state_key], {"ttl_s": -1}, "ttl_s"), ([capsule, state_key], {"ttl_s": "1"}, "ttl_s"),
        ([capsule, state_key], {"ttl_s": float("nan")}, "ttl_s"),
    ]  # fmt: skip
    for arguments, options, told in calls:
        with pytest.raises(ContractMisuse, match=told):
            registry.put(*arguments, **options)
    assert registry.listing() == [] and registry.put(capsule, state_key) is not None


@pytest.mark.parametrize("verb", ["get", "save", "remove", "pin", "unpin", "__contains__"])
def test_keys_are_text(registry: Registry, verb: str) -> None:
    for bad in (None, 3, b"ada"):
        with pytest.raises(ContractMisuse, match="key"):
            getattr(registry, verb)(bad)


def test_what_is_not_there_cannot_be_pinned(registry: Registry) -> None:
    with pytest.raises(CapsuleAbsent, match=r"^no capsule 'ada' to pin"):
        registry.pin("ada")
    assert issubclass(CapsuleAbsent, KeyError) and issubclass(ContractMisuse, ValueError)


def test_reentry_takes_a_realm_and_tokens(registry: Registry) -> None:
    calls: list[tuple[list[Any], dict[str, Any], str]] = [
        (["m", [1]], {}, "state_key"), ([StateKey("m"), None], {}, "wanted"), ([StateKey("m"), "ids"], {}, "wanted"),
        ([StateKey("m"), [1], [1]], {}, "live"), ([StateKey("m"), [1]], {"reserve": -1}, "reserve"),
        ([StateKey("m"), [1]], {"fingerprint": "x"}, "fingerprint"),
    ]  # fmt: skip
    for arguments, options, told in calls:
        with pytest.raises(ContractMisuse, match=told):
            registry.reenter(*arguments, **options)


def test_keys_of_files(tmp_path: Path, ctx: ExecContext) -> None:
    with pytest.raises(CapsuleError, match="is no key"):
        CapsuleFolder(tmp_path).save("../up", snapshot(ctx, "toy", 1, FINGERPRINT))
    assert isinstance(snapshot(ctx, "toy", 1, FINGERPRINT), Capsule)
