"""Who speaks, as a pure step: every row of the table is asked, and whatever comes in whatever order, nothing hangs."""

from dataclasses import replace
from functools import partial
from itertools import product

import pytest
from hypothesis import given
from hypothesis import settings as checks
from hypothesis import strategies as st

from assistant.events import (
    AudioCleared,
    CreateItem,
    CreateResponse,
    Message,
    RetrieveItem,
    SemanticVad,
    ServerVad,
    Settings,
    SpeechStarted,
    SpeechStopped,
    TextPart,
    TranscriptPartial,
    UpdateSettings,
)
from assistant.talk import turn_taking
from assistant.talk.effects import (
    BeginCandidate,
    CommitTurn,
    DropCandidate,
    HideFrame,
    Level,
    LookAhead,
    Reopen,
    SetAside,
    ShowFrame,
    SpeakUp,
    StartIdle,
    StartReply,
    StopIdle,
    StopReply,
)
from assistant.talk.interruption import TABLE, Manner, actions, manner_of
from assistant.talk.messages import (
    CallAsked,
    Cleared,
    ClientCancel,
    FrameCame,
    IdleOver,
    PictureCame,
    ReplyBegun,
    ReplyCut,
    ReplyEnded,
    ReplyOut,
    ReplySounding,
    SayNow,
    UserBegan,
    UserEnded,
    UserMayBeDone,
    UserProgress,
    UserWords,
)
from assistant.talk.turn_end import SHORTEST_END_MS
from assistant.talk.turn_taking import LITTLE_S, REOPEN_S, Answered, Making, TurnTakingState, joinable, may_sound_at
from assistant.text.english import ENGLISH

NOW, PAST, AHEAD = 10.0, 5.0, 15.0
STOP = Settings(turn_detection=ServerVad())
JUDGE = Settings()
DUCK = Settings(duck=True)
LISTEN = Settings(duck=True, turn_detection=ServerVad(interrupt_response=False))
ASKED = Settings(duck=True, turn_detection=SemanticVad(create_response=False))
BY_HAND = Settings(turn_detection=None)
FRONTS = {"stop": STOP, "judge": JUDGE, "duck": DUCK, "listen": LISTEN, "asked": ASKED, "by hand": BY_HAND}

step = partial(turn_taking.step, known=ENGLISH)


def reopens(state, settings, moment):
    """The turn that speech which began at this moment joins."""
    turn = joinable(state, settings)
    return turn.item_id if turn is not None and moment <= turn.until else None


TYPED = CreateItem(Message("typed", "user", (TextPart("hello"),)))
UNDECIDED, LIKELY = (100.0, "", 0.0), (300.0, "", 0.0)
NOD, WORDS = (250.0, "mhm", 96.0, 3, True), (500.0, "ten minutes", 0.0)


def progress(item_id, ms, text, silent, *more):
    return UserProgress(item_id, text, ms, silent, *more)


def ended(item_id, by_hand=False, was_announced=True):
    return UserEnded(item_id, 2000, NOW - 0.5, by_hand, was_announced)


def may_come(state):
    """What a session may be told in this state. New speech may begin behind some that never ended: a front that
    switches detection off and on in the middle of a word does that."""
    messages = [UserBegan("a", 900, NOW - 1), UserBegan("b", 900, NOW - 1, "first"), ended("late"),
                Cleared(None), IdleOver(), SayNow("The timer is over."), ReplyCut(),
                ended("typed", True, False)]  # fmt: skip
    if state.overlap is not None:
        item_id = state.overlap.item_id
        messages += [progress(item_id, *of) for of in (UNDECIDED, LIKELY, NOD, WORDS)]
        messages += [ended(item_id), ended(item_id, by_hand=True), Cleared(item_id)]
    messages.append(UserProgress("late", "wait", 600.0, 0.0))
    if state.replying:
        messages += [ClientCancel(), ReplyEnded(PAST), ReplyEnded(AHEAD), CallAsked(PAST)]
    else:
        messages += [ReplyBegun(), ReplyOut()]
    if state.making is Making.PRIVATE:
        messages.append(ReplySounding())
    return messages


