"""What a request may mean of the declared tools: by its words, of values that were said, and never of what was not."""

import random

import pytest

from assistant.contracts import Line
from assistant.events import ToolSpec
from assistant.llm.small.retrieval import Meant, question, what_else_may_be_meant, what_is_meant


def tool(name, tells="", required=(), **takes):
    return ToolSpec(name, tells, {"type": "object", "properties": takes, "required": [*required]})


def listed(*values):
    return {"type": "string", "enum": [*values]}


TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
ROOM = listed("kitchen", "living_room")
LIGHT = tool("setLight", "Switch a light on or off.", ["room", "on"], room=ROOM, on=FLAG, level=NUMBER)
MUSIC = tool("play_music", "Plays songs.", ["query"], query=TEXT, loudly=FLAG, genre=listed("jazz", "rock"))
MESSAGE = tool("send_message", "write to somebody", ["to", "text"], to=TEXT, text=TEXT)
HEATING = tool("heating", "how warm it is to be", ["degrees"], degrees=NUMBER, minutes=NUMBER, zone=TEXT)
ALL = (LIGHT, MUSIC, MESSAGE, HEATING)


def meant(*said, tools=ALL):
    """`said` are the user's and the assistant's lines by turns, the user's last."""
    roles = ["user", "assistant"] if len(said) % 2 else ["assistant", "user"]
    return what_is_meant(tools, [Line(roles[at % 2], text) for at, text in enumerate(said)])


def values(found, name, key):
    return found.calls[name]["properties"][key]["enum"]


def test_a_tool_is_meant_by_the_words_of_its_name_its_description_or_a_value():
    assert [*meant("turn the kitchen lights on").calls] == ["setLight"]
    assert [*meant("play the song yesterday").calls] == ["play_music"]
    jazz = meant("i am in the mood for jazz")
    assert [*jazz.calls] == ["play_music"] and not jazz.asks
    assert not meant("turn it on please").calls and not meant("what is the weather in Paris").calls
    assert meant(tools=()) == Meant() and not meant().calls


def test_a_tool_that_shares_less_than_another_is_not_meant():
    oven = tool("preheat_oven", "", ["degrees"], degrees=NUMBER), tool("turn_off_oven")
    assert [*meant("preheat the oven to 200", tools=oven).calls] == ["preheat_oven"]
    assert (
        meant("preheat the oven", tools=oven).asks == ("Which degrees?",)
        and not meant("preheat the oven", tools=oven).calls
    )
    assert {*meant("the oven to 200", tools=oven).calls} == {"preheat_oven", "turn_off_oven"}


def test_of_listed_values_only_those_that_were_said_may_be_given():
    assert values(meant("light on in the living room"), "setLight", "room") == ["living_room"]
    assert "genre" not in meant("play the song yesterday").calls["play_music"]["properties"]
    assert values(meant("play rock music by Anna"), "play_music", "genre") == ["rock"]


def test_a_tool_is_not_called_before_what_it_needs_was_said():
    found = meant("turn the light on")
    assert not found.calls and found.asks == ("Which one: kitchen or living room?",)
    assert not meant("set the heating").calls and meant("set the heating").asks == ("Which degrees?",)
    assert meant("write a message").asks == ("Which to?", "Which text?")
    assert not meant("message Anna").calls  # one word of its own for two that are needed
    assert meant("message Anna that i am late").calls


def test_what_is_not_needed_is_given_only_where_there_is_something_to_give():
    said = ("heating to 21", "heating to 21 for 30 minutes")
    one, two = (meant(text).calls["heating"]["properties"] for text in said)
    assert [*one] == ["degrees"] and {*two} == {"degrees", "minutes"}
    assert {*meant("heating upstairs to 21").calls["heating"]["properties"]} == {"degrees", "zone"}
    assert "loudly" not in meant("play the song yesterday").calls["play_music"]["properties"]
    assert "loudly" in meant("play the song yesterday and loudly off").calls["play_music"]["properties"]


def test_only_numbers_that_were_said_are_given_and_of_these_the_last():
    def degrees(*said):
        return values(meant(*said), "heating", "degrees")

    assert degrees("heating to 21.5") == [21.5] and degrees("heating to -3") == [-3]
    assert degrees("heating to 21 for 30 minutes") == [21]
    step = tool("set_step", "", ["step"], step={"type": "integer"})
    assert values(meant("step 4", "Done.", "and now 5", tools=[step]), "set_step", "step") == [5]
    assert meant("step 1.5", tools=[step]).asks == ("Which step?",)


def test_a_number_that_is_asked_for_and_its_unit_are_no_words():
    bid = tool("bid", "", ["amount", "bidder"], amount=NUMBER, bidder=TEXT)
    assert values(meant("bid 61 dollars for Anna", tools=[bid]), "bid", "bidder") == ["Anna"]
    assert not meant("bid 61 miles", tools=[bid]).calls


