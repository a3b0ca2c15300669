"""The text side of a language model: how a talk is laid out, turned into tokens, and read back as words and calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from assistant.contracts import PICTURE, Prompt
from assistant.events import ToolSpec
from assistant.llm.chat_layout import Calls, Layout, find_layout
from assistant.llm.known_replies import OFF, SWITCHED_OFF, what_may_be_said
from assistant.llm.known_tools import as_said, unsaid
from assistant.llm.reply_guide import ReplyGuide
from assistant.llm.tool_retrieval import Meant, what_else_may_be_meant, what_is_meant
from assistant.text.small_model import for_small_model
from llm_engine.callguide import CallGuide
from llm_engine.chat import Chat
from llm_engine.jsoncalls import BareCallParser, read_json_call
from llm_engine.tokenizer import TextTokenizer
from llm_engine.toolcalls import Piece, Schemas, ToolCallParser
from llm_engine.wordguide import Vocabulary, WordGuide

WORDS = "words.txt"
"""In a model's folder: the words that it says of itself, one a line. See `llm_engine/wordguide.py`."""
SMALL_REACH = 1024
"""Tokens of the longest talks that the shipped model learnt from. Behind some thirty turns with all of them before it,
it answered two questions in ten."""
SURE = 0.8
"""How probable a call must be to the model where a request shares no word with any tool that has to be read."""
TOOL_SETS_REMEMBERED = 64
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
    """Tokens and their text to the tokens that may come next; none says that any may. A reply that does not stand is to
    be written anew; while it is None, nobody knows yet."""

    def push(self, token: int, text: str) -> None: ...

    def among(self) -> Sequence[int]: ...

    def stands(self) -> bool | None: ...


@dataclass(frozen=True)
class Language:
    """A model's text side: layout, tokens, streams, and the ids that end a reply.

    guide     of a reply to a prompt, by how probable a token is to begin it; after one that did not stand, by how that
              began
    limited   it knows the phrases that it was trained on and no others
    reach     tokens of a talk that it makes sense of; None: of as many as it holds
    """

    layout: Layout
    encode: Callable[[str], Sequence[int]]
    text_stream: Callable[[], TokenReader]
    call_stream: Callable[[Prompt], CallStream]
    guide: Callable[[Prompt, Callable[[int], float], str | None], Guide]
    stops: frozenset[int]
    limited: bool = False
    reach: int | None = None


def load_language(path: Path, *, limited: bool = False) -> Language:
    """Of a checkpoint directory. A limited model reads words in one form only, without marks and with figures for
    numbers: what was heard or typed otherwise is written so for it alone. Raises TextError, AssistantError."""
    chat = Chat.load(path)
    layout = find_layout(chat.template.render)
    if limited:
        layout = replace(layout, read=lru_cache(TURNS_REMEMBERED)(_read_small))

    def calls(prompt: Prompt) -> CallStream:
        return call_stream(layout, _schemas(prompt))

    vocabulary, stops = load_vocabulary(path, chat.tokenizer), chat.tokenizer.stops()

    def guide(prompt: Prompt, probability: Callable[[int], float], rejected: str | None) -> Guide:
        declared = _schemas(prompt)
        if vocabulary is None:
            return CallGuide(declared if layout.calls is Calls.XML else {}, layout.value_lead, encode)
        unknown = [tool for tool in prompt.tools if tool.name in told(prompt.tools)]
        lines = [replace(line, text=layout.read(line.text)) if line.role == "user" else line for line in prompt.lines]
        meant, sayable = what_is_meant(unknown, lines), what_may_be_said(lines, bool(declared))
        if rejected is not None and not declared:
            meant = Meant(asks=(*(() if OFF in sayable.unmeant else (SWITCHED_OFF,)), *sayable.refusals()))
        unnamed = rejected is None and unknown and not (meant.calls or meant.asks)
        sure = unnamed and sum(map(probability, vocabulary.opening)) > SURE
        others = what_else_may_be_meant(unknown, lines) if sure else {}
        to_be_read = {tool.name for tool in unknown}
        barred = unsaid(lines) - to_be_read
        offered = {name: takes for name, takes in declared.items() if name not in barred}
        by_heart = {name: takes for name, takes in offered.items() if name not in to_be_read}
        offered |= as_said(by_heart, lines)
        may_call = {**offered, **meant.calls, **others} if rejected is None else meant.calls
        unmeant = (declared.keys() if meant.certain else to_be_read) - meant.calls.keys() - others.keys()
        calls = CallGuide(may_call, layout.value_lead, encode, unmeant, once=True)
        said = _said(prompt, layout.read)
        words = WordGuide(vocabulary, f"{_told(prompt)}\n{said}", said, calls)
        held = meant if unknown or not declared else None
        return ReplyGuide(words, held, sayable, encode, probability, rejected)

    @lru_cache(TOOL_SETS_REMEMBERED)
    def told(tools: tuple[ToolSpec, ...]) -> frozenset[str]:
        system = layout.system("", tools)  # what is known by heart stands there by its name alone
        return frozenset(tool.name for tool in tools if f"\n{tool.name}(" in system)

    @lru_cache(TURNS_REMEMBERED)
    def encode(text: str) -> Sequence[int]:
        return tuple(chat.tokenizer.encode(text))

    reach = SMALL_REACH if limited else None
    return Language(layout, encode, chat.tokenizer.stream, calls, guide, stops, limited, reach)


def call_stream(layout: Layout, declared: Schemas) -> CallStream:
    """Reads the calls that a model of this layout writes."""
    if layout.calls is Calls.BARE:
        return BareCallParser(declared)
    return ToolCallParser(declared, layout.value_lead, read_json_call if layout.calls is Calls.JSON else None)


def load_vocabulary(path: Path, tokenizer: TextTokenizer) -> Vocabulary | None:
    """Of a model that says few words of itself and has them listed; others may write what they like."""
    if not (path / WORDS).is_file():
        return None
    texts = [tokenizer.decode([token], skip_special=False) for token in range(tokenizer.size)]
    return Vocabulary(texts, (path / WORDS).read_text("utf-8").split(), tokenizer.stops())


def _schemas(prompt: Prompt) -> Schemas:
    return {tool.name: tool.parameters for tool in prompt.tools}


def _told(prompt: Prompt) -> str:
    """What the model was told before anybody spoke."""
    tools = (f"{tool.name} {tool.description} {json.dumps(dict(tool.parameters))}" for tool in prompt.tools)
    return "\n".join((prompt.system, *tools))


def _said(prompt: Prompt, read: Callable[[str], str]) -> str:
    """What was said, called and answered in the talk."""
    lines = (f"{line.text} {read(line.text)}" for line in prompt.lines)
    calls = (call.arguments for line in prompt.lines for call in line.calls)
    return "\n".join((*lines, *calls))


def _read_small(text: str) -> str:
    """It was taught no pictures: where one stood beside words, it reads the words."""
    return for_small_model(text.replace(PICTURE, " ").strip() or text)
