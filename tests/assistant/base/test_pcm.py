"""Sound as numbers: formats there and back, a stream resampled like the whole, and files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.base.pcm import (
    Resampler,
    from_alaw,
    from_pcm16,
    from_ulaw,
    resample,
    to_alaw,
    to_pcm16,
    to_ulaw,
    wav_bytes,
)
from assistant.base.sound_file import read_sound


@given(st.binary(max_size=400).filter(lambda data: len(data) % 2 == 0))
def test_pcm16_comes_back(data):
    assert np.array_equal(from_pcm16(to_pcm16(from_pcm16(data))), from_pcm16(to_pcm16(from_pcm16(data))))
    assert np.abs(from_pcm16(to_pcm16(from_pcm16(data))) - from_pcm16(data)).max(initial=0) <= 1 / 32767


def test_sound_that_is_no_number_is_silence():
    data = to_pcm16(np.array([np.nan, np.inf, -np.inf, 2.0, -2.0], np.float32))
    assert np.frombuffer(data, "<i2").tolist() == [0, 32767, -32767, 32767, -32767]


@pytest.mark.parametrize(("there", "back"), [(to_ulaw, from_ulaw), (to_alaw, from_alaw)])
def test_companded_sound_keeps_its_shape(there, back):
    codes = bytes(range(256))
    assert np.allclose(back(there(back(codes))), back(codes), atol=1e-4)  # every code means itself
    sine = (0.5 * np.sin(np.arange(4000) / 9)).astype(np.float32)
    assert np.std(back(there(sine)) - sine) < 0.04 * np.std(sine)


@pytest.mark.parametrize("rate", [8_000, 24_000, 44_100, 48_000])
def test_a_stream_is_resampled_like_the_whole(rate):
    sine = np.sin(np.arange(rate) * 440 * 2 * np.pi / rate).astype(np.float32)
    stream = Resampler(rate, 16_000)
    parts = [stream.feed(part) for part in np.array_split(sine, 37)] + [stream.feed(sine[:0], last=True)]
    whole = np.concatenate(parts)
    assert abs(whole.size - 16_000) <= 48  # 3 ms stay in the filter
    middle = resample(sine, rate, 16_000)[4000:8000]
    assert np.abs(whole[4000:8000] - middle).max() < 0.02


def test_a_file_comes_back():
    falling = np.linspace(1.0, 0.0, 100, dtype=np.float32)
    assert np.abs(read_sound(wav_bytes(falling, 16_000)) - falling).max() < 1e-4
