"""Devices that take one form only, and devices that go away, behind a PortAudio of the test's own."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.base.channel import Channel
from assistant.base.errors import DeviceError
from assistant.local import devices
from assistant.local.devices import check_devices, loudspeaker, microphone
from assistant.local.form import BLOCK, DeviceForm, IntoDevice, OutOfDevice
from assistant.local.player import Player

FINE = SimpleNamespace(output_underflow=False)


class FakeStream:
    latency = 0.04

    def __init__(self, sound: FakePortAudio, kind: str, kinds: dict) -> None:
        sound.check(kind, kinds["device"], kinds["samplerate"], kinds["channels"])
        self.kind, self.kinds, self.active = kind, kinds, False
        sound.streams.append(self)

    def start(self) -> None:
        self.active = True

    def abort(self) -> None:
        self.active = False

    close = abort

    def run(self, frames: int, sound: np.ndarray | None = None) -> np.ndarray:
        """Let the device take or deliver so much."""
        data = np.zeros((frames, self.kinds["channels"]), np.float32) if sound is None else sound
        self.kinds["callback"](data, frames, None, FINE)
        return data


class FakePortAudio:
    """Devices by name, each with the only rate and number of channels that it takes. None is the default one."""

    PortAudioError = OSError

    def __init__(self, known: dict[str | None, tuple[int, int]]) -> None:
        self.known, self.streams = known, []
        self.InputStream = lambda **kinds: FakeStream(self, "input", kinds)
        self.OutputStream = lambda **kinds: FakeStream(self, "output", kinds)

    def query_devices(self, device=None, kind=None):
        if kind is None:
            return "0 one"
        if device not in self.known:
            raise ValueError(f"No {kind} device matching {device!r}")
        rate, channels = self.known[device]
        return {"default_samplerate": float(rate), f"max_{kind}_channels": channels}

    def check(self, kind, device, rate, channels) -> None:
        if self.query_devices(device, kind) and self.known[device] != (rate, channels):
            raise OSError("Invalid sample rate")

    def check_input_settings(self, *, device, samplerate, channels, dtype) -> None:
        self.check("input", device, samplerate, channels)

    def check_output_settings(self, *, device, samplerate, channels, dtype) -> None:
        self.check("output", device, samplerate, channels)


@pytest.fixture
def plugged(monkeypatch):
    def plug(known) -> FakePortAudio:
        sound = FakePortAudio(known)
        monkeypatch.setattr(devices, "_portaudio", lambda: sound)
        return sound

    return plug


def tone(seconds: float, rate: int) -> np.ndarray:
    return (0.3 * np.sin(np.arange(round(seconds * rate)) * 2 * np.pi * 400 / rate)).astype(np.float32)


def pitch_hz(sound: np.ndarray, rate: int) -> float:
    return float(np.argmax(np.abs(np.fft.rfft(sound)))) * rate / sound.size


@pytest.mark.parametrize("form", [(44_100, 2), (48_000, 6), (96_000, 2), (24_000, 1), (16_000, 1), (8_000, 2)], ids=str)
def test_a_device_is_opened_at_its_own_rate_and_channels(form, plugged):
    rate, channels = form
    sound = plugged({"odd": form})
    check_devices("odd", "odd")

    async def story() -> np.ndarray:
        heard: Channel = Channel(1000)
        player = Player()
        player.put("a", tone(2, 24_000))
        with microphone(heard, "odd"), loudspeaker(player, "odd"):
            ear, mouth = sound.streams
            played = np.concatenate([mouth.run(rate // 50) for _ in range(75)])
            assert played.shape == (75 * (rate // 50), channels) and (played == played[:, :1]).all()
            assert pitch_hz(played[rate // 2 : rate // 2 + rate // 2, 0], rate) == pytest.approx(400, abs=4)
            assert 1.4 * 24_000 < player.heard_samples("a") <= 1.5 * 24_000
            spoken = np.repeat(tone(2, rate)[:, None], channels, axis=1)
            for start in range(0, len(spoken), rate // 50):
                ear.run(rate // 50, spoken[start : start + rate // 50])
            await asyncio.sleep(0)
            heard.close()
            return [block async for block in heard]

    blocks = asyncio.run(story())
    assert {block.size for block in blocks} == {BLOCK} and 97 <= len(blocks) <= 100
    assert pitch_hz(np.concatenate(blocks)[12_000:36_000], 24_000) == pytest.approx(400, abs=2)


@settings(max_examples=40, deadline=None)
@given(
    rate=st.sampled_from([8_000, 11_025, 24_000, 44_100, 48_000, 192_000]), channels=st.integers(1, 8),
    frames=st.lists(st.integers(1, 5000), min_size=1, max_size=12),
)  # fmt: skip
def test_whatever_a_device_asks_for_nothing_is_lost_or_said_twice(rate, channels, frames):
    """Our side sees whole blocks of 20 ms, so that what was heard is counted right."""
    form, taken, heard = DeviceForm(rate, channels), [], []
    counted = iter(range(10**9))

    def fill(block: np.ndarray) -> None:
        taken.append(block.size)
        block[:] = [next(counted) / 1e6 for _ in block]

    into, out = IntoDevice(form, fill), OutOfDevice(form, lambda block: heard.append(np.array(block)))
    played = []
    for count in frames:
        data = np.full((count, channels), 9, np.float32)
        into(data)
        played.append(data[:, 0])
        out(data)
    assert set(taken) == {BLOCK} and {block.size for block in heard} <= {BLOCK}
    total = sum(frames)
    assert 0 <= sum(taken) - total * 24_000 / rate <= 3 * BLOCK
    if rate == 24_000:
        assert np.allclose(np.concatenate(played), np.arange(total) / 1e6)
        whole = np.concatenate([np.zeros(0), *heard])
        assert np.allclose(whole, np.concatenate(played)[: whole.size])


def test_a_device_that_goes_is_replaced_by_the_default_one_and_the_reply_goes_on(plugged, monkeypatch):
    monkeypatch.setattr(devices, "LOOK_S", 0.0)
    sound = plugged({"headset": (44_100, 2), None: (48_000, 2)})
    told: list[str] = []

    async def story() -> None:
        player = Player()
        player.put("a", tone(2, 24_000))
        with loudspeaker(player, "headset", tell=told.append) as mouth:
            tending = asyncio.create_task(mouth.tend())
            for _ in range(25):
                sound.streams[0].run(882)
            before = player.heard_samples("a")
            sound.streams[0].active = False
            while len(sound.streams) < 2:
                await asyncio.sleep(0)
            assert told == ["the loudspeaker stopped; the talk goes on with the default one"]
            assert sound.streams[1].kinds["device"] is None and sound.streams[1].kinds["samplerate"] == 48_000
            for _ in range(25):
                sound.streams[1].run(960)
            assert player.heard_samples("a") >= before + 0.45 * 24_000
            for _ in range(9):
                sound.streams[1].run(960)
                await asyncio.sleep(0)
            del sound.known[None]
            sound.streams[1].active = False
            with pytest.raises(DeviceError, match=r"the loudspeaker stopped; was it unplugged\?"):
                await tending

    asyncio.run(story())
    assert len(told) == 1


def test_a_default_device_that_stops_again_at_once_ends_the_talk(plugged, monkeypatch):
    monkeypatch.setattr(devices, "LOOK_S", 0.0)
    sound = plugged({None: (24_000, 1)})
    monkeypatch.setattr(FakeStream, "start", lambda stream: None)

    async def story() -> None:
        with loudspeaker(Player()) as mouth, pytest.raises(DeviceError, match="stopped"):
            await mouth.tend()

    asyncio.run(story())
    assert len(sound.streams) == 2


def test_a_device_that_takes_no_form_is_told(plugged, monkeypatch):
    sound = plugged({"odd": (44_100, 2)})
    monkeypatch.setattr(sound, "check", lambda *asked: (_ for _ in ()).throw(OSError("Device unavailable")))
    with pytest.raises(DeviceError, match=r"microphone cannot be opened: Device unavailable; .*--devices"):
        check_devices("odd", None)
    with pytest.raises(DeviceError, match=r"cannot be opened: No input device matching 'none'"):
        check_devices("none", None)
