"""What a request may mean of the declared tools, by the words that they share. For a model too small to judge it alone.

Pure: declarations and what was said in, calls and questions out. The small model reads a tool that it has never seen
well enough to fill it in, but calls one where none fits, refuses where one does, makes up what was not said, and asks
for what there is not. Retrieval by words is the oldest remedy there is. A larger model knows better and is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from assistant.base.units import units_in
from assistant.contracts import Line
from assistant.events import ToolSpec
from llm_engine.callguide import DIGITS


def words_of(text: str) -> frozenset[str]:
    """Words in small letters, in the singular; `setLight` and `set_light` are two."""
    return frozenset(_singular(word) for word in re.findall(r"[a-z]+|[0-9]+", _apart(text).lower()))


def spoken(text: str) -> list[str]:
    """Words as they were said; a time or a fraction is one."""
    return _SPOKEN.findall(text)


def _apart(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", name).strip()


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses")) else word[:-1]


COMMON = words_of(
    """
    a about all also am an and another any are as at back be been being but by can change could current currently d
    did do does doesn don done down each feel find for from get give go going good had has have he hear hello help
    her here hey him his how i if in into is isn it just know let like ll look m make many may me mean more much
    must my name need new no not now of off ok okay on one or our out over please put re return s say see set shall
    she should show so some somebody something sorry switch t take tell than thank that the their them then there
    these they thing think this those time to too turn u up us use user value ve very want was we well were what
    when where which who why will with would yes you your
    """
)
"""Words that say nothing of what a request is about."""
VERBS = words_of("add begin check close end get open pause play read run send start stop write")
"""Of what many tools do: where a request names something besides, a tool that shares only these with it is about
something else."""
YES, NO = words_of("on true yes enable"), words_of("off false no not disable")
YES_OR_NO = YES | NO
OURS = words_of("alarm count joke list note remind reminder story timer")
"""What the assistant does by itself, whatever else is named: `remind me to renew the loan`."""
GOES_ON = frozenset({
    "again", "also", "and", "another", "better", "instead", "it", "no", "now", "rather", "same", "then", "too",
})  # fmt: skip
"""A request that ends with one of these, or has one among its first two words, may leave unsaid what it is about."""
_AS_WELL = re.compile(r"\bas well\b", re.IGNORECASE)
LONGEST, MOST_SPANS, LONGEST_THING = 12, 200, 5
"""Words of a value that was said in a row; with more ways to say one than this, any may come."""
MEASURES = words_of("degrees dollars euros notch percent points steps times")
"""Units that nothing is converted to; `units_in` knows the others."""
NEVER_FIRST = frozenset({"a", "an", "and", "as", "at", "called", "for", "named", "of", "to"})
NEVER_LAST = frozenset(
    {"a", "an", "and", "as", "at", "for", "from", "in", "my", "of", "on", "the", "to", "with", "your"}
)
"""Words that no value begins or ends with."""
BEFORE_NAMES = frozenset({
    "are", "at", "away", "be", "by", "down", "from", "her", "him", "in", "into", "is", "it", "me", "my", "near", "off",
    "on", "our", "out", "over", "saying", "some", "that", "the", "them", "this", "up", "us", "with", "your",
})  # fmt: skip
TITLES = words_of(
    "album article body book caption comment content film message movie play post query show song text title track"
)
"""What a text is called that may begin with one of these; `the den` is the room `den`."""
OPENS = frozenset({
    "add", "are", "bring", "call", "can", "cancel", "change", "check", "could", "dim", "fetch", "find", "fix", "get",
    "give", "grab", "hold", "keep", "kill", "let's", "lower", "make", "move", "order", "pull", "push", "put", "raise",
    "remove", "send", "set", "show", "sign", "start", "stop", "switch", "take", "throw", "turn", "we'll",
     "did", "do", "does", "has", "have", "how", "how's", "i", "i'd", "i'll", "i'm", "i've", "is",
    "was", "we", "we're", "we've", "were", "what", "what's", "when", "where", "where's", "which", "who", "why", "will",
    "would", "you",
})  # fmt: skip
"""Words that begin an order, a question or a sentence, but no value there, if there is another."""
LEADS = frozenset({"called", "doing", "going", "looking", "named", "titled"})
"""Words beside a value that are none of it."""
_BETWEEN = frozenset({"about", "at", "by", "is", "number", "of", "the", "to"})
"""Words that may stand between a number and what it is called."""
_SPOKEN = re.compile(r"(?:[^\s,.;:!?]|(?<=\d)[.,:](?=\d))+")
_NUMBERS = re.compile(r"-?(?<![\d.])\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Meant:
    """What may be done about a request.

    calls    the tools that may be called, by name, each with its parameters as far as they were said
    asks     questions for what was not
    idle     questions for what none of these calls needs
    named    whether words of a tool's name or description were said, not only a value that it takes
    certain  whether all of some tool's name was said: then it is called or asked about
    things   what a refusal may name
    """

    calls: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    asks: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    named: bool = False
    certain: bool = False
    things: tuple[str, ...] = ()


def what_is_meant(tools: Sequence[ToolSpec], lines: Sequence[Line]) -> Meant:
    """By the last user's line; one that answers a question, or goes on, is read with the lines before it.

    A listed value that was not said may not be given, words must have been said in a row. A tool that needs what was
    not said may not be called yet: that is asked for.
    """
    heard = _said(lines)
    words = words_of("\n".join(heard))
    about, calls, asks, named = words - COMMON, dict[str, Mapping[str, object]](), list[str](), False
    things = {word for word in about - VERBS - words_of(" ".join(_names(heard))) if not word.isdigit()}
    found: list[tuple[ToolSpec, list[_Parameter], frozenset[str], bool]] = []
    questions: dict[str, None] = {}
    for tool in tools:
        takes = _takes(tool.parameters)
        questions |= {question(it.key, choices): None for it in takes for choices in (it.choices, ())}
        values = words_of(" ".join(str(value) for it in takes for value in it.values))
        names = words_of(f"{tool.name} {tool.description}") - COMMON
        elsewhere = names > VERBS & names and things - values and not any(it.is_text and it.required for it in takes)
        by_name = bool(about & (names - VERBS if elsewhere else names))
        if by_name or not about.isdisjoint(values):
            found.append((tool, takes, about & (names | values), by_name))
    for tool, takes, shared, by_name in found:
        if any(shared < others for _, _, others, _ in found):
            continue  # another one shares all of that and more
        given = _given(tool, takes, heard)
        missing = [it for it in takes if it.required and it.key not in given]
        unsure = [it for it in takes if it.required and it.is_unsure(words)]
        named = named or by_name
        asks += [question(it.key, it.choices) for it in missing or unsure if by_name]
        if not missing:
            is_open = not isinstance(tool.parameters.get("properties"), Mapping)
            calls[tool.name] = tool.parameters if is_open else _said_of(tool, takes, given, heard)
    idle = tuple(text for text in questions if text not in asks)
    own_names = (words_of(tool.name) - COMMON for tool, _, _, by_name in found if by_name)
    certain = any(len(name) > 1 and name <= words for name in own_names) and words.isdisjoint(OURS)
    certain = certain and lines[-1].role == "user" and bool(calls or asks)
    return Meant(calls, tuple(dict.fromkeys(asks)), idle, named, certain, _things(tools, heard[-1] if heard else ""))


def what_else_may_be_meant(tools: Sequence[ToolSpec], lines: Sequence[Line]) -> dict[str, Mapping[str, object]]:
    """The tools that may be called where the request shares no word with one, `it is freezing in here`: those that lack
    nothing. A listed value that is needed and was not said may be any."""
    heard, found = _said(lines), {}
    for tool in tools if heard else ():
        takes = _takes(tool.parameters)
        said = _given(tool, takes, heard)
        given = {it.key: it.declared for it in takes if it.required and it.values} | said
        if all(it.key in given for it in takes if it.required):
            found[tool.name] = _said_of(tool, takes, given, heard)
    return found


def _said_of(
    tool: ToolSpec, takes: Sequence[_Parameter], given: Mapping[str, Mapping[str, object]], heard: Sequence[str]
) -> Mapping[str, object]:
    """A tool's parameters with the values that may be given; what was said of listed ones has to be."""
    required = [
        it.key
        for it in takes
        if it.required or (it.key in given and (it.values or it.kind == "boolean" or _beside(heard[-1], it)))
    ]
    return {**tool.parameters, "properties": given, "required": required}


