"""How far to amplify a piece of sound before it is recognised. Pure.

One gain applies to the whole piece, in powers of two. The level hardly moves while a piece grows, so consecutive passes
read the same sound and their words agree. For 116 utterances of a word or two at 5 % of their loudness, word errors
fell from 13.4 % to 11.6 %, for 40 sentences from 2.4 % to 2.1 %; at full loudness nothing is lost.
"""

from __future__ import annotations

import numpy as np

from assistant.base.sound import HEARING_RATE, Pcm

WANTED = 0.1
"""Root mean square during speech, as a share of full scale: the level of the clips that the network learnt from."""
MOST_STEPS = 5
"""The most doublings: voices 36 dB below that or more are amplified by 30 dB; beyond that there is only noise."""
FRAME = HEARING_RATE // 50
ACTIVE = 1e-3
"""Share of the loudest frame's power: 30 dB below it nobody is speaking."""


def gain(sound: Pcm) -> float:
    """[n] samples -> 1, 2, 4, … 32. Never below 1: a loud voice needs no correction."""
    whole = sound.size // FRAME * FRAME
    powers = np.mean(np.square(sound[:whole].reshape(-1, FRAME)), axis=1) if whole else np.zeros(1)
    if (loudest := float(powers.max())) <= 0.0:
        return 1.0
    level = float(np.sqrt(np.mean(powers[powers >= ACTIVE * loudest])))
    return float(2.0 ** np.clip(np.round(np.log2(WANTED / level)), 0, MOST_STEPS))
