"""Which tokens may come next in a small model's reply: words that it learnt to say, and words that stood before it.

Pure: tokens and text in, tokens out. A model that copies a strange name letter by letter sometimes slips; here it
cannot write a word that nobody knows, nor give a tool a word that did not stand before. Nor can it say nothing, stop
inside a sentence or a call, break a line or begin a call in the midst of what it says, say one thing without end, or
count on.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import ascii_lowercase

from llm_engine.callguide import CallGuide

ROUNDS = 3
"""As often as this the same comes in a row, of at least `LEAST` and at most `MOST` tokens, and there the reply ends."""
LEAST, MOST = 6, 48
COUNTED, COUNTED_UNASKED = 999, 20
"""It counts no further than the largest number that stood before, at most to the first of these, at least the other."""
LONGEST_VALUE = 48  # tokens; what people ask to be noted has fewer
OF_CALLS = ("of", "sqrt")
"""All words that it has to write in a call and nobody needs to have said: in 7,083 calls of its texts."""

_LETTERS, _OTHERS, _NUMBER = re.compile(r"[a-z\x80-\xff]+"), re.compile(r"[^a-z\x80-\xff]+"), re.compile(r"\d+")
_INNER_CAPITAL = re.compile("(?<![A-Za-z])[A-Za-z]+[A-Z][A-Za-z]*")
_SIGNS = re.compile(r"[^a-z0-9 ,.:'()+*/^%\x80-\xff-]")
"""Characters that a value has only if they appeared before; the others belong to numbers, sums and times."""
_SENTENCE_ENDS, _ONE_MORE = (".", "?", "!"), re.compile(r"(\d+), (\d+)$")
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
    """The material of one model's replies.

    texts   the bytes of each token, as Latin-1 characters: one may hold a part of a letter beyond the alphabet
    known   the words that it says of itself, in small letters
    stops   the tokens that end a reply
    """

    def __init__(self, texts: Sequence[str], known: Collection[str], stops: Collection[int]) -> None:
        self.known, self.stops = Words(known), sorted(stops)
        self.letters: dict[str, list[int]] = {}  # tokens of letters alone
        self.begins: dict[str, list[int]] = {}  # what begins a word behind something else, by its beginning
        self.ends: list[_Ends] = []
        self.opening: list[int] = []  # what begins a call
        self.markup: list[int] = []  # what stands in one
        self.after_value: list[int] = []  # markup that can follow a value
        self.more: set[int] = set()  # markup that leads to one more parameter
        self.angles: list[int] = []  # markup without letters
        self.line_ends: list[int] = []  # what breaks a line, as only a call does
        self.spaced: set[int] = set()  # what begins with a space
        self.periods: list[int] = []
        self.signs: dict[int, frozenset[str]] = {}  # the unusual signs that a token holds
        self.capital: set[int] = set()  # what begins with a capital, as no word goes on
        self.texts = [text.encode("latin-1").lower().decode("latin-1") for text in texts]
        for token, text in enumerate(texts):
            if text and token not in stops and not text.startswith(_HIDDEN):
                self._sort(token, self.texts[token])
                if "A" <= text[0] <= "Z":
                    self.capital.add(token)
        self._on: dict[str, frozenset[int]] = {}

    def _sort(self, token: int, text: str) -> None:
        if text.startswith(" "):
            self.spaced.add(token)
        if signs := _SIGNS.findall(text):
            self.signs[token] = frozenset(signs)
        if text.startswith(_CALL):
            self.opening.append(token)
        elif text == ".":
            self.periods.append(token)
            self.begins.setdefault("", []).append(token)
        elif ("<" in text or ">" in text) and _LETTERS.search(text):
            self.markup.append(token)
            if text.startswith("\n</parameter>"):
                self.after_value.append(token)
            if "<parameter=" in text:
                self.more.add(token)
        elif "<" in text or ">" in text:
            self.angles.append(token)
        elif "\n" in text:
            self.line_ends.append(token)
        elif _LETTERS.fullmatch(text):
            self.letters.setdefault(text, []).append(token)
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


def load_vocabulary(folder: Path, known: Collection[str]) -> Vocabulary:
    """The vocabulary of a model that says `known` words of itself. Raises TextError."""
    from llm_engine.chat import Chat  # it reads GGUF files too, with torch

    tokenizer = Chat.load(folder).tokenizer
    return Vocabulary([piece.decode("latin-1") for piece in tokenizer.pieces()], known, tokenizer.stops())


def _words_of(text: str) -> Words:
    """The words of a text, each in both numbers, and with its capitals beyond the alphabet."""
    letters = "".join(sign if sign.isascii() or sign.isalpha() else " " for sign in text)
    cases = (case.encode().lower().decode("latin-1") for case in (letters.lower(), letters))
    words = {word for case in cases for word in _LETTERS.findall(case)}
    numbers = {word.removesuffix("s") if word.endswith("s") else f"{word}s" for word in words if len(word) > 2}
    return Words(words | numbers)


class WordGuide:
    """Follows one reply.

    heard   all that stood before it
    said    what was said of it, and what tools told: a call's values are of that
    calls   what a call may hold; where that is left open, it is words like any others
    """

    def __init__(self, vocabulary: Vocabulary, heard: str, said: str, calls: CallGuide) -> None:
        self._vocabulary, self._calls = vocabulary, calls
        self._heard = _words_of(heard)
        odd = _INNER_CAPITAL.findall(heard)
        self._capitals = {word[:at].lower() for word in odd for at in range(1, len(word)) if word[at].isupper()}
        self._said = said
        self._counts_to = max(COUNTED_UNASKED, *(min(int(text), COUNTED) for text in ("0", *_NUMBER.findall(heard))))
        self._tokens: list[int] = []
        self._begun = ""  # of a word
        self._counting = ""  # the end of what was said, outside of calls
        self._in_call = False
        self._spoke = self._may_end = False  # words outside of a call; at the end of a sentence or of a call
        self._value_tokens = 0
        self._may: dict[tuple[str, bool], list[int]] = {}
        self._begin: dict[bool, list[int]] = {}

    def push(self, token: int, text: str) -> None:
        """The next token of the reply, and the text that it brought."""
        self._calls.push(token, text)
        self._tokens.append(token)
        if text.startswith(_CALL):
            self._in_call, self._may_end = True, False
        elif _CALL_END in text:
            self._in_call, self._may_end = False, True
        elif not self._in_call and text.strip():
            self._spoke, self._may_end = True, text.rstrip().endswith(_SENTENCE_ENDS)
        self._value_tokens = self._value_tokens + 1 if self._calls.value() else 0
        piece = self._vocabulary.texts[token]
        ends = _OTHERS.split(piece)[-1]
        self._begun = self._begun + ends if len(ends) == len(piece) else ends
        self._counting = (self._counting + text)[-16:]

    def among(self) -> list[int]:
        """The tokens that may come next."""
        if declared := self._calls.among():
            return declared
        begun, vocabulary, value = self._begun, self._vocabulary, self._calls.value()
        if self._goes_round() or self._value_tokens > LONGEST_VALUE:
            return vocabulary.markup if self._in_call else vocabulary.stops
        if self._counted() and not self._in_call:
            return vocabulary.periods
        words = (begun, value is not None)
        if words not in self._may:
            self._may[words] = self._next(*words)
        found = self._may[words]
        if value == "" and self._calls.lead == " ":
            return [token for token in found if token in vocabulary.spaced]
        if not self._is_word(begun, self._own(value is not None)):
            return found
        if self._in_call:
            in_value, full, lacks = self._calls.in_value(), self._calls.is_full(), self._calls.lacks()
            after = [*(vocabulary.after_value if in_value else vocabulary.markup)]
            if not (in_value and after):  # where one token closes a value, no other does
                after += (*vocabulary.line_ends, *vocabulary.angles)
            return [*found, *(token for token in after if not (full if token in vocabulary.more else lacks))]
        opening = () if self._spoke else self.opening()
        return [*found, *opening, *(vocabulary.stops if self._may_end else ())]

    def opening(self) -> Sequence[int]:
        """The tokens that begin a call."""
        return self._vocabulary.opening

    def stops(self) -> Sequence[int]:
        """The tokens that end a reply."""
        return self._vocabulary.stops

    @cached_property
    def _values(self) -> Words:
        """The words that a call's values may use; sorted only for a reply that calls."""
        return Words({*_words_of(self._said).whole, *OF_CALLS})

    @cached_property
    def _signs(self) -> frozenset[str]:
        """The unusual signs that a call's values may have."""
        return frozenset(_SIGNS.findall(self._said.lower()))

    def _own(self, in_value: bool) -> Sequence[Words]:
        """The allowed words; in a value, those that were said."""
        return (self._values,) if in_value else (self._vocabulary.known, self._heard)

    def _next(self, begun: str, in_value: bool) -> list[int]:
        """Letters that go on with the word, and whatever else may follow it."""
        vocabulary, own = self._vocabulary, self._own(in_value)
        found = {*(() if in_value else vocabulary.on_known(begun)), *vocabulary.on(own[-1], begun)}
        if self._is_word(begun, own):
            found.update(self._beginning(in_value))
        if not begun:
            found.update(token for letter in ascii_lowercase for token in vocabulary.letters.get(letter, ()))
        for it in vocabulary.ends:
            if not self._is_word(begun + it.head, own) or not self._begins(it.tail, own):
                continue
            if all(self._is_word(word, own) for word in it.whole):
                found.add(it.token)
        if begun and begun not in self._capitals:
            found -= vocabulary.capital
        if in_value:
            found -= {token for token, signs in vocabulary.signs.items() if not signs <= self._signs}
        return sorted(found)

    def _beginning(self, in_value: bool) -> list[int]:
        """Tokens that begin a word behind something else."""
        if in_value not in self._begin:
            own, begins = self._own(in_value), self._vocabulary.begins
            self._begin[in_value] = [token for text in begins if self._begins(text, own) for token in begins[text]]
        return self._begin[in_value]

    def _is_word(self, text: str, own: Sequence[Words]) -> bool:
        return (len(text) < 2 and text.isascii()) or any(text in words.whole for words in own)

    def _begins(self, text: str, own: Sequence[Words]) -> bool:
        return (len(text) < 2 and text.isascii()) or any(text in words.begun for words in own)

    def _counted(self) -> bool:
        """Whether it has counted to where it was to."""
        last = _ONE_MORE.search(self._counting)
        return last is not None and int(last[2]) == int(last[1]) + 1 and int(last[2]) >= self._counts_to

    def _goes_round(self) -> bool:
        """Whether the same was said often enough for the reply to end here."""
        tokens = self._tokens
        for length in range(LEAST, min(MOST, len(tokens) // ROUNDS) + 1):
            block = tokens[-length:]
            if all(tokens[-length * n : -length * (n - 1)] == block for n in range(2, ROUNDS + 1)):
                return True
        return False
