"""Checks of arguments to public calls, made at the entry: once per call, never inside a step and never per token.

Each check takes the error class of the package that was called; its message says what was passed and what is needed.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any


def shown(value: object) -> str:
    """A value as shown in a message: short, with its type unless that is obvious."""
    if value is None:
        return "None"
    told = repr(value)
    return f"{told if len(told) <= 60 else told[:57] + '…'} ({type(value).__name__})"


def whole(error: type[Exception], name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """An integer in [least, most]; numpy's integers count, a bool does not."""
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if not good or value < least or (most is not None and value > most):
        allowed = f"{least} or more" if most is None else f"from {least} to {most}"
        raise error(f"{name} is {shown(value)}; an integer, {allowed}, is needed")
    return int(value)


def a_kind(error: type[Exception], name: str, value: object, kind: Any, needed: str) -> None:
    """An instance of `kind`, a type or several; `needed` describes it in words and says where to get it."""
    if not isinstance(value, kind):
        raise error(f"{name} is {shown(value)}; {needed} is needed")


def a_function(error: type[Exception], name: str, value: object) -> None:
    """Something that can be called, or None."""
    if value is not None and not callable(value):
        raise error(f"{name} is {shown(value)}; a function or None is needed")


def token_ids(error: type[Exception], name: str, values: Any, vocabulary: int) -> None:
    """A list of token ids, empty or not, each below `vocabulary`."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise error(f"{name} is {shown(values)}; a list of token ids is needed (of a tensor or an array: tolist())")
    bad = [i for i in values if type(i) is not int or not 0 <= i < vocabulary]
    if bad and type(bad[0]) is int:
        raise error(f"{name} holds {bad[0]}, which is outside the vocabulary 0..{vocabulary - 1}")
    if bad:
        raise error(f"{name} holds {shown(bad[0])}; plain integers are needed (of a tensor or an array: tolist())")
