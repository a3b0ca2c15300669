"""Talks from lines made up by hand: things people tell about themselves and ask for later, tools of any kind.

The writers had seen no other text, so their lines have what no pattern here has: other verbs, other shapes, questions
worded differently from the telling. Whole topics and whole sets of tools are held out, by the hash of their names.

A topic of `written_told.txt` has lines that `tell` one thing, each of them an answer to every line that `ask`s, and
lines that are `never` answered. A set of `written_tools.txt` declares its tools; `do` lines hold all that one needs,
`ask` lines do not, `none` lines fit none of them. `{slot}` stands for a value, `{slot=value}` for one that other words
express, `<…>` for the thing that a refusal names.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from assistant.llm.small.recall import KEPT
from recipes.texts.phrases import split_phrases
from recipes.texts.scene import Declaration, Parameter, Scene, Talk, Unusable
from recipes.texts.scenes_declared import ANSWERS, BUILT_IN, CHAT, PutCall, outcome, which
from recipes.texts.scenes_interrupted import now_and_then
from recipes.texts.scenes_recalled import RECALL, aside
from recipes.texts.tools import TOOL_NAMES
from recipes.texts.words import Split, held_out

_HERE: Final = Path(__file__).parent
_SLOT: Final = re.compile(r"\{(\w+)(?:=(\w+))?\}")
NOT_TOLD: Final = "You have not told me yet."


def sections(name: str) -> Iterator[tuple[str, list[str]]]:
    """Name and lines of each topic or set in a file."""
    held: list[str] = []
    for line in filter(None, map(str.strip, (_HERE / name).read_text("utf-8").splitlines())):
        if line.startswith("["):
            held = []
            yield line.strip("[]"), held
        else:
            held.append(line)


# ---------------------------------------------------------------------------------------------- told and asked


@dataclass(frozen=True, slots=True)
class Topic:
    """One small thing of somebody's life. `slots` are the values of the holes in the lines."""

    told: tuple[str, ...]
    asked: tuple[str, ...]
    never: tuple[str, ...]
    slots: dict[str, tuple[str, ...]]


def _topic(lines: list[str]) -> Topic:
    spoken: dict[str, tuple[str, ...]] = {"tell": (), "ask": (), "never": ()}
    slots: dict[str, tuple[str, ...]] = {}
    for line in lines:
        key, mark, rest = line.partition(": ")
        if mark and key in spoken:
            spoken[key] += split_phrases(rest)
        else:
            name, _, values = line.partition(" = ")
            slots[name] = tuple(value.strip() for value in values.split(","))
    return Topic(spoken["tell"], spoken["ask"], spoken["never"], slots)


@cache
def topics(split: Split) -> tuple[Topic, ...]:
    """The topics that a split may use: a tenth, by hash, is for scoring only."""
    found = [*sections("written_told.txt")]
    return tuple(_topic(lines) for name, lines in found if held_out(f"topic {name}") == (split == "test"))


def told_talk(rng: random.Random, split: Split = "train", noise: float = 0.15, practice: bool = False) -> Talk:
    """One to eight things told, with other talk between, and some asked for: told, never told, told twice."""
    while True:
        s = Scene(rng, split, noise, practice)
        topics_here = rng.sample(topics(split), rng.choice([1, 1, 2, 2, 3, 4, 6, 8]))
        told, others = dict[int, str](), rng.sample(topics(split), 3)
        for at, topic in enumerate(topics_here):
            told[at] = _told(s, topic)
            _between(s, 0.35)
            if rng.random() < 0.12:
                again = rng.randrange(at + 1)
                told[again] = _told(s, topics_here[again])
        _between(s, 0.5)
        for _ in range(rng.randint(1, min(5, len(topics_here) + 2))):
            at = rng.randrange(len(topics_here))
            now_and_then(s)
            match rng.random():
                case chance if chance < 0.64:
                    s.user(rng.choice(topics_here[at].asked))
                    s.say(f"You said: {told[at].rstrip('.?!')}.", kind=RECALL)
                case chance if chance < 0.86:
                    s.user(rng.choice(topics_here[at].never))
                    s.say(NOT_TOLD, kind="recall: never told")
                case _:
                    other = rng.choice(others)
                    if other in topics_here:
                        continue
                    s.user(rng.choice(other.asked + other.never))
                    s.say(NOT_TOLD, kind="recall: never told")
            _between(s, 0.15)
        if s.turns:
            return Talk(s.system, s.tools, s.turns)


def _told(s: Scene, topic: Topic) -> str:
    """Somebody tells it; returns the line as it is read."""
    line = s.rng.choice(topic.told)
    values = {slot: s.rng.choice(values) for slot, values in topic.slots.items()}
    s.user(line.format(**values))
    text = s.turns[-1].text
    s.say(KEPT, kind="fact told")
    return text


