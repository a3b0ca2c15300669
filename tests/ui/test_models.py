"""The chooser in the page: a model is fetched over a line that is slow, breaks and is halted, and takes over a talk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import chromium
from playwright.sync_api import Page, Playwright, expect
from product import Product

from tests.fakes.hubserver import Hub, running

SLOW = 240_000
REPO = "Qwen/Qwen3.5-0.8B"
TINY = Path(__file__).parents[2] / "llm_engine" / "tiny"
"""In the place of the repository, without the words beside it: a model that loads, and knows its own phrases."""
HERE = "Qwen--Qwen3.5-0.8B"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not (TINY / "model.safetensors").is_file(), reason="the shipped model is not in this checkout"),
]


@pytest.fixture
def hub() -> Iterator[Hub]:
    files = {path.name: path.read_bytes() for path in TINY.iterdir() if path.name != "scores.json"}
    with running(Hub({REPO: files}, {"license": "apache-2.0"})) as hub:
        yield hub


@pytest.fixture
def product(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Product]:
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    product = Product(tmp_path / "home", "--max-positions", "1024")
    yield product
    hub.gate.set()
    product.stop()


def answered(page: Page, words: str) -> str:
    """Typed, to the end of the reply."""
    replies = page.locator("li.reply").count()
    page.fill("#text", words)
    page.press("#text", "Enter")
    expect(page.locator("li.reply")).to_have_count(replies + 1, timeout=SLOW)
    expect(page.locator("li.reply .meta button")).to_have_count(replies + 1, timeout=SLOW)
    expect(page.locator("body")).to_have_attribute("data-phase", re.compile("listening|idle"), timeout=SLOW)
    return page.locator("li.reply .text").last.text_content() or ""


def choose(page: Page) -> None:
    page.click("#model")
    expect(page.locator("#better-told h3").first).to_have_text("On this machine", timeout=SLOW)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click(timeout=SLOW)


def test_a_model_is_fetched_halted_and_takes_over_a_talk(
    playwright: Playwright, product: Product, hub: Hub, tmp_path: Path
) -> None:
    browser = chromium(playwright)
    page = browser.new_context(bypass_csp=True).new_page()
    page.goto(product.url)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    answered(page, "my name is Ruth")

    choose(page)
    folder, told, bar = tmp_path / "home" / "models" / HERE, page.locator("#better-told"), page.locator(".fetch")
    assert hub.ranges == [] and not folder.exists(), "nothing is fetched unasked"
    assert Axe().run(page, context="#better").response["violations"] == []
    hub.gate.clear()  # a slow line: a beginning of the weights comes, and then nothing
    press(page, f"Fetch {REPO}")
    expect(bar).to_contain_text(re.compile(r"[\d.]+ [KM]B of \d+"), timeout=SLOW)
    press(page, "Pause fetching")
    hub.gate.set()
    expect(bar).to_contain_text(f"Paused: {REPO}", timeout=SLOW)
    press(page, "Cancel fetching")
    expect(bar).to_have_count(0, timeout=SLOW)
    assert not folder.exists()
    expect(page.get_by_role("button", name=f"Fetch {REPO}", exact=True)).to_have_text("Fetch", timeout=SLOW)

    hub.drops = 99  # a broken line, also when the library tries again
    press(page, f"Fetch {REPO}")
    expect(told.locator(".told")).to_contain_text("continues where it stopped", timeout=SLOW)
    hub.drops = 0
    expect(page.get_by_role("button", name=f"Use {HERE}")).to_have_count(0)
    press(page, f"Fetch {REPO}")
    press(page, f"Use {HERE}")
    row = told.locator("li").filter(has_text=HERE)
    expect(row.locator(".now")).to_have_text("answers", timeout=SLOW)
    expect(page.locator("#better-told > p").first).to_contain_text("does not speak sense")
    page.keyboard.press("Escape")
    expect(page.locator("body")).to_have_attribute("data-link", "open", timeout=SLOW)
    expect(page.locator("#model")).to_have_text(HERE)
    assert answered(page, "hello")
    expect(page.locator("li.you")).to_have_count(2)

    choose(page)
    press(page, "Use shipped")
    expect(told.locator("li").filter(has_text="part of the program").locator(".now")).to_have_text(
        "answers", timeout=SLOW
    )
    page.keyboard.press("Escape")
    expect(page.locator("body")).to_have_attribute("data-link", "open", timeout=SLOW)
    expect(page.locator("#model")).to_have_text("small model")
    expect(page.locator(".notice")).to_have_count(0)
    assert "Ruth" in answered(page, "what is my name")
    browser.close()
