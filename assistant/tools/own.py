"""A person's own tools: Python files in `ASSISTANT_HOME/tools`, each read once, at start.

    from assistant.tools import tool

    @tool
    def lamp(room: str, on: bool = True) -> str:
        "Switch the lamp of a room on or off."
        ...

A file is a module of its own and may hold several tools. It runs with all its owner's rights, so a file that somebody
else could have written is not read. A file with a mistake is skipped with a line that says what to do, and the
assistant starts anyway.
"""

from __future__ import annotations

import ast
import os
import shlex
import stat
import sys
import traceback
import types
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from assistant.base.errors import ToolError
from assistant.tools.registry import TIMEOUT_S, Tool, describe

FOLDER = "tools"


@overload
def tool(function: Callable[..., object]) -> Tool: ...


@overload
def tool(*, timeout_s: float = TIMEOUT_S, reads: bool = False) -> Callable[[Callable[..., object]], Tool]: ...


def tool(
    function: Callable[..., object] | None = None, *, timeout_s: float = TIMEOUT_S, reads: bool = False
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """`@tool` or `@tool(timeout_s=20)` above a function, plain or `async`, lets the model call it. `reads=True` says
    that it only looks something up, so it may run before it is certain that the user has finished.

    The model sees its name, the first sentence of its docstring and the type hints of its parameters. The function can
    still be called as before. Raises ToolError if these say too little.
    """

    def declared(function: Callable[..., object]) -> Tool:
        spec = describe(function)
        if not spec.description:
            raise ToolError(f"tool {spec.name!r} has no docstring; say in a sentence what it does")
        return Tool(spec, function, timeout_s, reads)

    return declared if function is None else declared(function)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file, or the whole folder, that was skipped; why, and what to do."""

    place: Path
    why: str

    def __str__(self) -> str:
        return f"{self.place} is left out: {self.why}"


@dataclass(frozen=True, slots=True)
class OwnTools:
    """Everything found in the folder."""

    folder: Path
    tools: tuple[Tool, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def names(self) -> str:
        return ", ".join(tool.spec.name for tool in self.tools)

    @property
    def problems(self) -> tuple[str, ...]:
        """Messages for the person at the terminal."""
        return tuple(map(str, self.left_out))


def load_own_tools(home: Path, taken: Collection[str]) -> OwnTools:
    """The tools of all files, in the order of the file names. `taken`: names that they may not use."""
    folder = home / FOLDER
    files = sorted(path for path in folder.glob("*.py") if path.is_file())
    if files and (trouble := foreign(folder)):
        return OwnTools(folder, left_out=(LeftOut(folder, trouble),))
    tools: dict[str, Tool] = {}
    owners: dict[str, str] = dict.fromkeys(taken, "the assistant itself")
    left_out = []
    for path in files:
        try:
            found = _tools_of(path, owners)
        except ToolError as error:
            left_out.append(LeftOut(path, str(error)))
            continue
        tools |= found
        owners |= dict.fromkeys(found, path.name)
    return OwnTools(folder, tuple(tools.values()), tuple(left_out))


def foreign(path: Path) -> str:
    """Check a file or folder and the folder around it, whose writers can replace it. Raises OSError."""
    return _trouble_with(path, path.stat()) or _trouble_with(path.parent, path.parent.stat())


def _tools_of(path: Path, owners: dict[str, str]) -> dict[str, Tool]:
    """Run a file and collect the tools it declares. Raises ToolError; its text continues after the file's name."""
    try:
        source = _source(path)
    except OSError as error:
        raise ToolError(f"it cannot be read ({error.strerror})") from error
    module = types.ModuleType(f"assistant_home_tools.{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and type hints look up their module there
    try:
        exec(compile(source, path, "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        reason = str(error) if isinstance(error, ToolError) else f"{type(error).__name__}: {_reason(error)}"
        raise ToolError(f"{_line(path, error)}{reason}; correct it and start again") from error
    tools = {one.spec.name: one for one in vars(module).values() if isinstance(one, Tool)}
    if not tools:
        raise ToolError("there is no tool in it; write `from assistant.tools import tool` and @tool above a function")
    _check_names(source, tools, owners)
    return tools


def _source(path: Path) -> bytes:
    """Check and read through one open file, so swapping the name cannot fool it. Raises ToolError, OSError."""
    real = path.resolve()
    with real.open("rb") as file:
        trouble = _trouble_with(real, os.fstat(file.fileno()))
        if not trouble and real.parent != path.parent.resolve():
            trouble = _trouble_with(real.parent, real.parent.stat())
        if trouble:
            raise ToolError(trouble)
        return file.read()


def _trouble_with(path: Path, status: os.stat_result) -> str:
    """Why it may be somebody else's work, and what to do; empty if it is safe. ssh checks its keys the same way."""
    if sys.platform == "win32":
        return ""
    if status.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to another user; make a copy that is yours"
    by_group = status.st_mode & stat.S_IWGRP and not _is_group_of_one(status)
    if by_group or status.st_mode & stat.S_IWOTH:
        return f"other users can write to {path}; run `chmod go-w {shlex.quote(str(path))}` and start again"
    return ""


def _is_group_of_one(status: os.stat_result) -> bool:
    """On systems where each user has a group of the same name, group-writable files are normal."""
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(status.st_gid), pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def _check_names(source: bytes, tools: dict[str, Tool], owners: dict[str, str]) -> None:
    """Refuse duplicate names: Python would silently use the later function. Raises ToolError."""
    lines: dict[str, int] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in tools:
            if node.name in lines:
                raise ToolError(f"line {node.lineno}: two tools are called {node.name!r}; rename one")
            lines[node.name] = node.lineno
    for name in tools:
        if name in owners:
            where = f"line {lines[name]}: " if name in lines else ""  # it may be imported
            raise ToolError(f"{where}{owners[name]} has a tool {name!r} already; rename this one")


def _line(path: Path, error: BaseException) -> str:
    """`line 3: `, from the innermost frame in the file itself."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
    return f"line {lines[-1]}: " if lines and lines[-1] else ""


def _reason(error: BaseException) -> str:
    return str(error.msg if isinstance(error, SyntaxError) else error).partition("\n")[0]