def may_come_beside(state):
    """All that, with guesses, pictures and what a front does to the talk."""
    messages = [*may_come(state), FrameCame("another", True, False), PictureCame(), UserMayBeDone("late", "wait"),
                UserWords("late", "", None, 1.0), TYPED, CreateResponse(), RetrieveItem("a"),
                UpdateSettings(STOP)]  # fmt: skip
    if state.overlap is not None:
        item_id = state.overlap.item_id
        messages += [UserMayBeDone(item_id, "ten minutes"), FrameCame(item_id, False, True)]
    return messages


def after(state, message, settings):
    """The states that a step may lead to, once its effects are carried out: a stopped reply has ended somewhere."""
    state, effects = step(state, message, settings, NOW)
    if not any(isinstance(effect, StopReply) for effect in effects):
        return [(state, effects)]
    return [(step(state, ReplyEnded(end), settings, NOW)[0], effects) for end in (PAST, AHEAD)]


def without_words(state):
    """The words of the answered turn would only multiply the states."""
    return state if state.answered is None else replace(state, answered=replace(state.answered, text=""))


def walked(coming, fronts):
    """Every state that can be reached with any of the fronts, or several one after the other, and every step there."""
    found, open_states, steps = {TurnTakingState()}, [TurnTakingState()], []
    while open_states:
        state = open_states.pop()
        for message, settings in product(coming(state), fronts):
            for follows, effects in after(state, message, settings):
                reached = without_words(follows)
                steps.append((state, message, settings, reached, effects))
                if reached not in found:
                    found.add(reached)
                    open_states.append(reached)
    return found, steps


@pytest.fixture(scope="module")
def walk():
    questions = set()

    def noting(*question):
        questions.add(question)
        return actions(*question)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn_taking, "actions", noting)
        return *walked(may_come, FRONTS.values()), questions


@pytest.fixture(scope="module")
def steps_beside():
    return walked(may_come_beside, [JUDGE])[1]


def test_every_row_of_the_table_is_asked_and_nothing_beside_it(walk):
    _, _, questions = walk
    assert questions == set(TABLE)


def test_a_lowered_sound_always_has_speech_that_will_decide_about_it(walk):
    states, steps, _ = walk
    for state in states:
        if state.judging is not None:
            assert state.overlap is not None and not state.overlap.announced
        else:
            assert not state.lowered and not state.held and not state.withdrawn
    for before, _, _, reached, effects in steps:
        levels = [effect for effect in effects if isinstance(effect, Level)]
        if reached.lowered and not before.lowered:
            assert levels == [Level.LOWER]
        elif before.lowered and not reached.lowered:
            assert levels in ([Level.RAISE], [Level.DROP])
        elif reached.held and not before.held and before.lowered:
            assert levels == [Level.HOLD]
        else:
            assert not levels or levels == [Level.DROP]  # a reply that began beneath judged speech


def test_a_withdrawn_reply_is_made_anew_or_its_turn_goes_on(walk):
    _, steps, _ = walk
    for before, message, settings, reached, effects in steps:
        if not before.withdrawn or reached.withdrawn or isinstance(message, ReplyBegun):
            continue
        restarted = StartReply() in effects
        announced = any(isinstance(effect, SpeechStarted) for effect in effects)
        assert restarted or announced, (before, message, settings)


def test_from_every_state_the_end_of_the_speech_leads_to_silence(walk):
    states, _, _ = walk
    for state in states:
        if state.overlap is None:
            continue
        for message in (ended(state.overlap.item_id), Cleared(state.overlap.item_id)):
            reached, _ = step(state, message, DUCK, NOW)
            assert reached.overlap is None and reached.judging is None
        _, effects = step(state, ended(state.overlap.item_id), DUCK, NOW)
        found = [effect for effect in effects if isinstance(effect, SpeechStarted | SetAside)]
        assert len(found) == (not state.overlap.announced)
        assert all(isinstance(effect, SpeechStarted) or state.overlap.joins for effect in found)


