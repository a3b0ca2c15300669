"""What a talk learns of its speaker: the mean, and how long the vocal tract is."""

import numpy as np
import samplerate

from assistant.hearing.cepstra import CEPSTRA, Cepstra
from assistant.hearing.speaker import KNOWN_FRAMES, MEAN, WARPS, Speaker, fits

SHAPE = (len(WARPS), CEPSTRA)


def test_nobody_is_known_at_first():
    speaker = Speaker()
    assert not speaker.known
    assert np.allclose(speaker.mean(np.zeros(SHAPE), 0), MEAN)


def test_a_long_utterance_speaks_for_itself():
    total = np.full(SHAPE, 3.0) * 100_000
    assert np.abs(Speaker().mean(total, 100_000) - 3.0).max() < 0.02


def test_what_was_learnt_counts_but_never_more_than_its_limit():
    speaker = Speaker()
    heard = np.random.default_rng(0).standard_normal((5_000, *SHAPE)) + 7.0
    speaker.learn(heard)
    assert speaker.known
    assert np.abs(speaker.mean(np.zeros(SHAPE), 0) - 7.0).max() < 0.5
    half = speaker.mean(np.full(SHAPE, 1.0) * KNOWN_FRAMES, int(KNOWN_FRAMES))
    assert np.abs(half - (speaker.mean(np.zeros(SHAPE), 0) + 1.0) / 2).max() < 1e-9


def test_a_short_vocal_tract_wants_a_wider_axis(spoken):
    def best(speed: float) -> float:
        """The warp that fits the voice played this much faster: all its formants are that much higher."""
        sound = samplerate.resample(
            spoken("set a timer for five minutes and tell me a story"), 1 / speed, "sinc_fastest"
        )
        heard = Cepstra(WARPS).push(sound * 32767 + np.random.default_rng(0).standard_normal(len(sound)) * 60)
        return WARPS[int(fits(heard).argmax())]

    assert best(0.85) < best(1.15)


def test_the_talk_decides_over_the_utterance():
    rng = np.random.default_rng(1)
    before, now = (rng.standard_normal((frames, *SHAPE)) * 5 for frames in (400, 20))
    speaker = Speaker()
    speaker.learn(before)
    assert speaker.warp() == fits(before).argmax()
    assert speaker.warp(now) == (fits(before) + fits(now)).argmax()
