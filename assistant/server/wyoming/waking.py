"""Sound to the name that was called, by the wake words that this machine knows."""

from __future__ import annotations

import asyncio
from functools import partial

from wyoming.event import Event
from wyoming.wake import Detection, NotDetected

from assistant.base.channel import Channel
from assistant.base.errors import PeerError
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import WakeWords
from assistant.realtime.fields import Fields
from assistant.server.wyoming.hearing import Send, blocks
from assistant.talk.off_loop import SessionThreads

MISSING = "there are no wake words here; the extra `wake` of voice-assistant adds them"


def known_words(words: WakeWords | None) -> WakeWords:
    """Raises PeerError where there are none."""
    if words is None or not words.words:
        raise PeerError("invalid_value", MISSING)
    return words


def read_names(event: Event, words: WakeWords) -> tuple[str, ...]:
    """The wake words that are asked for; none: all of them. Raises PeerError for one that is not known here."""
    names = tuple(str(name) for name in Fields(event.data, event.type).array("names") or ())
    for name in names:
        if name not in words.words:
            told = f"there is no wake word {name[:40]!r}; there are {', '.join(words.words)}"
            raise PeerError("invalid_value", told, "names")
    return names


async def wait_for_name(words: WakeWords, names: tuple[str, ...], sounds: Channel[Pcm], send: Send) -> None:
    """Send each call when its name is over, and that there was none when `sounds` is closed without one."""
    threads = SessionThreads(asyncio.to_thread)
    called, heard = False, 0
    try:
        spotter = await threads(words.spotter)
        async for block in blocks(sounds):
            heard += block.size
            name = await threads(partial(spotter.spot, block))
            if name is None or (names and name not in names):
                continue
            called = True
            spotter.start_over()  # else the same call is found again in the next block
            await send(Detection(name, heard * 1000 // HEARING_RATE))
        if not called:
            await send(NotDetected())
    finally:
        await threads.finished()
