"""Memory of a server after many turns: typed turns over the realtime socket, one long talk and many short ones.

    python -m benchmarks.turns_memory --turns 1000 --out benchmarks/results/turns_memory.json

`assistant serve` runs in a separate process with the shipped models. Half of the turns go to one talk that never
ends (its oldest turns leave the context when it is full), the other half to talks of ten turns that come and go, with
an undo in each. Memory is read from /proc, the rest from `/metrics`. Capsules have their own budget. Besides them, two
things grow: two blocks of the largest snapshot, kept for reuse, and memory that the C library does not return.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

QUESTIONS = ("what is seven plus five", "hello", "my name is Mia", "what is my name", "spell cat", "what day is it")
SHORT_TALK = 10
LEVELS = (
    "assistant_capsules_bytes", "assistant_capsules_capsules", "assistant_sessions_open", "assistant_tasks",
    "assistant_buffers", "assistant_buffer_bytes",
)  # fmt: skip


class TypedTalk:
    """A connection that types."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self._ws = ws

    async def turn(self, text: str) -> str:
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        await self._ws.send_json({"type": "conversation.item.create", "item": item})
        await self._ws.send_json({"type": "response.create"})
        return (await self.until("response.done"))["response"]["status"]

    async def undo(self) -> None:
        await self._ws.send_json({"type": "assistant.undo", "turns": 1})
        await self.until("conversation.item.deleted")

    async def until(self, kind: str) -> dict[str, Any]:
        async with asyncio.timeout(120):
            while (frame := await self._ws.receive_json())["type"] != kind:
                pass
        return frame


@asynccontextmanager
async def talking(client: aiohttp.ClientSession, url: str, modality: str) -> AsyncIterator[TypedTalk]:
    async with client.ws_connect(f"{url}/realtime?extensions=all", max_msg_size=0) as ws:
        talk = TypedTalk(ws)
        await talk.until("session.created")
        await ws.send_json({"type": "session.update", "session": {"type": "realtime", "output_modalities": [modality]}})
        await talk.until("session.updated")
        yield talk


async def held(client: aiohttp.ClientSession, url: str, pid: int) -> dict[str, Any]:
    """The server's memory now."""
    async with client.get(url.removesuffix("/v1") + "/metrics") as answer:
        metrics = await answer.text()
    status = Path(f"/proc/{pid}/status").read_text()
    row: dict[str, Any] = {
        "rss_mb": round(int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024, 1),
        "threads": int(re.findall(r"Threads:\s+(\d+)", status)[0]),
        "files": sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
    }
    for name, labels, value in re.findall(r"^(\w+)(\{[^}]*\})? (\S+)$", metrics, re.MULTILINE):
        if name in LEVELS:
            row[name.removeprefix("assistant_") + labels.replace('"', "")] = float(value)
    return row


async def drive(url: str, pid: int, turns: int, every: int, modality: str) -> list[dict[str, Any]]:
    rows, failed, begin = [], 0, time.monotonic()
    async with aiohttp.ClientSession() as client:

        async def note(done: int) -> None:
            row = {"turns": done, "seconds": round(time.monotonic() - begin, 1), "failed": failed}
            rows.append(row | await held(client, url, pid))
            print(json.dumps(rows[-1]), flush=True)

        await note(0)
        done = 0
        async with talking(client, url, modality) as long:
            while done < turns:
                async with talking(client, url, modality) as short:
                    for place in range(SHORT_TALK):
                        for talk in (long, short):
                            failed += await talk.turn(QUESTIONS[(done // 2) % len(QUESTIONS)]) != "completed"
                            done += 1
                            if done % every == 0:
                                await note(done)
                        if place == SHORT_TALK // 2:
                            await short.undo()
        await asyncio.sleep(1.0)
        await note(done)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--modality", choices=("text", "audio"), default="text")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "assistant", "serve", "--port", "0", "--no-browser", "--profile", "tiny"]
        environment = os.environ | {"ASSISTANT_HOME": home, "PYTHONUNBUFFERED": "1"}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert server.stdout is not None
        found = next(filter(None, (re.search(r"^OpenAI +(\S+)$", line) for line in server.stdout)))
        try:
            rows = asyncio.run(drive(found[1], server.pid, args.turns, args.every, args.modality))
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
    if args.out:
        facts = {"python": sys.version.split()[0], "cpus": os.cpu_count(), "modality": args.modality}
        args.out.write_text(json.dumps({**facts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
