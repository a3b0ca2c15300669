"""Expected recompute after a rollback for each placement strategy, and the duration of the exact program.

    python benchmarks/placement.py [--length 8192] [--budgets 4 8 16 32 64] [--out benchmarks/results/placement.json]

The paper's block caching (every 64, every 128) and square root (every root of the length) keep as many checkpoints as
there are multiples, whatever the budget: their rows state the number. `block` and `square-root` below are the same
within the budget: the narrowest even spacing of that unit that covers the whole prefix.

Laws: the place in a prefix of `length` tokens to which a rollback returns. `drifting` is a stream of 2,000 rollbacks
around a peak that moves from 20 % to 90 % of the prefix: there the optimal strategy sees only the past, through
exponential weights (0.99), and solves again after every tenth. `document` and `chat` are made up too, modelled on
requests with full history: twenty questions about one document (80 % of the prefix) that is edited now and then; and a
continuing talk in which most requests share all but the last turn and some undo or edit an earlier one. `requests` is
not made up: it is where the requests really made by `benchmarks/reuse.py` (one document, twenty questions; a chat) left
the prefix that the previous one had folded, at their own length.
"""

import argparse
import json
from math import isqrt
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from capsules.placement import (
    GRID,
    RollbackHistogram,
    Strategy,
    every,
    expected_recompute,
    optimal,
    place,
    recompute,
)

REUSE = Path(__file__).parent / "results" / "reuse.json"
Law = NDArray[np.float64]


def laws(length: int) -> dict[str, Law]:
    """Laws that do not change."""
    t = np.arange(length + 1) / length

    def bell(centre: float, width: float) -> Law:
        return np.exp(-(((t - centre) / width) ** 2) / 2)

    turns = np.zeros(length + 1)
    for back in range(40):
        turns[max(1, length - 60 - 90 * back)] = 0.5**back if back < 6 else 0.01
    raw = {
        "uniform": (t > 0).astype(float),
        "peaked": bell(0.9, 0.02),
        "bimodal": bell(0.25, 0.03) + bell(0.95, 0.01),
        "document": 19 * (np.arange(length + 1) == length * 4 // 5) + (t > 0) * (t < 0.8) / length,
        "chat": turns,
    }
    return {name: p / p.sum() for name, p in raw.items()}


def requests(path: Path) -> tuple[int, Law]:
    """The length of the longest request, and where the later ones branched off, as found in the file."""
    small = json.loads(path.read_text("utf-8"))["small"]
    depths = [*small["document"]["cached"][1:], *(row["cached"] for row in small["chat"])]
    length = small["document"]["tokens"]
    law = np.bincount(depths, minlength=length + 1).astype(float)
    return length, law / law.sum()


def drifting(length: int, budget: int, steps: int = 2000) -> dict[str, float]:
    """Mean recompute over a stream of rollbacks, each served by the checkpoints placed before it."""
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
        seen.add_rollback(length - depth)
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


def paper(length: int, law: Law) -> dict[str, dict[str, float]]:
    """The paper's baselines by its own definitions: how many checkpoints they keep, and how much is replayed."""
    spots = {"block, every 64": every(64, length), "block, every 128": every(128, length)}
    spots["square root"] = every(isqrt(length), length)
    return {
        name: {"checkpoints": len(at), "tokens": expected_recompute(law, at)} for name, at in spots.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--budgets", type=int, nargs="+", default=[4, 8, 16, 32, 64])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    known = laws(args.length)
    tables: dict[int, dict[str, dict[str, float]]] = {}
    print(f"expected tokens to replay; {args.length} tokens, grid of {GRID}")
    print(f"{'':24}" + "".join(f"{name:>10}" for name in (*known, "drifting")))
    for budget in args.budgets:
        tables[budget] = {
            name: {str(s): expected_recompute(law, place(s, budget, law, GRID)) for s in Strategy}
            for name, law in known.items()
        } | {"drifting": drifting(args.length, budget)}
        for strategy in Strategy:
            row = "".join(f"{column[strategy]:10.1f}" for column in tables[budget].values())
            print(f"M = {budget:3} {strategy:16}{row}")
    theirs = {name: paper(args.length, law) for name, law in known.items()}
    for baseline in next(iter(theirs.values())):
        count = next(iter(theirs.values()))[baseline]["checkpoints"]
        row = "".join(f"{column[baseline]['tokens']:10.1f}" for column in theirs.values())
        print(f"M = {count:3} {baseline:16}{row}")
    length, law = requests(REUSE)
    real: dict[str, dict[str, float]] = {}
    for budget in args.budgets:
        real[str(budget)] = {str(s): expected_recompute(law, place(s, budget, law, GRID)) for s in Strategy}
        row = ", ".join(f"{s} {tokens:.1f}" for s, tokens in real[str(budget)].items())
        print(f"requests, {length} tokens, M = {budget:3} {row}")
    theirs_real = paper(length, law)
    told = [f"{name} (M = {row['checkpoints']}) {row['tokens']:.1f}" for name, row in theirs_real.items()]
    print(f"requests, {', '.join(told)}")
    took = seconds(100_000, 64, 5)
    print("exact solve, 100,000 positions, 64 checkpoints, n=5, median (least) processor s: ", end="")
    print(", ".join(f"{name} {sorted(t)[2]:.2f} ({min(t):.2f})" for name, t in took.items()))
    if args.out:
        facts = {"length": args.length, "tokens": tables, "paper": theirs, "solve_s": took}
        facts |= {"requests": {"length": length, "tokens": real, "paper": theirs_real}}
        args.out.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
