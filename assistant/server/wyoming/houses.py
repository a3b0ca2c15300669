"""The talk behind each conversation of a house, and its answers.

A house connects anew for every sentence and names its conversation, so a talk is kept under that name and resumed. A
connection that names none is a conversation itself. A question such as "Shall I use files: write file?" stays open for
the next sentence of its conversation.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace

from wyoming.event import Event
from wyoming.handle import Handled, HandledChunk, HandledStart, HandledStop, NotHandled

from assistant.base.clock import Clock
from assistant.base.errors import TalkElsewhere, TalksFull, UnknownTalk
from assistant.base.ids import random_ids
from assistant.events import CreateItem, CreateResponse, Message, ResponseDone, ResponseParams, TextDelta, TextPart
from assistant.realtime.fields import Fields
from assistant.server.wyoming.hearing import Send
from assistant.talk import Session
from assistant.talk.approvals import AskedCall
from assistant.talk.talks import Talks

KNOWN = 256
"""Conversations whose talk is found again; then the one that was used longest ago begins anew."""
ANSWER_S = 120.0
"""A later yes may be meant for something else."""
ID = "conversation_id"
NOTHING = "I have no answer to that."
MOVED = "Another request of this conversation came first."


@dataclass(frozen=True, slots=True)
class HouseAsk:
    """A sentence of a conversation."""

    text: str
    conversation: str


def read_asked(event: Event, otherwise: str) -> HouseAsk:
    """`otherwise`: the conversation of a client that names none. Raises PeerError without a text."""
    fields = Fields(event.data, event.type)
    context = fields.obj("context")
    named = None if context is None else context.ident(ID)
    return HouseAsk(fields.need_text("text"), named or otherwise)


@dataclass(frozen=True, slots=True)
class HouseTalk:
    """The talk of a conversation, and the call that waits there for a yes until this moment."""

    talk: str
    asked: AskedCall | None = None
    until: float = 0.0


class Houses:
    """Which talk goes on with which conversation. `known`: those of earlier houses, before the model was switched."""

    def __init__(self, talks: Talks, clock: Clock, known: dict[str, HouseTalk]) -> None:
        self._talks, self._clock, self._known = talks, clock, known
        self._settings = replace(talks.defaults, modality="text", turn_detection=None, passing=True)

    def session(self, conversation: str) -> Session:
        """Raises TalksFull."""
        known = self._known.get(conversation)
        try:
            session = self._talks.open(self._settings, None if known is None else known.talk)
        except (UnknownTalk, TalkElsewhere):
            known, session = None, self._talks.open(self._settings)
        if known is not None and known.asked is not None and self._clock.now() < known.until:
            session.ask_on(known.asked)
        self._keep(conversation, HouseTalk(session.talk))
        return session

    def _keep(self, conversation: str, talk: HouseTalk) -> None:
        self._known.pop(conversation, None)
        self._known[conversation] = talk
        while len(self._known) > KNOWN:
            self._known.pop(next(iter(self._known)))

    async def answer(self, asked: HouseAsk, send: Send) -> None:
        """Send the answer as it is written, then as a whole. Cancelled, it stops the model before its next step."""
        context = {ID: asked.conversation}
        try:
            session = self.session(asked.conversation)
        except TalksFull as error:
            await send(NotHandled(str(error), context))
            return
        running = asyncio.ensure_future(session.run())
        try:
            await self._answer(session, asked, send)
        finally:
            if session.asked is not None and not session.moved:
                until = self._clock.now() + ANSWER_S
                self._keep(asked.conversation, HouseTalk(session.talk, session.asked, until))
            session.close()
            with suppress(asyncio.CancelledError):
                await running

    async def _answer(self, session: Session, asked: HouseAsk, send: Send) -> None:
        text, begun = "", False
        context = {ID: asked.conversation}
        await session.send(CreateItem(Message(random_ids("item"), "user", (TextPart(asked.text),))))
        mark = {"asked": random_ids("item")}
        await session.send(CreateResponse(ResponseParams(metadata=mark)))
        async for event in session.events:
            if isinstance(event, TextDelta):  # a timer that is done just now, too: nobody else would say it
                if not begun:
                    await send(HandledStart(context))
                begun, text = True, text + event.delta
                await send(HandledChunk(event.delta))
            elif isinstance(event, ResponseDone) and event.response.metadata == mark:
                if event.response.status == "completed" and text.strip():
                    await send(Handled(text.strip(), context))
                else:
                    await send(NotHandled(event.response.error_message or NOTHING, context))
                if begun:
                    await send(HandledStop())
                return
        await send(NotHandled(MOVED, context))
