"""Words for nobody in particular on this machine's loudspeaker: a timer that is done while no front is connected."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from assistant.base.errors import DeviceError
from assistant.events import REPLY_RATE, Pcm
from assistant.local.devices import chatter_to, check_loudspeaker, loudspeaker
from assistant.local.player import Player

LOOK_S = 0.05
Play: TypeAlias = Callable[[AsyncIterator[Pcm]], Awaitable[bool]]


def find_loudspeaker(report: Callable[[str], None], otherwise: str) -> Play | None:
    """The default loudspeaker, if it takes our sound; None behind a report that there is none, which means
    `otherwise`."""
    try:
        check_loudspeaker()
    except DeviceError:
        report(f"there is no loudspeaker here: {otherwise}")
        return None
    return play_aloud


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