def test_what_was_said_of_listed_values_and_switches_has_to_be_given():
    oven = tool("bake", "", ["degrees"], degrees=NUMBER, mode=listed("fan", "grill"), fast=FLAG, light=FLAG)

    def needs(said):
        return meant(said, tools=[oven]).calls["bake"]["required"]

    assert needs("bake at 200") == ["degrees"] and needs("bake at 200 with the fan") == ["degrees", "mode"]
    fast = meant("bake fast at 200", tools=[oven])
    assert needs("bake fast at 200") == ["degrees", "fast"] and values(fast, "bake", "fast") == [True]
    assert values(meant("bake at 200 not fast", tools=[oven]), "bake", "fast") == [False]
    assert values(meant("light in the kitchen off"), "setLight", "on") == [False]
    again = meant("light in the kitchen off", "Done.", "and now on")
    assert values(again, "setLight", "on") == [True]


def test_an_answer_and_what_goes_on_are_read_with_what_was_said_before():
    assert [*meant("turn the light on", "Which one: kitchen or living room?", "the kitchen").calls] == ["setLight"]
    assert [*meant("heating to 21", "Done.", "and now 19").calls] == ["heating"]
    assert [*meant("heating to 21", "Done.", "22").calls] == ["heating"]
    assert not meant("heating to 21", "Done.", "who wrote that book").calls
    thrice = meant("light on", "Which one?", "kitchen", "Done.", "the living room too")
    assert values(thrice, "setLight", "room") == ["living_room"]
    way = tool("go", "", ["start", "end"], start=listed("hall", "attic"), end=listed("attic", "hall"))
    both = meant("go from the hall", "Which one: attic or hall?", "attic", tools=[way])
    assert values(both, "go", "start") == ["hall", "attic"]  # either may be the last one said


@pytest.mark.parametrize(
    ("name", "choices", "asks"),
    [
        ("state", ["off", "on"], "On or off?"),
        ("room", ["hall", "attic", "cellar"], "Which one: hall, attic or cellar?"),
        ("livingRoom", ["a", "b", "c", "d"], "Which living room?"),
        ("start_time", [], "Which start time?"),
        ("mode", ["eco"], "Which mode?"),
    ],
)
def test_a_question_names_what_there_is(name, choices, asks):
    assert question(name, choices) == asks


def test_no_declaration_and_no_words_are_too_odd():
    """Whatever a client declares: nothing is raised, and a tool never takes what it did not declare."""
    rng = random.Random(3)
    odd = [None, 3, "x", [], {}, {"enum": "abc"}, {"enum": [None, 1, {"a": 2}]}, {"type": 7}, {"type": "number"}]
    for _ in range(400):
        takes = {rng.choice(["room", "", "Ä b", "1"]): rng.choice(odd) for _ in range(3)}
        schema = rng.choice(
            [{}, {"properties": rng.choice(odd)}, {"properties": takes, "required": rng.choice([*odd, ["room", 4]])}]
        )
        spec = ToolSpec(rng.choice(["room", "", "a-b.c"]), rng.choice(["", "the room"]), schema)
        found = meant(rng.choice(["", "room", "the room 4 x", "\n?!", "room abc 1"]), tools=(spec,))
        for given in found.calls.values():
            declared = schema.get("properties")
            assert given is schema or {*given["properties"]} <= {*declared}


def test_from_and_to_say_which_listed_value_is_whose():
    account = {"type": "string", "enum": ["checking", "savings"]}
    move = tool("move", "moves money", ["from_account", "to_account"], from_account=account, to_account=account)
    for said in ("move money from checking to savings", "move money to savings from my checking"):
        assert values(meant(said, tools=[move]), "move", "from_account") == ["checking"]
        assert values(meant(said, tools=[move]), "move", "to_account") == ["savings"]


def test_a_value_is_what_it_names_and_not_the_words_around_it():
    room = tool("book_room", "books a room", ["room", "guests"], room=TEXT, guests={"type": "integer"})
    assert values(meant("book me something in the everest for 8 guests", tools=[room]), "book_room", "guests") == [8]


def test_a_switch_is_set_by_its_own_verb_and_its_opposite():
    door = tool("door", "a door", ["locked"], locked={"type": "boolean"})
    for said, value in (("lock the door", [True]), ("unlock the door", [False]), ("the door locked please", [True])):
        assert values(meant(said, tools=[door]), "door", "locked") == value


def test_a_number_is_that_of_the_parameter_whose_name_stands_beside_it():
    water = tool("water", "waters", ["zone", "minutes"], zone={"type": "integer"}, minutes={"type": "integer"})
    found = meant("water zone 3 for 12 minutes", tools=[water])
    assert values(found, "water", "zone") == [3] and values(found, "water", "minutes") == [12]
    asked = meant("water zone 3", tools=[water])
    assert not asked.calls and asked.asks == ("Which minutes?",)
    level = tool("dim", "dims", ["room", "percent"], room=TEXT, percent={"type": "integer"})
    assert values(meant("dim the den 40%", tools=[level]), "dim", "room") == ["den"]


def test_where_no_word_is_shared_only_what_lacks_nothing_may_be_meant():
    lines = [Line("user", "it is freezing in here")]
    plants = tool("water_plants", "water the plants")
    assert {*what_else_may_be_meant([plants, HEATING], lines)} == {"water_plants"}
    room = tool("open_shutter", "", ["room"], room=ROOM)
    assert values(Meant(what_else_may_be_meant([room], lines)), "open_shutter", "room") == ["kitchen", "living_room"]
