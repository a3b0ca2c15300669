"""One connection's state: a client's frame becomes commands, an event of the talk becomes frames.

No socket and no clock: text goes in, commands and JSON come out, the time is an argument. This file keeps the promises
of the wire, whatever happens behind it: every event has its own id, nothing of a reply precedes its `response.created`
or follows its `response.done`, extensions go only to clients that asked, and each mistake of the client is answered by
one `error` that names it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from assistant import events as talk
from assistant.base.errors import PeerError
from assistant.events import Command, Event, Item, Settings
from assistant.realtime.events import (
    EXTENSION_NAMES,
    EXTENSION_READERS,
    EXTENSION_WRITERS,
    READERS,
    WRITERS,
    error_json,
    read_create_item,
    read_response_create,
    reply_format,
    timeline_json,
)
from assistant.realtime.fields import MAX_ID, Fields, Json, parse_event
from assistant.realtime.items import item_json, pictured_json, response_json
from assistant.realtime.mcp import listing_frames, mcp_frames
from assistant.realtime.replies import State, WireReplies
from assistant.realtime.settings import Facts, SessionConfig, merge, read_format, with_wake
from assistant.realtime.sound import SoundIn

CAUSES_KEPT = 1024
"""The ids of this many client events are remembered, for errors about them: sound alone is fifty a second."""
SESSION_SECONDS = 24 * 3600
APPEND_SAMPLES = 24_000
"""A long append reaches the talk in pieces of this size, so that back-pressure stays fine-grained."""

Wanted = Literal["capsules", "personas"]


@dataclass(frozen=True, slots=True)
class CapsuleVerb:
    """A program's request about the stored states of its own prompts. `event_id`: the client's, for an error."""

    verb: str
    key: str | None
    name: str | None
    event_id: str | None


@dataclass(frozen=True, slots=True)
class Received:
    """The results of a client's frame. `wanted`: lists that the server must look up and pass to `answer_listing`;
    `verb`: a request that it must carry out and answer by `done` or `failed`."""

    commands: tuple[Command, ...] = ()
    replies: tuple[Json, ...] = ()
    wanted: Wanted | None = None
    verb: CapsuleVerb | None = None


def read_extensions(names: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The requested extensions (`all` means each), and the names that are not extensions."""
    asked = {name.strip() for name in names} - {""}
    known = frozenset(EXTENSION_NAMES) if "all" in asked else frozenset(asked & set(EXTENSION_NAMES))
    return known, tuple(sorted(asked - set(EXTENSION_NAMES) - {"all"}))


@dataclass(frozen=True, slots=True)
class WireSession:
    """The facts about the session that a client receives. `session_id` makes all ids of the connection unique.

    wake_at_start  the server was started for being called by name: its page begins so
    born_ms        by the server's clock
    born_unix      seconds since 1970
    languages      that ears, model and voice know; None: any may do
    """

    session_id: str
    conversation_id: str
    capsules: bool = True
    sees: bool = True
    wake_at_start: bool = False
    born_ms: float = 0.0
    born_unix: int = 0
    languages: tuple[str, ...] | None = None


History: TypeAlias = Sequence[Item | talk.MemoryChanged]
"""A talk's items, and among them what was added to the memory."""


