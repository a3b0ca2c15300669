"""The page in a real browser, talking with the scripted server through a real microphone and speaker."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import Rendered, chromium, listen, rendered, speech_file
from fake_server import RATE, WORD_MS, FakeServer, Script
from playwright.sync_api import Browser, Page, Playwright, expect

pytestmark = pytest.mark.browser
SLOW = 30_000
COUNT = "One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve."
ANSWER = "The last number was three."
ENOUGH_TURNS, MOST_TURNS = 12, 24
PUNCTUAL_MS = 5.0


def script() -> Script:
    return Script(
        heard=["what time is it", "count to twelve", "what was the last number"],
        replies={"what time is it": "It is ten past nine.", "count to twelve": COUNT,
                 "what was the last number": ANSWER, "set a timer": "Done.", "and now": "Still here.",
                 "are you there": "Yes.", "remember": "I will.", "write it": "Shall I?"},
        kept={"remember": "I like tea"}, asks={"write it": ("write_file", "files", '{"path": "plan.txt"}')},
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


def details(page: Page) -> None:
    if page.locator("#details").get_attribute("aria-expanded") == "false":
        page.click("#details")


def exported(page: Page, tmp_path: Path) -> dict:
    details(page)
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


def test_a_whole_talk(speaking_browser: Browser, server: FakeServer, tmp_path: Path) -> None:
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

    page.click("#who summary")
    page.check("#persona-bruno")
    expect(page.locator(".took")).to_contain_text("3.4 ms", timeout=SLOW)
    expect(page.locator("#name")).to_have_text("Bruno")
    page.keyboard.press("Escape")
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
    check_times(session, sound)
    check_cut(cut, server, session["turns"][1], sound)
    context.close()


def test_a_server_that_starts_again_says_what_it_is_doing(browser: Browser, server: FakeServer) -> None:
    context = browser.new_context()
    page = context.new_page()
    visit(page, server.url)
    server.stop()
    expect(page.locator("#phase")).to_contain_text("not reachable", timeout=SLOW)
    server.loads = "loading the voice"
    server.start()
    expect(page.locator("#phase")).to_have_text("Starting: loading the voice (2 s)", timeout=SLOW)
    expect(page.locator("#help")).to_be_hidden()
    expect(page.locator("#notices")).to_be_empty()
    server.loads = ""
    page.wait_for_selector("body[data-link='open']", timeout=SLOW)
    expect(page.get_by_role("button", name="small model")).to_be_visible()
    context.close()


def check_times(session: dict, sound: Rendered) -> None:
    """The parts sum to what was measured from the last word of the user to the first sound of the reply."""
    for turn in session["turns"][:3]:
        parts = turn["parts"]
        assert abs(sum(part["ms"] for part in parts) - turn["total_ms"]) < 1e-6
        assert all(abs(a["start_ms"] + a["ms"] - b["start_ms"]) < 1e-6 for a, b in pairwise(parts))
        assert turn["voice_to_voice_ms"] == turn["total_ms"]
        assert abs(turn["rendered_at_ms"] - sound.onset(turn["asked_at_ms"])) < 15


def check_cut(shown: str, server: FakeServer, turn: dict, sound: Rendered) -> None:
    """The cut in the sound, the report to the server and the words on the page say the same."""
    report = server.truncated[0]
    reply = sound.between(sound.onset(turn["asked_at_ms"]), turn["silent_at_ms"] + 30)
    played = np.trim_zeros(np.where(np.abs(reply) > 0.002, reply, 0), "b")
    assert abs((played.size - stalled(played)) * 1000 / sound.rate - report["audio_end_ms"]) < 40
    heard = -(-int(report["audio_end_ms"]) // WORD_MS)
    words = COUNT.split()
    assert 2 <= heard < len(words)
    assert shown == " ".join(words[:heard]) + " not heard: " + " ".join(words[heard:])
    after = sound.between(turn["silent_at_ms"] + 30, turn["silent_at_ms"] + 230)
    assert after.size > 1000
    assert float(np.abs(after).max()) < 0.002


def stalled(sound: np.ndarray) -> int:
    """Samples for which a busy machine left the speaker without sound: more than 10 ms of silence on end."""
    edges = np.flatnonzero(np.diff(np.r_[False, sound == 0, False].astype(int)))
    lengths = edges[1::2] - edges[::2]
    return int(lengths[lengths > RATE // 100].sum())


class Lateness:
    """How late this machine wakes a thread that asked for 2 ms of sleep: what no program on it can mend."""

    def __init__(self) -> None:
        self._worst = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.is_set():
            begin = time.perf_counter()
            time.sleep(0.002)
            self._worst = max(self._worst, (time.perf_counter() - begin) * 1000 - 2)

    def since_last(self) -> float:
        """Milliseconds, the worst since this was asked last."""
        worst, self._worst = self._worst, 0.0
        return worst

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


def test_first_audio_agrees_with_the_server_and_with_the_sound(
    speaking_browser: Browser, server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To 15 ms in the median of the turns in which the machine was not late: a wrong clock shifts them all, a browser
    process that has to wait shifts one."""
    context = speaking_browser.new_context(bypass_csp=True, reduced_motion="reduce")
    listen(context)
    page = context.new_page()
    visit(page, server.url)
    lateness, late = Lateness(), []
    while len(late) < MOST_TURNS and sum(ms < PUNCTUAL_MS for ms in late) < ENOUGH_TURNS:
        lateness.since_last()
        page.fill("#text", "are you there")
        page.press("#text", "Enter")
        expect(page.locator("li.reply .meta button")).to_have_count(len(late) + 1, timeout=SLOW)
        late.append(lateness.since_last())
        page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    lateness.stop()
    time.sleep(0.3)  # the recorder's last piece
    sound = rendered(page)
    turns = exported(page, tmp_path)["turns"]
    context.close()
    against_server = np.array([turn["ttfa_ms"] - turn["server_ttfa_ms"] for turn in turns])
    against_sound = np.array([turn["rendered_at_ms"] - sound.onset(turn["asked_at_ms"]) for turn in turns])
    judged = np.array(late) < PUNCTUAL_MS
    with capsys.disabled():
        print(
            f"\n  first audio, page less server: {np.round(against_server, 1).tolist()} ms"
            f"\n  first sound, page less rendered: {np.round(against_sound, 1).tolist()} ms"
            f"\n  the machine was late by {np.round(late, 1).tolist()} ms; {judged.sum()} of {len(late)} turns judged"
        )
    if judged.sum() < ENOUGH_TURNS:
        pytest.skip(f"this machine was late in {(~judged).sum()} of {len(late)} turns; run it with nothing beside")
    assert np.median(np.abs(against_server[judged])) < 15
    assert np.median(np.abs(against_sound[judged])) < 15


