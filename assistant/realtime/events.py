"""The wire's events one by one: a reader per client event, a writer per server event.

Readers turn the fields of a client event into commands and raise PeerError for anything wrong. Writers turn an
event of the talk into JSON without `event_id`, which the connection adds. Sound is not here: it needs a format,
and that is the connection's state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, TypeAlias

from assistant import events as talk
from assistant.base.errors import PeerError
from assistant.base.picture import MOST_PER_REQUEST
from assistant.events import Command, Event
from assistant.realtime.fields import MAX_ID, Fields, Json
from assistant.realtime.items import item_json, only_pictures, part_json, read_item
from assistant.realtime.mcp import read_approval
from assistant.realtime.settings import Facts, read_max_tokens, read_modality, read_tool_choice, read_tools, read_voice

EXTENSION_NAMES = (
    "heard", "duck", "partials", "state", "timeline", "capsules", "personas", "undo", "clock", "tools",
    "pictures", "answers", "memory", "wake", "language",
)  # fmt: skip
MAX_MS = 1_000_000_000
MAX_METADATA = 16
MAX_ANSWERS = 4

NewId: TypeAlias = Callable[[str], str]
"""Makes an id that is new in this connection from a prefix."""


# --------------------------------------------------------------------------------- client → commands


def read_create_item(event: Fields, new_id: NewId, rate: int) -> Command:
    after, given = event.ident("previous_item_id"), event.need_obj("item")
    if given.text("type") == "mcp_approval_response":
        return read_approval(given)
    item_id = new_id("item")
    try:
        return talk.CreateItem(read_item(given, item_id, rate), after)
    except PeerError as error:
        if not only_pictures(given):
            raise
        return talk.CreateItem(talk.Message(given.ident("id") or item_id, "user"), after, unread=error.code)


def read_truncate(event: Fields) -> Command:
    """Any position is accepted: late, long and fractional ones are clamped, never refused."""
    index = event.integer("content_index", 0, 1000) or 0
    return talk.TruncateItem(event.need_ident("item_id"), index, event.clamped("audio_end_ms", MAX_MS))


def read_response_create(
    event: Fields, facts: Facts, new_id: NewId, rate: int, extensions: Collection[str] = ()
) -> talk.CreateResponse:
    given = event.obj("response")
    if given is None:
        return talk.CreateResponse()
    output = _nested(given, "audio", "output")
    conversation = given.text("conversation") or "auto"
    # Clients written before GA name it after the response. Both names are read; the older one wins if present.
    max_name = "max_response_output_tokens" if given.has("max_response_output_tokens") else "max_output_tokens"
    return talk.CreateResponse(
        talk.ResponseParams(
            conversation="none" if conversation == "none" else "auto",
            instructions=given.text("instructions"),
            input=_read_input(given, new_id, rate),
            modality=read_modality(given),
            voice=read_voice(output, facts) if output else read_voice(given, facts),  # GA nests it, before it was flat
            tools=_read_tools(given),
            tool_choice=read_tool_choice(given),
            max_output_tokens=read_max_tokens(given, max_name),
            metadata=_read_metadata(given),
            answers=(given.integer("answers", 1, MAX_ANSWERS) or 1) if "answers" in extensions else 1,
        )
    )


def _read_tools(given: Fields) -> tuple[talk.ToolSpec, ...] | None:
    """[]: none of the client's."""
    for tool in given.objs("tools"):
        if tool.text("type") == "mcp":  # if it were ignored, the model would make promises nobody keeps
            where = tool.at("type")
            raise PeerError("invalid_value", f"{where}: MCP servers are asked for in session.update", where)
    return read_tools(given) if given.array("tools") is not None else None


def reply_format(event: Fields) -> Fields | None:
    """The output format requested by one `response.create`."""
    given = event.obj("response")
    output = _nested(given, "audio", "output") if given else None
    return output.obj("format") if output else None


