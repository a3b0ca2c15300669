"""Calls of the session's own tools within a reply: announced, asked about, run, remembered and reported.

A candidate runs only tools that read; before any other call it waits until it is certain. A call that the person must
allow first (`Tool.ask`) is put as a question, which ends the reply. A later reply runs it, if the answer was yes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from assistant.base.channel import Channel
from assistant.contracts import CallPiece
from assistant.events import (
    FunctionCall,
    FunctionOutput,
    Item,
    McpApprovalRequest,
    McpCall,
    MemoryChanged,
    ReplyItem,
    ToolAsked,
    ToolBegun,
    ToolUsed,
)
from assistant.talk.approvals import DECLINED, NOT_YET, AskedCall, agrees, announcement, question, spoken
from assistant.talk.context import TalkContext
from assistant.talk.conversation import Entry
from assistant.talk.forgotten import tells
from assistant.talk.order import ReplyOrder
from assistant.talk.outlet import Outlet
from assistant.tools.registry import Tool, ToolResult
from assistant.tools.rows import MEMORY, Changes

INTERRUPTED = "This was interrupted. It may have been done all the same."
MEANWHILE = ToolResult(
    json.dumps({"error": "nothing was done: the person has had this forgotten meanwhile"}),
    say="That was forgotten meanwhile.", failed=True,
)  # fmt: skip
"""For a reply that read a sentence before it was forgotten, and would write it again."""


@dataclass(frozen=True, slots=True)
class TextOut:
    """`asks`: it asks whether a call may run, and these are the persona's words for yes."""

    text: str
    reply_id: str | None
    asks: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class EndOfMessage:
    pass


@dataclass(frozen=True, slots=True)
class CallOut:
    call_id: str
    name: str
    arguments: str
    reply_id: str


@dataclass(frozen=True, slots=True)
class ItemOut:
    """An item of the response that is not the talk's; it comes again when it is finished."""

    item: ReplyItem


@dataclass(frozen=True, slots=True)
class CoverOut:
    """A phrase for a silence, unless another item has begun behind these `items`."""

    words: str
    items: int


Out: TypeAlias = TextOut | EndOfMessage | CallOut | ItemOut | CoverOut


