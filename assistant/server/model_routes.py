"""`/v1/models`: the models that answer, in OpenAI's shape; with `?extensions=all` also those that could.

The extension and its verbs (`fetch`, `pause`, `cancel`, `switch`) are for programs on this machine or with the token,
and for the server's own page. Pages from elsewhere are refused, even those that `--allow` names.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from assistant.base.errors import PeerError
from assistant.contracts import ModelKeeper
from assistant.realtime.fields import Fields, Json
from assistant.server.answers import error_body, json_fields, problem
from assistant.server.backend import ServerContext
from assistant.server.security import from_elsewhere

STATUSES = {
    "model_not_found": 404, "fetch_busy": 409, "nothing_fetched": 409, "model_here": 409, "model_answers": 409,
    "switch_busy": 409, "model_does_not_run": 409,
}  # fmt: skip
VERBS = ("fetch", "pause", "cancel", "switch")


async def models(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """`GET /v1/models`. Stock clients read `data`, which names what answers and nothing else."""
    answer: Json = {"object": "list", "data": _running(context)}
    wanted = request.query.get("extensions", "")
    if wanted not in ("all", "progress"):
        return web.json_response(answer)
    if (refused := _refused(request)) is not None or (keeper := context.models) is None:
        return refused or _off()
    found = keeper.progress() if wanted == "progress" else await asyncio.to_thread(keeper.overview)
    return web.json_response(answer | dict(found))


async def model(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """`GET /v1/models/NAME`."""
    name = request.match_info["name"]
    for one in _running(context):
        if one["id"] == name:
            return web.json_response(one)
    return problem(404, "model_not_found", f"there is no model {name[:80]!r} here; see /v1/models")


async def change_models(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """`POST /v1/models/VERB`. Answers at once with `fetch` and `switch`; how they go on is in the listing."""
    if (refused := _refused(request)) is not None or (keeper := context.models) is None:
        return refused or _off()
    body = await json_fields(request) if request.can_read_body else Fields({})
    try:
        await _do(request.match_info["verb"], body, keeper)
    except PeerError as error:
        return web.json_response(error_body(error), status=STATUSES.get(error.code, 400))
    return web.json_response(dict(keeper.progress()), status=202)


async def _do(verb: str, body: Fields, keeper: ModelKeeper) -> None:
    if verb == "pause":
        keeper.pause_fetch()
    elif verb == "cancel":
        await asyncio.to_thread(keeper.cancel_fetch)
    elif verb == "fetch":
        accepted = bool(body.boolean("accept_licence"))
        await asyncio.to_thread(keeper.fetch_model, body.need_text("model"), accept_licence=accepted)
    else:
        await keeper.switch_to(body.need_text("model"))


def _running(context: ServerContext) -> list[Json]:
    engines = context.talks.engines
    # Two parts on one remote server may share a name, and clients that list models want each only once.
    names = dict.fromkeys((context.facts.model, engines.llm.name, engines.tts.name, engines.asr.name))
    return [{"id": name, "object": "model", "created": 0, "owned_by": "local"} for name in names]


def _refused(request: web.Request) -> web.Response | None:
    if from_elsewhere(request.headers.get("Origin"), request.headers.get("Host")):
        return problem(403, "origin_refused", "models are chosen by programs and the server's own page")
    return None


def _off() -> web.Response:
    return problem(501, "models_off", "the models of this server cannot be changed while it runs")
