"""Expected recompute after a rollback for each placement strategy, and how long the exact program takes.

    python benchmarks/placement.py [--length 8192] [--budget 8] [--out benchmarks/results/placement.json]

Laws: where in a prefix of `length` tokens a rollback lands. `drifting` is a stream of 2,000 rollbacks around a peak
that moves from 20 % to 90 % of the prefix: there the optimal strategy sees only what has happened so far, through
exponential weights (0.99), and solves again after every tenth.
"""

import argparse
import json
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from capsules.placement import GRID, RollbackHistogram, Strategy, expected_recompute, optimal, place, recompute

Law = NDArray[np.float64]


def laws(length: int) -> dict[str, Law]:
    """Laws that do not change."""
    t = np.arange(length + 1) / length

    def bell(centre: float, width: float) -> Law:
        return np.exp(-(((t - centre) / width) ** 2) / 2)

    raw = {"uniform": (t > 0).astype(float), "peaked": bell(0.9, 0.02), "bimodal": bell(0.25, 0.03) + bell(0.95, 0.01)}
    return {name: p / p.sum() for name, p in raw.items()}


def drifting(length: int, budget: int, steps: int = 2000) -> dict[str, float]:
    """Mean recompute over a stream of rollbacks, each served by what was placed before it."""
    rng = np.random.default_rng(5)
    centres = np.linspace(0.2, 0.9, steps)
    depths = np.clip(rng.normal(centres * length, 0.02 * length), 1, length).astype(int)
    flat = laws(length)["uniform"]
    means = {s: float(recompute(length, place(s, budget, flat, GRID))[depths].mean()) for s in Strategy}
    seen, spots, total = RollbackHistogram(), place(Strategy.OPTIMAL, budget, flat, GRID), 0
    for step, depth in enumerate(depths.tolist()):
        if step % 10 == 0 and step:
            spots = place(Strategy.OPTIMAL, budget, seen.law(length), GRID)
        total += depth - max((s for s in spots if s <= depth), default=0)
        seen.observe(length - depth)
    means[Strategy.OPTIMAL] = total / steps
    return {str(k): v for k, v in means.items()}


def seconds(length: int, budget: int, repeats: int) -> dict[str, list[float]]:
    """Processor time of one exact solve over every position, per law: other work on the machine does not count."""
    took: dict[str, list[float]] = {}
    for name, law in laws(length).items():
        for _ in range(repeats):
            began = process_time()
            optimal(law, budget)
            took.setdefault(name, []).append(process_time() - began)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--budget", type=int, default=8)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    table = {
        name: {str(s): expected_recompute(law, place(s, args.budget, law, GRID)) for s in Strategy}
        for name, law in laws(args.length).items()
    }
    table["drifting"] = drifting(args.length, args.budget)
    print(f"expected tokens to replay; {args.length} tokens, {args.budget} checkpoints, grid of {GRID}")
    print(f"{'':14}" + "".join(f"{name:>10}" for name in table))
    for strategy in Strategy:
        print(f"{strategy:14}" + "".join(f"{column[strategy]:10.1f}" for column in table.values()))
    took = seconds(100_000, 64, 5)
    print("exact solve, 100,000 positions, 64 checkpoints, n=5, median (least) processor s: ", end="")
    print(", ".join(f"{name} {sorted(t)[2]:.2f} ({min(t):.2f})" for name, t in took.items()))
    if args.out:
        args.out.write_text(
            json.dumps({"arguments": vars(args) | {"out": None}, "tokens": table, "solve_s": took}, indent=1)
        )


if __name__ == "__main__":
    main()