def question(name: str, choices: Sequence[str]) -> str:
    """How a parameter is asked for: by its values, if they are two or three, else by its name."""
    if {*choices} == {"on", "off"}:
        return "On or off?"
    if 1 < len(choices) < 4:
        return f"Which one: {', '.join(choices[:-1])} or {choices[-1]}?"
    return f"Which {_apart(name).lower()}?"


def _said(lines: Sequence[Line]) -> list[str]:
    """The last user's line, behind those that it goes on from."""
    users = [at for at, line in enumerate(lines) if line.role == "user"]
    said: list[str] = []
    for at in reversed(users):
        said.insert(0, lines[at].text)
        answers = at > 0 and lines[at - 1].role == "assistant" and lines[at - 1].text.rstrip().endswith("?")
        if not answers and not _goes_on(lines[at].text):
            break
    return said


def _names(heard: Sequence[str]) -> list[str]:
    """Of whom or where, seldom of what."""
    return [word for line in heard for word in spoken(line) if word[:1].isupper()]


def _goes_on(text: str) -> bool:
    words = re.findall(r"[a-z']+|[0-9]+", text.lower())
    own = words_of(text) - COMMON
    goes_on = not GOES_ON.isdisjoint((*words[:2], *words[-1:])) or _AS_WELL.search(text) is not None
    return goes_on or all(word.isdigit() for word in own)


