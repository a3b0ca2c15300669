"""Practised talks hold any exchange behind a broken reply, and a score counts what is answered as without one."""

import itertools
import random
import re

import pytest

from recipes.chatml import call_text
from recipes.interrupted import HERE, as_without, requests
from recipes.texts import smalltalk
from recipes.texts.phrases import PHRASES
from recipes.texts.scene import Scene, Talk, Unusable, wordings
from recipes.texts.scenes_interrupted import left_of
from recipes.texts.scenes_time import several
from recipes.texts.scenes_written_talks import written_talk
from recipes.texts.talks import make_talk
from recipes.texts.tools import TOOL_NAMES


@pytest.fixture(scope="module")
def practised() -> list[Talk]:
    rng = random.Random(49)
    made = [make_talk(rng, scenes=2, practice=True) for _ in range(700)]
    return made + [written_talk(rng, practice=True) for _ in range(100)]


def test_behind_a_broken_reply_anything_may_be_wanted(practised: list[Talk]) -> None:
    behind = [
        after
        for talk in practised
        for broken, _, after in zip(talk.turns, talk.turns[1:], talk.turns[2:], strict=False)
        if broken.cut
    ]
    called = {after.call[0] for after in behind if after.call}
    assert len(called) > 0.6 * len(TOOL_NAMES), called
    kinds = {after.kind for after in behind}
    assert {"go on counting", "story taken up", "count", "refusal", "small talk", "stop"} <= kinds
    assert sum(bool(after.call) for after in behind) > 0.3 * len(behind)


def test_practised_talks_take_turns(practised: list[Talk]) -> None:
    for talk in practised:
        assert talk.turns[0].role == "user"
        for turn, after in itertools.pairwise(talk.turns):
            assert turn.text or turn.call
            assert (after.role == "tool") == bool(turn.call)
            assert after.role != "assistant" or turn.role in ("user", "tool")


def test_a_sentence_that_was_begun_is_said_again() -> None:
    whole = "It was dark. Who is there? Nobody."
    assert left_of(whole, 1) == left_of(whole, 2) == whole
    assert left_of(whole, 3) == left_of(whole, 5) == "Who is there? Nobody."
    assert left_of(whole, 6) == left_of(whole, 7) == "Nobody."


def test_three_and_more_are_counted_and_all_read_out() -> None:
    rng, seen = random.Random(3), set[int]()
    for _ in range(60):
        scene = Scene(rng, "train")
        try:
            several(scene)
        except Unusable:
            continue
        result, said = scene.turns[-2].text.split("; "), scene.turns[-1].text
        seen.add(len(result))
        if counted := re.match(r"You have (\w+) (?:timer|alarm)s: (.*)\.$", said):
            assert counted[1] in ("three", "four", str(len(result)))
            assert {"three": 3, "four": 4}.get(counted[1], len(result)) == len(result)
            assert counted[2].replace("; and ", "; ").split("; ") == result
        else:
            assert said.count("; and to ") == len(result) - 1
    assert seen >= {3, 4, 5, 6}


def test_a_reply_is_as_without_if_the_call_or_the_words_are() -> None:
    spelt = call_text("spell", {"word": "window"})
    assert as_without(spelt, spelt)
    assert not as_without(spelt, call_text("spell", {"word": "widow"}))
    assert not as_without(spelt, "13, 14, 15.") and not as_without("All right.", spelt)
    assert as_without("All right.", "Okay.") and not as_without("Good night. Sleep well.", "Okay.")
    assert as_without(smalltalk.JOKES[0], smalltalk.JOKES[-1])
    assert not as_without(smalltalk.JOKES[0], smalltalk.POEMS[0])
    assert as_without("Once upon a time, a fox lived.", "There once was a dog.")


@pytest.mark.parametrize("name", ["interrupted.txt", "interrupted_second.txt"])
def test_no_text_has_the_requests_behind_an_interruption(name: str) -> None:
    _, others = requests(HERE.with_name(name))
    phrased = [*PHRASES.values(), *(lines for pairs in smalltalk.ALL for lines, _ in pairs)]
    taught = {wording for lines in phrased for line in lines for wording in wordings(line)}
    assert len(others) >= 200 and not taught & set(others)
