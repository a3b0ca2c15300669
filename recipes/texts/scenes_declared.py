"""Talks with tools that nobody knows by heart: they are declared, and the assistant has to read what they are for.

Every talk declares different ones: of real domains (`declared.txt`) and of made-up words, with other names,
descriptions and parameters each time. A request that fits one becomes a call with the values given; the assistant asks
for missing required ones, and refuses requests that no tool fits, naming the thing. Results are phrases or JSON, and
are spoken.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from recipes.texts.declared_words import DOMAINS, KINDS, PLACES, ToolRow, ToolShape, domains
from recipes.texts.scene import Declaration, Parameter, Scene, Talk, TalkTurn, Unusable
from recipes.texts.scenes_interrupted import now_and_then
from recipes.texts.scenes_talk import itself, memory, small_talk
from recipes.texts.scenes_time import alarm, clock, date, reminder, timer
from recipes.texts.scenes_tools import arithmetic, conversion, lists, notes
from recipes.texts.slots import time_of_day
from recipes.texts.tools import TOOL_NAMES
from recipes.texts.words import Split

BUILT_IN: Final = (clock, date, timer, alarm, reminder, arithmetic, conversion, lists, notes)
"""Uses of the built-in tools, requested where others are declared beside them."""
CHAT: Final = (memory, small_talk, itself)
"""Exchanges that need no tool."""
ANSWERS: Final = (
    "{x}", "{x} please", "make it {x}", "i mean {x}", "let's say {x}", "{x} i think", "{x} then", "well {x}", "oh {x}",
    "i would say {x}", "{x} of course", "{x} if you can",
)  # fmt: skip
NEXT: Final = {
    "place": (
        "and in the {x}", "and in the {x} too", "the same in the {x}", "now in the {x}", "and {x}", "in the {x} too",
        "also in the {x}", "now the same in the {x}", "do the same in the {x}", "in the {x} as well",
    ),
    "": (
        "now {x}", "and now {x}", "make it {x} now", "{x} now", "better {x}", "no make it {x}", "and then {x}",
        "rather {x}",
    ),
}  # fmt: skip
"""The user's possible answers when asked for one thing, and requests to change one thing of the last call."""
DONE: Final = ("ok", "done", "true", "success", '{"ok": true}', '{"status": "ok"}', '{"success": true}', "null")
"""Results that only say that it worked."""


FACTS: Final = (
    "temperature", "state", "level", "price", "distance", "humidity", "battery", "time_left", "count", "speed", "wind",
    "score", "total", "status", "rain", "pressure", "weight", "next_stop", "result", "mode",
)  # fmt: skip
"""Names in results that are JSON."""


UNUSED: Final = (
    Parameter("unit", values=("celsius", "fahrenheit"), required=False), Parameter("language", required=False),
    Parameter("fade", "number", tells="seconds", required=False), Parameter("silent", "boolean", required=False),
    Parameter("limit", "integer", required=False), Parameter("priority", values=("low", "high"), required=False),
    Parameter("user_id", tells="the user's id", required=False), Parameter("verbose", "boolean", required=False),
)  # fmt: skip
"""Parameters that a tool may also have, and nobody uses."""
FURTHER: Final = (
    *[""] * 12,
    " for the user",
    " at home",
    " right now",
    " in the house",
    " of this place",
    ", if there is one",
)
"""Continuations of a description."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A declared tool and its requests. `words` fill its kind's lines; `said` are the values of each hole that has a
    list of them, as people say them, with their form in a call."""

    declaration: Declaration
    kind: ToolShape
    row: ToolRow
    words: dict[str, str]
    holes: dict[str, Parameter]
    sources: dict[str, str]
    said: dict[str, dict[str, str]]

    @property
    def required(self) -> set[str]:
        return {hole for hole, parameter in self.holes.items() if parameter.required}

    def lines(self, whole: bool) -> list[tuple[str, ...]]:
        """Groups of requests that give all required values (`whole`), or not all."""
        return [
            lines
            for said, lines in self.kind.groups().items()
            if said <= self.holes.keys() and (self.required <= said) == whole
        ]


# ------------------------------------------------------------------------------------------------ declarations


