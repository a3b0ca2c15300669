"""The cost of checkpoints in decoding: their share of its processor time, with learnt rollbacks and a full budget.

    python -m benchmarks.checkpoint_cost [--model llm_engine/tiny] [--kernels auto] [--out benchmarks/results/NAME.json]

Each round decodes `--tokens` tokens after a prompt of 200 and takes two processor times of the same run: the total, and
the part spent on considering a boundary, choosing which one goes, and copying the state. One thread. Half a minute.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import torch

from assistant.app.config import load_config
from assistant.device.execution import open_context
from llm_engine import HybridLLM, Sampling

PROMPT = list(range(5, 205))


class Measured:
    """Adds up the processor time of one method of an engine."""

    def __init__(self, inner: Callable[[], None]) -> None:
        self._inner = inner
        self.seconds = 0.0
        self.calls = 0

    def __call__(self) -> None:
        began = process_time()
        self._inner()
        self.seconds += process_time() - began
        self.calls += 1


def rounds(llm: HybridLLM, count: int, tokens: int) -> list[dict[str, float]]:
    marks = Measured(llm._sequence.mark)
    llm._sequence.mark = marks  # type: ignore[method-assign]
    rows = []
    for number in range(count + 2):
        llm.reset()
        llm.append(PROMPT)
        llm.decode(64, Sampling.greedy())
        for back in (3, 11, 25, 40):  # gives it data to choose by
            llm.rollback(llm.position - back)
            llm.decode(back)
        before, calls, began = marks.seconds, marks.calls, process_time()
        llm.decode(tokens)
        spent = process_time() - began
        if number >= 2:
            taken = marks.seconds - before
            rows.append({"decode_ms": spent * 1e3, "marks_ms": taken * 1e3, "marks": marks.calls - calls,
                         "share": taken / (spent - taken)})  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("llm_engine/tiny"))
    parser.add_argument("--kernels", choices=("auto", "torch"), default="auto")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    ctx = open_context("cpu", 1, args.kernels, load_config().compiled)
    rows = rounds(HybridLLM.load(args.model, ctx), args.rounds, args.tokens)
    shares = sorted(row["share"] for row in rows)
    token_ms = median(row["decode_ms"] for row in rows) / args.tokens
    print(f"{ctx.describe()}: checkpoints take {median(shares):.2%} of decoding ({shares[0]:.2%}..{shares[-1]:.2%}, "
          f"n={len(rows)} times {args.tokens} tokens at {token_ms:.2f} ms)")  # fmt: skip
    if args.out:
        facts = {"deployment": ctx.describe(), "cpus": os.cpu_count(), "python": sys.version.split()[0]}
        args.out.write_text(json.dumps({**facts, "tokens": args.tokens, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
