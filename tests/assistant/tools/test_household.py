"""Several timers, alarms, reminders and lists, asked for as people do."""

import asyncio
import json

import pytest

from assistant.tools.home import HomeRows
from assistant.tools.lists import things_in
from tests.assistant.tools.test_home import Wall, talk
from tests.fakes.loop import run


def script(*steps):
    """Each step is a tool, its arguments, and a part of what is answered; `!` before it: of what a person is asked."""

    async def play():
        tools = talk(HomeRows(now=Wall()))
        for name, arguments, expected in steps:
            if name == "wait":
                await asyncio.sleep(arguments)
                continue
            result = await tools.call(name, json.dumps(arguments))
            if expected.startswith("!"):
                assert "error" in result.text and expected[1:] in result.say, (name, result)
                assert "'" not in result.say.replace("o'clock", ""), "a person hears no quoted value"
            else:
                assert result.text == expected, name
        tools.kept.home.close()

    run(play())


def test_timers_by_name_and_by_length():
    script(
        ("set_timer", {"duration": "10 minutes"}, "10 minutes"),
        ("set_timer", {"duration": "5 minutes", "label": "pasta"}, "pasta, 5 minutes"),
        ("set_timer", {"duration": "10 minutes"}, "10 minutes"),
        ("wait", 60, ""),
        ("cancel_timer", {"label": "the 10 minute timer"}, "10 minutes; the newest of 2 timers"),
        ("list_timers", {}, "9 minutes; pasta, 4 minutes"),
        ("adjust_timer", {"timer": "pasta", "add": "5 minutes"}, "pasta, 9 minutes left"),
        ("adjust_timer", {"timer": "the pasta timer", "subtract": "2 minutes"}, "pasta, 7 minutes left"),
        ("adjust_timer", {"timer": "pasta", "subtract": "1 hour"}, "!Shall I stop it?"),
        ("adjust_timer", {"timer": "pasta"}, "!By how much?"),
        ("check_timer", {"timer": "pasta"}, "pasta, 7 minutes left"),
        ("pause_timer", {"timer": "pasta"}, "pasta, 7 minutes left, paused"),
        ("wait", 3600, ""),
        ("check_timer", {"timer": "Pasta"}, "pasta, 7 minutes left, paused"),
        ("resume_timer", {}, "pasta, 7 minutes left, running"),
        ("wait", 60, ""),
        ("check_timer", {"timer": "pasta"}, "pasta, 6 minutes left"),
        ("check_timer", {"timer": "tea"}, "!There is no such timer."),
        ("cancel_all_timers", {}, "10 minutes; pasta, 5 minutes"),
        ("list_timers", {}, "no timer is running"),
        ("pause_timer", {}, "!No timer is running."),
        ("cancel_timer", {}, "no timer is running"),
    )


def test_alarms_are_found_by_their_time():
    script(
        ("set_alarm", {"time": "7 am"}, "7:00 am, tomorrow"),
        ("set_alarm", {"time": "8 am"}, "8:00 am, tomorrow"),
        ("cancel_alarm", {}, "!Which one: 7:00 am, tomorrow or 8:00 am, tomorrow?"),
        ("cancel_alarm", {"time": "the 9 am alarm"}, "!There is no such alarm."),
        ("cancel_alarm", {"time": "the 7 am alarm"}, "7:00 am, tomorrow"),
        ("list_alarms", {}, "8:00 am, tomorrow"),
        ("set_alarm", {"time": "7:30 am", "day": "monday"}, "7:30 am, Monday"),
        ("set_alarm", {"time": "7 tomorrow", "day": "tomorrow"}, "7:00 am, tomorrow"),
        ("set_alarm", {"time": "every weekday at 6:30"}, "6:30 am, every weekday"),
        ("set_alarm", {"time": "2026-12-27T07:00"}, "7:00 am, Sunday, December 27"),
        ("set_alarm", {"time": "7 am today"}, "!That is over. Tomorrow?"),
        ("set_alarm", {"time": "yes"}, "!When is that?"),
        ("set_alarm", {"time": "tomorrow"}, "!At what time?"),
        ("cancel_alarm", {"time": "all"},
         "8:00 am, tomorrow; 7:30 am, Monday; 7:00 am, tomorrow; 6:30 am, every weekday; 7:00 am, Sunday, December 27"),
        ("cancel_alarm", {}, "no alarm is set"),
    )  # fmt: skip