def offer(s: Scene, row: ToolRow) -> Offer:
    """A tool of this row, made up: its name, its description, its parameters."""
    kind = KINDS[row.kind]
    words = {"t": s.rng.choice(row.things), "p": "", "u": "", "v": "", "q": "", "acts": ""}
    names = {hole: its.names for hole, its in kind.holes.items()}
    sources = {hole: its.source for hole, its in kind.holes.items()}
    listed: dict[str, tuple[str, ...]] = {}
    match row.kind, row.more:
        case "level", (called, (scale,)):
            low, high, words["u"] = scale.split()
            names["n"], sources["n"] = called, f"number {low} {high}"
        case (("choose" | "go" | "order"), (called, values)):
            names["value"], listed["value"] = called, values
        case "lookup", (called, values):
            names["key"], listed["key"] = called, values
        case "act", (verbs,):
            listed["act"], words["acts"] = verbs, " or ".join(verbs[:2])
        case "plain", (verbs,):
            words["v"] = s.rng.choice(verbs)
        case "log", (numbers, called, (unit,), values):
            names["n"], names["value"], listed["value"], words["u"] = numbers, called, values, unit
            sources["n"] = "number 1 200"
    for hole, values in listed.items():
        sources[hole] = values[0] if values[0] in _OPEN else "listed"
    chosen = {hole: s.rng.choice(names[hole]) for hole in kind.holes}
    words |= {"p": chosen.get("value") or chosen.get("key") or chosen.get("n", ""), "q": chosen.get("n", "")}
    holes, said = {}, {}
    for hole, its in kind.holes.items():
        if its.optional and s.chance(0.5):
            continue
        said[hole] = _values(s, sources[hole], listed.get(hole, ()))
        holes[hole] = _parameter(
            s, chosen[hole], sources[hole], said[hole], words["u"], not its.optional or s.chance(0.4)
        )
    if len({p.name for p in holes.values()}) < len(holes):
        raise Unusable(str(holes))
    if s.chance(0.15):
        holes["unused"], said["unused"] = s.rng.choice(UNUSED), {}
    told = dict(words)
    if row.kind in ("switch", "level", "choose", "act", "plain") and not words["t"].endswith("s") and s.chance(0.3):
        plural = s.rng.choice([told, words])
        plural["t"] += "s"
    fill = {key: text.replace(" ", "_") for key, text in told.items()}
    name = _styled(s, s.rng.choice(kind.names).format(**fill))
    tells = s.rng.choice(kind.tells).format(**told) + s.rng.choice(FURTHER) if s.chance(0.95) else ""
    if s.chance(0.6):
        tells = tells[:1].upper() + tells[1:] + s.rng.choice([".", ""])
    ordered = list(holes) if s.chance(0.6) else s.rng.sample(list(holes), len(holes))
    declaration = Declaration(name, tells, tuple(holes[hole] for hole in ordered))
    return Offer(declaration, kind, row, words, holes, sources, said)


def _styled(s: Scene, name: str) -> str:
    """`set_light`, now and then `setLight`."""
    if s.chance(0.93):
        return name
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _values(s: Scene, source: str, values: tuple[str, ...]) -> dict[str, str]:
    """The values that a parameter's declaration lists: spoken form to written form. Empty: any."""
    if source == "onoff":
        return {"on": "true", "off": "false"} if s.chance(0.4) else {"on": "on", "off": "off"}
    if source == "place" and s.chance(0.5):
        values = tuple(_place(s) for _ in range(5))
    elif source not in ("listed", "acts"):
        return {}
    some = list(dict.fromkeys(values))
    some = s.rng.sample(some, min(len(some), s.rng.randint(2, 5)))
    joint = "_" if s.chance(0.3) else " "
    return {value: value.replace(" ", joint) for value in some}


def _parameter(s: Scene, name: str, source: str, said: dict[str, str], unit: str, required: bool) -> Parameter:
    if "true" in said.values():
        return Parameter(_styled(s, name), "boolean", required=required)
    if said:
        return Parameter(_styled(s, name), "string", tuple(said.values()), required=required)
    number = source.startswith(("number", "count"))
    kind = s.rng.choice(["number", "integer"]) if number else "string"
    tells = (
        s.rng.choice([f"The {name}.", f"in {unit}" if unit and number else f"which {name}"]) if s.chance(0.25) else ""
    )
    return Parameter(_styled(s, name), kind, (), tells, required)


