"""Turns the items of a talk into the prompt of the next reply.

Items made by one reply (its words and its calls) become one assistant line that names the reply, so that an engine
can reuse the very tokens it wrote. A line that was cut carries only the words that were heard. Pictures that were sent
by themselves stand in the user's line that follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from assistant.base.errors import PeerError
from assistant.contracts import PICTURE, Line, PlacedPicture, Prompt, ToolCall
from assistant.events import FunctionCall, FunctionOutput, Item, Message, PicturePart, ToolSpec
from assistant.talk.conversation import Conversation, Entry, item_text, part_text, shows_only

NOT_UNDERSTOOD = "[inaudible]"
"""Stands for a user's turn in which no words were recognised."""


class Lines:
    """Makes lines from entries, and remembers the last ones: a talk asks for all of its lines at every turn."""

    def __init__(self, sees: bool = True) -> None:
        self._sees = sees
        self._known: dict[str, tuple[Entry, Line | None]] = {}

    def of(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Line | None]]:
        known, self._known = self._known, {}
        for entry in entries:
            found = known.get(entry.item.id)
            if found is None or found[0] is not entry:
                found = entry, _line(entry, self._sees)
            self._known[entry.item.id] = found
            yield found


def build(system: str, tools: Sequence[ToolSpec], entries: Iterable[Entry], made: Lines | None = None) -> Prompt:
    """The prompt of these entries. System items before any other item join the instructions; later ones become user
    lines, because the templates of the model family accept a system text only at the start."""
    lines: list[Line] = []
    heads = [system.strip()]
    shown = False
    for entry, line in (made or Lines()).of(entries):
        item = entry.item
        if not lines and isinstance(item, Message) and item.role == "system":
            heads.append(item_text(item).strip())
        elif line is None:
            continue
        elif lines and _same_reply(lines[-1], line):
            lines[-1] = _joined(lines[-1], line)
        elif shown and line.role == "user":
            lines[-1] = _pictured(lines[-1], line)
        else:
            lines.append(line)
        shown = shows_only(item)
    return Prompt("\n\n".join(head for head in heads if head), tuple(tools), tuple(lines))


def entries_of(conversation: Conversation, wanted: Sequence[Item | str]) -> list[Entry]:
    """The entries that a response names in its `input`, as whole items or ids. Raises PeerError on an unknown id."""
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


def _line(entry: Entry, sees: bool) -> Line | None:
    item = entry.item
    if entry.nod or entry.aside or entry.waits:
        return None
    if isinstance(item, FunctionCall):
        call = ToolCall(item.call_id, item.name, item.arguments)
        return Line("assistant", "", (call,), entry.reply_id)
    if isinstance(item, FunctionOutput):
        return Line("tool", item.output, call_id=item.call_id)
    if item.role == "assistant":
        text = item_text(item)
        return Line("assistant", text, (), entry.reply_id) if text.strip() else None
    return _user_line(item, sees)


def _user_line(item: Message, sees: bool) -> Line:
    """Words and pictures in their order; a picture that the model cannot see becomes a word."""
    text, placed, apart = "", [], False
    for part in item.content:
        if isinstance(part, PicturePart) and sees:
            placed.append((len(text), part.picture))
            apart = False
        else:
            text += " " * apart + (PICTURE if isinstance(part, PicturePart) else part_text(part))
            apart = True
    trimmed = text.strip()
    before = len(text) - len(text.lstrip())
    pictures = tuple(PlacedPicture(min(max(at - before, 0), len(trimmed)), picture) for at, picture in placed)
    return Line("user", trimmed if trimmed or pictures else NOT_UNDERSTOOD, pictures=pictures)


def _same_reply(before: Line, line: Line) -> bool:
    return line.role == "assistant" == before.role and line.reply_id is not None and line.reply_id == before.reply_id


def _pictured(before: Line, line: Line) -> Line:
    """A line joined with the line of pictures before it, which has words only if the pictures are not seen."""
    return Line("user", f"{before.text} {line.text}".strip(), pictures=before.pictures + line.pictures)


def _joined(before: Line, line: Line) -> Line:
    return Line("assistant", before.text + line.text, before.calls + line.calls, line.reply_id)
