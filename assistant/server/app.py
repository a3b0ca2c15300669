"""The web application: its routes, who may use them, and the form of errors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import WSCloseCode, web
from aiohttp.http import HttpProcessingError

from assistant.base.errors import ContextExceeded, EngineFailed, PeerError, TalksFull
from assistant.base.ids import random_ids
from assistant.realtime.fields import Fields, Json
from assistant.realtime.settings import SessionConfig, merge
from assistant.server.answers import error_body, json_fields, problem
from assistant.server.backend import ServerContext
from assistant.server.chat import chat_completions
from assistant.server.household_routes import household
from assistant.server.kept import capsules
from assistant.server.listen import MAX_FILE, audio_transcriptions
from assistant.server.memory_routes import remembered
from assistant.server.model_routes import VERBS, change_models, model, models
from assistant.server.security import Gate, keys_of
from assistant.server.sleep_routes import sleep, wake
from assistant.server.socket import SOCKETS, refuse_socket, serve_socket
from assistant.server.speech import audio_speech
from assistant.server.starting import PATIENCE_S, Starting
from assistant.server.talk_routes import kept_talks
from assistant.server.voice_routes import voices

GUARDED_PATHS = ("/v1/", "/metrics")
"""Paths that a token protects; the page and `/healthz` are open to anybody who reaches the server."""
CONTENT_POLICY = (
    "default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' data: blob:; media-src 'self' blob:; "
    "style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'"
)
CAPSULES = (
    ("GET", "/v1/capsules"), ("POST", "/v1/capsules"), ("POST", "/v1/capsules/{key}"),
    ("DELETE", "/v1/capsules/{key}"), ("POST", "/v1/capsules/{key}/{verb:fork}"),
)  # fmt: skip
VOICES = (("GET", "/v1/audio/voices"), ("POST", "/v1/audio/voices"), ("DELETE", "/v1/audio/voices/{name}"))
HOUSEHOLD = (
    ("GET", "/v1/household"), ("POST", "/v1/household"), ("POST", r"/v1/household/{key:\d+}"),
    ("DELETE", "/v1/household/{key}"),
)  # fmt: skip
MEMORY = (("GET", "/v1/memory"), ("POST", "/v1/memory"))
TALKS = (("GET", "/v1/talks"), *((method, "/v1/talks/{talk}") for method in ("GET", "POST", "DELETE")))
PARKING_S, LOOK_S = 10.0, 0.02
"""Time for talks to be parked before their models go; what is not parked then is folded again from its words."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
STARTING: web.AppKey[Starting] = web.AppKey("starting", Starting)
GATE: web.AppKey[Gate] = web.AppKey("gate", Gate)

log = logging.getLogger(__name__)


def make_app(starting: Starting, gate: Gate, ui: Path | None = None) -> web.Application:
    """The whole server. `ui`: the page's folder. `/` and `/healthz` are served even before the models are ready."""
    # The guard is outermost: a client that may not connect must not learn from an error what is here.
    app = web.Application(middlewares=[_guard, _tell_errors], client_max_size=MAX_FILE)
    app[STARTING], app[GATE], app[SOCKETS] = starting, gate, set()
    for path in ("/v1/realtime", "/v1/realtime/"):  # clients join a base URL and a path in both ways
        app.router.add_get(path, _realtime)
    app.router.add_post("/v1/realtime/client_secrets", _client_secrets)
    app.router.add_post("/v1/realtime/sessions", _older_sessions)
    app.router.add_post("/v1/realtime/calls", _no_calls)
    app.router.add_post("/v1/chat/completions", _with_context(chat_completions))
    app.router.add_post("/v1/audio/speech", _with_context(audio_speech))
    app.router.add_post("/v1/audio/transcriptions", _with_context(audio_transcriptions))
    for routes, serve in (
        (CAPSULES, capsules), (VOICES, voices), (HOUSEHOLD, household), (MEMORY, remembered), (TALKS, kept_talks),
    ):  # fmt: skip
        for method, path in routes:
            app.router.add_route(method, path, _with_context(serve))
    app.router.add_post("/v1/sleep", _with_context(sleep))
    app.router.add_post("/v1/wake", _with_context(wake))
    app.router.add_get("/v1/models", _with_context(models))
    app.router.add_post(f"/v1/models/{{verb:{'|'.join(VERBS)}}}", _with_context(change_models))
    app.router.add_get("/v1/models/{name:.+}", _with_context(model))
    app.router.add_route("*", "/v1/{rest:.*}", _no_endpoint)  # behind all others: explains in a sentence what is wrong
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/metrics", _metrics)
    if ui is not None:
        app.router.add_get("/", _page(ui / "index.html"))
        app.router.add_static("/", ui, show_index=False)
    app.on_shutdown.append(_close_sockets)
    app.on_response_prepare.append(_headers)
    return app


