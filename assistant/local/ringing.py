"""Words for nobody in particular on this machine's loudspeaker: a timer that is done while no front is connected."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from assistant.base.errors import DeviceError
from assistant.events import REPLY_RATE, Pcm
from assistant.local.devices import chatter_to, check_loudspeaker, loudspeaker
from assistant.local.player import Player

LOOK_S = 0.05


def has_loudspeaker() -> bool:
    """Whether there is a default loudspeaker that takes our sound."""
    try:
        check_loudspeaker()
    except DeviceError:
        return False
    return True


async def play_aloud(sound: AsyncIterator[Pcm]) -> bool:
    """Play sound to its end. Returns False if the loudspeaker is gone."""
    player = Player()
    try:
        with chatter_to(Path(os.devnull)), loudspeaker(player):
            async for pcm in sound:
                player.put("ring", pcm)
            while player.current is not None:
                await asyncio.sleep(LOOK_S)
            await asyncio.sleep(player.latency_samples / REPLY_RATE)
    except DeviceError:
        return False
    return True
