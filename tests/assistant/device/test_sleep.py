"""Models that sleep: the next step wakes them, a step in between ends the falling asleep, and what it took is told."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import torch

from assistant.base.errors import EngineFailed
from assistant.device.schedule import EngineKind
from assistant.device.sleep import Sleep, Waking
from assistant.device.thread import EngineThread, Work
from capsules import ExecContext, Role
from capsules.exec import away
from tests.fakes.cuda import fake_cuda

MIB = 1 << 20


class House:
    """A context of two buffers, and the thread that may touch them."""

    def __init__(self, folder: Path) -> None:
        self.ctx = ExecContext("cpu")
        self.weight = self.ctx.buffer("a.w", [4 * MIB], torch.uint8, role=Role.WEIGHT).tensor.fill_(7)
        self.state = self.ctx.buffer("a.s", [MIB], torch.uint8, role=Role.STATE).tensor.fill_(3)
        self.thread = EngineThread()
        self.sleep = Sleep([self.ctx], folder)
        self.thread.start(self.sleep)

    async def sums(self) -> tuple[int, int]:
        return await self.thread.call(EngineKind.TTS, lambda: (int(self.weight.sum()), int(self.state.sum())))


def run(folder: Path, story: Callable[[House], Awaitable[None]]) -> None:
    async def whole() -> None:
        house = House(folder)
        try:
            await story(house)
        finally:
            house.thread.stop()
            await asyncio.to_thread(house.thread.join)
            house.sleep.discard()

    asyncio.run(whole())


def test_a_step_of_any_work_wakes_them_and_finds_all_as_it_was(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        for round_ in range(3):
            before = await house.sums()
            assert await house.thread.fall_asleep() == 5 * MIB == house.thread.asleep_bytes
            assert await house.sums() == before
            assert house.thread.asleep_bytes == 0 and house.sleep.count == round_ + 1

    run(tmp_path, story)


def test_wake_is_there_when_it_returns(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        await house.thread.fall_asleep()
        await house.thread.wake()
        assert house.thread.asleep_bytes == 0 and int(house.weight[0]) == 7

    run(tmp_path, story)


def test_work_that_comes_up_ends_the_falling_asleep(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()
        fall = house.sleep.fall

        def slowly() -> Work[None]:
            for number, _ in enumerate(fall()):
                if number == 0:
                    loop.call_soon_threadsafe(begun.set)
                    while not house.thread.awaited:  # until the work is there
                        pass
                yield None

        house.sleep.fall = slowly  # type: ignore[method-assign]
        falling = asyncio.ensure_future(house.thread.fall_asleep())
        await begun.wait()
        assert await house.sums() == (7 * 4 * MIB, 3 * MIB)
        assert await falling == 0 and house.thread.asleep_bytes == 0

    run(tmp_path, story)


def test_where_memory_cannot_be_let_go_they_stay_awake_and_it_is_told(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        with pytest.raises(EngineFailed, match="stay awake"):
            await house.thread.fall_asleep()
        assert await house.sums() == (7 * 4 * MIB, 3 * MIB)

    (tmp_path / "file").write_text("in the way")
    run(tmp_path / "file", story)


def test_where_one_of_two_devices_is_a_gpu_both_stay_awake_and_one_line_names_it(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        with fake_cuda() as gpu:
            gpu.buffer("tts.w", [MIB], torch.uint8, role=Role.WEIGHT)
        house.sleep = Sleep([house.ctx, gpu], tmp_path)
        house.thread._sleep = house.sleep
        with pytest.raises(EngineFailed, match=r"^the models stay awake: .* only; tts\.w is on cuda:0$"):
            await house.thread.fall_asleep()
        assert house.thread.asleep_bytes == 0 and not list(tmp_path.iterdir())
        assert await house.sums() == (7 * 4 * MIB, 3 * MIB) and house.sleep.count == 0

    run(tmp_path, story)


def test_what_cannot_be_woken_is_told_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(house: House) -> None:
        await house.thread.fall_asleep()
        with monkeypatch.context() as broken:
            broken.setattr(away.os, "preadv", lambda *args: 0)
            with pytest.raises(EngineFailed, match="cannot be woken"):
                await house.sums()
        assert await house.sums() == (7 * 4 * MIB, 3 * MIB)

    run(tmp_path, story)


def test_a_thread_without_models_says_so() -> None:
    async def story() -> None:
        with pytest.raises(EngineFailed, match="no model"):
            await EngineThread().fall_asleep()

    asyncio.run(story())


def test_of_a_waking_that_is_counted_which_fell_behind_the_question() -> None:
    waking = Waking(2.0, 5.0)
    assert [waking.ms_after(moment) for moment in (1.0, 4.0, 6.0)] == [3000.0, 1000.0, 0.0]
    assert Waking().ms_after(0.5) == 0.0
