"""MCP servers on the wire: a client's `mcp` tools read and echoed, lists, calls and approvals written.

A client names a server by the label that `mcp.json` has for it, or by its address. Any other one is refused: the
server would be reached from this machine, with the rights of its owner.
"""

from __future__ import annotations

from collections.abc import Iterator

from assistant import events as talk
from assistant.base.errors import PeerError
from assistant.events import Event, McpApprovalRequest, McpCall, ServerAsk, ToolFilter
from assistant.realtime.fields import Fields, Json

REFUSED = ("authorization", "headers", "connector_id", "tunnel_id")
"""Fields of a client that would be passed on with our owner's connection."""
KEPT = ("server_label", "server_url", "server_description", "allowed_tools", "require_approval")


def read_server(fields: Fields, known: talk.NamedServer) -> ServerAsk:
    """One `mcp` tool of a session. `known`: our name for a label and an address. Raises PeerError."""
    label, url = fields.need_ident("server_label"), fields.text("server_url")
    for name in REFUSED:
        if fields.data.get(name) is not None:
            where = fields.at(name)
            raise PeerError("invalid_value", f"{where} is not passed on; the server's owner sets it in mcp.json", where)
    server = known(label, url)
    if server is None:
        where = fields.at("server_label" if url is None else "server_url")
        raise PeerError(
            "invalid_value",
            f"{where} is {(url or label)[:80]!r}, which is not a server that mcp.json names or allows here", where,
        )  # fmt: skip
    always, never, approval = None, None, "always"
    if isinstance(fields.data.get("require_approval"), dict):
        given = fields.need_obj("require_approval")
        always, never = _filter(given.obj("always")), _filter(given.obj("never"))
    else:
        approval = fields.choice("require_approval", ("always", "never")) or "always"
    return ServerAsk(
        server, label, _allowed(fields), always, never, approval == "never",
        {name: fields.data[name] for name in KEPT if fields.has(name)},
    )  # fmt: skip


def _allowed(fields: Fields) -> ToolFilter | None:
    if isinstance(fields.data.get("allowed_tools"), dict):
        return _filter(fields.need_obj("allowed_tools"))
    return None if fields.array("allowed_tools") is None else ToolFilter(_names(fields, "allowed_tools"))


def _filter(fields: Fields | None) -> ToolFilter | None:
    if fields is None:
        return None
    names = None if fields.array("tool_names") is None else _names(fields, "tool_names")
    return ToolFilter(names, fields.boolean("read_only"))


def _names(fields: Fields, name: str) -> tuple[str, ...]:
    values = fields.array(name) or []
    if not all(isinstance(value, str) for value in values):
        raise PeerError("invalid_type", f"{fields.at(name)} must contain names of tools", fields.at(name))
    return tuple(map(str, values))


def server_json(ask: ServerAsk) -> Json:
    return {"type": "mcp"} | dict(ask.given)


def mcp_item_json(item: McpCall | McpApprovalRequest) -> Json:
    told: Json = {"id": item.id, "object": "realtime.item", "server_label": item.server, "name": item.name,
                  "arguments": item.arguments}  # fmt: skip
    if isinstance(item, McpApprovalRequest):
        return told | {"type": "mcp_approval_request"}
    told["type"] = "mcp_call"
    if item.approval_id is not None:
        told["approval_request_id"] = item.approval_id
    if item.failed:
        told["error"] = {"type": "tool_execution_error", "message": item.output or ""}
    elif item.output is not None:
        told["output"] = item.output
    return told


def mcp_frames(event: Event) -> Iterator[tuple[str, Json]]:
    """The frames around an event of a call: those before its end, and those behind its beginning."""
    match event:
        case talk.OutputItemAdded(item=McpCall() as call):
            where: Json = {"item_id": call.id, "output_index": event.output_index}
            told = where | {"response_id": event.response_id, "arguments": call.arguments}
            yield "response.mcp_call_arguments.done", told
            yield "response.mcp_call.in_progress", where
        case talk.OutputItemDone(item=McpCall() as call):
            where = {"item_id": call.id, "output_index": event.output_index}
            yield f"response.mcp_call.{'failed' if call.failed else 'completed'}", where


def listing_frames(event: talk.ToolsListed) -> Iterator[tuple[str, Json]]:
    item: Json = {"id": event.item_id, "object": "realtime.item", "type": "mcp_list_tools",
                  "server_label": event.server, "tools": []}  # fmt: skip
    yield "conversation.item.added", {"item": item}
    yield "mcp_list_tools.in_progress", {"item_id": event.item_id}
    if event.trouble:
        yield "mcp_list_tools.failed", {"item_id": event.item_id}
    else:
        item = item | {"tools": [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
            for tool in event.tools
        ]}  # fmt: skip
        yield "mcp_list_tools.completed", {"item_id": event.item_id}
    yield "conversation.item.done", {"item": item}


def read_approval(item: Fields) -> talk.AnswerCall:
    """An item with which a client allows a call, or not."""
    approve = item.boolean("approve")
    if approve is None:
        raise item.missing("approve")
    return talk.AnswerCall(item.need_ident("approval_request_id"), approve)
