"""A language model behind `/chat/completions`: a prompt to a request, a stream of events to a reply.

A server says what it cannot do by refusing it: it does not see, or has no room for the whole talk, or does not know a
field or a role. Then the reply is asked for again without that, and the server is remembered to be so.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace

from assistant.base.errors import EngineFailed
from assistant.contracts import (
    BadCall,
    CallPiece,
    Prompt,
    PromptReady,
    ReplyEnd,
    ReplyOptions,
    ReplyPiece,
    Synced,
    TextPiece,
)
from assistant.remote.calls import Schemas, WrittenCall
from assistant.remote.completion import Completion
from assistant.remote.messages import NO_THOUGHTS, OPTIONAL, Manners, chat_body, recent, size, turns, well_formed
from assistant.remote.server import Address, BrokeOff, Server, ServerRefused, events
from assistant.remote.sieve import Sieve

log = logging.getLogger(__name__)

NOTHING = Synced(None, 0, 0.0)
TRIES = 8
"""For one reply."""
SMALLER = 0.75
"""The part of a talk that is tried next if all of it did not fit."""
NO_EYES = re.compile(
    r"(not|n't|cannot|no endpoints found that) (support|accept|process|compiled for|an?)( any)? "
    r"(multi-?modal|vision|images?(?! format| type| of))"
    r"|(images?|vision|multi-?modal)( inputs?)? (is|are) not (supported|enabled)|mmproj|unknown variant",
    re.IGNORECASE,
)
"""How servers refuse all pictures (vLLM, llama.cpp, Ollama, routers), as opposed to one bad picture."""
FULL = re.compile(
    r"context[ _-]?(length|size|window)|exceed_context|maximum context|too many tokens|reduce the length"
    r"|(prompt|inputs?|messages?|request)\b.{0,60}\b(too (long|large)|longer than|exceeds?)|`?max_new_tokens`? must",
    re.IGNORECASE | re.DOTALL,
)
"""How they refuse a talk that is too long: vLLM, SGLang, TGI, llama.cpp, LM Studio, routers."""
NO_SYSTEM = re.compile(r"system (role|message|prompt)s? (is |are )?not supported", re.IGNORECASE)


class RemoteLLM:
    """Each reply sends the whole talk, as far as the server has room for it."""

    state = None

    def __init__(self, address: Address) -> None:
        self._server = Server(address)
        self.sees = True
        """True until the server reports that its model does not: there is no way to ask before."""
        self._manners = Manners()
        self._answered = False
        """Whether it answered a request as it is sent now."""
        self._closes_unopened: bool | None = None
        """Whether its model closes thoughts that it never opened: its words wait then. None: not known before the first
        reply that has words."""

    @property
    def name(self) -> str:
        return self._server.model or self._server.address.base

    async def close(self) -> None:
        await self._server.close()

    async def reply(self, talk: str, prompt: Prompt, options: ReplyOptions) -> AsyncGenerator[ReplyPiece, None]:
        manners, begun = self._manners, False
        for _ in range(TRIES):
            if options.cannot_see and not self.sees and prompt.asks_to_see(options.english):
                yield PromptReady(0, 0)
                yield TextPiece(options.cannot_see)
                yield ReplyEnd("stop", 0)
                return
            shown = prompt if self.sees else prompt.in_words
            try:
                async with aclosing(self._answer(shown, options, manners)) as pieces:
                    async for piece in pieces:
                        begun, self._manners, self._answered = True, manners, True
                        yield piece
                return
            except ServerRefused as error:
                if begun or (learnt := self._learn(error, shown, manners)) is None:
                    raise
                manners = learnt
        raise EngineFailed(f"{self._server.address.base} refused the talk {TRIES} times; it is too long for it")

    def _learn(self, error: ServerRefused, prompt: Prompt, manners: Manners) -> Manners | None:
        """The manners that a refusal suggests for the next try; None: it suggests nothing."""
        if self.sees and any(line.pictures for line in prompt.lines) and NO_EYES.search(str(error)):
            log.warning("pictures are not sent any more: %s", error)
            self.sees = False
            return manners
        if FULL.search(error.body) or error.status == 413:
            sent = recent(well_formed(prompt.lines), manners.room)
            return replace(manners, room=int(size(sent) * SMALLER)) if turns(sent) > 1 else None
        if error.status not in (400, 422):
            return None
        if manners.system and prompt.system and NO_SYSTEM.search(error.body):
            return replace(manners, system=False)
        unknown = {name for name in OPTIONAL if name in error.body} - manners.without
        if not unknown and not self._answered:  # some do not say what they do not know
            unknown = {NO_THOUGHTS} - manners.without
        return replace(manners, without=manners.without | unknown) if unknown else None

    async def _answer(
        self, prompt: Prompt, options: ReplyOptions, manners: Manners
    ) -> AsyncGenerator[ReplyPiece, None]:
        body = chat_body(await self._server.model_name(), prompt, options, manners)
        schemas = {tool.name: tool.parameters for tool in prompt.tools}
        answered, sieve = Completion(), Sieve(schemas, hold=self._closes_unopened is not False)
        found: list[WrittenCall | BadCall] = []
        told = ready = False
        async with self._server.request("POST", "/chat/completions", body) as answer:
            try:
                async for event in events(answer):
                    try:
                        text = answered.count_in(event)
                    except TypeError as error:
                        invalid = f"{answer.url} sent an invalid chat completion: {str(event)[:100]}"
                        raise EngineFailed(invalid) from error
                    if not ready:
                        ready, told = True, bool(answered.asked)
                        yield PromptReady(answered.asked, answered.cached)
                    if answered.thought:
                        sieve.release()
                    for piece in sieve.feed(text):
                        if isinstance(piece, str):
                            yield TextPiece(piece)
                        else:
                            found.append(piece)
            except BrokeOff:
                if not answered.finish:
                    raise
        if not told:
            yield PromptReady(answered.asked, answered.cached)
        for piece in sieve.finish():
            if isinstance(piece, str):
                yield TextPiece(piece)
            else:
                found.append(piece)
        if sieve.orphan:
            self._closes_unopened = True
        elif self._closes_unopened is None and sieve.spoke and answered.finish != "length":
            self._closes_unopened = False
        calls = _calls(answered, found, schemas, options.reply_id)
        for call in calls:
            yield call
        made = any(isinstance(call, CallPiece) for call in calls)
        yield ReplyEnd("tool_calls" if made else "length" if answered.finish == "length" else "stop", answered.made)

    async def warm(self, listed: Mapping[str, Prompt], *, idle_work: bool = False) -> Mapping[str, Synced]:
        await self._server.model_name()
        return dict.fromkeys(listed, NOTHING)


def _calls(
    answered: Completion, written: list[WrittenCall | BadCall], schemas: Schemas, reply_id: str
) -> list[CallPiece | BadCall]:
    """The server's own calls, then those in the text that are not among them."""
    own = answered.calls(schemas)
    known = [call for _, call in own]
    calls = [*own, *(("", call) for call in written if call not in known)]
    return [
        call if isinstance(call, BadCall)
        else CallPiece(call_id or f"call_{reply_id}_{index}", call.name, call.arguments, True)
        for index, (call_id, call) in enumerate(calls)
    ]  # fmt: skip
