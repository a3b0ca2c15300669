"""What strangers made up is whole, and what counts as their call is that call alone."""

import pytest

from recipes.strangers.__main__ import SETS, declaration, rows, same
from recipes.strangers.built_in import alike
from recipes.texts.tools import PARAMETERS

WANT = {"name": "set_light", "arguments": {"room": "living_room", "level": 30, "on": True, "speed": 1.5}}


@pytest.mark.parametrize("which", SETS)
def test_what_is_wanted_is_declared_and_what_is_recalled_was_told(which: str) -> None:
    for row in rows(f"tools_{which}"):
        takes = {tool.name: {it.name: it for it in tool.parameters} for tool in map(declaration, row["tools"])}
        for request in row["requests"]:
            want = request["want"]
            if isinstance(want, dict):
                assert want["arguments"].keys() <= takes[want["name"]].keys()
                needed = {key for key, it in takes[want["name"]].items() if it.required}
                assert needed <= want["arguments"].keys()
            else:
                assert want in ("ask", None)
    talks = list(rows(f"told_{which}"))
    assert len(talks) >= 100 and sum(row["want"] is None for row in talks) >= 20
    for row in talks:
        told = " ".join(row["turns"][:-1]).lower()
        assert row["want"] is None or row["want"].lower() in told


@pytest.mark.parametrize(
    ("call", "right"),
    [
        (("set_light", {"room": "living room", "level": "30", "on": "true", "speed": "1.5"}), True),
        (("set_light", {"room": "living_room", "level": "30.0", "on": "True", "speed": "1.5"}), True),
        (("set_light", {"room": "living room", "level": "3", "on": "true", "speed": "1.5"}), False),
        (("set_light", {"room": "living room", "level": "30", "on": "true"}), False),
        (("set_lamp", {"room": "living room", "level": "30", "on": "true", "speed": "1.5"}), False),
        (None, False),
    ],
)
def test_a_call_is_right_if_its_tool_and_all_that_it_gives_are(call: tuple[str, dict[str, str]], right: bool) -> None:
    assert same(call, WANT) is right


@pytest.mark.parametrize("which", SETS[:2])
def test_of_talks_each_wanted_call_is_one_of_the_tools(which: str) -> None:
    talks = list(rows(f"talks_{which}"))
    assert len(talks) >= 60 and all(len(row["turns"]) > 1 for row in talks)
    for turn in (turn for row in talks for turn in row["turns"]):
        takes = PARAMETERS[turn["call"]] if turn["call"] else ()
        given = turn.get("args") or {}
        assert {key for key in takes if not key.endswith("?")} <= given.keys() <= {key.rstrip("?") for key in takes}


@pytest.mark.parametrize(
    ("given", "wanted", "same"),
    [
        ({"items": "a toothbrush, socks"}, {"items": "sock, toothbrush"}, True),
        ({"items": "socks"}, {"items": "socks, toothbrush"}, False),
        ({"items": "milk", "list": "shopping"}, {"items": "milk"}, True),
        ({"items": "milk", "list": "job"}, {"items": "milk"}, False),
    ],
)
def test_calls_are_alike_if_they_do_the_same(given: dict[str, str], wanted: dict[str, str], same: bool) -> None:
    assert alike(("list_add", given), ("list_add", wanted)) is same
    assert not alike(("list_remove", given), ("list_add", given))
