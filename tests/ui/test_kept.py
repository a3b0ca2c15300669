"""What outlives a reply, in a real browser and the product itself: timers, lists and talks, changed by hand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import chromium
from playwright.sync_api import Browser, Page, Playwright, expect
from product import Product

from assistant.server.app import make_app
from assistant.server.security import Gate
from assistant.server.starting import Starting

SLOW = 60_000
MCP = '{"mcpServers": {"files": {"command": "true", "env": {"TOKEN": "only mine"}, "disabled": true}}}'
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    home = tmp_path_factory.mktemp("product") / "home"
    home.mkdir()
    (home / "mcp.json").write_text(MCP)
    product = Product(home)
    yield product
    product.stop()


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    browser = chromium(playwright)
    yield browser
    browser.close()


@pytest.fixture
def page(browser: Browser, product: Product) -> Iterator[Page]:
    context = browser.new_context()
    page = context.new_page()
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(product.url)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    yield page
    context.close()
    assert said == []


def write(page: Page, text: str) -> None:
    """A typed turn, to the end of its answer."""
    replies = page.locator("li.reply .meta button").count()
    page.fill("#text", text)
    page.press("#text", "Enter")
    expect(page.locator("li.reply .meta button")).to_have_count(replies + 1, timeout=SLOW)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)


def test_a_timer_is_seen_counts_down_in_the_title_and_is_changed_by_hand(page: Page) -> None:
    expect(page.locator("#running")).to_be_hidden()
    write(page, "set a timer for 5 minutes")
    left = page.get_by_role("timer")
    expect(left).to_have_text(re.compile(r"^4:\d\d$"), timeout=SLOW)
    expect(page).to_have_title(re.compile(r"^4:\d\d · Ada$"), timeout=SLOW)
    page.click("#running summary")
    page.get_by_role("button", name="One minute more").click()
    expect(left).to_have_text(re.compile(r"^5:\d\d$"), timeout=SLOW)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Go on")).to_be_visible(timeout=SLOW)
    expect(page).to_have_title("Ada", timeout=SLOW)
    page.get_by_role("button", name="Stop it").click()
    expect(left).to_have_count(0, timeout=SLOW)
    page.get_by_role("button", name="Put back").click()  # nothing is lost by a click
    expect(left).to_have_count(1, timeout=SLOW)
    write(page, "cancel the timer")
    expect(page.locator("#running")).to_be_hidden(timeout=SLOW)


SIGN = """
window.signs = [];
window.Notification = class {
  static permission = "default";
  static async requestPermission() { Notification.permission = "granted"; }
  constructor(title) { signs.push(title); }
  close() {}
};
Object.defineProperty(Document.prototype, "hidden", { get: () => window.away ?? false });
"""


def test_a_ring_is_a_notification_while_the_page_is_hidden(page: Page) -> None:
    page.add_init_script(SIGN)
    page.reload()
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    expect(page.locator("#notify")).to_have_count(0)  # nothing is asked before there is something to ring
    write(page, "set a timer for 5 minutes")
    assert page.evaluate("Notification.permission") == "default"
    page.get_by_role("button", name="Notify me").click()
    expect(page.locator("#notify")).to_have_count(0)
    page.evaluate("window.away = true")
    write(page, "set a timer for 2 seconds")
    expect(page).to_have_title("⏰ 2 seconds", timeout=SLOW)
    assert page.evaluate("signs") == ["⏰ 2 seconds"]
    page.evaluate("window.away = false")
    page.locator(".rang button").click()
    write(page, "cancel the timer")
    expect(page.locator("#running")).to_be_hidden(timeout=SLOW)


def test_a_timer_that_rings_is_told_in_the_title_until_it_is_noticed(page: Page) -> None:
    write(page, "set a timer for 3 seconds")
    expect(page).to_have_title("⏰ 3 seconds", timeout=SLOW)
    expect(page.locator(".rang")).to_contain_text("3 seconds")
    page.locator(".rang button").click()
    expect(page).to_have_title("Ada", timeout=SLOW)
    expect(page.locator(".rang")).to_have_count(0)


def test_a_list_is_seen_and_emptied_by_keyboard(page: Page) -> None:
    write(page, "add milk and eggs to the shopping list")
    page.focus("#running summary")
    page.keyboard.press("Enter")
    things = page.get_by_role("list", name="Shopping").get_by_role("listitem")
    expect(things).to_have_count(2, timeout=SLOW)
    page.get_by_role("button", name="Remove milk").press("Enter")
    expect(things).to_have_count(1, timeout=SLOW)
    page.get_by_role("button", name="Remove all of Shopping").press("Enter")
    expect(page.locator("#running")).to_be_hidden(timeout=SLOW)


def test_talks_are_kept_found_named_and_forgotten_for_good(page: Page, product: Product) -> None:
    write(page, "what is 12 times 9")
    page.click("#over")  # keeps it, and nothing is lost by a click
    expect(page.locator("#conversation li")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("li.you .text").first).to_have_text("what is 12 times 9", timeout=SLOW)
    page.click("#over")
    expect(page.locator("#conversation li")).to_have_count(0)
    write(page, "flip a coin")

    page.click("#all-talks")
    rows = page.locator("#talk-list li")
    sums = rows.filter(has_text="what is 12 times 9")
    expect(sums).to_have_count(1, timeout=SLOW)
    expect(rows.filter(has_text="This talk")).to_contain_text("flip a coin")
    expect(page.locator("#talks-kept")).to_contain_text(re.compile("in .*talks"))
    assert Axe().run(page, context="#talks").response["violations"] == []
    sums.get_by_role("button", name="Name").click()
    page.get_by_label("Name of this talk").fill("Sums")
    page.keyboard.press("Enter")
    expect(rows.filter(has_text="Sums")).to_have_count(1, timeout=SLOW)
    page.locator("#find-talk").press_sequentially("sum")
    expect(rows).to_have_count(1, timeout=SLOW)
    expect(rows.locator("b")).to_have_text("Sums")
    with page.expect_download() as download:
        rows.get_by_role("button", name="Save").click()
    assert "You: what is 12 times 9\nAssistant: " in download.value.path().read_text("utf-8")
    rows.locator(".open").click()
    expect(page.locator("li.you .text").first).to_have_text("what is 12 times 9", timeout=SLOW)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)

    page.click("#all-talks")
    page.get_by_role("button", name="Delete Sums").click()
    page.get_by_role("button", name="Delete for good?").click()
    expect(page.locator("#talks-told")).to_have_text("Deleted for good: Sums", timeout=SLOW)
    expect(rows.filter(has_text="Sums")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("#conversation li")).to_have_count(0)
    assert "times 9" not in command(product, "ls")
    coin = next(line.split()[1] for line in command(product, "ls").splitlines() if "flip a coin" in line)
    page.click("#all-talks")
    rows.filter(has_text="flip a coin").locator(".open").click()
    expect(page.locator("li.you .text").first).to_have_text("flip a coin", timeout=SLOW)
    assert "is open in another program" in command(product, "rm", coin)


def test_what_is_remembered_is_seen_edited_and_forgotten(page: Page, product: Product) -> None:
    file = Path(product.env["ASSISTANT_HOME"]) / "memory.toml"
    write(page, "what is 12 times 9")
    write(page, "make a note that my sister is called Ann")
    expect(page.locator(".call .tool").last).to_contain_text("Kept: my sister is called", timeout=SLOW)
    page.reload()
    line = page.locator("#conversation li:nth-last-child(2)")  # before the words of the reply that kept it
    expect(line).to_contain_text("Kept: my sister is called", timeout=SLOW)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    page.click("#remembered")
    expect(page.locator("#memory-file")).to_contain_text("This small model reads them when you say “read my notes”")
    rows = page.locator("#memory-list li")
    ann, tea = rows.filter(has_text="called Ann"), rows.filter(has_text="tea")
    expect(ann.locator("span")).to_have_text(re.compile("^Today, .*turn 2 of this talk$"), timeout=SLOW)
    page.get_by_label("A sentence to remember").fill("I like tea")
    page.keyboard.press("Enter")
    expect(tea.locator("span")).to_have_text(re.compile("written by hand$"), timeout=SLOW)
    assert Axe().run(page, context="#memory").response["violations"] == []
    page.get_by_role("button", name="Edit I like tea").click()
    page.get_by_label("The sentence").fill("I like green tea")
    page.keyboard.press("Enter")
    expect(tea.locator("b")).to_have_text("I like green tea", timeout=SLOW)
    assert '"I like green tea"' in file.read_text()
    ann.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Forget for good?").click()
    expect(page.locator("#memory-told")).to_have_text("Forgotten, in every talk.", timeout=SLOW)
    expect(ann).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("li.you .text").nth(1)).to_have_text("[forgotten]", timeout=SLOW)
    expect(page.locator("#conversation")).not_to_contain_text("sister", timeout=SLOW)
    assert "sister" not in file.read_text()


def test_what_was_remembered_survives_a_kill(page: Page, product: Product) -> None:
    write(page, "remember that the key is under the mat")
    product.kill()
    product.start()
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    page.click("#over")
    expect(page.locator("#conversation li")).to_have_count(0)
    write(page, "read my notes")
    expect(page.locator("li.reply .text").last).to_contain_text("under the mat", timeout=SLOW)


def test_nothing_that_is_sent_reads_or_writes_the_file_that_runs_programs(product: Product) -> None:
    """Every route of the server, whatever its method, with names that mean `mcp.json`."""
    file = Path(product.env["ASSISTANT_HOME"]) / "mcp.json"
    before = file.stat()
    app = make_app(Starting(), Gate("127.0.0.1"))
    paths = {str(route.resource.canonical) for route in app.router.routes() if route.resource is not None}
    assert {"/v1/talks/{talk}", "/v1/memory", "/v1/audio/voices/{name}"} <= paths and len(paths) > 20
    body = dict.fromkeys(("name", "reword", "to", "file", "path", "model", "input"), "../mcp.json")
    asked = 0
    for path in (*paths, "/{name}", "/v1/{name}"):
        for name in ("mcp.json", "..%2Fmcp.json"):
            for method in ("GET", "POST", "PUT", "DELETE"):
                url = product.url + re.sub(r"\{\w+\}", name, path).lstrip("/")
                sent = None if method == "GET" else json.dumps(body | {"mcpServers": {}}).encode()
                request = urllib.request.Request(url, sent, {"Content-Type": "application/json"}, method=method)
                try:
                    with urllib.request.urlopen(request, timeout=60) as answer:
                        assert b"only mine" not in answer.read()
                except urllib.error.HTTPError as refused:
                    assert b"only mine" not in refused.read()
                asked += 1
            if "{" not in path:
                break
    after = file.stat()
    assert asked > 120 and file.read_text() == MCP
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def command(product: Product, *arguments: str) -> str:
    """What `assistant talks` prints beside the running server."""
    run = subprocess.run(
        [sys.executable, "-m", "assistant", "talks", *arguments], env=product.env | {"COLUMNS": "160"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return run.stdout + run.stderr
