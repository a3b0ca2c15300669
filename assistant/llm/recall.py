"""What was told of the user's own things, by the words that tell and ask share. For a model too small to find it alone.

Pure: what was said in, replies out. The small model hears that something of the user's is asked for and knows how one
answers; which of ten things it was, and what was said of it, it takes for another's every fifth time. A larger model
knows better and is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from assistant.contracts import Line
from assistant.llm.tool_retrieval import COMMON, spoken, words_of

TOLD, NOT_TOLD, SAID = "Your", "You have not told me your", "You said:"
"""How the shipped model begins to say what it was told, that it was not, and what was asked (`recipes/texts`)."""
KEPT = "I will remember that."
"""What it says to what it was told."""
OWN = frozenset({"i", "i'm", "i've", "me", "mine", "mine's", "my", "our", "us", "we", "we're", "we've"})
ASKS = words_of("how know recall remember remind what when where which who whose")
"""One of these is in a line that asks for something …"""
COMMANDS = ASKS | words_of(
    "add are be can cancel convert could count did do does flip give hello hi is let make no ok okay play put read "
    "roll say set show spell start stop tell thank turn was wake why will would yes"
)
KEEPS = frozenset({"heads", "keep", "memory", "mind", "note", "remember"})
"""… and none of the first begins one that tells, unless with one of the others: `make a note`."""
FILLERS = frozenset({"ah", "and", "hey", "oh", "ok", "okay", "so", "uh", "um", "well", "yeah", "yes"})
"""With these a line is not begun yet: `okay so soccer is at 5`."""
OF_WORDS = words_of(
    "ask asked before begin beginning earlier first hear last opening question repeat rewind said say start"
)
"""A question with one of these may be about any line, not only of those that tell."""
SAYS = words_of("said say")
"""Of these one that names what it is about wants a telling: `which shelf did i say the lamp was on`."""
CATEGORIES = words_of("city color date day kind month name number one place sort thing time type week year")
"""Of a question, what need not be said where the answer was told: `which day`."""
POINTS = frozenset({"mine", "my", "our", "that", "the", "what", "which"})
"""What stands before a thing that is asked for …"""
NAMES = frozenset({"a", "an", "mine", "my", "new", "our", "the", "this"})
"""… and that is told, if anything does."""
EMPTY = COMMON - {"name"}
"""Words that no thing begins or ends with."""
CHANGES = words_of("actually changed correction instead moved now rescheduled shoot sorry switched wait")
"""A line with one of these may tell anew what an earlier one told."""
OTHERWISE_TOLD = frozenset({"favorite", "name"})
"""What people tell without the word: who says `I am Anna` has told the name."""
BESIDE = frozenset({
    "a", "about", "actually", "again", "also", "an", "and", "answer", "answers", "are", "as", "ask", "asks", "be",
    "became", "been", "but", "by", "call", "called", "calls", "can", "change", "changed", "correct", "different",
    "do", "don't", "for", "forget", "forgot", "from", "get", "goes", "got", "gotta", "had", "happens", "has",
    "have", "head", "hear", "here", "hey", "i", "i'm", "i've", "if", "in", "introduce", "is", "it", "it's", "its",
    "just", "keep", "know", "least", "listen", "mark", "me", "meet", "memorize", "mine", "mine's", "my", "name",
    "named", "new", "not", "note", "now", "of", "okay", "on", "or", "out", "please", "put", "record", "remember",
    "save", "saved", "say", "set", "should", "so", "somebody", "sorted", "speaking", "store", "talking", "tell",
    "telling", "that", "that's", "the", "then", "there", "this", "to", "turns", "under", "update", "used", "very",
    "was", "well", "what", "when", "which", "will", "with", "would", "write", "yes", "you", "your",
})  # fmt: skip
"""Words of telling: what is told does not end with one."""
BEFORE = BESIDE - {"a", "an", "as", "by", "for", "from", "in", "not", "of", "on", "the", "under", "very", "with"}
"""Nor does it begin with one of these."""
LINKS = frozenset({
    "are", "as", "be", "became", "been", "called", "changed", "for", "has", "is", "it's", "mine's", "that's", "to",
    "under", "was", "what", "will", "would",
})  # fmt: skip
"""One of them stands between a thing and what is told of it …"""
CALLS = frozenset({"call", "have", "here's", "introduce", "meet", "named", "say"})
"""… or one of these before both."""
IDLE = COMMON | COMMANDS | CATEGORIES | words_of(" ".join(BESIDE)) | words_of("buddy dear friend honey love mate")
"""Words of a question that say nothing of what is asked for."""
LONGEST_THING, LONGEST = 4, 12
# What may answer `when`, `how many` and `who`, and how these are asked; what only the user's own memory can answer.
_WHEN: Final = words_of(
    """
    afternoon april august december dawn dusk evening fall february friday january july june lunchtime march may
    midnight monday morning next night noon november now october saturday september spring summer sunday thursday today
    tomorrow tonight tuesday wednesday weekend winter yesterday first second third fourth fifth sixth seventh eighth
    ninth tenth eleventh twelfth after before every later soon
    """
)
_SOME: Final = words_of("couple dozen few half hundred million no none nothing once several thousand twice zero")
_NAMING: Final = frozenset({"called", "name", "named", "name's"})
_WHEN_ASKED: Final = re.compile(r"\b(?:when|when's|what time|(?:what|which) (?:day|date|month|year)|what's the date)\b")
_COUNT_ASKED: Final = re.compile(r"\bhow (?:many|much|old|far|tall|heavy)\b|\b(?:phone|telephone) number\b")
_FIRST_PERSON: Final = re.compile(
    r"\b(?:how|what|when|where|which|who|whose)\b(?!.*\b(?:how|who) do (?:i|we)\b).*"
    r"\b(?:can't|did|do|had|was|were) (?:i|we)\b(?! (?:get|go|have|look|need)\b)"
)
_PLACE_ASKED: Final = re.compile(r"\b(?:where|where's)\b")
_NAME_ASKED: Final = re.compile(r"\b(?:who|who's|whose|name|named|called)\b")


@dataclass(frozen=True, slots=True)
class Recall:
    """What may be said of what is asked for.

    known    replies with what was told of it, if it was
    unknown  replies that it was not told, of all that may be meant
    nothing  whether not even a word of it was said before
    said     replies with what was said, of each line
    nearest  the one of them that tells most of what is asked for, if one has half of the words
    certain  whether it has nearly all of them
    own      whether it is asked in the first person: then nothing but what was told can answer
    """

    known: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    nothing: bool = False
    said: tuple[str, ...] = ()
    nearest: str = ""
    certain: bool = False
    own: bool = False


def what_was_told(lines: Sequence[Line]) -> Recall:
    """By the last line, if it is the user's."""
    if not lines or lines[-1].role != "user":
        return Recall()
    asked = spoken(lines[-1].text)
    before = [line.text for line in lines[:-1] if line.role == "user"]
    kept = {line.text for line, reply in pairwise(lines[:-1]) if line.role == "user" and reply.text == KEPT}
    words = words_of(lines[-1].text)
    any_line = words & OF_WORDS and not (words & SAYS and words - IDLE - OF_WORDS)
    telling = [text for text in before if any_line or text in kept or _tells(text)]
    said = tuple(dict.fromkeys(map(_repeated, telling)))
    at, share = _nearest(lines[-1].text, before, kept)
    nearest = _repeated(before[at]) if share else ""
    if OWN.isdisjoint(word.lower() for word in asked):
        return Recall(said=said, nearest=nearest if share > 1 / 2 else "", certain=share > 2 / 3)
    things = [*_things(asked)]
    named = words_of(" ".join(word for thing in things for word in thing)) - EMPTY
    others = {"name"} if ("name",) not in things else set[str]()
    nothing = bool(named) and (named - others).isdisjoint(words_of("\n".join(before)) | OTHERWISE_TOLD)
    unknown = tuple(f"{NOT_TOLD} {' '.join(thing)}." for thing in things)
    by_name = not words_of(lines[-1].text).isdisjoint({"called", "name", "named", "who"})
    changed = share == 1 and not words_of(before[at]).isdisjoint(CHANGES)
    since = [number for number, line in enumerate(lines) if line.role == "user"][at] if changed else 0
    own = _FIRST_PERSON.search(lines[-1].text.lower()) is not None
    return Recall(_known(things, lines[since:], by_name), unknown, nothing, said, nearest, share > 2 / 3, own)