def test_what_replies_tell_of_themselves_has_no_effects(walk):
    _, steps, _ = walk
    facts = (ReplyBegun, ReplySounding, ReplyEnded, ReplyCut, CallAsked)
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
        if manner_of(settings) is Manner.LISTEN and before.judging is None and not isinstance(message, ClientCancel):
            assert not any(isinstance(effect, StopReply) for effect in effects)


def test_the_wait_for_the_user_stops_with_speech_and_goes_on_where_there_was_none(walk):
    _, steps, _ = walk
    for before, message, _, reached, effects in steps:
        assert (StopIdle() in effects) == isinstance(message, UserBegan)
        for effect in effects:
            if isinstance(effect, StartIdle):
                assert not before.replying and reached.overlap is None and effect.play_end == before.play_end


def test_a_candidate_is_dropped_once_or_its_turn_is_answered(steps_beside):
    """So at most one is in the making, and none outlives its turn."""
    beside = UserProgress | UserMayBeDone | UserEnded | UserWords | RetrieveItem | FrameCame | PictureCame | ReplyOut
    facts = ReplyBegun | ReplySounding | ReplyEnded | ReplyCut | CallAsked
    for before, message, _, reached, effects in steps_beside:
        begun = [effect for effect in effects if isinstance(effect, BeginCandidate)]
        drops = effects.count(DropCandidate())
        assert drops <= 1 and len(begun) <= 1 and not (drops and begun)
        if begun:
            assert reached.guessing == begun[0].text and not reached.replying and reached.judging is None
        elif before.guessing is not None and reached.guessing is None:
            assert drops == 1 or (isinstance(message, UserEnded) and effects[-1] == StartReply())
        else:
            assert not drops and reached.guessing == before.guessing
        if not isinstance(message, beside | facts):
            assert reached.guessing is None and effects[:drops] == (DropCandidate(),) * drops
        if any(isinstance(effect, Reopen) for effect in effects):  # the models take a guess back in the same talk only
            names = [type(effect) for effect in effects]
            assert before.guessing is None or names.index(DropCandidate) < names.index(Reopen)


def test_a_frame_is_shown_to_speech_once_and_hidden_where_that_was_no_turn(steps_beside):
    for before, message, _, reached, effects in steps_beside:
        shown = [effect for effect in effects if isinstance(effect, ShowFrame)]
        hidden = [effect for effect in effects if isinstance(effect, HideFrame)]
        if not reached.frames:
            assert not shown and not hidden
            continue
        old, new = before.overlap, reached.overlap
        if isinstance(message, UserBegan) and new.joins is None and (old is None or old.item_id != new.item_id):
            assert [effect.turn for effect in shown] == [new.item_id]
        elif shown:
            assert isinstance(message, CreateItem | CreateResponse | FrameCame)
        committed = [effect.item_id for effect in effects if isinstance(effect, CommitTurn)]
        if old is not None and (new is None or new.item_id != old.item_id) and old.item_id not in committed:
            assert [effect.turn for effect in hidden] == [old.item_id]
        elif not isinstance(message, UserWords):
            assert not hidden
        for effect in shown:
            assert effect.ahead is not reached.replying
        assert not (reached.replying and any(effect.settle for effect in hidden))
        assert LookAhead() not in effects or isinstance(message, PictureCame)


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


