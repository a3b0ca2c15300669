"""Screenshots of the page's main states into docs/, taken from a real browser against the scripted server.

.venv/bin/python tests/ui/shots.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from browser import chromium, speech_file
from fake_server import FakeServer, Script
from playwright.sync_api import Page, ViewportSize, expect, sync_playwright

DOCS = Path(__file__).parents[2] / "docs"
TIMER = "set a timer for five minutes"
WIDE: ViewportSize = {"width": 1360, "height": 860}
NARROW: ViewportSize = {"width": 402, "height": 840}


def script() -> Script:
    count = "One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen."
    return Script(
        heard=["what time is it", "count to twenty please", "stop, what was the last number", TIMER],
        replies={
            "what time is it": "It is twenty past nine in the evening.",
            "count to twenty please": count,
            "stop, what was the last number": "The last number I said was {last}. Shall I go on?",
            TIMER: "Done. Five minutes from now.",
            "Who are you?": "I am a small assistant on this machine. I can tell the time, set timers and tell stories.",
        },
        tools={TIMER: ("set_timer", '{"minutes": 5}', '{"ends": "21:26"}')},
    )  # fmt: skip


def talk(page: Page, server: FakeServer, shoot: bool) -> None:
    """Welcome, a question, a barge-in, a tool call, a typed turn."""
    page.goto(server.url)
    page.wait_for_selector("body[data-phase='idle']")
    page.evaluate("document.fonts.ready")
    if shoot:
        page.screenshot(path=DOCS / "page-idle.png")
    page.click("#mic")
    page.wait_for_selector("body[data-phase='hearing']")
    expect(page.locator(".you .text").last).to_contain_text("time")
    if shoot:
        page.screenshot(path=DOCS / "page-listening.png")
    expect(page.locator(".reply .text").last).to_contain_text("four,", timeout=20000)
    if shoot:
        page.screenshot(path=DOCS / "page-speaking.png")
    page.wait_for_selector(".reply s")
    expect(page.locator(".reply .text").last).to_contain_text("go on", timeout=20000)
    if shoot:
        page.screenshot(path=DOCS / "page-interrupted.png")
    expect(page.locator(".reply .text").last).to_contain_text("Five minutes", timeout=20000)
    page.wait_for_selector("body[data-phase='listening']")
    page.click("#mic")
    page.fill("#text", "Who are you?")
    page.press("#text", "Enter")
    expect(page.locator(".reply .text").last).to_contain_text("tell stories", timeout=20000)
    page.wait_for_selector("body[data-phase='idle']")


def main() -> None:
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        voice = speech_file(
            Path(folder) / "voice.wav", [(1.5, 1.6), (7.6, 1.4), (13.2, 1.6), (21.0, 1.6)], 60.0
        )
        browser = chromium(playwright, voice)
        for scheme, size, shoot in (("light", WIDE, True), ("dark", WIDE, False), ("light", NARROW, False)):
            server = FakeServer(script()).start()
            context = browser.new_context(color_scheme=scheme, viewport=size, device_scale_factor=2)
            page = context.new_page()
            page.on("console", lambda message: print("console:", message.text))
            page.on("pageerror", lambda error: print("error:", error))
            talk(page, server, shoot)
            if shoot:
                page.click("[aria-label='Earlier turn']")
                page.click("[aria-label='Earlier turn']")
                page.locator(".time").screenshot(path=DOCS / "page-waterfall.png")
                with page.expect_download() as download:
                    page.click("#save-picture")
                download.value.save_as(Path(folder) / "turn.png")
                (DOCS / "turn-picture.png").write_bytes((Path(folder) / "turn.png").read_bytes())
                page.locator(".side").evaluate("side => side.scrollTo(0, side.scrollHeight)")
                page.screenshot(path=DOCS / "page-state.png")
            elif scheme == "dark":
                page.screenshot(path=DOCS / "page-dark.png")
            else:
                page.screenshot(path=DOCS / "page-narrow.png")
                page.click(".panels [data-panel='time']")
                page.screenshot(path=DOCS / "page-narrow-time.png")
            context.close()
            server.stop()
        browser.close()


if __name__ == "__main__":
    main()
