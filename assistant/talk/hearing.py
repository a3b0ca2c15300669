"""User sound in, speech events and words out, in order with everything else the front asks.

All commands pass through here, so that a commit stands behind the sound that was sent before it; what is not about
sound is handed on untouched. The models run off the event loop, one slice of sound at a time. Time is counted in
samples at 16 kHz from the first one of the session.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from assistant.base.channel import Channel
from assistant.base.clock import Clock, SampleClock
from assistant.base.errors import ChannelClosed
from assistant.base.ids import Ids
from assistant.base.pcm import Resampler, samples_of
from assistant.base.sound import HEARING_RATE
from assistant.contracts import ASR, Transcriber
from assistant.events import AppendAudio, ClearAudio, Command, CommitAudio, Pcm, SemanticVad, ServerVad, TurnDetection
from assistant.talk.turn_end import LONGEST_END_MS, Sign, TurnDetector, WordsSoFar
from assistant.text.written import as_written

SLICE = HEARING_RATE // 10
"""Sound is digested 100 ms at a time, so that other work gets its turn in between."""
STEP = 512
"""What the detector is given at once: no more than a block, so that nothing behind a turn's end is swallowed."""
LEAST_COMMIT_MS = 100.0
PROGRESS_MS = 96.0
"""How often the words so far are asked for while the user speaks."""
KEPT_SAMPLES = 30 * HEARING_RATE
"""Uncommitted sound kept while nobody seems to speak, for a commit by hand."""


@dataclass(frozen=True, slots=True)
class UserBegan:
    """Speech began at `start_ms` of the input; `moment` is when that was, in the clock's seconds."""

    item_id: str
    start_ms: int
    moment: float


@dataclass(frozen=True, slots=True)
class UserProgress:
    """Still in the turn: its words so far, speech and current silence in milliseconds."""

    item_id: str
    text: str
    speech_ms: float
    silence_ms: float


@dataclass(frozen=True, slots=True)
class UserEnded:
    """The turn is certain. `moment`: the last speech sample. `by_hand`: the front committed it."""

    item_id: str
    end_ms: int
    moment: float
    by_hand: bool
    was_announced: bool


@dataclass(frozen=True, slots=True)
class UserWords:
    """What the turn said. `failed` holds the reason when the transcriber broke."""

    item_id: str
    text: str
    confidence: float | None
    seconds: float
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class NothingToCommit:
    cause: str | None
    had_ms: float


@dataclass(frozen=True, slots=True)
class Cleared:
    """The uncommitted sound is gone; `item_id` names the turn that was under way, if any."""

    item_id: str | None


