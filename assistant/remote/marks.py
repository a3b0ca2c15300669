"""Recognises by its beginning whatever is not words in a model's text: thoughts, calls, and marks of chat formats.

Pure. `look` answers at once where it can and asks for more text where it cannot; more text never changes an answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from assistant.remote.calls import Schemas

LONGEST_TAG = 80
LONGEST_HEADER = 200
"""Between `<|channel|>` and `<|message|>`."""
Kind = Literal["words", "thought", "thought_end", "call", "json", "nothing"]


@dataclass(frozen=True, slots=True)
class Leak:
    """A mark that begins at a place.

    size    characters of the mark itself
    skip    characters of a fence before it
    closes  the pattern of what ends it; "": the end of the reply
    opens   the pattern of another of the same kind inside it
    whole   whether the mark belongs to the call that it begins
    name    the tool, where the mark says which
    """

    kind: Kind
    size: int
    closes: str = ""
    opens: str = ""
    skip: int = 0
    whole: bool = False
    name: str = ""


WORDS = Leak("words", 1)
THOUGHTS = (
    "think", "thinking", "thought", "thoughts", "reasoning", "reflection", "scratchpad", "analysis", "seed:think",
    "antthinking", "inner_monologue",
)  # fmt: skip
RESULTS = ("tool_response", "tool_result", "tool_results", "tool_output", "function_results")
"""Only a model that invents the result of a tool writes one; it is no words either."""
CALLS = (
    "tool_call", "tool_calls", "toolcall", "function_call", "function_calls", "functioncall", "function", "invoke",
    "tool", "tool_use", "minimax:tool_call", "tool_code",
)  # fmt: skip
WITH_NAME = ("function", "invoke", "tool")
"""These tags say themselves which tool is called."""
OTHERS: dict[str, Leak] = {
    "[THINK]": Leak("thought", 7, r"\[/THINK\]", r"\[THINK\]"),
    "[/THINK]": Leak("thought_end", 8),
    "◁think▷": Leak("thought", 7, "◁/think▷", "◁think▷"),
    "◁/think▷": Leak("thought_end", 8),
    "[TOOL_CALLS]": Leak("call", 12, r"\[/TOOL_CALLS\]|(?=\[TOOL_CALLS\])"),
    "[TOOL_REQUEST]": Leak("call", 14, r"\[END_TOOL_REQUEST\]"),
}
"""Marks in other brackets."""
TOKENS: dict[str, tuple[Kind, str]] = {
    "<|START_THINKING|>": ("thought", r"<\|END_THINKING\|>"),
    "<|END_THINKING|>": ("thought_end", ""),
    "<|begin_of_thought|>": ("thought", r"<\|end_of_thought\|>"),
    "<|end_of_thought|>": ("thought_end", ""),
    "<|python_tag|>": ("call", r"<\|eo[tm]_id\|>"),
    "<|tool_call|>": ("call", r"<\|/tool_call\|>"),
    "<|START_ACTION|>": ("call", r"<\|END_ACTION\|>"),
    "<|tool_call_begin|>": ("call", r"<\|tool_call_end\|>"),
    "<｜tool▁call▁begin｜>": ("call", "<｜tool▁call▁end｜>"),
}
"""The same of chat formats; all others that look so, `<|…|>`, are nothing."""
HEAD_KEYS = (
    "name", "function", "tool", "tool_name", "function_name", "function_call", "tool_call", "tool_calls", "action",
    "arguments", "parameters", "recipient_name", "tool_uses",
)  # fmt: skip
"""JSON that begins with one of these keys may be a call; so may `"type": "function"`."""
BEGINS = re.compile(r"[<\[{`◁]")
_NAME = re.compile(r"<(/?)([^\s<>=/]*)")
_TAG = re.compile(r"</?[^\s<>=/]+(?:[\s=/][^<>\n]*)?>")
_TOKEN = re.compile(r"<[|｜][^\s<>]*>")
_FENCES = ("json", "xml", "tool_call", "tool_code", "tool", "python", "")
_FENCE = re.compile(r"```([a-z_]*)(\s*)")
_HEAD = re.compile(r"[\[\s]*\{\s*[\"'](\w*)[\"']\s*:\s*")
_HEAD_BEGINS = re.compile(r"(?:\[\s*)?(?:\{\s*(?:[\"'](\w*)(?:[\"']\s*)?)?)?")
_PYTHON = re.compile(r"\[\s*([\w.]*)(\(?)")


def look(text: str, last: str, schemas: Schemas) -> Leak | None:
    """The mark at the beginning of `text`, behind the character `last`; None: more text is needed to know it."""
    if last == "`" and text[0] != "`":  # words about a mark
        return WORDS
    if text[0] == "`":
        return _fenced(text, schemas)
    if text[0] == "<":
        return _tag(text, schemas)
    if any(one.startswith(text) and one != text for one in OTHERS):
        return None
    known = next((mark for one, mark in OTHERS.items() if text.startswith(one)), None)
    return known or (WORDS if text[0] == "◁" else _json(text, schemas))


def _fenced(text: str, schemas: Schemas) -> Leak | None:
    """A fence counts where a call fills it."""
    fence = _FENCE.match(text)
    if fence is None:
        return None if "```".startswith(text) else Leak("words", len(text) - len(text.lstrip("`")))
    words = Leak("words", 3)
    if fence.end() == len(text):
        begun = fence[1] in _FENCES or (not fence[2] and any(one.startswith(fence[1]) for one in _FENCES))
        return None if begun else words
    if fence[1] in ("tool_call", "tool_code"):
        return Leak("call", fence.end(), "```")
    inner = text[fence.end() :]
    if fence[1] not in _FENCES or inner[0] not in "<{[":
        return words
    mark = _tag(inner, schemas) if inner[0] == "<" else _json(inner, schemas)
    if mark is None:
        return None
    return replace(mark, skip=fence.end()) if mark.kind in ("call", "json") else words


def _tag(text: str, schemas: Schemas) -> Leak | None:
    if text.startswith(("<|", "<｜")):
        return _token(text)
    match = _NAME.match(text)
    assert match is not None
    ends, name, lower = match[1], match[2], match[2].lower()
    known = {*THOUGHTS, *RESULTS, *CALLS}
    if match.end() == len(text):
        return None if any(one.startswith((lower, name)) for one in ("s", *known, *schemas)) else WORDS
    if text.startswith("</s>"):
        return Leak("nothing", 4)
    if lower not in known and name not in schemas:
        return WORDS
    tag = _TAG.match(text)
    if tag is None:
        whole = len(text) > LONGEST_TAG or re.search(r"[<>\n]", text[match.end() + 1 :]) is not None
        return WORDS if whole else None
    size = tag.end()
    if lower in THOUGHTS:
        closes = rf"</(?:{'|'.join(map(re.escape, THOUGHTS))})\s*>"
        return Leak("thought_end", size) if ends else Leak("thought", size, closes, rf"<{re.escape(lower)}>")
    if ends:
        return Leak("nothing", size)
    end = rf"</{re.escape(lower)}\s*>"
    if lower in RESULTS:
        return Leak("thought", size, end)
    if lower in ("function", "tool") and size == len(lower) + 2:  # without a name it is HTML or a word
        return WORDS
    names = lower in WITH_NAME or lower not in known
    return Leak("call", size, rf"{end}|(?=<{re.escape(lower)}>)", whole=names)


def _token(text: str) -> Leak | None:
    """A mark of a chat format."""
    token = _TOKEN.match(text)
    if token is None:
        return None if len(text) <= LONGEST_TAG and not re.search(r"[\s<>]", text[1:]) else WORDS
    if token[0] in ("<|start|>", "<|channel|>"):
        return _headed(text, token.end())
    kind, closes = TOKENS.get(token[0], ("nothing", ""))
    return Leak(kind, token.end(), closes)


def _headed(text: str, begin: int) -> Leak | None:
    """`<|channel|>analysis<|message|>…<|end|>`: the header says whose content it is."""
    message = "<|message|>"
    end = text.find(message, 0, LONGEST_HEADER)
    if end < 0:
        return None if len(text) < LONGEST_HEADER else Leak("nothing", begin)
    header, closes = text[begin:end], r"(?=<\|(?:end|return|call|start|channel)\|>)"
    to = re.search(r"to=(?:functions\.)?([\w.]+)", header)
    if to is not None:
        return Leak("call", end + len(message), closes, name=to[1])
    return Leak("thought" if "analysis" in header else "nothing", end + len(message), closes)


def _json(text: str, schemas: Schemas) -> Leak | None:
    """JSON that may be a call, where there is something to call; or `[look(what="here")]`."""
    if not schemas:
        return WORDS
    head = _HEAD.match(text)
    if head is not None and head[1] == "type":
        kind = text[head.end() :]
        function = ('"function"', "'function'")
        if any(one.startswith(kind) and one != kind for one in function):
            return None
        return Leak("json", 0) if kind.startswith(function) else WORDS
    if head is not None:
        return Leak("json", 0) if head[1] in HEAD_KEYS else WORDS
    begins = _HEAD_BEGINS.fullmatch(text)
    if begins is not None:
        return None if any(one.startswith(begins[1] or "") for one in (*HEAD_KEYS, "type")) else WORDS
    python = _PYTHON.match(text)
    if python is None:
        return WORDS
    name = python[1].rpartition(".")[2]
    if python[2]:
        return Leak("json", 0) if name in schemas else WORDS
    return None if python.end() == len(text) and any(one.startswith(name) for one in schemas) else WORDS


def half_tag(text: str) -> bool:
    """A tag that was begun and never ended."""
    return re.fullmatch(r"</?[\w:|｜▁]{3,}[^<>]*", text) is not None
