"""`/v1/capsules`, an extension beside OpenAI's shapes: the stored states of a program's own prompts.

For programs on this machine or with the token, and for the server's own page. Pages from elsewhere are refused here,
even those that `--allow` names.
"""

from __future__ import annotations

from dataclasses import replace

from aiohttp import web

from assistant.base.errors import PeerError
from assistant.base.ids import random_ids
from assistant.contracts import CapsuleKeeper, KeptCapsule, PromptReady, StatefulLLM
from assistant.realtime.fields import Fields, Json
from assistant.realtime.protocol import CapsuleVerb
from assistant.server.answers import json_fields, problem, while_connected
from assistant.server.backend import ServerContext
from assistant.server.chat import ChatRequest, opened_chat
from assistant.server.security import from_elsewhere, keys_of, realm_of

MAX_NAME = 200
VERBS = ("pin", "unpin", "name", "fork", "drop")


async def capsules(request: web.Request, context: ServerContext) -> web.StreamResponse:
    """Every path and method below `/v1/capsules`."""
    llm = context.talks.engines.llm.state
    if from_elsewhere(request.headers.get("Origin"), request.headers.get("Host")):
        return problem(403, "origin_refused", "capsules are for programs and the server's own page")
    if llm is None:
        return problem(501, "capsules_off", "the language model runs on another server, which keeps its own state")
    keeper = llm.keeper
    realm = realm_of(keys_of(request.headers.get("Authorization"), None))
    key, verb = request.match_info.get("key"), request.match_info.get("verb")
    if key is None:
        if request.method == "GET":
            return web.json_response({"object": "list", "data": [capsule_json(one) for one in keeper.listing(realm)]})
        return await _make(request, context, llm, realm)
    if request.method == "DELETE":
        await keeper.drop(realm, key)
        return web.json_response({"id": key, "object": "capsule.deleted", "deleted": True})
    body = await json_fields(request)
    if verb == "fork":
        return web.json_response(capsule_json(await keeper.fork(realm, key, _name(body, needed=True))))
    name, pinned = (_name(body) if body.has("name") else None), body.boolean("pinned")
    return web.json_response(capsule_json(await keeper.change(realm, key, name, pinned)))


async def _make(
    request: web.Request, context: ServerContext, llm: StatefulLLM, realm: str
) -> web.StreamResponse:
    """Fold a prompt ahead of its first question: `messages` and `tools` as in a chat completion, `name`, `pinned`."""
    body = await json_fields(request)
    name, pinned = (_name(body) if body.has("name") else None), body.boolean("pinned")
    key = await while_connected(request, _fold(await opened_chat(body, context, realm), llm))
    if key is None:
        return problem(507, "no_room", "there is no room for it; unpin or drop another first")
    return web.json_response(capsule_json(await llm.keeper.change(realm, key, name or None, pinned)))


async def _fold(chat: ChatRequest, llm: StatefulLLM) -> str | None:
    talk = random_ids("http")
    pieces = llm.reply(talk, chat.prompt, replace(chat.options, max_tokens=1))
    try:
        async for piece in pieces:
            if isinstance(piece, PromptReady):
                break
    finally:
        await pieces.aclose()
    return await llm.publish_prefix(talk, chat.prompt)


async def do_verb(keeper: CapsuleKeeper | None, realm: str, asked: CapsuleVerb) -> Json:
    """Answer `assistant.capsule` of the realtime protocol. Raises PeerError."""
    if keeper is None:
        raise PeerError("capsules_off", "the language model runs on another server, which keeps its own state")
    if asked.verb == "list":
        return {"verb": "list", "capsules": [capsule_json(one) for one in keeper.listing(realm)]}
    if asked.verb not in VERBS:
        raise PeerError("invalid_value", f"verb must be one of list, {', '.join(VERBS)}", "verb")
    if asked.key is None:
        raise PeerError("missing_required_parameter", "id is missing: name a capsule; the verb list names them", "id")
    if asked.verb == "drop":
        await keeper.drop(realm, asked.key)
        return {"verb": "drop", "id": asked.key}
    if asked.verb in {"name", "fork"}:
        name = _checked(asked.name or "", needed=True)
        change = keeper.fork if asked.verb == "fork" else keeper.change
        found = await change(realm, asked.key, name)
    else:
        found = await keeper.change(realm, asked.key, pinned=asked.verb == "pin")
    return {"verb": asked.verb, "capsule": capsule_json(found)}


def _name(body: Fields, *, needed: bool = False) -> str:
    return _checked(body.need_text("name") if needed else body.text("name") or "", needed=needed)


def _checked(name: str, *, needed: bool) -> str:
    if len(name) > MAX_NAME or (needed and not name.strip()) or name.startswith("talk/"):
        raise PeerError("invalid_value", f"name must have 1 to {MAX_NAME} characters and not begin with talk/", "name")
    return name


def capsule_json(one: KeptCapsule) -> Json:
    return {
        "id": one.key, "object": "capsule", "name": one.name or None, "engine": one.engine, "tokens": one.position,
        "bytes": one.size_bytes, "tier": one.tier, "pinned": one.pinned, "idle_s": round(one.idle_s, 1),
        "listed": one.listed, "base": one.base or None, "shared_bytes": one.shared_bytes,
    }  # fmt: skip
