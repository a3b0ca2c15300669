"""Pictures on the page in the Firefox that people have: given in every way, seen, taken back, without a complaint."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from firefox import MISSING, NO_SCREEN, Firefox, Screen
from showing import Watched, copying, giving, png

from tests.fakes.sound_system import SoundSystem
from tests.fakes.web import serving_aside

LACKING = [*MISSING, *NO_SCREEN]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(LACKING),
        reason=f"no {' or '.join(LACKING)} here; install the packages firefox-esr, pulseaudio and xvfb to un-skip",
    ),
]
UI = Path(__file__).parents[2] / "ui"
SHOTS = "document.querySelectorAll('.shot').length"
SIGN = "!document.getElementById('showing').hidden"
IN_VIEW = "document.getElementById('view').videoWidth > 0"
LARGER = "document.getElementById('larger').open"
FITS = "document.documentElement.scrollWidth <= innerWidth"


async def ask(page: Firefox, text: str, answer: str) -> None:
    """Written, and answered so, with a picture's size at its place."""
    await page.until("document.body.dataset.phase === 'idle'")
    await page.value("document.getElementById('text').focus()")
    await page.type(f"{text}\n")
    await page.until(f"/^{answer}$/.test([...document.querySelectorAll('.reply .text')].at(-1)?.textContent)")
    await page.until("document.body.dataset.phase === 'idle'")


async def press(page: Firefox, selector: str) -> None:
    """What takes the focus and is a button works by keyboard. Its window is never the active one here, as nothing
    manages windows, and Firefox lets keys press buttons in the active one only; so it is clicked."""
    button = f"document.querySelector('{selector}')"
    assert await page.value(f"({button}.focus(), document.activeElement === {button} && {button}.matches('button'))")
    await page.click(selector)


async def files_and_the_clipboard(page: Firefox, folder: Path) -> None:
    await page.value(copying(png(100, 50)), by_hand=True)
    await page.click("#text")
    await page.paste()
    await page.until(f"{SHOTS} === 1")
    await page.value(giving("drop", png(60, 90, "red")))
    await page.until(f"{SHOTS} === 2")
    (folder / "thing.png").write_bytes(png())
    await page.choose("#file", folder / "thing.png")
    await page.until(f"{SHOTS} === 3")
    await ask(page, "look", "look: 100 by 50 and 60 by 90 and 320 by 200.")
    await page.value(giving("drop", b"hello", "text/plain"))
    await page.until("document.querySelector('.notice')?.textContent.includes('cannot read that file')")


async def camera_on_a_phone(page: Firefox) -> None:
    await page.resize(360, 720)
    assert not await page.value(SIGN)
    await press(page, "#camera")
    await page.until(f"{SIGN} && {IN_VIEW}")
    await ask(page, "and this", r"and this: \d+ by \d+.")
    await page.until(f"{SHOTS} === 4")
    await press(page, "#now")
    await page.until(f"{SHOTS} === 5")
    assert await page.value(FITS)
    await press(page, ".shot")
    assert await page.value(LARGER) and await page.value(FITS)
    await page.type("\ue00c")  # Escape
    await page.until(f"!{LARGER}")
    await press(page, "#off")
    await page.until(f"!({SIGN}) && document.getElementById('view').srcObject === null")


async def visit(url: str, environment: dict[str, str], folder: Path) -> list[str]:
    async with Firefox(folder / "profile", environment) as page:
        await page.open(url)
        await page.until("document.body.dataset.phase === 'idle'")
        await files_and_the_clipboard(page, folder)
        await camera_on_a_phone(page)
        await page.resize(1280, 800)
        await page.click("#screen")
        await page.until(f"{SIGN} && {IN_VIEW}")
        await ask(page, "what does it say", r"what does it say: .*1280 by 900.")
        await page.click("#screen")
        await page.until(f"!({SIGN})")
        for _ in range(3):
            await page.click("#undo")
            await asyncio.sleep(0.3)
        await page.until(f"{SHOTS} === 0 && document.querySelectorAll('#conversation li').length === 0")
        return page.complaints


def test_pictures_are_given_in_every_way_and_taken_back() -> None:
    watched = Watched()
    with tempfile.TemporaryDirectory() as name, serving_aside(watched.world, UI) as base:  # a socket's path is short
        folder, screen = Path(name), Screen()
        speaker = SoundSystem(folder)
        try:
            environment = screen.environment | speaker.environment
            assert asyncio.run(visit(base.removesuffix("v1"), environment, folder)) == []
        finally:
            speaker.stop()
            screen.stop()
    assert all(len(line.pictures) <= 4 for prompt in watched.prompts for line in prompt.lines)
