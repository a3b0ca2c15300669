"""What was said leaves few ways to call a tool that the small model knows by heart."""

import json
import random

import pytest

from assistant.contracts import Line, ToolCall
from assistant.llm.small.by_heart import as_said
from recipes.judge import prompt_of
from recipes.texts.scenes import FOLLOWING
from recipes.texts.scenes_written_talks import spoken_talk
from recipes.texts.talks import make_talk
from recipes.texts.tools import specs

DECLARED = {spec["function"]["name"]: spec["function"]["parameters"] for spec in specs()}


def called(name, result="ok", **given):
    """A call and what it told."""
    return [Line("assistant", "", (ToolCall("1", name, json.dumps(given)),)), Line("tool", result)]


def values(name, key, *lines):
    """What may be given; None where it is left open."""
    said = [Line("user", line) if isinstance(line, str) else line for line in lines]
    return as_said({name: DECLARED[name]}, said)[name]["properties"][key].get("enum")


SUM = ["12 * 8", *called("calculate", "96", expression="12 * 8"), Line("assistant", "12 times 8 is 96.")]


def test_a_sum_that_was_said_is_the_one_that_is_reckoned():
    for said, sum_ in (
        ("what is 3 * 5", "3 * 5"),
        ("what do you get if you do 5 - 2", "5 - 2"),
        ("15% of 80 please", "15% of 80"),
        ("add up 3 + 4 + 5 would you", "3 + 4 + 5"),
    ):
        assert values("calculate", "expression", *SUM, said) == [sum_], said
    assert values("calculate", "expression", "i have 3 of 5 and 7 of 9") is None


def test_of_two_numbers_the_one_that_stood_in_the_sum_was_wrong():
    for said in (
        "not 8 9",
        "9 not 8",
        "my mum says 8 is wrong it's 9",
        "let's change 8 to 9",
        "do it again with 9 for 8",
        "9 should be where 8 is",
    ):
        assert values("calculate", "expression", *SUM, said) == ["12 * 9"], said
    assert values("calculate", "expression", "8 * 8", *called("calculate", "64", expression="8 * 8"), "9 not 8") == [
        "9 * 8",
        "8 * 9",
    ]
    assert values("calculate", "expression", *SUM, "not 12 but 8") is None


def test_units_and_measures_are_those_that_were_said():
    assert values("convert", "unit", "in pints what is 122.4 teaspoons here") == ["pints", "teaspoons"]
    assert values("convert", "value", "in pints what is 122.4 teaspoons here") == ["122.4"]
    before = ["5 miles in feet", *called("convert", "5 miles is 26400 feet", value="5", unit="miles", to="feet")]
    assert {*values("convert", "to", *before, "no in yards")} == {"yards", "miles", "feet"}
    assert values("convert", "value", *before, "6 not 5") == ["6"]


def test_a_timer_is_as_long_as_was_said():
    assert values("set_timer", "duration", "the eggs 1 hour 5 minutes please") == ["1 hour 5 minutes"]
    assert values("set_timer", "duration", "not 5 minutes 10 minutes") is None
    before = ["a timer for 5 minutes", *called("set_timer", "5 minutes", duration="5 minutes")]
    assert values("change_timer", "duration", *before, "10 not 5") == ["10 minutes"]
    assert values("change_timer", "duration", *before, "ditch 5 and give me 31 seconds") == ["31 seconds"]
    assert values("change_timer", "duration", *before, "make it 7") is None


def test_an_alarm_is_at_the_time_that_was_said_in_the_half_of_the_day_of_before():
    assert values("set_alarm", "time", "i've got to be up by 7:15 am") == ["7:15 am"]
    before = ["wake me at 4:30 am", *called("set_alarm", "4:30 am", time="4:30 am")]
    assert values("set_alarm", "time", *before, "let's have 5:30") == ["5:30", "5:30 am"]
    assert values("set_alarm", "time", "wake me at 7") is None