@checks(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.sampled_from(sorted(FRONTS))), max_size=60))
def test_any_history(choices):
    history = History()
    for choice, front in choices:
        history.take(choice, FRONTS[front])
    started, stopped = history.items(SpeechStarted), history.items(SpeechStopped)
    assert len(set(started)) == len(started) and len(set(stopped)) == len(stopped)
    assert set(stopped) <= set(started)  # announced exactly once, at the latest before its end
    committed, forgotten = history.items(CommitTurn), history.items(SetAside)
    assert not set(forgotten) & (set(committed) | set(started))  # a nod is never heard of
    assert {item for item in committed if item != "typed"} <= set(stopped)
    known = set()
    for _, effect in history.told:
        if isinstance(effect, SpeechStarted):
            known.add(effect.item_id)
        if isinstance(effect, TranscriptPartial | SpeechStopped):
            assert effect.item_id in known
    low = False
    for _, effect in history.told:
        if isinstance(effect, Level):
            assert low is not (effect is Level.LOWER) or effect is Level.DROP
            low = effect in (Level.LOWER, Level.HOLD)
    assert low == history.state.lowered
    cleared = sum(isinstance(effect, AudioCleared) for _, effect in history.told)
    assert cleared == sum(isinstance(message, Cleared) for message, effect in history.told if effect == AudioCleared())


# ----------------------------------------------------------------------------------------- single cases


def told(settings, *messages, now=NOW):
    return told_from(TurnTakingState(), settings, *messages, now=now)


def told_from(state, settings, *messages, now=NOW):
    out = []
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
    _, out = told(DUCK, *lowered, progress("a", *NOD))
    assert out[-2:] == [Level.RAISE, SetAside("a", "mhm")]


def test_words_where_a_nod_was_read_wait_longer_than_others():
    begun = (ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW))
    other = UserProgress("a", "with her", 416.0, 0.0)
    assert SpeechStarted("a", 0) in told(JUDGE, *begun, other)[1]
    assert told(JUDGE, *begun, UserProgress("a", "Uh-huh", 352.0, 0.0), other)[1] == [StopIdle()]


def test_settings_that_change_under_a_lowered_reply_do_not_leave_it_lowered():
    state, _ = told(DUCK, ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW))
    for settings in FRONTS.values():
        reached, effects = step(state, ended("a"), settings, NOW)
        assert Level.DROP in effects and not reached.lowered


def test_a_cleared_barge_in_leaves_nothing_to_the_next_turn():
    stopped = (ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW - 1))
    state, out = told(STOP, *stopped, Cleared("a"), ended("b", by_hand=True, was_announced=False))
    assert out[-1] == CommitTurn("b", NOW - 0.5, False, None) and state.overlap is None


def test_how_long_a_reply_took_to_yield_is_counted_from_the_first_sample():
    _, out = told(STOP, ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW - 0.25), ReplyEnded(NOW), ended("a"))
    assert CommitTurn("a", NOW - 0.5, True, 250.0) in out and out[-1] == StartReply()


def test_a_reply_that_was_held_had_yielded_then_and_not_with_the_verdict():
    begun = (ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW))
    state, out = told(DUCK, *begun, progress("a", *LIKELY), now=NOW + 0.3)
    assert Level.HOLD in out
    state, out = told_from(state, DUCK, progress("a", *LIKELY), progress("a", 800.0, "ten minutes", 0.0), now=NOW + 0.7)
    assert StopReply("turn_detected") in out and state.overlap.yielded_ms == pytest.approx(300.0)
    state, _ = told(DUCK, *begun, progress("a", *LIKELY), progress("a", *NOD), now=NOW + 0.3)
    again = (UserBegan("b", 0, NOW + 1), progress("b", 800.0, "ten minutes", 0.0))
    state, out = told_from(state, DUCK, *again, now=NOW + 1.5)
    assert StopReply("turn_detected") in out and state.overlap.yielded_ms == pytest.approx(500.0)


def test_a_turn_behind_a_reply_that_went_on_is_answered_when_it_is_over():
    state, out = told(LISTEN, ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW), ended("a"))
    assert StartReply() not in out and state.answer_due
    for message in (ReplyOut(), ClientCancel()):
        before = replace(state, making=Making.NONE) if isinstance(message, ReplyOut) else state
        reached, effects = step(before, message, LISTEN, NOW)
        assert effects[-1] == StartReply()
        assert not step(reached, ReplyBegun(), LISTEN, NOW)[0].answer_due


