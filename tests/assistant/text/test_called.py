"""A name at the beginning of what was said, however the ears spell it."""

import pytest

from assistant.text.called import called_name, sounds_like, without_name

NAMES = ("Ada", "Ben", "Okay Nabu", "Hey Jarvis")


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("Ada, what time is it?", "Ada", "What time is it?"),
        ("Aida set a timer", "Ada", "Set a timer"),
        ("Eta. Stop.", "Ada", "Stop."),
        ("hey ada what time is it", "Ada", "what time is it"),
        ("Okay, Ben, go on.", "Ben", "Go on."),
        ("Hey Jarvis, stop.", "Hey Jarvis", "Stop."),
        ("Ok, Nabu", "Okay Nabu", ""),
        ("Hi, Ada!", "Ada", ""),
        ("A. Ben. Stop", "Ben", "Stop"),
        ("Hallo Ada, wie spät ist es?", "Ada", "Wie spät ist es?"),
    ],
)
def test_a_name_that_begins_a_sentence(text: str, name: str, rest: str) -> None:
    assert called_name(text, NAMES) == (name, rest)
    assert without_name(text, name) == rest


@pytest.mark.parametrize(
    "text",
    ["", "Hey", "Add a timer.", "At a time like this", "Then stop.", "Oh well, Ada?", "I told Ben", "Adam is here."],
)
def test_anything_else_calls_nobody(text: str) -> None:
    assert called_name(text, NAMES) is None


def test_a_name_that_cannot_be_said_calls_nobody() -> None:
    assert called_name("Hey, what time is it?", ("…", "", "Ada")) is None


@pytest.mark.parametrize("text", ["Hey Jarvis.", "and hey, jarvis", "Hay Jervis what", "A jarvus"])
def test_what_may_have_been_a_wake_word(text: str) -> None:
    assert sounds_like(text, "Hey Jarvis")
    assert not sounds_like("or nearly, when the turn is", "Hey Jarvis") and not sounds_like("", "Hey Jarvis")


def test_a_pass_that_spells_the_name_oddly_does_not_show_it() -> None:
    assert without_name("Then, what time is it?", "Ben") == "What time is it?"
    assert without_name("Hey Bend stop", "Ben") == "Stop"
    assert without_name("What time is it?", "Ben") == "What time is it?"
    assert without_name("A", "Ada") == "A" and without_name("Ad", "Ada") == ""
