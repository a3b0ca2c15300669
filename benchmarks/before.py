"""Speed on a processor now and at an earlier commit, in turns on one machine: is anything slower?

    python -m benchmarks.before 6039bc0 [--minutes 8] [--out FILE.json]

Both engines with random weights: `benchmarks.llm` in int8, `benchmarks.tts` in float32, each in a process of its own,
of the earlier tree and of this one. Which of them begins changes from round to round, and the first round only builds
and warms up. Rounds go on until the minutes are over. A row is the median over rounds of now / then, with the smallest
and the largest round: below 1 is faster. Let nothing else run meanwhile.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parents[1]
LLM = ("benchmarks.llm", "--dtype", "int8", "--rounds", "3")
TTS = ("benchmarks.tts", "--repeats", "3")
SKIPPED = ("floor", "lead", "error")
"""No times of the engines."""


def milliseconds(tree: Path, folder: Path, threads: int) -> dict[str, float]:
    """The median of every case of both benchmarks, run in a tree."""
    found: dict[str, float] = {}
    for (module, *rest), out in ((LLM, "--out"), (TTS, "--json")):
        told = folder / "told.json"
        own = ["--folder", str(folder / f"{tree.name} llm")] if out == "--out" else []
        own += ["--kernels", str(folder / f"{tree.name} kernels")] if out == "--json" else []
        command = [sys.executable, "-m", module, *rest, *own, "--threads", str(threads), out, str(told)]
        around = os.environ | {"PYTHONPATH": str(tree)}
        done = subprocess.run(command, cwd=tree, env=around, capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"{module} in {tree} failed: {done.stderr.decode()[-500:]}")
        figures = json.loads(told.read_text("utf-8"))
        if out == "--out":
            found |= {f"llm, {case.split(' | ')[0]}": statistics.median(ms) for case, ms in figures["ms"].items()}
        else:
            found |= {f"tts, {name}": value["median"] if isinstance(value, dict) else value
                      for name, value in figures.items() if not name.startswith(("parameters", "row_bytes", "bandw"))
                      and not any(word in name for word in SKIPPED)}  # fmt: skip
    return {case: ms for case, ms in found.items() if not any(word in case for word in SKIPPED)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the earlier one")
    parser.add_argument("--minutes", type=float, default=8, help="no round begins that would end later")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as made:
        folder, then = Path(made), Path(made) / "then"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--detach", str(then), args.commit], check=True, capture_output=True)
        try:
            rounds = compare({"then": then, "now": HERE}, folder, args.threads, began + args.minutes * 60)
        finally:
            subprocess.run([*git, "remove", "--force", str(then)], check=True, capture_output=True)
    for line in table(rounds):
        print(line)
    if args.out:
        args.out.write_text(json.dumps({"before": args.commit, "rounds": rounds}, indent=1) + "\n", encoding="utf-8")


Round = dict[str, dict[str, float]]


def compare(trees: dict[str, Path], folder: Path, threads: int, end: float) -> list[Round]:
    """Rounds of both sides, the first left out."""
    rounds: list[Round] = []
    longest = 0.0
    while len(rounds) < 2 or time.monotonic() + longest < end:
        began = time.monotonic()
        order = list(trees) if len(rounds) % 2 else list(reversed(trees))
        rounds.append({side: milliseconds(trees[side], folder, threads) for side in order})
        longest = time.monotonic() - began
        print(f"round {len(rounds) - 1}: {longest:.0f} s", file=sys.stderr, flush=True)
    return rounds[1:]


def table(rounds: list[Round]) -> list[str]:
    """A line per case that both sides have."""
    lines = [f"{'case':34} {'then ms':>9} {'now ms':>9} {'now/then':>9} {'least':>6} {'most':>6}  n = {len(rounds)}"]
    for case in rounds[0]["now"]:
        if case not in rounds[0]["then"]:
            continue
        then, now = ([one[side][case] for one in rounds] for side in ("then", "now"))
        ratios = [one["now"][case] / one["then"][case] for one in rounds]
        lines.append(
            f"{case:34} {statistics.median(then):9.2f} {statistics.median(now):9.2f} {statistics.median(ratios):9.3f} "
            f"{min(ratios):6.3f} {max(ratios):6.3f}"
        )
    return lines


if __name__ == "__main__":
    main()
