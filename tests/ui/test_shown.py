"""Pictures on the page: chosen, dropped, pasted, of a camera and a window; the real server, and a model that sees."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import camera_file, chromium
from PIL import Image
from playwright.sync_api import Browser, Page, Playwright, expect
from showing import Watched, giving, png

from assistant.contracts import CANNOT_SEE, Prompt
from tests.fakes.talk import World
from tests.fakes.web import serving_aside

pytestmark = pytest.mark.browser
UI = Path(__file__).parents[2] / "ui"
SLOW = 30_000


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def url(watched: Watched) -> Iterator[str]:
    with serving_aside(watched.world, UI) as base:
        yield base.removesuffix("v1")


@pytest.fixture(scope="module")
def browser(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = chromium(playwright, camera=camera_file(tmp_path_factory.mktemp("camera") / "still.y4m", 60))
    yield browser
    browser.close()


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    context = browser.new_context(permissions=["camera"])
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(url)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    yield page
    context.close()
    assert said == []


def file(name: str = "thing.png", data: bytes | None = None, kind: str = "image/png") -> dict:
    return {"name": name, "mimeType": kind, "buffer": png() if data is None else data}


def ask(page: Page, text: str) -> None:
    page.fill("#text", text)
    page.press("#text", "Enter")


def answer(page: Page, text: str) -> None:
    expect(page.locator("li.reply .text").last).to_have_text(text, timeout=SLOW)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)


def give(page: Page, kind: str, data: bytes, mime: str = "image/png") -> None:
    page.evaluate(giving(kind, data, mime))


def test_a_chosen_picture_is_small_in_the_talk_large_on_a_click_gone_with_undo(page: Page, watched: Watched) -> None:
    page.set_input_files("#file", [file()])
    expect(page.locator(".shot img")).to_have_count(1)
    ask(page, "what is this")
    answer(page, "what is this: 320 by 200.")
    page.click(".shot")
    expect(page.locator("#larger")).to_be_visible()
    expect(page.locator("#larger-facts")).to_have_text("320 × 200 · 1 tokens in this turn")
    page.keyboard.press("Escape")
    expect(page.locator("#larger")).to_be_hidden()
    page.click("#undo")
    expect(page.locator(".shot")).to_have_count(0)
    expect(page.locator("#conversation li")).to_have_count(0)
    ask(page, "and now")
    answer(page, "and now: nothing.")
    assert len(watched.prompts[-1].lines) == 1


def test_pictures_are_pasted_and_dropped_and_what_is_none_is_told(page: Page) -> None:
    give(page, "paste", png(100, 50))
    expect(page.locator(".shot")).to_have_count(1)
    give(page, "drop", png(60, 90, "red"))
    expect(page.locator(".shot")).to_have_count(2)
    give(page, "drop", b"hello", "text/plain")
    expect(page.locator(".notice")).to_contain_text("cannot read that file")
    give(page, "paste", b"\x89PNG broken")
    expect(page.locator(".notice")).to_have_count(2)
    ask(page, "both")
    answer(page, "both: 100 by 50 and 60 by 90.")


def test_a_large_photograph_is_shown_the_right_way_up_and_no_larger_than_needed(page: Page, watched: Watched) -> None:
    out = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (3000, 2000), "olive").save(out, "JPEG", exif=exif)
    page.set_input_files("#file", [file("photo.jpg", out.getvalue(), "image/jpeg")])
    expect(page.locator(".shot")).to_have_count(1, timeout=SLOW)
    ask(page, "look")
    answer(page, "look: 853 by 1280.")
    [placed] = watched.prompts[-1].lines[-1].pictures
    assert placed.picture.media_type == "image/jpeg" and len(placed.picture.encoded) < 200_000


def test_the_camera_is_off_until_asked_for_and_says_that_it_is_on(page: Page, watched: Watched) -> None:
    expect(page.locator("#showing")).to_be_hidden()
    page.click("#camera")
    expect(page.locator("#showing-text")).to_contain_text("The camera is on", timeout=SLOW)
    expect(page.locator("#camera")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#view")).not_to_have_js_property("videoWidth", 0, timeout=SLOW)
    ask(page, "what is this")
    answer(page, "what is this: 640 by 480.")
    expect(page.locator(".shot")).to_have_count(1)
    assert page.locator("#conversation li").first.locator(".shot").count() == 1  # before the words
    page.wait_for_timeout(1600)
    ask(page, "and now")  # nothing changed, so the model has it still
    answer(page, "and now: nothing.")
    expect(page.locator(".shot")).to_have_count(1)
    page.click("#now")
    expect(page.locator(".shot")).to_have_count(2)
    page.click("#off")
    expect(page.locator("#showing")).to_be_hidden()
    assert page.evaluate("document.getElementById('view').srcObject") is None
    page.click("#undo")
    page.click("#undo")
    page.click("#undo")
    expect(page.locator(".shot")).to_have_count(0)


def test_a_window_is_shared(page: Page) -> None:
    page.click("#screen")
    expect(page.locator("#showing-text")).to_contain_text("A window is shared", timeout=SLOW)
    expect(page.locator("#view")).not_to_have_js_property("videoWidth", 0, timeout=SLOW)
    ask(page, "what does it say")
    expect(page.locator("li.reply .text").last).to_contain_text(" by ", timeout=SLOW)
    expect(page.locator(".shot")).to_have_count(1)
    page.click("#screen")
    expect(page.locator("#showing")).to_be_hidden()


def test_by_keyboard_and_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 720})
    page.focus("#camera")
    page.keyboard.press("Enter")
    expect(page.locator("#showing")).to_be_visible(timeout=SLOW)
    expect(page.locator("#view")).not_to_have_js_property("videoWidth", 0, timeout=SLOW)
    page.focus("#now")
    page.keyboard.press("Enter")
    expect(page.locator(".shot")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.focus(".shot")
    page.keyboard.press("Enter")
    expect(page.locator("#larger")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Escape")
    expect(page.locator("#larger")).to_be_hidden()
    page.focus("#off")
    page.keyboard.press("Enter")
    expect(page.locator("#showing")).to_be_hidden()


def test_a_talk_that_goes_on_has_its_pictures(page: Page) -> None:
    page.set_input_files("#file", [file()])
    ask(page, "what is this")
    answer(page, "what is this: 320 by 200.")
    page.reload()
    expect(page.locator(".shot img")).to_have_count(1, timeout=SLOW)
    assert page.evaluate("document.querySelector('.shot img').naturalWidth") == 320


def test_a_model_without_eyes_is_told_of_before_a_camera_is_opened(browser: Browser) -> None:
    with serving_aside(lambda: World(speed=20.0), UI) as base:
        page = browser.new_context(permissions=["camera"]).new_page()
        page.goto(base.removesuffix("v1"))
        page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
        expect(page.locator("#camera")).to_have_attribute("aria-disabled", "true")
        page.focus("#camera")
        page.keyboard.press("Enter")
        expect(page.locator(".notice")).to_contain_text("cannot see pictures")
        expect(page.locator("#showing")).to_be_hidden()
        page.set_input_files("#file", [file()])
        ask(page, "what is this")
        answer(page, CANNOT_SEE)
        page.context.close()


def test_a_server_that_turns_out_to_have_no_eyes_turns_the_camera_off(browser: Browser) -> None:
    worlds: list[World] = []

    def answer(prompt: Prompt) -> list[str]:
        worlds[0].llm.sees = False
        return ["Well."]

    def made() -> World:
        worlds.append(World(answer, sees=True, speed=20.0))
        return worlds[0]

    with serving_aside(made, UI) as base:
        page = browser.new_context(permissions=["camera"]).new_page()
        page.goto(base.removesuffix("v1"))
        page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
        expect(page.locator("#camera")).to_have_attribute("aria-disabled", "false")
        page.click("#camera")
        expect(page.locator("#showing-text")).to_contain_text("The camera is on", timeout=SLOW)
        ask(page, "hello")
        expect(page.locator(".notice")).to_contain_text("cannot see pictures", timeout=SLOW)
        expect(page.locator("#showing")).to_be_hidden()
        expect(page.locator("#camera")).to_have_attribute("aria-disabled", "true")
        page.context.close()


def test_a_refused_camera_is_told(playwright: Playwright, url: str) -> None:
    browser = chromium(playwright)
    page = browser.new_page()
    page.goto(url)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    page.click("#camera")
    expect(page.locator(".notice")).to_contain_text("camera", timeout=SLOW)
    expect(page.locator("#showing")).to_be_hidden()
    browser.close()
