"""Which tokens may come next in a small model's reply: words that it learnt to say, and words that stood before it.

Pure: tokens and text in, tokens out. A model that copies a strange name letter by letter sometimes slips; here it
cannot write a word that nobody knows. Nor can it say nothing, stop inside a call, or say one thing without end.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from llm_engine.callguide import CallGuide

ROUNDS = 3
"""As often as this the same comes in a row, of at least `LEAST` and at most `MOST` tokens, and there the reply ends."""
LEAST, MOST = 6, 48

_LETTERS, _OTHERS = re.compile(r"[a-z]+"), re.compile(r"[^a-z]+")
_CALL, _CALL_END, _HIDDEN = "<tool_call>", "</tool_call>", ("<|", "<think", "</think", "<tool_resp", "</tool_resp")


@dataclass(frozen=True, slots=True)
class _Ends:
    """A token that ends a word with `head`, holds whole words, and begins one with `tail`."""

    token: int
    head: str
    whole: tuple[str, ...]
    tail: str


class Words:
    """Words in small letters, and all that they begin with."""

    def __init__(self, words: Collection[str]) -> None:
        self.whole = frozenset(words)
        self.sorted = sorted(self.whole)
        self.begun = frozenset(word[:end] for word in self.whole for end in range(1, len(word) + 1))

    def beginning(self, text: str) -> Iterator[str]:
        for place in range(bisect_left(self.sorted, text), len(self.sorted)):
            if not self.sorted[place].startswith(text):
                return
            yield self.sorted[place]


class Vocabulary:
    """What the replies of one model are made of.

    texts   the text of each token
    known   the words that it says of itself, in small letters
    stops   the tokens that end a reply
    """

    def __init__(self, texts: Sequence[str], known: Collection[str], stops: Collection[int]) -> None:
        self.known, self.stops = Words(known), sorted(stops)
        self.letters: dict[str, list[int]] = {}
        """Tokens of letters alone; then those that begin a word behind something else, by its beginning."""
        self.begins: dict[str, list[int]] = {}
        self.ends: list[_Ends] = []
        self.foreign: list[int] = []
        """Parts of a character beyond the alphabet."""
        self.opening: list[int] = []
        self.markup: list[int] = []
        self.after_value: list[int] = []
        self.more: set[int] = set()
        """What begins a call; what stands in one; of it, what can follow a value, and what leads to one more."""
        for token, text in enumerate(texts):
            if text and token not in stops and not text.startswith(_HIDDEN):
                self._sort(token, text.lower())
        self._on: dict[str, frozenset[int]] = {}

    def _sort(self, token: int, text: str) -> None:
        if text.startswith(_CALL):
            self.opening.append(token)
        elif ("<" in text or ">" in text) and _LETTERS.search(text):
            self.markup.append(token)
            if text.startswith("\n</parameter>"):
                self.after_value.append(token)
            if "<parameter=" in text:
                self.more.add(token)
        elif _LETTERS.fullmatch(text):
            self.letters.setdefault(text, []).append(token)
        elif "�" in text:
            self.foreign.append(token)
        else:
            *whole, tail = _OTHERS.split(text)
            if any(whole):
                self.ends.append(_Ends(token, whole[0], tuple(whole[1:]), tail))
            else:
                self.begins.setdefault(tail, []).append(token)

    def on(self, words: Words, begun: str) -> Iterator[int]:
        """Tokens of letters that come next in one of the words that begin so."""
        for word in words.beginning(begun):
            for end in range(len(begun) + 1, len(word) + 1):
                yield from self.letters.get(word[len(begun) : end], ())

    def on_known(self, begun: str) -> frozenset[int]:
        """The same of the words that it says of itself."""
        if begun not in self._on:
            self._on[begun] = frozenset(self.on(self.known, begun))
        return self._on[begun]


class WordGuide:
    """Follows one reply.

    heard   all that stood before it
    calls   what a call may hold; where that is left open, it is words like any others
    """

    def __init__(self, vocabulary: Vocabulary, heard: str, calls: CallGuide) -> None:
        self._vocabulary, self._calls = vocabulary, calls
        words = set(_LETTERS.findall(heard.lower()))
        numbers = {word.removesuffix("s") if word.endswith("s") else f"{word}s" for word in words if len(word) > 2}
        self._heard = Words(words | numbers)
        self._foreign = vocabulary.foreign if not heard.isascii() else []
        self._tokens: list[int] = []
        self._begun = ""  # of a word
        self._said = self._in_call = False
        self._may: dict[str, list[int]] = {}
        self._begin = [token for tail, tokens in vocabulary.begins.items() if self._begins(tail) for token in tokens]

    def push(self, token: int, text: str) -> None:
        """The next token of the reply, and the text that it brought."""
        self._calls.push(token, text)
        self._tokens.append(token)
        self._said = self._said or bool(text.strip())
        if text.startswith(_CALL):
            self._in_call = True
        elif _CALL_END in text:
            self._in_call = False
        ends = _OTHERS.split(text.lower())[-1]
        self._begun = self._begun + ends if len(ends) == len(text) else ends

    def among(self) -> list[int]:
        """The tokens that may come next."""
        if declared := self._calls.among():
            return declared
        begun, vocabulary = self._begun, self._vocabulary
        if self._goes_round():
            return vocabulary.markup if self._in_call else vocabulary.stops
        if begun not in self._may:
            self._may[begun] = self._next(begun)
        found = self._may[begun]
        if not self._is_word(begun):
            return found
        if self._in_call:
            after = vocabulary.after_value if self._calls.in_value() else vocabulary.markup
            full, lacks = self._calls.is_full(), self._calls.lacks()
            return found + [token for token in after if not (full if token in vocabulary.more else lacks)]
        return [*found, *self.opening(), *(vocabulary.stops if self._said else ())]

    def opening(self) -> Sequence[int]:
        """The tokens that begin a call."""
        return self._vocabulary.opening

    def stands(self) -> bool:
        """False once a tool was called that the request cannot mean, or any where there is none."""
        return self._calls.stands() and (self._calls.has_tools() or not self._in_call)

    def _next(self, begun: str) -> list[int]:
        """Letters that go on with the word, and whatever else may follow it."""
        vocabulary = self._vocabulary
        found = {*vocabulary.on_known(begun), *vocabulary.on(self._heard, begun)}
        if self._is_word(begun):
            found.update(self._begin, self._foreign)
        if not begun:
            found.update(token for text, tokens in vocabulary.letters.items() if len(text) == 1 for token in tokens)
        for it in vocabulary.ends:
            if self._is_word(begun + it.head) and all(map(self._is_word, it.whole)) and self._begins(it.tail):
                found.add(it.token)
        return sorted(found)

    def _is_word(self, text: str) -> bool:
        return len(text) < 2 or text in self._vocabulary.known.whole or text in self._heard.whole

    def _begins(self, text: str) -> bool:
        return len(text) < 2 or text in self._vocabulary.known.begun or text in self._heard.begun

    def _goes_round(self) -> bool:
        """Whether the same was said often enough for the reply to end here."""
        tokens = self._tokens
        for length in range(LEAST, min(MOST, len(tokens) // ROUNDS) + 1):
            block = tokens[-length:]
            if all(tokens[-length * n : -length * (n - 1)] == block for n in range(2, ROUNDS + 1)):
                return True
        return False
