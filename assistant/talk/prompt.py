"""Turns the items of a talk into the prompt of the next reply.

Items that one reply made (its words and its calls) become one assistant line that names the reply, so that an engine
can reuse the very tokens it wrote. A line that was cut carries the heard words only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from assistant.base.errors import PeerError
from assistant.contracts import Line, Prompt, ToolCall
from assistant.events import FunctionCall, FunctionOutput, Item, Message, ToolSpec
from assistant.talk.conversation import Conversation, Entry, item_text

NOT_UNDERSTOOD = "[inaudible]"
"""Stands for a user's turn in which no words were recognised."""


class Lines:
    """Makes lines of entries, and remembers those of the last time: a talk asks for all of its lines at every turn."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Entry, Line | None]] = {}

    def of(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Line | None]]:
        known, self._known = self._known, {}
        for entry in entries:
            found = known.get(entry.item.id)
            if found is None or found[0] is not entry:
                found = entry, _line(entry)
            self._known[entry.item.id] = found
            yield found


def build(system: str, tools: Sequence[ToolSpec], entries: Iterable[Entry], made: Lines | None = None) -> Prompt:
    """The prompt of these entries. System items before any other join the instructions; later ones are user lines,
    because the templates of the model family take a system text in first place only."""
    lines: list[Line] = []
    heads = [system.strip()]
    for entry, line in (made or Lines()).of(entries):
        item = entry.item
        if not lines and isinstance(item, Message) and item.role == "system":
            heads.append(item_text(item).strip())
        elif line is None:
            continue
        elif lines and _same_reply(lines[-1], line):
            lines[-1] = _joined(lines[-1], line)
        else:
            lines.append(line)
    return Prompt("\n\n".join(head for head in heads if head), tuple(tools), tuple(lines))


def entries_of(conversation: Conversation, wanted: Sequence[Item | str]) -> list[Entry]:
    """The entries that a response's own `input` names, whole items or ids. Raises PeerError on an unknown id."""
    return [conversation.entry(item) if isinstance(item, str) else Entry(item) for item in wanted]


def choose_tools(tools: Sequence[ToolSpec], choice: str) -> tuple[ToolSpec, ...]:
    """The tools that this choice leaves: none, one by name, or all. Raises PeerError on an unknown name."""
    if choice in ("auto", "required"):
        return tuple(tools)
    if choice == "none":
        return ()
    named = tuple(tool for tool in tools if tool.name == choice)
    if not named:
        known = ", ".join(tool.name for tool in tools) or "none"
        raise PeerError("invalid_value", f"there is no tool {choice!r}; declared: {known}", "tool_choice")
    return named


def _line(entry: Entry) -> Line | None:
    item = entry.item
    if entry.nod:
        return None
    if isinstance(item, FunctionCall):
        call = ToolCall(item.call_id, item.name, item.arguments)
        return Line("assistant", "", (call,), entry.reply_id)
    if isinstance(item, FunctionOutput):
        return Line("tool", item.output, call_id=item.call_id)
    text = item_text(item)
    if item.role == "assistant":
        return Line("assistant", text, (), entry.reply_id) if text.strip() else None
    return Line("user", text.strip() or NOT_UNDERSTOOD)


def _same_reply(before: Line, line: Line) -> bool:
    return line.role == "assistant" == before.role and line.reply_id is not None and line.reply_id == before.reply_id


def _joined(before: Line, line: Line) -> Line:
    return Line("assistant", before.text + line.text, before.calls + line.calls, line.reply_id)
