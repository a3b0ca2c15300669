"""Takes the picture of the page that README shows: one talk with the product itself, in a real browser.

.venv/bin/python tests/ui/shots.py

The figures in the picture are those of the machine that took it, so nothing else should run beside it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from browser import chromium
from playwright.sync_api import Page, ViewportSize, expect, sync_playwright
from product import Product, say

DOCS = Path(__file__).parents[2] / "docs"
WIDE: ViewportSize = {"width": 1360, "height": 860}
SLOW = 60_000


def asked_aloud(page: Page, words: str, microphone: Path, button: str = "#mic") -> None:
    """Open the microphone on a file with these words."""
    say(words, microphone, before_s=0.8)
    page.click(button)


def replied(page: Page, replies: int) -> None:
    expect(page.locator("li.reply .meta button")).to_have_count(replies, timeout=SLOW)
    page.wait_for_selector("body[data-phase='listening'], body[data-phase='idle']", timeout=SLOW)


def write(page: Page, text: str) -> None:
    page.fill("#text", text)
    page.press("#text", "Enter")


def talk(page: Page, microphone: Path) -> None:
    """A question, a sum, and a count that is talked over."""
    asked_aloud(page, "what time is it", microphone)
    page.wait_for_selector("body[data-phase='hearing']", timeout=SLOW)
    expect(page.locator(".you .text")).to_contain_text("time", timeout=SLOW)
    replied(page, 1)
    page.click("#mic")

    write(page, "What is 12 times 9?")
    replied(page, 2)
    write(page, "count to twenty")
    expect(page.locator(".reply .text").last).to_contain_text("2,", timeout=SLOW)
    asked_aloud(page, "what was the last number you said", microphone, "#mute")
    expect(page.locator(".reply .text").last).to_contain_text("4,", timeout=SLOW)
    page.wait_for_selector(".reply s", timeout=SLOW)
    replied(page, 4)
    page.screenshot(path=DOCS / "page-interrupted.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        product = Product(Path(folder) / "home")
        microphone = Path(folder) / "microphone.wav"
        browser = chromium(playwright, microphone)
        page = browser.new_context(viewport=WIDE, device_scale_factor=2).new_page()
        page.on("console", lambda message: print("console:", message.text))
        page.on("pageerror", lambda error: print("error:", error))
        page.goto(product.url)
        page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
        page.evaluate("document.fonts.ready")
        talk(page, microphone)
        browser.close()
        product.stop()


if __name__ == "__main__":
    main()
