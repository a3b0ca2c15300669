"""One websocket, one talk: frames to the protocol and its commands to the session, events back as frames.

There are three tasks: the session runs, one task reads, one writes. The session's event channel is bounded and its
writer waits for the peer, so a client that does not read slows only its own talk. However the connection ends, the
session is closed, runs to its end and parks its state.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from dataclasses import replace

from aiohttp import WSCloseCode, WSMsgType, web

from assistant.base.errors import ChannelClosed, PeerError, TalkElsewhere, TalksFull, UnknownTalk
from assistant.base.ids import random_ids
from assistant.events import Settings
from assistant.realtime.events import error_json
from assistant.realtime.fields import Fields, Json
from assistant.realtime.protocol import CapsuleVerb, Protocol, Received, WireSession, read_extensions
from assistant.realtime.settings import SessionConfig, merge
from assistant.server.backend import ServerContext
from assistant.server.kept import do_verb
from assistant.server.security import from_elsewhere, keys_of, realm_of
from assistant.talk import Session

MAX_FRAME = 64 * 1024 * 1024
"""A longer frame ends the connection. Pictures and sound are refused at lower sizes, and the talk goes on."""
HEARTBEAT_SECONDS = 20.0
SILENT_SECONDS = 60.0
"""A client that sends nothing for so long, not even the answer to a ping, is gone. Common clients stop answering while
nobody reads what they have received."""
LAST_WORD_SECONDS = 2.0
LINGER_SECONDS = 30.0
"""For what is still unread, and the reason behind it, once the connection is over."""
MOVED = 4001
"""Close code: another connection goes on with the talk. Clients do not come back after it by themselves."""
OF_STATE = frozenset({"capsules", "answers", "memory"})
"""Extensions that touch the models' state: not for pages from elsewhere, even with `--allow`."""

log = logging.getLogger(__name__)


class Connection:
    """Joins a prepared websocket, an open session and their protocol until one of them ends."""

    def __init__(
        self, ws: web.WebSocketResponse, transport: asyncio.Transport | None, session: Session, protocol: Protocol,
        context: ServerContext,
    ) -> None:  # fmt: skip
        self._ws, self._session, self._protocol, self._context = ws, session, protocol, context
        self._transport = transport
        self._open = True
        self._last_sign = context.clock.now()

    async def serve(self, opening: list[Json]) -> None:
        """Returns when the connection is over and the session has ended."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._run_session())
                await self._send(opening)  # before the talk can send anything: `session.created` comes first
                group.create_task(self._write_events())
                watching = group.create_task(self._watch())
                await self._read_frames()
                watching.cancel()
                self._session.close()  # ends the session, which ends its events, which ends the writer and the group
        except* Exception:
            log.exception("session %s failed", self._session.talk)
            problem = PeerError("server_error", "the session failed; connect again to go on")
            await self._say_and_close(problem, WSCloseCode.INTERNAL_ERROR)
        finally:
            self._session.close()

    async def _run_session(self) -> None:
        await self._session.run()
        if self._session.moved:
            moved = PeerError("conversation_moved", "this talk goes on in another tab or program")
            await self._say_and_close(moved, MOVED)
        else:
            await self._close_socket(WSCloseCode.OK, "the talk is over")

    async def _watch(self) -> None:
        """Ping the client, and give the reason if it is dropped because no sign of life comes."""
        clock = self._context.clock
        while self._open:
            await clock.sleep_until(clock.now() + HEARTBEAT_SECONDS)
            silent = clock.now() - self._last_sign
            if silent >= SILENT_SECONDS:
                await self._close_socket(WSCloseCode.POLICY_VIOLATION, f"no answer to pings for {silent:.0f} s")
                return
            with contextlib.suppress(ConnectionError, RuntimeError, TimeoutError):
                async with asyncio.timeout(LAST_WORD_SECONDS):  # it waits where too much is unread
                    await self._ws.ping()

    async def _write_events(self) -> None:
        """Go on taking events after the peer has gone, so that the session can end."""
        async for event in self._session.events:
            await self._send(self._protocol.emit(event))

    async def _read_frames(self) -> None:
        async for message in self._ws:
            self._last_sign = self._context.clock.now()
            if message.type == WSMsgType.PING:
                with contextlib.suppress(ConnectionError, RuntimeError):
                    await self._ws.pong(message.data)
                continue
            if message.type == WSMsgType.PONG:
                continue
            if message.type == WSMsgType.TEXT:
                now_ms = self._context.clock.now() * 1000
                step = self._protocol.receive(message.data, now_ms)
            elif message.type == WSMsgType.BINARY:
                step = self._protocol.receive_binary()
            else:
                break
            try:
                await self._carry_out(step)
            except ChannelClosed:  # the session ended by itself while this frame came in
                break

    async def _carry_out(self, step: Received) -> None:
        await self._send(list(step.replies))
        # This waits while the talk's queue is full: the socket is not read meanwhile, and TCP slows the client down.
        for command in step.commands:
            await self._session.send(command)
        if step.wanted == "capsules":
            await self._send([self._protocol.answer_listing("capsules", self._context.capsules())])
        elif step.wanted == "personas":
            current = {"current": self._session.settings.persona}
            await self._send([self._protocol.answer_listing("personas", self._context.personas() | current)])
        if step.verb is not None:
            await self._send([await self._do(step.verb)])

    async def _do(self, verb: CapsuleVerb) -> Json:
        state = self._context.talks.engines.llm.state
        keeper = None if state is None else state.keeper
        try:
            return self._protocol.done(await do_verb(keeper, self._session.settings.realm, verb))
        except PeerError as error:
            return self._protocol.failed(verb, error)

    async def _send(self, frames: list[Json]) -> None:
        for frame in frames:
            if not self._open:
                return
            try:
                await self._ws.send_str(json.dumps(frame, ensure_ascii=False, separators=(",", ":")))
            except (ConnectionError, RuntimeError):  # aiohttp raises either, depending on how far the closing has come
                self._open = False

    async def _say_and_close(self, problem: PeerError, code: int) -> None:
        """Send the words, then close: clients show an error's words, but at most the number of a close."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORD_SECONDS):
                await self._send([_with_id(error_json(problem, None, "server_error"))])
        await self._close_socket(code, str(problem))

    async def _close_socket(self, code: int, why: str) -> None:
        self._open = False
        try:
            async with asyncio.timeout(LAST_WORD_SECONDS):
                await self._ws.close(code=code, message=why.encode())
        except TimeoutError:  # too much is unread: the reason stands behind it
            self._session.close()
            if self._transport is not None:
                self._transport.close()
                asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.abort)
        except (ConnectionError, RuntimeError):
            return


