"""The sound that a front should be playing now, derived from the events it was sent. Pure: the clock is passed in.

A front that follows the protocol plays sound as it comes, one piece behind the other, and drops the rest when it is
informed that the user speaks. So its player is imitated here, a sample for every sample of the microphone: then the
echo returns at one delay for the whole reply, whatever the network and the devices add, and only that delay is
unknown. `told` may be called on another thread than `played_during`.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from assistant.base.pcm import Resampler
from assistant.base.sound import HEARING_RATE, REPLY_RATE, Pcm
from assistant.contracts import PlayedSound
from assistant.events import AudioDelta, Duck, Event, ResponseDone, Resume, Settings, SpeechStarted, StopPlayback

DUCKED = 0.25
"""The level to which a front lowers its sound (`local/player.py`, `ui/`); any other level must be learnt anew."""
LINGERS_S = 0.25
"""A front that is asked to stop goes on for about this long: the way there and its fade."""
AHEAD_S = 0.25
"""The lead that a microphone's sound may have over the clock. A file that arrives at once is not an echo."""
BEHIND_S = 0.5
"""A microphone that stood still for longer (muted) missed the sound that was played meanwhile."""


class FrontPlayer:
    """One front's player, imitated."""

    def __init__(self) -> None:
        self._told: deque[tuple[Event, float]] = deque()
        self._queue: deque[Pcm] = deque()
        self._resampler = Resampler(REPLY_RATE, HEARING_RATE)
        self._began = 0.0
        self._given = 0
        self._gain = 1.0

    def told(self, event: Event, settings: Settings, now: float) -> None:
        """Note that the front gets this event."""
        match event:
            case AudioDelta() if settings.paced:
                self._told.append((event, now))
            case ResponseDone(response=response) if response.status != "cancelled":
                pass
            case SpeechStarted() if settings.turn_detection is None or not settings.turn_detection.interrupt_response:
                pass
            case SpeechStarted() | StopPlayback() | ResponseDone() | Duck() | Resume():
                self._told.append((event, now))
            case _:
                pass

    def played_during(self, samples: int, now: float) -> PlayedSound | None:
        """The sound played while these `samples` of the microphone came, the last of them at `now`; None if none
        was."""
        if not self._told and not self._queue:
            return None
        begin = now - samples / HEARING_RATE
        anew, lead = False, 0
        while self._told:
            event, moment = self._told.popleft()
            if isinstance(event, AudioDelta):
                if not self._queue:
                    anew, self._began, self._given = True, max(moment, begin), 0
                    lead = min(samples, round((self._began - begin) * HEARING_RATE))
                self._queue.append(self._resampler.feed(event.pcm))
            elif isinstance(event, Duck | Resume):
                self._gain = DUCKED if isinstance(event, Duck) else 1.0
            else:
                self._stop()
        behind = round((begin - self._began) * HEARING_RATE) - self._given
        if self._queue and behind > BEHIND_S * HEARING_RATE:
            self._take_played(behind)
            anew = True
        ahead = round((now + AHEAD_S - self._began) * HEARING_RATE) - self._given
        sound = np.zeros(samples, np.float32)
        given = self._take_played(max(0, min(samples - lead, ahead)))
        sound[lead : lead + given.size] = given * np.float32(self._gain)
        return PlayedSound(sound, anew)

    def _stop(self) -> None:
        kept = self._from_queue(round(LINGERS_S * HEARING_RATE))
        self._queue.clear()
        if kept.size:
            self._queue.append(kept)
        self._gain = 1.0

    def _take_played(self, samples: int) -> Pcm:
        found = self._from_queue(samples)
        self._given += found.size
        return found

    def _from_queue(self, samples: int) -> Pcm:
        """Take samples from the front of the queue, fewer if there are no more."""
        parts, wanted = [np.zeros(0, np.float32)], samples
        while wanted and self._queue:
            piece = self._queue.popleft()
            parts.append(piece[:wanted])
            if piece.size > wanted:
                self._queue.appendleft(piece[wanted:])
            wanted -= parts[-1].size
        return np.concatenate(parts)
