"""`/v1/audio/voices`: the available voices, listed, added and removed, in the shape of OpenAI's custom voices.

For programs on this machine or with the token, and for the server's own page. Pages from elsewhere are refused here,
even those that `--allow` names.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from assistant.base.errors import PeerError
from assistant.contracts import KeptVoice, VoiceKeeper
from assistant.realtime.fields import Json
from assistant.server.answers import error_body, problem
from assistant.server.backend import ServerContext
from assistant.server.listen import read_form
from assistant.server.security import from_elsewhere

STATUSES = {"voice_not_found": 404, "voice_exists": 409, "voice_in_use": 409, "not_kept": 507, "not_removed": 507}
YES = frozenset({"true", "1", "yes"})


async def voices(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """Every path and method below `/v1/audio/voices`."""
    keeper = context.voices
    if from_elsewhere(request.headers.get("Origin"), request.headers.get("Host")):
        return problem(403, "origin_refused", "voices are for programs and the server's own page")
    if keeper is None:
        return problem(501, "voices_off", "the voice runs on another server, which keeps its own voices")
    try:
        if request.method == "POST":
            return web.json_response(voice_json(await _add(request, keeper)))
        if request.method == "DELETE":
            name, anyway = request.match_info["name"], request.query.get("anyway", "").lower() in YES
            await asyncio.to_thread(keeper.remove, name, anyway=anyway)
            return web.json_response({"id": name, "object": "audio.voice.deleted", "deleted": True})
    except PeerError as error:
        return web.json_response(error_body(error), status=STATUSES.get(error.code, 400))
    data = [voice_json(one) for one in await asyncio.to_thread(keeper.listing)]
    return web.json_response({"object": "list", "data": data, "refusal": keeper.refusal or None})


async def _add(request: web.Request, keeper: VoiceKeeper) -> KeptVoice:
    """Add a voice, whether or not the page stays connected: a half-made voice is completed. Raises PeerError."""
    sound, fields = await read_form(request, "audio_sample")

    def last(name: str) -> str:
        return fields.get(name, [""])[-1]

    if last("consent").lower() not in YES:
        told = "consent must be true: it is your own voice, or its owner agrees that it is imitated here"
        raise PeerError("invalid_value", told, "consent")
    replace = last("replace").lower() in YES
    return await asyncio.to_thread(keeper.add, last("name"), sound, last("transcript") or None, replace=replace)


def voice_json(one: KeptVoice) -> Json:
    return {
        "id": one.name, "object": "audio.voice", "name": one.name, "created_at": round(one.made_at),
        "origin": one.origin, "seconds": one.seconds, "transcript": one.transcript or None,
    }  # fmt: skip
