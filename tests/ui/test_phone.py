"""The page on a phone: it can be installed, keeps its token, and the screen on while a talk runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import chromium, speech_file
from fake_server import FakeServer, Script
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Playwright, Request, Route, expect

pytestmark = pytest.mark.browser
SLOW = 30_000
UI = Path(__file__).parents[2] / "ui"
LOCKS = """
window.held = 0;
const request = navigator.wakeLock.request.bind(navigator.wakeLock);
navigator.wakeLock.request = async (kind) => {
  const lock = await request(kind);
  window.held += 1;
  lock.addEventListener("release", () => { window.held -= 1; });
  return lock;
};
"""


@pytest.fixture(scope="module")
def browser(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = chromium(playwright, speech_file(tmp_path_factory.mktemp("voice") / "quiet.wav", [], 5.0))
    yield browser
    browser.close()


@pytest.fixture
def phone(playwright: Playwright, browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(**playwright.devices["Pixel 7"], bypass_csp=True,
                                  permissions=["microphone", "screen-wake-lock"])  # fmt: skip
    yield context
    context.close()


@pytest.fixture
def server() -> Iterator[FakeServer]:
    server = FakeServer(Script()).start()
    yield server
    server.stop()


def test_it_can_be_installed_and_keeps_the_screen_on_while_a_talk_runs(
    phone: BrowserContext, server: FakeServer
) -> None:
    phone.add_init_script(LOCKS)
    page = phone.new_page()
    page.goto(f"{server.url}#token=a-long-secret")
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    devtools = phone.new_cdp_session(page)
    told = [error["errorId"] for error in devtools.send("Page.getInstallabilityErrors")["installabilityErrors"]]
    assert told == ["in-incognito"], "as every page of a test is"
    manifest = devtools.send("Page.getAppManifest")
    assert manifest["errors"] == []
    read = json.loads(manifest["data"])
    for icon in (icon for icon in read["icons"] if icon["type"] == "image/png"):
        with Image.open(UI / icon["src"]) as picture:
            assert "x".join(map(str, picture.size)) == icon["sizes"]
    assert page.evaluate("held") == 0
    page.tap("#mic")
    page.wait_for_function("held === 1", timeout=SLOW)
    serious = [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
    assert serious == []
    page.tap("#mic")
    page.wait_for_function("held === 0", timeout=SLOW)


def carries_token(request: Request) -> bool:
    return request.headers.get("authorization") == "Bearer a-long-secret"


def test_a_missing_token_is_asked_for_and_kept_for_the_installed_page(
    phone: BrowserContext, server: FakeServer
) -> None:
    def guard(route: Route) -> None:
        known = carries_token(route.request)
        route.continue_() if known else route.fulfill(status=401, json={"error": {"message": "no"}})

    phone.route("**/v1/**", guard)
    page = phone.new_page()
    wrong = [True]
    page.route_web_socket("**/v1/realtime**", lambda one: one.close() if wrong else one.connect_to_server())
    page.goto(f"{server.url}#token=an-older-secret")
    expect(page.locator("#locked")).to_be_visible(timeout=SLOW)
    assert [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")] == []
    wrong.clear()
    page.fill("#token", "a-long-secret")
    with page.expect_request(lambda one: "household" in one.url and carries_token(one)):
        page.tap("#unlock button")
    page.close()
    page = phone.new_page()
    with page.expect_request(lambda one: "household" in one.url and carries_token(one)):
        page.goto(server.url)
