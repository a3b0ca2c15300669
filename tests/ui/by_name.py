"""A talk that is called by name, through the page: what was said before the name is nowhere."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, expect
from product import say_in_turn
from safetensors import safe_open
from tokenizers import Tokenizer

import llm_engine
from assistant.base.pcm import Resampler, from_pcm16
from assistant.base.sound import HEARING_RATE
from assistant.events import REPLY_RATE, Pcm
from capsules.durable import read_entries
from capsules.journal import SUFFIX

SLOW = 60_000
RARE = "marigold"
RUN = 16
"""So many samples of speech in a row come about twice in nothing else."""
TALK_S = 3.0
"""The last seconds before the name hold the talk."""
SHOWN = re.compile(r"conversation\.item|input_audio|response|assistant\.(transcript|duck|nod|state)")
Event = dict[str, str]


def call_by_name(page: Page, microphone: Path, received: list[Event]) -> None:
    """Some talk, the name, and a follow-up without it: nothing is shown or answered before the name."""
    del received[:]
    say_in_turn(
        microphone, (0.5, f"my secret is a {RARE}"), (1.0, "Okay Ada, what time is it?"), (4.0, "What day is it today?")
    )
    page.get_by_role("button", name="By name").press("Enter")
    expect(page.get_by_role("button", name="By name", pressed=True)).to_be_visible(timeout=SLOW)
    expect(page.get_by_text("Say “hey Ada”, then ask.")).to_be_visible()
    page.click("#mic")
    sign = page.locator("#phase")  # a live region
    expect(sign).to_have_text("Say “hey Ada” to begin", timeout=SLOW)
    # The follow-up is heard behind the answer, or over it on a slow machine. There the microphone loses sound as well,
    # so whatever it is taken for counts.
    said = [re.compile(words, re.IGNORECASE) for words in ("what time", r"\w")]
    expect(page.locator("li.you .text")).to_have_text(said, timeout=SLOW)
    expect(sign).to_have_text("Listening. No name is needed now", timeout=SLOW)
    page.click("#mic")
    called = next(at for at, event in enumerate(received) if event.get("called") == "Ada")
    assert [event["type"] for event in received[:called] if SHOWN.match(event["type"])] == []
    assert "get_time" in {event["name"] for event in received if event["type"] == "assistant.tool"}


def chimes(sound: Pcm, rate: int) -> int:
    """How often the two tones of the chime follow each other. One piece may hold both."""
    size = rate // 20
    pieces = sound[: sound.size // size * size].reshape(-1, size)
    tones = []
    for piece in pieces:
        power = np.square(np.abs(np.fft.rfft(piece * np.hanning(size))))
        near = [float(power[at - 2 : at + 3].sum()) for at in (hertz * size // rate for hertz in (660, 990))]
        pure = max(near) > 0.9 * power.sum() > 0.1
        tones.append(str(near.index(max(near))) if pure else "-")
    return len(re.findall("0+-?1+", "".join(tones)))


def check_unheard(home: Path, sent: list[Event], received: list[Event]) -> None:
    """No byte of what was said before the name is kept or was sent to the page, neither as words nor as sound."""
    files = stored(home) | {"sent": json.dumps(received).encode()}
    deltas = (event["delta"] for event in received if event["type"] == "response.output_audio.delta")
    files["sounded"] = b"".join(map(base64.b64decode, deltas))
    found = {name for name, held in files.items() if b"what time" in held.lower()}
    assert found >= {"sent", "journals", "capsules"}, "the search finds what was meant for it"
    everything = b"\0".join(files.values()).lower()
    assert [word for word in (RARE, "secret") if word.encode() in everything] == []
    everything = b"\0".join(files.values())
    assert [run for run in runs_before_the_name(sent, received) if run in everything] == []


def stored(home: Path) -> dict[str, bytes]:
    """Every file; under names of their own also what journals pack, and the words whose tokens are in capsules."""
    words = Tokenizer.from_file(str(Path(llm_engine.__file__).parent / "tiny" / "tokenizer.json"))
    found = {"journals": b"", "capsules": b""}
    for path in home.rglob("*"):
        if path.is_file():
            found[str(path)] = path.read_bytes()
        if path.suffix == SUFFIX:
            found["journals"] += b"".join(map(zlib.decompress, read_entries(path).payloads))
        if path.suffix == ".safetensors":
            with safe_open(path, "np") as file:
                about = json.loads(file.metadata()["about"])
            if about["scope"] == "llm":
                found["capsules"] += words.decode(about["tokens"]).encode()
    return found


def runs_before_the_name(sent: list[Event], received: list[Event]) -> list[bytes]:
    """The loudest stretches of the sound that came before the name, as they would lie in a file: at the rate that the
    page sends and at the ears', as float32 and as int16."""
    began = next(event for event in received if event["type"] == "input_audio_buffer.speech_started")
    until_s = int(began["audio_start_ms"]) / 1000
    blocks = [from_pcm16(base64.b64decode(event["audio"])) for event in sent if "audio" in event]
    resampler = Resampler(REPLY_RATE, HEARING_RATE)
    heard = np.concatenate([resampler.feed(block) for block in blocks])
    both = [(heard, HEARING_RATE), (np.concatenate(blocks), REPLY_RATE)]
    before = [one[int((until_s - TALK_S) * rate) : int(until_s * rate)] for one, rate in both]
    places = [(one, at) for one in before for at in range(0, one.size - RUN, RUN)]
    loud = sorted(places, key=lambda place: -float(np.square(place[0][place[1] : place[1] + RUN]).sum()))[:200]
    pieces = [one[at : at + RUN] for one, at in loud]
    assert min(float(np.abs(piece).max()) for piece in pieces) > 0.01, "that was speech"
    whole = [np.round(piece * scale).astype("<i2").tobytes() for piece in pieces for scale in (32767, 32768)]
    return [piece.astype("<f4").tobytes() for piece in pieces] + whole
