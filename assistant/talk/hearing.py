"""The loop side of hearing: feeds the ear, reads the words, and reports observations to the session.

Only sound comes here, with the commits and clears that stand between it. The ear runs off the event loop, one slice of
sound at a time, and this one task waits for each: so the detector, which is not thread-safe, gets one call at a time,
in order. Words are written down beside it (`scribe`) and arrive when they are ready. Time is counted in samples at
16 kHz; only a front that sends nothing is timed by the clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from assistant.base.clock import SampleClock
from assistant.base.errors import ChannelClosed
from assistant.base.pcm import Resampler, silence
from assistant.base.sound import HEARING_RATE
from assistant.contracts import Partial
from assistant.events import AppendAudio, ClearAudio, CommitAudio, SemanticVad, ServerVad, TurnDetection
from assistant.talk.completeness import Completeness
from assistant.talk.context import TalkContext
from assistant.talk.ear import NOTHING_KNOWN, Ear, Noted, SoFar, TalkNow, padding_ms, part_of
from assistant.talk.inlet import Inlet
from assistant.talk.interruption import Manner, manner_of
from assistant.talk.leaning import Leaning
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
from assistant.talk.off_loop import SessionThreads
from assistant.talk.scribe import Scribe
from assistant.talk.turn_end import Sign, heard_words
from assistant.talk.turn_taking import joinable
from assistant.talk.waiting import Waiting
from assistant.talk.wake_sign import WakeSign
from assistant.text.unfinished import wants_more

T = TypeVar("T")

SLICE = HEARING_RATE // 10
"""Sound is digested 100 ms at a time, so that other work gets its turn in between. While a name is waited for and
nobody speaks, so much is collected first: handing each packet of 20 ms to a thread costs more than hearing it."""
LEAST_COMMIT_MS = 100.0
"""The protocol's minimum: clients know the error that a shorter commit gets."""
GLANCE_MS = 190.0
"""Speech over a reply is read from this length on, whatever the transcriber's own pace. 200 ms hold most of a short
word, and ears make out the first word of a sentence."""
STILL_MS = 1000.0
"""A front that sends nothing for this long in mid-turn has muted its microphone."""


@dataclass(slots=True)
class _TurnText:
    """A turn as far as it was read. `stable`: number of characters that will not change."""

    item_id: str
    text: str = ""
    stable: int = 0
    read_ms: float = -1.0
    """Milliseconds of speech that are known to be in `text`."""


