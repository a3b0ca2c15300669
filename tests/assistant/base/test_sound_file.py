"""Sound files by their content: any container, rate and number of channels, damaged headers, and how much memory."""

import io
import random
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.base import sound_file
from assistant.base.errors import AssistantError
from assistant.base.sound_file import SoundUnreadable, check_sound, read_sound

av = pytest.importorskip("av")

FORMS = [
    ("WAV", "PCM_U8"), ("WAV", "PCM_24"), ("WAV", "FLOAT"), ("WAV", "DOUBLE"), ("WAV", "ULAW"), ("WAV", "ALAW"),
    ("WAVEX", "PCM_16"), ("W64", "PCM_16"), ("AIFF", "PCM_16"), ("AU", "PCM_16"), ("CAF", "PCM_16"),
    ("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III"),
]  # fmt: skip
TONE_HZ = 300


def tone(seconds: float, rate: int, gains: tuple[float, ...] = (1.0,)) -> np.ndarray:
    """[n, channels]"""
    wave = 0.4 * np.sin(np.arange(round(seconds * rate)) * 2 * np.pi * TONE_HZ / rate)
    return (wave[:, None] * np.array(gains)).astype(np.float32)


def stored(sound: np.ndarray, rate: int, form: str = "WAV", subtype: str = "PCM_16") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, sound, rate, format=form, subtype=subtype)
    return file.getvalue()


def stored_by_av(container: str, codec: str, rate: int = 48_000) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=container) as made:
        stream = made.add_stream(codec, rate=rate, layout="mono")
        for start in range(0, rate * 2, 960):
            part = tone(2, rate)[start : start + 960].T
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(part), format="fltp", layout="mono")
            frame.sample_rate, frame.pts = rate, start
            made.mux(stream.encode(frame))
        made.mux(stream.encode(None))
    return file.getvalue()


def check_tone(pcm: np.ndarray, seconds: float, level: float) -> None:
    assert abs(pcm.size - seconds * 16_000) <= 2400 and pcm.dtype == np.float32
    middle = pcm[4000 : 4000 + 16_000]
    spectrum = np.abs(np.fft.rfft(middle))
    assert abs(int(np.argmax(spectrum)) * 16_000 / middle.size - TONE_HZ) < 5
    assert spectrum.max() * 2 / middle.size == pytest.approx(level, rel=0.1)


@settings(max_examples=60, deadline=None)
@given(
    form=st.sampled_from(FORMS),
    rate=st.sampled_from([8_000, 16_000, 24_000, 48_000]),
    gains=st.lists(st.sampled_from([1.0, 0.5, 0.0, -0.5, -1.0]), min_size=1, max_size=2).filter(any),
    named=st.sampled_from([".wav", ".mp3", ".raw", ".txt", ""]),
)
def test_a_tone_is_read_whatever_the_file_is_and_is_called(form, rate, gains, named, tmp_path_factory) -> None:
    data = stored(tone(2, rate, tuple(gains)), rate, *form)
    path = tmp_path_factory.getbasetemp() / f"naïve ☕{named}"
    path.write_bytes(data)
    left, right = gains[0], gains[-1]
    level = 0.4 * (max(abs(left + right), abs(left - right)) / 2 if len(gains) == 2 else abs(left))
    pcm = read_sound(data)
    check_tone(pcm, 2, level)
    assert np.array_equal(read_sound(path), pcm)


@pytest.mark.parametrize(
    ("container", "codec"),
    [("webm", "libopus"), ("mp4", "aac"), ("ipod", "aac"), ("matroska", "flac"), ("adts", "aac"), ("mpegts", "aac")],
)
def test_other_containers_are_read_by_av(container: str, codec: str) -> None:
    check_tone(read_sound(stored_by_av(container, codec)), 2, 0.4)


def test_without_av_one_sentence_says_what_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound_file, "find_spec", lambda name: None)
    with pytest.raises(SoundUnreadable, match=r"^file cannot be read as sound; .*voice-assistant\[files\]"):
        read_sound(stored_by_av("webm", "libopus"), "file")
    assert read_sound(stored(tone(1, 16_000), 16_000)).size == 16_000