Noticed: TypeAlias = Command | UserBegan | UserProgress | UserEnded | UserWords | NothingToCommit | Cleared
Offload: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function off the event loop and gives its result."""


@dataclass(slots=True)
class _Turn:
    """A stretch of sound being written down."""

    item_id: str
    announced: bool
    start: int
    samples: int = 0
    text: str = ""
    asked_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class _Noted:
    """A sign about a turn, at a sample of the input. Without a sign: time for a progress report."""

    sign: Sign | None
    turn: _Turn
    end: int
    speech_ms: float
    silence_ms: float


class Hearing:
    """One session's ears. `detection` is read anew for every slice, so an update holds at once."""

    def __init__(
        self,
        asr: ASR,
        clock: Clock,
        commands: Channel[Command],
        noticed: Channel[Any],
        detection: Callable[[], TurnDetection],
        complete: Callable[[str], Awaitable[float | None]],
        ids: Ids,
        offload: Offload,
    ) -> None:
        self._asr, self._clock, self._ids, self._offload = asr, clock, ids, offload
        self._commands, self._noticed = commands, noticed
        self._detection = detection
        self._complete = complete
        self._detector = asr.detector()
        self._scribe: Transcriber | None = None
        self._turns: TurnDetector | None = None
        self._time = SampleClock(HEARING_RATE)
        self._resampler: Resampler | None = None
        self._rest: Pcm = np.zeros(0, np.float32)
        self._recent: deque[Pcm] = deque()
        self._recent_samples = 0
        self._uncommitted = 0
        self._turn: _Turn | None = None
        self._words = WordsSoFar()
        self._origin = 0
        self._drop: str | None = None

    @property
    def input_ms(self) -> int:
        """How much sound was digested since the session began."""
        return int(self._time.ms)

    @property
    def speaking(self) -> bool:
        return self._turn is not None and self._turn.announced

    def drop(self, item_id: str) -> None:
        """Forget the turn under way: it was a cough or a nod. Holds from the next slice on."""
        self._drop = item_id

    async def run(self) -> None:
        """Until the commands end. A model's failure costs the turn, not the session."""
        self._scribe = await self._offload(self._asr.transcriber)
        async with asyncio.TaskGroup() as asking:
            while True:
                try:
                    async with asyncio.timeout(self._patience_s()):
                        command = await self._commands.receive()
                except TimeoutError:
                    await self._end_now(by_hand=False)
                    continue
                except ChannelClosed:
                    return
                match command:
                    case AppendAudio():
                        await self._append(command, asking)
                    case CommitAudio():
                        await self._commit(command)
                    case ClearAudio():
                        await self._clear()
                    case _:
                        await self._noticed.send(command)

    def _patience_s(self) -> float | None:
        """A front may stop sending sound in mid-turn (a muted microphone): then silence is measured by the clock."""
        if not self.speaking:
            return None
        wait_ms = LONGEST_END_MS
        detection = self._detection()
        if isinstance(detection, ServerVad):
            wait_ms = max(wait_ms, float(detection.silence_duration_ms))
        return wait_ms / 1000

    async def _append(self, command: AppendAudio, asking: asyncio.TaskGroup) -> None:
        if self._resampler is None or self._resampler.source_rate != command.rate:
            self._resampler = Resampler(command.rate, HEARING_RATE)
        pcm = self._resampler.feed(command.pcm)
        for start in range(0, pcm.size, SLICE):
            part = pcm[start : start + SLICE]
            while part.size:
                notes, taken = await self._offload(partial(self._digest, part))
                self._time.advance(taken, self._clock.now())
                part = part[taken:]
                for note in notes:
                    await self._act(note, asking)

    # ----------------------------------------------------------------------- off the event loop

    def _digest(self, pcm: Pcm) -> tuple[list[_Noted], int]:
        """Run the models over a slice, up to the end of a turn if there is one in it.

        Returns what was noticed, in order, and how many samples were taken.
        """
        detection = self._detection()
        if self._turn is not None and self._turn.item_id == self._drop:
            self._forget_turn()
        self._drop = None
        if detection is None:
            self._turns = None
            if self._turn is None:
                self._begin(self._time.samples, announced=False)
            self._write(pcm)
            self._uncommitted += pcm.size
            return [], pcm.size
        turns = self._turns
        if turns is None:
            turns = self._turns = TurnDetector(detection, HEARING_RATE)
            self._detector.reset()
            self._rest = np.zeros(0, np.float32)
            self._origin = self._time.samples
        turns.set_detection(detection)
        turns.know(self._words)
        notes: list[_Noted] = []
        for start in range(0, pcm.size, STEP):
            part = pcm[start : start + STEP]
            self._uncommitted += part.size
            self._rest = np.concatenate([self._rest, part])
            for block in self._detector.push(part):
                sound, self._rest = self._rest[: block.samples], self._rest[block.samples :]
                if (sign := self._block(turns, detection, sound, block.probability)) is not None:
                    notes.append(sign)
            if notes and notes[-1].sign is Sign.END:
                return notes, start + part.size
        turn = self._turn
        if turn is not None and turns.speaking and turns.speech_ms - turn.asked_ms >= PROGRESS_MS:
            turn.asked_ms = turns.speech_ms
            notes.append(self._noted(None, turn, turns))
        return notes, pcm.size

    def _block(
        self, turns: TurnDetector, detection: ServerVad | SemanticVad, sound: Pcm, probability: float
    ) -> _Noted | None:
        sign = turns.step(probability, sound.size)
        self._keep(sound)
        if sign is Sign.ONSET:
            self._begin(self._origin + turns.start_sample, announced=True)
            self._write(self._padded(turns, detection))
        elif self._turn is not None:
            self._write(sound)
        if sign is None or self._turn is None:
            return None
        note = self._noted(sign, self._turn, turns)
        if sign is Sign.END:
            turns.reset()
            self._turn = None
        return note

    def _noted(self, sign: Sign | None, turn: _Turn, turns: TurnDetector) -> _Noted:
        return _Noted(sign, turn, self._origin + turns.end_sample, turns.speech_ms, turns.silence_ms)

    def _begin(self, start: int, announced: bool) -> None:
        assert self._scribe is not None
        self._scribe.reset()
        self._turn = _Turn(self._ids("item"), announced, start)
        self._words = WordsSoFar()

    def _write(self, pcm: Pcm) -> None:
        assert self._turn is not None and self._scribe is not None
        self._turn.text = self._scribe.push(pcm)
        self._turn.samples += pcm.size

    def _keep(self, block: Pcm) -> None:
        self._recent.append(block)
        self._recent_samples += block.size
        while self._recent_samples - self._recent[0].size >= KEPT_SAMPLES:
            self._recent_samples -= self._recent.popleft().size

    def _padded(self, turns: TurnDetector, detection: ServerVad | SemanticVad) -> Pcm:
        """The blocks of the onset and some sound from before it."""
        wanted = turns.position - turns.start_sample + samples_of(_padding_ms(detection), HEARING_RATE)
        return np.concatenate(list(self._recent))[-wanted:]

    def _forget_turn(self) -> None:
        self._turn = None
        self._words = WordsSoFar()
        if self._turns is not None:
            self._turns.reset()

    # ------------------------------------------------------------------------ on the event loop

    async def _act(self, note: _Noted, asking: asyncio.TaskGroup) -> None:
        turn = note.turn
        if note.sign is Sign.ONSET:
            start_ms = int(turn.start * 1000 / HEARING_RATE) - _padding_ms(self._detection())
            await self._noticed.send(UserBegan(turn.item_id, max(0, start_ms), self._time.moment_of(turn.start)))
        elif note.sign is Sign.END:
            await self._end(turn, note.end, by_hand=False)
        else:
            if note.sign is Sign.PAUSE:
                asking.create_task(self._ask_complete(turn, note.speech_ms))
            await self._noticed.send(UserProgress(turn.item_id, as_written(turn.text), note.speech_ms, note.silence_ms))

    async def _ask_complete(self, turn: _Turn, speech_ms: float) -> None:
        """How complete do the words sound? The answer counts only while the same silence goes on."""
        if not isinstance(self._detection(), SemanticVad):
            return
        said = await self._complete(as_written(turn.text)) if turn.text else None
        if self._turn is turn and self._turns is not None and self._turns.speech_ms == speech_ms:
            self._words = WordsSoFar(len(turn.text.split()), said)

    async def _end_now(self, by_hand: bool) -> None:
        """End the turn that is under way, wherever it is."""
        turn, turns = self._turn, self._turns
        if turn is None:
            return
        end = self._time.samples
        if turn.announced and turns is not None:
            end = self._origin + turns.end_sample
            turns.reset()
        self._turn = None
        await self._end(turn, end, by_hand)

    async def _end(self, turn: _Turn, end: int, by_hand: bool) -> None:
        self._uncommitted = 0
        self._words = WordsSoFar()
        end_ms, moment = int(end * 1000 / HEARING_RATE), self._time.moment_of(end)
        await self._noticed.send(UserEnded(turn.item_id, end_ms, moment, by_hand, turn.announced))
        seconds = turn.samples / HEARING_RATE
        try:
            assert self._scribe is not None
            heard = await self._offload(self._scribe.final)
        except Exception as error:
            await self._noticed.send(UserWords(turn.item_id, "", None, seconds, failed=str(error)))
            return
        text = as_written(heard.text) if heard.understood else ""
        await self._noticed.send(UserWords(turn.item_id, text, heard.confidence, seconds))

    async def _commit(self, command: CommitAudio) -> None:
        had_ms = self._uncommitted * 1000 / HEARING_RATE
        if had_ms < LEAST_COMMIT_MS:
            await self._noticed.send(NothingToCommit(command.cause, had_ms))
            return
        if self._turn is None:
            sound = np.concatenate([*self._recent, self._rest]) if self._recent else self._rest
            await self._offload(lambda: self._begin_with(sound[-self._uncommitted :]))
        await self._end_now(by_hand=True)

    def _begin_with(self, sound: Pcm) -> None:
        self._begin(self._time.samples - sound.size, announced=False)
        self._write(sound)

    async def _clear(self) -> None:
        item_id = self._turn.item_id if self._turn is not None else None
        self._forget_turn()
        self._uncommitted = 0
        self._recent.clear()
        self._recent_samples = 0
        await self._noticed.send(Cleared(item_id))


def _padding_ms(detection: TurnDetection) -> int:
    return detection.prefix_padding_ms if isinstance(detection, ServerVad) else 300
