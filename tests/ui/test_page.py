"""The page in a real browser, talking with the scripted server through a real microphone and speaker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import Rendered, chromium, listen, rendered, speech_file
from fake_server import WORD_MS, FakeServer, Script
from playwright.sync_api import Browser, Page, Playwright, expect

pytestmark = pytest.mark.browser
SLOW = 30_000
COUNT = "One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve."
ANSWER = "The last number was three."


def script() -> Script:
    return Script(
        heard=["what time is it", "count to twelve", "what was the last number"],
        replies={"what time is it": "It is ten past nine.", "count to twelve": COUNT,
                 "what was the last number": ANSWER, "set a timer": "Done.", "and now": "Still here."},
        tools={"set a timer": ("set_timer", '{"minutes": 5}', '{"ends": "21:15"}')},
    )  # fmt: skip


@pytest.fixture(scope="module")
def speaking_browser(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Its microphone hears a question, another, and an interruption of the second answer."""
    voice = tmp_path_factory.mktemp("voice") / "voice.wav"
    speech_file(voice, [(1.0, 0.9), (4.6, 0.9), (8.0, 1.0)], 40.0)
    browser = chromium(playwright, voice)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """Without a microphone: every request for one is refused."""
    browser = chromium(playwright)
    yield browser
    browser.close()


@pytest.fixture
def server() -> Iterator[FakeServer]:
    server = FakeServer(script()).start()
    yield server
    server.stop()


def visit(page: Page, url: str) -> None:
    page.goto(url)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)


def reply(page: Page, text: str, **options: float) -> None:
    expect(page.locator(".reply .text").last).to_have_text(text, timeout=options.get("timeout", SLOW))


def exported(page: Page, tmp_path: Path) -> dict:
    with page.expect_download() as download:
        page.click("#save-json")
    download.value.save_as(tmp_path / "session.json")
    return json.loads((tmp_path / "session.json").read_text())


