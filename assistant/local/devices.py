"""Microphone and loudspeaker through PortAudio: blocks of sound in, a player's sound out, both at 24 kHz mono."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from assistant.channel import Channel
from assistant.errors import DeviceError
from assistant.events import REPLY_RATE, Pcm
from assistant.local.echo import EchoCanceller
from assistant.local.player import Player

BLOCK = REPLY_RATE // 50
"""20 ms."""


def list_devices() -> str:
    """All devices as PortAudio numbers and names them. Raises DeviceError without PortAudio."""
    return str(_portaudio().query_devices())


@contextmanager
def microphone(
    sound: Channel[Pcm], device: str | None = None, echo: EchoCanceller | None = None
) -> Iterator[None]:
    """Send 20 ms blocks into the channel; a block that finds no room is lost, as a late one would be."""
    sd = _portaudio()
    loop = asyncio.get_running_loop()

    def heard(data: Any, frames: int, time: Any, status: Any) -> None:
        block = np.array(data[:, 0], np.float32)
        if echo is not None:
            block = echo.cleaned(block)
        loop.call_soon_threadsafe(sound.offer, block)

    with _stream(sd.InputStream, "microphone", device, heard):
        yield


@contextmanager
def loudspeaker(player: Player, device: str | None = None, echo: EchoCanceller | None = None) -> Iterator[None]:
    """Play what the player has; tells the player how much the device holds back."""
    sd = _portaudio()

    def play(data: Any, frames: int, time: Any, status: Any) -> None:
        pcm = player.take(frames)
        if echo is not None:
            echo.played(pcm)
        data[:, 0] = pcm

    with _stream(sd.OutputStream, "loudspeaker", device, play) as stream:
        player.latency_samples = int(stream.latency * REPLY_RATE)
        yield


@contextmanager
def _stream(kind: Any, what: str, device: str | None, callback: Any) -> Iterator[Any]:
    chosen: str | int | None = int(device) if device is not None and device.isdigit() else device
    try:
        stream = kind(
            samplerate=REPLY_RATE, channels=1, dtype="float32", blocksize=BLOCK, device=chosen, callback=callback,
            latency="low",
        )  # fmt: skip
        stream.start()
    except Exception as error:  # PortAudio's own errors, and what its host interfaces throw
        raise DeviceError(
            f"no {what} can be opened ({error}); `assistant talk --devices` lists what there is, --{what} chooses"
        ) from error
    try:
        yield stream
    finally:
        stream.stop()
        stream.close()


def _portaudio() -> Any:
    try:
        import sounddevice
    except (ImportError, OSError) as error:
        raise DeviceError(
            "PortAudio is not on this machine; install it (Debian: apt install libportaudio2), or use `assistant "
            "serve` with a browser"
        ) from error
    return sounddevice
