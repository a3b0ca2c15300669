"""Replies begun in private: released in the moment in which the turn is certain, or never there at all (law L8)."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assistant.contracts import Partial
from assistant.events import (
    AudioCommitted,
    AudioDelta,
    CallDone,
    CancelResponse,
    ClearAudio,
    CommitAudio,
    CreateItem,
    CreateResponse,
    Error,
    ItemDeleted,
    Message,
    ResponseCreated,
    ResponseDone,
    SemanticVad,
    ServerVad,
    Settings,
    SpokenText,
    SwitchPersona,
    TextPart,
    TimelineReady,
    ToolSpec,
    ToolUsed,
    TranscriptCompleted,
    Undo,
    UpdateSettings,
)
from assistant.tools.kept import Kept
from assistant.tools.registry import ToolRegistry
from tests.fakes.models import FakeDetector, FakeEars, FakeTranscriber
from tests.fakes.talk import BLOCK_S, World

ONE_TURN = ((0.5, ("hello there friend", 1.0)),)


class SecondThoughts(FakeEars):
    """At some pauses it hears a word more than it writes down in the end."""

    def __init__(self, wrong=lambda pause: True):
        super().__init__()
        self.wrong, self.pauses = wrong, 0

    def transcriber(self):
        return Thinking(self)


class Thinking(FakeTranscriber):
    def pause(self):
        self._asr.pauses += 1
        return Partial("", self.partial().text + (" what" if self._asr.wrong(self._asr.pauses) else ""))


class Lingering(SecondThoughts):
    """Its detector hears speech for three blocks after the last, as they do."""

    def detector(self):
        return LateDetector()


class LateDetector(FakeDetector):
    def push(self, pcm, played=None, raised=False):
        return [replace(block, probability=self.late(block.probability)) for block in super().push(pcm, played)]

    def late(self, probability):
        self.left = 3 if probability > 0.5 else self.left - 1
        return max(probability, 0.9 * (self.left >= 0))

    def reset(self):
        super().reset()
        self.left = 0


class Slow(FakeTranscriber):
    """The first words are stable at once."""

    def partial(self, now=False):
        words = super().partial().text.split()
        return Partial("".join(f"{word} " for word in words[:-1]), " ".join(words[-1:]))


class Hall(FakeEars):
    def transcriber(self):
        return Slow(self)


class Trailing(FakeEars):
    """Every utterance ends in 160 ms that are soft, and speech to the detector still."""

    def spoken(self, text, seconds):
        sound = super().spoken(text, seconds)
        return np.concatenate([sound, np.full(2560, 0.002, np.float32)])

    def detector(self):
        return Keen()


class Keen(FakeDetector):
    def push(self, pcm, played=None, raised=False):
        return [replace(block, probability=float(np.mean(np.abs(block.sound) > 0.001))) for block in super().push(pcm)]


class Soft(Trailing):
    """They write a word for a soft end that they were given, and read anew what they have 300 ms more of."""

    def __init__(self, wrong=lambda pause: False):
        super().__init__()

    def transcriber(self):
        return Unhurried(self)


class Unhurried(FakeTranscriber):
    def push(self, pcm):
        super().push(pcm)
        self.new += pcm.size
        self.soft += int(np.count_nonzero((pcm > 0.001) & (pcm < 0.1)))

    def partial(self, now=False):
        if now or self.new >= 4800:
            words = super().partial().text
            self.latest, self.new = Partial("", words + " softly" * (self.soft > 1600)), 0
        return self.latest

    def pause(self):
        return self.partial(now=True)

    def final(self):
        text = self.partial(now=True).text
        return replace(super().final(), text=text)

    def reset(self):
        super().reset()
        self.latest, self.new, self.soft = Partial(), 0, 0


class Hasty(Trailing):
    """They miss the last word where the voice falls."""

    def transcriber(self):
        return Missing(self)


class Missing(FakeTranscriber):
    def partial(self, now=False):
        words = super().partial().text.split()
        return Partial("", " ".join(words[: len(words) - now]))


def household():
    """A tool that reads what is kept, and one that changes it."""
    registry = ToolRegistry(kept=Kept())

    async def look() -> str:
        "What is on the list."
        return ", ".join(row.text for row in registry.kept.things("list shopping")) or "nothing"

    async def put() -> str:
        "Put a thing on the list."
        registry.kept.add("list shopping", f"thing {len(registry.kept.things('list shopping')) + 1}")
        return "done"

    registry.tool(look, reads=True)
    registry.tool(put)
    return registry


def clerk(prompt):
    """Reads the list, writes on it, calls the client, or echoes."""
    asked = next((line.text for line in reversed(prompt.lines) if line.role == "user"), "")
    if prompt.lines and prompt.lines[-1].role == "tool":
        return [f"It says {prompt.lines[-1].text}."]
    for tool in ("look", "put", "theirs"):
        if tool in asked:
            return [(tool, {})]
    return [f"You said {asked}."]


def told(world):
    """The log without times, ids as they come: what no front could tell apart."""
    known = {}

    def renamed(match):
        return known.setdefault(match[0], f"{match[1]}#{len(known)}")

    rows = []
    for got in world.log:
        event = got.event
        if isinstance(event, TimelineReady):
            continue
        if isinstance(event, ToolUsed):
            event = replace(event, ms=0.0)
        if isinstance(event, ResponseDone):
            event = replace(event, timeline=None)
        rows.append(re.sub(r"(item|resp|conv)_\d+", renamed, repr(event)))
    return rows


def left(world, session):
    """What the talk and its models hold in the end."""
    talk, kept = session.talk, list(session._context.view.kept.words)
    texts = [(type(item).__name__, getattr(item, "role", ""), getattr(item, "content", "")) for item in session.items]
    said = [samples for _, samples in world.tts.said.get(talk, [])]
    return texts, world.llm.folded.get(talk), said, kept


def both(*steps, until=8.0, ears=FakeEars, complete=None, **options):
    """The same talk with and without candidates."""
    worlds = []
    for candidates in (True, False):
        world = World(candidates=candidates, **options)
        world.asr = ears()
        world.llm.complete = complete
        world.talks._services = replace(
            world.talks._services, engines=replace(world.talks._services.engines, asr=world.asr)
        )
        worlds.append((world, world.play(*steps, until=until)))
    return worlds


def outcomes(world):
    found = world.talks.metrics.candidates.collect()[0].samples
    return {row.labels["outcome"]: row.value for row in found if row.name.endswith("_total")}


def test_the_first_sound_leaves_in_the_moment_in_which_the_turn_is_certain():
    (world, session), (plain, plain_session) = both(*ONE_TURN)
    assert world.when(AudioCommitted) == plain.when(AudioCommitted) == [2.02]
    assert world.when(AudioDelta)[0] == 2.02 and plain.when(AudioDelta)[0] == pytest.approx(2.13)
    assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)
    [ready] = world.of(TimelineReady)
    figures = ready.timeline.figures
    assert figures["ttfa_ms"] == 0.0 and "candidates_dropped" not in figures
    # the models take 110 ms from the pause to the first sound
    assert figures["candidate_begun_ms"] > 300
    assert figures["candidate_ready_ms"] == pytest.approx(figures["candidate_begun_ms"] - 110)
    assert sum(part.ms for part in ready.timeline.parts) == pytest.approx(figures["voice_to_voice_ms"])
    assert outcomes(world) == {"released": 1.0}


def test_nobody_is_told_of_a_candidate_and_one_that_is_late_is_no_later_than_none():
    slow = {"speed": 0.25}  # the voice needs 400 ms for its first sound
    (world, session), (plain, plain_session) = both(*ONE_TURN, until=20, **slow)
    early = [[(got.at, got.event) for got in one.log if got.at < 2.02] for one in (world, plain)]
    assert early[0] == early[1]
    assert world.when(AudioDelta)[0] < plain.when(AudioDelta)[0]
    assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)
    figures = world.of(TimelineReady)[0].timeline.figures
    assert figures["candidate_begun_ms"] > 300 and "candidate_ready_ms" not in figures
    assert outcomes(world) == {"late": 1.0}


def test_who_goes_on_is_answered_as_if_nothing_had_been_guessed():
    speech = ((0.5, ("what time", 0.6)), (1.5, ("is it", 0.6)), (2.45, ("now", 0.3)))
    (world, session), (plain, plain_session) = both(*speech)
    assert [event.transcript for event in world.of(TranscriptCompleted)] == ["what time is it now"]
    assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)
    certain = world.when(AudioCommitted)[0]
    early = [[(got.at, got.event) for got in one.log if got.at < certain] for one in (world, plain)]
    assert early[0] == early[1]
    assert outcomes(world) == {"dropped": 2.0, "released": 1.0}
    figures = world.of(TimelineReady)[0].timeline.figures
    assert figures["candidates_dropped"] == 2 and figures["wasted_ms"] > 0
    assert world.talks.metrics.wasted_ms._value.get() == figures["wasted_ms"]


def test_other_words_than_those_that_were_guessed_are_answered():
    (world, session), (plain, plain_session) = both(*ONE_TURN, ears=SecondThoughts)
    assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)
    assert outcomes(world) == {"dropped": 1.0}
    assert world.when(AudioDelta)[0] == plain.when(AudioDelta)[0]


def test_a_tool_that_reads_runs_and_one_that_does_not_waits():
    options = {"answers": clerk, "tools": household}
    for words, sounds_at in (("please look", 2.02), ("please put", None)):
        (world, session), (plain, plain_session) = both((0.5, (words, 1.0)), **options)
        assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)
        certain = world.when(AudioCommitted)[0]
        assert world.when(ToolUsed)[0] >= certain
        if sounds_at is not None:
            assert world.when(AudioDelta)[0] == certain
        else:
            assert certain < world.when(AudioDelta)[0] < plain.when(AudioDelta)[0]


def test_a_reply_begins_when_the_voice_falls_before_there_is_silence():
    options = {"settings": Settings(persona="ada", turn_detection=SemanticVad())}
    (world, session), (plain, plain_session) = both(*ONE_TURN, ears=Trailing, complete=0.9, **options)
    assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)
    assert world.when(AudioCommitted) == plain.when(AudioCommitted)
    ended = 0.5 + 1.0 + 0.16  # speech, the soft end of it with it
    begun = world.when(AudioCommitted)[0] - world.of(TimelineReady)[0].timeline.figures["candidate_begun_ms"] / 1000
    assert begun < ended and outcomes(world) == {"released": 1.0}


def test_who_only_let_the_voice_fall_is_answered_as_if_nothing_had_been_guessed():
    speech = ((0.5, ("what time", 0.6)), (1.27, ("is it", 0.6)))  # goes on within ten milliseconds of the soft end
    options = {"settings": Settings(persona="ada", turn_detection=SemanticVad())}
    (world, session), (plain, plain_session) = both(*speech, ears=Trailing, complete=0.9, **options)
    assert [event.transcript for event in world.of(TranscriptCompleted)] == ["what time is it"]
    assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)
    assert outcomes(world) == {"dropped": 1.0, "released": 1.0}


@pytest.mark.parametrize("again_at", [1.24, 1.3, 1.6], ids=["in the soft end", "after it", "after a pause"])
def test_what_is_read_where_the_voice_falls_tells_nobody_of_candidates(again_at):
    """What ears were given and when they read is the same with and without, so is all that they write later."""
    options = {"settings": Settings(persona="ada", turn_detection=SemanticVad())}
    speech = ((0.5, ("what time", 0.6)), (again_at, ("is it then", 0.5)))
    (world, session), (plain, plain_session) = both(*speech, ears=Soft, complete=0.03, **options)
    assert "dropped" in outcomes(world) and outcomes(plain) == {}
    assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)


def test_what_is_read_otherwise_at_the_pause_than_where_the_voice_fell_is_answered():
    options = {"settings": Settings(persona="ada", turn_detection=SemanticVad())}
    (world, session), (plain, plain_session) = both(*ONE_TURN, ears=Hasty, complete=0.9, **options)
    assert [event.transcript for event in world.of(TranscriptCompleted)] == ["hello there friend"]
    assert outcomes(world) == {"dropped": 1.0, "late": 1.0}
    assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)


@pytest.mark.parametrize("candidates", [True, False])
def test_a_commit_by_hand_keeps_what_was_said_since_the_voice_fell(candidates):
    settings, ears = Settings(persona="ada", turn_detection=SemanticVad()), Soft()
    world = World(settings=settings, candidates=candidates, asr=ears)
    world.asr = ears
    world.play((0.5, ("hello there", 1.0)), (1.657, CommitAudio()), until=6)
    assert [event.transcript for event in world.of(TranscriptCompleted)] == ["hello there softly"]


def test_what_a_tool_would_have_changed_is_not_changed_by_who_goes_on():
    speech = ((0.5, ("please put", 0.6)), (1.5, ("nothing on it", 0.6)))
    for candidates in (True, False):
        world = World(lambda prompt: clerk(prompt) if prompt.lines[-1].text == "please put" else ["Fine."],
                      tools=household, candidates=candidates)  # fmt: skip
        session = world.play(*speech, until=8)
        assert not [*session._context.view.kept.words] and world.of(ToolUsed) == []


def test_a_call_for_the_client_waits():
    options = {"answers": clerk, "settings": Settings(persona="ada", tools=(ToolSpec("theirs"),))}
    (world, _), (plain, _) = both((0.5, ("ask theirs now", 1.0)), **options)
    assert told(world) == told(plain) and world.when(CallDone)[0] >= world.when(AudioCommitted)[0]


@pytest.mark.parametrize(("words", "complete"), [("hello there", 0.9), ("hello there", 0.0), ("remind me to um", 0.9)])
def test_none_is_begun_behind_words_that_sound_unfinished(words, complete):
    world = World(settings=Settings(persona="ada", turn_detection=SemanticVad()))
    world.llm.complete = complete
    world.play((0.5, (words, 1.0)), until=6)
    assert outcomes(world) == ({"released": 1.0} if words == "hello there" and complete == 0.9 else {})


def test_none_is_made_where_it_could_not_be_taken_back_or_will_not_be_wanted():
    remote = World()
    remote.llm.state = None
    silent = World(settings=Settings(persona="ada", turn_detection=ServerVad(create_response=False)))
    for world, answers in ((remote, 1), (silent, 0)):
        world.talks = type(world.talks)(world.talks._services, settings=world.talks.defaults)
        world.play(*ONE_TURN, until=6)
        assert len(world.of(ResponseCreated)) == answers and outcomes(world) == {}


def test_a_command_that_changes_the_talk_drops_it():
    typed = CreateItem(Message("typed", "user", (TextPart("wait"),)))
    (world, session), (plain, plain_session) = both(*ONE_TURN, (1.8, typed))
    assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)
    assert outcomes(world) == {"dropped": 1.0}


def test_one_that_the_turn_overtakes_while_the_state_is_synced_never_begins():
    logs = []
    for candidates in (True, False):
        world = World(candidates=candidates)
        sync = world.llm.sync

        async def slowly(talk, prompt, sync=sync):
            await asyncio.sleep(1.0)
            return await sync(talk, prompt)

        world.llm.sync = slowly
        session = world.play(*ONE_TURN, (5.0, ("how are you", 1.0)), (5.9, Undo(1)), until=12)
        assert len(world.of(ResponseDone)) == 2 and not world.of(Error)
        logs.append((told(world), left(world, session)))
    assert logs[0] == logs[1]


def test_what_a_command_asks_of_the_models_comes_behind_what_is_taken_back():
    world = World()
    world.play((4.0, ("count", 0.25)), (4.5, SwitchPersona("ada")), until=12)
    assert world.llm._guesses == {} == world.tts._guesses and "dropped" in outcomes(world)
    assert [done.response.status for done in world.of(ResponseDone)] == ["completed"]


def test_a_turn_is_reopened_when_what_was_guessed_behind_its_answer_is_dropped():
    """A short answer is over; more sound comes and adds no word, so a reply to the same words is begun behind it."""
    speech = ((0.5, ("hello there friend", 1.0)), (2.2, ("", 0.15)))
    options = {"answers": lambda prompt: ["Fine."], "settings": Settings(persona="ada", turn_detection=SemanticVad())}
    (world, session), (plain, plain_session) = both(*speech, complete=1.0, **options)
    assert len(world.of(ItemDeleted)) == 2 and outcomes(world) == {"released": 1.0, "dropped": 1.0}
    assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)
    assert world.llm._guesses == {} == world.tts._guesses


def test_a_session_that_ends_takes_its_candidate_back():
    for end in (1.70, 1.75, 1.85, 2.0):
        world = World()
        session = world.play(*ONE_TURN, until=end)
        assert world.llm.folded == {} and world.tts.said == {} and len(session.conversation) == 0
        assert world.llm._guesses == {} == world.tts._guesses


def test_a_model_that_fails_in_private_fails_nobody():
    world = World()
    world.tts.fail_on = "said"
    world.on_event = lambda session, event: setattr(world.tts, "fail_on", None) or ()
    world.play((0.5, ("hello", 0.3)), until=6)
    assert [done.response.status for done in world.of(ResponseDone)] == ["completed"] and not world.of(Error)


def test_stable_words_are_folded_while_they_are_said():
    (world, session), (plain, plain_session) = both((0.5, ("my name is ada lovelace", 2.0)), ears=Hall)
    assert len(world.llm.heard) >= 3 and plain.llm.heard == []
    assert all("my name is ada lovelace".startswith(words.lower()) for words in world.llm.heard)
    assert told(world) == told(plain) and left(world, session) == left(plain, plain_session)


WORDS = ("hello there", "please look", "please put", "ask theirs", "one two three")
COMMANDS = st.sampled_from([
    CancelResponse(), CreateItem(Message("typed", "user", (TextPart("wait"),))), ClearAudio(), CommitAudio(), Undo(1),
    CreateResponse(), UpdateSettings(Settings(persona="ben", turn_detection=ServerVad(silence_duration_ms=400))),
    UpdateSettings(Settings(persona="ada", turn_detection=ServerVad(create_response=False))),
])  # fmt: skip
TURN = st.tuples(
    st.lists(st.tuples(st.sampled_from(WORDS), st.floats(0.2, 0.8), st.floats(0.17, 0.36)), min_size=1, max_size=4),
    st.none() | st.tuples(COMMANDS, st.floats(0.0, 1.0)),
)


EARS = [SecondThoughts, Lingering, Soft]


def between_blocks(at):
    """7 ms behind a block of sound: the fakes work in steps of 10 ms, so nothing that comes of it meets a block."""
    return round(BLOCK_S * round(at / BLOCK_S) + 0.007, 3)


@settings(max_examples=40, deadline=None)
@given(st.lists(TURN, min_size=1, max_size=3), st.integers(0, 2**30), st.sampled_from(EARS))
@example([([("hello there", 0.5, 0.23), ("hello there", 0.4, 0.17), ("hello there", 0.22, 0.25)], None)], 0, Lingering)
def test_in_whatever_order_pauses_revisions_releases_and_cancels_come(turns, revised, ears):
    """A talk with candidates tells its front, keeps and folds what one without does; only sooner.

    A command comes between two blocks of sound and never in the very moment of one. What is done of the two in one
    moment is done by tasks that do not wait for each other, and a drop, as any work of the models, lets the others have
    their turn: which is first is no part of the law, here as on a machine.
    """
    steps, at = [], 0.5
    for chunks, command in turns:
        begin = at
        for words, seconds, pause in chunks:
            steps.append((round(at, 3), (words, round(seconds, 3))))
            at += seconds + pause
        if command is not None:  # while the user has the word, when no reply is being made in either talk
            last = chunks[-1][2]
            steps.append((between_blocks(begin + command[1] * (at - last - begin)), command[0]))
        at += 9.0
    options = {"answers": clerk, "tools": household, "until": at + 4}
    if ears is not SecondThoughts:  # words that are perhaps complete: a reply is begun, and no turn ends within a pause
        options |= {"complete": 0.02, "settings": Settings(persona="ada", turn_detection=SemanticVad())}
    worlds = both(*steps, ears=lambda: ears(lambda pause: revised >> (pause % 30) & 1), **options)
    (world, session), (plain, plain_session) = worlds
    assert told(world) == told(plain)
    assert left(world, session) == left(plain, plain_session)
    assert world.llm._guesses == {} == world.tts._guesses
    for got in world.log:
        assert not isinstance(got.event, SpokenText | AudioDelta) or got.at >= world.when(ResponseCreated)[0]
