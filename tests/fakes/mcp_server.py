"""An MCP server over stdin and stdout without any package, so that it starts at once and may misbehave.

    python mcp_server.py FILE [starts-badly | declares-badly]

`FILE` gets a line for each start, for each call that changes something, and for each list of tools that have changed,
behind which it reports another change.
"""

import json
import sys
import time
from pathlib import Path

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING = {"type": "object", "properties": {}}
TOOLS = [
    {"name": "look", "description": "Look something up.\n\nNot told.", "inputSchema": TEXT,
     "annotations": {"readOnlyHint": True}},
    {"name": "put", "description": "Change something.", "inputSchema": TEXT},
    {"name": "hang", "inputSchema": NOTHING, "annotations": {"readOnlyHint": True}},
    {"name": "die", "inputSchema": NOTHING},
    {"name": "die_reading", "inputSchema": NOTHING, "annotations": {"readOnlyHint": True}},
    {"name": "flood", "inputSchema": NOTHING, "annotations": {"readOnlyHint": True}},
    {"name": "fail", "inputSchema": NOTHING},
    {"name": "odd name!", "inputSchema": {"type": "object"}},
    {"name": "bad_type", "inputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
    {"name": "huge", "inputSchema": {"type": "object", "properties": {"a": {"enum": ["x" * 100] * 300}}}},
]  # fmt: skip
CHANGED = '{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}'


def main(path: Path, does: str) -> None:
    with path.open("a") as file:
        file.write("start\n")
    if does == "declares-badly":
        TOOLS.append({"name": "bad_properties", "inputSchema": {"type": "object", "properties": [1]}})
    if does == "starts-badly" and path.read_text().count("start") > 1:
        sys.exit("no second time")
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer(asked, path)}), flush=True)


def answer(asked: dict, path: Path) -> dict:
    match asked["method"]:
        case "initialize":
            version = asked["params"]["protocolVersion"]
            facts = {"name": "fake", "version": "1"}
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": facts}}
        case "tools/list":
            if "brand_new" in str(TOOLS):
                with path.open("a") as file:
                    file.write("list\n")
                print(CHANGED, flush=True)
            return {"result": {"tools": TOOLS}}
        case "tools/call":
            return {"result": call(asked["params"], path)}
        case _:
            return {"error": {"code": -32601, "message": "unknown"}}


def call(params: dict, path: Path) -> dict:
    text = "done"
    match params["name"]:
        case "look":
            text = f"seen {params['arguments']['text']}"
        case "put":
            with path.open("a") as file:
                file.write(f"put {params['arguments']['text']}\n")
            if params["arguments"]["text"] == "a new tool":
                TOOLS.append({"name": "brand_new", "inputSchema": NOTHING})
                print(CHANGED, flush=True)
        case "hang":
            time.sleep(600)
        case "die" | "die_reading":
            sys.exit("it died")
        case "flood":
            text = "x" * 10_000_000
        case "fail":
            return {"content": [{"type": "text", "text": "out of paper"}], "isError": True}
    return {"content": [{"type": "text", "text": text}]}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
