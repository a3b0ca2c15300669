"""From process start to the first sound of an answer, part by part; and the time until a server's page is reachable.

    python -m benchmarks.start                       writes benchmarks/results/start.json, about a minute
    python -m benchmarks.start --before FOLDER       the same for another checkout too, alternating
    python -m benchmarks.start --cold                drop files from the page cache before each; three minutes

A start is `assistant ask --say` with the shipped models, in a separate process. Its parts are the lines that it
reports, each with the time and the processor time since the process began; the last is the first sound. The very first
start, which compiles bytecode, kernels and recordings, is listed separately. The machine should be idle: other load
shows in the wall clock, so processor time is given too, and files mapped by others cannot leave the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from benchmarks.page_cache import evict

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PATIENCE_S = 300.0
FIRST = "first sound"
LIBRARIES = sorted({Path(sys.base_prefix, "lib"), Path(sys.prefix, "lib")})
SERVE = ("serve", "--port", "0", "--no-browser", "--profile", "tiny")
PROBE = """
import json, sys, time
def note(part):
    print("\\x1f" + json.dumps([part, time.monotonic(), time.process_time()]), file=sys.stderr, flush=True)
note("interpreter")
from assistant.commands._front import Follow
from assistant.events import AudioDelta
note("command")
take, waiting = Follow.take, [True]
def noted(self, event):
    if isinstance(event, AudioDelta) and waiting:
        waiting.clear()
        note("first sound")
    return take(self, event)
Follow.take = noted
write = sys.stderr.write
def line(text):
    if text.startswith("\\u00b7 "):
        note(text[2:].split(" from ")[0].split(" after ")[0].strip())
    return write(text)
sys.stderr.write = line
from assistant.cli import main
sys.exit(main(["ask", "--say", "what time is it", "--profile", "tiny"]))
"""


def main() -> None:
    args = _arguments()
    trees = {"now": ROOT} | ({"before": args.before.resolve()} if args.before else {})
    found: dict[str, dict[str, list[object]]] = {name: {"ask": [], "serve": []} for name in trees}
    stayed: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        homes = {name: Path(scratch) / name for name in trees}
        firsts = {name: ask(tree, homes[name]) for name, tree in trees.items()}
        for _ in range(args.rounds):
            for name, tree in trees.items():
                for kind, start in (("ask", ask), ("serve", serve)):
                    if args.cold:
                        stayed.append(evict([tree, homes[name], *LIBRARIES]))
                    found[name][kind].append(start(tree, homes[name]))
    result = {"machine": machine(), "rounds": args.rounds, "cold": args.cold, "share_still_cached": stayed,
              "first_start": firsts, "starts": found}  # fmt: skip
    args.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    for name, start in firsts.items():
        print(f"{name}, the very first start: {start[-1][1]:.2f} s")
    for name in trees:
        print(f"{name}, median of {args.rounds}:")
        print("\n".join(table(found[name]["ask"])))  # type: ignore[arg-type]
        for row in ("page", "ready"):
            seconds = statistics.median(one[row] for one in found[name]["serve"])  # type: ignore[index]
            print(f"  serve: {row:<32} {seconds:6.2f} s")


def ask(tree: Path, home: Path) -> list[tuple[str, float, float]]:
    """[(part, seconds since the process began, its processor seconds)] of one start."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", PROBE], cwd=tree, env=environment(tree, home), stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    _, said = process.communicate(timeout=PATIENCE_S)
    notes = [json.loads(line[1:]) for line in said.splitlines() if line.startswith("\x1f")]
    if process.returncode or not notes or notes[-1][0] != FIRST:
        raise SystemExit(f"a start failed:\n{said}")
    return [(part, round(at - began, 4), round(used, 4)) for part, at, used in notes]


def serve(tree: Path, home: Path) -> dict[str, float]:
    """Seconds until the page is served, and until the models are ready."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "assistant", *SERVE], cwd=tree, env=environment(tree, home) | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        url = next(line.split()[1] for line in process.stdout if line.startswith("page "))
        with urllib.request.urlopen(f"{url}/", timeout=PATIENCE_S) as answer:
            answer.read()
        page = time.monotonic() - began
        with urllib.request.urlopen(f"{url}/v1/models", timeout=PATIENCE_S) as answer:
            answer.read()
        return {"page": round(page, 4), "ready": round(time.monotonic() - began, 4)}
    finally:
        process.kill()
        process.communicate()


def environment(tree: Path, home: Path) -> dict[str, str]:
    """Each tree has its own home and cache, so that neither finds the other's files. Bytecode is cached, as in normal
    use: the first start compiles it and later ones only read it."""
    kept = {"PYTHONPATH": str(tree), "ASSISTANT_HOME": str(home / "home"), "XDG_CACHE_HOME": str(home / "cache")}
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | kept


def table(starts: list[list[tuple[str, float, float]]]) -> list[str]:
    """Medians of when each part began, and of its duration and processor time until the next."""
    rows = []
    for index, (part, _, _) in enumerate(starts[0]):
        wall = [start[index][1] for start in starts]
        used = [start[index][2] for start in starts]
        rows.append(f"  {part:<40} {statistics.median(wall):6.2f} s  processor {statistics.median(used):6.2f} s")
    last = [start[-1][1] for start in starts]
    return [*rows, f"  {FIRST}: {min(last):.2f} to {max(last):.2f} s"]


def machine() -> dict[str, object]:
    model = next((line.split(":")[1].strip() for line in _cpu_lines() if line.startswith("model name")), "")
    return {"processor": model or platform.processor(), "cores": os.cpu_count(), "load": os.getloadavg()}


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.is_file() else []


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout, for comparison")
    parser.add_argument("--cold", action="store_true", help="drop the files from the page cache before each start")
    parser.add_argument("--json", type=Path, metavar="FILE", help="default: start.json, start_cold.json")
    args = parser.parse_args()
    args.json = args.json or RESULTS / ("start_cold.json" if args.cold else "start.json")
    return args


if __name__ == "__main__":
    main()
