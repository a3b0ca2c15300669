"""A person's own tools: files in the home folder become tools of every talk, and a bad one harms nobody else."""

import asyncio
import datetime as dt
import json
import os
from pathlib import Path

import pytest

from assistant.base.errors import ToolError
from assistant.contracts import Prompt
from assistant.events import CreateItem, CreateResponse, Message, ResponseDone, TextPart, ToolUsed
from assistant.tools import tool
from assistant.tools.builtin import BuiltinTools, builtin_names, builtin_tools
from assistant.tools.kept import Kept
from assistant.tools.own import OwnTools, load_own_tools
from assistant.tools.registry import FAILED, Tool, ToolRegistry
from assistant.tools.remembering import NAMES
from tests.fakes.talk import World

LAMP = '''
from assistant.tools import tool

@tool
def lamp(room: str, on: bool = True) -> str:
    "Switch the lamp of a room on or off."
    return f"the lamp in the {room} is {'on' if on else 'off'}"
'''
RAIN = '''
from __future__ import annotations

import asyncio
from dataclasses import dataclass

from assistant.tools import tool

@dataclass
class Sky:
    cover: float

@tool(timeout_s=20)
async def rain(city: str, days: int = 1) -> list[str]:
    """How much it will rain.

    For whoever reads the code."""
    await asyncio.sleep(0)
    return [city, str(days * Sky(0.5).cover)]
'''


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir(mode=0o755)
    return tmp_path


def write(home: Path, name: str, text: str) -> Path:
    path = home / "tools" / name
    path.write_text(text)
    path.chmod(0o644)
    return path


def load(home: Path) -> OwnTools:
    return load_own_tools(home, builtin_names())


def test_files_become_tools_that_run(home: Path) -> None:
    write(home, "lamp.py", LAMP)
    write(home, "rain.py", RAIN)
    own = load(home)
    assert not own.left_out and own.names == "lamp, rain"
    lamp, rain = own.tools
    assert (lamp.spec.description, rain.spec.description) == (
        "Switch the lamp of a room on or off.", "How much it will rain.",
    )  # fmt: skip
    assert lamp.spec.parameters["required"] == ["room"] and rain.timeout_s == 20
    registry = ToolRegistry(own.tools)
    assert asyncio.run(registry.call("lamp", '{"room": "hall", "on": false}')).text == "the lamp in the hall is off"
    assert json.loads(asyncio.run(registry.call("rain", '{"city": "Ulm", "days": "3"}')).text) == ["Ulm", "1.5"]


def test_a_declared_function_can_still_be_called() -> None:
    @tool
    def double(number: int) -> int:
        "Twice the number."
        return 2 * number

    assert isinstance(double, Tool) and double(4) == 8


def test_a_home_without_own_tools_is_none_the_worse(tmp_path: Path) -> None:
    assert load(tmp_path).tools == () == load(tmp_path).problems


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = (\n", ["line 1: SyntaxError", "correct it and start again"]),
        ("\nimport no_such_library\n", ["line 2: ModuleNotFoundError: No module named 'no_such_library'"]),
        ("import sys\nsys.exit(3)\n", ["line 2: SystemExit"]),
        ("def helper():\n    return 1 / 0\n\nhelper()\n", ["line 2: ZeroDivisionError"]),
        ("print", ["there is no tool in it", "@tool above a function"]),
        (LAMP.replace("room: str", "room"), ["line 4: ", "'room' has no type hint; write `room: str`"]),
        (LAMP.replace("room: str", "room: object"), ["line 4: ", "use str, int, float, bool"]),
        (LAMP.replace("room: str", "*room: str"), ["line 4: ", "cannot be described"]),
        (LAMP.replace('"Switch', 'f"Switch'), ["line 4: ", "has no docstring; say in a sentence"]),
        (LAMP.replace("lamp(", "get_time("), ["line 5: the assistant itself has a tool 'get_time'", "rename this one"]),
        (LAMP.replace("lamp(", "rain("), ["line 5: a.py has a tool 'rain' already; rename this one"]),
        (LAMP + LAMP, ["line 12: two tools are called 'lamp'; rename one"]),
        ("\0", ["null bytes"]),
    ],
    ids=lambda value: None if isinstance(value, str) else value[0],
)
def test_a_file_with_a_mistake_is_left_out_and_told_in_a_line(home: Path, text: str, told: list[str]) -> None:
    write(home, "a.py", RAIN)
    path = write(home, "b.py", text)
    write(home, "c.py", LAMP.replace("lamp(", "light("))
    own = load(home)
    assert own.names == "rain, light"
    [line] = own.problems
    assert line.startswith(f"{path} is left out: ") and "\n" not in line
    for words in told:
        assert words in line


