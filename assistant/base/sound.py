"""What sound is inside: float32, mono, in [-1, 1], at one of two rates."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Pcm: TypeAlias = NDArray[np.float32]

REPLY_RATE = 24_000
"""Sample rate of all sound that leaves a session; a front that needs another resamples."""
HEARING_RATE = 16_000
"""What the detector and the transcriber take."""
