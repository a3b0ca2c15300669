"""Simple LaTeX in words: fractions, roots, powers, indices, Greek letters, sums. Other formulas are not said.

    formula(r"A = \\frac{1}{2}bh")  ->  "A equals one half b h"
"""

from __future__ import annotations

import re

from tts_engine.reading.words import cardinal, decimal, ordinal

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|[A-Za-z]|[^\s\w]|\S")
_WORDS = {
    "+": "plus", "-": "minus", "−": "minus", "=": "equals", "<": "is less than", ">": "is greater than",
    "*": "times", "/": "over", "!": "factorial", "%": "percent", "±": "plus or minus", "×": "times",
    "·": "times", "π": "pi", "∞": "infinity", "≤": "is at most", "≥": "is at least", "≠": "is not equal to",
    "≈": "is about", "|": "", "(": "", ")": "", "[": "", "]": "", ",": ",", ".": ".", ":": "to", ";": ",", "'": "prime",
    "\\times": "times", "\\cdot": "times", "\\div": "divided by", "\\pm": "plus or minus", "\\le": "is at most",
    "\\leq": "is at most", "\\ge": "is at least", "\\geq": "is at least", "\\neq": "is not equal to", "\\ne": "is not "
    "equal to", "\\approx": "is about", "\\sim": "is about", "\\equiv": "is equivalent to", "\\infty": "infinity",
    "\\to": "to", "\\rightarrow": "to", "\\Rightarrow": "implies", "\\implies": "implies", "\\in": "in", "\\sum":
    "the sum", "\\prod": "the product", "\\int": "the integral", "\\lim": "the limit", "\\partial": "partial",
    "\\degree": "degrees", "\\circ": "degrees", "\\ldots": "and so on", "\\cdots": "and so on", "\\dots": "and so on",
    "\\left": "", "\\right": "", "\\,": "", "\\;": "", "\\:": "", "\\!": "", "\\ ": "", "\\quad": "", "\\qquad": "",
    "\\%": "percent", "\\$": "dollars", "\\{": "", "\\}": "", "\\mid": "given", "\\cup": "union",
    "\\cap": "intersection",
    "\\displaystyle": "", "\\ln": "log", "\\forall": "for all", "\\exists": "there is",
    "\\propto": "is proportional to",
    "\\nabla": "del", "\\varepsilon": "epsilon", "\\varphi": "phi", "&": "", "\\\\": ",", "~": "",
}  # fmt: skip
_NAMED = frozenset(
    "\\" + name for name in str.split(
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
        "omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega sin cos tan log exp max min det gcd mod"
    )
)  # fmt: skip
_TEXT = frozenset(["\\text", "\\mathrm", "\\mathbf", "\\operatorname", "\\textbf", "\\mathit", "\\mbox", "\\boxed"])
_POWERS = {"2": "squared", "3": "cubed", "\\circ": "degrees", "'": "prime"}
_BOUNDED = re.compile(r"the (?:sum|product|integral|limit)$")
_MOST_TOKENS = 60


class _NotSimpleError(Exception):
    """Something that has no plain words."""


def formula(source: str) -> str:
    """The formula in words; empty if it is not simple enough to be followed by ear."""
    tokens = _TOKEN.findall(source)
    if len(tokens) > _MOST_TOKENS:
        return ""
    try:
        said = _Formula(tokens).all()
    except _NotSimpleError:
        return ""
    return re.sub(r" +([,.])", r"\1", " ".join(said.split())).strip(" ,.")


class _Formula:
    """Tokens read from the left; each method returns words and moves on."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens, self._at = tokens, 0

    def all(self, until: str | None = None) -> str:
        """Words up to the token `until`, which is read too; None: up to the end."""
        said: list[str] = []
        while self._at < len(self._tokens):
            token = self._next_part()
            if token == until:
                return " ".join(said)
            said.append(self._power(said) if token == "^" else self._index(said) if token == "_" else self._one(token))
        if until is not None:
            raise _NotSimpleError
        return " ".join(said)

    def _next_part(self) -> str:
        if self._at == len(self._tokens):
            raise _NotSimpleError
        self._at += 1
        return self._tokens[self._at - 1]

    def _group(self) -> list[str]:
        """The tokens of `{...}`, or the next one."""
        first = self._next_part()
        if first != "{":
            return [first]
        depth, begin = 1, self._at
        while depth:
            token = self._next_part()
            depth += (token == "{") - (token == "}")
        return self._tokens[begin : self._at - 1]

    def _one(self, token: str) -> str:
        if token == "{":
            return self.all("}")
        if token in ("\\frac", "\\dfrac", "\\tfrac"):
            return _fraction(self._group(), self._group())
        if token == "\\sqrt":
            return f"the {self._root()} of {_said(self._group())}"
        if token in _TEXT:
            return _joined(self._group())
        if token in _NAMED:
            return token[1:].lower()
        if token in _WORDS:
            return _WORDS[token]
        if token[0].isdigit():
            whole, _, part = token.partition(".")
            return decimal(whole, part or None)
        if token.isalpha():
            return token
        raise _NotSimpleError

    def _root(self) -> str:
        if self._at < len(self._tokens) and self._tokens[self._at] == "[":
            self._next_part()
            degree = self.all("]")
            return {"three": "cube root"}.get(degree, f"{degree}th root")
        return "square root"

    def _power(self, before: list[str]) -> str:
        power = self._group()
        if len(power) == 1 and power[0] in _POWERS:
            return _POWERS[power[0]]
        if any(map(_BOUNDED.match, before[-2:])):
            return f"to {_said(power)} of"
        return f"to the power of {_said(power)}"

    def _index(self, before: list[str]) -> str:
        index = self._group()
        if before and _BOUNDED.match(before[-1]):
            return f"from {_said(index)}"
        return _said(index) if len(index) == 1 else f"sub {_said(index)}"


def _said(tokens: list[str]) -> str:
    return _Formula(tokens).all()


def _joined(tokens: list[str]) -> str:
    """Letters of a text group, which tokens have taken apart."""
    return "".join(token for token in tokens if token.isalnum())


def _fraction(over: list[str], under: list[str]) -> str:
    if len(over) == len(under) == 1 and over[0].isdigit() and under[0].isdigit() and 1 < int(under[0]) <= 100:
        return fraction(int(over[0]), int(under[0]))
    return f"{_said(over)} over {_said(under)}"


def fraction(over: int, under: int) -> str:
    """(3, 4) -> "three quarters"."""
    name = {2: "half", 4: "quarter"}.get(under) or ordinal(under)
    return f"{cardinal(over)} {name if over == 1 else 'halves' if under == 2 else name + 's'}"