def test_another_microphone_takes_over_without_losing_the_talk(
    playwright: Playwright, server: FakeServer, tmp_path: Path
) -> None:
    """Each microphone hears one utterance: the first asks, the second, chosen while the reply runs, interrupts it."""
    server.script.heard[:] = ["count to twelve", "what was the last number"]
    voice = speech_file(tmp_path / "voice.wav", [(1.2, 0.9)], 60.0)
    browser = chromium(playwright, voice, devices=2)
    page = browser.new_context(permissions=["microphone"]).new_page()
    said = complaints(page)
    page.add_init_script(
        """const { mediaDevices } = navigator;
        const ask = mediaDevices.getUserMedia.bind(mediaDevices);
        window.tracks = [];
        mediaDevices.getUserMedia = async (what) => {
          const stream = await ask(what);
          tracks.push(...stream.getTracks());
          return stream;
        };"""
    )
    visit(page, server.url)
    page.click("#mic")
    expect(page.locator(".reply .text")).to_contain_text("Two,", ignore_case=True, timeout=SLOW)
    first = page.locator("#device option:checked").text_content()
    names = page.locator("#device option").all_text_contents()
    other = next(name for name in reversed(names) if name != first)
    page.click("#sound summary")
    page.select_option("#device", label=other)
    reply(page, ANSWER)
    expect(page.locator("#device option:checked")).to_have_text(other)
    expect(page.locator(".reply").first.locator("s")).to_contain_text("twelve.")
    assert page.evaluate("tracks.map((track) => track.readyState)") == ["ended", "live"]
    assert "input_audio_buffer.clear" not in server.received
    assert said == []
    browser.close()


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
    for _ in range(20):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
    assert order[0] == "Skip to the conversation"
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
    expect(page.get_by_text("The microphone is blocked.")).to_be_visible()
    page.fill("#text", "and now")
    page.press("#text", "Enter")
    reply(page, "Still here.")
    page.close()


