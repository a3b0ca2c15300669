"""The doctor tells of a person's own tools: which there are, which failed and why."""

from pathlib import Path

import pytest

from assistant.app.config import Config
from assistant.commands import doctor

LAMP = """
from assistant.tools import tool

@tool
def lamp(room: str) -> str:
    "Switch the lamp of a room."
    return room
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir(mode=0o755)
    for name, text in (("lamp.py", LAMP), ("odd.py", "\nraise RuntimeError('no bridge')\n")):
        (tmp_path / "tools" / name).write_text(text)
        (tmp_path / "tools" / name).chmod(0o644)
    return tmp_path


def test_own_tools_are_listed_with_those_that_failed(home: Path) -> None:
    taken, failed = doctor.own_tools(Config(home))
    assert (taken.verdict, taken.found) == ("ok", "lamp")
    assert failed.verdict == "limited" and failed.found == f"{home}/tools/odd.py is left out"
    assert failed.todo == "line 2: RuntimeError: no bridge; correct it and start again"


def test_a_home_without_tools(tmp_path: Path) -> None:
    [none] = doctor.own_tools(Config(tmp_path))
    assert none.verdict == "ok" and str(tmp_path / "tools") in none.found
