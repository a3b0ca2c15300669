"""Holds a small model's reply to what a request may mean: of the declared tools what it calls, asks and refuses, and of
what was told what it recalls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import log

from assistant.llm.known_replies import CANNOT, TOO_SMALL, Sayable
from assistant.llm.recall import NOT_TOLD, SAID, TOLD
from assistant.llm.tool_retrieval import Meant
from llm_engine.wordguide import WordGuide

NO_TOOL = "I have no tool"
"""How the shipped model begins to say that no declared tool fits (`recipes/texts/scenes_declared.py`)."""
REFUSES = ("I cannot ", "I am too small ", "I do not know ", "I have no ")
"""How it begins to refuse …"""
TOLD_NOTHING, NOT_YET = "You have not told me ", "You have not told me yet"
"""… and to say that it was not told, with what or without."""
LEAST = 1e-30
"""Of a probability that a logarithm is taken of."""
WHICH_ONE = "Which one:"
"""How it begins to ask for a listed value; where there is none to ask for, it goes on with anything."""


class ReplyGuide:
    """Follows one reply.

    words        what the reply's words may be
    meant        what may be done with tools that have to be read; None where there are none
    sayable      what may be said where nothing is called
    encode       text to tokens
    probability  how probable a token is to come next
    rejected     how a reply began that did not stand: written a second time, it must say what was told, or call or ask,
                 if there is anything to call or to ask
    """

    def __init__(
        self,
        words: WordGuide,
        meant: Meant | None,
        sayable: Sayable,
        encode: Callable[[str], Sequence[int]],
        probability: Callable[[int], float],
        rejected: str | None = None,
    ) -> None:
        self._words, self._meant, self._rejected = words, meant or Meant(), rejected
        told = sayable.told

        def whole(texts: Collection[str]) -> list[tuple[int, ...]]:
            return [(*encode(text), stop) for text in texts for stop in words.stops()]

        nearest = (told.nearest,) if told.nearest else ()
        own = told.own and bool(told.said) and not self._meant.calls
        recalled = told.known or nearest or ((*told.said, f"{NOT_YET}.") if own else told.unknown)
        begun = rejected or ""
        guesses = told.said and not (told.known or nearest or self._meant.calls)
        self._guess = _Guess(encode, probability) if guesses else None
        if self._guess and begun.startswith(SAID):
            recalled = (f"{NOT_YET}.",)
        refused = begun.startswith((TOLD, TOLD_NOTHING, SAID, *REFUSES)) and not begun.startswith(NO_TOOL)
        recalls = bool(recalled) and refused and not self._meant.calls
        self._first = whole(recalled if recalls else self._meant.asks)
        self._ways = {
            NO_TOOL: whole([f"{NO_TOOL} for the {thing}." for thing in self._meant.things]),
            NOT_TOLD: whole(told.unknown),
            TOLD: whole(told.known),
            SAID: whole(nearest or told.said),
        }
        self._only = whole([sayable.only] if sayable.only and not (self._meant.calls or self._meant.asks) else [])
        self._unmeant = [encode(begin) for begin in sayable.unmeant if not (nearest and SAID.startswith(begin))]
        self._sayable, self._encode = sayable, encode
        self._may_call = bool(self._meant.calls) and not recalls
        self._idle = (WHICH_ONE, *(text for text in self._meant.idle if not text.startswith(WHICH_ONE)))
        self._idle_begins = {encode(text)[0] for text in self._idle}
        self._wrong = () if meant is None else (*((NO_TOOL,) if meant.named else ()), *self._idle)
        if told.known:
            self._wrong += (TOLD_NOTHING, SAID, *REFUSES)
        elif nearest and not self._meant.calls:
            self._wrong += (TOLD, TOLD_NOTHING if told.certain else NOT_YET, *REFUSES)
        elif own:
            self._wrong += REFUSES
        elif told.nothing and told.unknown:
            self._wrong += (TOLD,)
        self._tokens: list[int] = []
        self._said = ""

    def push(self, token: int, text: str) -> None:
        """The next token of the reply, and the text that it brought."""
        if self._guess:
            self._guess.push(token)
        self._words.push(token, text)
        self._tokens.append(token)
        self._said += text

    def among(self) -> Sequence[int]:
        """The tokens that may come next: what begins like one of the replies that are known goes on like it."""
        if only := self._next(self._only):
            return sorted(only)
        anew = self._rejected is not None
        if self._said == CANNOT:
            self._ways[CANNOT] = [tuple(self._encode(text)) for text in self._sayable.cannot()]
        if self._said == TOO_SMALL:
            self._ways[TOO_SMALL] = [tuple(self._encode(text)) for text in self._sayable.refusals()]
        texts = next((texts for begin, texts in self._ways.items() if self._said.startswith(begin)), self._first)
        forced = sorted(self._next(texts)) if self._tokens or anew else []
        if self._guess and not anew:
            self._guess.weigh(self._tokens, forced)
        call = self._words.opening()
        if anew and self._may_call and not self._tokens:
            forced += call
        if forced or not anew:
            return forced or self._free()
        free = [token for token in self._free() if self._may_call or token not in call]
        return free if self._tokens else [token for token in free if token not in self._idle_begins]

    def _free(self) -> Sequence[int]:
        """What its words may be, unless it would begin as none may."""
        at = len(self._tokens)
        no = {begin[at] for begin in self._unmeant if len(begin) == at + 1 and [*begin[:at]] == self._tokens}
        among = self._words.among()
        return [token for token in among if token not in no] if no else among

    def _next(self, texts: Sequence[Sequence[int]]) -> set[int]:
        at = len(self._tokens)
        return {text[at] for text in texts if at < len(text) and [*text[:at]] == self._tokens}

    def stands(self) -> bool | None:
        """False if it calls what cannot be meant, refuses what can, asks for what need not be asked, or has not been
        told what it was."""
        if self._rejected is not None:
            return True
        if any(begin.startswith(self._said) and begin != self._said for begin in self._wrong):
            return None
        if self._meant.certain and self._talks():
            return False
        if self._guess and (self._said.startswith(SAID) or SAID.startswith(self._said)):
            if len({text[:-1] for text in self._ways[SAID] if [*text[: len(self._tokens)]] == self._tokens}) != 1:
                return None
            if self._guess.odds < 0:
                return False
        begun = next((begin for begin in self._wrong if self._said.startswith(begin)), None)
        asked = begun in self._idle and any(ask.startswith(begun) for ask in self._meant.asks)
        return (begun is None or asked) and self._words.stands()

    def _talks(self) -> bool:
        """Whether it says anything but a question that may be asked."""
        said = self._said.strip()
        return bool(said) and not said.startswith("<") and not any(ask.startswith(said) for ask in self._meant.asks)


class _Guess:
    """Weighs the line that is being said against that nothing was told: `odds`, how much more probable it is in all,
    as a logarithm. Of ten lines each may be less probable than that, and one is begun all the same."""

    def __init__(self, encode: Callable[[str], Sequence[int]], probability: Callable[[int], float]) -> None:
        self.odds = 0.0
        self._said, self._nothing = encode(SAID), encode(NOT_YET)
        self._probability = probability
        self._next: dict[int, float] = {}

    def weigh(self, tokens: Sequence[int], among: Sequence[int]) -> None:
        """Before the next token: those that may come, where that is a choice."""
        said, nothing, begun = self._said, self._nothing, [*tokens]
        at = len(begun)
        self._next = {}
        if begun == [*said[:at]] == [*nothing[:at]] and said[at] != nothing[at]:
            self._next = {said[at]: self._probability(said[at]) / max(self._probability(nothing[at]), LEAST)}
        elif begun[: len(said)] == [*said] and len(among) > 1:
            self._next = {token: self._probability(token) for token in among}

    def push(self, token: int) -> None:
        self.odds += log(max(self._next.get(token, 1.0), LEAST))
