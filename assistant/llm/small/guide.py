"""Holds one reply of the small model to words that it knows or heard, and weighs how it begins by what was retrieved.

Retrieval is evidence and not an order: a beginning that it speaks for counts `WEIGHT` times as probable as the model
finds it, and the model may still begin otherwise. A line that is repeated and a question go on to their end once begun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from assistant.llm.small.recall import NOT_YET, SAID, TOLD, Recall
from assistant.llm.small.retrieval import Meant
from assistant.llm.small.words import WordGuide

if TYPE_CHECKING:
    from assistant.llm.language import Ahead  # it reads GGUF files too, with torch

CALL = "<tool_call>\n<function="
WEIGHT = 1000.0
"""How many times more probable what was retrieved counts. The model often refuses where a tool is named."""
SURE = 0.8
"""How probable a call must be to the model where a request shares no word with any tool that has to be read."""


class ReplyGuide:
    """Follows one reply.

    words      what the reply's words may be
    meant      what may be done with tools that have to be read
    told       the user's lines that may be repeated
    names      of the tools that may be called, and of all that are declared: the model is asked which one it wants
    ahead      how probable each token is to the model
    """

    def __init__(
        self,
        words: WordGuide,
        meant: Meant,
        told: Recall,
        names: tuple[Sequence[str], Sequence[str]],
        encode: Callable[[str], Sequence[int]],
        ahead: Ahead,
    ) -> None:
        self._words, self._ahead = words, ahead
        self._repeats, self._call, self._your = encode(SAID), encode(CALL), encode(TOLD)[0]
        begun = len(self._call)
        self._may_call, self._declared = (
            [token for name in some for token in encode(f"{CALL}{name}")[begun : begun + 1]] for some in names
        )
        self._calls, stops = bool(meant.calls), words.stops()
        self._asks = [(*encode(text), stop) for text in meant.asks for stop in stops]
        self._nearest = [(*encode(told.nearest), stop) for stop in stops] if told.nearest and not meant.asks else []
        self._said = [(*encode(text), stop) for text in told.said for stop in stops]
        self._untold = [encode(NOT_YET)] if told.said and not told.nearest else []
        self._tokens: list[int] = []

    def push(self, token: int, text: str) -> None:
        """The next token of the reply, and the text that it brought."""
        self._words.push(token, text)
        self._tokens.append(token)

    def among(self) -> Sequence[int]:
        """The tokens that may come next."""
        if self._tokens and (asked := self._next(self._asks)):
            return asked
        if self._tokens[: len(self._repeats)] == [*self._repeats] and (line := self._next(self._nearest or self._said)):
            return line
        free = self._words.among()
        if not self._tokens and not self._wants_to_call():
            free = [token for token in free if token not in self._words.opening()]
        weights = self._evidence(free)
        if not weights:
            return free
        chances = self._ahead(())
        best = max(chances[token] * weight for token, weight in weights.items())
        return sorted(weights) if best >= max(chances[token] for token in free) else free

    def _evidence(self, free: Sequence[int]) -> dict[int, float]:
        """The next tokens that were spoken for, and how many times more probable they count."""
        found = dict.fromkeys([*self._next(self._asks), *self._next(self._nearest)], WEIGHT)
        if not self._tokens and self._calls:
            found |= {token: WEIGHT for token in self._words.opening() if token in free}
        if found or not self._untold:
            return found
        untold, said = self._next(self._untold), self._next(self._said)
        if self._tokens:  # each of many lines may be less probable than that none was told
            parts = untold and untold != said
            return dict.fromkeys(untold, 1 / max(self._likeliest(), 1e-30)) if parts else {}
        recalls = max(free, key=self._ahead(()).__getitem__) == self._your
        return dict.fromkeys(untold, WEIGHT) if recalls else {}

    def _likeliest(self) -> float:
        """How probable the likeliest line to repeat is, by the choices among them behind `You said:`."""
        lines, begun, chance = [[*text[:-1]] for text in self._said], [*self._repeats], 1.0
        while options := sorted({line[len(begun)] for line in lines if line[: len(begun)] == begun != line}):
            chances = self._ahead(begun[len(self._tokens) :]) if len(options) > 1 else [1.0] * (options[0] + 1)
            begun.append(max(options, key=chances.__getitem__))
            chance *= chances[begun[-1]]
        return chance

    def _wants_to_call(self) -> bool:
        """Whether the tool that the model would call is one that the request may mean."""
        if not self._may_call or {*self._declared} <= {*self._may_call}:
            return bool(self._may_call)
        chances = self._ahead(self._call)
        best = max(map(chances.__getitem__, self._may_call), default=0.0)
        return best * (WEIGHT if self._calls else 1.0) >= max(map(chances.__getitem__, self._declared))

    def _next(self, texts: Sequence[Sequence[int]]) -> list[int]:
        at = len(self._tokens)
        return sorted({text[at] for text in texts if at < len(text) and [*text[:at]] == self._tokens})
