"""A talk while it is being made up: who asks what in which words, which tool is called, what is answered.

A `Scene` turns an intent and its slots into a spoken request, the request into what the model reads (digits, names),
and remembers what later turns may refer to. `scenes.py` decides what happens in it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal

from assistant.text.written import as_written
from recipes.texts import smalltalk
from recipes.texts.misheard import cut_off, loosened, misheard
from recipes.texts.phrases import PHRASES
from recipes.texts.tools import PERSONAS, TOOL_NAMES
from recipes.texts.words import Split, allowed, by_token, dictionary, made_up, spoken_number, whole

Role = Literal["user", "assistant", "tool"]
NOT_UNDERSTOOD: Final = "[inaudible]"


@dataclass(slots=True)
class TalkTurn:
    """One message. `kind` names what is scored; `accept` are the replies that count as right (for a story: its
    heroes)."""

    role: Role
    text: str
    call: tuple[str, dict[str, str]] | None = None
    kind: str = ""
    accept: tuple[str, ...] = ()
    cut: bool = False
    spoken: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a declared tool. `values`: all that are possible; `kind`: its JSON type."""

    name: str
    kind: str = "string"
    values: tuple[str, ...] = ()
    tells: str = ""
    required: bool = True


@dataclass(frozen=True, slots=True)
class Declaration:
    """A tool that is not known by heart."""

    name: str
    tells: str
    parameters: tuple[Parameter, ...] = ()

    def spec(self) -> dict[str, object]:
        """In the form that a chat template takes and a client declares."""
        properties = {
            p.name: {"type": p.kind}
            | ({"enum": [*p.values]} if p.values else {})
            | ({"description": p.tells} if p.tells else {})
            for p in self.parameters
        }
        schema = {
            "type": "object",
            "properties": properties,
            "required": [p.name for p in self.parameters if p.required],
        }
        return {"type": "function", "function": {"name": self.name, "description": self.tells, "parameters": schema}}


@dataclass(slots=True)
class Talk:
    """A whole conversation as the chat template takes it. Tools known by heart are listed by name."""

    system: str
    tools: tuple[str | Declaration, ...]
    turns: list[TalkTurn] = field(default_factory=list)


class Unusable(Exception):
    """The slots did not survive the way from spoken to written; something else must be said."""


USUAL: Final = 4
"""This many phrasings, the first of an intent, are what most people say: none of them is held out."""


@cache
def phrasings(lines: tuple[str, ...], split: Split) -> tuple[str, ...]:
    """A tenth of the phrasings, those with the lowest hashes, are for scoring only, except the usual ones (none if
    there is a single one)."""
    ranked = sorted(lines, key=lambda line: hashlib.sha256(line.encode()).digest())
    lowest = ranked[: max(1, round(len(lines) / 10))] if len(lines) > 1 else []
    held = [line for line in lowest if line not in lines[:USUAL]] or lowest
    return tuple(held) if split == "test" and held else tuple(line for line in ranked if line not in held)


_CHOICE: Final = re.compile(r"\[([^\]]*)\]")


@cache
def wordings(line: str) -> tuple[str, ...]:
    """All wordings of a phrasing: each of its `[a|b]` resolved."""
    parts = _CHOICE.split(line.removeprefix("~"))
    choices = [part.split("|") if i % 2 else [part] for i, part in enumerate(parts)]
    return tuple({" ".join("".join(picked).split()) for picked in itertools.product(*choices)})


@cache
def shares(lines: tuple[str, ...], split: Split) -> tuple[float, ...]:
    """Running sum of how often each of `phrasings` is drawn: the fourth root of its number of wordings, and in training
    up to eight times that for the usual ones, which make up about a fifth of the draws from a long list."""
    usual, often = (lines[:USUAL], min(8.0, max(1.0, len(lines) / 20))) if split == "train" else ((), 1.0)
    ways = (
        (often if line in usual else 1) * math.prod(choice.count("|") + 1 for choice in _CHOICE.findall(line)) ** 0.25
        for line in phrasings(lines, split)
    )
    return tuple(itertools.accumulate(ways))