class OwnCalls:
    """The calls of one reply. `effects`: changes to the talk that they asked for."""

    def __init__(self, order: ReplyOrder, context: TalkContext, out: Channel[Out], outlet: Outlet) -> None:
        self.effects: list[ToolResult] = []
        self.asks = False
        """A question to the person was put, and the reply is over."""
        self.runs: Tool | None = None
        """The tool that runs now."""
        self._order, self._context, self._out, self._outlet = order, context, out, outlet
        self._ids = context.services.ids
        self._forgetting = context.view.kept.home.forgetting
        """The sentences that were being forgotten when the reply began."""

    async def run(self, call: CallPiece, reply_id: str, declared: set[str]) -> ToolResult:
        """Run a call of the model; the result is in the talk when this returns."""
        tool = self._order.own_tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(declared)) or "none"
            unknown = ToolResult(json.dumps({"error": f"there is no tool {call.name!r}; there are: {known}"}))
            self._remember(call, reply_id, unknown)
            return unknown
        if not tool.reads:
            await self._outlet.certain()
            if any(tells(call.arguments, fact) for fact in self._forgotten):
                self._remember(call, reply_id, MEANWHILE)
                return MEANWHILE
        return await (self._ask(tool, call, reply_id) if tool.ask else self._run_tool(tool, call, reply_id))

    @property
    def _forgotten(self) -> list[str]:
        """The sentences that have been forgotten, or are, since the reply began."""
        forgetting = self._context.view.kept.home.forgetting
        return [*self._context.forgets, *(fact for fact in forgetting if fact not in self._forgetting)]

    async def settle(self) -> AskedCall | None:
        """At the start of a reply: run the call that the person has allowed by now. Returns the one that they have not
        allowed, which is dropped when the reply is out."""
        approvals, order = self._context.approvals, self._order
        asked = approvals.asked_in(self._outlet.conversation) if order.response.in_conversation else None
        if asked is None:
            return None
        lines = order.prompt(self._outlet.answered).lines
        last = lines[-1].text if lines and lines[-1].role == "user" else ""
        tool = order.own_tools.get(asked.name)
        answer = approvals.answer
        if answer is None:
            answer = agrees(last, self._context.known_words, self._own_yes)
        if not answer or tool is None:
            return asked
        await self._outlet.certain()
        approvals.settle(asked)
        call = CallPiece(self._ids("call"), asked.name, asked.arguments, done=True)
        await self._run_tool(tool, call, None, asked.id)
        return None

    async def drop(self, asked: AskedCall) -> None:
        """The person did not agree: the call will not run."""
        await self._outlet.certain()
        declined = self._context.approvals.answer is False
        self._context.approvals.settle(asked)
        conversation = self._outlet.conversation
        if declined and asked.output_id in conversation:
            entry = conversation.entry(asked.output_id)
            if isinstance(entry.item, FunctionOutput):
                conversation.put(replace(entry, item=replace(entry.item, output=DECLINED)))

    async def _ask(self, tool: Tool, call: CallPiece, reply_id: str) -> ToolResult:
        result = ToolResult(NOT_YET)
        approval_id, response_id = self._ids("mcpr"), self._order.response.id
        if output_id := self._remember(call, reply_id, result):
            self._context.approvals.wait_for_answer(AskedCall(approval_id, output_id, call.name, call.arguments))
        if tool.label:
            await self._out.send(ItemOut(McpApprovalRequest(approval_id, tool.label, call.name, call.arguments)))
        await self._outlet.emit(ToolAsked(response_id, approval_id, call.name, tool.server, call.arguments))
        server = tool.label or tool.server
        asked = tool.asking or question(server, tool.there, call.arguments)
        name = "ask" if server else ""  # a tool of our own has a question of its own, in English
        words = self._context.phrase(name, asked, server=server, tool=spoken(tool.there))
        await self._announce(words, self._own_yes if output_id else None)
        self.asks = True
        return result

    async def _run_tool(
        self, tool: Tool, call: CallPiece, reply_id: str | None, approval_id: str | None = None
    ) -> ToolResult:
        response_id, begin = self._order.response.id, self._context.now()
        item = McpCall(self._ids("mcp"), tool.label, call.name, call.arguments, None, False, approval_id, "in_progress")
        if tool.label:
            await self._out.send(ItemOut(item))
        if tool.server and not tool.reads:
            await self._outlet.emit(ToolBegun(response_id, call.name, tool.server, call.arguments))
            if approval_id is None and not tool.label and self._order.response.modality == "audio":
                told = announcement(tool.server, tool.there)
                await self._announce(self._context.phrase("using", told, server=tool.server, tool=spoken(tool.there)))
        self.runs = tool
        result = await self._waited(tool, call, reply_id)
        self.runs = None
        now = self._context.now()
        self._outlet.trace.mark("tool", now)
        if tool.label:
            done = replace(item, output=result.text, failed=result.failed, status="completed")
            await self._out.send(ItemOut(done))
        ms = (now - begin) * 1000
        await self._outlet.emit(ToolUsed(response_id, call.name, call.arguments, result.text, ms))
        if (changed := remembered(response_id, result)) is not None:
            await self._outlet.emit(changed)
        return result

    async def _waited(self, tool: Tool, call: CallPiece, reply_id: str | None) -> ToolResult:
        """An interruption stops the reply and undoes nothing. Work that is done, or may be, is remembered; else the
        model would do it again."""
        running = asyncio.ensure_future(self._order.own_tools.call(call.name, call.arguments))
        try:
            await asyncio.wait([running])
        finally:
            running.cancel()
            if running.done():
                self._remember(call, reply_id, running.result())
            elif not tool.reads:
                self._remember(call, reply_id, ToolResult(INTERRUPTED))
        return running.result()

    @property
    def _own_yes(self) -> tuple[str, ...]:
        return tuple(self._context.phrase("yes", "").split("|"))

    async def _announce(self, words: str, asks: tuple[str, ...] | None = None) -> None:
        """Nothing is said in a language that we have no words for; the front shows it anyway."""
        if not words:
            return
        await self._out.send(TextOut(words, None, asks))
        await self._out.send(EndOfMessage())

    def _remember(self, call: CallPiece, reply_id: str | None, result: ToolResult) -> str | None:
        """Returns the id of the output; None: the reply is beside the talk, which does not hold it."""
        if result.effect is not None:
            self.effects.append(result)
        if not self._order.response.in_conversation:
            return None
        asked = FunctionCall(self._ids("item"), call.call_id, call.name, call.arguments)
        answer = FunctionOutput(self._ids("item"), call.call_id, result.text)
        self._outlet.put_in_place(Entry(asked, reply_id, hidden=True))
        self._outlet.put_in_place(Entry(answer, reply_id, hidden=True, changes=result.changes))
        return answer.id


def remembered(response_id: str, result: ToolResult) -> MemoryChanged | None:
    """Report the changes that a tool made to the memory, if any."""
    gone, new = _memory_changes(result.changes)
    if result.effect == "forget":
        gone = (result.argument,)
    return MemoryChanged(response_id, new, gone) if gone or new else None


def told_again(entries: Iterable[Entry], known: Collection[str]) -> Iterator[Item | MemoryChanged]:
    """A talk's items for a front, and what each reply added to the memory, before its words as when it was new.
    `known`: the sentences that are remembered still."""
    for entry in entries:
        new = tuple(text for text in _memory_changes(entry.changes)[1] if text in known)
        if new:
            yield MemoryChanged(entry.response_id or "", new, ())
        if not entry.hidden:
            yield entry.item


def _memory_changes(changes: Changes) -> tuple[tuple[str, ...], ...]:
    """The sentences that left the memory, and those that came into it."""
    rows = [change for key, change in changes.items() if key.startswith(f"{MEMORY} ")]
    return tuple(tuple(str(cells[1]) for change in rows if (cells := change[at]) is not None) for at in (0, 1))
