"""`/v1/memory`: the sentences that every talk begins with, seen, added, reworded, taken out and forgotten.

For programs on this machine or with the token, and for the server's own page. Pages from elsewhere are refused here,
even those that `--allow` names.
"""

from __future__ import annotations

from aiohttp import web

from assistant.base.errors import PeerError
from assistant.contracts import MemoryKeeper
from assistant.realtime.fields import Fields
from assistant.server.answers import json_fields, problem
from assistant.server.backend import ServerContext
from assistant.server.security import from_elsewhere

STATUSES = {"not_found": 404, "not_changed": 409}
LONGEST_FIELD = 1000


async def remembered(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """GET and POST; each answers with everything as it is then."""
    if from_elsewhere(request.headers.get("Origin"), request.headers.get("Host")):
        return problem(403, "origin_refused", "the memory is for programs and the server's own page")
    keeper = context.memory
    if keeper is None:
        return problem(501, "memory_off", "this server remembers nothing")
    try:
        if request.method == "POST":
            await _change(await json_fields(request), keeper)
        return web.json_response({"object": "memory"} | dict(await keeper.sentences()))
    except PeerError as error:
        return problem(STATUSES.get(error.code, 400), error.code, str(error))


async def _change(body: Fields, keeper: MemoryKeeper) -> None:
    """One of `add`, `reword` with `to`, `take_out`, `forget`, each with the sentence."""
    if "add" in body.data:
        await keeper.keep_sentence(body.need_text("add", LONGEST_FIELD))
    elif "reword" in body.data:
        await keeper.reword_sentence(body.need_text("reword", LONGEST_FIELD), body.need_text("to", LONGEST_FIELD))
    elif "take_out" in body.data:
        await keeper.take_out(body.need_text("take_out", LONGEST_FIELD))
    else:
        await keeper.forget_sentence(body.need_text("forget", LONGEST_FIELD))
