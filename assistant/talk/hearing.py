"""User sound in, speech events and words out.

Only what is about sound comes here: sound, and the commits and clears that stand between it. The models run off the
event loop, one slice of sound at a time, and this one task waits for each: so the detector, which is not thread-safe,
sees one call at a time, in order. Words are written down beside it (`scribe`) and come when they come. Time is counted
in samples at 16 kHz from the first one of the session, because sound may come late, or faster than it was spoken; only
a front that sends nothing is timed by the clock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from assistant.base.clock import SampleClock
from assistant.base.errors import ChannelClosed, EngineFailed
from assistant.base.pcm import Resampler, samples_of
from assistant.base.sound import HEARING_RATE
from assistant.contracts import Partial, PlayedSound
from assistant.events import (
    AppendAudio,
    ClearAudio,
    CommitAudio,
    Message,
    Pcm,
    SemanticVad,
    ServerVad,
    TurnDetection,
)
from assistant.talk.context import TalkContext
from assistant.talk.conversation import item_text
from assistant.talk.expected import RECENT, expected
from assistant.talk.inlet import Inlet
from assistant.talk.interruption import Manner, manner_of
from assistant.talk.messages import (
    Cleared,
    NothingToCommit,
    Noticed,
    UserBegan,
    UserEnded,
    UserMayBeDone,
    UserProgress,
    UserWords,
)
from assistant.talk.scribe import Scribe
from assistant.talk.turn_end import Sign, TurnDetector, WordsSoFar, heard_words, probable_end
from assistant.talk.turn_taking import reopens
from assistant.text.unfinished import wants_more

T = TypeVar("T")

SLICE = HEARING_RATE // 10
"""Sound is digested 100 ms at a time, so that other work gets its turn in between."""
STEP = 512
"""What the detector is given at once: no more than a block, so that nothing behind a turn's end is swallowed."""
LEAST_COMMIT_MS = 100.0
"""What the protocol asks for: clients know the error that less of it gets."""
PROGRESS_MS = 96.0
"""How often the words so far are asked for while the user speaks: three blocks of the detector."""
JUDGED_MS = 32.0
"""The same while speech over a reply waits for its verdict: every block."""
GLANCE_MS = 190.0
"""Such speech is read from here on, whatever the transcriber's own pace. In 200 ms there is most of a short word, and
ears make out the first of a sentence."""
STILL_MS = 1000.0
"""A front that sends nothing for so long in mid-turn has muted its microphone."""
KEPT_SAMPLES = 30 * HEARING_RATE
"""Uncommitted sound kept while nobody seems to speak, for a commit by hand."""


@dataclass(slots=True)
class _Turn:
    """A stretch of sound being written down."""

    item_id: str
    announced: bool
    start: int
    samples: int = 0
    text: str = ""
    stable: int = 0
    """Characters of it that will not change."""
    asked_ms: float = 0.0
    read_ms: float = -1.0
    """Speech that is known to be in `text`."""
    judged: str = ""
    complete: float | None = None
    """How complete the words `judged` sound."""
    power: float = 0.0
    """Of its speech, once it is over."""


@dataclass(frozen=True, slots=True)
class _Noted:
    """A sign about a turn, at a sample of the input. Without a sign: time for a progress report."""

    sign: Sign | None
    turn: _Turn
    end: int
    speech_ms: float
    silence_ms: float
    fall: int