def _place(s: Scene, certain: bool = True) -> str:
    """A room; it may be any word if it is `certain` that a place is meant."""
    return s.word() if certain and s.practice and s.chance(0.5) else s.rng.choice(PLACES)


_OPEN: Final[dict[str, Callable[[Scene], str]]] = {
    "place": _place,
    "words": lambda s: (
        s.words(s.rng.randint(1, 3))
        if s.chance(0.5 if s.practice else 0.2)
        else s.value(s.rng.choice(["task", "label", "item"]))
    ),
    "name": lambda s: s.value("name"),
    "city": lambda s: s.value("city"),
    "item": lambda s: s.value("item"),
    "topic": lambda s: s.value("topic"),
    "day": lambda s: s.rng.choice([s.value("day"), s.value("day"), "tomorrow", "today"]),
    "time": time_of_day,
    "count": lambda s: s.number(s.whole(2, 20)),
}
"""Fillings for holes whose values are not listed."""


def _fill(s: Scene, it: Offer, hole: str, line: str = "") -> str:
    """A value as people say it, in this line."""
    if it.said[hole]:
        return s.rng.choice(list(it.said[hole]))
    source = it.sources[hole]
    if source == "place":
        return _place(s, certain=f"{{{hole}}} {{t}}" not in line)  # in `sofa lamp` it is not clear that this is a place
    if source.startswith("number"):
        _, low, high = source.split()
        return s.number(s.whole(int(low), int(high)))
    return _OPEN[source](s)


def familiar(s: Scene) -> str:
    """A word without meaning in its place: one from other texts, or any."""
    if s.chance(0.65 if s.practice else 0.1):
        return s.word()
    return s.value(s.rng.choice(["item", "label", "list", "pet", "hero", "quality", "favorite", "adj"]))


@cache
def held_things() -> frozenset[str]:
    """Things that only the tools of the held-out domains are about."""
    held, kept = (
        {thing for domain in domains(split) for row in DOMAINS[domain] for thing in row.things}
        for split in ("test", "train")
    )
    return frozenset(held - kept)


def made_up(s: Scene) -> ToolRow:
    """A row of words without meaning here: the purpose of such a tool can only be read."""
    kind = s.rng.choice(list(KINDS))
    things = (familiar(s) if s.chance(0.8) else s.words(2),)
    if held_things() & {*things}:
        raise Unusable(things[0])
    called, values = (familiar(s).split(" ")[0],), tuple(dict.fromkeys(familiar(s) for _ in range(4)))
    match kind:
        case "level":
            return ToolRow(
                kind,
                things,
                (called, (f"1 {s.rng.choice([20, 100, 300])} {s.rng.choice(['steps', 'percent', 'points'])}",)),
            )
        case "log":
            return ToolRow(
                kind,
                things,
                (("amount", "count", "number"), called, (s.rng.choice(["points", "minutes", s.word()]),), values),
            )
        case "choose" | "go" | "order":
            return ToolRow(kind, things, (called, values))
        case "lookup":
            return ToolRow(
                kind, things, (called, (s.rng.choice(["words", "name", "city", "item"]),) if s.chance(0.6) else values)
            )
        case "act" | "plain":
            return ToolRow(kind, things, (values[: s.rng.choice([2, 3])],))
    return ToolRow(kind, things)


def some_row(s: Scene, domain: str) -> ToolRow:
    """A row of a domain, or of none."""
    return s.rng.choice(DOMAINS[domain]) if domain else made_up(s)


def some_offers(s: Scene) -> list[Offer]:
    """One to six tools, mostly from one or two domains."""
    invented = s.split == "train" and s.chance(0.6)
    known = [""] if invented else s.rng.sample(domains(s.split), s.rng.choice([1, 2, 2, 3]))
    wanted, found = s.rng.choice([1, 1, 2, 2, 3, 3, 4, 5, 6]), dict[str, Offer]()
    for _ in range(40):
        if len(found) == wanted:
            break
        try:
            it = offer(s, some_row(s, s.rng.choice(known)))
        except Unusable:
            continue
        if it.declaration.name not in TOOL_NAMES and not any(same(it, other) for other in found.values()):
            found.setdefault(it.declaration.name, it)
    return list(found.values())


def same(it: Offer, other: Offer) -> bool:
    """Whether a request for one could mean the other."""
    return (
        it.row.kind == other.row.kind
        and bool({*it.row.things} & {*other.row.things})
        and it.words["v"] == other.words["v"]
    )