@pytest.mark.parametrize("mode", [0o646, 0o666])
def test_a_file_that_others_can_write_is_refused(home: Path, mode: int) -> None:
    path = write(home, "lamp.py", LAMP)
    path.chmod(mode)
    [left] = load(home).left_out
    assert left.place == path and f"other users can write to {path}; run `chmod go-w {path}`" in left.why


def test_a_file_that_a_group_can_write_is_refused_unless_the_group_is_its_owner(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home, "lamp.py", LAMP)
    path.chmod(0o664)
    monkeypatch.setattr("assistant.tools.own._is_group_of_one", lambda status: False)
    assert "chmod go-w" in load(home).left_out[0].why
    monkeypatch.setattr("assistant.tools.own._is_group_of_one", lambda status: True)
    assert load(home).names == "lamp"


@pytest.mark.parametrize("place", [".", "tools"])
def test_a_folder_that_others_can_write_is_refused_as_a_whole(home: Path, place: str) -> None:
    write(home, "lamp.py", LAMP)
    (home / place).chmod(0o777)
    own = load(home)
    assert own.tools == () and [left.place for left in own.left_out] == [home / "tools"]
    assert str(home / place) in own.left_out[0].why


def test_a_file_of_another_user_is_refused_and_so_is_a_link_to_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lamp.py").write_text(LAMP)
    (elsewhere / "lamp.py").chmod(0o666)
    (home / "tools" / "lamp.py").symlink_to(elsewhere / "lamp.py")
    assert "elsewhere/lamp.py" in load(home).left_out[0].why
    (elsewhere / "lamp.py").chmod(0o644)
    elsewhere.chmod(0o777)
    assert "can write to" in load(home).left_out[0].why
    elsewhere.chmod(0o755)
    assert load(home).names == "lamp"
    for path in (home, home / "tools", elsewhere, elsewhere / "lamp.py"):
        os.chown(path, 0, 0) if os.geteuid() == 0 else None
    if os.geteuid() == 0:
        os.chown(elsewhere / "lamp.py", 4321, 4321)
        assert "belongs to another user; make a copy that is yours" in load(home).left_out[0].why
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4321)
        assert "belongs to another user" in load(home).left_out[0].why


def test_a_declaration_that_says_too_little_is_refused_at_once() -> None:
    with pytest.raises(ToolError, match="no docstring"):
        tool(timeout_s=3)(lambda: "")


@pytest.mark.parametrize("body", ["return {room}", "raise SystemExit(2)", "raise KeyError(room)", "import nowhere"])
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_whatever_an_own_tool_does_becomes_words_for_the_model(home: Path, body: str, kind: str) -> None:
    head, _, _ = LAMP.partition("    return")
    write(home, "lamp.py", f"{head.replace('def', kind)}    {body}\n")
    own = load(home)
    assert not own.left_out
    result = asyncio.run(ToolRegistry(own.tools).call("lamp", '{"room": "hall"}'))
    assert "lamp failed" in json.loads(result.text)["error"] and result.say == FAILED


def test_a_turn_with_an_own_tool(home: Path) -> None:
    """The model is told of it, calls it, sees what it came to and speaks of it."""
    write(home, "lamp.py", LAMP.replace("def lamp", "async def lamp"))
    own = load(home)
    shown: list[Prompt] = []

    def mind(prompt: Prompt) -> list[str | tuple[str, dict[str, str]]]:
        shown.append(prompt)
        last = prompt.lines[-1]
        return [f"Done: {last.text}."] if last.role == "tool" else [("lamp", {"room": "kitchen"})]

    noon = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
    household = BuiltinTools(Kept(), lambda: noon, {"ada": "Ada"}, lambda: "ada")
    world = World(mind, tools=lambda: builtin_tools(household, own.tools))
    world.play((0.0, CreateItem(Message("a", "user", (TextPart("light, please"),)))), (0.1, CreateResponse()), until=9)
    told = [name for name in builtin_names() if name not in NAMES]  # the talk has no memory
    assert [spec.name for spec in shown[0].tools] == [*told, "lamp"]
    [used] = world.of(ToolUsed)
    assert (used.name, used.output) == ("lamp", "the lamp in the kitchen is on")
    assert shown[1].lines[-1].text == used.output
    [done] = world.of(ResponseDone)
    assert done.response.status == "completed"