def test_reminders_can_be_taken_back():
    script(
        ("set_reminder", {"text": "call José", "time": "at noon"}, "call José, tomorrow at noon"),
        ("set_reminder", {"text": "call Anna", "time": "tonight"}, "call Anna, at 8 pm"),
        ("set_reminder", {"text": "water the plants", "time": "on friday at 5"},
         "water the plants, on Friday, November 27 at 5 pm"),
        ("cancel_reminder", {"text": "call"}, "!Which one: call José, tomorrow at noon; call Anna, at 8 pm?"),
        ("cancel_reminder", {"text": "the plants"}, "water the plants, on Friday, November 27 at 5 pm"),
        ("cancel_reminder", {"text": "to call anna"}, "call Anna, at 8 pm"),
        ("cancel_reminder", {"text": "the dentist"}, "!There is no such reminder."),
        ("cancel_reminder", {}, "call José, tomorrow at noon"),
        ("cancel_reminder", {}, "no reminders"),
        ("set_reminder", {"text": "eat", "time": "after dinner"}, "!When is that?"),
        ("set_reminder", {"text": " ", "time": "at noon"}, "!What shall I remind you of?"),
        ("list_reminders", {}, "no reminders"),
    )  # fmt: skip


def test_lengths_that_are_not_understood_are_asked_about():
    script(
        ("set_timer", {"duration": "10 timer"}, "!10 seconds, minutes or hours?"),
        ("set_timer", {"duration": "soon"}, "!How long?"),
        ("set_timer", {"duration": "1,5 hours"}, "1 hour 30 minutes"),
        ("change_timer", {"duration": "ten"}, "!10 seconds, minutes or hours?"),
        ("get_date", {"day": "blursday"}, "!Which day is that?"),
    )


@pytest.mark.parametrize(
    ("text", "things"),
    [
        ("mac and cheese, salt and pepper and two litres of milk",
         ["mac and cheese", "salt and pepper", "two litres of milk"]),
        ("milk, eggs, and bread", ["milk", "eggs", "bread"]), ("milk and eggs and bread", ["milk", "eggs", "bread"]),
        ("salt and pepper shakers; rice and beans", ["salt and pepper shakers", "rice and beans"]),
        ('["ham and pineapple", "tea"]', ["ham and pineapple", "tea"]), ("brandy", ["brandy"]),
        ("Mac And Cheese and handkerchiefs", ["Mac And Cheese", "handkerchiefs"]), ("jalapeños", ["jalapeños"]),
    ],
)  # fmt: skip
def test_one_thing_is_one_thing(text, things):
    assert things_in(text) == things


def test_things_are_found_by_their_bare_noun_in_any_case():
    script(
        ("list_add", {"items": "mac and cheese, two litres of Milk, oat milk and eggs"},
         "mac and cheese, two litres of Milk, oat milk, eggs"),
        ("list_remove", {"items": "the milk"}, "!Which one: two litres of Milk or oat milk?"),
        ("list_remove", {"items": "the oat milk"}, "oat milk"),
        ("list_remove", {"items": "the milk and an egg"}, "two litres of Milk, eggs"),
        ("list_remove", {"items": "Mac and Cheese"}, "mac and cheese"),
        ("list_remove", {"items": "tea"}, "tea is not on the list"),
        ("list_add", {"items": ", ;"}, "!What shall I put down?"),
    )  # fmt: skip


def test_from_three_on_they_come_counted_as_a_sentence():
    """The shipped model was taught to count to two."""

    async def play():
        tools = talk(HomeRows(now=Wall()))

        async def call(name, **arguments):
            return await tools.call(name, json.dumps(arguments))

        for minutes, label in ((10, ""), (5, "pasta")):
            await call("set_timer", duration=f"{minutes} minutes", label=label)
        assert (await call("list_timers")).say is None
        await call("set_timer", duration="2 hours")
        listed = await call("list_timers")
        assert listed.text == "10 minutes; pasta, 5 minutes; 2 hours"
        assert listed.say == "You have three timers: 10 minutes; pasta, 5 minutes; and 2 hours."
        for hour in (6, 7, 8, 9, 10):
            await call("set_alarm", time=f"{hour} am")
            await call("set_reminder", text="call Anna", time=f"tomorrow at {hour} am")
        assert (await call("list_alarms")).say.startswith("You have 5 alarms: 6:00 am, tomorrow; 7:00 am")
        assert (await call("list_reminders")).say.endswith("; and call Anna, tomorrow at 10 am.")
        tools.kept.home.close()

    run(play())


def test_what_a_tool_needs_and_did_not_get_is_asked_of_the_person():
    async def story():
        tools = talk(HomeRows(now=Wall()))
        for tool in tools:
            needed = tool.spec.parameters["required"]
            assert {*needed} == {*tool.questions}, "every required parameter has its question"
            for gone in needed:
                given = dict.fromkeys(needed, "3 pm")
                absent = {key: given[key] for key in needed if key != gone}
                for arguments in ({**given, gone: " "}, {**given, gone: None}, absent):
                    result = await tools.call(tool.spec.name, json.dumps(arguments))
                    assert result.failed and result.say == tool.questions[gone] and result.say.endswith("?")
                    assert not result.changes
        tools.kept.home.close()

    run(story())
