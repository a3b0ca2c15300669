"""Sound on the wire: base64 of PCM or G.711 in, float samples out; and back, as base64 of at most 100 ms."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import numpy as np

from assistant.base import pcm as sound
from assistant.events import REPLY_RATE, Pcm
from assistant.realtime.fields import Fields
from assistant.realtime.items import base64_bytes
from assistant.realtime.settings import AudioFormat

MAX_APPEND = 15 * 1024 * 1024
DELTA_MS = 100
FLUSH_MS = 20
"""Silence that pushes the last samples out of the filter."""


class SoundIn:
    """Appended sound. An incomplete sample's byte waits for the next append."""

    def __init__(self) -> None:
        self._odd = b""

    def samples_of(self, event: Fields, form: AudioFormat) -> Pcm:
        """The samples of an append. Raises PeerError, and then nothing was appended."""
        data = base64_bytes(event, "audio", MAX_APPEND)
        if form.type == "audio/pcmu":  # a byte is a sample: nothing can be odd
            return sound.from_ulaw(data)
        if form.type == "audio/pcma":
            return sound.from_alaw(data)
        data = self._odd + data
        whole = len(data) // 2 * 2
        self._odd = data[whole:]
        return sound.from_pcm16(data[:whole])

    def clear(self) -> None:
        """Forget the waiting byte."""
        self._odd = b""


class SoundOut:
    """One item's sound in a client's format, cut into deltas."""

    def __init__(self, form: AudioFormat) -> None:
        self._form = form
        self._resampler = sound.Resampler(REPLY_RATE, form.rate)
        self._taken = self._given = 0

    def deltas(self, pcm: Pcm, last: bool = False) -> Iterator[str]:
        """Base64 pieces; with `last`, also the samples still in the filter."""
        self._taken += len(pcm)
        ready = self._resampler.feed(pcm)
        if last:
            # Silence pushes out the rest of the filter. Everything beyond the item's own length is cut, because clients
            # count samples to report how much of it was played.
            tail = self._resampler.feed(sound.silence(REPLY_RATE * FLUSH_MS // 1000))
            whole = round(self._taken * self._form.rate / REPLY_RATE)
            ready = np.concatenate((ready, tail))[: max(0, whole - self._given)]
        self._given += len(ready)
        step = self._form.rate * DELTA_MS // 1000
        for start in range(0, len(ready), step):
            yield base64.b64encode(self._encode(ready[start : start + step])).decode()

    def _encode(self, pcm: Pcm) -> bytes:
        if self._form.type == "audio/pcmu":
            return sound.to_ulaw(pcm)
        if self._form.type == "audio/pcma":
            return sound.to_alaw(pcm)
        return sound.to_pcm16(pcm)
