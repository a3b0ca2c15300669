"""The values that a request gives to declared parameters: listed ones, numbers, switches and rows of words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from assistant.base.units import units_in
from assistant.events import ToolSpec
from llm_engine.callguide import DIGITS


def words_of(text: str) -> frozenset[str]:
    """Words in small letters, in the singular; `setLight` and `set_light` are two."""
    return frozenset(_singular(word) for word in re.findall(r"[a-z]+|[0-9]+", words_apart(text).lower()))


def spoken(text: str) -> list[str]:
    """Words as they were said; a time or a fraction is one."""
    return _SPOKEN.findall(text)


def words_apart(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", name).strip()


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses")) else word[:-1]


def stem(word: str) -> str:
    """`parked` and `parking` are `park`, `moved` is `move`; other words that it makes alike are seldom asked for."""
    if word.endswith("ied") and len(word) > 5:
        return f"{word.removesuffix('ied')}y"
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            word = word.removesuffix(ending)
            doubled = word[-1] == word[-2] and word[-1] not in "ls"  # `stopped`, but `called`, `passed`
            return word[:-1] if doubled else word.removesuffix("e")
    return word.removesuffix("e")


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
ORDERS = words_of("add begin check close end get open pause play read run send start stop write")  # never a value
YES, NO = words_of("on true yes enable"), words_of("off false no not disable")
YES_OR_NO = YES | NO
EDGES = frozenset({
    "a", "an", "and", "are", "as", "at", "called", "for", "from", "her", "him", "in", "into", "is", "it", "me", "my",
    "named", "near", "of", "off", "on", "our", "out", "over", "saying", "some", "that", "the", "them", "this", "to",
    "up", "us", "with", "your",
})  # fmt: skip
"""Words that no value begins or ends with."""
LONGEST, MOST_SPANS = 12, 200  # words of a value; with more ways to say one than this, any may come
_SPOKEN = re.compile(r"(?:[^\s,.;:!?]|(?<=\d)[.,:](?=\d))+")
_NUMBERS = re.compile(r"-?(?<![\d.])\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter that a tool takes. `kind` is its JSON type, `values` all that it may be where that is listed."""

    key: str
    kind: str
    values: Sequence[object]
    required: bool
    declared: Mapping[str, object]

    @property
    def choices(self) -> list[str]:
        return ["on", "off"] if self.kind == "boolean" else [words_apart(str(value)) for value in self.values]

    @property
    def is_text(self) -> bool:
        return self.kind == "string" and not self.values

    @property
    def is_number(self) -> bool:
        return self.kind in ("number", "integer") and not self.values

    def numbers(self, said: Sequence[str]) -> list[float]:
        """The numbers that were said and that it may be."""
        of_kind = (float(text) if "." in text else int(text) for text in said if len(text) <= DIGITS)
        return [*dict.fromkeys(each for each in of_kind if self.kind == "number" or isinstance(each, int))]

    def is_unsure(self, heard: Sequence[str]) -> bool:
        """Whether nothing tells for certain that it was said."""
        said = words_of("\n".join(heard))
        return self.is_text or (not self.values and self.kind == "boolean" and YES_OR_NO.isdisjoint(said))


def parameters_of(schema: Mapping[str, object]) -> list[Param]:
    """The declared parameters of a tool. A client's schema may hold anything."""
    properties, named = schema.get("properties"), schema.get("required")
    required = named if isinstance(named, Sequence) and not isinstance(named, str) else ()
    found = []
    for key, declared in properties.items() if isinstance(properties, Mapping) else ():
        told = declared if isinstance(declared, Mapping) else {}
        listed = told.get("enum")
        values = listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ()
        found.append(Param(key, str(told.get("type", "")), values, key in required, told))
    return found


def given(tool: ToolSpec, takes: Sequence[Param], heard: Sequence[str]) -> dict[str, Mapping[str, object]]:
    """The parameters that may be given, each with the values that were said. `heard`: the lines of the request."""
    found: dict[str, Mapping[str, object]] = {}
    placed = {number for it in takes if it.is_number for number in beside(heard[-1], it)}
    for it in takes:
        if it.is_number:
            values: Sequence[object] = _numbers_of(it, takes, heard, placed)
        elif it.values:
            values = _listed(it, takes, heard)
        elif it.kind == "boolean":
            values = _switched(it, heard)
        else:
            found[it.key] = it.declared
            continue
        if values:
            found[it.key] = {**it.declared, "enum": [*values]}
    listed = [str(value) for it in takes if it.values for value in _listed(it, takes, heard)]
    keys = (it.key for it in takes)
    known = COMMON | ORDERS | words_of(" ".join((tool.name, tool.description, *keys, *listed)))
    return _with_texts(tool, takes, heard, found, known, placed)


