"""The loop whose time jumps tells a deadlock instead of hanging."""

import asyncio

import pytest

from tests.fakes.loop import Stuck, run


def test_the_virtual_loop_tells_a_deadlock():
    async def forever():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck):
        run(forever())
