"""Holds a small model's reply to what a request may mean of the declared tools: what it calls, asks and refuses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from assistant.llm.tool_retrieval import Meant
from llm_engine.wordguide import WordGuide

NO_TOOL = "I have no tool"
"""How the shipped model begins to say that no declared tool fits (`recipes/texts/scenes_declared.py`)."""
SWITCHED_OFF = "I cannot do that here, because my tools are switched off."
"""What it was taught to say where it would call a tool and none is declared (`recipes/texts/talks.py`)."""
WHICH_ONE = "Which one:"
"""How it begins to ask for a listed value; where there is none to ask for, it goes on with anything."""


class ToolGuide:
    """Follows one reply to a request with tools that have to be read.

    words   what the reply's words may be
    encode  text to tokens
    stops   tokens that end a reply
    anew    written a second time: now it must call or ask, if there is anything to call or to ask
    """

    def __init__(
        self,
        words: WordGuide,
        meant: Meant,
        encode: Callable[[str], Sequence[int]],
        stops: Collection[int],
        *,
        anew: bool,
    ) -> None:
        self._words, self._meant, self._anew = words, meant, anew
        refusals = (f"{NO_TOOL} for the {thing}." for thing in meant.things)
        self._asks, self._refusals = (
            [(*encode(text), stop) for text in texts for stop in sorted(stops)] for texts in (meant.asks, refusals)
        )
        self._idle = (WHICH_ONE, *(text for text in meant.idle if not text.startswith(WHICH_ONE)))
        self._idle_begins = {encode(text)[0] for text in self._idle}
        self._tokens: list[int] = []
        self._said = ""

    def push(self, token: int, text: str) -> None:
        """The next token of the reply, and the text that it brought."""
        self._words.push(token, text)
        self._tokens.append(token)
        self._said += text

    def among(self) -> Sequence[int]:
        """The tokens that may come next: what begins like one of the questions or refusals goes on like it."""
        texts = self._refusals if self._said.startswith(NO_TOOL) else self._asks
        forced = sorted(self._next(texts)) if self._tokens or self._anew else []
        may_call, call = bool(self._meant.calls), self._words.opening()
        if self._anew and may_call and not self._tokens:
            forced += call
        if forced or not self._anew:
            return forced or self._words.among()
        free = [token for token in self._words.among() if may_call or token not in call]
        return free if self._tokens else [token for token in free if token not in self._idle_begins]

    def _next(self, texts: Sequence[Sequence[int]]) -> set[int]:
        at = len(self._tokens)
        return {text[at] for text in texts if at < len(text) and [*text[:at]] == self._tokens}

    def stands(self) -> bool | None:
        """False if it calls what cannot be meant, refuses what can, or asks for what need not be asked."""
        if self._anew:
            return True
        if any(begin.startswith(self._said) and begin != self._said for begin in (NO_TOOL, *self._idle)):
            return None
        refuses = self._meant.named and self._said.startswith(NO_TOOL)
        asked = next((text for text in self._idle if self._said.startswith(text)), "")
        asks = bool(asked) and not any(ask.startswith(asked) for ask in self._meant.asks)
        return not refuses and not asks and self._words.stands()