@dataclass(frozen=True, slots=True)
class _Parameter:
    """One that a tool takes; `kind` is its JSON type, `values` all that it may be where that is listed."""

    key: str
    kind: str
    values: Sequence[object]
    required: bool
    declared: Mapping[str, object]

    @property
    def choices(self) -> list[str]:
        return ["on", "off"] if self.kind == "boolean" else [_apart(str(value)) for value in self.values]

    @property
    def is_text(self) -> bool:
        return self.kind == "string" and not self.values

    @property
    def is_number(self) -> bool:
        return self.kind in ("number", "integer") and not self.values

    def numbers(self, said: Sequence[str]) -> list[float]:
        """Those of the numbers that were said that it may be."""
        of_kind = (float(text) if "." in text else int(text) for text in said if len(text) <= DIGITS)
        return [*dict.fromkeys(each for each in of_kind if self.kind == "number" or isinstance(each, int))]

    def values_of(self, spans: Sequence[str]) -> list[str]:
        """Those that neither begin nor end with what it is called, if there are any: `part b205`. Of rooms many do."""
        called = words_of(self.key) - {"room"}
        rest = [
            span
            for span in spans
            if all(words_of(word).isdisjoint(called) for word in (spoken(span)[0], spoken(span)[-1]))
        ]
        return rest or [*spans]

    def is_done(self, said: frozenset[str]) -> bool:
        """Whether what it is called was said, or the verb of that: `locked`, `lock`."""
        called = words_of(self.key) - COMMON
        return any(
            word == key or (len(word) > 2 and key in (f"{word}ed", f"{word}d")) for key in called for word in said
        )

    def is_undone(self, said: frozenset[str]) -> bool:
        """Whether the opposite was said: `unlock`."""
        return self.is_done(frozenset(word.removeprefix("un") for word in said if word.startswith("un")))

    def is_unsure(self, said: frozenset[str]) -> bool:
        """Whether nothing tells for certain that it was said."""
        return self.is_text or (not self.values and self.kind == "boolean" and YES_OR_NO.isdisjoint(said))


def _takes(parameters: Mapping[str, object]) -> list[_Parameter]:
    properties, named = parameters.get("properties"), parameters.get("required")
    required = named if isinstance(named, Sequence) and not isinstance(named, str) else ()
    found = []
    for key, declared in properties.items() if isinstance(properties, Mapping) else ():
        told = declared if isinstance(declared, Mapping) else {}
        listed = told.get("enum")
        values = listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ()
        found.append(_Parameter(key, str(told.get("type", "")), values, key in required, told))
    return found


