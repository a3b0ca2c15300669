"""Cepstra: pocketsphinx's own arithmetic, whatever the pushes, and noise that is known from before."""

import numpy as np
import pytest
from pocketsphinx import Config, Decoder

from assistant.hearing.cepstra import CEPSTRA, FRAME, SHIFT, Cepstra
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
    ours = Cepstra().push(sound).mean(axis=0)
    assert np.abs(ours - theirs).max() < 0.1  # theirs has one frame more, of the sound's last samples


@pytest.mark.parametrize("chunk", [1, 159, 333, 1600])
def test_the_pushes_do_not_matter(chunk):
    sound = hiss(4_000)
    cepstra = Cepstra()
    whole = cepstra.push(sound)
    cepstra.forget()
    parts = [cepstra.push(sound[at : at + chunk]) for at in range(0, len(sound), chunk)]
    assert whole.shape == (1 + (len(sound) - FRAME) // SHIFT, CEPSTRA)
    assert np.array_equal(np.concatenate(parts), whole)


def test_the_noise_of_one_utterance_is_known_in_the_next():
    noise, cepstra = hiss(16_000), Cepstra()
    first = cepstra.push(noise)[:, 0]
    cepstra.reset()
    second = cepstra.push(noise)[:, 0]
    assert second[:50].mean() < first[:50].mean() - 1
    cepstra.forget()
    assert np.array_equal(cepstra.push(noise)[:, 0], first)


def test_too_little_sound_is_no_frame():
    assert Cepstra().push(hiss(FRAME - 1)).shape == (0, CEPSTRA)
