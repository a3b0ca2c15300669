"""Spoken numbers to digits: every number comes back, times and sums read as people write them, the rest is left."""

import random

import pytest

from assistant.text.numbers import digits
from recipes.texts.words import dictionary, spoken_number


@pytest.mark.parametrize("joiner", [" and ", " "])
def test_every_number_comes_back(joiner: str) -> None:
    numbers = [n for n in range(2500) if n != 1] + random.Random(5).sample(range(2500, 1_000_000), 500)
    wrong = [n for n in numbers if digits(spoken_number(n, joiner)) != str(n)]
    assert wrong == []


@pytest.mark.parametrize("hour", range(1, 13))
def test_every_minute_of_the_day_comes_back(hour: int) -> None:
    for minute in range(60):
        said = spoken_number(minute) if minute > 9 else f"oh {spoken_number(minute)}"
        spoken = f"wake me up at {spoken_number(hour)} {said if minute else '''o'clock'''}"
        assert digits(spoken) == f"wake me up at {hour}:{minute:02d}"
        assert digits(f"{spoken} p m") == f"wake me up at {hour}:{minute:02d} pm"
        assert digits(f"{spoken} in the morning") == f"wake me up at {hour}:{minute:02d} am"


@pytest.mark.parametrize(
    ("spoken", "written"),
    [
        ("set a timer for five minutes", "set a timer for 5 minutes"),
        ("what is twelve times eight", "what is 12 * 8"),
        ("wake me up at half past six", "wake me up at 6:30"),
        ("at quarter to one", "at 12:45"),
        ("at ten to seven", "at 6:50"),
        ("ten past five", "5:10"),
        ("an hour and a half", "1 hour 30 minutes"),
        ("two and a half hours", "2 hours 30 minutes"),
        ("one hour and ten minutes", "1 hour 10 minutes"),
        ("half an hour", "30 minutes"),
        ("fifteen percent of eighty", "15% of 80"),
        ("three point one four times two", "3.14 * 2"),
        ("what is minus five plus three", "what is -5 + 3"),
        ("five squared", "5^2"),
        ("two to the power of ten", "2^10"),
        ("twenty twenty six", "2026"),
        ("nineteen eighty four", "1984"),
        ("count from one to ten", "count from 1 to 10"),
        ("count backwards from ten to one", "count backwards from 10 to 1"),
        ("ten nine eight", "10 9 8"),
        ("five five five one two", "5 5 5 1 2"),
        ("november the twentieth", "november 20"),
        ("the twenty fifth of december", "december 25"),
        ("eight at night", "8:00 pm"),
        ("a dozen eggs", "12 eggs"),
        ("What is twenty-five plus thirty, please?", "What is 25 + 30, please?"),
    ],
)
def test_as_people_write_it(spoken: str, written: str) -> None:
    assert digits(spoken) == written
    assert digits(written) == written


@pytest.mark.parametrize(
    "text",
    ["tell me another one", "no one knows", "the first one is good", "one more time", "wait a minute",
     "the second story", "a minute ago", "at noon", "", "set a timer for 5 minutes at 7:30", "that one", "hundred"],
)  # fmt: skip
def test_what_is_no_number_stays(text: str) -> None:
    assert digits(text) == text


def test_other_words_are_never_touched() -> None:
    numbers = set(" ".join(map(spoken_number, range(101))).split()) | {"hundred", "thousand", "million", "billion"}
    rng = random.Random(2)
    plain = [word for word in dictionary("test") if word not in numbers]
    for _ in range(300):
        line = " ".join(rng.sample(plain, 6))
        assert digits(line) == line


def test_a_text_of_any_length_is_read_in_one_pass(monkeypatch):
    read = []
    monkeypatch.setattr("assistant.text.numbers._plain", lambda word: read.append(word) or word.lower())
    text = "why twenty two " * 200
    assert digits(text) == ("why 22 " * 200).strip()
    assert len(read) <= 3 * len(text.split())