def _with_context(serve: Callable[[web.Request, ServerContext], Awaitable[web.StreamResponse]]) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return await serve(request, _context(request))

    return handler


def _context(request: web.Request) -> ServerContext:
    """The context of a request that the guard let through: only the page and `/healthz` are served without."""
    context = request.app[STARTING].context
    assert context is not None
    return context


def _page(file: Path) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.FileResponse(file)

    return handler


# --------------------------------------------------------------------------------------- middlewares


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Check Host, then Origin, then the token; a browser's preflight request is answered here."""
    gate, starting = request.app[GATE], request.app[STARTING]
    host, origin = request.headers.get("Host"), request.headers.get("Origin")
    # Host first, because Origin is compared with it: a foreign name pointed at this machine would match itself.
    if (reason := gate.refuse_host(host)) is not None:
        return problem(421, "host_refused", reason)
    if (reason := gate.refuse_origin(origin, host)) is not None:
        return problem(403, "origin_refused", reason)
    if request.method == "OPTIONS":  # before the token: browsers send no token when they ask whether they may
        return web.Response(status=204)
    if request.path.startswith(GUARDED_PATHS):
        keys = keys_of(request.headers.get("Authorization"), request.headers.get("Sec-WebSocket-Protocol"))
        # A temporary key was made for a page's talk and does not open anything else.
        realtime, context = request.path.startswith("/v1/realtime"), starting.context
        temporary = context.keys.valid(time.time()) if realtime and context is not None else []
        if not gate.admits(keys, temporary):
            return problem(401, "invalid_api_key", "a token is needed: send it as `Authorization: Bearer TOKEN`")
        socket = request.headers.get("Upgrade", "").lower() == "websocket"
        if await starting.wait(PATIENCE_S if socket else None) is None:
            return await refuse_socket(request, starting.sentence)
    return await handler(request)


@web.middleware
async def _tell_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer errors as OpenAI's clients expect them. An answer that has begun can only be broken off."""
    try:
        return await handler(request)
    except PeerError as error:
        return web.json_response(error_body(error), status=400)
    except (web.RequestPayloadError, HttpProcessingError) as error:  # raised by aiohttp while it reads the body
        return problem(400, "invalid_event", f"the body is damaged: {' '.join(str(error).split())[:100]}")
    except TalksFull as error:
        return problem(429, "session_limit_reached", str(error), "rate_limit_error")
    except ContextExceeded as error:  # also an EngineFailed, but the client's mistake and not the engine's
        return problem(400, "context_length_exceeded", str(error))
    except EngineFailed as error:
        log.warning("%s %s: %s", request.method, request.path, error)
        return problem(502, "engine_error", str(error), "server_error")
    except ConnectionResetError:  # nobody reads it, but if it were raised further it would be logged as a bug
        return problem(499, "client_closed", "the client went away")
    except web.HTTPException as error:
        if error.status < 400 or not request.path.startswith("/v1/"):
            raise
        return problem(error.status, "not_found" if error.status == 404 else "invalid_request", error.reason)


async def _headers(request: web.Request, response: web.StreamResponse) -> None:
    origin = request.headers.get("Origin")
    if origin is not None and request.app[GATE].knows_origin(origin):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Allow-Headers"] = "Authorization, Content-Type, OpenAI-Beta"
        response.headers["Access-Control-Allow-Methods"] = "GET, POST, OPTIONS"
        response.headers["Vary"] = "Origin"
    if not request.path.startswith("/v1/"):  # the page, whose files have no versions in their names
        response.headers["Content-Security-Policy"] = CONTENT_POLICY
        response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Content-Type-Options"] = "nosniff"


async def _close_sockets(app: web.Application) -> None:
    """Close every talk's socket, which parks the talk: the server is stopping."""
    await _close_all(app, WSCloseCode.GOING_AWAY, "the server is stopping")


