"""What a small model may say where it calls nothing follows from the words that were said."""

import pytest

from assistant.contracts import Line
from assistant.llm.known_replies import (
    AFTER_THEM,
    AS_FAST,
    AS_LOUD,
    CAN_PUT,
    EMERGENCY,
    ENGLISH_ONLY,
    NO_DOCTOR,
    NO_WRITER,
    OFF,
    SAID_BACK,
    SORRY,
    STORIES,
    UNTOLD,
    WILL,
    Sayable,
    what_may_be_said,
)


def said_to(*said, tools=True):
    return what_may_be_said([Line(("user", "assistant")[at % 2], text) for at, text in enumerate(said)], tools)


@pytest.mark.parametrize(
    ("asked", "only"),
    [
        ("I think my father is having a heart attack!", EMERGENCY),
        ("do you speak Dutch", ENGLISH_ONLY),
        ("how do I say thank you in Welsh?", ENGLISH_ONLY),
        ("is Italian hard to learn", ENGLISH_ONLY),
        ("my Polish homework needs translating", ENGLISH_ONLY),
        ("what helps with back pain", NO_DOCTOR),
        ("finish my sentence", NO_WRITER.format("finish your sentence")),
        ("could you proofread this paragraph", NO_WRITER.format("proofread this paragraph")),
        ("any remedy for a hangover", NO_DOCTOR),
        ("should I take an aspirin", NO_DOCTOR),
        ("can you speak up", AS_LOUD),
        ("you are too fast for me", AS_FAST),
        ("remind me to take an aspirin", ""),
        ("am I too quiet", ""),
        ("is a train faster than a car", ""),
        ("add French beans to the list", ""),
        ("go dutch on 43 between 82", ""),
        ("tell me about the French revolution", ""),
        ("what was my medicine called", ""),
        ("write a note about the speech", ""),
        ("my medicine is on the shelf", ""),
        ("hello", ""),
    ],
)
def test_the_only_reply_is_known_where_there_is_one(asked, only):
    assert said_to(asked).only == only


@pytest.mark.parametrize(
    ("asked", "begins", "barred"),
    [
        ("I'd like to understand gaspards", AFTER_THEM, True),
        ("repeat after me: gaspards", AFTER_THEM, False),
        ("shorten the thing", SAID_BACK, True),
        ("what did I say", SAID_BACK, False),
        ("rewrite it", UNTOLD, True),
        ("where do I live", UNTOLD, False),
        ("when did the war end", WILL, True),
        ("fill me in on gaspards", WILL, True),
        ("connect me with Joyce", WILL, True),
        ("what was that again", WILL, False),
        ("where I live is Panama", WILL, False),
        ("lock this in my word is gaspard", WILL, False),
        ("my dog is a poodle", WILL, False),
        ("I am writing about sorrow", SORRY, True),
        ("my dog died", SORRY, False),
        ("cook us lunch", CAN_PUT, True),
        ("we need lunch", CAN_PUT, False),
        ("what's the lead story this morning", STORIES[0], True),
        ("tell me about a frog", STORIES[0], False),
    ],
)
def test_no_reply_begins_as_it_cannot_be_meant(asked, begins, barred):
    assert (begins in said_to(asked).unmeant) is barred


def test_what_was_told_is_no_medicine():
    assert said_to("what is my tablet").only == NO_DOCTOR
    assert said_to("my tablet is defino", "I will remember that.", "what is my tablet").only == ""


def test_what_was_said_after_somebody_may_be_put_right_in_the_next_line():
    assert AFTER_THEM not in said_to("say gaspards", "I say: gaspards.", "no it is gasparos").unmeant
    assert AFTER_THEM in said_to("hello", "Hello! How can I help you?", "no it is gasparos").unmeant


def test_tools_are_switched_off_only_where_there_are_none():
    assert OFF in said_to("flip a coin").unmeant
    assert OFF not in said_to("flip a coin", tools=False).unmeant
    assert OFF in said_to("define entropy", tools=False).unmeant


def test_a_refusal_names_words_that_were_said_in_a_row_and_says_them_back():
    sayable = said_to("who built my old stone bridge")
    assert "I am too small to know about the bridge. A larger model could tell you." not in sayable.refusals()
    for thing in ("your old stone bridge", "stone bridge", "bridge"):
        assert f"I am too small to know about {thing}. A larger model could tell you." in sayable.refusals()
        assert f"I cannot look up {thing}, because I do not go online." in sayable.refusals()
    assert not any(" about who" in refusal for refusal in sayable.refusals())
    assert "I cannot clean your bath," in said_to("clean my bath").cannot()
    assert "I cannot write a speech," in said_to("I want a speech").cannot()


def test_a_thing_that_is_named_is_named_in_the_refusal():
    nameless = "I am too small to know that"
    assert nameless in said_to("do you believe in ghosts").unmeant
    assert nameless in said_to("how much tax do I pay").unmeant
    assert nameless not in said_to("why do we exist").unmeant


def test_a_refusal_may_be_said_again():
    refusal = "I am too small to know about Rome. A larger model could tell you."
    assert refusal in said_to("where is Rome", refusal, "say that again").refusals()


def test_nothing_is_held_where_the_last_line_is_not_the_users():
    assert said_to("hello", "Hello!") == said_to() == Sayable()


@pytest.mark.parametrize(
    "again", ["say that again", "Sorry, I didn't catch that.", "the kids were loud, say it again louder"]
)
def test_the_last_reply_is_said_again_unless_it_was_broken_off(again):
    assert said_to("what is 2 and 3", "2 plus 3 is 5.", again).only == "2 plus 3 is 5."
    assert said_to("count", "1, 2, 3", again).only == ""
    assert said_to(again).only == ""
    assert said_to("hello", "Hello!", f"{again} in Dutch").only != "Hello!"


@pytest.mark.parametrize(
    "asked", ["what was that number", "how do I say again in a letter", "repeat that song", "what is that"]
)
def test_what_only_looks_like_it_is_not_the_last_reply(asked):
    assert said_to("hello", "Hello!", asked).only == ""