def test_a_stock_client_hears_of_speech_with_the_verdict_and_a_nod_stops_nothing():
    over = (ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW))
    state, out = told(JUDGE, *over, progress("a", *UNDECIDED), progress("a", *LIKELY))
    assert out == [StopIdle()]
    reached, effects = step(state, progress("a", *NOD), JUDGE, NOW)
    assert effects == (SetAside("a", "mhm"),) and reached.replying
    _, effects = step(state, progress("a", *WORDS), JUDGE, NOW)
    assert effects[:2] == (SpeechStarted("a", 0), StopReply("turn_detected"))


def test_stop_is_obeyed_and_needs_no_answer_in_words():
    over = (ReplyBegun(), ReplySounding(), UserBegan("a", 0, NOW), progress("a", 300.0, "Stop.", 0.0))
    for settings in (JUDGE, DUCK):
        _, out = told(settings, *over, ReplyEnded(PAST), ended("a"))
        assert StopReply("turn_detected") in out and StartReply() not in out
        _, out = told(settings, *over, ReplyEnded(PAST), progress("a", 900.0, "Stop. What day is it?", 0.0), ended("a"))
        assert out[-1] == StartReply()
    _, out = told(JUDGE, UserBegan("a", 0, NOW), progress("a", 300.0, "Stop.", 0.0), ended("a"))
    assert out[-1] == StartReply()  # nothing was going on: it may mean a timer
    _, out = told(STOP, *over, ReplyEnded(PAST), ended("a"))
    assert out[-1] == StartReply()  # as the protocol has it


def first_turn(settings, *then, now=NOW):
    """A turn whose last sound was half a second ago, and what came since."""
    return told(settings, UserBegan("first", 0, NOW - 2), ended("first"), ReplyBegun(), *then, now=now)


def test_who_goes_on_before_the_answer_is_heard_reopens_the_turn():
    for settings in (JUDGE, DUCK):
        state, _ = first_turn(settings)
        assert reopens(state, settings, NOW) == "first"
        assert reopens(state, settings, NOW - 0.5 + REOPEN_S + 0.1) is None
        assert reopens(state, replace(settings, paced=False), NOW) is None
        state, out = told_from(state, settings, UserBegan("a", 0, NOW, "first"), ReplyEnded(PAST))
        assert out == [StopIdle(), StopReply("turn_detected")] and state.withdrawn
        reached, effects = step(state, progress("a", *WORDS), settings, NOW)
        assert effects[:2] == (SpeechStarted("a", 0), Reopen("first"))
        _, effects = step(reached, ended("a"), settings, NOW)
        assert effects[1:] == (CommitTurn("a", NOW - 0.5, False, None), StartReply())
        _, effects = step(state, progress("a", *NOD), settings, NOW)
        assert effects == (SetAside("a", "mhm"), StartReply())  # a cough: the question was whole


def test_what_is_said_over_a_question_about_a_call_answers_it():
    """It joins no turn, stops what asks, and gets a reply. A yes before the question sounds is a nod still."""
    yes = 250.0, "Ja", 96.0, 2, True
    asks = ReplySounding(), CallAsked(NOW - 1, ("ja",))
    for settings, known in product((JUDGE, DUCK), (ENGLISH, None)):
        state, _ = first_turn(settings, *asks)
        assert reopens(state, settings, NOW) is None
        over, _ = told_from(state, settings, UserBegan("a", 0, NOW))
        _, effects = turn_taking.step(over, progress("a", *yes), settings, NOW, known)
        assert StopReply("turn_detected") in effects
        early, _ = told_from(state, settings, UserBegan("a", 0, NOW - 1.5))
        _, effects = turn_taking.step(early, progress("a", *yes[:2], 640.0), settings, NOW, known)
        assert StopReply("turn_detected") not in effects
        _, out = told_from(over, settings, progress("a", 300.0, "No.", 0.0), ReplyEnded(NOW), ended("a"))
        assert out[-1] == StartReply()
        read_on, _ = told_from(over, settings, progress("a", 200.0, "Yes.", 0.0))
        _, effects = step(read_on, progress("a", 250.0, "Yes, of.", 96.0, 0, True), settings, NOW)
        assert StopReply("turn_detected") in effects
        silent, _ = told_from(over, settings, ReplyEnded(NOW), ReplyBegun())
        assert silent.asked is None


