"""Cepstra: pocketsphinx's own arithmetic, whatever the pushes, and noise that is known from before."""

import numpy as np
import pytest
from pocketsphinx import Config, Decoder

from assistant.asr.mfcc import FILTERS, FRAME, SHIFT, Cepstra, MelPower, power_of_white_noise
from assistant.asr.pocketsphinx import TINY


def cepstra_of(sound: np.ndarray, cepstra: Cepstra) -> np.ndarray:
    return np.array([cepstra.of(power) for power in MelPower().push(sound)])


def hiss(samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(samples) * 1000


@pytest.mark.slow
def test_the_mean_is_that_of_pocketsphinx(spoken):
    decoder = Decoder(Config(lm=str(TINY / "words.lm"), dict=str(TINY / "words.dict"), loglevel="FATAL"))
    sound = np.clip(spoken("what time is it") * 32767, -32768, 32767).round()
    sound = np.clip(sound + hiss(len(sound)).round() / 20, -32768, 32767).round()
    decoder.start_utt()  # a whole utterance at once: its mean is that of its frames
    decoder.process_raw(sound.astype("<i2").tobytes(), full_utt=True)
    theirs = np.array([float(value) for value in decoder.get_cmn(False).split(",")])
    decoder.end_utt()
    ours = cepstra_of(sound, Cepstra()).mean(axis=0)
    assert np.abs(ours - theirs).max() < 0.1  # theirs has one frame more, of the sound's last samples


@pytest.mark.parametrize("chunk", [1, 159, 333, 1600])
def test_the_pushes_do_not_matter(chunk):
    sound = hiss(4_000)
    mel = MelPower()
    whole = mel.push(sound)
    mel.reset()
    parts = [mel.push(sound[at : at + chunk]) for at in range(0, len(sound), chunk)]
    assert whole.shape == (1 + (len(sound) - FRAME) // SHIFT, FILTERS)
    assert np.array_equal(np.concatenate(parts), whole)


def test_the_noise_of_one_utterance_is_known_in_the_next():
    noise, cepstra = hiss(16_000), Cepstra()
    first, second = (cepstra_of(noise, cepstra)[:, 0] for _ in range(2))
    assert second[:50].mean() < first[:50].mean() - 1
    assert np.array_equal(cepstra_of(noise, Cepstra())[:, 0], first)


def test_too_little_sound_is_no_frame():
    assert MelPower().push(hiss(FRAME - 1)).shape == (0, FILTERS)


def test_the_power_of_white_noise_is_what_white_noise_has():
    measured = MelPower().push(hiss(160_000)).mean(axis=0) / 1000**2
    assert np.abs(measured / power_of_white_noise() - 1).max() < 0.15