def _nested(fields: Fields, *names: str) -> Fields | None:
    found: Fields | None = fields
    for name in names:
        found = found.obj(name) if found else None
    return found


def _read_input(given: Fields, new_id: NewId, rate: int) -> tuple[talk.Item | str, ...] | None:
    if given.array("input") is None:
        return None
    items = tuple(
        entry.need_ident("id") if entry.text("type") == "item_reference" else read_item(entry, new_id("item"), rate)
        for entry in given.objs("input")
    )
    parts = [part for item in items if isinstance(item, talk.Message) for part in item.content]
    if sum(isinstance(part, talk.PicturePart) for part in parts) > MOST_PER_REQUEST:
        raise PeerError(
            "invalid_value", f"a request shows at most {MOST_PER_REQUEST} pictures", given.at("input")
        )
    return items


def _read_metadata(given: Fields) -> Mapping[str, str] | None:
    metadata = given.obj("metadata")
    if metadata is None:
        return None
    if len(metadata.data) > MAX_METADATA:
        raise PeerError(
            "invalid_value",
            f"{metadata.path} has {len(metadata.data)} pairs; at most {MAX_METADATA} are kept",
            metadata.path,
        )
    return {name: metadata.need_text(name, MAX_ID) for name in metadata.data}


READERS: Mapping[str, Callable[[Fields], Command]] = {
    "input_audio_buffer.commit": lambda event: talk.CommitAudio(),
    "input_audio_buffer.clear": lambda event: talk.ClearAudio(),
    "conversation.item.retrieve": lambda event: talk.RetrieveItem(event.need_ident("item_id")),
    "conversation.item.delete": lambda event: talk.DeleteItem(event.need_ident("item_id")),
    "conversation.item.truncate": read_truncate,
    "response.cancel": lambda event: talk.CancelResponse(event.ident("response_id")),
}
"""Client events that need nothing beyond their own fields."""

EXTENSION_READERS: Mapping[str, tuple[str, Callable[[Fields], Command]]] = {
    "assistant.heard": (
        "heard",
        lambda event: talk.ReportHeard(event.need_ident("item_id"), event.clamped("audio_ms", MAX_MS)),
    ),
    "assistant.undo": ("undo", lambda event: talk.Undo(event.integer("turns", 1, 10_000) or 1)),
    "assistant.rewind": (
        "undo",
        lambda event: talk.Rewind(event.need_ident("item_id"), event.integer("words", 0, 1_000_000)),
    ),
    "assistant.persona": ("personas", lambda event: talk.SwitchPersona(event.need_ident("name"))),
}
"""Our own client events, each with the extension it needs."""


# ------------------------------------------------------------------------------------ events → server


class _InItem(Protocol):
    """An event about a part of an item."""

    @property
    def item_id(self) -> str: ...

    @property
    def content_index(self) -> int: ...


class _InReply(_InItem, Protocol):
    """The same, plus the reply that the item belongs to."""

    @property
    def response_id(self) -> str: ...

    @property
    def output_index(self) -> int: ...


def _place(event: _InReply) -> Json:
    return {
        "response_id": event.response_id,
        "item_id": event.item_id,
        "output_index": event.output_index,
        "content_index": event.content_index,
    }


def _call_place(event: talk.CallDelta | talk.CallDone) -> Json:
    return {
        "response_id": event.response_id,
        "item_id": event.item_id,
        "output_index": event.output_index,
        "call_id": event.call_id,
    }


def _after(event: talk.ItemAdded | talk.ItemDone | talk.AudioCommitted) -> Json:
    """Absent for the first item, not null."""
    return {} if event.previous_item_id is None else {"previous_item_id": event.previous_item_id}


def _transcript(event: _InItem) -> Json:
    return {"item_id": event.item_id, "content_index": event.content_index}