def _may_answer(asked: str, told: Sequence[str]) -> bool:
    """Whether words can be an answer at all: a time or a day for `when`, a number for `how many`."""
    words, asked = words_of(" ".join(told)), asked.lower()
    number = any(char.isdigit() for word in words for char in word)
    if _WHEN_ASKED.search(asked):
        return number or not words.isdisjoint(_WHEN)
    if _COUNT_ASKED.search(asked):
        return number or not words.isdisjoint(_SOME)
    return not _PLACE_ASKED.search(asked) or not words <= _WHEN | COMMON


def _may_name(asked: str, told: Sequence[str]) -> bool:
    """Whether a line has a name in it, where one is asked for."""
    names = not words_of(" ".join(told)).isdisjoint(_NAMING) or any(
        word[:1].isupper() or (word.endswith("'s") and words_of(word).isdisjoint(COMMON - {"s"})) for word in told
    )
    return names or not _NAME_ASKED.search(asked.lower())


def _tells(text: str) -> bool:
    """Whether a line may tell something: no order, no question."""
    words = words_of(text)
    first = next((word for word in spoken(text) if word.lower() not in FILLERS), "")
    return not words_of(first) <= COMMANDS or not words.isdisjoint(KEEPS)


def _repeated(text: str) -> str:
    return f"{SAID} {text.rstrip('.?!')}."


