"""The built-in tools: those the small model learnt, through a day, taken back, and kept over a restart."""

import asyncio
import datetime as dt
import json
import random

import pytest

from assistant.tools.builtin import TRAINED_TOOLS, BuiltinTools, builtin_tools
from assistant.tools.home import HomeRows
from assistant.tools.kept import Kept
from assistant.tools.rows import composed
from recipes.texts.tools import PARAMETERS
from tests.fakes.loop import run

NOON = dt.datetime(2026, 11, 20, 12, 0, tzinfo=dt.UTC)


def test_built_in_tools_are_those_the_small_model_learnt():
    household = BuiltinTools(Kept(), lambda: NOON, {"ada": "Ada"}, lambda: "ada")
    registry = builtin_tools(household, names=TRAINED_TOOLS)
    assert tuple(PARAMETERS) == TRAINED_TOOLS == tuple(spec.name for spec in registry.specs)
    for spec in registry.specs:
        learnt = PARAMETERS[spec.name]
        assert list(spec.parameters["properties"]) == [name.rstrip("?") for name in learnt]
        assert spec.parameters["required"] == [name for name in learnt if not name.endswith("?")]


class Listener:
    """A front that is told everything at once."""

    takes_rings = listens = True

    def __init__(self, said):
        self._said = said

    def say(self, text):
        self._said.append(text)
        return True


def household(said, undoing=dict, home=None):
    names = {"ada": "Ada", "ben": "Ben"}
    loop = asyncio.get_running_loop()

    def now():
        return NOON + dt.timedelta(seconds=loop.time())

    kept = Kept(HomeRows(now=now) if home is None else home)
    kept.connect(Listener(said))
    return builtin_tools(BuiltinTools(kept, now, names, lambda: "ada", undoing, random.Random(1)))


def test_a_day_with_the_built_in_tools():
    said = []

    async def play():
        tools = household(said)
        script = [
            ("get_time", {}, "12:00 pm"), ("get_date", {"day": "tomorrow"}, "Saturday, November 21, 2026"),
            ("days_until", {"day": "christmas"}, "35 days"), ("list_timers", {}, "no timer is running"),
            ("set_timer", {"duration": "5 minutes", "label": "pasta"}, "pasta, 5 minutes"),
            ("set_timer", {"duration": "90 seconds"}, "1 minute 30 seconds"),
            ("list_timers", {}, "pasta, 5 minutes; 1 minute 30 seconds"),
            ("change_timer", {"duration": "2 minutes"}, "2 minutes"),
            (
                "cancel_timer", {"label": "tea"},
                '{"error": "no timer fits \'tea\'; running: pasta, 5 minutes; 2 minutes"}',
            ),
            ("set_alarm", {"time": "7:30 am"}, "7:30 am, tomorrow"), ("list_alarms", {}, "7:30 am, tomorrow"),
            ("cancel_alarm", {"time": "7:30"}, "7:30 am, tomorrow"), ("list_alarms", {}, "no alarm is set"),
            ("set_reminder", {"text": "call Anna", "time": "in 10 minutes"}, "call Anna, in 10 minutes"),
            ("list_reminders", {}, "call Anna, at 12:10 pm"), ("calculate", {"expression": "12 * 8"}, "96"),
            ("convert", {"value": "10", "unit": "miles", "to": "kilometers"}, "10 miles is 16.09 kilometers"),
            ("spell", {"word": "cat"}, "C, A, T"), ("list_add", {"items": "milk, eggs and bread"}, "milk, eggs, bread"),
            ("list_remove", {"items": "eggs"}, "eggs"), ("list_remove", {"items": "tea"}, "tea is not on the list"),
            ("list_read", {}, "milk, bread"), ("list_clear", {}, "cleared"), ("list_read", {}, "empty"),
            ("note_read", {}, "no notes"), ("note_add", {"text": "buy flowers"}, "noted"),
            ("note_read", {}, "buy flowers"), ("undo", {}, "ok"), ("switch_persona", {}, "Ben"),
            ("switch_persona", {"name": "Zoe"}, "nobody here is called Zoe"),
            ("calculate", {"expression": "1/0"}, '{"error": "nothing can be divided by zero"}'),
            ("roll_die", {"sides": "1"}, '{"error": "a die has 2 to 1000 sides"}'),
        ]  # fmt: skip
        for name, arguments, answer in script:
            assert (await tools.call(name, json.dumps(arguments))).text == answer, name
        assert (await tools.call("flip_coin", "{}")).text in ("heads", "tails")
        assert (await tools.call("switch_persona", '{"name": "ben"}')).argument == "ben"
        await asyncio.sleep(3600)

    run(play())
    assert said == ["Your timer is done.", "Your pasta timer is done.", "Remember: call Anna."]