def test_a_header_without_a_length_or_with_a_wrong_one(tmp_path: Path) -> None:
    sound = tone(2, 16_000)
    flac = bytearray(stored(sound, 16_000, "FLAC"))
    flac[21] &= 0xF0
    flac[22:42] = bytes(20)  # neither a count of samples nor a checksum, as a pipe leaves it
    assert np.array_equal(read_sound(bytes(flac)), read_sound(stored(sound, 16_000, "FLAC")))
    wav = stored(sound, 16_000)
    at = wav.index(b"data") + 4
    for told in (0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFF000):
        piped = wav[:4] + struct.pack("<I", told) + wav[8:at] + struct.pack("<I", told) + wav[at + 4 :]
        assert np.array_equal(read_sound(piped), read_sound(wav)), hex(told)
    path = tmp_path / "piped.flac"
    path.write_bytes(flac)
    check_sound(path)


def test_memory_follows_the_true_length_and_not_the_stored_form() -> None:
    seconds, rate = 40, 96_000
    data = stored(np.zeros((seconds * rate, 8), np.int16), rate, "FLAC")
    assert len(data) < 200_000 < seconds * rate * 8 * 4 == 122_880_000
    tracemalloc.start()
    pcm = read_sound(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pcm.nbytes == seconds * 16_000 * 4
    assert peak < 2.5 * pcm.nbytes + 30 * sound_file.BLOCK
    with pytest.raises(SoundUnreadable, match="longer than 0 minutes"):
        read_sound(data, longest_s=20)


@pytest.mark.parametrize("rate", [1, 900, 2_000_000_000])
def test_a_rate_that_no_recording_has(rate: int) -> None:
    with pytest.raises(SoundUnreadable, match=f"{rate} samples a second"):
        read_sound(stored(tone(0.2, 16_000), rate))


def test_playlists_open_no_other_file(tmp_path: Path) -> None:
    other = tmp_path / "other.wav"
    other.write_bytes(stored(tone(1, 16_000), 16_000))
    head = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:10\n#EXTINF:9,\n"
    for text in (
        f"ffconcat version 1.0\nfile '{other}'\n",
        *(f"{head}{place}\n#EXT-X-ENDLIST\n" for place in (other, f"file://{other}", "http://127.0.0.1:9/a.ts")),
    ):
        with pytest.raises(SoundUnreadable, match="cannot be read as sound"):
            read_sound(text.encode())


def test_damaged_files_are_refused_in_a_sentence_or_read() -> None:
    chosen = random.Random(49)
    whole = [stored(tone(1, 16_000), 16_000, *form) for form in FORMS] + [stored_by_av("webm", "libopus")]
    for round_ in range(150):
        data = bytearray(whole[round_ % len(whole)])
        if round_ % 3:
            data = data[: chosen.randrange(len(data))]
        for _ in range(chosen.randrange(4)):
            if data:
                data[chosen.randrange(min(len(data), 200))] = chosen.randrange(256)
        try:
            pcm = read_sound(bytes(data), "file", 3600)
        except AssistantError as error:
            assert str(error).startswith("file ")
        else:
            assert np.isfinite(pcm).all()


def test_what_is_missing_empty_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SoundUnreadable, match=r"there is no file .*gone"):
        read_sound(tmp_path / "gone")
    with pytest.raises(SoundUnreadable, match="it is a folder"):
        check_sound(tmp_path)
    (tmp_path / "empty.wav").touch()
    with pytest.raises(SoundUnreadable, match="cannot be read as sound"):
        check_sound(tmp_path / "empty.wav")
    (tmp_path / "none.wav").write_bytes(stored(tone(0, 16_000), 16_000))
    for read in (check_sound, read_sound):
        with pytest.raises(SoundUnreadable, match="contains no sound"):
            read(tmp_path / "none.wav")
    (tmp_path / "broken.wav").write_bytes(stored(np.full(1600, np.nan, np.float32), 16_000, "WAV", "FLOAT"))
    assert not read_sound(tmp_path / "broken.wav").any()
