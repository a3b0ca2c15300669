"""The declared tools that a request may mean, by the words that they share. For a model too small to judge it alone.

Pure: declarations and what was said in, calls and questions out. The small model reads a tool that it has never seen
well enough to fill it in, but calls one where none fits and makes up what was not said. Larger models know better.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assistant.contracts import Line
from assistant.events import ToolSpec
from assistant.llm.small.slots import COMMON, Param, beside, given, parameters_of, words_apart, words_of

GOES_ON = frozenset({
    "again", "also", "and", "another", "instead", "it", "no", "now", "same", "then", "too",
})  # fmt: skip
"""A request that ends with one of these, or has one among its first two words, may leave unsaid what it is about."""

Takes = Mapping[str, object]  # JSON schema of a tool's parameters


@dataclass(frozen=True, slots=True)
class Meant:
    """The possible answers to a request.

    calls  the tools that may be called, by name, each with its parameters as far as they were said
    asks   questions for what was not
    """

    calls: Mapping[str, Takes] = field(default_factory=dict)
    asks: tuple[str, ...] = ()


def what_is_meant(tools: Sequence[ToolSpec], lines: Sequence[Line]) -> Meant:
    """By the last user's line; one that answers a question, or goes on, is read with the lines before it.

    A listed value that was not said may not be given, words must have been said in a row. A tool that needs what was
    not said may not be called yet: that is asked for.
    """
    heard = last_request(lines)
    about, calls, asks = words_of("\n".join(heard)) - COMMON, dict[str, Takes](), list[str]()
    found: list[tuple[ToolSpec, list[Param], frozenset[str], bool]] = []
    for tool in tools:
        takes = parameters_of(tool.parameters)
        values = words_of(" ".join(str(value) for it in takes for value in it.values))
        names = words_of(f"{tool.name} {tool.description}") - COMMON
        if shared := about & (names | values):
            found.append((tool, takes, shared, bool(about & names)))
    for tool, takes, shared, by_name in found:
        if any(shared < others for _, _, others, _ in found):
            continue  # another one shares all of that and more
        said = given(tool, takes, heard)
        missing = [it for it in takes if it.required and it.key not in said]
        unsure = [it for it in takes if it.required and it.is_unsure(heard)]
        asks += [question(it.key, it.choices) for it in missing or unsure if by_name]
        if not missing:
            calls[tool.name] = narrowed(tool, takes, said, heard)
    return Meant(calls, tuple(dict.fromkeys(asks)))


def what_else_may_be_meant(tools: Sequence[ToolSpec], lines: Sequence[Line]) -> dict[str, Takes]:
    """The tools that may be called where the request shares no word with one, as "it is freezing in here": those that
    lack nothing. A listed value that is needed and was not said may be any."""
    heard, found = last_request(lines), dict[str, Takes]()
    for tool in tools if heard else ():
        takes = parameters_of(tool.parameters)
        may = {it.key: it.declared for it in takes if it.required and it.values} | given(tool, takes, heard)
        if all(it.key in may for it in takes if it.required):
            found[tool.name] = narrowed(tool, takes, may, heard)
    return found


def narrowed(tool: ToolSpec, takes: Sequence[Param], said: Mapping[str, Takes], heard: Sequence[str]) -> Takes:
    """A tool's parameters with the values that may be given. Listed values, switches and numbers that
    were said beside their names are required."""
    if not isinstance(tool.parameters.get("properties"), Mapping):
        return tool.parameters
    named = {it.key for it in takes if it.values or it.kind == "boolean" or (it.is_number and beside(heard[-1], it))}
    required = [it.key for it in takes if it.required or it.key in named & said.keys()]
    return {**tool.parameters, "properties": said, "required": required}


def question(name: str, choices: Sequence[str]) -> str:
    """How a parameter is asked for: by its values, if they are two or three, else by its name."""
    if {*choices} == {"on", "off"}:
        return "On or off?"
    if 1 < len(choices) < 4:
        return f"Which one: {', '.join(choices[:-1])} or {choices[-1]}?"
    return f"Which {words_apart(name).lower()}?"


def last_request(lines: Sequence[Line]) -> list[str]:
    """The last user's line, behind those that it goes on from."""
    users = [at for at, line in enumerate(lines) if line.role == "user"]
    said: list[str] = []
    for at in reversed(users):
        said.insert(0, lines[at].text)
        answers = at > 0 and lines[at - 1].role == "assistant" and lines[at - 1].text.rstrip().endswith("?")
        if not answers and not _goes_on(lines[at].text):
            break
    return said


def _goes_on(text: str) -> bool:
    words = re.findall(r"[a-z']+|[0-9]+", text.lower())
    own = words_of(text) - COMMON
    return not GOES_ON.isdisjoint((*words[:2], *words[-1:])) or all(word.isdigit() for word in own)