async def pause_talks(app: web.Application) -> None:
    """Let no request in before `Starting.ready`, and return once every talk is parked. Clients may come back at once:
    they wait, and their talk goes on."""
    starting = app[STARTING]
    context = starting.begin_again()
    await _close_all(app, WSCloseCode.SERVICE_RESTART, "the language model is being changed; connect again")
    begin = time.monotonic()
    while context is not None and context.talks.active and time.monotonic() - begin < PARKING_S:
        await asyncio.sleep(LOOK_S)


async def _close_all(app: web.Application, code: int, why: str) -> None:
    closing = [ws.close(code=code, message=why.encode()) for ws in app[SOCKETS]]
    with contextlib.suppress(ConnectionError):
        await asyncio.gather(*closing)


# ------------------------------------------------------------------------------------------ handlers


async def _realtime(request: web.Request) -> web.StreamResponse:
    context = _context(request)
    if request.headers.get("Upgrade", "").lower() != "websocket":
        return problem(426, "websocket_needed", "connect to this address with a websocket")
    if request.query.get("call_id"):
        return problem(404, "not_found", "there are no WebRTC or SIP calls here that could be joined")
    keys = keys_of(request.headers.get("Authorization"), request.headers.get("Sec-WebSocket-Protocol"))
    sessions = [session for key in keys if (session := context.keys.session(key, time.time())) is not None]
    return await serve_socket(request, context, sessions[0] if sessions else None)


async def _new_key(request: web.Request, field: str | None) -> tuple[str, int, Json]:
    """A temporary key for a browser, its expiry, and the session that it stands for."""
    context = _context(request)
    body = await json_fields(request) if request.can_read_body else Fields({})  # a missing body asks for the defaults
    wanted = (body.obj(field) if field else body) or Fields({}, "session")
    # Merged now only to refuse errors and to answer in full; the key stores the request, which is merged again when the
    # key is used, into the settings of that time.
    config = merge(SessionConfig(settings=context.settings), wanted, context.facts)
    after = body.obj("expires_after") if field else None
    seconds = (after.integer("seconds", 10, 7200) if after else None) or 600
    key, expires = random_ids("ek"), int(time.time()) + seconds
    context.keys.remember(key, expires, dict(wanted.data))
    return key, expires, {"id": random_ids("sess")} | config.json(context.facts)


async def _client_secrets(request: web.Request) -> web.StreamResponse:
    key, expires, session = await _new_key(request, "session")
    return web.json_response({"value": key, "expires_at": expires, "session": session})


async def _older_sessions(request: web.Request) -> web.StreamResponse:
    key, expires, session = await _new_key(request, None)
    return web.json_response(session | {"client_secret": {"value": key, "expires_at": expires}})


async def _no_calls(request: web.Request) -> web.StreamResponse:
    return problem(501, "webrtc_not_offered", "WebRTC is not offered here; connect to /v1/realtime with a websocket")


async def _no_endpoint(request: web.Request) -> web.StreamResponse:
    routes = [(route.resource.canonical, route.method) for route in request.app.router.routes() if route.resource]
    if methods := [method for path, method in routes if path == request.path]:
        return problem(405, "method_not_allowed", f"{request.path} accepts {' and '.join(methods)}")
    known = ", ".join(sorted({path.rstrip("/") for path, _ in routes if path.startswith("/v1/") and "{" not in path}))
    return problem(404, "not_found", f"there is nothing at {request.path[:80]}; try {known}")


async def _healthz(request: web.Request) -> web.StreamResponse:
    context = request.app[STARTING].context
    if context is None:
        return web.json_response(request.app[STARTING].health)
    engines = context.talks.engines
    body: Json = {
        "status": "ok",
        "uptime_s": round(time.monotonic() - context.born, 1),
        "sessions": {"open": context.talks.active, "limit": context.talks.limit},
        "models": {"llm": engines.llm.name, "tts": engines.tts.name, "hearing": engines.asr.name},
        "capsules": {"llm": engines.llm.state is not None, "tts": engines.tts.state is not None},
        "asleep": context.thread is not None and context.thread.asleep_bytes > 0,
    }
    return web.json_response(body | dict(context.about()))


async def _metrics(request: web.Request) -> web.StreamResponse:
    body = _context(request).metrics() + f"assistant_tasks {len(asyncio.all_tasks())}\n".encode()
    return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4"})
