"""Microphone and loudspeaker through PortAudio: blocks of sound in, a player's sound out, both at 24 kHz mono.

A device that does not take this form is opened at its own rate and channels. One that goes away in a talk is replaced
by the default one.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from assistant.base.channel import Channel
from assistant.base.errors import DeviceError
from assistant.events import REPLY_RATE, Pcm
from assistant.local.echo import EchoCanceller
from assistant.local.form import DeviceForm, Direction, IntoDevice, OutOfDevice, forms
from assistant.local.player import Player

LATENCY_S, MOST_LATENCY_S = 0.04, 0.32
"""The latency that a device is asked for: two blocks at first. A loudspeaker that ran dry is opened again with twice
that, because some sound systems stay short of sound once they were."""
LOOK_S = 0.25
INPUT: Direction = "input"
OUTPUT: Direction = "output"


class StreamStatus(Protocol):
    @property
    def output_underflow(self) -> bool: ...


class SoundStream(Protocol):
    @property
    def active(self) -> bool: ...

    @property
    def latency(self) -> float: ...

    def start(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class PortAudio(Protocol):
    """The part of the module `sounddevice` that is used here, besides its two kinds of stream."""

    PortAudioError: type[Exception]

    def query_devices(self, device: str | int | None = None, kind: Direction | None = None) -> object: ...

    def check_input_settings(self, *, device: str | int | None, samplerate: int, channels: int, dtype: str) -> None: ...

    def check_output_settings(
        self, *, device: str | int | None, samplerate: int, channels: int, dtype: str
    ) -> None: ...


def list_devices() -> str:
    """All devices as PortAudio numbers and names them. Raises DeviceError without PortAudio, or without any device."""
    with chatter_to(Path(os.devnull)):
        listed = str(_portaudio().query_devices())
    if not listed.strip():
        raise DeviceError(
            "there is no microphone and no loudspeaker on this machine; plug one in, or use `assistant serve` with a "
            "browser on a machine that has them"
        )
    return listed


def check_devices(microphone: str | None, loudspeaker: str | None) -> None:
    """Before minutes of loading. Raises DeviceError for one that is not there or does not take this sound."""
    list_devices()
    sd = _portaudio()
    with chatter_to(Path(os.devnull)):
        for what, name, direction in (("microphone", microphone, INPUT), ("loudspeaker", loudspeaker, OUTPUT)):
            with _told(sd, what):
                _form(sd, direction, _named(name))


def check_loudspeaker() -> None:
    """Raises DeviceError if no default loudspeaker takes this sound."""
    sd = _portaudio()
    with chatter_to(Path(os.devnull)), _told(sd, "loudspeaker"):
        _form(sd, OUTPUT, None)


@contextmanager
def chatter_to(path: Path) -> Iterator[None]:
    """Send what sound libraries write on the error stream by themselves to a file; Python's own errors stay.

    ALSA prints lines of its own for every underrun and every device that it did not find.
    """
    if sys.stderr is not sys.__stderr__ or sys.stderr is None:  # somebody has taken the stream already
        yield
        return
    told, kept = sys.stderr, os.dup(2)
    told.flush()
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    sys.stderr = os.fdopen(os.dup(kept), "w", buffering=1, errors="backslashreplace")
    try:
        yield
    finally:
        sys.stderr.close()
        sys.stderr = told
        os.dup2(kept, 2)
        os.close(kept)


class Device:
    """One open stream. `tend` must run beside it; it raises DeviceError when the device goes away."""

    def __init__(
        self, direction: Direction, what: str, name: str | None, callback: Callable[[Pcm], None],
        opened: Callable[[float], None] = lambda latency_s: None, tell: Callable[[str], None] = lambda line: None,
    ) -> None:  # fmt: skip
        self._direction, self._what, self._callback = direction, what, callback
        self._opened, self._tell = opened, tell
        self._name = _named(name)
        self._wanted_s = LATENCY_S
        self._dry = False

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    async def tend(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            if not self._stream.active:
                self._replace()
                await asyncio.sleep(LOOK_S)
                if not self._stream.active:
                    raise self._gone()
            if self._dry and self._wanted_s < MOST_LATENCY_S:
                self._wanted_s *= 2
                self._close()
                self._open()

    def _replace(self) -> None:
        """Go on with the default device, which may be another one by now. Raises DeviceError."""
        self._close()
        self._name = None
        try:
            self._open()
        except DeviceError as error:
            raise self._gone() from error
        self._tell(f"the {self._what} stopped; the talk goes on with the default one")

    def _gone(self) -> DeviceError:
        return DeviceError(f"the {self._what} stopped; was it unplugged? `assistant talk --devices` lists the devices")

    def _open(self) -> None:
        sd = _portaudio()
        with _told(sd, self._what):
            form = _form(sd, self._direction, self._name)
            kind, bridge = ("InputStream", OutOfDevice) if self._direction == INPUT else ("OutputStream", IntoDevice)
            self._bridge = bridge(form, self._callback)
            self._stream: SoundStream = getattr(sd, kind)(
                samplerate=form.rate, channels=form.channels, dtype="float32", blocksize=form.block,
                device=self._name, callback=self._called, latency=self._wanted_s,
            )  # fmt: skip
            self._stream.start()
        self._dry = False
        self._opened(self._stream.latency + form.lag_s)

    def _close(self) -> None:
        self._stream.abort()
        self._stream.close()

    def _called(self, data: NDArray[np.float32], frames: int, time: object, status: StreamStatus) -> None:
        self._dry |= bool(status.output_underflow)
        self._bridge(data)


def microphone(
    sound: Channel[Pcm], name: str | None = None, echo: EchoCanceller | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Device:  # fmt: skip
    """Sends 20 ms blocks into the channel; a block that finds no room is lost, as a late one would be."""
    loop = asyncio.get_running_loop()

    def heard(block: Pcm) -> None:
        pcm = np.array(block, np.float32)
        loop.call_soon_threadsafe(sound.offer, pcm if echo is None else echo.cleaned(pcm))

    return Device(INPUT, "microphone", name, heard, tell=tell)


def loudspeaker(
    player: Player, name: str | None = None, echo: EchoCanceller | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Device:  # fmt: skip
    """Plays what the player has; tells the player how much the device holds back."""

    def play(block: Pcm) -> None:
        pcm = player.take(block.size)
        if echo is not None:
            echo.played(pcm)
        block[:] = pcm

    def opened(latency_s: float) -> None:
        player.latency_samples = int(latency_s * REPLY_RATE)

    return Device(OUTPUT, "loudspeaker", name, play, opened, tell)


def _form(sd: PortAudio, direction: Direction, device: str | int | None) -> DeviceForm:
    """The first form that the device takes. Raises what PortAudio raises about the first."""
    check = sd.check_input_settings if direction == INPUT else sd.check_output_settings
    refused: Exception | None = None
    facts = cast(Mapping[str, float | str], sd.query_devices(device, direction))
    for form in forms(facts, direction):
        try:
            check(device=device, samplerate=form.rate, channels=form.channels, dtype="float32")
            return form
        except (sd.PortAudioError, ValueError) as error:
            refused = refused or error
    raise refused or ValueError(f"it has no {direction}")


def _named(name: str | None) -> str | int | None:
    """As sounddevice wants it: a number, or a part of a name; None is the default device."""
    return int(name) if name is not None and name.isascii() and name.isdigit() else name


@contextmanager
def _told(sd: PortAudio, what: str) -> Iterator[None]:
    try:
        yield
    except (sd.PortAudioError, ValueError) as error:
        raise DeviceError(
            f"the {what} cannot be opened: {error}; `assistant talk --devices` lists all, --{what} chooses"
        ) from error


def _portaudio() -> PortAudio:
    try:
        import sounddevice
    except (ImportError, OSError) as error:
        raise DeviceError(
            "PortAudio is not installed; install it (Debian: apt install libportaudio2), or use `assistant "
            "serve` with a browser"
        ) from error
    return sounddevice