@cache
def held_wordings(lines: tuple[str, ...]) -> frozenset[str]:
    """All wordings of an intent's held-out phrasings; in training nothing else may come out as one of these."""
    return frozenset(text for line in phrasings(lines, "test") for text in wordings(line) if len(lines) > 1)


@cache
def all_held() -> frozenset[str]:
    """The held-out wordings of all intents, small talk among them."""
    asked = (lines for pairs in smalltalk.ALL for lines, _ in pairs)
    return frozenset().union(*map(held_wordings, (*PHRASES.values(), *asked)))


_BEFORE: Final = (
    "please", "could you", "can you", "can you please", "would you", "would you please", "hey {me}", "okay", "{me}",
    "i want you to", "now", "could you please", "will you", "would you mind to", "i would like you to", "i need you to",
    "hey can you", "okay {me}", "so {me} please", "{me} please", "{me} can you", "i'd like you to", "just", "quickly",
    "let's", "go ahead and", "why don't you", "okay now", "hello {me} please",
)  # fmt: skip
"""Openings before a command."""
_AFTER: Final = (
    "please", "for me", "now", "thanks", "for me please", "would you", "will you", "right now", "if you can",
    "thank you",
    "if you don't mind", "{me}", "please {me}", "could you", "can you", "okay", "quickly", "for me now",
)  # fmt: skip
"""Endings after a command."""
_LEAD: Final = (
    "hey {me}", "{me}", "okay", "and", "so", "now", "well", "alright", "oh", "hello", "hi {me}", "listen", "hey", "um",
    "uh", "actually", "by the way", "quick question", "okay {me}", "right", "good", "sorry but",
)  # fmt: skip
"""Openings before anything."""
_WHY: Final = (
    "my hands are full so", "before i forget", "i am in a hurry so", "since you are there",
    "i just remembered something", "one more thing", "while i think of it", "if you have a second",
    "i am going out soon so", "i have guests tonight so", "i was wondering if you could", "would it be possible to",
    "do me a favor and", "be so kind and", "i am cooking so", "i am driving right now so", "my wife asked me so",
    "the kids want it so", "it is for {w}", "i am making {w} so", "we are having {w} tonight so",
    "i am at the {w} so", "i have {w} tomorrow so", "because of the {w}", "the {w} is here so",
    "i can't find my {w} so", "i am busy with the {w} so", "i need your help", "i have a question for you",
    "let me think", "okay so here is the thing", "you know what", "it just came to me", "i almost forgot",
    "there is something else", "when you get a chance", "any chance you could", "is it okay if you",
    "i think you should", "maybe you could", "it would be nice if you could", "i bet you can", "help me out and",
    "i'm getting ready so", "we're leaving soon so", "my friend is coming so", "i slept badly so", "it's late so",
    "i'm a bit lost", "so i was thinking", "time flies so",
)  # fmt: skip
"""Reasons for a request, before a command; `{w}` is any word."""
_BECAUSE: Final = (
    "because i am busy", "so i don't forget", "before i forget", "while you are at it", "if that's okay",
    "if you would", "because i have to go", "since my hands are full", "as soon as you can",
    "because the {w} is coming", "i'm in a hurry", "that would be great", "that would help me a lot",
    "i would be grateful", "and be quick about it", "and thank you", "my {w} wants it", "because i always forget",
    "so that i know", "i have been meaning to ask", "before we leave", "when you have time",
)  # fmt: skip
"""Reasons for a request, after a command."""
_LOOSE: Final = (
    "{note}", "{words}", "{task}", "{x}", "{value}", "{right}", "{word}", "{t}", "{item}", "{items}", "{topic}",
)  # fmt: skip
"""Slots of any words: text after one could not be told from it."""
_TAIL: Final = ("please", "{me}", "thanks", "then", "okay", "you know", "by the way")
_OPEN: Final = {
    "item": (1, 1, 2),
    "label": (1, 1, 2),
    "list": (1,),
    "task": (2, 3, 4),
    "note": (3, 4, 5, 6),
    "topic": (1, 2),
}
"""Kinds for which a user may say anything, and with how many words."""
_FILLER: Final = ("uh", "um", "er", "well", "so", "hey", "okay", "oh", "hmm", "please")


