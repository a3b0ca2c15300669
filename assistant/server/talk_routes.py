"""`/v1/talks`: earlier talks are listed, read, named and deleted.

For programs on this machine or with the token, and for the server's own page. Pages from elsewhere are refused here,
even those that `--allow` names.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from aiohttp import web

from assistant.base.errors import TalkElsewhere, UnknownTalk
from assistant.realtime.fields import Json
from assistant.server.answers import json_fields, problem
from assistant.server.backend import ServerContext
from assistant.server.security import from_elsewhere
from assistant.talk.archive import KEPT_DAYS, KeptTalk
from assistant.talk.talks import Talks

MAX_NAME = 120


async def kept_talks(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """Every path and method below `/v1/talks`."""
    if from_elsewhere(request.headers.get("Origin"), request.headers.get("Host")):
        return problem(403, "origin_refused", "talks are for programs and the server's own page")
    talks, talk = context.talks, request.match_info.get("talk")
    if talk is None:
        return web.json_response(await _listed(talks))
    try:
        if request.method == "DELETE":
            await talks.forget_for_good(talk)
            return web.json_response({"id": talk, "object": "talk.deleted", "deleted": True})
        if request.method == "POST":
            name = (await json_fields(request)).need_text("name", MAX_NAME).strip()
            talks.name_talk(talk, name)
            return web.json_response({"id": talk, "object": "talk", "name": name})
        lines = await asyncio.to_thread(talks.archive.lines_of, talk)
        return web.json_response({"id": talk, "object": "talk", "lines": [asdict(line) for line in lines]})
    except UnknownTalk as error:
        return problem(404, "conversation_not_found", str(error))
    except TalkElsewhere as error:
        return problem(409, "conversation_elsewhere", str(error))


async def _listed(talks: Talks) -> Json:
    found = await asyncio.to_thread(talks.archive.earlier)
    folder = talks.archive.folder
    return {
        "object": "list", "data": [_talk_json(one, talks.is_open(one.talk)) for one in found],
        "folder": None if folder is None else str(folder), "kept_days": KEPT_DAYS,
    }  # fmt: skip


def _talk_json(one: KeptTalk, is_open: bool) -> Json:
    return {
        "id": one.talk, "object": "talk", "name": one.name or None, "begins": one.begins, "turns": one.turns,
        "used_at": round(one.used_at), "bytes": one.nbytes, "open": is_open,
    }  # fmt: skip