def _given(tool: ToolSpec, takes: Sequence[_Parameter], heard: Sequence[str]) -> dict[str, Mapping[str, object]]:
    """The parameters that may be given, each with the values that were said."""
    text = "\n".join(heard)
    words = words_of(text)
    known = COMMON | LEADS | words_of(" ".join((tool.name, tool.description, *(it.key for it in takes))))
    fence = words_of(" ".join(it.key for it in takes if it.is_number)) - COMMON
    wanted, others = sum(it.required and it.is_number for it in takes), _placed(takes, heard)
    found: dict[str, Mapping[str, object]] = {}
    for it in takes:
        if it.values:
            said = [value for value in it.values if words_of(str(value)) <= words]
            said = _on_its_side(it, said, text) or said
            if said and sum(not {*map(str, said)}.isdisjoint(map(str, other.values)) for other in takes) == 1:
                said = [value for value in said if words_of(str(value)) <= words_of(heard[-1])] or said
            known |= words_of(" ".join(map(str, said)))
            fence |= words_of(" ".join(map(str, said)))
            found |= {it.key: {**it.declared, "enum": said}} if said else {}
        elif it.is_number:
            given = _numbers_of(it, takes, heard, others)
            found |= {it.key: {**it.declared, "enum": given}} if given else {}
        elif it.kind != "boolean":
            found[it.key] = it.declared
        elif it.required or words & (words_of(it.key) - COMMON or YES_OR_NO):
            last = words_of(heard[-1])
            told = last if last & YES_OR_NO else words
            clear = [True] if told & YES or it.is_done(told) else [True, False]
            found[it.key] = {**it.declared, "enum": [False] if told & NO or it.is_undone(told) else clear}
    texts = [it for it in takes if it.is_text]
    needed = sum(it.required for it in texts)
    measures = 0 < wanted >= max(len(_NUMBERS.findall(line)) for line in heard)
    for units in (True, False):  # where nothing else is left, what is counted is what is wanted: `3 avocados`
        said_words = (
            word
            for line in heard
            for word in _unmeasured(line, measures, units)
            if word.removesuffix("%") not in others
        )
        own = [word for word in said_words if not words_of(word) <= known]
        values = [word for word in own if not words_of(word) <= VERBS and not (wanted and _is_number(word))]
        if len(values) >= needed:
            break
    spare = len(values) - needed
    spans = _spans(heard, words_of(tool.name), {*own}, whole=len(texts) == 1 and texts[0].required)
    for it in texts:
        if spare < 0 or not (it.required or spare):
            del found[it.key]
        elif len(spans) <= MOST_SPANS:
            found[it.key] = {**it.declared, "enum": it.values_of(_bare(it, spans, heard, fence) or spans)}
    return found


def _placed(takes: Sequence[_Parameter], heard: Sequence[str]) -> set[str]:
    """The numbers that stand beside what a parameter is called."""
    return {number for it in takes if it.is_number for number in _beside(heard[-1], it)}


def _numbers_of(it: _Parameter, takes: Sequence[_Parameter], heard: Sequence[str], others: set[str]) -> Sequence[float]:
    """The numbers that may be given to a parameter: those beside its name, else those beside no other's. One that need
    not be given gets some only where more are left than must be."""
    beside, numeric = it.numbers(_beside(heard[-1], it)), [each for each in takes if each.is_number]
    said = (len(numeric) == 1 and _NUMBERS.findall(heard[-1])) or _NUMBERS.findall("\n".join(heard))
    given = beside or it.numbers([number for number in said if number not in others])
    unplaced = sum(each.required and not _beside(heard[-1], each) for each in numeric)
    return given if len(given) > (0 if it.required or beside else unplaced) else []


def _bare(it: _Parameter, spans: Sequence[str], heard: Sequence[str], fence: frozenset[str]) -> list[str]:
    """The values without words around them: none begins with the order, with an article or a preposition, but a title;
    none has a word of the `fence` at an end."""
    begun = {first for line in heard for first in spoken(line.lower())[:1] if first in OPENS}
    never = begun | (set() if words_of(it.key) & TITLES else BEFORE_NAMES)
    edges = ((span, spoken(span)[0], spoken(span)[-1]) for span in spans)
    return [
        span for span, first, last in edges if not words_of(f"{first} {last}") & fence and first.lower() not in never
    ]


