"""A queue of sound that a loudspeaker's callback empties; it knows how much of each item was heard.

Pure, and safe between one thread that puts in and one that takes out: only the taking side moves sound, only the
putting side adds it. Heard is what was taken out less what the device still holds.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

import numpy as np

from assistant.events import Pcm

FADE_SAMPLES = 480
"""20 ms at 24 kHz: a cut that does not click."""
DUCKED = 0.25


@dataclass(slots=True)
class _Piece:
    item_id: str
    pcm: Pcm
    taken: int = 0


class Player:
    """`latency_samples`: sound that has left this queue and not yet the loudspeaker."""

    def __init__(self, latency_samples: int = 0) -> None:
        self.latency_samples = latency_samples
        self._queue: deque[_Piece] = deque()
        self._played: dict[str, int] = {}
        self._lock = threading.Lock()
        self._gain = self._wanted = 1.0

    def put(self, item_id: str, pcm: Pcm) -> None:
        """Play this after all that was put before."""
        with self._lock:
            self._queue.append(_Piece(item_id, pcm))

    def take(self, samples: int) -> Pcm:
        """The next sound for the device; silence where there is none. Level changes glide."""
        out = np.zeros(samples, np.float32)
        with self._lock:
            filled, wanted = 0, samples
            if self._wanted == 0.0:  # held: what fades out is the last that is taken until the level rises again
                wanted = min(samples, FADE_SAMPLES) if self._gain else 0
            while filled < wanted and self._queue:
                piece = self._queue[0]
                n = min(wanted - filled, piece.pcm.size - piece.taken)
                out[filled : filled + n] = piece.pcm[piece.taken : piece.taken + n]
                piece.taken += n
                self._played[piece.item_id] = self._played.get(piece.item_id, 0) + n
                filled += n
                if piece.taken == piece.pcm.size:
                    self._queue.popleft()
            out[:filled] *= self._levels(filled)
        return out

    def stop(self) -> str | None:
        """Fade out and drop the rest. Returns the item that was playing."""
        with self._lock:
            if not self._queue:
                return None
            item_id = self._queue[0].item_id
            head = self._queue[0].pcm[self._queue[0].taken :][:FADE_SAMPLES]
            self._queue.clear()
            if head.size:
                ramp = np.linspace(1.0, 0.0, head.size, dtype=np.float32)
                self._queue.append(_Piece("", (head * ramp * self._gain).astype(np.float32)))
                self._gain = self._wanted = 1.0
            return item_id

    def duck(self, level: float = DUCKED) -> None:
        """Go on at this level; at 0, fall silent and stay at the sample where that was."""
        self._wanted = level

    def unduck(self) -> None:
        self._wanted = 1.0

    def heard_samples(self, item_id: str) -> int:
        """How much of an item was heard by now."""
        with self._lock:
            played = self._played.get(item_id, 0)
            still_inside = self.latency_samples if self._queue and self._queue[0].item_id == item_id else 0
            return max(0, played - still_inside)

    @property
    def current(self) -> str | None:
        """The item that is being played."""
        with self._lock:
            return self._queue[0].item_id or None if self._queue else None

    def _levels(self, samples: int) -> Pcm | float:
        """The level of each sample on the way from the present one to the wanted one."""
        if self._gain == self._wanted:
            return self._gain
        start, self._gain = self._gain, self._wanted
        ramp = np.full(samples, self._wanted, np.float32)
        n = min(samples, FADE_SAMPLES)
        ramp[:n] = np.linspace(start, self._wanted, n, dtype=np.float32)
        return ramp
