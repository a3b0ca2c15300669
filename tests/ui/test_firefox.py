"""The page in the Firefox that people have: it opens, hears, answers aloud, and its console stays empty."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import numpy as np
import pytest
from fake_server import WORD_MS, FakeServer, Script, tone
from firefox import MISSING, Firefox, Stuck

from tests.fakes.sound_system import SoundSystem

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"no {' or '.join(MISSING)} here; install the packages firefox-esr and pulseaudio to un-skip"
)


def likeness(sound: np.ndarray, words: int) -> float:
    """Correlation, 0 to 1, of the best place in a sound with a scripted reply of so many words."""
    wanted = np.concatenate([tone(n) for n in range(words)])
    size = 1 << (sound.size + wanted.size).bit_length()
    products = np.fft.irfft(np.fft.rfft(sound, size) * np.conj(np.fft.rfft(wanted, size)), size)[: sound.size]
    at = int(products[: sound.size - wanted.size].argmax())
    piece = sound[at : at + wanted.size]
    return float(piece @ wanted / (np.linalg.norm(piece) * np.linalg.norm(wanted) + 1e-9))


async def visit(url: str, speaker: SoundSystem, profile: Path) -> list[str]:
    """A written turn, then a spoken one with push to talk; what the console says of it."""
    async with Firefox(profile, speaker.environment) as page:
        await page.open(url)
        await page.until("document.body.dataset.phase === 'idle'")
        await page.click("#text")
        await page.type("and now\n")
        await page.until("document.querySelector('.reply .text')?.textContent === 'Still here.'")
        await page.until("document.body.dataset.phase === 'idle'")
        await page.click("#mode")
        await page.click("#mic")  # opens the microphone; too short to say anything
        await page.until("!document.getElementById('mute').hidden")
        await page.value("document.getElementById('mic').focus()")
        await page.hold(" ", 1200)
        await page.until("[...document.querySelectorAll('.reply .text')].at(-1).textContent === 'It is ten past nine.'")
        await page.until("document.body.dataset.phase === 'idle'")
        assert await page.value("document.querySelectorAll('.reply .meta button').length") == 2
        return page.complaints


def talk() -> tuple[FakeServer, list[str], np.ndarray]:
    """The server, the console's complaints, and what the loudspeaker was given."""
    script = Script(
        heard=["what time is it"], replies={"and now": "Still here.", "what time is it": "It is ten past nine."}
    )
    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        server, speaker = FakeServer(script).start(), SoundSystem(Path(folder))
        try:
            return server, asyncio.run(visit(server.url, speaker, Path(folder) / "profile")), speaker.sound()
        finally:
            speaker.stop()
            server.stop()


def test_a_written_and_a_spoken_turn_are_answered_aloud() -> None:
    try:
        server, complaints, sound = talk()
    except Stuck:  # seen once: Firefox answered nothing for five minutes and used no time
        server, complaints, sound = talk()
    assert complaints == []
    assert server.unknown == []
    assert server.held_ms[0] > 500
    assert likeness(sound, 5) > 0.9
    assert server.heard[-1][1] == pytest.approx(5 * WORD_MS, abs=2)
