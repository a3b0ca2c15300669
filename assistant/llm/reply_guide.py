"""Holds a small model's reply to what a request may mean: of the declared tools what it calls, asks and refuses, and of
what was told what it recalls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from assistant.llm.recall import NOT_TOLD, SAID, TOLD, Recall
from assistant.llm.tool_retrieval import Meant
from llm_engine.wordguide import WordGuide

NO_TOOL = "I have no tool"
"""How the shipped model begins to say that no declared tool fits (`recipes/texts/scenes_declared.py`)."""
SWITCHED_OFF = "I cannot do that here, because my tools are switched off."
"""What it was taught to say where it would call a tool and none is declared (`recipes/texts/talks.py`)."""
REFUSES = ("I cannot ", "I am too small ", "I do not know ", "I have no ")
"""How it begins to refuse …"""
TOLD_NOTHING, NOT_YET = "You have not told me ", "You have not told me yet"
"""… and to say that it was not told, with what or without."""
WHICH_ONE = "Which one:"
"""How it begins to ask for a listed value; where there is none to ask for, it goes on with anything."""


class ReplyGuide:
    """Follows one reply.

    words     what the reply's words may be
    meant     what may be done with tools that have to be read; None where there are none
    told      what may be said of what was told
    encode    text to tokens
    stops     tokens that end a reply
    rejected  how a reply began that did not stand: written a second time, it must say what was told, or call or ask,
              if there is anything to call or to ask
    """

    def __init__(
        self,
        words: WordGuide,
        meant: Meant | None,
        told: Recall,
        encode: Callable[[str], Sequence[int]],
        stops: Collection[int],
        rejected: str | None = None,
    ) -> None:
        self._words, self._meant, self._rejected = words, meant or Meant(), rejected

        def whole(texts: Collection[str]) -> list[tuple[int, ...]]:
            return [(*encode(text), stop) for text in texts for stop in sorted(stops)]

        nearest = (told.nearest,) if told.nearest else ()
        own = told.own and bool(told.said) and not self._meant.calls
        recalled = told.known or nearest or ((*told.said, f"{NOT_YET}.") if own else told.unknown)
        begun = rejected or ""
        refused = begun.startswith((TOLD, TOLD_NOTHING, SAID, *REFUSES)) and not begun.startswith(NO_TOOL)
        recalls = bool(recalled) and refused and not self._meant.calls
        self._first = whole(recalled if recalls else self._meant.asks)
        self._ways = {
            NO_TOOL: whole([f"{NO_TOOL} for the {thing}." for thing in self._meant.things]),
            NOT_TOLD: whole(told.unknown),
            TOLD: whole(told.known),
            SAID: whole(nearest or told.said),
        }
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
        self._words.push(token, text)
        self._tokens.append(token)
        self._said += text

    def among(self) -> Sequence[int]:
        """The tokens that may come next: what begins like one of the replies that are known goes on like it."""
        anew = self._rejected is not None
        texts = next((texts for begin, texts in self._ways.items() if self._said.startswith(begin)), self._first)
        forced = sorted(self._next(texts)) if self._tokens or anew else []
        call = self._words.opening()
        if anew and self._may_call and not self._tokens:
            forced += call
        if forced or not anew:
            return forced or self._words.among()
        free = [token for token in self._words.among() if self._may_call or token not in call]
        return free if self._tokens else [token for token in free if token not in self._idle_begins]

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
        begun = next((begin for begin in self._wrong if self._said.startswith(begin)), None)
        asked = begun in self._idle and any(ask.startswith(begun) for ask in self._meant.asks)
        return (begun is None or asked) and self._words.stands()

    def _talks(self) -> bool:
        """Whether it says anything but a question that may be asked."""
        said = self._said.strip()
        return bool(said) and not said.startswith("<") and not any(ask.startswith(said) for ask in self._meant.asks)