def test_an_answer_that_is_over_is_taken_back_with_the_first_words_or_the_end():
    for settings in (JUDGE, DUCK):
        over, _ = first_turn(settings, ReplySounding(), ReplyEnded(PAST))
        state, out = told_from(over, settings, UserBegan("a", 0, NOW, "first"), progress("a", 100, "", 0))
        assert out == [StopIdle(), SpeechStarted("a", 0)]
        _, effects = step(state, progress("a", *WORDS), settings, NOW)
        assert effects[0] == Reopen("first") and effects.count(Reopen("first")) == 1
        state, effects = step(state, ended("a"), settings, NOW)
        assert effects[0] == Reopen("first") and effects[-1] == StartReply()
        assert state.answered is not None and state.answered.item_id == "a"
        _, out = told_from(over, settings, UserBegan("a", 0, NOW), progress("a", *WORDS), ended("a"))
        assert Reopen("first") not in out  # a turn of its own


def test_what_was_heard_for_longer_is_no_more_taken_back():
    for settings, sounded, expected in ((JUDGE, 0.1, "first"), (JUDGE, LITTLE_S + 0.1, None), (STOP, 0.1, None)):
        state, _ = first_turn(settings, ReplySounding(), now=NOW)
        assert reopens(state, settings, NOW + sounded) == expected
    state, out = told_from(first_turn(DUCK, ReplySounding())[0], DUCK, UserBegan("a", 0, NOW, "first"),
                           progress("a", *WORDS))  # fmt: skip
    assert [Level.LOWER, SpeechStarted("a", 0), Level.DROP, StopReply("turn_detected"), Reopen("first")] == out[1:6]
    assert state.answered is None


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        ({"text": "what time is it", "complete": 0.9}, True),
        ({"text": "yes"}, True),
        ({"text": "yes", "paused": False}, False),  # the model may know more by the pause
        ({"text": "what time is it", "complete": 0.9, "paused": False}, True),
        ({"text": "set a timer for ten", "complete": 0.01}, False),
        ({"text": "set a timer for um", "complete": 0.9, "held": True}, False),
        ({"text": " "}, False),
    ],
)  # fmt: skip
def test_a_reply_is_begun_in_private_to_words_that_may_be_whole(words, begins):
    state, out = told(JUDGE, UserBegan("a", 0, NOW), UserMayBeDone("a", **words))
    assert (BeginCandidate("a", words["text"]) in out) == (state.guessing is not None) == begins


def test_a_frame_that_changes_nothing_leaves_a_candidate_alone():
    guessed, _ = told(JUDGE, FrameCame(None, True, False), UserBegan("a", 0, NOW), UserMayBeDone("a", "what is this"))
    for came, effects in (
        (FrameCame("a", new=True, changed=False), ()),
        (FrameCame("before", new=False, changed=True), ()),
        (FrameCame("a", new=False, changed=True), (DropCandidate(), ShowFrame("a", ahead=True))),
        (FrameCame("before", new=True, changed=False), (DropCandidate(), ShowFrame("a", ahead=True))),
    ):
        assert step(guessed, came, JUDGE, NOW)[1] == effects
    assert step(guessed, UserWords("a", "", None, 1.0), JUDGE, NOW)[1] == (HideFrame("a", settle=True),)


@given(st.none() | st.floats(0, 1), st.none() | st.floats(0, 1), st.sampled_from(["low", "medium", "high", "auto"]),
       st.booleans(), st.booleans(), st.booleans())  # fmt: skip
