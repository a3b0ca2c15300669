"""Sound files by their content, whatever their names say: libsndfile opens them, or PyAV where it is installed.

A file is read block by block, mixed to mono and brought to 16 kHz at once. So memory follows the true length of the
sound: a header may give none, or a wrong one, and a small file may unfold to hours.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import soundfile
from numpy.typing import NDArray

from assistant.base.errors import AssistantError
from assistant.base.extras import adding
from assistant.base.pcm import Resampler, silence
from assistant.base.sound import HEARING_RATE, Pcm

RATES = (1_000, 768_000)
"""Allowed sample rates of a recording in Hz: any other means a damaged header, and no filter reaches that far."""
BLOCK = 1 << 18
"""Samples of all channels in one block."""
CANCELLED = 0.25
"""Two channels cancel each other out if their mean has less than this share of the energy of their difference."""
KNOWN = "name a WAV, FLAC, OGG or MP3 file"
MORE = f"; {adding('files')} adds m4a, webm and others"


class SoundUnreadable(AssistantError):
    """A file is not sound, or not sound that can be used; the message says why."""


class SoundBlock(NamedTuple):
    """samples [n, channels] as stored, n above 0; rate in Hz."""

    samples: NDArray[np.float32]
    rate: int


def read_sound(source: Path | bytes, name: str = "", longest_s: float | None = None) -> Pcm:
    """[n] samples at 16 kHz, mono. `name` is what an error calls the file.

    Raises SoundUnreadable if it cannot be read, holds no sound, or holds more than `longest_s`.
    """
    name = name or str(source)
    with _opened(source, name) as file:
        mix = _difference if _cancels(_decoded(file, name), name, longest_s) else _mean
        file.seek(0)
        track = None
        for stored, rate in _decoded(file, name):
            track = track or _Track(rate)
            track.extend(mix(_finite(stored)))
    if track is None:
        raise SoundUnreadable(f"{name} contains no sound; name a recording of speech")
    return track.whole()


def _cancels(sound: Iterator[SoundBlock], name: str, longest_s: float | None) -> bool:
    """Whether two channels cancel each other out, over the whole sound. Raises SoundUnreadable."""
    samples, mean, difference = 0, 0.0, 0.0
    for stored, rate in sound:
        if not RATES[0] <= rate <= RATES[1]:
            raise SoundUnreadable(f"{name} has {rate} samples a second; {RATES[0]} to {RATES[1]} are read")
        samples += len(stored)
        if longest_s is not None and samples > longest_s * rate:
            raise SoundUnreadable(f"{name} is longer than {longest_s / 60:.0f} minutes")
        if stored.shape[1] > 1:
            block = _finite(stored)
            mean, difference = mean + _energy(_mean(block)), difference + _energy(_difference(block))
    return mean < CANCELLED * difference


def check_sound(path: Path) -> None:
    """Read the beginning only. Raises SoundUnreadable if there is no sound."""
    if next(blocks(path, str(path)), None) is None:
        raise SoundUnreadable(f"{path} contains no sound; name a recording of speech")


def blocks(source: Path | bytes, name: str) -> Iterator[SoundBlock]:
    """The sound from its start to its end. Raises SoundUnreadable."""
    with _opened(source, name) as file:
        yield from _decoded(file, name)


def mixed(samples: NDArray[np.float32]) -> Pcm:
    """[n, channels] → [n] mono: the mean, or the difference of two channels that cancel each other out."""
    mean = _mean(samples)
    if samples.shape[1] == 1:
        return mean
    difference = _difference(samples)
    return difference if _energy(mean) < CANCELLED * _energy(difference) else mean


def _finite(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Float files may hold anything, and one NaN would spread through the filters over everything that follows."""
    return np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)


def _mean(samples: NDArray[np.float32]) -> Pcm:
    return np.ascontiguousarray(samples.mean(axis=1), np.float32)


def _difference(samples: NDArray[np.float32]) -> Pcm:
    return np.ascontiguousarray((samples[:, 0] - samples[:, 1]) / 2, np.float32)


def _energy(pcm: Pcm) -> float:
    return float(np.square(pcm, dtype=np.float64).sum())


class _Track:
    """A mono sound that grows, brought to 16 kHz."""

    def __init__(self, rate: int) -> None:
        self._rate, self._samples = rate, 0
        self._filter = Resampler(rate, HEARING_RATE, "sinc_medium")
        self._made = bytearray()

    def extend(self, pcm: Pcm) -> None:
        self._samples += pcm.size
        self._made += self._filter.feed(pcm).tobytes()

    def whole(self) -> Pcm:
        """The filter keeps some of the last samples back: silence behind them drives them out."""
        self._made += self._filter.feed(silence(self._rate // 10), last=True).tobytes()
        return np.frombuffer(self._made, np.float32)[: round(self._samples * HEARING_RATE / self._rate)]


class _Forward(soundfile.SoundFile):
    """Read from start to end: soundfile seeks behind each block otherwise, which fails if the header has no length."""

    def seekable(self) -> bool:
        return False


@contextmanager
def _opened(source: Path | bytes, name: str) -> Iterator[BinaryIO]:
    """The bytes without a name: libraries would judge by it. Raises SoundUnreadable."""
    if isinstance(source, bytes):
        yield io.BytesIO(source)
        return
    try:
        named = source.open("rb")
    except OSError as error:
        if not source.exists():
            raise SoundUnreadable(f"there is no file {name}") from error
        why = "it is a folder" if source.is_dir() else error.strerror or str(error)
        raise SoundUnreadable(f"{name} cannot be read as sound ({why}); {KNOWN}") from error
    with named:
        if not named.seekable():
            yield io.BytesIO(named.read())
            return
        with open(named.fileno(), "rb", closefd=False) as file:
            yield file


def _decoded(file: BinaryIO, name: str) -> Iterator[SoundBlock]:
    """Raises SoundUnreadable if no library reads the file."""
    try:
        sound = _Forward(file)
    except (soundfile.LibsndfileError, RuntimeError, ValueError, TypeError):
        file.seek(0)
        yield from _decoded_by_av(file, name)
        return
    with sound:
        asked = max(1, BLOCK // sound.channels)
        count = asked
        while count == asked:
            try:
                samples = sound.read(asked, dtype="float32", always_2d=True)
            except (soundfile.LibsndfileError, RuntimeError) as error:
                raise SoundUnreadable(f"{name} is damaged and cannot be read as sound to its end ({error})") from error
            count = len(samples)
            if count:
                yield SoundBlock(samples, int(sound.samplerate))


def _decoded_by_av(file: BinaryIO, name: str) -> Iterator[SoundBlock]:
    """Any container and codec that PyAV knows. Raises SoundUnreadable."""
    if find_spec("av") is None:
        raise SoundUnreadable(f"{name} cannot be read as sound; {KNOWN}{MORE}")
    import av

    try:
        # Playlists and lists of parts are formats too: no protocol is allowed, so they open nothing else.
        with av.open(file, "r", metadata_errors="ignore", options={"protocol_whitelist": "none"}) as container:
            if not container.streams.audio:
                raise SoundUnreadable(f"{name} contains no sound; name a recording of speech")
            planar = av.AudioResampler(format="fltp")
            for frame in container.decode(audio=0):
                for made in planar.resample(frame):
                    yield SoundBlock(np.ascontiguousarray(made.to_ndarray().T), made.sample_rate)
    except (av.FFmpegError, ValueError, TypeError) as error:
        raise SoundUnreadable(f"{name} cannot be read as sound; {KNOWN}") from error
