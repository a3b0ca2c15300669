"""One talk and two tabs, and a page that is reloaded while it speaks; the real server and Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium
from playwright.sync_api import Browser, Page, Playwright, expect

from tests.fakes.talk import World
from tests.fakes.web import serving_aside

pytestmark = pytest.mark.browser
UI = Path(__file__).parents[2] / "ui"
SLOW = 30_000
COUNT = " ".join(str(n) for n in range(1, 51)) + "."


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    browser = chromium(playwright)
    yield browser
    browser.close()


def answers(prompt) -> list[str]:
    return [COUNT if "count" in prompt.lines[-1].text else "Well."]


def ready(page: Page) -> None:
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)


def ask(page: Page, text: str) -> None:
    page.fill("#text", text)
    page.press("#text", "Enter")


def test_of_a_duplicated_tab_the_first_says_where_the_talk_goes_on_and_stays_closed(browser: Browser) -> None:
    with serving_aside(lambda: World(answers, speed=20.0), UI) as base:
        context = browser.new_context()
        first = context.new_page()
        sockets: list[str] = []
        first.on("websocket", lambda socket: sockets.append(socket.url))
        first.goto(base.removesuffix("v1"))
        ready(first)
        ask(first, "hello")
        expect(first.locator("li.reply .text").last).to_have_text("Well.", timeout=SLOW)
        ready(first)
        with context.expect_page() as opened:  # a window that a page opens gets a copy of what the tab keeps
            first.evaluate("window.open(location.href)")
        second = opened.value
        ready(second)
        expect(second.locator("li.reply .text").last).to_have_text("Well.", timeout=SLOW)
        expect(first.locator("#phase")).to_have_text(
            "Our talk goes on in another tab. Reload this page to bring it back here.", timeout=SLOW
        )
        second.wait_for_timeout(3000)
        assert len(sockets) == 1 and first.locator("body").get_attribute("data-link") == "moved"
        assert first.locator(".notice").count() == 0
        ask(second, "and now")
        expect(second.locator("li.reply .text")).to_have_count(2, timeout=SLOW)
        first.reload()
        ready(first)
        expect(first.locator("li.reply .text")).to_have_count(2, timeout=SLOW)
        expect(second.locator("body")).to_have_attribute("data-link", "moved", timeout=SLOW)
        context.close()


def test_a_page_that_is_reloaded_in_mid_reply_remembers_what_was_heard(browser: Browser) -> None:
    with serving_aside(lambda: World(answers, speed=20.0), UI) as base:
        context = browser.new_context()
        page = context.new_page()
        page.goto(base.removesuffix("v1"))
        ready(page)
        ask(page, "count to fifty")
        page.wait_for_selector("body[data-phase='speaking']", timeout=SLOW)
        expect(page.locator("li.reply .text").last).to_contain_text("5", timeout=SLOW)  # more is sent ahead
        page.reload()
        ready(page)
        reply = page.locator("li.reply .text").last
        expect(reply.locator("s")).to_be_visible(timeout=SLOW)  # a reload shows like the interruption that it is
        whole, unheard = reply.text_content() or "", reply.locator("s").text_content() or ""
        words = re.findall(r"\d+", whole.removesuffix(unheard))
        struck = re.findall(r"\d+", unheard)
        assert struck == [str(n) for n in range(len(words) + 1, len(words) + 1 + len(struck))] and struck
        assert words == [str(n) for n in range(1, len(words) + 1)] and len(words) >= 4
        context.close()