def test_a_speaker_that_does_not_start_is_told_and_costs_no_turn(browser: Browser, server: FakeServer) -> None:
    page = browser.new_page()
    page.add_init_script("Object.defineProperty(AudioContext.prototype, 'state', { get: () => 'suspended' });")
    visit(page, server.url)
    page.fill("#text", "and now")
    page.press("#text", "Enter")
    reply(page, "Still here.")
    expect(page.get_by_text("The browser cannot play sound")).to_be_visible(timeout=SLOW)
    page.close()


def test_an_insecure_page_explains_itself_and_answers_in_text(browser: Browser, server: FakeServer) -> None:
    page = browser.new_page()
    said = complaints(page)
    visit(page, server.url.replace("127.0.0.1", "assistant.test"))
    page.click("#mic")
    expect(page.get_by_text("The browser blocks the microphone for this address.")).to_be_visible()
    page.fill("#text", "and now")
    page.press("#text", "Enter")
    reply(page, "Still here.")
    assert said == []
    page.close()


@pytest.mark.parametrize("how", ["#mic", "Space", "Escape"])
def test_a_reply_is_stopped_by_the_round_button_and_by_keys(browser: Browser, server: FakeServer, how: str) -> None:
    page = browser.new_page()
    visit(page, server.url)
    mic = page.get_by_role("button", name="Stop the reply")
    expect(mic).to_have_count(0)
    page.fill("#text", "count to twelve")
    page.press("#text", "Enter")
    expect(page.locator(".reply .text")).to_contain_text("Two,", ignore_case=True, timeout=SLOW)
    expect(mic).to_be_visible()
    expect(page.locator("#keys")).to_have_text("Esc or Space stops it.")
    if how == "#mic":
        mic.click()
    else:
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(how)
    expect(page.locator(".reply s")).to_be_visible()
    expect(mic).to_have_count(0)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)  # the microphone was not opened
    page.close()


def test_every_sheet_of_a_phone_is_within_its_screen(browser: Browser, server: FakeServer) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    rings = [{"id": 1, "kind": "timer", "told": "5 minutes", "at": "", "left_s": 300, "paused": False}]
    page.route("**/v1/household", lambda route: route.fulfill(json={"rings": rings, "lists": []}))
    visit(page, server.url)
    for opener in ("#who summary", "#running summary", "#sound summary"):
        page.click(opener)
        box = page.locator("details[open] .sheet").bounding_box()
        assert box is not None
        assert box["x"] >= 0 and box["y"] >= 0 and box["x"] + box["width"] <= 390 and box["y"] + box["height"] <= 844
        page.keyboard.press("Escape")
    page.close()


def test_volume_and_mute_are_heard_and_kept(browser: Browser, server: FakeServer) -> None:
    context = browser.new_context(bypass_csp=True)
    listen(context)
    page = context.new_page()
    visit(page, server.url)
    page.click("#sound summary")
    page.focus("#volume")
    page.keyboard.press("Home")
    page.keyboard.press("Escape")
    expect(page.locator("#volume")).to_be_hidden()
    page.fill("#text", "and now")
    page.press("#text", "Enter")
    page.wait_for_selector("body[data-phase='speaking']", timeout=SLOW)
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    assert float(np.abs(rendered(page).sound).max()) < 0.01
    page.reload()
    page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    page.click("#sound summary")
    expect(page.locator("#volume")).to_have_value("0")
    expect(page.locator("#loudspeaker option")).not_to_have_count(0)
    page.focus("#volume")
    page.keyboard.press("End")
    page.click("#quiet")
    expect(page.locator("#quiet")).to_have_text("Unmute replies")
    context.close()


def test_hold_to_talk_says_why_a_press_was_nothing(speaking_browser: Browser, server: FakeServer) -> None:
    context = speaking_browser.new_context(permissions=["microphone"])
    page = context.new_page()
    visit(page, server.url)
    page.click("#mode")
    expect(page.locator("#phase")).to_contain_text("Your browser asks for the microphone first.")
    page.focus("#mic")
    page.keyboard.down("Space")
    page.wait_for_selector("body[data-phase='listening']", timeout=SLOW)
    page.keyboard.up("Space")
    expect(page.locator("#phase")).to_contain_text(re.compile("for as long as you speak|I heard nothing"))
    expect(page.locator("#conversation li")).to_have_count(0)
    assert "input_audio_buffer.commit" not in server.received
    context.close()


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
    page.get_by_role("button", name="Undo").click()  # nothing is lost by a click
    reply(page, "Here again.")
    page.close()


