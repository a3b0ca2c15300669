"""Gains and costs of beginning replies before the turn is certain: whole turns with candidates, and without.

python -m benchmarks.candidates [--turns N] [--json FILE]     about six seconds a turn, twice; nothing else should run

Runs `assistant bench` once with candidates and once without, in separate processes, and compares: the time from the
certain turn to the first sound, voice to voice, the outcomes of the candidates, the engines' wasted work, and the
processor time of a turn.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

FIGURES = ("ttfa_ms", "voice_to_voice_ms", "front: voice_to_voice_ms", "front: processor_ms", "candidate_ready_ms",
           "wasted_ms")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/candidates_cpu.json"))
    args = parser.parse_args()
    found = {which: turns(which, args.turns) for which in ("on", "off")}
    on, off = found["on"]["later"], found["off"]["later"]
    for name in FIGURES:
        told = [f"{row[name]['median']:8.1f} {row[name]['p90']:8.1f}" if name in row else " " * 17 for row in (on, off)]
        print(f"{name:<28} on {told[0]}   off {told[1]}   (median, p90 of ms)")
    ratio = on["front: processor_ms"]["median"] / off["front: processor_ms"]["median"]
    print(f"candidates: {found['on']['candidates']}; processor time of a turn, on over off: {ratio:.2f}")
    args.json.write_text(json.dumps({**found, "processor_ratio": round(ratio, 3)}, indent=1) + "\n", "utf-8")


def turns(which: str, count: int) -> dict:
    """One run of the bench, as it saved it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.json"
        flags = [] if which == "on" else ["--without", "candidates"]
        command = [sys.executable, "-m", "assistant", "bench", *flags, "--turns", str(count)]
        subprocess.run([*command, "--json", str(path)], check=True)
        return json.loads(path.read_text("utf-8"))


if __name__ == "__main__":
    main()
