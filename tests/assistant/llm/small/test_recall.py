"""The line that tells what is asked for, by the words that both share, the latest of equal ones."""

import random

import pytest

from assistant.contracts import Line, ToolCall
from assistant.llm.small.recall import KEPT, Recall, what_was_told


def told(*said, replies=()):
    """`said` are the user's lines; replies are `I will remember that.` where none is given."""
    lines = []
    for at, text in enumerate(said):
        lines.append(Line("user", text))
        if at < len(said) - 1:
            lines.append(Line("assistant", replies[at] if at < len(replies) else KEPT))
    return what_was_told(lines)


@pytest.mark.parametrize(
    ("tells", "asks"),
    [
        ("my locker number is 48", "what is my locker number"),
        ("my cat's name is Felix", "what's my cat called"),
        ("i park on level 3", "where did i say i park"),
        ("my train leaves at 7:30", "when does my train leave"),
        ("make a note the mower takes 10w30", "which oil does my mower take"),
        ("the rent is due on the fifth", "when is rent due"),
        ("i left my umbrella in the truck", "where's my umbrella"),
        ("the wifi password is walrus 92", "can you give me the wifi password please"),
        ("i parked on level 3 near the elevators", "where did i park"),
        ("they are moving to ghent in june", "where did they move"),
        ("she married a guy from leeds", "where did she marry"),
        ("the bus stopped at the harbor", "where does the bus stop"),
    ],
)
def test_the_line_that_tells_is_found_by_its_words_in_any_form(tells, asks):
    assert told("what time is it", tells, "tell me a joke", asks).nearest == f"You said: {tells}."


@pytest.mark.parametrize(
    ("tells", "asks"),
    [
        ("my locker number is 48", "what is my shoe size"),
        ("i park on level 3", "tell me a joke"),
        ("my gate is 4", "what about it"),
    ],
)
def test_a_line_that_shares_too_little_is_not_near(tells, asks):
    assert not told(tells, asks).nearest


def test_a_line_that_was_done_or_asked_tells_nothing():
    call = Line("assistant", "", (ToolCall("1", "set_timer", "{}"),))
    asks = Line("user", "when does my train leave")
    assert not what_was_told([Line("user", "set a timer for the train"), call, asks]).nearest
    assert not told("when is my train", "when does my train leave", replies=["I cannot."]).nearest
    noted = Line("assistant", "", (ToolCall("1", "note_add", "{}"),))
    assert what_was_told([Line("user", "note that my train leaves at 5"), noted, asks]).nearest


def test_what_was_told_last_counts():
    assert told("my gate is 4", "my gate is 9 now", "what is my gate").nearest == "You said: my gate is 9 now."


def test_every_line_may_be_repeated_and_nothing_where_the_last_is_not_the_users():
    assert told("how late is it?", "and now", "what did i say").said == (
        "You said: how late is it.",
        "You said: and now.",
    )
    assert what_was_told([]) == what_was_told([Line("user", "my gate is 4"), Line("assistant", "Noted.")]) == Recall()


def test_no_talk_is_too_odd():
    rng = random.Random(5)
    words = ["my", "mine", "of", "is", "gate", "", "?!", "x" * 300, "7:30", "it's", "Ä", "name's"]
    for _ in range(300):
        found = told(*(" ".join(rng.choices(words, k=rng.randint(0, 40))) for _ in range(rng.randint(1, 5))))
        assert all(text.startswith("You said:") and text.endswith(".") for text in found.said)
        assert found.nearest in ("", *found.said)
