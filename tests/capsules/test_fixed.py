"""Device memory that is let go while its addresses stay, on memory that poisons what is let go."""

import ctypes
import errno
import gc
import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from assistant.base.errors import EngineFailed
from assistant.device.sleep import Sleep
from capsules import ExecContext, Role
from capsules.errors import ContractMisuse
from capsules.exec import fixed
from capsules.exec.away import Away
from capsules.exec.fixed import FixedMemory
from llm_engine import HybridLLM, Sampling
from llm_engine.config import FULL, LINEAR, LLMConfig
from llm_engine.model import init_params
from llm_engine.weights import save_checkpoint

PAGE = 4096


class PoisonedPages:
    """A processor's memory in place of a card's. `full`: there is no memory to come back."""

    device, granularity = torch.device("cpu"), PAGE

    def __init__(self) -> None:
        self.held: dict[int, mmap.mmap] = {}
        self.away: set[int] = set()
        self.full = False

    def reserve(self, nbytes: int) -> int:
        memory = mmap.mmap(-1, nbytes)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.held[address] = memory
        return address

    def let_go(self, address: int, nbytes: int) -> None:
        assert address not in self.away
        ctypes.memset(address, 0xEE, nbytes)
        self.away.add(address)

    def back(self, address: int, nbytes: int) -> None:
        if self.full:
            raise OSError(errno.ENOMEM, "the GPU has no room for the models; close what took it")
        self.away.remove(address)
        ctypes.memset(address, 0xAA, nbytes)

    def free(self, address: int, nbytes: int) -> None:
        del self.held[address]

    def tensor(self, address: int, nbytes: int, owner: object) -> Tensor:
        memory = type("Memory", (ctypes.c_ubyte * nbytes,), {}).from_address(address)
        memory.owner = owner
        return torch.frombuffer(memory, dtype=torch.uint8)


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[PoisonedPages]:
    monkeypatch.setattr(fixed, "SLAB_BYTES", 1 << 16)
    yield PoisonedPages()


def placed(pages: PoisonedPages) -> ExecContext:
    """A context that places weights, with some of them: small ones, and one that is alone in its memory."""
    ctx = ExecContext("cpu")
    ctx.fixed = FixedMemory(pages)
    with ctx.placing():
        for name, count in (("a", 3), ("b", 5000), ("large", 50_000)):
            ctx.adopt(f"x.{name}", torch.empty(count, dtype=torch.float32)).tensor.copy_(torch.randn(count))
    return ctx


def contents(ctx: ExecContext) -> dict[str, tuple[int, Tensor]]:
    return {buffer.name: (buffer.tensor.data_ptr(), buffer.tensor.clone()) for buffer in ctx.buffers()}


def assert_same(ctx: ExecContext, before: dict[str, tuple[int, Tensor]]) -> None:
    for name, (address, content) in contents(ctx).items():
        assert address == before[name][0] and torch.equal(content, before[name][1]), name


def test_weights_go_and_come_back_at_their_addresses(pages: PoisonedPages, tmp_path: Path) -> None:
    ctx = placed(pages)
    ctx.buffer("x.state", [40_000], torch.float32, role=Role.STATE).tensor.normal_()
    assert ctx.fixed is not None and len(ctx.fixed.slabs) == 2, "small ones share a piece"
    before, gone = contents(ctx), Away(ctx.buffers(), tmp_path, [ctx.fixed])
    for round_ in range(2):
        for _ in gone.let_go():
            pass
        assert pages.away == {slab.address for slab in ctx.fixed.slabs}
        assert gone.nbytes >= 55_003 * 4 + 160_000
        assert torch.all(ctx["x.a"].tensor.view(torch.uint8) == 0xEE), f"round {round_}"
        gone.bring_back()
        assert not pages.away and gone.nbytes == 0
        assert_same(ctx, before)


def test_memory_is_given_back_with_the_last_tensor_in_it(pages: PoisonedPages) -> None:
    ctx = placed(pages)
    kept = ctx["x.b"].tensor
    ctx.release("x")
    gc.collect()
    assert len(pages.held) == 1 and kept.numel() == 5000
    del kept
    gc.collect()
    assert not pages.held


def test_what_a_file_holds_is_read_from_there(pages: PoisonedPages, tmp_path: Path) -> None:
    ctx = placed(pages)
    assert ctx.fixed is not None
    file = tmp_path / "weights"
    large = ctx["x.large"].tensor
    file.write_bytes(bytes(64) + large.numpy().tobytes())
    ctx.fixed.came_from(file, {large.data_ptr(): 64})
    before, gone = contents(ctx), Away(ctx.buffers(), tmp_path / "away", [ctx.fixed])
    for _ in gone.let_go():
        pass
    assert len(gone._written) == 2 and large.data_ptr() not in gone._written, "no second copy"
    gone.bring_back()
    assert_same(ctx, before)
    os.utime(file, (1, 1))
    for _ in gone.let_go():  # somebody wrote to it: now it is copied
        pass
    gone.bring_back()
    assert_same(ctx, before)


