"""The text side of a language model: how a talk is laid out, turned into tokens, and read back as words and calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol, TypeAlias

from assistant.contracts import Prompt
from assistant.llm.chat_layout import Calls, Layout, find_layout
from llm_engine.callguide import CallGuide
from llm_engine.chat import Chat
from llm_engine.jsoncalls import BareCallParser, read_json_call
from llm_engine.toolcalls import Piece, Schemas, ToolCallParser

TURNS_REMEMBERED = 4096
"""A talk is laid out anew for each reply; its earlier turns are not read and tokenised again."""


class TokenReader(Protocol):
    """Tokens to text, piece by piece, never half a character."""

    def push(self, token: int) -> str: ...

    def finish(self) -> str: ...


class CallStream(Protocol):
    """Text to visible text and calls."""

    def push(self, text: str) -> list[Piece]: ...

    def finish(self) -> list[Piece]: ...


class Guide(Protocol):
    """Tokens and their text to the tokens that may come next; none says that any may."""

    def push(self, token: int, text: str) -> None: ...

    def among(self) -> Sequence[int]: ...


Ahead: TypeAlias = Callable[[Sequence[int]], Sequence[float]]
"""Tokens that might come next → how probable each token is behind them, at temperature 1. Nothing is decoded by it."""


@dataclass(frozen=True)
class Language:
    """A model's text side: layout, tokens, streams, and the ids that end a reply.

    guide     holds one reply to a prompt to what it may say
    reach     tokens of a talk that the model makes sense of; None: as many as it holds
    longest_call  tokens of a call after which the model has lost its way; None: calls may have any length
    """

    layout: Layout
    encode: Callable[[str], Sequence[int]]
    text_stream: Callable[[], TokenReader]
    call_stream: Callable[[Prompt], CallStream]
    guide: Callable[[Prompt, Ahead], Guide]
    stops: frozenset[int]
    reach: int | None = None
    longest_call: int | None = None


def load_language(path: Path) -> Language:
    """The text side of a checkpoint directory. Raises TextError, AssistantError."""
    chat = Chat.load(path)
    layout = find_layout(chat.template.render)

    @lru_cache(TURNS_REMEMBERED)
    def encode(text: str) -> Sequence[int]:
        return tuple(chat.tokenizer.encode(text))

    def calls(prompt: Prompt) -> CallStream:
        return call_stream(layout, schemas(prompt))

    def guide(prompt: Prompt, ahead: Ahead) -> Guide:
        return CallGuide(schemas(prompt) if layout.calls is Calls.XML else {}, layout.value_lead, encode)

    return Language(layout, encode, chat.tokenizer.stream, calls, guide, chat.tokenizer.stops())


def call_stream(layout: Layout, declared: Schemas) -> CallStream:
    """Reads the calls that a model of this layout writes."""
    if layout.calls is Calls.BARE:
        return BareCallParser(declared)
    return ToolCallParser(declared, layout.value_lead, read_json_call if layout.calls is Calls.JSON else None)


def schemas(prompt: Prompt) -> Schemas:
    """The parameter schema of each tool of a prompt."""
    return {tool.name: tool.parameters for tool in prompt.tools}
