"""Texts of every kind and how they are said: those from the field, our own, and some written without knowing the rules.

`reading.tsv` has kind, text (⏎ is a new line) and speech. `reading_unseen.tsv` was written from public recipes, READMEs
and test texts of other normalisers before the rules were read. Its first column says which expectations were changed
afterwards: British spelling and pence, an image and announcements left out, "JSON", "v", an ambiguous date.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tts_engine.reading.maths import formula
from tts_engine.text import speech_text

HERE = Path(__file__).parent


def rows(name: str) -> list[tuple[str, str, str]]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [(kind, text.replace("⏎", "\n"), said) for kind, text, said in (line.split("\t") for line in lines)]


def words(said: str) -> list[str]:
    """Without marks, capitals and the `and` inside numbers, which is a matter of taste."""
    return [word for word in re.findall(r"[^\W_]+(?:'[^\W_]+)?", said.lower()) if word != "and"]


OWN, UNSEEN = rows("reading.tsv"), rows("reading_unseen.tsv")


def test_there_are_enough() -> None:
    assert len([kind for kind, _, _ in OWN if kind != "field"]) >= 60 and len(UNSEEN) >= 30


@pytest.mark.parametrize(("kind", "text", "said"), OWN)
def test_a_good_reader_says_it_so(kind: str, text: str, said: str) -> None:
    assert speech_text(text) == said, kind


@pytest.mark.parametrize(("changed", "text", "said"), UNSEEN)
def test_unseen_texts_are_said_so(changed: str, text: str, said: str) -> None:
    assert words(speech_text(text)) == words(said), changed


@pytest.mark.parametrize("source", [r"\begin{matrix} a \end{matrix}", r"\frac{1}{", "x^", "a " * 70, r"\unknown{x}"])
def test_a_formula_that_is_not_simple_has_no_words(source: str) -> None:
    assert formula(source) == ""


@pytest.mark.parametrize("mark", ["\\(", "$", "[", "*a ", "`", "<a ", "![", "](", "1-", "1/", "a.", "1 Oak ", "A"])
def test_thousands_of_marks_are_read_in_time(mark: str) -> None:
    """A pattern that looks back over all it has read would take minutes."""
    speech_text(mark * 1500)