def test_nothing_goes_off_after_the_talk():
    said = []

    async def play():
        tools = household(said)
        await tools.call("set_timer", '{"duration": "1 minute"}')
        await tools.call("set_alarm", '{"time": "12:30 pm"}')
        tools.kept.home.close()
        await asyncio.sleep(7200)

    run(play())
    assert said == []


@pytest.mark.parametrize(
    ("before", "did", "told"),
    [
        ([], [("set_timer", {"duration": "5 minutes"})], "The timer of 5 minutes is stopped."),
        (
            [("set_timer", {"duration": "5 minutes", "label": "tea"})], [("change_timer", {"duration": "10 minutes"})],
            "The tea timer of 10 minutes is stopped. The tea timer of 5 minutes is running again.",
        ),
        ([("set_alarm", {"time": "7:30 am"})], [("cancel_alarm", {})], "The alarm at 7:30 am is set again."),
        ([], [("set_reminder", {"text": "call", "time": "at 5 pm"})], "The reminder, call, at 5 pm, is gone."),
        (
            [("list_add", {"items": "tea"})],
            [("list_add", {"items": "milk, eggs"}), ("list_remove", {"items": "tea"}), ("note_add", {"text": "a"})],
            "I took milk and eggs off the shopping list. I put tea on the shopping list again. The note, a, is gone.",
        ),
        ([("list_add", {"items": "tea"})], [("list_clear", {})], "I put tea on the shopping list again."),
        ([], [("get_time", {}), ("calculate", {"expression": "1/0"}), ("cancel_timer", {})], ""),
    ],
)  # fmt: skip
def test_what_tools_did_is_taken_back_and_told(before, did, told):
    async def play():
        tools = household([], lambda: changed)
        for name, arguments in before:
            await tools.call(name, json.dumps(arguments))
        kept, changed = stored(tools), {}
        for name, arguments in did:
            result = await tools.call(name, json.dumps(arguments))
            changed = composed(changed, json.loads(json.dumps(result.changes)))
        answer = await tools.call("undo", "{}")
        assert (answer.effect, answer.say) == ("undo", f"Okay, I took that back. {told}" if told else None)
        assert bool(told) == (stored(tools) != kept)
        tools.kept.put_back(changed)
        assert stored(tools) == kept and tools.kept.told(changed) == ""
        tools.kept.home.close()

    run(play())


def stored(tools):
    home = tools.kept.home
    return {slot: home.rows(slot) for slot in home.slots}


def test_a_timer_that_is_set_back_goes_off_at_its_own_time_and_never_twice():
    said = []

    async def play():
        tools = household(said)
        loop = asyncio.get_running_loop()
        await tools.call("set_timer", '{"duration": "5 minutes", "label": "tea"}')
        changed = (await tools.call("change_timer", '{"duration": "1 hour"}')).changes
        await tools.call("set_timer", '{"duration": "1 minute", "label": "egg"}')
        await asyncio.sleep(120)
        assert said == ["Your egg timer is done."]
        tools.kept.put_back(changed)
        await asyncio.sleep(240)
        assert said == ["Your egg timer is done.", "Your tea timer is done."] and loop.time() == 360
        tools.kept.put_back(changed)
        await asyncio.sleep(7200)
        assert len(said) == 2 and not tools.kept.promises("timer")

    run(play())