# -------------------------------------------------------------------------------------------------- exchanges


def asked(s: Scene, it: Offer, lines: tuple[str, ...]) -> dict[str, str]:
    """The user says one of these lines. Returns its arguments, by hole."""
    line = s.phrasing(lines)
    slots = {hole: _fill(s, it, hole, line) for hole in it.holes if f"{{{hole}}}" in line}
    fixed = {key: text for key, text in it.words.items() if text}
    written = s.user(line, **fixed, **slots)
    return {hole: it.said[hole].get(slots[hole], written[hole]) for hole in slots}


def use(s: Scene, offers: list[Offer]) -> None:
    """A request that fits one of the tools; missing values are asked for; perhaps once more, with one thing changed."""
    it = s.rng.choice(offers)
    alone = sum({*it.row.things} & {*other.row.things} != set() for other in offers) == 1
    partial = it.lines(whole=False)
    whole = not (alone and partial and s.chance(0.4))
    given = asked(s, it, s.rng.choice(it.lines(whole=True) if whole else partial))
    if it.words["t"] not in s.turns[-1].text and sum(other.row.kind == it.row.kind for other in offers) > 1:
        raise Unusable(s.turns[-1].text)  # `play …`, which could mean two tools
    for parameter in it.declaration.parameters:
        hole = next(hole for hole, its in it.holes.items() if its is parameter)
        if hole in it.required and hole not in given:
            ask_back(s, it, hole)
            given[hole] = one(s, it, hole, ANSWERS)
    answered(s, it, given, "call declared")
    if given and s.chance(0.35 if s.practice else 0.2):
        hole = s.rng.choice(list(given))
        before = given[hole]
        given[hole] = one(s, it, hole, NEXT["place" if hole == "place" else ""])
        if given[hole] == before:
            raise Unusable(before)
        answered(s, it, given, "follow-up declared")


def one(s: Scene, it: Offer, hole: str, lines: tuple[str, ...]) -> str:
    """The user says one value."""
    value = _fill(s, it, hole)
    written = s.user(s.phrasing(lines), x=value)["x"]
    return it.said[hole].get(value, written)


def ask_back(s: Scene, it: Offer, hole: str) -> None:
    """Ask for the missing value."""
    which(s, it.holes[hole].name, list(it.said[hole]))


def which(s: Scene, parameter: str, values: list[str]) -> None:
    """Ask for a parameter: by its values, if they are few, else by its name."""
    name = spaced(parameter)
    if 1 < len(values) < 4:
        asks = "On or off?" if {*values} == {"on", "off"} else f"Which one: {', '.join(values[:-1])} or {values[-1]}?"
        s.say(asks, kind="ask declared")
        s.turns[-1].accept += (f"Which {name}?",)
    else:
        s.say(f"Which {name}?", kind="ask declared")
        s.turns[-1].accept += (f"What {name}?", f"What is the {name}?")


