"""The words of the built-in tools: exact, since the small model was trained on them."""

import datetime as dt

import pytest

from assistant.tools import answers

FRIDAY = dt.date(2026, 11, 20)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("12 * 8", "96"), ("15% of 80", "12"), ("sqrt(81)", "9"), ("5^2", "25"), ("10 / 3", "3.33"), ("2 - 7", "-5"),
        ("-3 + 1", "-2"), ("1 / 1000", "0.001"), ("0.1 + 0.2", "0.3"), ("50%", "0.5"), ("0 * 5", "0"),
    ],
)  # fmt: skip
def test_arithmetic_is_said_with_as_many_digits_as_one_would_say(expression: str, result: str) -> None:
    assert answers.calculate(expression) == result


@pytest.mark.parametrize(
    "expression", ["1 / 0", "9^99^99", "__import__('os')", "sqrt(-1)", "", "1 +", "(" * 300, "x", "(-8)^0.5", "1e400"]
)
def test_what_cannot_be_calculated_is_refused_in_words(expression: str) -> None:
    with pytest.raises(answers.AnswerError):
        answers.calculate(expression)


@pytest.mark.parametrize(
    ("value", "unit", "to", "said"),
    [
        ("10", "miles", "kilometers", "10 miles is 16.09 kilometers"),
        ("1", "inch", "feet", "1 inch is 0.0833 feet"),
        ("20", "celsius", "fahrenheit", "20 degrees celsius is 68 degrees fahrenheit"),
        ("12", "inches", "feet", "12 inches is 1 foot"),
        ("1", "mph", "miles per hour", "1 mile per hour is 1 mile per hour"),
    ],
)
def test_conversion(value: str, unit: str, to: str, said: str) -> None:
    assert answers.convert(value, unit, to) == said


@pytest.mark.parametrize(
    ("value", "unit", "to"), [("1", "miles", "hours"), ("x", "miles", "feet"), ("1", "cows", "feet")]
)
def test_unlike_units_are_refused(value: str, unit: str, to: str) -> None:
    with pytest.raises(answers.AnswerError):
        answers.convert(value, unit, to)


def test_days() -> None:
    assert answers.date(FRIDAY) == "Friday, November 20, 2026"
    assert answers.find_day("tomorrow", FRIDAY) == dt.date(2026, 11, 21)
    assert answers.find_day("friday", FRIDAY) == dt.date(2026, 11, 27)
    assert answers.find_day("day after tomorrow", FRIDAY) == dt.date(2026, 11, 22)
    assert answers.find_day("february 29", FRIDAY) == dt.date(2028, 2, 29)
    assert answers.days_until("Christmas", FRIDAY) == "35 days"
    assert answers.days_until("tomorrow", FRIDAY) == "1 day"
    for nonsense in ("blursday", "february 30"):
        with pytest.raises(answers.AnswerError):
            answers.find_day(nonsense, FRIDAY)


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("thanksgiving", (2026, 11, 26)), ("Easter", (2027, 3, 28)), ("easter monday", (2027, 3, 29)),
        ("the next mother's day", (2027, 5, 9)), ("father's day", (2027, 6, 20)), ("labor day", (2027, 9, 6)),
    ],
)  # fmt: skip
def test_feasts_that_move(name: str, day: tuple[int, int, int]) -> None:
    assert answers.find_day(name, FRIDAY) == dt.date(*day)
    assert answers.find_day(name, dt.date(*day)) == dt.date(*day)


@pytest.mark.parametrize("day", [(2024, 3, 31), (2025, 4, 20), (2038, 4, 25), (2285, 3, 22)])
def test_easter_is_found_in_any_year(day: tuple[int, int, int]) -> None:
    assert answers.find_day("easter", dt.date(day[0], 1, 1)) == dt.date(*day)


@pytest.mark.parametrize(
    ("text", "now", "time"),
    [
        ("7:30 am", None, (7, 30)), ("12:00 am", None, (0, 0)), ("12:15 pm", None, (12, 15)), ("7", (6, 0), (7, 0)),
        ("7", (8, 0), (19, 0)), ("7", (20, 0), (7, 0)), ("19:45", (1, 0), (19, 45)), ("noon", None, (12, 0)),
        ("8 in the evening", None, (20, 0)),
    ],
)  # fmt: skip
def test_time_of_day(text: str, now: tuple[int, int] | None, time: tuple[int, int]) -> None:
    assert answers.find_time(text, dt.time(*now) if now else None) == dt.time(*time)
    assert answers.find_time(answers.clock(dt.time(*time))) == dt.time(*time)


@pytest.mark.parametrize("seconds", [1, 59, 60, 61, 3600, 5400, 86399])
def test_durations_read_back(seconds: int) -> None:
    assert answers.seconds_of(answers.duration(seconds)) == seconds


def test_letters_and_rows() -> None:
    assert answers.spell("cat") == "C, A, T"
    assert answers.listed([], "no notes") == "no notes"
    assert answers.listed(["a", "b"], "no notes") == "a; b"
    assert answers.entry("call Anna", "at 5 pm") == "call Anna, at 5 pm"
    assert answers.timer("5 minutes", "pasta") == "pasta, 5 minutes"
    with pytest.raises(answers.AnswerError):
        answers.seconds_of("soon")
