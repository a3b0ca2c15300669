"""The model's passes over one reply: its words and calls go out in order, our own tools run between the passes.

A pass ends when the model ends it. If it called tools of the session's own, they run, their results join the talk and
the model is asked again. Calls of the client's tools go out like words, for the client to answer.

A model for which `Services.lost` holds a sentence may lose its way: to words that make no sense to it, it writes a call
that cannot be read. Silence is not an answer, so the sentence is said; where no word was recognised, without asking the
model.

Any other model is told of a call that cannot be read, once, and of a call to a tool that nobody declared. A reply that
comes to nothing, or breaks off because the model failed, ends in one sentence.

A tool that fails says why in a sentence. Most models read it: they may mend their call, and give the reason in the
words and the language of the talk. One that may lose its way has no words for it, so the sentence itself is said.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

from assistant.base.channel import Channel
from assistant.base.errors import EngineFailed
from assistant.contracts import BadCall, CallPiece, Line, PromptReady, ReplyEnd, TextPiece
from assistant.events import ResponseStatus, Usage
from assistant.talk.context import TalkContext
from assistant.talk.messages import Waiting
from assistant.talk.order import ReplyOrder
from assistant.talk.outlet import Outlet
from assistant.talk.own_calls import CallOut, EndOfMessage, Out, OwnCalls, TextOut
from assistant.talk.prompt import NOT_UNDERSTOOD
from assistant.tools.registry import ToolResult

MAX_ROUNDS = 4
"""Passes within one reply; a model that asks for more tools is going in circles."""
NO_ANSWER = "I have no answer to that."
DONE = "Done."
"""Said where a model has no words for what its tools did."""
BROKEN = "Sorry, I cannot answer at the moment."
UNREAD = (
    "[This call could not be read: {reason}. Nothing was done. Call the tool again in the declared form, or answer in "
    "words.]"
)
"""Told to the model."""


class ToolLoop:
    """Run it once; it closes `out` however it ends. Its attributes hold the counts and findings."""

    def __init__(self, order: ReplyOrder, context: TalkContext, out: Channel[Out], outlet: Outlet) -> None:
        self.usage = Usage()
        self.status: ResponseStatus = "completed"
        self.reason: str | None = None
        self._order, self._context, self._out, self._outlet = order, context, out, outlet
        self._llm, self._lost = context.services.llm, context.services.lost
        self._calls = OwnCalls(order, context, out, outlet)
        self.failure: EngineFailed | None = None
        """Why the model broke off."""
        self._put = False
        """Whether anything of this reply went out."""
        self._spoke = False
        """Whether anything of the last pass did."""
        self._unread: tuple[Line, ...] = ()
        """The call that could not be read, and what the model is told about it."""

    @property
    def waiting(self) -> Waiting | None:
        """The thing that the reply waits for; the shipped model is quick, so it is not waited for."""
        if (tool := self._calls.runs) is not None:
            return "looks" if tool.reads else "works"
        return "thinks" if self._lost is None else None

    @property
    def effects(self) -> list[ToolResult]:
        """Changes to the talk that our own tools asked for."""
        return self._calls.effects

    async def run(self) -> None:
        async with self._out:
            say = self._known_answer() if self._order.say is None else self._order.say
            if say is not None:
                await self._out.send(TextOut(say, None))
                await self._out.send(EndOfMessage())
                return
            try:
                await self._answer()
            except EngineFailed as error:
                self.failure = error
                await self._say(self._context.phrase("broken", BROKEN), MAX_ROUNDS)

    async def _answer(self) -> None:
        """An answer that is stopped once it was heard settles the call that waits, as a whole one does. Otherwise a yes
        that interrupts it would be taken for a late answer to the question before."""
        not_allowed = await self._calls.settle()
        try:
            await self._passes()
        except asyncio.CancelledError:
            if not_allowed is not None and self._outlet.trace.closed:
                self._context.approvals.settle(not_allowed)
            raise
        if not_allowed is not None:
            await self._calls.drop(not_allowed)

    async def _passes(self) -> None:
        done: list[ToolResult] = []
        for place in range(MAX_ROUNDS):
            told = self._unread
            results = await self._pass(self._reply_id(place))
            done += results
            if self._calls.asks:
                return
            if self._lost is not None and (said := [result.say for result in results if result.say is not None]):
                await self._say(" ".join(said), place + 1)
                return
            if not results and self._unread == told:
                await self._say_something(done, place + 1)
                return
        self.status, self.reason = "incomplete", "tool_rounds"
        await self._say_something([], MAX_ROUNDS)

    async def _say_something(self, done: list[ToolResult], place: int) -> None:
        """Say a sentence if the model came to nothing."""
        if self._lost is None and not self._spoke:
            said = [result.say for result in done if result.say is not None]
            phrase = self._context.phrase
            none = phrase("done", DONE) if done else phrase("no_answer", NO_ANSWER)
            await self._say(" ".join(said) or none, place)
        elif self._lost is not None and not self._put and self._order.options.max_tokens is None:
            await self._say(self._lost, place)
            self.status, self.reason = "completed", None

    def _known_answer(self) -> str | None:
        """The words that are said without asking the model, if any: for a picture that it cannot see, and, if it may
        lose its way, for a turn in which no word was understood. A candidate goes by the words so far."""
        prompt, options = self._order.prompt(self._outlet.answered), self._order.options
        if options.cannot_see and not self._llm.sees and prompt.asks_to_see(options.english):
            return options.cannot_see
        asked = [line.text for line in prompt.lines[-2:] if line.role == "user"]
        return self._lost if asked == [NOT_UNDERSTOOD] else None

    async def _say(self, text: str, place: int) -> None:
        await self._out.send(EndOfMessage())
        if not text:
            return
        await self._out.send(TextOut(text, self._reply_id(place)))
        await self._out.send(EndOfMessage())

    def _reply_id(self, place: int) -> str:
        return f"{self._order.options.reply_id}.{place}"

    async def _pass(self, reply_id: str) -> list[ToolResult]:
        """Make one pass of the model. Returns the results of our own tools, which the model must see."""
        own: list[CallPiece] = []
        said = self._spoke = False
        options = replace(self._order.options, reply_id=reply_id)
        prompt = self._order.prompt(self._outlet.answered)
        prompt = replace(prompt, lines=(*prompt.lines, *self._unread))
        declared = {tool.name for tool in prompt.tools}
        async with aclosing(self._llm.reply(self._order.talk, prompt, options)) as pieces:
            async for piece in pieces:
                match piece:
                    case PromptReady():
                        self._count_input(piece)
                        self._outlet.trace.mark("llm_wait", self._context.now(), piece.costs)
                    case TextPiece():
                        said = said or bool(piece.text.strip())  # blank lines before a call are not a message
                        if said:
                            self._put = self._spoke = True
                            await self._out.send(TextOut(piece.text, reply_id))
                    case CallPiece(done=True) if piece.name in self._order.own_tools or piece.name not in declared:
                        own.append(piece)
                    case CallPiece(done=True):
                        if said:
                            await self._out.send(EndOfMessage())
                            said = False
                        self._put = self._spoke = True
                        await self._out.send(CallOut(piece.call_id, piece.name, piece.arguments, reply_id))
                    case BadCall():
                        self._outlet.trace.figure("bad_calls", 1)
                        self._tell_unread(piece)
                    case ReplyEnd():
                        self._count_output(piece)
        if said:
            await self._out.send(EndOfMessage())
        if own:
            self._outlet.trace.mark("llm", self._context.now())
        return [await self._calls.run(call, reply_id, declared) for call in own if not self._calls.asks]

    def _tell_unread(self, call: BadCall) -> None:
        """Report an unreadable call to the model, once; a model that may lose its way is not asked again."""
        if self._lost is None and not self._unread:
            self._unread = Line("assistant", call.text), Line("user", UNREAD.format(reason=call.reason))

    def _count_input(self, ready: PromptReady) -> None:
        usage = self.usage
        first = usage.input_text_tokens == 0
        fresh = ready.input_tokens if first else max(0, ready.input_tokens - ready.cached_tokens)
        images = ready.image_tokens if first else max(0, ready.image_tokens - ready.cached_image_tokens)
        self.usage = replace(
            usage,
            input_text_tokens=usage.input_text_tokens + fresh - images,
            input_image_tokens=usage.input_image_tokens + images,
            cached_tokens=usage.cached_tokens + (ready.cached_tokens if first else 0),
            cached_image_tokens=usage.cached_image_tokens + (ready.cached_image_tokens if first else 0),
        )
        trace = self._outlet.trace
        for cost in ready.costs:
            if cost.name in ("restore", "rollback"):
                trace.figure(f"{cost.name}_ms", cost.ms)
        if ready.picture_ms:
            trace.figure("picture_ms", ready.picture_ms)
        if ready.shown_tokens:
            trace.figure("image_tokens", ready.shown_tokens)

    def _count_output(self, end: ReplyEnd) -> None:
        self.usage = replace(self.usage, output_text_tokens=self.usage.output_text_tokens + end.output_tokens)
        if end.reason == "length":
            self.status, self.reason = "incomplete", "max_output_tokens"
