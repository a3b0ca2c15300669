"""What a talk learns of its speaker."""

import numpy as np

from assistant.asr.mfcc import CEPSTRA
from assistant.asr.speaker import KNOWN_FRAMES, MEAN, Speaker

NOTHING = np.zeros(CEPSTRA)


def test_nobody_is_known_at_first():
    speaker = Speaker()
    assert not speaker.known
    assert np.allclose(speaker.mean(NOTHING, 0), MEAN)


def test_a_long_utterance_speaks_for_itself():
    frames = 100_000
    assert np.abs(Speaker().mean(np.full(CEPSTRA, 3.0) * frames, frames) - 3.0).max() < 0.02


def test_what_was_learnt_counts_but_never_more_than_its_limit():
    speaker = Speaker()
    speaker.learn(np.full(CEPSTRA, 7.0) * 5_000, 5_000)
    known = speaker.mean(NOTHING, 0)
    assert speaker.known
    assert np.abs(known - 7.0).max() < 0.5
    half = speaker.mean(np.full(CEPSTRA, 1.0) * KNOWN_FRAMES, int(KNOWN_FRAMES))
    assert np.allclose(half, (known + 1.0) / 2)
