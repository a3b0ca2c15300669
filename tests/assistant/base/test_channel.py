"""A bounded queue between two tasks: it makes its sender wait, ends, and passes turns on."""

import asyncio

import pytest

from assistant.base.channel import Channel
from assistant.base.clock import LoopClock
from assistant.base.errors import ChannelClosed
from tests.fakes.loop import run


def test_a_full_channel_makes_its_sender_wait_and_a_closed_one_gives_what_is_left():
    async def play():
        channel: Channel[int] = Channel(2)
        log = []

        async def send():
            for i in range(4):
                await channel.send(i)
                log.append((i, LoopClock().now()))
            channel.close()

        task = asyncio.ensure_future(send())
        await asyncio.sleep(1)
        got = [await channel.receive()]
        await asyncio.sleep(1)
        got += [item async for item in channel]
        await task
        with pytest.raises(ChannelClosed):
            await channel.send(9)
        assert not channel.offer(9)
        return log, got

    log, got = run(play())
    assert log == [(0, 0), (1, 0), (2, 1), (3, 2)] and got == [0, 1, 2, 3]


def test_a_cancelled_waiter_passes_its_turn_on():
    async def play():
        channel: Channel[int] = Channel(1)
        first, second = (asyncio.ensure_future(channel.receive()) for _ in range(2))
        await asyncio.sleep(0)
        channel.offer(1)
        first.cancel()
        assert await second == 1

    run(play())
