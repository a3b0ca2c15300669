"""Sleep and wake of a server with the shipped models: memory before, asleep and after; from a request to the first
sound of its answer, awake and out of sleep.

    python -m benchmarks.sleep [--rounds 9] [--json FILE] [-- ARGUMENTS OF serve]     about three minutes

Each round asks twice awake (the second is counted), lets the models sleep and asks, which wakes them (`warm`: the
released memory is still in the page cache), lets them sleep again, drops that file from the page cache and asks
(`cold`). Every request asks `/v1/realtime` to speak a sentence. Resident bytes are those of the process, from /proc;
private ones lie in no file, so only swapping would free them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp

from benchmarks.page_cache import evict
from benchmarks.start import RESULTS, ROOT, environment, machine

SAYS = "what time is it"
TRIES = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, metavar="N")
    parser.add_argument("--json", type=Path, default=RESULTS / "sleep_cpu.json", metavar="FILE")
    parser.add_argument("--settle", type=float, default=3, metavar="S", help="seconds before it begins")
    parser.add_argument("serve", nargs="*", default=["--profile", "tiny"], help="after --: instead of --profile tiny")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "assistant", "serve", "--port", "0", "--no-browser", *args.serve]
        around = environment(ROOT, Path(home)) | {"PYTHONUNBUFFERED": "1"}
        server = subprocess.Popen(command, cwd=ROOT, env=around, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            url = next(line.split()[1] for line in server.stdout if line.startswith("page ")).rstrip("/")
            rounds = asyncio.run(measure(url, server.pid, args.rounds, args.settle))
        finally:
            server.terminate()
            server.communicate()
    middle = {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}
    result = {"machine": machine(), "serve": args.serve, "rounds": args.rounds, "median": middle, "raw": rounds}
    args.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(json.dumps(middle, indent=1))


async def measure(url: str, process: int, count: int, settle_s: float) -> list[dict[str, float]]:
    async with aiohttp.ClientSession(url) as http:
        async with http.get("/v1/models") as ready:  # answered once the models are loaded
            await ready.read()
        return await in_a_talk(http, process, count, settle_s)


async def in_a_talk(
    http: aiohttp.ClientSession, process: int, count: int, settle_s: float
) -> list[dict[str, float]]:
    rounds = []
    async with http.ws_connect("/v1/realtime") as wire:
        await first_sound(wire)
        await asyncio.sleep(settle_s)  # loading's leftovers are released when there was no request for a while
        for _ in range(count):
            await first_sound(wire)
            found = {"awake: first sound ms": await first_sound(wire), "awake: resident": resident(process)}
            found["awake: private"] = private(process)
            for state, prepare in (("warm", lambda: 0.0), ("cold", lambda: evict(let_go(process)))):
                found |= await slept(http, wire, process, state, prepare)
            found |= {"after: resident": resident(process), "after: private": private(process)}
            rounds.append(found)
    return rounds


async def slept(
    http: aiohttp.ClientSession,
    wire: aiohttp.ClientWebSocketResponse,
    process: int,
    state: str,
    prepare: Callable[[], float],
) -> dict[str, float]:
    """One sleep, ended by a request."""
    for _ in range(TRIES):  # after an answer the next one is prepared, which keeps them awake
        async with http.post("/v1/sleep") as answer:
            told = await answer.json()
        if told["asleep"]:
            break
        await asyncio.sleep(0.5)
    else:
        raise SystemExit(f"the models did not fall asleep: {told}")
    found = {f"{state}: freed": told["freed_bytes"], f"{state}: resident asleep": resident(process)}
    found[f"{state}: private asleep"] = private(process)
    found[f"{state}: share still cached"] = prepare()
    return found | {f"{state}: first sound ms": await first_sound(wire)}


async def first_sound(wire: aiohttp.ClientWebSocketResponse) -> float:
    """From the request to the first sound of its answer, in ms; returns when the answer is over."""
    asked = time.perf_counter()
    words = [{"type": "input_text", "text": SAYS}]
    await wire.send_json(
        {"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": words}}
    )
    await wire.send_json({"type": "response.create"})
    came = 0.0
    async for message in wire:
        event = message.json()
        if event["type"] == "response.output_audio.delta" and not came:
            came = time.perf_counter()
        if event["type"] == "error":
            raise SystemExit(f"the server refused: {event}")
        if event["type"] == "response.done":
            return (came - asked) * 1000
    raise SystemExit("the server closed the connection")


def let_go(process: int) -> list[Path]:
    """The nameless files in which the server's models wait."""
    files = Path(f"/proc/{process}/fd").iterdir()
    found = [file for file in files if re.search(r"/asleep/.* \(deleted\)$", str(file.readlink()))]
    if not found:
        raise SystemExit("the server has no open file of sleeping models")
    return found


def resident(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def private(process: int) -> int:
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    return sum(int(size) * 1024 for size in re.findall(r"(?m)^(?:Anonymous|Swap): +(\d+) kB", rollup))


if __name__ == "__main__":
    main()