def timeline_json(timeline: talk.Timeline) -> Json:
    """One turn; times in milliseconds, to a microsecond."""
    return {
        "turn": timeline.turn,
        "response_id": timeline.response_id,
        "started_ms": round(timeline.started * 1000, 3),
        "total_ms": round(timeline.total_ms, 3),
        "parts": [
            {"name": part.name, "start_ms": round(part.start_ms, 3), "ms": round(part.ms, 3)}
            for part in timeline.parts
        ],
        "figures": {name: round(value, 3) for name, value in timeline.figures.items()},
    }


Writer: TypeAlias = Callable[[Any], Json]
"""Takes the one event type of its row in the table, which no type can express; a test writes every event."""

WRITERS: Mapping[type[Event], tuple[str, Writer]] = {
    talk.SpeechStarted: (
        "input_audio_buffer.speech_started",
        lambda e: {"item_id": e.item_id, "audio_start_ms": e.audio_start_ms},
    ),
    talk.SpeechStopped: (
        "input_audio_buffer.speech_stopped",
        lambda e: {"item_id": e.item_id, "audio_end_ms": e.audio_end_ms},
    ),
    talk.IdleTimeout: (
        "input_audio_buffer.timeout_triggered",
        lambda e: {"item_id": e.item_id, "audio_start_ms": e.audio_start_ms, "audio_end_ms": e.audio_end_ms},
    ),
    talk.AudioCommitted: ("input_audio_buffer.committed", lambda e: {"item_id": e.item_id} | _after(e)),
    talk.AudioCleared: ("input_audio_buffer.cleared", lambda e: {}),
    talk.ItemAdded: ("conversation.item.added", lambda e: {"item": item_json(e.item)} | _after(e)),
    talk.ItemDone: ("conversation.item.done", lambda e: {"item": item_json(e.item)} | _after(e)),
    talk.ItemRetrieved: ("conversation.item.retrieved", lambda e: {"item": item_json(e.item, with_audio=True)}),
    talk.ItemDeleted: ("conversation.item.deleted", lambda e: {"item_id": e.item_id}),
    talk.ItemTruncated: (
        "conversation.item.truncated",
        lambda e: _transcript(e) | {"audio_end_ms": e.audio_end_ms, "transcript": e.transcript},
    ),
    talk.TranscriptDelta: (
        "conversation.item.input_audio_transcription.delta",
        lambda e: _transcript(e) | {"delta": e.delta},
    ),
    talk.TranscriptCompleted: (
        "conversation.item.input_audio_transcription.completed",
        lambda e: _transcript(e)
        | {"transcript": e.transcript, "usage": {"type": "duration", "seconds": round(e.audio_seconds, 3)}},
    ),
    talk.TranscriptFailed: (
        "conversation.item.input_audio_transcription.failed",
        lambda e: _transcript(e)
        | {"error": {"type": "transcription_error", "code": e.code, "message": e.message}},
    ),
    talk.OutputItemAdded: (
        "response.output_item.added",
        lambda e: {"response_id": e.response_id, "output_index": e.output_index, "item": item_json(e.item)},
    ),
    talk.OutputItemDone: (
        "response.output_item.done",
        lambda e: {"response_id": e.response_id, "output_index": e.output_index, "item": item_json(e.item)},
    ),
    talk.PartAdded: ("response.content_part.added", lambda e: _place(e) | {"part": part_json(e.part)}),
    talk.PartDone: ("response.content_part.done", lambda e: _place(e) | {"part": part_json(e.part)}),
    talk.TextDelta: ("response.output_text.delta", lambda e: _place(e) | {"delta": e.delta}),
    talk.TextDone: ("response.output_text.done", lambda e: _place(e) | {"text": e.text}),
    talk.SpokenText: (
        "response.output_audio_transcript.delta",
        lambda e: _place(e) | {"delta": e.delta, "start_time": round(e.start_time, 3)},
    ),
    talk.SpokenTextDone: (
        "response.output_audio_transcript.done",
        lambda e: _place(e) | {"transcript": e.transcript},
    ),
    talk.AudioDone: ("response.output_audio.done", _place),
    talk.CallDelta: ("response.function_call_arguments.delta", lambda e: _call_place(e) | {"delta": e.delta}),
    talk.CallDone: (
        "response.function_call_arguments.done",
        lambda e: _call_place(e) | {"name": e.name, "arguments": e.arguments},
    ),
}
"""Events that every client gets and whose JSON depends on nothing else."""

