"""The talk behind each conversation of a house, and its answers.

A house connects anew for every sentence and names its conversation, so a talk is kept under that name and resumed. A
connection that names none is a conversation itself.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace

from wyoming.event import Event
from wyoming.handle import Handled, HandledChunk, HandledStart, HandledStop, NotHandled

from assistant.base.errors import TalkElsewhere, TalksFull, UnknownTalk
from assistant.base.ids import random_ids
from assistant.events import CreateItem, CreateResponse, Message, ResponseDone, ResponseParams, TextDelta, TextPart
from assistant.realtime.fields import Fields
from assistant.server.wyoming.hearing import Send
from assistant.talk import Session
from assistant.talk.talks import Talks

KNOWN = 256
"""Conversations whose talk is found again; then the one that was used longest ago begins anew."""
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


class Houses:
    """Which talk goes on with which conversation."""

    def __init__(self, talks: Talks) -> None:
        self._talks = talks
        self._settings = replace(talks.defaults, modality="text", turn_detection=None)
        self._known: dict[str, str] = {}

    def session(self, conversation: str) -> Session:
        """Raises TalksFull."""
        talk = self._known.pop(conversation, None)
        try:
            session = self._talks.open(self._settings, talk)
        except (UnknownTalk, TalkElsewhere):
            session = self._talks.open(self._settings)
        self._known[conversation] = session.talk
        while len(self._known) > KNOWN:
            self._known.pop(next(iter(self._known)))
        return session

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
