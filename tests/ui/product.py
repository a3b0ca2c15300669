"""The product as a person starts it, and a voice for that person."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
from browser import write_wav


class Product:
    """`assistant serve` as a person runs it, on a port of its own; `stop` is Ctrl-C."""

    def __init__(self, home: Path, *options: str) -> None:
        self._options = options
        self.env = {**os.environ, "ASSISTANT_HOME": str(home)}
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
            env=self.env,
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

    def kill(self) -> None:
        """As a power failure: nothing is told, nothing is tidied."""
        self._process.kill()
        self._process.communicate(timeout=60)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.communicate(timeout=60)


def say(text: str, microphone: Path, before_s: float = 0.8) -> None:
    """Have the next opening of the microphone hear these words, and silence after them."""
    say_in_turn(microphone, (before_s, text))


def say_in_turn(microphone: Path, *texts: tuple[float, str]) -> None:
    """The same with several texts, each after so many seconds of silence."""
    spoken, sound, rate = microphone.with_name("spoken.wav"), [], 0
    for before_s, text in texts:
        subprocess.run(["espeak-ng", "-v", "en-gb", "-s", "150", "-w", spoken, text], check=True)
        with wave.open(str(spoken)) as file:
            rate = file.getframerate()
            words = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
        sound += [np.zeros(int(before_s * rate), np.float32), words]
    write_wav(microphone, np.concatenate([*sound, np.zeros(90 * rate, np.float32)]), rate)
