"""What may be said of what was told: by the words that tell and ask share, the latest that was told, and no other's."""

import random

import pytest

from assistant.contracts import Line
from assistant.llm.recall import Recall, what_was_told


def told(*said, replies=()):
    """`said` are the user's lines; replies are `I will remember that.` where none is given."""
    lines = []
    for at, text in enumerate(said):
        lines.append(Line("user", text))
        if at < len(said) - 1:
            lines.append(Line("assistant", replies[at] if at < len(replies) else "I will remember that."))
    return what_was_told(lines)


@pytest.mark.parametrize(
    ("tells", "asks", "reply"),
    [
        ("my locker number is 48", "what is my locker number", "Your locker number is 48."),
        ("my father in law is Sam", "who is my father in law again", "Your father in law is Sam."),
        ("on Thursday is my exam", "when was the exam i told you about", "Your exam is on Thursday."),
        ("blue heron is what my boat is called", "what was that boat of mine", "Your boat is blue heron."),
        ("my cat's name is Felix", "what's my cat called", "Your cat is called Felix."),
        ("my coach's name is Julia", "do you know my coach's name", "Your coach's name is Julia."),
        ("call my rabbit John", "what's my rabbit called", "Your rabbit is called John."),
    ],
)
def test_what_was_told_is_found_by_the_words_that_are_shared(tells, asks, reply):
    assert reply in told("what time is it", tells, "tell me a joke", asks).known


@pytest.mark.parametrize(
    ("tells", "asks"),
    [
        ("i park on level 3", "where did i say i park"),
        ("my train leaves at 7:30", "when does my train leave"),
        ("i'm allergic to nuts", "what am i allergic to"),
        ("make a note the mower takes 10w30", "which oil does my mower take"),
        ("the rent is due on the fifth", "when is rent due"),
        ("i left my umbrella in the truck", "where's my umbrella"),
    ],
)
def test_a_line_that_tells_otherwise_is_repeated(tells, asks):
    found = told("what time is it", tells, "set a timer for 5 minutes", asks)
    assert found.nearest == f"You said: {tells}." and not found.known


@pytest.mark.parametrize(
    ("tells", "asks"),
    [
        ("set a timer for the train", "when does my train leave"),  # an order tells nothing
        ("when is my train", "when does my train leave"),
        ("my locker number is 48", "what is my seat number"),
        ("i park on level 3", "tell me a joke"),
        ("i met the president", "who is the president of France"),
    ],
)
def test_a_line_that_tells_something_else_is_not(tells, asks):
    assert not told(tells, asks).nearest


def test_what_was_told_last_counts_and_what_was_asked_is_not_told():
    twice = ("my gate is 4", "my gate is 9 now", "what is my gate")
    assert "Your gate is 9." in told(*twice).known and "Your gate is 4." not in told(*twice).known
    asked = told("my gate is 4", "is my gate 7", "what is my gate", replies=["Yes.", "Your gate is 4."])
    assert "Your gate is 4." in asked.known and "Your gate is 7." not in asked.known


def test_of_two_things_the_one_with_more_of_the_words_is_meant():
    both = told("my seat is green", "my seat number is 12", "my seat is blue", "what is my seat number")
    assert "Your seat number is 12." in both.known and not any(text.startswith("Your seat is") for text in both.known)


def test_what_was_never_told_is_known_to_be_none():
    found = told("my gate is 4", "what is my ring size please")
    assert found.nothing and not found.known and "You have not told me your ring size." in found.unknown
    assert not told("my ring is silver", "what is my ring size").nothing
    for asks in ("what's my name", "what is my favorite color"):  # told without the word
        assert not told("i am Anna and i love blue", asks).nothing
    assert told("my name is Anna", "no it's Hanna", "what's my name").known == ()


def test_what_was_told_of_an_owner_is_not_told_of_what_is_theirs():
    assert not told("my son's called Bo", "what's my son's bus number").known
    assert "Your son is called Bo." in told("my son's called Bo", "who is my son").known


def test_what_was_said_may_be_repeated_as_a_whole():
    assert told("how late is it?", "and now", "what did i say").said == (
        "You said: how late is it.",
        "You said: and now.",
    )


def test_nothing_is_recalled_but_for_the_users_own_line():
    assert what_was_told([]) == what_was_told([Line("user", "my gate is 4"), Line("assistant", "Noted.")]) == Recall()
    weather = told("my gate is 4", "how is the gate")
    assert not weather.known and not weather.unknown