def _nearest(asked: str, before: Sequence[str], kept: Collection[str]) -> tuple[int, float]:
    """Which line tells most of what is asked for, the last of equal ones, and how much that is; 0 where none does."""
    words = words_of(asked)
    wanted = {*map(_stem, words - IDLE)}
    best, most = 0, 0.0
    for at, text in enumerate(before if words & ASKS and wanted else ()):
        said, told = spoken(text), {*map(_stem, words_of(text))}
        share = len(wanted & told) / len(wanted)
        tells = text in kept or _tells(text)
        if tells and share >= max(most, 1 / 2) and _may_answer(asked, said) and _may_name(asked, said):
            best, most = at, share
    return best, most


def _stem(word: str) -> str:
    """`parked` and `parking` are `park`, `moved` is `move`, `married` is `marry`. What else it makes alike is seldom
    asked for."""
    if word.endswith("ied") and len(word) > 5:
        return f"{word.removesuffix('ied')}y"
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            word = word.removesuffix(ending)
            doubled = word[-1] == word[-2] and word[-1] not in "ls"  # `stopped`, but `called`, `passed`
            return word[:-1] if doubled else word.removesuffix("e")
    return word.removesuffix("e")


def _things(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """All that may be asked for: what stands behind a word that points at it, or before `of mine`."""
    low = [word.lower() for word in words]
    for begin in range(len(words)):
        for end in range(begin + 1, min(begin + LONGEST_THING, len(words)) + 1):
            points = (begin > 0 and low[begin - 1] in POINTS) or low[end : end + 2] == ["of", "mine"]
            owner = low[end - 1].endswith("'s") and end < len(words) and not words_of(words[end]) <= EMPTY
            if points and not owner and not any(words_of(word) <= EMPTY for word in (words[begin], words[end - 1])):
                yield tuple(words[begin:end])


def _known(things: Sequence[tuple[str, ...]], lines: Sequence[Line], by_name: bool) -> tuple[str, ...]:
    """What answers the last line: of the longest thing that was told, the last time that it was. A name may have been
    told otherwise since. `by_name`: it is asked what or who somebody is called, so a line that names one tells it."""
    asked, lines = lines[-1].text, lines[:-1]
    users = (at for at, line in enumerate(lines) if line.role == "user" and not _was_asked(lines[at + 1 : at + 2]))
    tellings = [spoken(lines[at].text) for at in users]
    for thing in sorted(things, key=len, reverse=True):
        for told in reversed(tellings if thing != ("name",) else ()):
            at = _place(thing, told)
            rows = () if at is None else _rows(thing, told[:at], told[at + len(thing) - 1 :])
            naming = not words_of(f"{asked} {' '.join(told)}").isdisjoint(_NAMING | CALLS | {"who"})
            ways = ("", " called") if naming else ("",)
            found = tuple(_reply(thing, row, called) for row in rows if _may_answer(asked, row) for called in ways)
            names = [word for word in told if word[:1].isupper()]
            if found or (at is not None and by_name and len(names) == 1):
                return found or (_reply(thing, names, " called"),)
    return ()


def _was_asked(after: Sequence[Line]) -> bool:
    """Whether the reply says that a line asked for something told."""
    return bool(after) and after[0].role == "assistant" and after[0].text.startswith((TOLD, NOT_TOLD))


def _place(thing: Sequence[str], told: Sequence[str]) -> int | None:
    """Where a line names a thing as one's own."""
    low, wanted = [word.lower() for word in told], [word.lower() for word in thing]
    if OWN.isdisjoint(low):
        return None
    for at in range(len(told) - len(thing) + 1):
        words = low[at : at + len(thing)]
        if wanted in (words, [*words[:-1], words[-1].removesuffix("'s")]) and (at == 0 or low[at - 1] in NAMES):
            return at
    return None


def _rows(thing: Sequence[str], before: Sequence[str], behind: Sequence[str]) -> Iterator[Sequence[str]]:
    """Each row of words that may have been told of it: what begins behind it, or ends before it. `behind`: from
    its last word on."""
    last, behind = behind[0].lower(), [*behind[1:]]
    begin = next((at for at, word in enumerate(behind) if word.lower() not in BEFORE), len(behind))
    end = next((at for at in range(len(before), 0, -1) if before[at - 1].lower() not in BESIDE), 0)
    linked = [{word.lower() for word in words} for words in (behind[:begin], before[end:], before)]
    spans: list[Sequence[str]] = []
    if linked[0] & LINKS or linked[2] & CALLS or (last.endswith("'s") and last != thing[-1].lower()):
        spans += [behind[begin:stop] for stop in range(begin + 1, min(begin + LONGEST, len(behind)) + 1)]
    if linked[1] & LINKS and OWN.isdisjoint(word.lower() for word in before[:end]):
        spans += [before[start:end] for start in range(max(0, end - LONGEST), end)]
    for span in spans:
        own = not OWN.isdisjoint(word.lower() for word in span)
        if not own and span[0].lower() not in BEFORE and span[-1].lower() not in BESIDE:
            yield span


def _reply(thing: Sequence[str], value: Sequence[str], called: str = "") -> str:
    return f"{TOLD} {' '.join(thing)} is{called} {' '.join(value)}."
