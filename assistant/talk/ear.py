"""The ear: sound in, frozen observations out. It runs on a thread of its own, one slice of sound at a time.

It owns everything that follows the stream: the detector, the turn detector, and the queue of sound to be written down.
It never asks anybody: each slice comes with all that the ear must know of the talk (`TalkNow`). Samples are counted at
16 kHz from the session's first one, because sound may come late, or faster than it was spoken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from assistant.base.pcm import samples_of
from assistant.base.sound import HEARING_RATE
from assistant.contracts import PlayedSound, SpeechBlock, SpeechDetector
from assistant.events import Pcm, SemanticVad, ServerVad, TurnDetection
from assistant.talk.gate import GateIs, Seen, WakeGate, step
from assistant.talk.scribe import Scribe
from assistant.talk.turn_end import Sign, TurnDetector, WordsSoFar
from assistant.talk.turn_taking import Joinable
from assistant.talk.waiting import Call, Waiting

STEP = 512
"""The detector gets at most one block at a time, so that nothing behind a turn's end is swallowed."""
PROGRESS_MS = 96.0
"""Interval between requests for the words so far while the user speaks: three blocks of the detector."""
JUDGED_MS = 32.0
"""The same interval while speech over a reply waits for its verdict: every block."""
KEPT_SAMPLES = 30 * HEARING_RATE
"""Uncommitted sound stored while nobody seems to speak, for a commit by hand."""


NOTHING_KNOWN = WordsSoFar()


@dataclass(frozen=True, slots=True)
class WakeNow:
    """Facts for the ear about a talk that is called by name. `busy` and `asks`: see `gate.Seen`."""

    names: tuple[str, ...]
    busy: bool = False
    asks: bool = False