def test_a_number_of_a_note_or_a_reminder_is_put_right_alone():
    def again(tool, said, **given):
        return {key: values(tool, key, "…", *called(tool, **given), said) for key in given}

    bins = {"text": "take the bins out", "time": "at 8:00 pm"}
    assert again("set_reminder", "make it 9 not 8", **bins)["time"] == ["at 9:00 pm"]
    assert again("set_reminder", "make it 3:01 am not 8:00 pm", **bins) == {"text": None, "time": None}
    assert again("note_add", "4471 not 4417", text="her code is 4417") == {"text": ["her code is 4471"]}


def test_a_day_that_was_said_is_not_left_out():
    takes = as_said({"get_date": DECLARED["get_date"]}, [Line("user", "which weekday is May 9")])["get_date"]
    assert takes["properties"]["day"]["enum"] == ["May 9"] and takes["required"] == ["day"]
    assert values("get_date", "day", "the day after tomorrow") == ["day after tomorrow"]
    assert values("days_until", "day", "how long is it till Christmas eve") == ["Christmas eve"]
    for said in ("is it Monday or Tuesday", "is it Friday today", "it's Thursday isn't it", "Sunday right"):
        assert values("get_date", "day", said) is None, said


def test_what_comes_off_a_list_was_named_or_stands_where_it_was_said_to():
    read = Line("assistant", "On your shopping list: beans, paper towels, peaches.")
    for said, item in (
        ("i've got paper towels already", "paper towels"),
        ("whip off the last one then", "peaches"),
        ("the second thing is in the trolley", "paper towels"),
        ("peaches can go i want peas instead", "peaches"),
    ):
        assert values("list_remove", "items", read, said) == [item], said
    assert values("list_remove", "items", read, *called("list_add", items="milk"), "not the last one") == ["milk"]
    assert values("list_remove", "items", read, *called("list_remove", items="peaches"), "the last one") == [
        "paper towels"
    ]
    packed = called("list_add", items="socks, a hat", list="packing")
    assert values("list_remove", "items", read, *packed, "the last one stays here") == ["a hat"]
    assert values("list_remove", "items", read, *packed, "off the shopping list with the last one") == ["peaches"]
    for said in ("take it off again", "beans and peaches can go", "the fourth one"):
        assert values("list_remove", "items", read, said) is None, said


def test_calls_of_others_and_odd_arguments_are_no_trouble():
    odd = Line(
        "assistant",
        "",
        (ToolCall("1", "calculate", "[3]"), ToolCall("2", "list_add", '{"items": 4}'), ToolCall("3", "set_timer", "")),
    )
    assert as_said(DECLARED, []) == DECLARED and as_said({}, [Line("user", "3 + 4")]) == {}
    assert values("calculate", "expression", odd, "9 not 8") is None
    assert as_said({"convert": {}, "calculate": {"properties": []}}, [Line("user", "3 + 4")]) == {
        "convert": {},
        "calculate": {"properties": []},
    }


def texts(rng):
    return make_talk(rng, scenes=3, noise=0.1, among=FOLLOWING)


@pytest.mark.parametrize("made", [texts, spoken_talk])
@pytest.mark.parametrize("seed", range(3))
def test_nearly_every_call_is_among_what_may_be_called(made, seed):
    """Of the texts the rest are misheard numbers (`thirsty 7 hours`), which the model may guess; of what writers made
    up, what only the world tells: a wall is in meters."""
    rng, calls, lost = random.Random(seed), 0, []
    for talk in (made(rng) for _ in range(80)):
        for at, turn in enumerate(talk.turns):
            if turn.call is None or turn.call[0] not in DECLARED:
                continue
            name, given = turn.call
            lines = prompt_of(talk, at).lines
            listed = as_said({name: DECLARED[name]}, lines)[name]["properties"]
            calls += 1
            if any(it not in listed[key].get("enum", [it]) for key, it in given.items()):
                lost.append((talk.turns[at - 1].text, turn.call))
    assert calls > 80 and len(lost) <= calls / 25, lost
