"""One reply from prompt to last sample: thinking feeds speaking, the front is informed, the talk's items stay true.

Thinking (`ToolLoop`) runs ahead of speaking by a bounded number of pieces; speaking runs ahead of the player by a
bounded lead. Between the two stands a queue of things to put out, in the order in which the model made them. To
interrupt, the session stops and cancels `run`; `conclude` then closes everything that was open, so nothing of a reply
ever follows its `ResponseDone`. A candidate (`candidates`) is the same reply with an outlet that holds everything back.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from assistant.base.channel import Channel
from assistant.base.tongues import is_english
from assistant.contracts import Cost, Mark, SpeechChunk
from assistant.events import (
    REPLY_RATE,
    AudioDelta,
    AudioDone,
    AudioPart,
    CallDelta,
    CallDone,
    FunctionCall,
    Item,
    ItemAdded,
    ItemDone,
    ItemStatus,
    Message,
    OutputItemAdded,
    OutputItemDone,
    PartAdded,
    PartDone,
    ReplyItem,
    Response,
    ResponseDone,
    SpokenText,
    SpokenTextDone,
    TextDelta,
    TextDone,
    TextPart,
    TimelineReady,
)
from assistant.talk.aside import aside_of, voice_aside
from assistant.talk.context import TalkContext
from assistant.talk.conversation import Conversation, Entry
from assistant.talk.heard import SpokenPiece, sample_of_char
from assistant.talk.lead import Lead
from assistant.talk.messages import CallAsked, ReplySounding, Waiting
from assistant.talk.order import Ending, ReplyOrder
from assistant.talk.outlet import Outlet
from assistant.talk.own_calls import CallOut, CoverOut, EndOfMessage, ItemOut, Out, TextOut
from assistant.talk.pending import PendingTranscripts
from assistant.talk.tool_loop import ToolLoop
from assistant.talk.turn_taking import may_sound_at
from assistant.telemetry.trace import TurnTrace
from assistant.text.segment import SHOWN, Segmenter, TextSpan
from assistant.tools.registry import ToolResult

PIECES_AHEAD = 8
DELTA_SAMPLES = REPLY_RATE // 10
UNSAYABLE = "I put the answer on the screen. I have no sounds for it."
"""Said for a text of signs and letters that the voice cannot speak."""
_WORD = re.compile(r"\S+\s*")


@dataclass(slots=True)
class _Open:
    """The message that is being put out."""

    item_id: str
    index: int
    reply_id: str | None
    segmenter: Segmenter
    text: str = ""
    samples: int = 0
    pieces: tuple[SpokenPiece, ...] = ()
    aside: bool = False
    """A phrase that covers a silence, for which no time is counted."""


class Reply:
    """Call `run` once in a task; to interrupt, `stop` and cancel the task; then call `conclude` once in any case."""

    def __init__(self, order: ReplyOrder, context: TalkContext, outlet: Outlet, words: PendingTranscripts) -> None:
        self.order = order
        self.lead = Lead(context.services.clock, order.paced)
        self.item_ids: list[str] = []
        self._context, self._words, self._outlet = context, words, outlet
        self._emit = outlet.emit
        self._out: Channel[Out] = Channel(PIECES_AHEAD)
        self._rounds = ToolLoop(order, context, self._out, outlet)
        self._parts: tuple[asyncio.Task[None], ...] = ()
        self._open: _Open | None = None
        self._items: list[ReplyItem] = []
        self._rows = 0
        self._first_text = self._first_sound = False
        self._language = context.language
        self._shown = SHOWN if is_english(self._language) else {}

    @property
    def id(self) -> str:
        return self.order.response.id

    @property
    def trace(self) -> TurnTrace:
        """The trace that the reply's times are written to."""
        return self._outlet.trace

    @property
    def _talk(self) -> Conversation:
        return self._outlet.conversation

    @property
    def in_conversation(self) -> bool:
        return self.order.response.in_conversation

    @property
    def effects(self) -> list[ToolResult]:
        """Changes to the talk that our own tools asked for, to be made when the reply is out."""
        return self._rounds.effects

    async def run(self) -> None:
        """Make and put out the whole reply. Raises EngineFailed (of the voice in a group) if a model
        breaks."""
        await self._words.ready()  # the turn was certain before its words were; the prompt needs them
        async with asyncio.TaskGroup() as group:
            self._parts = (group.create_task(self._rounds.run()), group.create_task(self._put_out()))
        if self._rounds.failure is not None:
            raise self._rounds.failure

    @property
    def waiting(self) -> Waiting | None:
        """The cause of a silence; None while a sentence is made, or before anything is."""
        return self._rounds.waiting if self._parts and self._open is None else None

    def cover(self, words: str) -> None:
        """Say these words now, unless something else has begun by then. They are no part of the answer."""
        self._out.offer(CoverOut(words, len(self._items)))

    def stop(self) -> None:
        """Let only the end go out from now on, even if a part is about to go on: a group would cancel it only later."""
        for part in self._parts:
            part.cancel()

    async def conclude(self, ending: Ending | None = None) -> Response:
        """Close everything that is open and announce that the reply is over. None: it came to its own end."""
        if self._open is not None:
            await self._close_message("incomplete")
        if ending is None:
            ending = Ending(self._rounds.status, self._rounds.reason)
        response = replace(
            self.order.response,
            status=ending.status,
            reason=ending.reason,
            output=tuple(self._items),
            usage=replace(self._rounds.usage, output_audio_tokens=self._rows),
            error_code=ending.error_code,
            error_message=ending.error_message,
        )
        if self.lead.underruns:
            self.trace.figure("underruns", self.lead.underruns)
        timeline = self.trace.timeline(self.id) if self.trace.closed else None
        await self._emit(ResponseDone(response, timeline))
        return response

    # ----------------------------------------------------------------------------------- putting out

    async def _put_out(self) -> None:
        async for out in self._out:
            match out:
                case TextOut():
                    if out.asks is not None:  # all sound before the question is sent
                        self._context.tell(CallAsked(self.lead.play_end, out.asks))
                    message = self._open or await self._open_message(out.reply_id)
                    if self.order.response.modality == "text":
                        await self._write(message, out.text)
                    else:
                        for span in message.segmenter.feed(out.text):
                            await self._speak(message, span)
                case EndOfMessage():
                    if self._open is not None:
                        await self._speak_rest(self._open)
                        await self._close_message("completed")
                case CallOut():
                    await self._put_call(out)
                case CoverOut():
                    if self._open is None and len(self._items) == out.items:
                        await self._cover(out.words)
                case ItemOut():
                    await self._put_item(out.item)

    async def _cover(self, words: str) -> None:
        async with voice_aside(self._context, self.order.talk):
            message = await self._open_message(None, aside=True)
            await self._speak(message, TextSpan(0, len(words), words, words))
            await self._close_message("completed")

    async def _open_message(self, reply_id: str | None, aside: bool = False) -> _Open:
        item_id = self._context.services.ids("item")
        message = _Open(item_id, len(self._items), reply_id, Segmenter(self._shown), aside=aside)
        self._open = message
        self.item_ids.append(item_id)
        item = Message(item_id, "assistant", (), "in_progress")
        self._items.append(item)
        part = TextPart("") if self.order.response.modality == "text" else AudioPart(transcript="")
        previous = self._outlet.put_in_place(Entry(item, reply_id, aside=aside)) if self.in_conversation else None
        await self._emit(OutputItemAdded(self.id, message.index, item))
        if self.in_conversation:
            await self._emit(ItemAdded(item, previous))
        await self._emit(PartAdded(self.id, item_id, message.index, 0, part))
        return message

    async def _write(self, message: _Open, text: str) -> None:
        if not self._first_text:
            self._first_text = True
            self.trace.mark("llm", self._context.now())
        message.text += text
        self._keep(message, "in_progress")
        await self._outlet.certain(audible=True)
        await self._emit(TextDelta(self.id, message.item_id, message.index, 0, text))
        await self._first_out()

    async def _speak_rest(self, message: _Open) -> None:
        """Speak the rest of the message. A reply in sound is never silent: it says at least that it cannot be said."""
        for span in message.segmenter.finish():
            await self._speak(message, span)
        if self.order.response.modality == "audio" and message.text.strip() and not message.samples:
            end = len(message.text)
            await self._speak(message, TextSpan(end, end, "", self._context.phrase("unsayable", UNSAYABLE)))

    async def _speak(self, message: _Open, span: TextSpan) -> None:
        if not self._first_text and not message.aside:
            self._first_text = True
            self.trace.mark("llm", self._context.now())
        piece = SpokenPiece(
            f"{message.item_id}.{len(message.pieces)}", span.text, span.start, span.end, message.samples
        )
        told = 0
        if span.said.strip():
            piece, told = await self._sound(message, span, piece)
        piece = replace(piece, complete=True)
        self._hold(message, piece)
        await self._tell(message, piece, told, len(span.text))
        if self.in_conversation:  # a reply that is killed keeps the sentences that went out
            self._context.keeping.note(self._talk)

    async def _sound(self, message: _Open, span: TextSpan, piece: SpokenPiece) -> tuple[SpokenPiece, int]:
        """Put out the piece's sound; returns it as far as it was made, and how many of its characters were told."""
        told = 0
        costs: list[Cost] = []
        talk = aside_of(self.order.talk) if message.aside else self.order.talk
        sounds = self._context.services.tts.speak(
            talk, self.order.voice, piece.piece_id, span.said, speed=self.order.speed, language=self._language
        )
        async with aclosing(sounds) as chunks:
            async for sound in chunks:
                costs += sound.costs
                marks = [replace(mark, char=span.written(mark.char)) for mark in sound.marks]
                piece = replace(piece, samples=piece.samples + sound.pcm.size, marks=_merged(piece.marks, marks))
                self._rows += sound.rows
                if not sound.pcm.size:  # only marks or costs
                    continue
                if not self._first_sound and not message.aside:
                    self.trace.mark("tts_wait", self._context.now(), costs)
                self._hold(message, piece)
                await self._outlet.certain(audible=True)
                if not self._first_sound:
                    await self._wait_for_floor(message, span)
                told = await self._tell(message, piece, told, _known_chars(piece))
                await self._send_sound(message, sound)
        return piece, told

    async def _tell(self, message: _Open, piece: SpokenPiece, told: int, upto: int) -> int:
        """Send the words of the piece that begin before character `upto` and were not sent yet."""
        for word in _WORD.finditer(piece.text, told):
            if word.start() >= upto:
                break
            text = piece.text[told : word.end()]
            told = word.end()
            message.text += text
            self._keep(message, "in_progress")
            at = (piece.start_sample + sample_of_char(piece, word.start())) / REPLY_RATE
            await self._emit(SpokenText(self.id, message.item_id, message.index, 0, text, at))
        return told

    async def _send_sound(self, message: _Open, sound: SpeechChunk) -> None:
        """Send the front sound in short pieces, never further ahead of the player than the lead allows."""
        for start in range(0, sound.pcm.size, DELTA_SAMPLES):
            part = sound.pcm[start : start + DELTA_SAMPLES]
            await self.lead.hold()  # for each piece, as a long sound must not exceed the lead
            at = message.samples
            message.samples += part.size
            self.lead.count(part.size / REPLY_RATE, first=not self._first_sound)
            await self._emit(AudioDelta(self.id, message.item_id, message.index, 0, at, part))
            if message.aside:
                self._context.tell(ReplySounding())
            elif not self._first_sound:
                self._first_sound = True
                if self.in_conversation:  # only now: before this, speech interrupts nothing that could be heard
                    self._context.tell(ReplySounding())
                await self._first_out()

    async def _wait_for_floor(self, message: _Open, span: TextSpan) -> None:
        """Wait until the reply, which begins with this piece, may sound. It asks back if it is this question alone: a
        joke may begin with one too."""
        if not self.in_conversation:
            return
        asks_back = span.text.rstrip().endswith("?") and span.end == message.segmenter.fed_chars
        moment = may_sound_at(self._context.turn, asks_back, self._context.settings)
        if moment > self._context.now():
            await self._context.services.clock.sleep_until(moment)
            self.trace.mark("turn_wait", self._context.now())

    async def _first_out(self) -> None:
        if self.trace.closed:
            return
        self.trace.mark("transport", self._context.now())
        self.trace.close(self._context.now())
        await self._emit(TimelineReady(self.trace.timeline(self.id)))

    def _hold(self, message: _Open, piece: SpokenPiece) -> None:
        """Remember the piece's sound as far as it is made."""
        earlier = tuple(known for known in message.pieces if known.piece_id != piece.piece_id)
        message.pieces = (*earlier, piece)
        self._keep(message, "in_progress")

    def _keep(self, message: _Open, status: ItemStatus) -> Message:
        """Bring the conversation's entry in line with the output."""
        spoken = self.order.response.modality == "audio"
        part = AudioPart(transcript=message.text) if spoken else TextPart(message.text)
        item = Message(message.item_id, "assistant", (part,), status)
        self._items[message.index] = item
        if self.in_conversation and message.item_id in self._talk:
            self._talk.put(Entry(item, message.reply_id, message.pieces, aside=message.aside))
        return item

    async def _close_message(self, status: ItemStatus) -> None:
        message = self._open
        assert message is not None
        self._open = None
        where = (self.id, message.item_id, message.index, 0)
        item = self._keep(message, status)
        if self.order.response.modality == "text":
            await self._emit(TextDone(*where, message.text))
        else:
            await self._emit(AudioDone(*where))
            await self._emit(SpokenTextDone(*where, message.text))
        await self._emit(PartDone(*where, item.content[0]))
        await self._item_done(item, message.index)

    async def _put_call(self, call: CallOut) -> None:
        await self._outlet.certain()
        index = len(self._items)
        item_id = self._context.services.ids("item")
        open_item = FunctionCall(item_id, call.call_id, call.name, "", "in_progress")
        item = FunctionCall(item_id, call.call_id, call.name, call.arguments)
        self._items.append(item)
        previous = self._outlet.put_in_place(Entry(item, call.reply_id)) if self.in_conversation else None
        await self._emit(OutputItemAdded(self.id, index, open_item))
        if self.in_conversation:
            await self._emit(ItemAdded(open_item, previous))
        await self._emit(CallDelta(self.id, item_id, index, call.call_id, call.arguments))
        await self._emit(CallDone(self.id, item_id, index, call.call_id, call.name, call.arguments))
        await self._item_done(item, index)

    async def _put_item(self, item: ReplyItem) -> None:
        """Put out an item that stands in the response only, or its end if it was put out already."""
        index = next((at for at, known in enumerate(self._items) if known.id == item.id), len(self._items))
        begins = index == len(self._items)
        self._items[index : index + 1] = [item]
        if begins:
            await self._emit(OutputItemAdded(self.id, index, item))
        if item.status != "in_progress":
            await self._emit(OutputItemDone(self.id, index, item))

    async def _item_done(self, item: Item, index: int) -> None:
        if self.in_conversation:
            previous = self._talk.previous_id(item.id) if item.id in self._talk else None
            await self._emit(ItemDone(item, previous))
        await self._emit(OutputItemDone(self.id, index, item))


def _merged(marks: tuple[Mark, ...], more: Sequence[Mark]) -> tuple[Mark, ...]:
    """Marks in order, without repeating known ones."""
    last = marks[-1].char if marks else -1
    return (*marks, *(mark for mark in more if mark.char > last))


def _known_chars(piece: SpokenPiece) -> int:
    """Words that begin before this character are being spoken; all of them, if the voice sets no marks."""
    return piece.marks[-1].char + 1 if piece.marks else len(piece.text)
