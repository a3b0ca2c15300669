"""Cepstra: pocketsphinx's own arithmetic, whatever the pushes, and a wider axis for a wider spectrum."""

import numpy as np
import pytest
from pocketsphinx import Config, Decoder

from assistant.hearing.cepstra import CEPSTRA, FRAME, SHIFT, Cepstra, filter_bank
from assistant.hearing.transcribe import TINY


def hiss(samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(samples) * 1000


def test_the_mean_is_that_of_pocketsphinx(spoken):
    decoder = Decoder(Config(lm=str(TINY / "words.lm"), dict=str(TINY / "words.dict"), loglevel="FATAL"))
    sound = np.clip(spoken("what time is it") * 32767, -32768, 32767).round()
    sound = np.clip(sound + hiss(len(sound)).round() / 20, -32768, 32767).round()
    decoder.start_utt()  # a whole utterance at once: its mean is that of its frames
    decoder.process_raw(sound.astype("<i2").tobytes(), full_utt=True)
    theirs = np.array([float(value) for value in decoder.get_cmn(False).split(",")])
    decoder.end_utt()
    ours = Cepstra().push(sound)[:, 0].mean(axis=0)
    assert np.abs(ours - theirs).max() < 0.1  # theirs has one frame more, of the sound's last samples


@pytest.mark.parametrize("chunk", [1, 159, 333, 1600])
def test_the_pushes_do_not_matter(chunk):
    sound = hiss(4_000)
    cepstra = Cepstra((0.9, 1.1))
    whole = cepstra.push(sound)
    cepstra.reset()
    parts = [cepstra.push(sound[at : at + chunk]) for at in range(0, len(sound), chunk)]
    assert whole.shape == (1 + (len(sound) - FRAME) // SHIFT, 2, CEPSTRA)
    assert np.array_equal(np.concatenate(parts), whole)


def test_too_little_sound_is_no_frame():
    assert Cepstra().push(hiss(FRAME - 1)).shape == (0, 1, CEPSTRA)


def test_a_warp_moves_the_filters_up():
    middles = [filter_bank(warp).argmax(axis=0) for warp in (0.92, 1.0, 1.16)]
    assert (middles[0] <= middles[1]).all() and (middles[1] <= middles[2]).all()
    assert middles[0][12] < middles[1][12] < middles[2][12]


def test_every_filter_passes_something():
    for warp in (0.92, 1.0, 1.08, 1.16):
        assert (filter_bank(warp).sum(axis=0) > 0).all()