@dataclass(frozen=True, slots=True)
class TalkNow:
    """Everything that the ear must know of the talk, for one slice of sound.

    now          clock seconds at the slice's last sample
    over_reply   a reply sounds, and speech over it is judged: one block counts as a beginning
    judged       the speech under way waits for its verdict: every sound counts at once
    joinable     the turn that new speech may continue
    set_aside    a stretch that was a cough or a nod, to be dropped
    words        the words so far, as they are known
    powers       powers of turns that had words, since the last slice
    expected     words that the next utterance is likelier to have
    wake         None: everything that is said is meant for this talk
    """

    detection: TurnDetection
    now: float = 0.0
    over_reply: bool = False
    judged: bool = False
    joinable: Joinable | None = None
    set_aside: str | None = None
    words: WordsSoFar = NOTHING_KNOWN
    powers: tuple[float, ...] = ()
    expected: tuple[str, ...] = ()
    wake: WakeNow | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Sound that is being written down, as far as it has come. `announced`: its beginning was noticed. `joins`: the
    previous turn, whose sound is written down with it. `called`: the name that it begins with."""

    item_id: str
    announced: bool
    start: int
    samples: int = 0
    joins: str | None = None
    called: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """A sign about a stretch of sound; without a sign, a progress report is due. `at`: the sample where speech began,
    for an onset; otherwise its last sample so far. `power`: power of its speech, at its end."""

    sign: Sign | None
    stretch: Stretch
    at: int
    speech_ms: float = 0.0
    silence_ms: float = 0.0
    fall: int = 0
    power: float = 0.0


@dataclass(frozen=True, slots=True)
class SoFar:
    """The ear's position behind a slice. `detects`: the ear decides itself when a turn begins and ends. `gate`: None
    where nobody has to call. `quiet`: a name is waited for, and nobody speaks."""

    stretch: Stretch | None = None
    detects: bool = False
    speech_ms: float = 0.0
    silence_ms: float = 0.0
    sure: float = 1.0
    fall: int = 0
    gate: GateIs | None = None
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Digested:
    """The signs noticed in a slice, in order, and the number of samples used: none behind a turn's end. `called`: the
    name that was found in it."""

    notes: tuple[Noted, ...]
    taken: int
    so_far: SoFar
    called: str | None = None


class Ear:
    """One session's ear. It handles one call at a time, on any thread."""

    def __init__(
        self, detector: SpeechDetector, scribe: Scribe, new_id: Callable[[], str], waiting: Waiting
    ) -> None:
        self._detector, self._scribe, self._new_id, self._waiting = detector, scribe, new_id, waiting
        self._gate: WakeGate | None = None
        self._call: Call | None = None
        """The call whose request has not begun yet."""
        self._called: str | None = None
        """The name that was found in the slice under way."""
        self._turns: TurnDetector | None = None
        self._samples = self._origin = 0
        """Samples taken since the session began, and how many of them came before the turn detector's first one."""
        self._rest: Pcm = np.zeros(0, np.float32)
        self._recent: deque[Pcm] = deque()
        self._recent_samples = self._uncommitted = 0
        self._stretch: Stretch | None = None
        self._before: Stretch | None = None
        """The stretch that ended last."""
        self._asked_ms = 0.0

    @property
    def uncommitted_ms(self) -> float:
        return self._uncommitted * 1000 / HEARING_RATE

    @property
    def so_far(self) -> SoFar:
        turns = self._turns
        if turns is None:
            return SoFar(self._stretch)
        gate = None if self._gate is None else self._gate.state
        quiet = gate is GateIs.WAITING and not self._waiting.speaks
        return SoFar(self._stretch, True, turns.speech_ms, turns.silence_ms, turns.sure, turns.fall, gate, quiet)

    @property
    def pushes_to_end(self) -> bool:
        """Whether ending everything now would still push sound to the transcriber, which must be done on the thread."""
        stretch, turns = self._stretch, self._turns
        return stretch is None or (stretch.announced and turns is not None and not turns.silence_ms)

    def take_in(self, pcm: Pcm, played: PlayedSound | None, talk: TalkNow) -> Digested:
        """Run the models over a slice, up to the end of a turn if the slice contains one."""
        if self._stretch is not None and self._stretch.item_id == talk.set_aside:
            self.forget_stretch()
        self._called = None
        if talk.detection is None:
            notes, taken = self._store(pcm, talk), pcm.size
        else:
            self._mind_gate(talk)
            notes, taken = self._detect(pcm, played, talk, talk.detection)
        self._samples += taken
        return Digested(tuple(notes), taken, self.so_far, self._called)

    def close_stretch(self) -> Noted | None:
        """End the stretch under way, if any, where its speech ended: no more of it is written down."""
        stretch, end = self._stretch, self._samples
        if stretch is None:
            return None
        if stretch.announced and self._turns is not None:
            if self.pushes_to_end:  # the sound held since the voice fell is its last words, softly said
                self._scribe.go_on()
            end = self._origin + self._turns.end_sample
            self._turns.forget_turn()
        self._stretch, self._uncommitted = None, 0
        return Noted(Sign.END, stretch, end)

    def commit(self, expected: tuple[str, ...]) -> Noted:
        """End the stretch under way; if no speech was found, make one of all sound that nobody has committed."""
        if self._stretch is None:
            sound = np.concatenate([*self._recent, self._rest])[-self._uncommitted :]
            self._begin_stretch(Stretch(self._new_id(), False, self._samples - sound.size), sound, expected)
        closed = self.close_stretch()
        assert closed is not None
        return closed

    def clear_uncommitted(self) -> str | None:
        """Drop all sound that nobody has committed; return the item of the stretch that was under way."""
        item_id = None if self._stretch is None else self._stretch.item_id
        self.forget_stretch()
        self._recent.clear()
        self._recent_samples = self._uncommitted = 0
        return item_id

    def forget_stretch(self) -> None:
        self._stretch = None
        if self._turns is not None:
            self._turns.forget_turn()

    # -------------------------------------------------------------------------------------- one slice

    def _store(self, pcm: Pcm, talk: TalkNow) -> list[Noted]:
        """Store sound while turns are ended by hand: all of it belongs to the next turn."""
        if self._turns is not None:  # off in a pause, perhaps: new sound is not silence
            self._turns = None
            self._scribe.go_on()
        if self._stretch is None:
            self._begin_stretch(Stretch(self._new_id(), False, self._samples), pcm, talk.expected)
        else:
            self._write_down(self._stretch, pcm)
        self._uncommitted += pcm.size
        return []

    def _detect(
        self, pcm: Pcm, played: PlayedSound | None, talk: TalkNow, detection: ServerVad | SemanticVad
    ) -> tuple[list[Noted], int]:
        turns = self._follow(talk, detection)
        turns.pass_over(self._waiting.take_dropped())
        begun_before = talk.now - (self._samples + pcm.size) / HEARING_RATE
        notes: list[Noted] = []
        for start in range(0, pcm.size, STEP):
            part = pcm[start : start + STEP]
            self._uncommitted += part.size
            self._rest = np.concatenate([self._rest, part])
            for block in self._detector.push(part, part_of(played, start, part.size), turns.quick or turns.over_reply):
                self._rest = self._rest[block.samples :]
                for let_in in self._let_in(block, turns, talk):
                    noted = self._judge_block(turns, talk, let_in.sound, let_in.probability, begun_before)
                    if noted is not None:
                        notes.append(noted)
            if notes and notes[-1].sign is Sign.END:
                # Sound behind the end belongs to the next turn, and the transcriber must finish this turn before it
                # gets any of that: the rest of the slice comes back here after `final`.
                self._uncommitted = 0
                return notes, start + part.size
        so_far_ms = turns.speech_ms + (turns.silence_ms if talk.judged else 0.0)
        due = so_far_ms - self._asked_ms >= (JUDGED_MS if talk.judged else PROGRESS_MS)
        if self._stretch is not None and turns.speaking and due:
            self._asked_ms = so_far_ms
            notes.append(self._noted(None, self._stretch, turns))
        return notes, pcm.size

    def _mind_gate(self, talk: TalkNow) -> None:
        """Open or close for this slice. Behind a closed gate no sound is left for a commit by hand."""
        before, wake = self._gate, talk.wake
        if wake is None:
            self._gate = self._call = None
        else:
            seen = Seen(talk.now, busy=wake.busy or self._stretch is not None, asks=wake.asks)
            self._gate = step(before or WakeGate(), seen)
        waits = self._gate is not None and self._gate.waits
        if waits != (before is not None and before.waits):
            self._waiting.let_go()
        if waits:
            self._call = None
            self._recent.clear()
            self._recent_samples = self._uncommitted = 0

    def _let_in(self, block: SpeechBlock, turns: TurnDetector, talk: TalkNow) -> tuple[SpeechBlock, ...]:
        """The block, or none while a name is waited for, or the whole request so far behind a call."""
        if self._gate is None or not self._gate.waits or talk.wake is None:
            return (block,)
        call = self._waiting.hear(block, talk.wake.names)
        turns.pass_over(self._waiting.take_dropped())
        self._uncommitted = 0
        if call is None:
            return ()
        self._call, self._called, self._gate = call, call.name, step(self._gate, Seen(talk.now, called=True))
        self._uncommitted = sum(one.samples for one in call.blocks)
        return call.blocks

    def _follow(self, talk: TalkNow, detection: ServerVad | SemanticVad) -> TurnDetector:
        """The turn detector, made anew if detection was off until now; it counts from there."""
        if self._turns is None:
            self._turns = TurnDetector(detection, HEARING_RATE)
            self._detector.reset()
            self._waiting.let_go()
            self._waiting.take_dropped()
            self._rest = np.zeros(0, np.float32)
            self._origin = self._samples
        for power in talk.powers:
            self._turns.was_user(power)
        self._turns.set_detection(detection)
        self._turns.know(talk.words)
        self._turns.quick = talk.over_reply
        return self._turns

    def _judge_block(
        self, turns: TurnDetector, talk: TalkNow, sound: Pcm, probability: float, begun_before: float
    ) -> Noted | None:
        """`begun_before`: clock time in seconds of the session's first sample, according to this slice."""
        sign = turns.step(probability, sound.size, float(np.mean(np.square(sound))))
        self._remember(sound)
        if sign is Sign.ONSET:
            return self._onset(turns, talk, begun_before)
        stretch = self._stretch
        if stretch is None:
            return None
        if sign is Sign.RESUMED:
            self._scribe.go_on()
        stretch = self._write_down(stretch, sound)
        # Do this even if no reply can be begun: the transcript of a soft end must not reveal candidates.
        if sign is Sign.PAUSE or (sign is Sign.FALLEN and not talk.judged):
            self._scribe.hold_back()
        if sign is None:
            return None
        noted = self._noted(sign, stretch, turns)
        if sign is Sign.END:  # closed at once: the next block of this very slice may begin another stretch
            turns.forget_turn()
            self._before, self._stretch = stretch, None
        return noted

    def _onset(self, turns: TurnDetector, talk: TalkNow, begun_before: float) -> Noted:
        """Begin a stretch. Sound is written down only from the onset, plus a little before it: an onset is believed
        after two blocks, a word often begins below the threshold, and the transcriber learns the noise from the sound
        before. A turn that continues the previous one is written down together with it, from the first sound of
        both."""
        start = self._origin + turns.start_sample
        joins = self._joined(talk, begun_before + start / HEARING_RATE)
        first = start if joins is None else joins.start
        wanted = self._origin + turns.position - first + samples_of(padding_ms(talk.detection), HEARING_RATE)
        sound = np.concatenate(list(self._recent))[-wanted:]
        leads = self._call.name if self._call is not None and self._call.leads else ""
        joined, called = (None, leads) if joins is None else (joins.item_id, joins.called)
        stretch = Stretch(self._new_id(), True, first, joins=joined, called=called)
        self._call = None
        return replace(self._noted(Sign.ONSET, self._begin_stretch(stretch, sound, talk.expected), turns), at=start)

    def _joined(self, talk: TalkNow, moment: float) -> Stretch | None:
        """The previous stretch, if speech that began at this moment continues it."""
        turn, before = talk.joinable, self._before
        joins = turn is not None and before is not None and before.item_id == turn.item_id and moment <= turn.until
        return before if joins else None

    def _noted(self, sign: Sign | None, stretch: Stretch, turns: TurnDetector) -> Noted:
        power = turns.power if sign is Sign.END else 0.0
        end = self._origin + turns.end_sample
        return Noted(sign, stretch, end, turns.speech_ms, turns.silence_ms, turns.fall, power)

    def _begin_stretch(self, stretch: Stretch, sound: Pcm, expected: tuple[str, ...]) -> Stretch:
        # A turn that was set aside or cleared has left its words there.
        self._scribe.begin_utterance(expected, stretch.called)
        self._asked_ms = 0.0
        return self._write_down(stretch, sound)

    def _write_down(self, stretch: Stretch, pcm: Pcm) -> Stretch:
        self._scribe.queue_sound(pcm)
        self._stretch = replace(stretch, samples=stretch.samples + pcm.size)
        return self._stretch

    def _remember(self, block: Pcm) -> None:
        # Store it even while nobody seems to speak: a front may commit by hand what the detector took for noise.
        self._recent.append(block)
        self._recent_samples += block.size
        while self._recent_samples - self._recent[0].size >= KEPT_SAMPLES:
            self._recent_samples -= self._recent.popleft().size


def padding_ms(detection: TurnDetection) -> int:
    return detection.prefix_padding_ms if isinstance(detection, ServerVad) else 300


def part_of(played: PlayedSound | None, start: int, samples: int) -> PlayedSound | None:
    """The part of `played` that was played while these samples came."""
    if played is None:
        return None
    return PlayedSound(played.sound[start : start + samples], played.anew and start == 0)