def spaced(name: str) -> str:
    """`livingRoom` and `living_room` as words."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).replace("_", " ").strip()


def answered(s: Scene, it: Offer, given: dict[str, str], kind: str) -> None:
    """The call, its result, and the reply about it."""
    arguments = {p.name: given[hole] for p in it.declaration.parameters for hole in given if it.holes[hole] is p}
    outcome(s, PutCall(it.declaration.name, arguments, it.words, it.kind.looks), kind)


@dataclass(frozen=True, slots=True)
class PutCall:
    """A call. `words`: the thing that it is about, a parameter and a unit; `looks`: it reports something."""

    name: str
    arguments: dict[str, str]
    words: dict[str, str]
    looks: bool


def outcome(s: Scene, it: PutCall, kind: str) -> None:
    """The call, its result, and the reply about it."""
    thing = it.words["t"]
    if s.chance(0.12):
        reason = s.rng.choice(
            [
                f"the {thing} does not answer",
                "no connection",
                s.words(2),
                f"the {thing} is broken",
                f"no {s.word()} found",
            ]
        )
        failed = s.rng.choice(
            [json.dumps({"error": reason}), json.dumps({"ok": False, "error": reason}), f"error: {reason}"]
        )
        called(s, it.name, it.arguments, failed, kind)
        s.say(f"Sorry, that did not work: {reason}.", kind="error declared")
        return
    shape = s.rng.random() * (0.6 if it.looks else 1.0)
    if shape < 0.35:
        result = sentence(s, it.words)
        said = result if result.split()[0] in ("the", "no") or result[0].isdigit() else f"it says {result}"
    elif shape < 0.6:
        keys = [*s.rng.sample(FACTS, 3), it.words["p"] or "state", familiar(s).replace(" ", "_")]
        picked = s.rng.sample(keys, s.rng.choice([1, 1, 2]))
        facts = {key: s.whole(1, 200) if s.chance(0.6) else familiar(s) for key in picked}
        result = json.dumps(facts)
        said = " and ".join(f"the {spaced(key)} is {value}" for key, value in facts.items())
    else:
        result, said = s.rng.choice(DONE), "done"
    called(s, it.name, it.arguments, result, kind)
    s.say(f"{said}.", kind="reply declared")


def called(s: Scene, name: str, arguments: dict[str, str], result: str, kind: str) -> None:
    """The call and its result."""
    s.turns += [TalkTurn("assistant", "", (name, arguments), kind), TalkTurn("tool", result)]


def sentence(s: Scene, words: dict[str, str]) -> str:
    """A result in words."""
    thing, word, n = words["t"], familiar(s), s.whole(2, 300)
    return s.rng.choice(
        [f"the {thing} is {word}", f"{n} {words['u'] or word}", f"{word} and {familiar(s)}",
         f"the {thing} says {word} {familiar(s)}",
         f"{word} {familiar(s)}", f"the {word} of the {thing} is {n}", f"{thing}: {word}, {n}", f"no {word} today"]
    )  # fmt: skip


_BESIDE: Final = re.compile(r"{t} {(value|text|key)}|{(value|text|key)} {t}")
"""Among words without meaning, nobody could see which are the thing after one of these."""


def refused(s: Scene, offers: list[Offer]) -> None:
    """A request that fits none of the tools: of the same domain, of another one, or made up."""
    domain = "" if s.split == "train" and s.chance(0.5) else s.rng.choice(domains(s.split))
    row = s.rng.choice(offers).row
    if s.chance(0.3):
        domain = next((name for name, rows in DOMAINS.items() if row in rows), domain)
    it = offer(s, some_row(s, domain))
    it.said["place"] = {}  # nobody has named its places
    told = (word for other in offers for text in (*other.row.things, other.declaration.tells) for word in text.split())
    held = {word.lower().rstrip("s.") for word in told}
    if held & {word.rstrip("s") for word in it.words["t"].split()}:
        raise Unusable(it.words["t"])
    groups = [lines for lines in it.lines(whole=True) if all("{t}" in line for line in lines)]
    if not domain:
        groups = [tuple(line for line in lines if not _BESIDE.search(line)) for lines in groups]
    groups = [lines for lines in groups if lines]
    if not groups:
        raise Unusable(it.words["t"])
    asked(s, it, s.rng.choice(groups))
    thing = it.words["t"]
    s.say(f"I have no tool for the {thing}.", kind="refusal declared")
    s.turns[-1].accept += (f"I have no tool for {thing}.", f"I have no tool for a {thing}.")


def declared_talk(rng: random.Random, split: Split = "train", noise: float = 0.15, practice: bool = False) -> Talk:
    """A short talk with one to six tools that are declared, beside the built-in ones or alone."""
    while True:
        scene = Scene(rng, split, noise, practice)
        offers = some_offers(scene)
        if not offers:
            continue
        built_in = rng.random() < 0.6
        scene.tools = (*(TOOL_NAMES if built_in else ()), *(it.declaration for it in offers))
        for _ in range(rng.choice([2, 3, 3, 4, 5, 6])):
            now_and_then(scene)
            turns, known = len(scene.turns), dict(scene.known)
            try:
                _exchange(scene, offers, built_in)
            except Unusable:
                del scene.turns[turns:]
                scene.known = known
        if scene.turns:
            return Talk(scene.system, scene.tools, scene.turns)


def _exchange(s: Scene, offers: list[Offer], built_in: bool) -> None:
    shape = s.rng.random()
    if shape < 0.52:
        use(s, offers)
    elif shape < 0.86:
        refused(s, offers)
    elif built_in and shape < 0.96:
        s.rng.choice(BUILT_IN)(s)
    else:
        s.rng.choice(CHAT)(s)
