"""Sound that stops is told and kept: a suspended speaker, a microphone that the system takes, a worklet that fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import chromium, speech_file
from fake_server import WORD_MS, FakeServer, Script
from playwright.sync_api import Browser, Page, Playwright, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SLOW = 60_000
COUNT = "One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve."
HANDS = """
window.contexts = [];
window.AudioContext = class extends AudioContext { constructor(...all) { super(...all); contexts.push(this); } };
const { mediaDevices } = navigator;
const ask = mediaDevices.getUserMedia.bind(mediaDevices);
window.tracks = [];
mediaDevices.getUserMedia = async (what) => {
  const stream = await ask(what);
  tracks.push(...stream.getTracks());
  return stream;
};
window.systemMutes = (muted) => {
  Object.defineProperty(tracks[0], "muted", { configurable: true, get: () => muted });
  tracks[0].dispatchEvent(new Event(muted ? "mute" : "unmute"));
};
"""


@pytest.fixture(scope="module")
def browser(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Its microphone hears silence."""
    browser = chromium(playwright, speech_file(tmp_path_factory.mktemp("voice") / "voice.wav", [], 120.0))
    yield browser
    browser.close()


@pytest.fixture
def server() -> Iterator[FakeServer]:
    server = FakeServer(Script(replies={"count": COUNT, "and now": "Still here."})).start()
    yield server
    server.stop()


@pytest.fixture
def page(browser: Browser, server: FakeServer) -> Iterator[Page]:
    context = browser.new_context(permissions=["microphone"])
    page = context.new_page()
    page.add_init_script(HANDS)
    page.goto(server.url)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    yield page
    context.close()


def write(page: Page, text: str) -> None:
    page.fill("#text", text)
    page.press("#text", "Enter")


def test_a_suspended_reply_is_held_and_goes_on_where_it_stopped(page: Page, server: FakeServer) -> None:
    write(page, "count")
    expect(page.locator(".reply .text")).to_contain_text("two,", timeout=SLOW)
    page.evaluate("contexts[0].resume = () => new Promise(() => {}); contexts[0].suspend()")
    expect(page.locator("#phase")).to_have_text("The sound is paused. Tap to go on.", timeout=SLOW)
    page.wait_for_function("contexts[0].state === 'suspended'", timeout=SLOW)
    held = page.locator(".reply .text").text_content() or ""
    assert COUNT.startswith(held) and held != COUNT
    page.evaluate("delete contexts[0].resume")
    page.mouse.click(5, 300)
    expect(page.locator(".reply .text")).to_have_text(COUNT, timeout=SLOW)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    reports = [ms for _, ms in server.heard]
    assert reports == sorted(reports) and abs(reports[-1] - len(COUNT.split()) * WORD_MS) < 2  # every word was heard


def test_a_microphone_that_the_system_takes_says_so_and_goes_on(page: Page) -> None:
    page.click("#mic")
    expect(page.locator("#phase")).to_have_text("Listening", timeout=SLOW)
    page.evaluate("systemMutes(true)")
    expect(page.locator("#phase")).to_have_text("The microphone is paused. Tap to go on.", timeout=SLOW)
    expect(page.get_by_role("button", name="Go on listening")).to_be_visible()
    page.evaluate("systemMutes(false)")
    expect(page.locator("#phase")).to_have_text("Listening", timeout=SLOW)
    page.evaluate("contexts.at(-1).suspend()")
    expect(page.locator("#phase")).to_have_text("The microphone is paused. Tap to go on.", timeout=SLOW)
    page.click("#mic")
    expect(page.locator("#phase")).to_have_text("Listening", timeout=SLOW)


def test_a_worklet_that_failed_leaves_text_and_is_tried_again(page: Page, server: FakeServer) -> None:
    page.evaluate("""() => {
      window.load = AudioWorklet.prototype.addModule;
      AudioWorklet.prototype.addModule = async () => { throw new DOMException("gone", "AbortError"); };
    }""")
    write(page, "and now")
    expect(page.locator(".reply .text")).to_have_text("Still here.", timeout=SLOW)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    assert server.heard == []
    page.evaluate("() => { AudioWorklet.prototype.addModule = load; }")
    write(page, "count")
    page.wait_for_selector("body[data-phase='speaking']", timeout=SLOW)
    expect(page.locator(".reply .text").last).to_contain_text("two,", timeout=SLOW)
    assert server.heard


def test_a_permission_that_is_taken_back_is_told_and_typing_goes_on(playwright: Playwright, server: FakeServer) -> None:
    browser = chromium(playwright)  # one that answers for the person has no permission to take back
    try:
        context = browser.new_context(permissions=["microphone"])
        page = context.new_page()
        page.goto(server.url)
        page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
        page.click("#mic")
        expect(page.locator("#phase")).to_have_text("Listening", timeout=SLOW)
        hands = context.new_cdp_session(page)
        hands.send("Browser.setPermission", {
            "permission": {"name": "microphone"}, "setting": "denied", "origin": server.url.rstrip("/"),
            "browserContextId": hands.send("Target.getTargetInfo")["targetInfo"]["browserContextId"],
        })  # fmt: skip
        expect(page.get_by_text("The microphone is blocked.")).to_be_visible(timeout=SLOW)
        expect(page.locator("#phase")).to_have_text("Press the button and talk")
        write(page, "and now")
        expect(page.locator(".reply .text")).to_have_text("Still here.", timeout=SLOW)
    finally:
        browser.close()