def test_only_a_reply_that_asks_back_waits_and_never_for_longer_than_a_turn_can_be_taken_back(
    complete, other, eagerness, paced, sounded, creates
):
    detection = SemanticVad(eagerness, create_response=creates)
    settings = Settings(turn_detection=detection, paced=paced)
    state = TurnTakingState(making=Making.PRIVATE, answered=Answered("a", NOW, "wake me up at", complete))
    state = replace(state, sounds_since=NOW) if sounded else state
    assert may_sound_at(state, False, settings) == 0.0
    moment = may_sound_at(state, True, settings)
    if joinable(state, settings) is None:
        assert moment == 0.0
        return
    assert NOW + SHORTEST_END_MS / 1000 <= moment < NOW + REOPEN_S
    surer = may_sound_at(replace(state, answered=Answered("a", NOW, "", other)), True, settings)
    assert moment >= surer or (complete or 0.0) > (other or 0.0)
    assert may_sound_at(replace(state, answered=None), True, settings) == 0.0
    assert may_sound_at(state, True, replace(settings, turn_detection=ServerVad())) == 0.0


def test_a_sound_behind_a_question_that_says_nothing_new_changes_nothing():
    """Ears read a turn that goes on from its first sound, and write the question again, perhaps in other words."""
    for settings in (JUDGE, DUCK):
        for text in ("what time is it", "What time is 8?", "what time is it, uh", "what time is it hm."):
            asked = (UserBegan("first", 0, NOW - 2), progress("first", 900, "what time is it", 96, 0, True))
            state, _ = told_from(TurnTakingState(), settings, *asked, ended("first"), ReplyBegun(), ReplySounding())
            began, read = UserBegan("a", 0, NOW, "first"), progress("a", 200, text, 96, 0, True)
            state, out = told_from(state, settings, began, read)
            assert [effect.item_id for effect in out if isinstance(effect, SetAside)] == ["a"], text
            assert not any(isinstance(effect, Reopen | StopReply) for effect in out) and state.replying
            unread = progress("a", 200, text, 0)  # the end comes before a pause was read
            _, out = told_from(state, settings, began, unread, ended("a"))
            assert not any(isinstance(effect, CommitTurn | Reopen | StopReply) for effect in out), text
        state, out = told_from(state, settings, UserBegan("b", 0, NOW, "first"),
                               progress("b", 300, "what time is it in London", 0))  # fmt: skip
        assert Reopen("first") in out


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("lasts", [0.3, 0.8])
def test_speech_that_was_not_read_to_its_end_is_nothing_only_if_it_is_short(read, lasts):
    """Ears write "Notified. No." halfway through "count to five, no, to seven": fewer words than "count to five"."""
    asked = (UserBegan("first", 0, NOW - 2), progress("first", 900, "count to five", 96, 0, True))
    state, _ = told_from(TurnTakingState(), JUDGE, *asked, ended("first"), ReplyBegun(), ReplySounding())
    began = UserBegan("a", 0, NOW, "first"), progress("a", lasts * 1000, "Notified. No.", 96 * read, 0, read)
    _, out = told_from(state, JUDGE, *began, replace(ended("a"), moment=NOW + lasts))
    assert (Reopen("first") in out) == (not read and lasts > 0.5)


def test_a_correction_that_was_read_only_up_to_its_no_is_answered():
    """The turn may end before its last words are read."""
    for read in (False, True):
        asked = (UserBegan("first", 0, NOW - 2), progress("first", 900, "fifty minus eight", 96, 0, True))
        state, _ = told_from(TurnTakingState(), JUDGE, *asked, ended("first"), ReplyBegun(), ReplySounding())
        more = UserBegan("a", 0, NOW, "first"), progress("a", 500, "Fifty minus eight. No.", 96 * read, 0, read)
        _, out = told_from(state, JUDGE, *more, ended("a"))
        assert Reopen("first") in out and (StartReply() in out) == (not read)
