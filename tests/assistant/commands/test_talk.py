"""`assistant talk` on a sound device: heard, answered aloud, talked over, and left alone by its devices."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from assistant import cli
from tests.fakes.sound_system import MISSING, RATE, SoundSystem
from tests.fakes.talk import World
from tests.fakes.web import Site, serving

LACKING = MISSING + ([] if shutil.which("espeak-ng") else ["espeak-ng"])
PATIENCE = 120.0
COUNT = " ".join(f"word{n}" for n in range(40)) + "."
WORD = 7200
"""Samples of each word of the fake voice, a constant 0.1."""


def mind(prompt):
    """A long reply, then short ones."""
    return [COUNT] if len([line for line in prompt.lines if line.role == "user"]) == 1 else ["Three more words."]


class Command:
    """`assistant talk` with both models elsewhere; its ears are its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process, self.told = process, ""

    async def until(self, pattern: str) -> re.Match[str]:
        """Read on to a line that has this."""
        while True:
            line = (await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)).decode()
            self.told += line
            assert line, f"never came: {pattern}; told: {self.told}"
            if found := re.search(pattern, line):
                return found


async def started(folder: Path, devices: SoundSystem, site: Site) -> Command:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "assistant", "talk", "--llm", site.http, "--tts", site.http,
        env={**os.environ, **devices.environment, "ASSISTANT_HOME": str(folder / "home")},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    return Command(process)


async def talked_over(folder: Path, devices: SoundSystem) -> tuple[str, list[float], int]:
    """A question is answered at length; another is put into the middle of the answer; then all devices go."""
    wav = folder / "question.wav"
    subprocess.run(["espeak-ng", "-v", "en-us", "-s", "150", "-w", wav, "what time is it"], check=True)
    async with serving(World(mind, speed=100.0)) as site:
        talk = await started(folder, devices, site)
        try:
            await talk.until("listening")
            await asyncio.to_thread(devices.speak, wav)
            await talk.until(r"^you +\S")
            await sounding(devices, lambda played: sum(played) > 3)
            await asyncio.to_thread(devices.speak, wav)
            await talk.until(r"^ada +word0 .*\[interrupted\]")
            await talk.until(r"^ada +Three more words\.$")
            played = await sounding(devices, lambda played: len(played) > 1 and played[-1] > 2.5)
            devices.stop()
            status = await asyncio.wait_for(talk.process.wait(), PATIENCE)
            talk.told += (await talk.process.stdout.read()).decode()
        finally:
            if talk.process.returncode is None:
                talk.process.kill()
                await talk.process.wait()
    return talk.told, played, status


def words(sound: np.ndarray) -> list[float]:
    """How many words each reply has that can be heard in a sound; between replies there is half a second of silence."""
    at = np.flatnonzero(np.abs(sound) > 0.001)
    return [part.size / WORD for part in np.split(at, np.flatnonzero(np.diff(at) > RATE // 2) + 1) if part.size]


async def sounding(devices: SoundSystem, enough: Callable[[list[float]], bool]) -> list[float]:
    """What the loudspeaker has played, once this holds for it."""
    async with asyncio.timeout(PATIENCE):
        while not enough(played := words(devices.sound())):
            await asyncio.sleep(0.05)
        return played


@pytest.mark.slow
@pytest.mark.skipif(bool(LACKING), reason=f"no {' or '.join(LACKING)} here; install these packages to un-skip")
def test_a_spoken_question_is_answered_and_talked_over_until_the_devices_go():
    with tempfile.TemporaryDirectory() as name:
        devices = SoundSystem(Path(name))
        try:
            told, played, status = asyncio.run(talked_over(Path(name), devices))
        finally:
            devices.stop()
    [last] = re.findall(r"\(heard until “.*?word(\d+)”\)$", told, re.MULTILINE)
    heard = int(last) + 1
    assert heard < 40 and abs(heard - played[0]) < 1, "to the word; a loudspeaker that runs dry loses parts of one"
    assert status == 1
    assert re.search(r"^assistant: the (loudspeaker|microphone) stopped; was it unplugged\?", told, re.MULTILINE)
    assert "ALSA" not in told and "Expression" not in told and "Traceback" not in told


def test_without_devices_it_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr("assistant.local.devices._portaudio", lambda: SimpleNamespace(query_devices=lambda: ""))
    assert cli.main(["talk"]) == 1
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("assistant: there is no microphone and no loudspeaker")


@pytest.mark.parametrize(
    ("asked", "wrong", "told"),
    [
        (
            ["--microphone", "7"],
            ("check_input_settings", ValueError("No input device 7")),
            "the microphone cannot be opened",
        ),
        (
            ["--loudspeaker", "hw:1"],
            ("check_output_settings", OSError("Invalid sample rate")),
            "Invalid sample rate",
        ),
    ],
)
def test_a_device_that_cannot_be_used_is_told_before_anything_loads(asked, wrong, told, monkeypatch, capsys):
    def refuse(**kinds):
        raise wrong[1]

    settings = {"check_input_settings": lambda **kinds: None, "check_output_settings": lambda **kinds: None}
    facts = {"default_samplerate": 44100.0, "max_input_channels": 2, "max_output_channels": 2}
    asked_for = lambda device=None, kind=None: "0 one" if kind is None else facts  # noqa: E731
    sound = SimpleNamespace(query_devices=asked_for, PortAudioError=OSError, **settings | {wrong[0]: refuse})
    monkeypatch.setattr("assistant.local.devices._portaudio", lambda: sound)
    assert cli.main(["talk", *asked]) == 1
    err = capsys.readouterr().err
    assert told in err and "--devices" in err and err.count("\n") == 1