def test_a_file_that_changes_meanwhile_is_told(pages: PoisonedPages, tmp_path: Path) -> None:
    ctx = placed(pages)
    assert ctx.fixed is not None
    file, large = tmp_path / "weights", ctx["x.large"].tensor
    file.write_bytes(large.numpy().tobytes())
    ctx.fixed.came_from(file, {large.data_ptr(): 0})
    sleep = Sleep([ctx], tmp_path / "away")
    for _ in sleep.fall():
        pass
    file.write_bytes(bytes(large.nbytes))
    with pytest.raises(OSError, match="weights was written to while the models slept"):
        sleep.wake()


def test_a_full_device_leaves_them_asleep_until_there_is_room(pages: PoisonedPages, tmp_path: Path) -> None:
    ctx = placed(pages)
    before, sleep = contents(ctx), Sleep([ctx], tmp_path)
    for _ in sleep.fall():
        pass
    pages.full = True
    with pytest.raises(OSError, match="no room for the models"):
        sleep.wake()
    assert sleep.freed_bytes
    pages.full = False
    sleep.wake()
    assert not sleep.freed_bytes and sleep.count == 1
    assert_same(ctx, before)


def test_a_gpu_without_the_switch_stays_awake(tmp_path: Path) -> None:
    far = type("Far", (), {"name": "x.far", "tensor": torch.empty(3, device="meta")})()
    with pytest.raises(ContractMisuse, match=r"x\.far is on meta"):
        Away([far], tmp_path)
    sleep = Sleep([type("Context", (), {"buffers": lambda self: [far], "fixed": None})()], tmp_path)
    with pytest.raises(EngineFailed, match="the models stay awake"):
        list(sleep.fall())


class Driver:
    """Stands in for the driver's library: notes each call, hands out numbers, and fails where it is told to."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails: dict[str, int] = {}

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            self.calls.append(name.removeprefix("cuMem"))
            first = getattr(arguments[0], "_obj", None)
            if first is not None and name not in self.fails:
                first.value = 1 << 21 if "Granularity" in name else len(self.calls) << 21
            return self.fails.get(name, 0)

        return call


def test_the_drivers_calls_come_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: driver.calls.append("synchronize"))
    assert ctypes.sizeof(fixed._Properties) == 32 and ctypes.sizeof(fixed._Access) == 12, "as cuda.h lays them out"
    pages = fixed.CudaPages(torch.device("cuda", 0))
    monkeypatch.setattr(pages, "tensor", lambda address, nbytes, owner: torch.empty(nbytes, dtype=torch.uint8))
    slab = fixed.Slab(pages, 5)
    assert slab.size == pages.granularity == 1 << 21
    slab.let_go()
    slab.bring_back()
    made = ["Create", "Map", "SetAccess"]
    expected = ["GetAllocationGranularity", "AddressReserve", *made, "synchronize", "Unmap", "Release", *made]
    assert driver.calls == expected
    slab.let_go()
    driver.fails["cuMemCreate"] = 2
    with pytest.raises(OSError, match="no room for the models"):
        slab.bring_back()
    with pytest.raises(OSError, match="no room"):
        fixed.Slab(pages, 5)
    driver.fails = {"cuMemUnmap": 700}
    assert driver.calls[-1] == "AddressFree", "an address without memory is given back"
    pages._handles[0] = ctypes.c_ulonglong(3)
    with pytest.raises(OSError, match="cuMemUnmap of the GPU's driver answers 700"):
        pages.let_go(0, 5)
    driver.fails.clear()
    driver.calls.clear()
    del slab
    gc.collect()
    assert driver.calls == ["AddressFree"], "what is away is not let go twice"


@pytest.mark.slow
def test_an_engine_goes_on_as_if_it_had_never_slept(pages: PoisonedPages, tmp_path: Path) -> None:
    """Captured steps hold addresses: weights of any bits but the old ones would show in the first word."""
    config = LLMConfig(
        vocab_size=64, hidden_size=32, intermediate_size=24, layer_types=(LINEAR, FULL), num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8,
        linear_value_head_dim=8,
    )  # fmt: skip
    save_checkpoint(tmp_path / "model", config, init_params(config, torch.Generator().manual_seed(0), 0.2))

    def said(sleeps: bool) -> list[int]:
        ctx = ExecContext("cpu")
        ctx.fixed = FixedMemory(pages) if sleeps else None
        llm = HybridLLM.load(tmp_path / "model", ctx, max_positions=64)
        assert sleeps == all(buffer.tensor.data_ptr() % 512 == 0 for buffer in ctx.buffers("llm", Role.WEIGHT))
        sleep, words = Sleep([ctx], tmp_path / "away"), []
        llm.append([1, 2, 3])
        llm.set_sampling(Sampling(temperature=0.9, seed=4))
        for _ in range(12):
            words.append(llm.step())
            if sleeps:
                for _ in sleep.fall():
                    pass
                assert len(pages.away) == 1
                sleep.wake()
        return words

    assert said(sleeps=True) == said(sleeps=False)