def _on_its_side(it: _Parameter, said: Sequence[object], text: str) -> list[object]:
    """Of the listed values that were said those behind `from` or `to`, where the parameter's name has that word."""
    side = next((word for word in ("from", "to") if word in _apart(it.key).lower().split()), None)
    return [
        value
        for value in said
        if side and re.search(rf"\b{side} (?:my |the )?{re.escape(_apart(str(value)))}\b", text, re.IGNORECASE)
    ]


def _beside(line: str, it: _Parameter) -> list[str]:
    """The numbers of a line that stand beside what a number is called: `zone 3`, `4 mites`, `volume at 5`."""
    called = words_of(it.key) - COMMON - {"number", "count"}
    words = [word for word in spoken(line) if word.lower() not in _BETWEEN]
    rows = zip(("", *words), words, (*words[1:], ""), strict=False)
    beside = [word for before, word, after in rows if _is_number(word) and called & words_of(f"{before} {after}")]
    return [word.removesuffix("%") for word in beside]


def _unmeasured(line: str, measures: bool = True, units: bool = True) -> Iterator[str]:
    """Its words; where numbers are `measures`, for something else, without them and the `units` behind them."""
    for before, word in pairwise(("", *spoken(line))):
        unit = _is_number(before) and (units or bool(words_of(word) & MEASURES or units_in(word)))
        if not (measures and (_is_number(word) or unit)):
            yield word


def _things(tools: Sequence[ToolSpec], line: str) -> tuple[str, ...]:
    """What was said in a row, of whole rows of words that say something and are no value that some tool takes."""
    values = words_of(" ".join(str(value) for tool in tools for it in _takes(tool.parameters) for value in it.values))
    words = spoken(line)
    named = {word for word in _unmeasured(line) if not words_of(word) <= COMMON | VERBS | values}
    own = [False, *(word in named for word in words), False]
    begins = [at for at, (before, this) in enumerate(pairwise(own)) if this and not before]
    ends = [at for at, (this, after) in enumerate(pairwise(own)) if this and not after]
    spans = ((begin, end) for begin in begins for end in ends if 0 < end - begin <= LONGEST_THING)
    return tuple(dict.fromkeys(" ".join(words[begin:end]) for begin, end in spans))


def _spans(heard: Sequence[str], name: frozenset[str], own: set[str], *, whole: bool) -> list[str]:
    """What was said in a row, as far as it can be a value: of its own words, not begun by the tool's name, and behind
    that where a line begins with it (`play me the song yesterday`). `whole`: rows of its own words are not parted."""
    found: dict[str, None] = {}
    for line in heard:
        words = spoken(line)
        if len(words) > 1 and words[-1].lower() in GOES_ON:
            del words[-1]
        named = [bool(words_of(word) & name) for word in words]
        numbers = pairwise(map(_is_number, ("", *words)))
        other = [any(pair) and word not in own for word, pair in zip(words, numbers, strict=True)]
        rows = [whole and word in own and word.islower() and not word.endswith("ly") for word in words]
        joined = [False, *(a and b for a, b in pairwise(rows)), False]  # before each word, and behind the last
        opening = next((at for at, word in enumerate(words) if word in own and not words_of(word) <= name | VERBS), 0)
        for begin in range(len(words)):
            for end in range(begin + 1, min(begin + LONGEST, len(words)) + 1):
                free = not any((*named[begin : max(opening, begin + 1)], *other[begin:end], joined[begin], joined[end]))
                edges = words[begin].lower() in NEVER_FIRST or words[end - 1].lower() in NEVER_LAST
                if free and not edges and not own.isdisjoint(words[begin:end]):
                    found[" ".join(words[begin:end])] = None
    return [*found]


def _is_number(word: str) -> bool:
    return _NUMBERS.fullmatch(word.removesuffix("%")) is not None
