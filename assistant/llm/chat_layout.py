"""The parts of a checkpoint's chat format, found by rendering its own template around marks.

A talk's tokens must only ever grow at the end, whatever a template does with old turns (some drop the empty thinking
block of earlier replies). So a talk is not rendered as a whole: the template is asked once for the text before and
after each kind of turn, and turns are joined from these parts. A reply keeps the opening under which it was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from assistant.base.errors import AssistantError
from assistant.base.picture import Picture
from assistant.contracts import Line
from assistant.events import ToolSpec
from llm_engine.errors import TextError
from tts_engine.markup import strip_structure

Render = Callable[[list[dict[str, Any]], list[dict[str, Any]], bool], str]
"""(messages, tools, add_generation_prompt) → text, thinking off."""

_MARK = "QxMARKxQ"
_OTHER = "QxOTHERxQ"
_LATER = "QxLATERxQ"
_PAD = "<|image_pad|>"


class Calls(StrEnum):
    """How a model writes its calls."""

    XML = "xml"  # in tags, as the Qwen3.5 family does
    JSON = "json"  # in the same tags
    BARE = "bare"  # as the whole of a reply


@dataclass(frozen=True)
class Layout:
    """Text around the turns. `opening` begins a reply, `closing` ends it, `value_lead` stands before an argument."""

    render: Render
    user_head: str
    user_tail: str
    opening: str
    closing: str
    tool_head: str
    tool_tail: str
    value_lead: str
    marks: tuple[str, str] | None = None
    """The text before and after a picture; None if the format has no pictures."""
    calls: Calls = Calls.XML
    read: Callable[[str], str] = str
    """Rewrites a user's words into the model's form."""

    def system(self, text: str, tools: Sequence[ToolSpec]) -> str:
        """Everything before the first turn; may be empty."""
        messages = [{"role": "system", "content": text}] if text else []
        whole = self.render([*messages, {"role": "user", "content": _MARK}], tool_json(tools), False)
        return whole[: whole.index(self.user_head + _MARK)]

    def turn(self, line: Line) -> str:
        """A user's or a tool's turn, whole. Typed text must not become a turn of its own."""
        if line.role == "tool":
            return self.tool_head + strip_structure(line.text, keep=()) + self.tool_tail
        return self.begun(line) + self.user_tail

    def begun(self, line: Line) -> str:
        """A user's turn that is still going on."""
        return self.user_head + strip_structure(self.read(line.text), keep=()).strip()

    def shown(self, line: Line) -> tuple[list[tuple[str, Picture]], str]:
        """A user's turn with pictures that is still going on: each picture with all the text before it, and the text
        behind the last one's mark. The words are split where a picture stands: none of them may join across it."""
        assert self.marks is not None
        found: list[tuple[str, Picture]] = []
        at, lead = 0, self.user_head
        for placed in line.pictures:
            words = strip_structure(self.read(line.text[at : placed.at]), keep=())
            found.append((lead + (words if found else words.lstrip()) + self.marks[0], placed.picture))
            at, lead = placed.at, ""
        return found, strip_structure(self.read(line.text[at:]), keep=()).rstrip()

    def reply(self, line: Line) -> str:
        """The words and calls of a reply whose tokens are unknown, without opening and closing."""
        if not line.calls:
            return line.text.strip()
        calls = [
            {"type": "function", "function": {"name": call.name, "arguments": _arguments(call.arguments)}}
            for call in line.calls
        ]
        message = {"role": "assistant", "content": line.text.strip(), "tool_calls": calls}
        whole = self.render([{"role": "user", "content": _MARK}, message], [], False)
        body = whole[whole.index(_MARK) + len(_MARK) + len(self.user_tail) :]
        head = self.opening if body.startswith(self.opening) else self.opening.split("<think>")[0]
        return body.removeprefix(head).removesuffix(self.closing)


def find_layout(render: Render) -> Layout:
    """Ask the template for its parts. Raises AssistantError if it does not keep turns apart as text."""
    user = [{"role": "user", "content": _MARK}]
    asked = [*user, {"role": "assistant", "content": _OTHER}, {"role": "tool", "content": _MARK + "2"}]
    try:
        bare = render(user, [], False)
        open_ = render(user, [], True)
        answered = render([*user, {"role": "assistant", "content": _OTHER}], [], False)
        used = render(asked, [], False)
        later = render([*asked[:2], {"role": "user", "content": _LATER}], [], False)
        head, tail = bare.split(_MARK)
        closing = answered.split(_OTHER)[1]
        user_head = later.split(_OTHER)[1].removeprefix(closing).split(_LATER)[0]
        tool_head, tool_tail = used.split(_OTHER)[1].removeprefix(closing).split(_MARK + "2")
    except (ValueError, IndexError) as error:
        raise AssistantError("the chat template does not write turns one after another; use another model") from error
    if not open_.startswith(bare):
        raise AssistantError("the chat template changes earlier turns when a reply begins; use another model")
    if not head.endswith(user_head):
        raise AssistantError("the chat template begins later turns in another way than the first; use another model")
    return Layout(
        render, user_head, tail, open_[len(bare) :], closing, tool_head, tool_tail, _value_lead(render),
        _marks(render, user_head), _calls(render),
    )  # fmt: skip


def _marks(render: Render, head: str) -> tuple[str, str] | None:
    """The text around the one pad that a template of the family writes for a picture."""
    content = [{"type": "image"}, {"type": "text", "text": _MARK}]
    try:
        shown = render([{"role": "user", "content": content}], [], False)
    except TextError:  # a format for text only
        return None
    found = re.search(re.escape(head) + rf"(.*?){re.escape(_PAD)}(.*?){_MARK}", shown, re.DOTALL)
    return (found[1], found[2]) if found else None


def _value_lead(render: Render) -> str:
    """The text between an argument's opening line and its value, if the template writes calls as XML."""
    written = re.search(rf"<parameter=key>\n(.*){_MARK}", _called(render))
    return written[1] if written else ""


def _calls(render: Render) -> Calls:
    """A template that writes no calls at all belongs to a model that makes none."""
    written = _called(render)
    if _MARK not in written or "<parameter=key>" in written:
        return Calls.XML
    return Calls.JSON if "<tool_call>" in written else Calls.BARE


def _called(render: Render) -> str:
    """A talk with a call in it."""
    call = {"id": "call00000", "type": "function", "function": {"name": "f", "arguments": {"key": _MARK}}}
    asked: list[dict[str, Any]] = [
        {"role": "user", "content": _OTHER}, {"role": "assistant", "content": "", "tool_calls": [call]},
    ]  # fmt: skip
    return render(asked, [], False)


def tool_json(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Tools in the form that chat templates accept."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]


def _arguments(text: str) -> dict[str, Any]:
    try:
        read = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {"input": text}
    return read if isinstance(read, dict) else {"input": text}
