"""`/v1/household`: the timers, alarms, reminders, lists and notes of the home, seen, changed and removed.

For programs on this machine or with the token, and for the server's own page. Pages from elsewhere are refused here,
even those that `--allow` names.
"""

from __future__ import annotations

from aiohttp import web

from assistant.base.errors import PeerError
from assistant.contracts import HouseholdKeeper, Removed
from assistant.server.answers import json_fields, problem
from assistant.server.backend import ServerContext
from assistant.server.security import from_elsewhere

STATUSES = {"not_found": 404, "not_changed": 409}


async def household(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """Every path and method below `/v1/household`; each answers with everything as it is then."""
    if from_elsewhere(request.headers.get("Origin"), request.headers.get("Host")):
        return problem(403, "origin_refused", "timers and lists are for programs and the server's own page")
    keeper = context.household
    if keeper is None:
        return problem(501, "household_off", "this server keeps no timers and lists")
    try:
        removed = await _change(request, keeper)
        return web.json_response({"object": "household", "removed": removed} | dict(keeper.everything()))
    except PeerError as error:
        return problem(STATUSES.get(error.code, 400), error.code, str(error))


async def _change(request: web.Request, keeper: HouseholdKeeper) -> list[Removed]:
    key = request.match_info.get("key")
    if request.method == "DELETE":
        return keeper.take_away(key or "")
    if request.method == "POST" and key is not None:
        body = await json_fields(request)
        add_s = body.number("add_s", -1e9, 1e9) or 0.0
        keeper.adjust_timer(int(key), paused=body.boolean("paused"), add_s=add_s)
    elif request.method == "POST":
        rows = (await json_fields(request)).data.get("removed")
        if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == 2 for row in rows):
            raise PeerError("not_changed", "removed must be what DELETE answered", "removed")
        keeper.give_back([(row[0], row[1]) for row in rows])
    return []