def _with_texts(
    tool: ToolSpec, takes: Sequence[Param], heard: Sequence[str], found: dict[str, Mapping[str, object]],
    known: frozenset[str], placed: set[str],
) -> dict[str, Mapping[str, object]]:  # fmt: skip
    """The words beside the other values go to the text parameters, if they suffice for the required ones."""
    texts = [it for it in takes if it.is_text]
    needed, wants = sum(it.required for it in texts), any(it.required and it.is_number for it in takes)
    own: set[str] = set()
    for units in (True, False):  # where nothing else is left, what is counted is what is wanted: `3 avocados`
        words = [word for line in heard for word in (_unmeasured(line, units) if wants else spoken(line))]
        own = {word for word in words if not words_of(word) <= known and word.removesuffix("%") not in placed}
        if len(own) >= needed:
            break
    spare = len(own) - needed
    spans = _spans(heard, words_of(tool.name), own, whole=len(texts) == needed == 1)
    for it in texts:
        if spare < 0 or not (it.required or spare):
            del found[it.key]
        elif 0 < len(spans) <= MOST_SPANS:
            found[it.key] = {**it.declared, "enum": _without_name(it, spans)}
    return found


def _listed(it: Param, takes: Sequence[Param], heard: Sequence[str]) -> list[object]:
    """The listed values that were said, behind `from` or `to` where the parameter's name has that word; in the last
    line, if no other parameter lists them too."""
    text = "\n".join(heard)
    said = [value for value in it.values if words_of(str(value)) <= words_of(text)]
    for side in {"from", "to"} & {*words_apart(it.key).lower().split()}:
        behind = rf"\b{side} (?:my |the )?{{}}\b"
        said = [v for v in said if re.search(behind.format(re.escape(words_apart(str(v)))), text, re.I)] or said
    if sum(not {*map(str, said)}.isdisjoint(map(str, other.values)) for other in takes) == 1:
        said = [value for value in said if words_of(str(value)) <= words_of(heard[-1])] or said
    return said


def _switched(it: Param, heard: Sequence[str]) -> list[object]:
    """How a switch may be set; no way where it is neither named nor required."""
    words, last = words_of("\n".join(heard)), words_of(heard[-1])
    if not it.required and not words & (words_of(it.key) - COMMON or YES_OR_NO):
        return []
    told, done = last if last & YES_OR_NO else words, {*map(stem, words_of(it.key) - COMMON)}
    if told & NO or {f"un{word}" for word in done} & {*map(stem, told)}:
        return [False]
    return [True] if told & YES or done & {*map(stem, told)} else [True, False]


def _numbers_of(it: Param, takes: Sequence[Param], heard: Sequence[str], placed: set[str]) -> Sequence[float]:
    """The numbers that may be given to a parameter: those beside its name, else those beside no other's. One that need
    not be given gets some only where more are left than must be."""
    near, numeric = it.numbers(beside(heard[-1], it)), [each for each in takes if each.is_number]
    said = (len(numeric) == 1 and _NUMBERS.findall(heard[-1])) or _NUMBERS.findall("\n".join(heard))
    left = near or it.numbers([number for number in said if number not in placed])
    unplaced = sum(each.required and not beside(heard[-1], each) for each in numeric)
    return left if len(left) > (0 if it.required or near else unplaced) else []


def beside(line: str, it: Param) -> list[str]:
    """The numbers of a line that stand beside what a number is called: `zone 3`, `4 mites`, `volume at 5`."""
    called = words_of(it.key) - COMMON
    words = [word for word in spoken(line) if word.lower() not in EDGES]
    rows = zip(("", *words), words, (*words[1:], ""), strict=False)
    near = [word for before, word, after in rows if _is_number(word) and called & words_of(f"{before} {after}")]
    return [word.removesuffix("%") for word in near]


def _unmeasured(line: str, units: bool) -> Iterator[str]:
    """The words of a line without numbers, and without the word behind each: any, with `units`, else units alone."""
    for before, word in pairwise(("", *spoken(line))):
        if not (_is_number(word) or (_is_number(before) and (units or bool(units_in(word))))):
            yield word


def _spans(heard: Sequence[str], name: frozenset[str], own: set[str], *, whole: bool) -> list[str]:
    """Words said in a row that can be a value: with a word of its own, not begun by the tool's name, nor
    parted by a number that is for another parameter. `whole`: rows of its own words are not parted."""
    found: dict[str, None] = {}
    for line in heard:
        words = spoken(line)
        named = [bool(words_of(word) & name) for word in words]
        numbers = pairwise(map(_is_number, ("", *words)))
        other = [any(pair) and word not in own for word, pair in zip(words, numbers, strict=True)]
        rows = [whole and word in own and word.islower() for word in words]
        joined = [False, *(a and b for a, b in pairwise(rows)), False]  # before each word, and behind the last
        opening = next((at for at, word in enumerate(words) if word in own), 0)
        for begin in range(len(words)):
            for end in range(begin + 1, min(begin + LONGEST, len(words)) + 1):
                edge = words[begin].lower() in EDGES or words[end - 1].lower() in EDGES
                edge = edge or joined[begin] or joined[end]
                parted = any((*named[begin : max(opening, begin + 1)], *other[begin:end]))
                if not (edge or parted or own.isdisjoint(words[begin:end])):
                    found[" ".join(words[begin:end])] = None
    return [*found]


def _without_name(it: Param, spans: Sequence[str]) -> list[str]:
    """The values that neither begin nor end with what the parameter is called, if there are any: `part b205`."""
    called = words_of(it.key)
    return [
        span for span in spans if called.isdisjoint(words_of(f"{spoken(span)[0]} {spoken(span)[-1]}"))
    ] or [*spans]  # fmt: skip


def _is_number(word: str) -> bool:
    return _NUMBERS.fullmatch(word.removesuffix("%")) is not None