class Protocol:
    """The wire side of one talk."""

    def __init__(
        self, session: WireSession, facts: Facts, config: SessionConfig | None = None,
        extensions: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.extensions = extensions
        self._session_facts, self._facts = session, facts
        self._id, self._conversation_id = session.session_id, session.conversation_id
        config = config or SessionConfig()
        asked = replace(config.settings, duck="duck" in extensions, memory="memory" in extensions)
        self._config = replace(config, settings=asked)
        self._input_format = self._config.input_format
        self._count = 0
        self._causes: OrderedDict[str, str | None] = OrderedDict()
        self._updates: deque[tuple[str, SessionConfig]] = deque()
        """Updates that the talk has not answered yet: a second one is merged into the first, not into the old
        settings."""
        self._inlet = SoundIn()
        self._replies = WireReplies(self._config.output_format)
        self._state: State = "idle"

    @property
    def settings(self) -> Settings:
        """The settings that the talk should start with."""
        return self._config.settings

    # ------------------------------------------------------------------------------- opening

    def opening(self, history: History = (), problems: Sequence[PeerError] = ()) -> list[Json]:
        """The first frames: the session, the conversation, what an old conversation holds, and any problems."""
        conversation = {"id": self._conversation_id, "object": "realtime.conversation"}
        frames = [self._session("session.created"), self._event("conversation.created", {"conversation": conversation})]
        previous: Json = {}
        # A returning client may have lost its state, and clients build their list of items from these events alone, so
        # an old item comes as a live one does. The first has no `previous_item_id` at all, rather than null.
        for item in history:
            if isinstance(item, talk.MemoryChanged):
                frames += self._frames(item)
                continue
            for kind in ("added", "done"):
                frames.append(self._event(f"conversation.item.{kind}", {"item": self._item(item)} | previous))
            previous = {"previous_item_id": item.id}
        frames += [self._error(problem, None) for problem in problems]
        if "state" in self.extensions:
            frames.append(self._event("assistant.state", {"state": self._state}))
        return frames

    def _item(self, item: Item, *, whole: bool = False) -> Json:
        if "pictures" in self.extensions:
            return pictured_json(item, whole=whole)
        return item_json(item, with_audio=whole)

    def _session(self, kind: str) -> Json:
        expires = self._session_facts.born_unix + SESSION_SECONDS
        session = {"id": self._id, "expires_at": expires} | self._config.json(self._facts)
        if self.extensions:
            facts, settings, born = self._session_facts, self._config.settings, self._session_facts.born_ms
            session["assistant"] = {
                "extensions": sorted(self.extensions), "conversation_id": self._conversation_id,
                "persona": settings.persona, "capsules": facts.capsules, "sees": facts.sees, "wake": settings.wake,
                "wake_at_start": facts.wake_at_start, "languages": facts.languages, "server_ms": round(born, 3),
            }  # fmt: skip
        return self._event(kind, {"session": session})

    # -------------------------------------------------------------------------- client's frames

    def receive(self, frame: str, now_ms: float = 0.0) -> Received:
        """Handle one text frame of the client."""
        event_id: str | None = None
        try:
            event = parse_event(frame)
            event_id = _event_id(event)  # before anything else is read, so that every later error can name it
            return self._dispatch(event, event_id, now_ms)
        except PeerError as error:
            return Received(replies=(self._error(error, event_id),))

    def receive_binary(self) -> Received:
        """Handle a binary frame, which this protocol does not have."""
        error = PeerError("invalid_event", "binary frames are not used here; send JSON in text frames")
        return Received(replies=(self._error(error, None),))

    def _dispatch(self, event: Fields, event_id: str | None, now_ms: float) -> Received:
        kind = event.text("type")
        if kind is None:
            raise event.missing("type")
        if kind == "input_audio_buffer.append":
            return self._append(event, event_id)
        if kind == "session.update":
            return self._update(lambda before: merge(before, event.need_obj("session"), self._facts), event_id)
        if kind == "conversation.item.create":
            return self._command(read_create_item(event, self._new_id, self._input_format.rate), event_id)
        if kind == "response.create":
            return self._create_response(event, event_id)
        if kind in READERS:
            if kind == "input_audio_buffer.clear":
                self._inlet.clear()  # a leftover half sample would shift everything appended next by a byte
            return self._command(READERS[kind](event), event_id)
        if kind.startswith("assistant."):
            return self._extension(kind, event, event_id, now_ms)
        raise PeerError("invalid_event", f"unknown event type {kind[:80]!r}", "type")

    def _append(self, event: Fields, event_id: str | None) -> Received:
        form = self._input_format
        pcm = self._inlet.samples_of(event, form)
        cause = self._cause(event_id)
        pieces = range(0, len(pcm), APPEND_SAMPLES)
        return Received(
            tuple(talk.AppendAudio(pcm[start : start + APPEND_SAMPLES], form.rate, cause) for start in pieces)
        )

    def _update(self, change: Callable[[SessionConfig], SessionConfig], event_id: str | None) -> Received:
        """Merge a configuration, which holds for the wire at once, and for the talk when the talk says so."""
        merged = change(self._updates[-1][1] if self._updates else self._config)
        cause = self._cause(event_id)
        self._updates.append((cause, merged))
        self._input_format = merged.input_format  # clients append in the new format without waiting for the answer
        return Received((talk.UpdateSettings(merged.settings, cause),))

    def _create_response(self, event: Fields, event_id: str | None) -> Received:
        command = read_response_create(
            event, self._facts, self._new_id, self._input_format.rate, self.extensions
        )
        form = reply_format(event)
        cause = self._cause(event_id)
        if form is not None:
            self._replies.asked_for(cause, read_format(form))
        return Received((replace(command, cause=cause),))

    def _extension(self, kind: str, event: Fields, event_id: str | None, now_ms: float) -> Received:
        if kind in EXTENSION_READERS:
            needed, reader = EXTENSION_READERS[kind]
            self._need(needed, kind)
            return self._command(reader(event), event_id)
        if kind == "assistant.wake":
            self._need("wake", kind)
            return self._update(lambda before: with_wake(before, event), event_id)
        if kind == "assistant.ping":
            self._need("clock", kind)
            client_ms = event.number("client_ms", -1e15, 1e15)
            if client_ms is None:
                raise event.missing("client_ms")
            pong: Json = {"client_ms": client_ms, "server_ms": round(now_ms, 3)}
            return Received(replies=(self._event("assistant.pong", pong),))
        if kind == "assistant.capsule":
            self._need("capsules", kind)
            return Received(verb=CapsuleVerb(event.need_text("verb"), event.ident("id"), event.text("name"), event_id))
        if kind in {"assistant.capsules", "assistant.personas"}:
            wanted: Wanted = "capsules" if kind == "assistant.capsules" else "personas"
            self._need(wanted, kind)
            return Received(wanted=wanted)
        raise PeerError("invalid_event", f"unknown event type {kind[:80]!r}", "type")

    def _need(self, extension: str, kind: str) -> None:
        if extension not in self.extensions:
            raise PeerError(
                "invalid_event", f"{kind} needs the extension {extension!r}: connect with ?extensions={extension}"
            )

    def _command(self, command: Command, event_id: str | None) -> Received:
        return Received((replace(command, cause=self._cause(event_id)),))

    def answer_listing(self, wanted: Wanted, content: Json) -> Json:
        """The answer to a `Received.wanted`."""
        return self._event(f"assistant.{wanted}", content)

    def done(self, content: Json) -> Json:
        """The answer to a `Received.verb`."""
        return self._event("assistant.capsule", content)

    def failed(self, verb: CapsuleVerb, error: PeerError) -> Json:
        """The same if it could not be done."""
        return self._error(error, verb.event_id)

    # ----------------------------------------------------------------------------- talk's events

    def emit(self, event: Event) -> list[Json]:
        """The frames for one event of the talk; none if this client should not see it."""
        frames = self._frames(event)
        self._replies.follow(event)  # after: a reply that is done no longer runs, so the state falls to idle
        state = self._replies.state
        if state != self._state:
            self._state = state
            if "state" in self.extensions:
                frames.append(self._event("assistant.state", {"state": state}))
        return frames

    def _frames(self, event: Event) -> list[Json]:
        match event:
            case talk.SettingsUpdated():
                return self._settings_updated(event)
            case talk.Error():
                return [self._talk_error(event)]
            case talk.ResponseCreated():
                return self._response_created(event)
            case talk.ResponseDone():
                return self._response_done(event)
            case talk.PersonaSwitched():  # by a spoken request too, so the echo follows the talk and not the client
                settings = replace(self._config.settings, persona=event.name, voice=None, instructions=None)
                self._config = replace(self._config, settings=settings)
            case talk.SightChanged():
                self._session_facts = replace(self._session_facts, sees=event.sees)
            case talk.TranscriptDelta() | talk.TranscriptCompleted() | talk.TranscriptFailed():
                # The talk writes down everything; by the standard, only clients that switched this on receive it.
                if self._config.transcription is None:
                    return []
        if type(event) in EXTENSION_WRITERS:
            extension, kind, write = EXTENSION_WRITERS[type(event)]
            return [self._event(kind, write(event))] if extension in self.extensions else []
        response_id: str | None = getattr(event, "response_id", None)
        if response_id is not None and response_id not in self._replies:
            # Stages end one after another, so a cancelled reply's last sound may come after its `done`, and the Agents
            # SDK and Pipecat would play it.
            return []
        if isinstance(event, talk.AudioDelta):
            return self._audio(event, event.pcm)
        if isinstance(event, talk.ToolsListed):
            return [self._event(kind, content) for kind, content in listing_frames(event)]
        kind, write = WRITERS[type(event)]
        frame = self._event(kind, write(event))
        if isinstance(event, talk.ItemAdded | talk.ItemDone | talk.ItemRetrieved):
            frame["item"] = self._item(event.item, whole=isinstance(event, talk.ItemRetrieved))
        if isinstance(event, talk.AudioDone):  # sound waiting in the filter goes out before this
            return [*self._audio(event, np.zeros(0, np.float32), last=True), frame]
        around = [self._event(kind, content) for kind, content in mcp_frames(event)]
        return [*around, frame] if isinstance(event, talk.OutputItemDone) else [frame, *around]

    def _settings_updated(self, event: talk.SettingsUpdated) -> list[Json]:
        config = self._updates.popleft()[1] if self._updates else self._config  # the talk answers in order
        self._config = replace(config, settings=event.settings)
        return [self._session("session.updated")]

    def _talk_error(self, event: talk.Error) -> Json:
        if any(cause == event.cause for cause, _ in self._updates):  # refused by the talk: the wire forgets it as well
            self._updates = deque(update for update in self._updates if update[0] != event.cause)
            latest = self._updates[-1][1] if self._updates else self._config
            self._input_format = latest.input_format
        if event.cause is not None:
            self._replies.refused(event.cause)
        cause = self._causes.get(event.cause) if event.cause is not None else None
        return self._error(PeerError(event.code, event.message, event.param), cause, event.kind)

    def _response_created(self, event: talk.ResponseCreated) -> list[Json]:
        self._replies.begun(event.response, self._config.output_format)
        return [self._event("response.created", {"response": self._response(event.response)})]

    def _response_done(self, event: talk.ResponseDone) -> list[Json]:
        if event.response.id not in self._replies:
            return []
        frames = []
        # First, because a program that has waited for `response.done` reads no further.
        if event.timeline is not None and "timeline" in self.extensions:
            frames.append(self._event("assistant.timeline", timeline_json(event.timeline)))
        frames.append(self._event("response.done", {"response": self._response(event.response)}))
        self._replies.finished(event.response.id)
        return frames

    def _response(self, response: talk.Response) -> Json:
        form = self._replies.form(response.id)
        settings = self._config.settings
        # Always sent, with the persona's own voice if nobody chose one: a client shows what it will hear.
        voice = response.voice or settings.voice or self._facts.character(settings.persona).voice
        return response_json(response, self._conversation_id, {"format": form.json(), "voice": voice})

    def _audio(self, event: talk.AudioDelta | talk.AudioDone, pcm: talk.Pcm, last: bool = False) -> list[Json]:
        place = {
            "response_id": event.response_id,
            "item_id": event.item_id,
            "output_index": event.output_index,
            "content_index": event.content_index,
        }
        return [
            self._event("response.output_audio.delta", place | {"delta": delta})
            for delta in self._replies.sound(event).deltas(pcm, last)
        ]

    # ----------------------------------------------------------------------------------- helpers

    def _new_id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._id.removeprefix('sess_')}_{self._count:x}"

    def _event(self, kind: str, content: Json) -> Json:
        return {"type": kind, "event_id": self._new_id("event")} | content

    def _error(self, error: PeerError, cause: str | None, kind: str = "invalid_request_error") -> Json:
        frame = error_json(error, cause, kind)
        return {"type": "error", "event_id": self._new_id("event"), "error": frame["error"]}

    def _cause(self, event_id: str | None) -> str:
        """Our own name for a client's event: the client's ids need not be unique, or exist at all."""
        self._count += 1
        cause = f"c{self._count}"
        self._causes[cause] = event_id
        if len(self._causes) > CAUSES_KEPT:
            self._causes.popitem(last=False)
        return cause


def _event_id(event: Fields) -> str | None:
    """The client's id of its event. An id that cannot be repeated does not make the event invalid."""
    value = event.data.get("event_id")
    return value if isinstance(value, str) and len(value) <= MAX_ID else None