def complaints(page: Page) -> list[str]:
    """What the console says from now on that nobody should see."""
    said: list[str] = []
    page.on(
        "console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: said.append(str(error)))
    return said


def test_a_whole_talk(
    speaking_browser: Browser, server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Question, barge-in, typed turn with a tool, undo, persona, restart: heard, seen and timed."""
    context = speaking_browser.new_context(permissions=["microphone"], bypass_csp=True)
    listen(context)
    page = context.new_page()
    said = complaints(page)
    visit(page, server.url)
    page.click("#mic")

    expect(page.locator(".you .text").first).to_contain_text("what", timeout=SLOW)
    reply(page, "It is ten past nine.")
    expect(page.locator(".reply").nth(1).locator("s")).to_contain_text("twelve.", timeout=SLOW)
    cut = page.locator(".reply").nth(1).locator(".text").text_content() or ""
    reply(page, ANSWER)
    page.wait_for_selector("body[data-phase='listening']", timeout=SLOW)
    page.click("#mic")
    sound = rendered(page)

    page.fill("#text", "set a timer")
    page.press("#text", "Enter")
    reply(page, "Done.")
    expect(page.locator(".call .tool")).to_have_text("set timer minutes 5 → ends 21:15")
    page.click("#undo")
    reply(page, ANSWER)
    expect(page.locator(".call")).to_have_count(0)

    page.check("#persona-bruno")
    expect(page.locator(".took")).to_contain_text("3.4 ms", timeout=SLOW)
    expect(page.locator("#name")).to_have_text("Bruno")
    session = exported(page, tmp_path)

    before = page.locator("#conversation .text").all_inner_texts()
    server.stop()
    expect(page.locator("#phase")).to_contain_text("not reachable", timeout=SLOW)
    server.start()
    page.wait_for_selector("body[data-link='open']", timeout=SLOW)
    assert page.locator("#conversation .text").all_inner_texts() == before
    page.fill("#text", "and now")
    page.press("#text", "Enter")
    reply(page, "Still here.")
    page.reload()
    reply(page, "Still here.")

    broken = [text for text in said if "WebSocket connection" not in text]
    assert broken == []
    assert server.unknown == []
    times = check_times(session, server, sound)
    check_cut(cut, server, sound)
    with capsys.disabled():
        print(f"\n  {times}")
    context.close()


def check_times(session: dict, server: FakeServer, sound: Rendered) -> str:
    """What the page says of time against the server's own clock and against the sound that was rendered."""
    turns = session["turns"][:3]
    stretches = sound.loud(gap_ms=400)
    assert len(stretches) == 3, stretches
    against_sound = [
        turn["rendered_at_ms"] - first for turn, (first, _) in zip(turns, stretches, strict=True)
    ]
    against_server = [
        turn["ttfa_ms"] - ttfa for turn, ttfa in zip(session["turns"], server.ttfa_ms, strict=False)
    ]
    for turn in turns:
        parts = turn["parts"]
        assert abs(sum(part["ms"] for part in parts) - turn["total_ms"]) < 1e-6
        assert all(abs(a["start_ms"] + a["ms"] - b["start_ms"]) < 1e-6 for a, b in pairwise(parts))
        assert turn["voice_to_voice_ms"] == turn["total_ms"]
        assert turn["clock_uncertainty_ms"] < 15
    assert max(map(abs, against_sound)) < 15, against_sound
    assert abs(float(np.median(against_server))) < 15, against_server
    return (
        f"first audio, page less server: {np.round(against_server, 1).tolist()} ms; first sound, page less rendered: "
        f"{np.round(against_sound, 1).tolist()} ms; yielded in {session['summary']['yield_ms']['median']:.0f} ms"
    )


def check_cut(shown: str, server: FakeServer, sound: Rendered) -> None:
    """The cut in the sound, the report to the server and the words on the page say the same."""
    first, last = sound.loud(gap_ms=400)[1]
    report = server.truncated[0]
    assert abs((last - first) - report["audio_end_ms"]) < 40
    heard = -(-int(report["audio_end_ms"]) // WORD_MS)
    words = COUNT.split()
    assert 2 <= heard < len(words)
    assert shown == " ".join(words[:heard]) + " not heard: " + " ".join(words[heard:])
    after = sound.between(last + 5, last + 200)
    assert after.size > 1000
    assert float(np.abs(after).max()) < 0.002


def test_the_server_learns_what_was_heard(speaking_browser: Browser, server: FakeServer) -> None:
    context = speaking_browser.new_context(permissions=["microphone"])
    page = context.new_page()
    visit(page, server.url)
    page.fill("#text", "count to twelve")
    page.press("#text", "Enter")
    page.wait_for_selector("body[data-phase='speaking']", timeout=SLOW)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    reports = [ms for _, ms in server.heard]
    assert reports == sorted(reports)
    assert abs(reports[-1] - 12 * WORD_MS) < 2
    gaps = np.diff(reports[:-1])
    assert len(reports) > 12
    assert float(np.median(gaps)) < 260
    context.close()


def test_push_to_talk_by_keyboard_alone(speaking_browser: Browser, server: FakeServer) -> None:
    context = speaking_browser.new_context(permissions=["microphone"])
    page = context.new_page()
    said = complaints(page)
    visit(page, server.url)
    order = []
    for _ in range(14):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
    assert order[0] == "Skip to what is said"
    assert {"mic", "text", "send", "mode"} <= set(order)
    page.focus("#mode")
    page.keyboard.press("Enter")
    expect(page.locator("#mode")).to_have_attribute("aria-pressed", "true")
    page.focus("#mic")
    page.keyboard.down("Space")
    page.wait_for_selector("body[data-phase='listening']", timeout=SLOW)
    expect(page.locator("#phase")).to_have_text("Go on, I am listening")
    expect(page.locator("#meter-you")).not_to_have_attribute("aria-valuenow", "0", timeout=SLOW)
    page.keyboard.up("Space")
    reply(page, "It is ten past nine.")
    assert said == []
    context.close()


def test_a_refused_microphone_leaves_writing(browser: Browser, server: FakeServer) -> None:
    page = browser.new_page()
    visit(page, server.url)
    page.click("#mic")
    expect(page.get_by_text("The microphone was refused.")).to_be_visible()
    page.fill("#text", "and now")
    page.press("#text", "Enter")
    reply(page, "Still here.")
    page.close()


def test_an_insecure_page_explains_itself_and_answers_in_text(browser: Browser, server: FakeServer) -> None:
    page = browser.new_page()
    said = complaints(page)
    visit(page, server.url.replace("127.0.0.1", "assistant.test"))
    page.click("#mic")
    expect(page.get_by_text("The browser keeps the microphone from this address.")).to_be_visible()
    page.fill("#text", "and now")
    page.press("#text", "Enter")
    reply(page, "Still here.")
    assert said == []
    page.close()


def test_retry_and_start_over(browser: Browser, server: FakeServer) -> None:
    page = browser.new_page()
    visit(page, server.url)
    page.fill("#text", "and now")
    page.press("#text", "Enter")
    reply(page, "Still here.")
    server.script.replies["and now"] = "Here again."
    page.click("#retry")
    reply(page, "Here again.")
    expect(page.locator(".you")).to_have_count(1)
    page.click("#over")
    expect(page.locator("#conversation li")).to_have_count(0)
    expect(page.locator(".hello")).to_be_visible()
    assert len(server.conversations) == 2
    page.close()


@pytest.mark.parametrize(
    ("scheme", "width", "panel"),
    [("light", 1360, "talk"), ("dark", 1360, "talk"), ("light", 400, "time"), ("dark", 400, "state")],
)
def test_no_serious_findings_of_axe(
    browser: Browser, server: FakeServer, scheme: str, width: int, panel: str
) -> None:
    context = browser.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": 850},
        reduced_motion="reduce",
        bypass_csp=True,
    )
    page = context.new_page()
    visit(page, server.url)
    empty = Axe().run(page)
    page.fill("#text", "set a timer")
    page.press("#text", "Enter")
    reply(page, "Done.")
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    if width < 900:
        page.click(f".panels [data-panel='{panel}']")
    page.click("#mic")
    full = Axe().run(page)
    for found in (empty, full):
        serious = [one for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
        assert serious == [], found.generate_report()
    context.close()


def test_weight_and_time_to_interactive(
    browser: Browser, server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    page = browser.new_page()
    visit(page, server.url)
    weight = page.evaluate(
        """[...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')]
            .reduce((sum, one) => sum + one.transferSize, 0)"""
    )
    files = page.evaluate("performance.getEntriesByType('resource').length + 1")
    ready = page.evaluate("performance.getEntriesByName('interactive')[0].startTime")
    with capsys.disabled():
        print(f"\n  page: {weight / 1000:.0f} kB in {files} files, interactive after {ready:.0f} ms")
    assert weight < 300_000
    assert ready < 5000
    page.close()


def test_hidden_words_are_told_to_a_screen_reader_once(browser: Browser, server: FakeServer) -> None:
    page = browser.new_page()
    visit(page, server.url)
    page.fill("#text", "and now")
    page.press("#text", "Enter")
    reply(page, "Still here.")
    expect(page.locator("#spoken p")).to_have_text(["You: and now", "Ada: Still here."])
    for role in ("banner", "main"):
        expect(page.get_by_role(role)).to_have_count(1)
    page.close()