def _socket() -> web.WebSocketResponse:
    return web.WebSocketResponse(
        protocols=("realtime",),
        max_msg_size=MAX_FRAME,
        autoping=False,  # the connection answers pings, and knows by them that somebody is there
        compress=False,  # base64 of sound hardly shrinks, and packing it delays every delta
        timeout=1.0,
    )


async def refuse_socket(request: web.Request, why: str) -> web.WebSocketResponse:
    """Inform a client that the server is not ready for it."""
    ws = _socket()
    await ws.prepare(request)
    await ws.send_json(_with_id(error_json(PeerError("server_starting", why), None, "server_error")))
    await ws.close(code=WSCloseCode.SERVICE_RESTART, message=b"the server is starting")
    return ws


async def serve_socket(request: web.Request, context: ServerContext, key_session: Json | None) -> web.WebSocketResponse:
    """`GET /v1/realtime`: one talk over this request's websocket. `key_session`: the session of its temporary key."""
    ws = _socket()
    await ws.prepare(request)  # before any refusal: clients show an `error` event, of an HTTP error its number
    sockets: set[web.WebSocketResponse] = request.app[SOCKETS]
    sockets.add(ws)
    if context.thread is not None and context.thread.asleep_bytes:
        context.later(context.thread.wake())  # a client that connects will say something soon
    try:
        await _serve(ws, request, context, key_session)
    finally:
        sockets.discard(ws)
    return ws


async def _serve(
    ws: web.WebSocketResponse, request: web.Request, context: ServerContext, key_session: Json | None
) -> None:
    extensions, unknown = read_extensions(request.query.get("extensions", "").split(","))
    problems = [
        PeerError("invalid_value", f"there is no extension {name[:60]!r}", "extensions") for name in unknown
    ]
    if from_elsewhere(request.headers.get("Origin"), request.headers.get("Host")) and extensions & OF_STATE:
        refused, extensions = sorted(extensions & OF_STATE), extensions - OF_STATE
        message = f"{' and '.join(refused)}: for programs and the server's own page"
        problems.append(PeerError("origin_refused", message, "extensions"))
    config = _first_config(request, context, key_session)
    # The session's ids are known once it is open, and it opens with settings that depend on the extensions: so one
    # protocol is asked for the settings and another one, with the ids, serves.
    settings = Protocol(WireSession("sess", "conv"), context.facts, config, extensions).settings
    try:
        session = _open_session(context, request.query.get("conversation_id"), settings, problems)
    except TalksFull as error:
        full = error_json(PeerError("session_limit_reached", str(error)), None, "rate_limit_error")
        await ws.send_json(_with_id(full))
        await ws.close(code=WSCloseCode.TRY_AGAIN_LATER, message=b"all places are taken")
        return
    llm, born_ms = context.talks.engines.llm, context.clock.now() * 1000
    wire = WireSession(
        session.id, session.talk, llm.state is not None, llm.sees, context.wake, born_ms, int(time.time()),
        session.abilities.possible,
    )  # fmt: skip
    protocol = Protocol(wire, context.facts, config, extensions)
    opening = protocol.opening(session.history, problems)
    await Connection(ws, request.transport, session, protocol, context).serve(opening)


def _first_config(request: web.Request, context: ServerContext, key_session: Json | None) -> SessionConfig:
    """The session before its first update: the key's, and listening only if that was requested."""
    keys = keys_of(request.headers.get("Authorization"), request.headers.get("Sec-WebSocket-Protocol"))
    config = SessionConfig(settings=replace(context.settings, realm=realm_of(keys)))
    wanted: Json = dict(key_session or {})
    if request.query.get("intent") == "transcription":
        wanted["type"] = "transcription"
    if not wanted:
        return config
    try:
        return merge(config, Fields(wanted, "session"), context.facts)
    except PeerError as error:  # a voice removed since the key was made should not end the talk
        log.warning("a temporary key has a session that cannot be used: %s", error)
        return config


def _open_session(context: ServerContext, resume: str | None, settings: Settings, problems: list[PeerError]) -> Session:
    if resume:
        try:
            return context.talks.open(settings, resume)
        except TalkElsewhere as error:
            problems.append(PeerError("conversation_elsewhere", str(error), "conversation_id"))
        except UnknownTalk:  # a new talk, and announced: a client that reconnects by itself would try for ever
            problems.append(
                PeerError("conversation_not_found", f"no talk {resume[:60]!r} is kept here", "conversation_id")
            )
    return context.talks.open(settings)


def _with_id(frame: Json) -> Json:
    return {"event_id": random_ids("event")} | frame


SOCKETS: web.AppKey[set[web.WebSocketResponse]] = web.AppKey("sockets", set)