def _between(s: Scene, chance: float) -> None:
    while s.chance(chance):
        turns, known = len(s.turns), dict(s.known)
        try:
            s.rng.choice([aside, aside, *BUILT_IN, *CHAT])(s)
        except Unusable:
            del s.turns[turns:]
            s.known = known


# ----------------------------------------------------------------------------------------------------- tools


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter as it is written: `kind` is number, decimal, yesno, text or listed."""

    kind: str
    required: bool
    values: tuple[str, ...] = ()
    range: tuple[int, int] = (0, 0)
    tells: str = ""

    def parameter(self, name: str, values: tuple[str, ...]) -> Parameter:
        kind = {"number": "integer", "decimal": "number", "yesno": "boolean"}.get(self.kind, "string")
        return Parameter(name, kind, values, self.tells, self.required)


@dataclass(slots=True)
class WrittenTool:
    """A tool as it is written, with the requests for it."""

    tells: str
    slots: dict[str, Slot]
    do: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()


@dataclass(slots=True)
class ToolSet:
    """The declarations of one app or device, and requests to it that no tool fits."""

    name: str
    tools: dict[str, WrittenTool] = field(default_factory=dict)
    none: tuple[str, ...] = ()


_LOOKS: Final = re.compile("check|count|find|get|is|list|look|measure|query|read|search|show|status|track|view|what")
"""Beginnings of the names of tools that report something."""
_PARAMETER: Final = re.compile(r'(\w+)(!?) = (.*?)(?: "([^"]*)")?')


def _slot(text: str) -> tuple[str, Slot]:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise ValueError(f"written_tools.txt: {text!r} is not a parameter")
    name, required, spec, tells = match.groups()
    kind, _, rest = spec.partition(" ")
    if kind in ("number", "decimal"):
        low, high = (int(float(end)) for end in rest.split())
        return name, Slot(kind, bool(required), (), (low, high), tells or "")
    if spec == "yesno":
        return name, Slot(kind, bool(required), (), (0, 0), tells or "")
    kind, listed = ("text", rest) if kind == "text" else ("listed", spec)
    return name, Slot(kind, bool(required), tuple(value.strip() for value in listed.split(",")), (0, 0), tells or "")


def _tool_set(name: str, lines: list[str]) -> ToolSet:
    found = ToolSet(name)
    for line in lines:
        head, _, rest = line.partition(": ")
        what, _, of = head.partition(" ")
        if what == "tool":
            called, tells, *takes = (part.strip() for part in rest.strip(" |").split("|"))
            found.tools[called] = WrittenTool(tells, dict(map(_slot, takes)))
        elif what == "none":
            found.none += split_phrases(rest)
        else:
            phrases = split_phrases(rest)
            setattr(found.tools[of], what, getattr(found.tools[of], what) + phrases)
    return found


@cache
def tool_sets(split: Split) -> tuple[ToolSet, ...]:
    """The sets that a split may use: a tenth, by hash, is for scoring only."""
    found = [*sections("written_tools.txt")]
    return tuple(_tool_set(name, lines) for name, lines in found if held_out(f"tools {name}") == (split == "test"))


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool as one talk declares it. `listed`: spoken form of each value of parameters with listed values."""

    tool: WrittenTool
    declaration: Declaration
    listed: dict[str, dict[str, str]]


