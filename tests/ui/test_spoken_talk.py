"""The whole product through the page: real speech in, the shipped ears and voice behind, real sound out.

One talk has the shipped mind too; the interruption has a scripted one, so that what must be said next is known.

The microphone file is read anew each time the page opens the microphone, so each utterance is written just before.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import wave
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
import samplerate
from browser import Rendered, chromium, listen, rendered, write_wav
from playwright.sync_api import Page, Playwright, expect
from scripted_mind import COUNT, ScriptedMind

ROOT = Path(__file__).parents[2]
MODELS = [ROOT / package / "tiny" / "model.safetensors" for package in ("llm_engine", "tts_engine")]
SLOW = 60_000
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        shutil.which("espeak-ng") is None, reason="no espeak-ng here; it speaks the user's part"
    ),
    pytest.mark.skipif(
        not all(map(Path.is_file, MODELS)), reason="the shipped models are not in this checkout"
    ),
]


class Product:
    """`assistant serve` as a person runs it, on a port of its own; `stop` is Ctrl-C."""

    def __init__(self, home: Path, *options: str) -> None:
        self._options = options
        self._env = {**os.environ, "ASSISTANT_HOME": str(home)}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.start()

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "assistant",
            "serve",
            "--profile",
            "tiny",
            "--no-browser",
            *self._options,
        ]
        self._process = subprocess.Popen(
            [*command, "--port", str(self.port)],
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            said.append(line)
            if "Ctrl-C" in line:
                return
        raise AssertionError("the server did not start:\n" + "".join(said))

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.communicate(timeout=60)


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    product = Product(tmp_path / "home")
    yield product
    product.stop()


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Product]:
    mind = ScriptedMind()
    product = Product(tmp_path / "home", "--llm", mind.url)
    yield product
    product.stop()
    mind.stop()


class Visitor:
    """A browser with its microphone file, on the product's page."""

    def __init__(self, playwright: Playwright, product: Product, microphone: Path, first_words: str) -> None:
        say(first_words, microphone)
        self._browser = chromium(playwright, microphone)
        context = self._browser.new_context(permissions=["microphone"], bypass_csp=True)
        listen(context)
        self.page = context.new_page()
        self.said: list[str] = []
        self.page.on(
            "console", lambda message: self.said.append(message.text) if message.type == "error" else None
        )
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(product.url)
        self.page.wait_for_selector("body[data-phase='idle']", timeout=SLOW)

    def leave(self) -> None:
        self._browser.close()
        assert [text for text in self.said if "WebSocket connection" not in text] == []


def say(text: str, microphone: Path, before_s: float = 1.5) -> None:
    """Have the next opening of the microphone hear these words, and silence after them."""
    spoken = microphone.with_name("spoken.wav")
    subprocess.run(["espeak-ng", "-v", "en-us", "-s", "150", "-w", spoken, text], check=True)
    with wave.open(str(spoken)) as file:
        rate = file.getframerate()
        words = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
    write_wav(
        microphone, np.r_[np.zeros(int(before_s * rate)), words, np.zeros(90 * rate)].astype(np.float32), rate
    )


def write(page: Page, text: str) -> None:
    page.fill("#text", text)
    page.press("#text", "Enter")


def finished(page: Page, replies: int) -> str:
    """Wait for so many replies, and for the last to be over; its text."""
    expect(page.locator("li.reply")).to_have_count(replies, timeout=SLOW)
    expect(page.locator("li.reply .meta button")).to_have_count(replies, timeout=SLOW)
    page.wait_for_selector("body[data-phase='listening'], body[data-phase='idle']", timeout=SLOW)
    return page.locator("li.reply .text").last.text_content() or ""


def answered(page: Page, text: str) -> str:
    """A written turn, to the end of its answer."""
    replies = page.locator("li.reply").count()
    write(page, text)
    return finished(page, replies + 1)


def transcript(sound: np.ndarray, rate: int) -> str:
    """What the product's own ears make of a sound."""
    from assistant.hearing.transcribe import PocketsphinxTranscriber

    ears = PocketsphinxTranscriber()
    quiet = np.zeros(4000, np.float32)
    ears.push(np.r_[quiet, samplerate.resample(sound, 16_000 / rate, "sinc_best"), quiet].astype(np.float32))
    return ears.final().text


def agreement(reply: str, heard: str) -> float:
    """Share of the reply's spoken words that were heard, in their order; the ears are far from perfect."""
    from tts_engine.text import speech_text

    words = re.findall(r"[a-z']+", speech_text(reply).lower())
    return SequenceMatcher(None, words, re.findall(r"[a-z']+", heard.lower()), autojunk=False).ratio()


def test_speech_in_speech_out_undone_and_resumed(
    playwright: Playwright, product: Product, tmp_path: Path
) -> None:
    visitor = Visitor(playwright, product, tmp_path / "microphone.wav", "what time is it")
    page = visitor.page
    page.click("#mic")
    answer = finished(page, 1)
    page.click("#mic")
    expect(page.locator("li.you .text")).to_have_text("what time is it", ignore_case=True)
    sound = rendered(page)
    heard = transcript(sound.sound, sound.rate)
    assert agreement(answer, heard) >= 0.2, (answer, heard)

    answered(page, "what can you do")
    page.click("#undo")
    expect(page.locator("li.you")).to_have_count(1, timeout=SLOW)

    page.check("#persona-ben")
    expect(page.locator("#name")).to_have_text("Ben", timeout=SLOW)
    expect(page.locator(".took")).to_contain_text("ready in")

    before = page.locator("#conversation p.text").all_inner_texts()
    product.stop()
    expect(page.locator("#phase")).to_contain_text("not reachable", timeout=SLOW)
    product.start()
    page.wait_for_selector("body[data-link='open']", timeout=SLOW)
    answered(page, "who are you")
    assert page.locator("#conversation p.text").all_inner_texts()[: len(before)] == before
    visitor.leave()


def test_talking_over_a_reply_cuts_it_at_what_was_heard(
    playwright: Playwright, scripted: Product, tmp_path: Path
) -> None:
    """The cut in the sound, the struck words and what the mind is told of them agree."""
    visitor = Visitor(playwright, scripted, tmp_path / "microphone.wav", "what was the last number you said")
    page = visitor.page
    write(page, "count to twenty")
    counting = page.locator("li.reply").first
    expect(counting.locator(".text")).to_contain_text("two", timeout=SLOW)
    page.click("#mic")
    expect(counting.locator("s")).to_be_attached(timeout=SLOW)
    answer = finished(page, 2)
    unheard = (counting.locator("s").text_content() or "").removeprefix("not heard: ")
    kept = (counting.locator(".text").text_content() or "").removesuffix("not heard: " + unheard)
    assert f"{kept.strip()} {unheard}" == COUNT[: len(kept.strip()) + 1 + len(unheard)]
    last = re.findall("[a-z]+", kept.lower())[-1]
    assert answer == f"The last number was {last}."
    check_silence(rendered(page))
    visitor.leave()


def check_silence(sound: Rendered) -> None:
    """Between the cut reply and the next one nothing was rendered."""
    stretches = sound.loud(gap_ms=700)
    assert len(stretches) >= 2
    quiet = sound.between(stretches[-2][1] + 30, stretches[-1][0] - 30)
    assert quiet.size > sound.rate // 4
    assert float(np.abs(quiet).max()) < 0.01