def test_no_talk_is_too_odd():
    rng = random.Random(5)
    words = ["my", "mine", "of", "is", "gate", "", "?!", "x" * 300, "7:30", "it's", "Ä", "name's"]
    for _ in range(300):
        found = told(*(" ".join(rng.choices(words, k=rng.randint(0, 40))) for _ in range(rng.randint(1, 5))))
        assert len(found.known) <= 400 and all(text.endswith(".") for text in (*found.known, *found.unknown))


@pytest.mark.parametrize(
    ("tells", "asks"),
    [
        ("my interview is with a woman named Helga", "what time is my interview"),
        ("my english class is very nice", "how much is my english class"),
        ("my landlord's a lady called Bernice", "what's my landlord's phone number"),
        ("i drive a little red honda", "what year is my honda"),
        ("my boss is a real piece of work", "what's my boss's name"),
    ],
)
def test_what_cannot_answer_is_not_given(tells, asks):
    found = told(tells, asks)
    assert not found.known and not found.nearest


def test_of_the_words_told_those_come_that_answer():
    found = told("my interview is with Helga at 2", "what time is my interview").known
    assert "Your interview is with Helga at 2." in found and "Your interview is with Helga." not in found
    found = told("my class is Monday in the library", "where is my class").known
    assert "Your class is Monday in the library." in found and "Your class is Monday." not in found


def test_a_change_told_in_other_words_stands_before_what_it_changes():
    found = told("my dentist appointment is Monday", "oh wait the dentist moved my appointment to Friday",
                 "what day is my dentist appointment")  # fmt: skip
    assert not found.known and found.nearest == "You said: oh wait the dentist moved my appointment to Friday."
    found = told("my dentist appointment is Monday", "the dentist likes my appointment on Friday",
                 "what day is my dentist appointment")  # fmt: skip
    assert "Your dentist appointment is Monday." in found.known


def test_words_about_oneself_are_no_name_of_somebody_else():
    assert not told("hi i'm Odette and this is my neighbor Frank", "what's my neighbor").known


@pytest.mark.parametrize(
    ("asks", "own"),
    [
        ("what instrument do i play", True),
        ("which song did we dance to", True),
        ("how many events do i have", False),  # of a calendar, not of what was told
        ("when am i free to meet Anthony", False),
        ("do i look like my mother", False),
        ("how long should i fast before the test", False),
        ("what do you play", False),
    ],
)
def test_what_only_memory_can_answer_is_asked_in_the_first_person(asks, own):
    assert told("i met the president", asks).own is own


def test_what_is_said_before_a_line_begins_makes_no_order_of_it():
    line = "okay uh the password up at the cabin is pinecone"
    assert told(line, "what's the cabin password dear").nearest == f"You said: {line}."
    assert not told("okay turn the lamp off", "which lamp", replies=["Okay."]).said


def test_what_was_kept_was_told_however_it_begins():
    line = "give me anything by austen and i'm happy"
    assert told(line, "who do i reread").said == (f"You said: {line}.",)
    assert not told(line, "who do i reread", replies=["I cannot do that."]).said


def test_which_thing_was_said_is_told_by_a_telling_and_what_was_said_first_by_any_line():
    asks, tells = "which shelf did i say the lamp was on", "the lamp is on shelf 3"
    said = told(asks, tells, asks, replies=["You have not told me yet.", "I will remember that."]).said
    assert said == (f"You said: {tells}.",)
    for meta in ("what did i say first", "how did this talk begin", "what was my opening line"):
        assert told("what time is it", tells, meta, replies=["It is 5 pm."]).said[0] == "You said: what time is it."


def test_whose_something_is_may_be_told_by_its_owner():
    line = "i left my charger at tiffany's house"
    assert told(line, "at whose house is my charger").nearest == f"You said: {line}."
    assert not told("it's my charger from the house", "at whose house is my charger").nearest


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("i parked on level 3 near the elevators", "where did i park"),
        ("they are moving to ghent in june", "where did they move"),
        ("she married a guy from leeds", "where did she marry"),
        ("the bus stopped at the harbor", "where does the bus stop"),
        ("we are selling the boat on sunday", "when do we sell the boat"),
    ],
)
def test_a_verb_is_asked_for_in_another_form_than_it_was_told(line, asks):
    line = line.replace("sunday", "Sunday")
    assert told(line, asks).nearest == f"You said: {line}."
