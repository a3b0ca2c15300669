"""The shipped model's room: what helps a model of 7.6 million parameters that knows the phrases it was taught.

Nothing here overrules it. Requests are written as it was taught, its words are those that it knows or heard, and
retrieved tools and lines are evidence for the beginning of a reply and the values of a call.

by_heart   the values for the tools that it knows by heart
calls      what a call may hold
guide      one reply, held to words and weighed by what was retrieved
reading    text as the model was taught to read it
recall     the line that tells what is asked for
rescoring  which of several texts it finds likely, for the ears
retrieval  the declared tools that a request may mean
slots      the values that a request gives to declared parameters
words      which tokens may come next: words known or heard
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.contracts import PICTURE, Line, Prompt, Rescorer

if TYPE_CHECKING:
    from assistant.events import ToolSpec
    from assistant.llm.language import Ahead, Guide, Language

WORDS = "words.txt"
"""In the folder of such a model: the words that it says of itself, one a line."""
REACH = 1024
"""Tokens of the longest talks that it learnt from. Behind some thirty turns with all of them before it, it answered
two questions in ten."""
LONGEST_CALL = 160
"""Tokens in a row that show nothing, after which it has lost its way: its calls have a fifth."""
TOOL_SETS_REMEMBERED, TURNS_REMEMBERED = 64, 4096  # a talk is laid out anew for each reply
LOST = "I did not catch that. Could you say it again?"
"""A sentence that it was taught, for where it came to nothing."""


@dataclass(frozen=True)
class SmallMind:
    """The surroundings of a small model in `folder`. Nothing is loaded before it is asked for."""

    folder: Path

    def language(self) -> Language:
        """Its text side. Raises TextError, AssistantError."""
        from assistant.llm.language import load_language
        from assistant.llm.small.reading import for_small_model

        @lru_cache(TURNS_REMEMBERED)
        def read(text: str) -> str:
            """It was taught no pictures: where one stood beside words, it reads the words."""
            return for_small_model(text.replace(PICTURE, " ").strip() or text)

        plain = load_language(self.folder)
        language = replace(plain, layout=replace(plain.layout, read=read), reach=REACH, longest_call=LONGEST_CALL)
        return replace(language, guide=_guide(self.folder, language))

    def rescorer(self) -> Rescorer:
        """It says how likely people are to ask something. Takes half a second."""
        from assistant.llm.small.rescoring import RequestChances

        return RequestChances(self.folder)


def small_mind(folder: Path) -> SmallMind | None:
    """The mind of a model that has the words it knows beside its weights; None for any other model."""
    return SmallMind(folder) if (folder / WORDS).is_file() else None


def _guide(folder: Path, language: Language) -> Callable[[Prompt, Ahead], Guide]:
    """Return the function that makes the guide of one reply."""
    from assistant.llm.language import schemas
    from assistant.llm.small.by_heart import as_said
    from assistant.llm.small.calls import SaidCallGuide
    from assistant.llm.small.guide import SURE, ReplyGuide
    from assistant.llm.small.recall import what_was_told
    from assistant.llm.small.retrieval import what_else_may_be_meant, what_is_meant
    from assistant.llm.small.words import WordGuide, load_vocabulary

    layout, encode = language.layout, language.encode
    vocabulary = load_vocabulary(folder, (folder / WORDS).read_text("utf-8").split())

    @lru_cache(TOOL_SETS_REMEMBERED)
    def unknown(tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        """The tools that it has to read: of those that it knows by heart the template writes the names alone."""
        system = layout.system("", tools)
        return tuple(tool for tool in tools if f"\n{tool.name}(" in system)

    def guide(prompt: Prompt, ahead: Ahead) -> Guide:
        lines = [replace(line, text=layout.read(line.text)) if line.role == "user" else line for line in prompt.lines]
        to_read, declared = unknown(prompt.tools), schemas(prompt)
        meant, names = what_is_meant(to_read, lines), {tool.name for tool in to_read}
        calls = {**meant.calls, **as_said({name: declared[name] for name in declared.keys() - names}, lines)}
        if to_read and not (meant.calls or meant.asks) and sum(map(ahead(()).__getitem__, vocabulary.opening)) > SURE:
            calls |= what_else_may_be_meant(to_read, lines)
        said = _said((*prompt.lines, *lines))
        held = SaidCallGuide(calls, layout.value_lead, encode)
        told = (f"{tool.name} {tool.description} {json.dumps(dict(tool.parameters))}" for tool in prompt.tools)
        words = WordGuide(vocabulary, "\n".join((prompt.system, *told, said)), said, held)
        return ReplyGuide(words, meant, what_was_told(lines), ([*calls], [*declared]), encode, ahead)

    return guide


def _said(lines: Sequence[Line]) -> str:
    """All that was said, called and answered."""
    return "\n".join(text for line in lines for text in (line.text, *(call.arguments for call in line.calls)))