class Hearing:
    """One session's ears. How turns end is read anew for every slice, so an update of the settings holds at once."""

    def __init__(self, context: TalkContext, inlet: Inlet) -> None:
        self._context, self._inlet = context, inlet
        self._detector = context.services.asr.detector()
        self._scribe = Scribe(context.services.asr, self._off_loop)
        self._working = 0
        """Threads that work for this session."""
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        self._turns: TurnDetector | None = None
        self._time = SampleClock(HEARING_RATE)
        self._resampler: Resampler | None = None
        self._rest: Pcm = np.zeros(0, np.float32)
        self._recent: deque[Pcm] = deque()
        self._recent_samples = 0
        self._uncommitted = 0
        self._turn: _Turn | None = None
        self._before: _Turn | None = None
        """The turn that ended last."""
        self._joining: _Turn | None = None
        self._words = WordsSoFar()
        self._origin = 0
        self._drop: str | None = None
        self._quick = False
        self._leaning: tuple[int, bool] | None = None
        self._asking = asyncio.Lock()

    @property
    def input_ms(self) -> int:
        """How much sound was digested since the session began."""
        return int(self._time.ms)

    def drop(self, item_id: str) -> None:
        """Forget the turn under way: it was a cough or a nod. Holds from the next slice on: a thread may be at work on
        this one."""
        self._drop = item_id

    async def run(self) -> None:
        """Until the sound ends. A model's failure costs the turn, not the session."""
        try:
            await self._scribe.open()
            async with asyncio.TaskGroup() as reading:
                await self._listen(reading)
        finally:
            # However the session ends, for the call under way: the next talk must not get a transcriber or a detector
            # that a thread still works with.
            await self._at_rest.wait()
            self._scribe.close()
            self._context.services.asr.release_detector(self._detector)

    async def _listen(self, reading: asyncio.TaskGroup) -> None:
        while True:
            try:
                async with asyncio.timeout(self._patience_s()):
                    number, command = await self._inlet.sound.receive()
            except TimeoutError:
                await self._end_now()
                continue
            except ChannelClosed:
                return
            match command:
                case AppendAudio():
                    await self._append(command, reading)
                case CommitAudio():
                    await self._inlet.reached(number)
                    await self._commit(command)
                case ClearAudio():
                    await self._inlet.reached(number)
                    await self._clear()

    def _patience_s(self) -> float | None:
        """A front may stop sending sound in mid-turn (a muted microphone): then silence is measured by the clock. Not
        so where turns are ended by hand: there a pause of any length is the front's own affair."""
        if self._turn is None or not self._turn.announced:
            return None
        wait_ms = STILL_MS
        detection = self._detection
        if isinstance(detection, ServerVad):
            wait_ms = max(wait_ms, float(detection.silence_duration_ms))
        return wait_ms / 1000

    async def _append(self, command: AppendAudio, reading: asyncio.TaskGroup) -> None:
        if self._resampler is None or self._resampler.source_rate != command.rate:
            self._resampler = Resampler(command.rate, HEARING_RATE)
        pcm = self._resampler.feed(command.pcm)
        arrived = self._context.now()
        if self._turn is None:
            self._lean()
        for start in range(0, pcm.size, SLICE):
            part = pcm[start : start + SLICE]
            behind = pcm.size - start - part.size  # of this message: spoken that much before its last sample
            played = self._context.playing.take(part.size, arrived - behind / HEARING_RATE)
            while part.size:
                judges = manner_of(self._context.settings) in (Manner.JUDGE, Manner.DUCK)
                self._quick = judges and self._context.turn.audible(self._context.now())
                notes, taken = await self._off_loop(partial(self._digest, part, played))
                self._time.advance(taken, self._context.now())
                part, played = part[taken:], _part(played, taken, part.size)
                # Told before the next slice is looked at: a verdict over a reply may drop the turn in between.
                for note in notes:
                    await self._act(note, reading)

    def _lean(self) -> None:
        """Before an utterance: which words this talk makes likelier. It changes with an item, or when a reply ends."""
        context = self._context
        key = len(context.conversation), context.turn.replying
        if key == self._leaning:
            return
        self._leaning = key
        messages = [item for item in context.conversation.items if isinstance(item, Message)][-RECENT:]
        reply = next((item_text(one) for one in reversed(messages) if one.role == "assistant"), "")
        declared = (tool.name for tool in context.settings.tools)
        self._scribe.expected = expected(context.view.kept.words, list(map(item_text, messages)), reply, declared)

    async def _off_loop(self, function: Callable[[], T]) -> T:
        """Shielded, because to cancel the wait would not stop the thread; it is at rest when its work is done."""
        self._working += 1
        self._at_rest.clear()
        work = asyncio.ensure_future(self._context.services.offload(function))
        work.add_done_callback(self._done)
        return await asyncio.shield(work)

    def _done(self, work: asyncio.Future[T]) -> None:
        self._working -= 1
        if not self._working:
            self._at_rest.set()
        if not work.cancelled():
            work.exception()  # told to whoever waits; nobody may wait any more

    # ----------------------------------------------------------------------- off the event loop

    def _digest(self, pcm: Pcm, played: PlayedSound | None) -> tuple[list[_Noted], int]:
        """Run the models over a slice, up to the end of a turn if there is one in it.

        Returns what was noticed, in order, and how many samples were taken.
        """
        detection = self._detection  # read once: an update on the event loop must not come into the middle of a slice
        if self._turn is not None and self._turn.item_id == self._drop:
            self._forget_turn()
        self._drop = None
        self._join()
        if detection is None:
            if self._turns is not None:  # switched off in a pause, perhaps: what comes now is no silence to anybody
                self._turns = None
                self._scribe.go_on()
            if self._turn is None:
                self._begin(self._time.samples, announced=False)
            self._write(pcm)
            self._uncommitted += pcm.size
            return [], pcm.size
        turns = self._follow(detection)
        notes: list[_Noted] = []
        for start in range(0, pcm.size, STEP):
            part = pcm[start : start + STEP]
            self._uncommitted += part.size
            self._rest = np.concatenate([self._rest, part])
            for block in self._detector.push(part, _part(played, start, part.size), turns.quick or turns.over_reply):
                self._rest = self._rest[block.samples :]
                if (sign := self._block(turns, detection, block.sound, block.probability)) is not None:
                    notes.append(sign)
            if notes and notes[-1].sign is Sign.END:
                # What is behind the end belongs to the next turn, and the transcriber must be through with this one
                # before it gets a sample of that: the rest of the slice comes back here after `final`.
                return notes, start + part.size
        turn = self._turn
        judged = self._context.turn.judging is not None
        so_far_ms = turns.speech_ms + (turns.silence_ms if judged else 0.0)
        if turn is not None and turns.speaking and so_far_ms - turn.asked_ms >= (JUDGED_MS if judged else PROGRESS_MS):
            turn.asked_ms = so_far_ms
            notes.append(self._noted(None, turn, turns))
        return notes, pcm.size

    def _follow(self, detection: ServerVad | SemanticVad) -> TurnDetector:
        """The turn detector, begun anew where detection was off until now; it counts from there."""
        if self._turns is None:
            self._turns = TurnDetector(detection, HEARING_RATE)
            self._detector.reset()
            self._rest = np.zeros(0, np.float32)
            self._origin = self._time.samples
        self._turns.set_detection(detection)
        self._turns.know(self._words)
        self._turns.quick = self._quick
        return self._turns

    def _block(
        self, turns: TurnDetector, detection: ServerVad | SemanticVad, sound: Pcm, probability: float
    ) -> _Noted | None:
        sign = turns.step(probability, sound.size, float(np.mean(np.square(sound))))
        self._keep(sound)
        # Sound is written down from the onset only, and with what was before it: an onset takes two blocks to be
        # believed, a word often begins below the threshold, and the transcriber learns the noise from what precedes.
        if sign is Sign.ONSET:
            self._begin(self._origin + turns.start_sample, announced=True)
            self._write(self._padded(turns, detection))
        elif self._turn is not None:
            if sign is Sign.RESUMED:
                self._scribe.go_on()
                self._words = WordsSoFar()
            self._write(sound)
            # Where no reply can be begun, too: what is written of a soft end is not to tell of candidates.
            judged = self._context.turn.judging is not None  # then every sound counts at once
            if sign is Sign.PAUSE or (sign is Sign.FALLEN and not judged):
                self._scribe.hold()
        if sign is None or self._turn is None:
            return None
        note = self._noted(sign, self._turn, turns)
        if sign is Sign.END:  # closed here, in the thread: the next block of this very slice may begin another
            self._turn.power = turns.power
            turns.reset()
            self._before, self._turn = self._turn, None
        return note

    def _noted(self, sign: Sign | None, turn: _Turn, turns: TurnDetector) -> _Noted:
        return _Noted(sign, turn, self._origin + turns.end_sample, turns.speech_ms, turns.silence_ms, turns.fall)

    def _begin(self, start: int, announced: bool) -> None:
        self._scribe.begin()  # a turn that was dropped or cleared has left its words there
        self._turn = _Turn(self._context.services.ids("item"), announced, start)
        self._words = WordsSoFar()

    def _join(self) -> None:
        """The turn under way goes on with the one before: write both down as one, from the first sound."""
        first, turn, self._joining = self._joining, self._turn, None
        if first is None or turn is None:
            return
        begin = first.start - samples_of(_padding_ms(self._detection), HEARING_RATE)
        sound = np.concatenate([*self._recent])[-(self._time.samples - self._rest.size - begin) :]
        self._scribe.begin()
        turn.start, turn.samples = first.start, 0
        self._write(sound)

    def _write(self, pcm: Pcm) -> None:
        assert self._turn is not None
        self._scribe.push(pcm)
        self._turn.samples += pcm.size

    def _keep(self, block: Pcm) -> None:
        # Also while nobody seems to speak: a front may commit by hand what the detector took for noise.
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

    async def _act(self, note: _Noted, reading: asyncio.TaskGroup) -> None:
        turn = note.turn
        if note.sign is Sign.ONSET:
            await self._tell_begin(turn)
        elif note.sign is Sign.END:
            await self._tell_end(turn, note.end, by_hand=False)
            await self._write_down(turn)
        else:
            # What is known by now goes out at once: a verdict over a reply is not to wait for words. Those are read
            # beside this task, and judged: the silence goes on being measured meanwhile.
            await self._tell_progress(turn, note.speech_ms, note.silence_ms)
            read = self._read_fall if note.sign is Sign.FALLEN else self._read_on
            reading.create_task((self._read_pause if note.sign is Sign.PAUSE else read)(turn, note))

    async def _tell_begin(self, turn: _Turn) -> None:
        moment = self._time.moment_of(turn.start)
        joins = reopens(self._context.turn, self._context.settings, moment)
        if joins is not None and self._before is not None and self._before.item_id == joins:
            self._joining = self._before
        else:
            joins = None
        start_ms = int(turn.start * 1000 / HEARING_RATE) - _padding_ms(self._detection)
        await self._tell(UserBegan(turn.item_id, max(0, start_ms), moment, joins))

    async def _read_on(self, turn: _Turn, note: _Noted) -> None:
        """The words so far, in the middle of the turn."""
        judged = self._context.turn.judging is not None
        if (note.speech_ms < GLANCE_MS or note.silence_ms > 0) if judged else note.fall > 0:
            return  # a pass that is under way would be in the way of the one that counts
        with suppress(Exception):  # whatever the transcriber raises: its last pass meets it too and tells
            if (heard := await self._scribe.partial(now=judged)) is not None:
                await self._heard(turn, heard)

    async def _read_fall(self, turn: _Turn, note: _Noted) -> None:
        """The words up to where the voice fell, for the turn's end and to begin a reply to them. They are read again at
        the pause, and shown then. Read also where no reply can be begun: a pass leaves its traces in what is written
        and shown later, and by these nobody is to see that there was a candidate (law L8)."""
        turn_taking = self._context.turn
        if not isinstance(self._detection, SemanticVad) or turn_taking.replying or turn_taking.judging is not None:
            return
        with suppress(Exception):  # as above
            if (heard := await self._scribe.fallen()) is not None:
                await self._judge(turn, self._scribe.shown(heard.text), note)

    async def _read_pause(self, turn: _Turn, note: _Noted) -> None:
        """The words up to a pause, all that the turn has said if it is over."""
        try:
            heard = await self._scribe.paused()
        except Exception:  # the last pass meets it too and tells; a verdict is not to wait for it
            heard = Partial(turn.text)
        await self._heard(turn, heard, note.speech_ms)
        await self._judge(turn, turn.text, note)

    async def _judge(self, turn: _Turn, text: str, note: _Noted) -> None:
        """How complete the words sound. The answer counts only while the voice has not risen again: the user may have
        gone on while the models were at it, and then it is about words that are not the last."""
        semantic = isinstance(self._detection, SemanticVad)
        known = self._context.known_words
        asked = semantic and text and not wants_more(text, known)
        words = heard_words(text, await self._complete(turn, text) if asked else None, known)
        if self._turn is turn and self._turns is not None and self._turns.fall == note.fall:
            if semantic:
                self._words = words
            judged = words.complete is not None or note.sign is Sign.PAUSE  # what is not known yet may be by then
            if judged and probable_end(words):
                await self._tell(UserMayBeDone(turn.item_id, text))

    async def _heard(self, turn: _Turn, heard: Partial, read_ms: float = -1.0) -> None:
        """A pass has read the turn, as far as a pause behind `read_ms` of speech; one that is over has been told, or
        will be by its transcript."""
        text, stable = self._scribe.shown(heard.text), self._scribe.shown(heard.stable)
        if self._turn is turn and self._turns is not None and (text != turn.text or read_ms >= 0):
            turn.text, turn.stable = text, len(stable) if text.startswith(stable) else 0
            turn.read_ms = read_ms
            await self._tell_progress(turn, self._turns.speech_ms, self._turns.silence_ms)

    async def _tell_progress(self, turn: _Turn, speech_ms: float, silence_ms: float) -> None:
        read = turn.read_ms == speech_ms
        sure, fell = (1.0, False) if self._turns is None else (self._turns.sure, self._turns.fall > 0)
        await self._tell(
            UserProgress(turn.item_id, turn.text, speech_ms, silence_ms, turn.stable, read, sure, fell)
        )

    async def _complete(self, turn: _Turn, text: str) -> float | None:
        """How complete these words sound as the next turn. Not asked while a reply is being made: the model is its, and
        to fold these words would roll back what it is at."""
        async with self._asking:
            if self._context.turn.replying:
                return None
            if turn.judged != text or turn.complete is None:  # once: the model may be at a reply to them since
                asked = self._context.view.said(self._context.settings, text)
                turn.judged, turn.complete = text, None
                with suppress(EngineFailed):
                    llm = self._context.services.llm
                    turn.complete = await llm.turn_end_probability(self._context.talk, asked)
            return turn.complete

    async def _end_now(self) -> None:
        """No sound comes any more: end the turn that is under way where its speech ended."""
        if self._turn is not None:
            turn, end = await self._close_turn(self._turn)
            await self._tell_end(turn, end, by_hand=False)
            await self._write_down(turn)

    async def _close_turn(self, turn: _Turn) -> tuple[_Turn, int]:
        """Nothing more is written of it. Returns it and its last sample."""
        end = self._time.samples
        if turn.announced and self._turns is not None:
            if not self._turns.silence_ms:  # what is held since the voice fell is its last words, softly said
                await self._off_loop(self._scribe.go_on)
            end = self._origin + self._turns.end_sample
            self._turns.reset()
        self._turn = None
        return turn, end

    async def _tell_end(self, turn: _Turn, end: int, by_hand: bool) -> None:
        """Before its words are known: the item and the reply need not wait for the last pass of the transcriber."""
        self._uncommitted = 0
        self._words = WordsSoFar()
        end_ms, moment = int(end * 1000 / HEARING_RATE), self._time.moment_of(end)
        await self._tell(UserEnded(turn.item_id, end_ms, moment, by_hand, turn.announced))

    async def _write_down(self, turn: _Turn) -> None:
        seconds = turn.samples / HEARING_RATE
        try:
            heard = await self._scribe.final()
        except Exception as error:  # whatever a transcriber raises; the person is told and may say it again
            await self._tell(UserWords(turn.item_id, "", None, seconds, failed=str(error)))
            return
        text = self._scribe.shown(heard.text) if heard.speech else ""
        if text and self._turns is not None:
            self._turns.was_user(turn.power)
        await self._tell(UserWords(turn.item_id, text, heard.confidence, seconds))

    async def _commit(self, command: CommitAudio) -> None:
        had_ms = self._uncommitted * 1000 / HEARING_RATE
        if had_ms < LEAST_COMMIT_MS:
            await self._tell(NothingToCommit(command.cause, had_ms))
            self._inlet.came_through()
            return
        if self._turn is None:  # nothing was taken for speech; the front knows better
            sound = np.concatenate([*self._recent, self._rest]) if self._recent else self._rest
            await self._off_loop(lambda: self._begin_with(sound[-self._uncommitted :]))
        assert self._turn is not None
        turn, end = await self._close_turn(self._turn)
        await self._tell_end(turn, end, by_hand=True)
        self._inlet.came_through()  # the item is certain: who waits behind it need not wait for its words
        await self._write_down(turn)

    def _begin_with(self, sound: Pcm) -> None:
        self._begin(self._time.samples - sound.size, announced=False)
        self._write(sound)

    async def _clear(self) -> None:
        item_id = self._turn.item_id if self._turn is not None else None
        self._forget_turn()
        self._uncommitted = 0
        self._recent.clear()
        self._recent_samples = 0
        await self._tell(Cleared(item_id))
        self._inlet.came_through()

    @property
    def _detection(self) -> TurnDetection:
        return self._context.settings.turn_detection

    async def _tell(self, noticed: Noticed) -> None:
        await self._context.inbox.send(noticed)


def _padding_ms(detection: TurnDetection) -> int:
    return detection.prefix_padding_ms if isinstance(detection, ServerVad) else 300


def _part(played: PlayedSound | None, start: int, samples: int) -> PlayedSound | None:
    if played is None:
        return None
    return PlayedSound(played.sound[start : start + samples], played.anew and start == 0)