EXTENSION_WRITERS: Mapping[type[Event], tuple[str, str, Writer]] = {
    talk.TranscriptPartial: (
        "partials", "assistant.transcript", lambda e: {"item_id": e.item_id, "text": e.text, "stable": e.stable},
    ),
    talk.Duck: (
        "duck", "assistant.duck", lambda e: {"response_id": e.response_id, "item_id": e.item_id, "level": e.level},
    ),
    talk.Resume: ("duck", "assistant.resume", lambda e: {"response_id": e.response_id, "item_id": e.item_id}),
    talk.StopPlayback: ("duck", "assistant.stop", lambda e: {"response_id": e.response_id, "item_id": e.item_id}),
    talk.Nod: ("duck", "assistant.nod", lambda e: {"item_id": e.item_id, "text": e.text}),
    talk.StateChanged: (
        "state",
        "assistant.memory",
        lambda e: {"what": e.what, "engine": e.engine, "position": e.position, "ms": round(e.ms, 3)},
    ),
    talk.FrameShown: ("pictures", "assistant.frame", lambda e: {"item_id": e.item_id, "shown": e.shown}),
    talk.SightChanged: ("pictures", "assistant.sight", lambda e: {"sees": e.sees}),
    talk.TimelineReady: ("timeline", "assistant.timeline", lambda e: timeline_json(e.timeline)),
    talk.ToolUsed: (
        "tools",
        "assistant.tool",
        lambda e: {
            "response_id": e.response_id,
            "name": e.name,
            "arguments": e.arguments,
            "output": e.output,
            "ms": round(e.ms, 3),
        },
    ),
    talk.ToolBegun: (
        "tools",
        "assistant.tool_begun",
        lambda e: {"response_id": e.response_id, "name": e.name, "server": e.server, "arguments": e.arguments},
    ),
    talk.ToolAsked: (
        "tools",
        "assistant.tool_asked",
        lambda e: {
            "response_id": e.response_id,
            "approval_request_id": e.approval_id,
            "name": e.name,
            "server": e.server,
            "arguments": e.arguments,
        },
    ),
    talk.ServersStarting: ("tools", "assistant.servers_starting", lambda e: {"servers": list(e.names)}),
    talk.MemoryChanged: (
        "memory",
        "assistant.remembered",
        lambda e: {"response_id": e.response_id, "added": list(e.added), "removed": list(e.removed)},
    ),
    talk.WordsForgotten: (
        "memory",
        "assistant.forgotten",
        lambda e: {"item_ids": list(e.item_ids), "response_ids": list(e.response_ids), "text": e.text},
    ),
    talk.WakeChanged: (
        "wake",
        "assistant.wake",
        lambda e: {"state": e.state} | ({"called": e.called} if e.called else {}),
    ),
    talk.LanguageTold: (
        "language",
        "assistant.language",
        lambda e: {"language": e.language or None, "limits": list(e.limits)},
    ),
    talk.PersonaSwitched: (
        "personas",
        "assistant.persona",
        lambda e: {"name": e.name, "ms": round(e.ms, 3)} | ({"voice": e.voice} if e.voice else {}),
    ),
}  # fmt: skip
"""Events only for clients that asked for the extension named first."""


def error_json(error: PeerError, cause: str | None, kind: str = "invalid_request_error") -> Json:
    """An `error` event; `cause` is the client's own event id."""
    body: Json = {"type": kind, "code": error.code, "message": str(error)}
    if error.param is not None:
        body["param"] = error.param
    if cause is not None:
        body["event_id"] = cause
    return {"type": "error", "error": body}
