"""A sound system of a test's own: PulseAudio with one loudspeaker that is recorded and one microphone to speak into."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np

RATE = 24_000
MISSING = [] if shutil.which("pulseaudio") else ["pulseaudio"]
ALSA = "</usr/share/alsa/alsa.conf>\npcm.!default { type pulse }\nctl.!default { type pulse }\n"


class SoundSystem:
    """There is no room around it: the microphone hears what `speak` is given and nothing else. The folder's path must
    be short, as a socket's is."""

    def __init__(self, folder: Path) -> None:
        socket, self._record, alsa = folder / "socket", folder / "record.raw", folder / "asound.conf"
        alsa.write_text(ALSA, "utf-8")
        self.environment = {
            "PULSE_SERVER": f"unix:{socket}", "PULSE_SINK": "speaker", "PULSE_SOURCE": "room.monitor",
            "ALSA_CONFIG_PATH": str(alsa),
        }  # fmt: skip
        self._env = {**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), **self.environment}
        sinks = (f"module-null-sink sink_name={name} rate={RATE} channels=1" for name in ("speaker", "room"))
        modules = (*sinks, f"module-native-protocol-unix socket={socket} auth-anonymous=1")
        self._daemon = subprocess.Popen(
            ["pulseaudio", "-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1", "--disable-shm=yes",
             *(part for module in modules for part in ("-L", module))],
            env=self._env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.monotonic() + 60
        while not socket.exists():
            assert self._daemon.poll() is None and time.monotonic() < end, "pulseaudio did not start"
            time.sleep(0.05)
        with self._record.open("wb") as out:
            self._recorder = subprocess.Popen(
                ["parec", "--device=speaker.monitor", "--format=s16le", f"--rate={RATE}", "--channels=1",
                 "--latency-msec=20"],
                env=self._env, stdout=out,
            )  # fmt: skip

    def speak(self, wav: Path) -> None:
        """Into the microphone, in real time."""
        subprocess.run(["paplay", "--device=room", wav], env=self._env, check=True)

    def sound(self) -> np.ndarray:
        """All that was played so far, at 24 kHz."""
        data = self._record.read_bytes()
        return np.frombuffer(data[: len(data) // 2 * 2], "<i2").astype(np.float32) / 32768

    def stop(self) -> None:
        """Also what happens when the last device is unplugged."""
        for process in (self._recorder, self._daemon):
            process.terminate()
            process.wait(60)