@pytest.mark.parametrize(
    ("larger", "advice", "commands"),
    [
        (None, "no free memory for a larger one", ["assistant doctor", "assistant pull"]),
        (
            {
                "profile": "laptop", "models": ["Qwen/Qwen3.5-0.8B"], "command": "assistant pull laptop",
                "download_gb": 1.8,
            },
            "room for Qwen/Qwen3.5-0.8B, 1.8 GB to download once",
            ["assistant pull laptop", "assistant serve --profile laptop"],
        ),
    ],
)  # fmt: skip
def test_first_sight_is_quiet_and_offers_the_model_that_fits(
    browser: Browser, server: FakeServer, larger: dict | None, advice: str, commands: list[str]
) -> None:
    page = browser.new_page()
    facts = {"status": "ok", "profile": "tiny", "models": {"llm": "a", "tts": "b", "hearing": "c"}}
    page.route("**/healthz", lambda route: route.fulfill(json=facts | ({"larger": larger} if larger else {})))
    visit(page, server.url)
    expect(page.locator("#side")).to_be_hidden()
    page.get_by_role("button", name="A better one is one click away.").click()
    shown = page.get_by_role("dialog", name="A better model")
    expect(shown).to_contain_text(advice)
    expect(shown.locator("code")).to_have_text(commands)
    page.keyboard.press("Escape")
    page.fill("#text", "and now")
    page.press("#text", "Enter")
    reply(page, "Still here.")
    page.click("#model")
    expect(shown).to_be_visible()
    page.keyboard.press("Escape")
    page.click("#details")
    page.reload()
    expect(page.locator("#side")).to_be_visible()
    page.close()


@pytest.mark.parametrize(
    ("scheme", "width", "panel"),
    [("light", 1360, "side"), ("dark", 1360, "who"), ("light", 400, "sound"), ("dark", 400, "side")],
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
    page.click({"side": "#details", "who": "#who summary", "sound": "#sound summary"}.get(panel, "#words"))
    page.evaluate("document.querySelector('#mic').click()")  # a click beside an open sheet would close it
    full = Axe().run(page)
    for found in (empty, full):
        serious = [one for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
        assert serious == [], found.generate_report()
    context.close()


def test_a_call_waits_for_an_answer_and_a_kept_sentence_for_its_undo(browser: Browser, server: FakeServer) -> None:
    """Both stand in the talk, by keyboard and to a screen reader as to the eye; nothing is kept silently."""
    page = browser.new_page()
    said = complaints(page)
    visit(page, server.url)
    for answer, told in (("Allow", "Allowed: write file of files: path plan.txt"), ("Do not allow", "Not allowed:")):
        page.fill("#text", "write it")
        page.press("#text", "Enter")
        answers = page.get_by_role("group", name="Your answer")
        expect(answers).to_be_visible(timeout=SLOW)
        page.get_by_role("button", name=f"{answer} write file of files", exact=True).press("Enter")
        expect(page.locator(".call .tool").last).to_contain_text(told, timeout=SLOW)
        expect(answers).to_have_count(0)
        page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)
    assert [item["approve"] for item in server.answered] == [True, False]

    page.fill("#text", "remember")
    page.press("#text", "Enter")
    reply(page, "I will.")
    expect(page.locator(".call .tool").last).to_contain_text("Kept: I like tea")
    page.get_by_role("button", name="Undo: do not keep “I like tea”").click()
    expect(page.locator(".call .tool").last).to_have_text("No longer kept: I like tea", timeout=SLOW)
    assert server.memory == []
    assert said == []
    page.close()


def test_weight_and_time_to_interactive(
    browser: Browser, server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    page = browser.new_page()
    visit(page, server.url)
    weight = page.evaluate(
        """[...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')]
            .filter((one) => !one.name.endsWith(".woff2")).reduce((sum, one) => sum + one.transferSize, 0)"""
    )
    files = page.evaluate("performance.getEntriesByType('resource').length + 1")
    ready = page.evaluate("performance.getEntriesByName('interactive')[0].startTime")
    with capsys.disabled():
        print(f"\n  page: {weight / 1000:.0f} kB beside its fonts, {files} files, interactive after {ready:.0f} ms")
    assert weight < 350_000
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