def _offered(s: Scene, name: str, tool: WrittenTool) -> Offered:
    """The tool, sometimes with fewer values or in another order: it has to be read each time."""
    fixed = {(key, value) for line in tool.do + tool.ask for key, value in _SLOT.findall(line) if value}
    listed: dict[str, dict[str, str]] = {}
    parameters = []
    for key, slot in tool.slots.items():
        values = slot.values if slot.kind == "listed" else ()
        if len(values) > 2 and s.chance(0.5):
            some = {*s.rng.sample(values, s.rng.randint(2, len(values)))}
            values = tuple(value for value in values if value in some or (key, value) in fixed)
        if slot.kind == "yesno":
            listed[key] = {"true": "on", "false": "off"}
        elif values:
            listed[key] = {value: re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", value).lower() for value in values}
        parameters.append(slot.parameter(key, values))
    if s.chance(0.3):
        s.rng.shuffle(parameters)
    return Offered(tool, Declaration(name, tool.tells if s.chance(0.95) else "", tuple(parameters)), listed)


def _value(s: Scene, it: Offered, key: str) -> tuple[str, str]:
    """The spoken value of a parameter, and its form in a call if that differs."""
    slot = it.tool.slots[key]
    if key in it.listed:
        value = s.rng.choice([*it.listed[key]])
        return it.listed[key][value], value
    if slot.kind == "text":
        return (s.words(s.rng.choice([1, 1, 2, 3])) if s.practice and s.chance(0.3) else s.rng.choice(slot.values)), ""
    number = s.number(s.whole(*slot.range))
    if slot.kind == "decimal" and s.chance(0.6):
        number += f" point {s.number(s.rng.randrange(1, 10))}"
    return number, ""


def _request(s: Scene, it: Offered, line: str) -> dict[str, str]:
    """The user says it. Returns the arguments."""
    given, said = dict[str, str](), dict[str, str]()
    for key, value in _SLOT.findall(line):
        given[key] = value
        if not value:
            said[f"x_{key}"], given[key] = _value(s, it, key)
    text = _SLOT.sub(lambda match: "" if match[2] else f"{{x_{match[1]}}}", line)
    for key, written in s.user(text, **said).items():
        given[key.removeprefix("x_")] = given[key.removeprefix("x_")] or written
    return given


def _use(s: Scene, of: ToolSet, offered: list[Offered]) -> None:
    """A request for one of them; missing values that it needs are asked for."""
    it = s.rng.choice(offered)
    given = _request(s, it, s.rng.choice(it.tool.ask if it.tool.ask and s.chance(0.25) else it.tool.do))
    for parameter in it.declaration.parameters:
        if parameter.required and parameter.name not in given:
            which(s, parameter.name, [*it.listed.get(parameter.name, {}).values()])
            said, value = _value(s, it, parameter.name)
            written = s.user(s.phrasing(ANSWERS), x=said)["x"]
            given[parameter.name] = value or written
    arguments = {p.name: given[p.name] for p in it.declaration.parameters if p.name in given}
    words = {"t": of.name, "p": next(iter(arguments), ""), "u": ""}
    looks = _LOOKS.match(it.declaration.name) is not None
    outcome(s, PutCall(it.declaration.name, arguments, words, looks), "call declared")


_ARTICLE: Final = re.compile(r"^(?:the|a|an|my|our|some|this) ")


def _refused(s: Scene, of: ToolSet) -> None:
    """A request that none of them fits: of the same neighbourhood, sometimes of another set's."""
    line = s.rng.choice(of.none if s.chance(0.75) else s.rng.choice(tool_sets(s.split)).none)
    things = [_ARTICLE.sub("", thing) for thing in re.findall(r"<([^>]+)>", line)]
    written = s.user(line.replace(things[0], "{x}", 1).translate({60: None, 62: None}), x=things[0])["x"]
    s.say(f"I have no tool for the {written}.", kind="refusal declared")
    s.turns[-1].accept += (f"I have no tool for {written}.", f"I have no tool for a {written}.")


_NOUN: Final = re.compile(
    r"\b(?:the|a|an|my|our|some|this|that|your) ((?:[a-z'-]+ ){0,2}?[a-z'-]+)"
    r"(?= (?:and|at|by|for|from|i|in|is|no|of|on|over|please|so|that|to|up|we|with|you)\b|$)"
)


def _not_offered(s: Scene, of: ToolSet, offered: list[Offered]) -> None:
    """A request for a tool not declared here, mostly of the same set: the refusal names the thing just as surely."""
    here = {it.declaration.name for it in offered}
    others = [*(of.tools.keys() - here)] if s.chance(0.75) else []
    of = of if others else s.rng.choice(tool_sets(s.split))
    name = s.rng.choice(sorted(others or of.tools))
    it = _offered(s, name, of.tools[name])
    given = _request(s, it, s.rng.choice(it.tool.do))
    nouns = _NOUN.findall(s.turns[-1].text)
    texts = [
        _ARTICLE.sub("", given[key]) for key, slot in it.tool.slots.items() if slot.kind == "text" and given.get(key)
    ]
    if name in here or not (nouns or texts):
        raise Unusable
    s.say(f"I have no tool for the {(nouns or texts)[0]}.", kind="refusal declared")
    s.turns[-1].accept += tuple(f"I have no tool for the {thing}." for thing in (*nouns, *texts))


def tools_talk(rng: random.Random, split: Split = "train", noise: float = 0.15, practice: bool = False) -> Talk:
    """A short talk with tools of one set, beside the built-in ones or alone."""
    while True:
        s = Scene(rng, split, noise, practice)
        of = rng.choice(tool_sets(split))
        tools = rng.sample([*of.tools.items()], rng.randint(min(2, len(of.tools)), len(of.tools)))
        offered = [_offered(s, name, tool) for name, tool in tools]
        built_in = rng.random() < 0.6
        s.tools = (*(TOOL_NAMES if built_in else ()), *(it.declaration for it in offered))
        for _ in range(rng.choice([2, 3, 3, 4, 5, 6])):
            now_and_then(s)
            turns, known = len(s.turns), dict(s.known)
            try:
                match rng.random():
                    case chance if chance < 0.56:
                        _use(s, of, offered)
                    case chance if chance < 0.73:
                        _refused(s, of)
                    case chance if chance < 0.88:
                        _not_offered(s, of, offered)
                    case chance if built_in and chance < 0.96:
                        rng.choice(BUILT_IN)(s)
                    case _:
                        rng.choice(CHAT)(s)
            except Unusable:
                del s.turns[turns:]
                s.known = known
        if s.turns:
            return Talk(s.system, s.tools, s.turns)
