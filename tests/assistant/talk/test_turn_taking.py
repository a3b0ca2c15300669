"""Who speaks, as a pure step: every row of the table is asked, and whatever comes in whatever order, nothing hangs."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.events import AudioCleared, ServerVad, Settings, SpeechStarted, SpeechStopped, TranscriptPartial
from assistant.talk import turn_taking
from assistant.talk.interruption import TABLE, Manner, actions, manner_of
from assistant.talk.messages import (
    Cleared,
    ClientCancel,
    IdleOver,
    ReplyBegun,
    ReplyCut,
    ReplyEnded,
    ReplyOut,
    ReplySounding,
    SayNow,
    UserBegan,
    UserEnded,
    UserProgress,
)
from assistant.talk.turn_taking import (
    CommitTurn,
    ForgetTurn,
    Level,
    Making,
    SpeakUp,
    StartIdle,
    StartReply,
    StopIdle,
    StopReply,
    TurnTakingState,
    step,
)

NOW, PAST, AHEAD = 10.0, 5.0, 15.0
STOP = Settings()
DUCK = Settings(duck=True)
LISTEN = Settings(duck=True, turn_detection=ServerVad(interrupt_response=False))
ASKED = Settings(duck=True, turn_detection=ServerVad(create_response=False))
BY_HAND = Settings(turn_detection=None)
FRONTS = {"stop": STOP, "duck": DUCK, "listen": LISTEN, "asked": ASKED, "by hand": BY_HAND}

UNDECIDED, NOD, WORDS = (100.0, "", 0.0), (250.0, "mhm", 64.0), (400.0, "wait a minute", 0.0)


def ended(item_id, by_hand=False, was_announced=True):
    return UserEnded(item_id, 2000, NOW - 0.5, by_hand, was_announced)


def may_come(state):
    """What a session may be told in this state. New speech may begin behind some that never ended: a front that
    switches detection off and on in the middle of a word does that."""
    messages = [UserBegan("a", 900, NOW - 1), UserBegan("b", 900, NOW - 1), ended("late"), Cleared(None), IdleOver(),
                SayNow("The timer is over."), ReplyCut(), ended("typed", True, False)]  # fmt: skip
    if state.overlap is not None:
        item_id = state.overlap.item_id
        messages += [UserProgress(item_id, text, ms, silent) for ms, text, silent in (UNDECIDED, NOD, WORDS)]
        messages += [ended(item_id), ended(item_id, by_hand=True), Cleared(item_id)]
    messages.append(UserProgress("late", "wait", 600.0, 0.0))
    if state.replying:
        messages += [ClientCancel(), ReplyEnded(PAST), ReplyEnded(AHEAD)]
    else:
        messages += [ReplyBegun(), ReplyOut()]
    if state.making is Making.PRIVATE:
        messages.append(ReplySounding())
    return messages


def after(state, message, settings):
    """The states that a step may lead to, once its effects are carried out: a stopped reply has ended somewhere."""
    state, effects = step(state, message, settings, NOW)
    if not any(isinstance(effect, StopReply) for effect in effects):
        return [(state, effects)]
    return [(step(state, ReplyEnded(end), settings, NOW)[0], effects) for end in (PAST, AHEAD)]


@pytest.fixture(scope="module")
def walk():
    """Every state that can be reached with any of the fronts, or several one after the other, and every step there."""
    found, open_states, steps, questions = {TurnTakingState()}, [TurnTakingState()], [], set()

    def noting(*question):
        questions.add(question)
        return actions(*question)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn_taking, "actions", noting)
        while open_states:
            state = open_states.pop()
            for message, settings in product(may_come(state), FRONTS.values()):
                for reached, effects in after(state, message, settings):
                    steps.append((state, message, settings, reached, effects))
                    if reached not in found:
                        found.add(reached)
                        open_states.append(reached)
    return found, steps, questions


def test_every_row_of_the_table_is_asked_and_nothing_beside_it(walk):
    _, _, questions = walk
    assert questions == set(TABLE)


def test_a_lowered_sound_always_has_speech_that_will_decide_about_it(walk):
    states, steps, _ = walk
    assert all(state.overlap is not None and not state.overlap.announced for state in states if state.ducked)
    for before, _, _, reached, effects in steps:
        levels = [effect for effect in effects if isinstance(effect, Level)]
        if reached.ducked and not before.ducked:
            assert levels == [Level.LOWER]
        elif before.ducked and not reached.ducked:
            assert levels in ([Level.RAISE], [Level.DROP])
        else:
            assert not levels


def test_from_every_state_the_end_of_the_speech_leads_to_silence(walk):
    states, _, _ = walk
    for state in states:
        if state.overlap is None:
            continue
        for message in (ended(state.overlap.item_id), Cleared(state.overlap.item_id)):
            reached, _ = step(state, message, DUCK, NOW)
            assert reached.overlap is None and not reached.ducked
        started = [effect for effect in step(state, ended(state.overlap.item_id), DUCK, NOW)[1]
                   if isinstance(effect, SpeechStarted)]  # fmt: skip
        assert len(started) == (not state.overlap.announced)


def test_what_replies_tell_of_themselves_has_no_effects(walk):
    _, steps, _ = walk
    facts = (ReplyBegun, ReplySounding, ReplyEnded, ReplyCut)
    assert all(not effects for _, message, _, _, effects in steps if isinstance(message, facts))


def test_a_running_reply_is_answered_by_no_other_and_a_cancel_always_stops_it(walk):
    _, steps, _ = walk
    for before, message, _, reached, effects in steps:
        stops = sum(isinstance(effect, StopReply) for effect in effects)
        starts = sum(isinstance(effect, StartReply | SpeakUp) for effect in effects)
        assert starts <= 1 and stops <= before.replying
        if starts:
            assert not reached.replying
        if isinstance(message, ClientCancel):
            assert stops == 1 and StopReply("client_cancelled") in effects
        elif stops:
            assert StopReply("turn_detected") in effects


def test_listening_stops_a_reply_for_nobody_but_the_front(walk):
    _, steps, _ = walk
    for before, message, settings, _, effects in steps:
        if manner_of(settings) is Manner.LISTEN and not before.ducked and not isinstance(message, ClientCancel):
            assert not any(isinstance(effect, StopReply) for effect in effects)


def test_the_wait_for_the_user_stops_with_speech_and_goes_on_where_there_was_none(walk):
    _, steps, _ = walk
    for before, message, _, reached, effects in steps:
        assert (StopIdle() in effects) == isinstance(message, UserBegan)
        for effect in effects:
            if isinstance(effect, StartIdle):
                assert not before.replying and reached.overlap is None and effect.play_end == before.play_end


# ---------------------------------------------------------------------------------- one history at a time


class History:
    """Takes random messages as a session would, with an id for every speech, and keeps what was told of each."""

    def __init__(self):
        self.state, self.told, self.count, self.at = TurnTakingState(), [], 0, 0.0

    def take(self, choice, settings):
        self.at += 0.1
        able = may_come(self.state)
        message = able[choice % len(able)]
        if isinstance(message, UserBegan):
            self.count += 1
            message = replace(message, item_id=f"item {self.count}", moment=self.at)
        self.state, effects = step(self.state, message, settings, self.at)
        self.told += [(message, effect) for effect in effects]
        if any(isinstance(effect, StopReply) for effect in effects):
            self.state, _ = step(self.state, ReplyEnded(self.at + 1), settings, self.at)
        for effect in effects:
            if isinstance(effect, StartReply | SpeakUp):
                self.state, _ = step(self.state, ReplyBegun(), settings, self.at)

    def items(self, kind):
        return [effect.item_id for _, effect in self.told if isinstance(effect, kind)]


@given(st.lists(st.tuples(st.integers(0, 100), st.sampled_from(sorted(FRONTS))), max_size=60))
def test_any_history(choices):
    history = History()
    for choice, front in choices:
        history.take(choice, FRONTS[front])
    started, stopped = history.items(SpeechStarted), history.items(SpeechStopped)
    assert len(set(started)) == len(started) and len(set(stopped)) == len(stopped)
    assert set(stopped) <= set(started)  # announced exactly once, at the latest before its end
    committed, forgotten = history.items(CommitTurn), history.items(ForgetTurn)
    assert not set(forgotten) & (set(committed) | set(started))  # a nod is never heard of
    assert {item for item in committed if item != "typed"} <= set(stopped)
    known = set()
    for _, effect in history.told:
        if isinstance(effect, SpeechStarted):
            known.add(effect.item_id)
        if isinstance(effect, TranscriptPartial | SpeechStopped):
            assert effect.item_id in known
    levels = [effect for _, effect in history.told if isinstance(effect, Level)]
    assert all(one is Level.LOWER for one in levels[::2]) and Level.LOWER not in levels[1::2]
    assert (len(levels) % 2 == 1) == history.state.ducked
    cleared = sum(isinstance(effect, AudioCleared) for _, effect in history.told)
    assert cleared == sum(isinstance(message, Cleared) for message, effect in history.told if effect == AudioCleared())


# ----------------------------------------------------------------------------------------- single cases


def told(settings, *messages, now=NOW):
    state, out = TurnTakingState(), []
    for message in messages:
        state, effects = step(state, message, settings, now)
        out += effects
    return state, out


def test_a_reply_begun_behind_a_lowered_one_does_not_leave_it_lowered():
    """The front asks for a reply while the last one is lowered under speech; then the speech turns out to be words."""
    lowered = (ReplyBegun(), ReplySounding(), ReplyEnded(AHEAD), UserBegan("a", 0, NOW), ReplyBegun())
    _, out = told(DUCK, *lowered, UserProgress("a", "wait a minute", 400.0, 0.0))
    assert out[-4:] == [SpeechStarted("a", 0), Level.DROP, StopReply("turn_detected"),
                        TranscriptPartial("a", "wait a minute")]  # fmt: skip
    _, out = told(DUCK, *lowered, UserProgress("a", "mhm", 250.0, 64.0))
    assert out[-2:] == [Level.RAISE, ForgetTurn("a")]


def test_settings_that_change_under_a_lowered_reply_do_not_leave_it_lowered():
    state, _ = told(DUCK, ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW))
    for settings in FRONTS.values():
        reached, effects = step(state, ended("a"), settings, NOW)
        assert Level.DROP in effects and not reached.ducked


def test_a_cleared_barge_in_leaves_nothing_to_the_next_turn():
    stopped = (ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW - 1))
    state, out = told(STOP, *stopped, Cleared("a"), ended("b", by_hand=True, was_announced=False))
    assert out[-1] == CommitTurn("b", NOW - 0.5, False, None) and state.overlap is None


def test_how_long_a_reply_took_to_yield_is_counted_from_the_first_sample():
    _, out = told(STOP, ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW - 0.25), ReplyEnded(NOW), ended("a"))
    assert CommitTurn("a", NOW - 0.5, True, 250.0) in out and out[-1] == StartReply()


def test_a_turn_behind_a_reply_that_went_on_is_answered_when_it_is_over():
    state, out = told(LISTEN, ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW), ended("a"))
    assert StartReply() not in out and state.answer_due
    for message in (ReplyOut(), ClientCancel()):
        before = replace(state, making=Making.NONE) if isinstance(message, ReplyOut) else state
        reached, effects = step(before, message, LISTEN, NOW)
        assert effects[-1] == StartReply()
        assert not step(reached, ReplyBegun(), LISTEN, NOW)[0].answer_due