class Hearing:
    """One session's ears. The detection settings are read anew for every slice, so an update takes effect at once."""

    def __init__(self, context: TalkContext, inlet: Inlet) -> None:
        self._context, self._inlet = context, inlet
        services = context.services
        self._threads = SessionThreads(services.offload)
        self._detector = services.asr.detector()
        self._scribe = Scribe(services.asr, self._threads, lambda: context.language)
        waiting = Waiting(self._scribe, services.wake_words)
        self._ear = Ear(self._detector, self._scribe, partial(services.ids, "item"), waiting)
        self._sign = WakeSign(context)
        self._so_far = SoFar()
        self._time = SampleClock(HEARING_RATE)
        self._resampler: Resampler | None = None
        self._collected = silence(0)
        self._text = _TurnText("")
        """The turn that began last."""
        self._words = NOTHING_KNOWN
        self._powers: tuple[float, ...] = ()
        self._set_aside: str | None = None
        self._leaning = Leaning(context)
        self._completeness = Completeness(context)

    @property
    def input_ms(self) -> int:
        """Milliseconds of sound digested since the session began."""
        return int(self._time.ms)

    def set_turn_aside(self, item_id: str) -> None:
        """Drop the turn under way: it was a cough or a nod. This takes effect with the next slice, as a thread may be
        working on the current one."""
        self._set_aside = item_id

    async def run(self) -> None:
        """Run until the sound ends. A model's failure costs the turn, not the session."""
        try:
            await self._scribe.open()
            async with asyncio.TaskGroup() as reading:
                await self._listen(reading)
        finally:
            # However the session ends, wait for the call under way: the next talk must not get a transcriber or a
            # detector that a thread is still using.
            await self._threads.finished()
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
                    await self._digest(reading)
                    await self._inlet.reached(number)
                    await self._commit(command)
                case ClearAudio():
                    await self._digest(reading)
                    await self._inlet.reached(number)
                    await self._clear()

    def _patience_s(self) -> float | None:
        """Seconds to wait for more sound. A front may stop sending in mid-turn (a muted microphone): then the clock
        measures the silence. Turns that are ended by hand have no limit: a pause of any length is the front's own
        affair."""
        if self._so_far.stretch is None or not self._so_far.stretch.announced:
            return None
        detection = self._detection
        silence_ms = detection.silence_duration_ms if isinstance(detection, ServerVad) else 0
        return max(STILL_MS, silence_ms) / 1000

    async def _append(self, command: AppendAudio, reading: asyncio.TaskGroup) -> None:
        if self._resampler is None or self._resampler.source_rate != command.rate:
            self._resampler = Resampler(command.rate, HEARING_RATE)
        self._collected = np.concatenate([self._collected, self._resampler.feed(command.pcm)])
        if self._collected.size >= SLICE or not (self._so_far.quiet and self._context.settings.wake):
            await self._digest(reading)

    async def _digest(self, reading: asyncio.TaskGroup) -> None:
        """Hear all sound that has come."""
        pcm, self._collected = self._collected, silence(0)
        arrived = self._context.now()
        if self._so_far.stretch is None:
            self._leaning.renew()
        for start in range(0, pcm.size, SLICE):
            part = pcm[start : start + SLICE]
            behind = pcm.size - start - part.size  # sound of this message that was spoken later
            played = self._context.playing.played_during(part.size, arrived - behind / HEARING_RATE)
            while part.size:
                digested = await self._threads(partial(self._ear.take_in, part, played, self._talk_now()))
                self._so_far, taken = digested.so_far, digested.taken
                self._time.advance(taken, self._context.now())
                await self._sign.show(digested)
                part, played = part[taken:], part_of(played, taken, part.size)
                # Report before looking at the next slice: a verdict over a reply may set the turn aside in between.
                for note in digested.notes:
                    await self._report(note, reading)

    def _talk_now(self) -> TalkNow:
        context = self._context
        turn, now, settings = context.turn, context.now(), context.settings
        aside, self._set_aside = self._set_aside, None
        powers, self._powers = self._powers, ()
        if aside is not None and self._writes(aside):
            self._words = NOTHING_KNOWN
        judges = manner_of(settings) in (Manner.JUDGE, Manner.DUCK)
        return TalkNow(
            self._detection, now, over_reply=judges and turn.audible(now), judged=turn.judging is not None,
            joinable=joinable(turn, settings), set_aside=aside, words=self._words, powers=powers,
            expected=self._leaning.words, wake=self._sign.wake_now(),
        )  # fmt: skip

    # -------------------------------------------------------------------------------------- observations

    async def _report(self, note: Noted, reading: asyncio.TaskGroup) -> None:
        if note.sign is Sign.ONSET:
            await self._tell_begin(note)
            return
        if note.sign is Sign.END:
            await self._tell_end(note, by_hand=False)
            await self._write_down(note)
            return
        if note.sign is Sign.RESUMED:
            self._words = NOTHING_KNOWN
        # Send what is known at once: a verdict over a reply must not wait for words. Those are read and judged beside
        # this task, while the silence is still being measured.
        await self._tell_progress(self._text, note.speech_ms, note.silence_ms)
        read = self._read_fall if note.sign is Sign.FALLEN else self._read_on
        reading.create_task((self._read_pause if note.sign is Sign.PAUSE else read)(self._text, note))

    async def _tell_begin(self, note: Noted) -> None:
        self._words = NOTHING_KNOWN
        self._text = _TurnText(note.stretch.item_id)
        start_ms = int(note.at * 1000 / HEARING_RATE) - padding_ms(self._detection)
        moment = self._time.moment_of(note.at)
        await self._tell(UserBegan(note.stretch.item_id, max(0, start_ms), moment, note.stretch.joins))

    async def _tell_progress(self, turn: _TurnText, speech_ms: float, silence_ms: float) -> None:
        so_far, read = self._so_far, turn.read_ms == speech_ms
        known = turn.text, speech_ms, silence_ms, turn.stable, read, so_far.sure, so_far.fall > 0
        await self._tell(UserProgress(turn.item_id, *known))

    async def _tell_end(self, note: Noted, by_hand: bool) -> None:
        """Report the end before its words are known: item and reply need not wait for the transcriber's last pass."""
        self._words = NOTHING_KNOWN
        end_ms, moment = int(note.at * 1000 / HEARING_RATE), self._time.moment_of(note.at)
        stretch = note.stretch
        await self._tell(UserEnded(stretch.item_id, end_ms, moment, by_hand, stretch.announced))

    async def _end_now(self) -> None:
        """No more sound comes: end the turn under way where its speech ended."""
        note = await self._end(self._ear.close_stretch)
        if note is not None:
            await self._tell_end(note, by_hand=False)
            await self._write_down(note)

    async def _commit(self, command: CommitAudio) -> None:
        had_ms = self._ear.uncommitted_ms
        if had_ms < LEAST_COMMIT_MS:
            await self._tell(NothingToCommit(command.cause, had_ms))
            self._inlet.came_through()
            return
        note = await self._end(partial(self._ear.commit, self._leaning.words))
        await self._tell_end(note, by_hand=True)
        self._inlet.came_through()  # the item is certain: commands that wait for it need not wait for its words
        await self._write_down(note)

    async def _end(self, end: Callable[[], T]) -> T:
        found = await self._threads(end) if self._ear.pushes_to_end else end()
        self._so_far = self._ear.so_far
        return found

    async def _clear(self) -> None:
        item_id = self._ear.clear_uncommitted()
        self._so_far, self._words = self._ear.so_far, NOTHING_KNOWN
        await self._tell(Cleared(item_id))
        self._inlet.came_through()

    # --------------------------------------------------------------------------------------------- words

    async def _read_on(self, turn: _TurnText, note: Noted) -> None:
        """Read the words so far, in the middle of the turn."""
        judged = self._context.turn.judging is not None
        if (note.speech_ms < GLANCE_MS or note.silence_ms > 0) if judged else note.fall > 0:
            return  # another pass now would delay the one that counts
        with suppress(Exception):  # whatever the transcriber raises: its last pass meets it too and reports it
            if (heard := await self._scribe.partial(now=judged)) is not None:
                await self._show(turn, heard)

    async def _read_fall(self, turn: _TurnText, note: Noted) -> None:
        """Read the words up to where the voice fell, for the turn's end and to begin a reply to them. They are read
        again at the pause, and shown then. This happens even if no reply can be begun: a pass leaves traces in what is
        written and shown later, and nobody may be able to see from these that there was a candidate (law L8)."""
        turn_taking = self._context.turn
        if not isinstance(self._detection, SemanticVad) or turn_taking.replying or turn_taking.judging is not None:
            return
        with suppress(Exception):  # as above
            if (heard := await self._scribe.fallen()) is not None:
                await self._judge(turn, self._scribe.shown(heard.text), note)

    async def _read_pause(self, turn: _TurnText, note: Noted) -> None:
        """Read the words up to a pause: the whole turn, if it is over."""
        try:
            heard = await self._scribe.paused()
        except Exception:  # the last pass meets it too and reports it; a verdict must not wait for it
            heard = Partial(turn.text)
        await self._show(turn, heard, note.speech_ms)
        await self._judge(turn, turn.text, note)

    async def _show(self, turn: _TurnText, heard: Partial, read_ms: float = -1.0) -> None:
        """Show that a pass has read the turn, as far as a pause behind `read_ms` of speech. A turn that is over has
        been reported, or its transcript will report it."""
        text, stable = self._scribe.shown(heard.text), self._scribe.shown(heard.stable)
        if self._so_far.detects and self._writes(turn.item_id) and (text != turn.text or read_ms >= 0):
            turn.text, turn.stable = text, len(stable) if text.startswith(stable) else 0
            turn.read_ms = read_ms
            await self._tell_progress(turn, self._so_far.speech_ms, self._so_far.silence_ms)

    async def _judge(self, turn: _TurnText, text: str, note: Noted) -> None:
        """Judge how complete the words sound. The answer counts only if the voice has not risen again: if the user went
        on while the models worked, these words are not the last ones."""
        semantic = isinstance(self._detection, SemanticVad)
        known = self._context.known_words
        asked = semantic and text and not wants_more(text, known)
        words = heard_words(text, await self._completeness.judge_words(turn.item_id, text) if asked else None, known)
        if self._so_far.detects and self._writes(turn.item_id) and self._so_far.fall == note.fall:
            if semantic:
                self._words = words
            await self._tell(
                UserMayBeDone(turn.item_id, text, words.complete, words.held, paused=note.sign is Sign.PAUSE)
            )

    async def _write_down(self, note: Noted) -> None:
        item_id, seconds = note.stretch.item_id, note.stretch.samples / HEARING_RATE
        try:
            heard = await self._scribe.final()
        except Exception as error:  # whatever a transcriber raises; the person is told and may say it again
            await self._tell(UserWords(item_id, "", None, seconds, failed=str(error)))
            return
        text = self._scribe.shown(heard.text) if heard.speech else ""
        if text:
            self._powers = (*self._powers, note.power)
        await self._tell(UserWords(item_id, text, heard.confidence, seconds))

    def _writes(self, item_id: str) -> bool:
        """Whether this is the turn under way."""
        return self._so_far.stretch is not None and self._so_far.stretch.item_id == item_id

    @property
    def _detection(self) -> TurnDetection:
        return self._context.settings.turn_detection

    async def _tell(self, noticed: Noticed) -> None:
        await self._context.inbox.send(noticed)
