"""A server's list of tools, checked, as tools of a talk. A tool that cannot be declared is left out and named."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, TypeAlias

from assistant.base.errors import ToolError
from assistant.events import ToolSpec
from assistant.tools.mcp.written import ServerPlan
from assistant.tools.registry import Tool, json_object

if TYPE_CHECKING:
    import mcp.types

LONGEST_NAME = 64
LARGEST_SCHEMA = 20_000
"""Characters of a schema as JSON. Each talk begins with all of them."""

Ask: TypeAlias = Callable[[str, Mapping[str, object], bool], Awaitable[str]]
"""Calls a tool of the server: its name, the arguments, whether it only reads. Raises AnswerError."""


def offered(
    plan: ServerPlan, listed: Iterable[mcp.types.Tool], ask: Ask
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """(the tools that the plan wants, sentences about those that are left out)."""
    tools, problems, found = [], [], set()
    for one in listed:
        found.add(one.name)
        if plan.tools is not None and one.name not in plan.tools:
            continue
        try:
            tools.append(_tool(plan, one, ask))
        except ToolError as error:
            problems.append(f"{plan.name}: the tool {one.name!r} is left out: {error}")
    for name in plan.tools or ():
        if name not in found:
            problems.append(f"{plan.name}: there is no tool {name!r}; it offers {', '.join(sorted(found)) or 'none'}")
    return tuple(tools), tuple(problems)


def named_apart(tools: Iterable[Tool], taken: Iterable[str]) -> tuple[Tool, ...]:
    """The tools under names of their own: one whose name is taken gets that of its server in front, and a number if
    that is not enough."""
    used, found = set(taken), []
    for tool in tools:
        longer = _plain_name(f"{tool.server}_{tool.spec.name}")
        names = chain((tool.spec.name, longer), (f"{longer[: LONGEST_NAME - 4]}_{n}" for n in count(2)))
        name = next(name for name in names if name not in used)
        used.add(name)
        found.append(replace(tool, spec=replace(tool.spec, name=name)))
    return tuple(found)


def _tool(plan: ServerPlan, one: mcp.types.Tool, ask: Ask) -> Tool:
    schema = one.input_schema
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        raise ToolError("its parameters are not declared as an object")
    if len(json.dumps(schema)) > LARGEST_SCHEMA:
        raise ToolError(f"its declaration has more than {LARGEST_SCHEMA:,} characters")
    check = _checker(schema)
    hints = one.annotations
    reads = hints is not None and hints.read_only_hint is True

    async def call(**values: object) -> str:
        return await ask(one.name, values, reads)

    spec = ToolSpec(_plain_name(one.name), _first_lines(one.description or one.title or ""), schema)
    return Tool(
        spec, call, plan.timeout_s, reads, plan.name, one.name, plan.confirm and not reads,
        reader=partial(_read, check),
    )  # fmt: skip


def _plain_name(name: str) -> str:
    """Model servers take letters, digits, `_` and `-`."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:LONGEST_NAME] or "tool"


def _first_lines(description: str) -> str:
    return " ".join(description.split("\n\n", 1)[0].split())


def _checker(schema: Mapping[str, object]) -> Callable[[Mapping[str, object]], str]:
    """A function that says what is wrong with a call's arguments, if anything. Raises ToolError for a bad schema."""
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.exceptions import best_match
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise ToolError(f"its parameters are declared wrongly ({error.message[:200]})") from error
    known = kind(schema, registry=Registry())  # an empty one: a declaration never makes us fetch an address

    def check(values: Mapping[str, object]) -> str:
        try:
            error = best_match(known.iter_errors(values))
        except Unresolvable as error_in_schema:
            return f"its declaration points to {error_in_schema.ref!r}, which is not in it"
        where = "" if error is None else error.json_path.removeprefix("$").removeprefix(".")
        return "" if error is None else f"{where}{': ' if where else ''}{error.message[:300]}"

    return check


def _read(check: Callable[[Mapping[str, object]], str], spec: ToolSpec, arguments: str) -> dict[str, object]:
    values = json_object(spec, arguments)
    if wrong := check(values):
        raise ToolError(f"{spec.name}: {wrong}")
    return values
