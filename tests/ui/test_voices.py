"""A voice of one's own through the page: read aloud into a real microphone, measured, heard, used, removed; by hand and
by keyboard, on a telephone's width. Behind it the product with a random voice model in the published layout."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import RATE, chromium, write_wav
from playwright.sync_api import Page, Playwright, expect
from product import Product, say

from tests.fakes.recordings import voice_like
from tests.tts_engine.miniature import write_miniature

SLOW = 60_000
READ = "The morning was bright and a little cold. We walked along the river, and talked about nothing much. " * 2
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="no espeak-ng here; it reads aloud"),
]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    product = Product(folder / "home", "--tts", str(write_miniature(folder / "mini")))
    yield product
    product.stop()


@pytest.fixture
def microphone(tmp_path: Path) -> Path:
    say(READ, tmp_path / "microphone.wav", before_s=0.2)
    return tmp_path / "microphone.wav"


@pytest.fixture
def page(playwright: Playwright, product: Product, microphone: Path) -> Iterator[Page]:
    browser = chromium(playwright, microphone)
    page = browser.new_context(permissions=["microphone"], viewport={"width": 390, "height": 780}).new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.add_init_script(
        """const { mediaDevices } = navigator;
        const ask = mediaDevices.getUserMedia.bind(mediaDevices);
        window.asked = [];
        mediaDevices.getUserMedia = async (what) => (asked.push(what.audio), ask(what));"""
    )
    page.goto(product.url)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    page.click("#who summary")
    page.click("#all-voices")
    expect(page.locator("#voice-list li")).not_to_have_count(0)
    yield page
    browser.close()
    assert [text for text in said if "409" not in text and "400" not in text] == []


def listed(product: Product) -> dict[str, dict[str, object]]:
    with urllib.request.urlopen(f"{product.url}v1/audio/voices", timeout=10) as answer:
        return {one["name"]: one for one in json.load(answer)["data"]}


def recorded(page: Page) -> None:
    page.click("#record")
    expect(page.locator("#record-told")).to_contain_text("s left", timeout=SLOW)
    expect(page.locator("#record")).to_have_text("Record again", timeout=SLOW)


def test_a_voice_is_recorded_heard_used_and_removed(page: Page, product: Product) -> None:
    assert Axe().run(page, context="#voices").response["violations"] == []
    recorded(page)
    expect(page.locator("#record-told")).to_have_text("10 s. Listen to it before you keep it.")
    expect(page.locator("#voice-told")).to_have_text("")
    expect(page.locator("#recorded")).to_be_visible()
    for cleaning in ("echoCancellation", "noiseSuppression", "autoGainControl"):
        assert page.evaluate("name => asked.map((one) => one[name])", cleaning) == [False]  # a voice as it is
    page.fill("#voice-name", "mine")
    expect(page.locator("#keep-voice")).to_be_disabled()  # without a word on consent
    page.focus("#consent")
    page.keyboard.press("Space")
    page.focus("#keep-voice")
    page.keyboard.press("Enter")
    expect(page.locator("#voice-told")).to_contain_text("Kept as mine", timeout=SLOW)
    assert "river" in str(listed(product)["mine"]["transcript"]).lower()
    expect(page.locator("#hear-mine")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#sample")).to_be_visible(timeout=SLOW)
    page.click("[aria-label='Use mine in this talk']")
    expect(page.locator("#voice")).to_have_value("mine")
    page.click("[aria-label='Remove mine']")
    expect(page.locator("#voice-told")).to_contain_text("The voice mine is in use by a talk that is open")
    page.click("[aria-label='Remove mine']")
    expect(page.locator("#voice-told")).to_have_text("mine was removed.")
    assert "mine" not in listed(product)
    page.keyboard.press("Escape")
    expect(page.locator("#voices")).to_be_hidden()


@pytest.mark.parametrize(("gain", "said"), [(0.0, "Nothing was recorded"), (0.01, "too quiet")])
def test_what_is_no_voice_is_told_in_words(
    page: Page, product: Product, microphone: Path, gain: float, said: str
) -> None:
    """Clipping is told in `recording.test.mjs`: the browser's own limiter hides it of this microphone."""
    before = listed(product)
    write_wav(microphone, voice_like(20.0, RATE) * gain, RATE)
    recorded(page)
    expect(page.locator("#voice-told")).to_contain_text(said)
    page.fill("#voice-name", "mine")
    page.check("#consent")
    expect(page.locator("#keep-voice")).to_be_disabled()
    assert listed(product) == before