class Scene:
    """Builds one talk. All randomness comes from `rng`; `split` decides which phrasings and values may occur.

    In `practice` half of the open values are made of random words: the model has to learn to copy them.
    """

    def __init__(self, rng: random.Random, split: Split, noise: float = 0.15, practice: bool = False) -> None:
        self.rng, self.split, self.noise, self.practice = rng, split, noise, practice
        names = list(PERSONAS)
        self.me = names[0] if rng.random() < 0.5 else names[1]
        self.system = PERSONAS[self.me]
        if rng.random() < 0.2:
            self.me = rng.choice(allowed("name", split))
            manner = rng.choice(["friendly", "calm", "cheerful", "polite", "quiet"])
            self.system = f"You are {self.me}, a {manner} voice assistant. Answer in one or two short sentences."
        self.turns: list[TalkTurn] = []
        self.known: dict[str, str] = {}
        self.tools: tuple[str | Declaration, ...] = TOOL_NAMES

    # ------------------------------------------------------------------------------------------- values

    def value(self, kind: str) -> str:
        """A value of a listed kind."""
        if self.practice and kind in _OPEN and self.chance(0.5):
            return self.words(self.rng.choice(_OPEN[kind]))
        return self.rng.choice(allowed(kind, self.split))

    def word(self) -> str:
        """Any English word that is written as it is spoken (not a number, not a name); one in five is made up, two in
        five are drawn by the tokens in them."""
        while True:
            drawn = self.rng.random()
            if drawn < 0.2:
                word = made_up(self.rng, self.split)
            elif drawn < 0.6:
                word = self.rng.choice(self.rng.choice(by_token(self.split)))
            else:
                word = self.rng.choice(dictionary(self.split))
            if as_written(word) == word:
                return word

    def words(self, count: int) -> str:
        """Any words in a row."""
        return " ".join(self.word() for _ in range(count))

    def whole(self, low: int, high: int) -> int:
        """A whole number; large ones are split like everything else."""
        return whole(self.rng, self.split, low, high)

    def number(self, n: int) -> str:
        """A number as people say it."""
        return spoken_number(n, self.rng.choice([" and ", " "]))

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # --------------------------------------------------------------------------------------------- turns

    def ask(self, intent: str, **slots: str) -> dict[str, str]:
        """The user makes a request. Slots come in spoken form; they return as they appear in the written request."""
        return self.user(self.phrasing(PHRASES[intent]), **slots)

    def phrasing(self, lines: tuple[str, ...]) -> str:
        """One of an intent's phrasings that the split may use: choices resolved, perhaps wrapped in politeness."""
        return self.made_and_said(lines)[1]

    def made_and_said(self, lines: tuple[str, ...]) -> tuple[str, str]:
        """The same, preceded by the phrasing alone; that of a command has its `~`."""
        while True:
            (line,) = self.rng.choices(phrasings(lines, self.split), cum_weights=shares(lines, self.split))
            made = _CHOICE.sub(lambda m: self.rng.choice(m[1].split("|")), line)
            text = " ".join(self._wrapped(made).split())
            if self.split == "test" or (text not in held_wordings(lines) and text not in all_held()):
                return made, text

    def piece(self) -> list[str]:
        """Two consecutive words of some request."""
        lines = self.rng.choice(list(PHRASES.values()))
        words = [word for word in self.phrasing(lines).split() if "{" not in word] or ["well"]
        at = self.rng.randrange(len(words))
        return words[at : at + 2]

    def user(self, line: str, **slots: str) -> dict[str, str]:
        """The user says a line with the slots in it. Raises Unusable if one reads differently in its place."""
        slots = {key: value for key, value in slots.items() if f"{{{key}}}" in line}
        spoken = " ".join(line.format(me=self.me.lower(), **{k: v.lower() for k, v in slots.items()}).split())
        noisy = self._noisy(spoken, slots)
        spoken = spoken if self.split == "train" and noisy in all_held() else noisy
        text = as_written(spoken)
        written = {key: "1" if value == "one" else as_written(value.lower()) for key, value in slots.items()}
        if any(value and value not in text for value in written.values()):
            raise Unusable(text)
        if self.chance(0.06) and not any(value and text.startswith(value) for value in written.values()):
            text = text[0].upper() + text[1:] + self.rng.choice(["", ".", "?", "!"])
        self.turns.append(TalkTurn("user", text, spoken=spoken))
        return written

    def call(self, tool: str, result: str, kind: str = "", **arguments: str) -> None:
        """The assistant calls a tool and gets its result. Without tools it says so instead and the exchange ends."""
        self.turns.append(TalkTurn("assistant", "", (tool, arguments), kind or f"call {tool}"))
        self.turns.append(TalkTurn("tool", result))

    def fail(self, tool: str, reason: str, kind: str = "", **arguments: str) -> None:
        """The assistant calls a tool, which returns an error, and says so."""
        self.call(tool, json.dumps({"error": reason}, ensure_ascii=False), kind, **arguments)
        if reason.startswith(f"{tool} did not answer"):
            self.say("Sorry, that took too long.", kind="reply error")
        elif reason.startswith(f"{tool} "):
            self.say("Sorry, that did not work.", kind="reply error")
        else:
            self.say(f"Sorry, that did not work: {reason}.", kind="reply error")

    def say(self, *texts: str, kind: str) -> str:
        """The assistant says one of these."""
        texts = tuple(text[0].upper() + text[1:] for text in texts)
        text = self.rng.choice(texts)
        self.turns.append(TalkTurn("assistant", text, kind=kind, accept=texts))
        return text

    def cut(self, words: int) -> str:
        """The user cut in: only this many words of the last reply were heard, with their marks, as the assistant keeps
        them: a mark shows that a sentence was whole. Returns the rest of the reply."""
        turn = self.turns[-1]
        kept = turn.text.split(" ")[:words]
        rest = turn.text.split(" ")[words:]
        turn.text, turn.cut = " ".join(kept), True
        if not turn.text:
            self.turns.pop()
        return " ".join(rest)

    # --------------------------------------------------------------------------------------------- noise

    def _wrapped(self, line: str) -> str:
        rng = self.rng
        polite = line.startswith("~")
        line = line.removeprefix("~")
        if polite and rng.random() < 0.55:
            before = rng.choice(_BEFORE) if rng.random() < 0.75 else ""
            after = rng.choice(_AFTER) if rng.random() < 0.5 and not before.endswith("please") else ""
            line = self._reasoned(f"{before} {line} {after}")
        elif rng.random() < 0.1:
            line = f"{rng.choice(_LEAD)} {line}" if rng.random() < 0.7 else f"{line} {rng.choice(_TAIL)}"
        return line

    def _reasoned(self, line: str) -> str:
        """A command, now and then with a reason before or after it."""
        line = line.strip()
        if self.chance(0.15):
            line = f"{self.rng.choice(_WHY)} {line}".replace("{w}", self.word())
        elif self.chance(0.1) and not line.endswith(_LOOSE):
            line = f"{line} {self.rng.choice(_BECAUSE)}".replace("{w}", self.word())
        return line

    def _noisy(self, spoken: str, slots: dict[str, str]) -> str:
        """Now and then a filler or a repeated word, as people talk, or misheard words; in practice small words lost,
        too. Slots stay whole."""
        words = spoken.split()
        held = {w for value in slots.values() for w in value.lower().split()}
        if self.practice and self.rng.random() < 0.2:
            words = loosened(self.rng, words, held)
        if self.rng.random() >= self.noise:
            return " ".join(words)
        at = self.rng.randrange(len(words))
        what = self.rng.random()
        if what < 0.3:
            words.insert(0, self.rng.choice(_FILLER))
        elif what < 0.4 and words[at] not in held:
            words.insert(at, words[at])
        elif what >= 0.85:
            words = cut_off(self.rng, words, held)
        elif what >= 0.4:
            words = misheard(self.rng, words, held)
        return " ".join(words)


def written_list(items: Sequence[str]) -> str:
    """Items as a tool argument: `milk, eggs`."""
    return ", ".join(items)


def spoken_list(items: Sequence[str]) -> str:
    """Items as people say them: `milk eggs and bread`."""
    return items[0] if len(items) == 1 else f"{' '.join(items[:-1])} and {items[-1]}"
