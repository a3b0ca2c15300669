"""How many tokens a working set of talks folds again with room for eight: by worth, and by least recent use.

    python -m benchmarks.working_set [--visits 4000] [--measure] [--out benchmarks/results/working_set.json]

Talks of 200 to 4,000 tokens, whose states have a fixed part and a part that grows with them, return in one of three
patterns: in a circle; by popularity (Zipf); in bursts of turns with long pauses between. A state that is not found is
folded again. The results are counts of tokens and of visits that found their state, over the registry itself with its
clock set by hand; they do not depend on the speed of this machine. --measure times a token of prefill and a restore
here, for the shipped model and for random weights in a shape of 120 million (processor time, one thread, median of 20),
which turns the counts into the mean time of a visit. About half a minute, and half a minute more.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from benchmarks.reuse import LARGE, TINY
from capsules import Capsule, ExecContext, Fingerprint, StateKey
from capsules.registry import Registry, named_key
from capsules.tiers import MemoryTier, Mover
from llm_engine import HybridLLM
from llm_engine.model import init_params
from llm_engine.weights import save_checkpoint

REALM, HERE = StateKey("working set"), Fingerprint((("weights", "one"),))
FIXED_BYTES, TOKEN_BYTES = 400, 1
ROOM = 8
TALKS = (1, 2, 4, 8, 12, 16, 24, 32)


def lengths(talks: int) -> list[int]:
    return np.random.default_rng(talks).integers(200, 4000, talks).tolist()


def arrivals(pattern: str, talks: int, visits: int) -> Iterator[tuple[float, int]]:
    """(seconds since the previous visit, which talk)."""
    rng = np.random.default_rng(11)
    weights = 1 / np.arange(1, talks + 1)
    talk, left = 0, 0
    for visit in range(visits):
        if pattern == "circle":
            yield 10.0, visit % talks
        elif pattern == "popularity":
            yield float(rng.exponential(10)), int(rng.choice(talks, p=weights / weights.sum()))
        else:
            if not left:
                talk, left = int(rng.integers(talks)), int(rng.integers(2, 8))
                yield float(rng.exponential(60)), talk
            else:
                yield float(rng.exponential(6)), talk
            left -= 1


class LeastRecent(Registry):
    """The former order: by age alone."""

    def _worth(self, key: str, nbytes: int) -> float:
        return 0.0


def play(kind: type[Registry], pattern: str, talks: int, visits: int) -> dict[str, float]:
    sizes, now = lengths(talks), [0.0]
    mover = Mover(ExecContext("cpu"))
    mean = FIXED_BYTES + TOKEN_BYTES * 2100
    kept = kind([MemoryTier("host", torch.device("cpu"), ROOM * mean, mover)], mover, lambda: now[0])
    found = folded = counted = 0
    for visit, (pause, talk) in enumerate(arrivals(pattern, talks, visits)):
        now[0] += pause
        name, tokens = f"talk {talk}", sizes[talk]
        key = named_key(name, REALM)
        hit = kept.get(key) is not None
        kept.remove(key)  # as a lease does: the engine has it now
        if visit >= visits // 4:  # earlier visits only fill the budget
            counted, found, folded = counted + 1, found + hit, folded + (0 if hit else tokens)
        now[0] += 3.0
        state = torch.zeros(FIXED_BYTES + TOKEN_BYTES * tokens, dtype=torch.uint8)
        kept.put(Capsule(name, "llm", tokens, HERE, (), {}, {"s": state}), REALM, name=name)
        assert kept.store.used_bytes("host") <= ROOM * mean
    return {"found": found / counted, "folded_per_visit": folded / counted}


def measured() -> dict[str, dict[str, float]]:
    """For each model: milliseconds for a token of a long prefill, and for restoring a state of 2,100 tokens."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "large"
        shutil.copytree(TINY, folder)
        save_checkpoint(folder, LARGE, init_params(LARGE, torch.Generator().manual_seed(1), deviation=0.02))
        return {name: _timed(place) for name, place in (("small", TINY), ("120m", folder))}


def _timed(folder: Path) -> dict[str, float]:
    engine = HybridLLM.load(folder, ExecContext("cpu"), max_positions=4096)
    ids = [5 + n % 900 for n in range(2100)]
    begin = time.process_time()
    engine.append(ids)
    token_ms = (time.process_time() - begin) * 1000 / len(ids)
    capsule, rows = engine.snapshot(), []
    for _ in range(20):
        engine.reset()
        begin = time.process_time()
        engine.restore(capsule)
        rows.append((time.process_time() - begin) * 1000)
    return {"token_ms": token_ms, "restore_ms": statistics.median(rows)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visits", type=int, default=4000)
    parser.add_argument("--measure", action="store_true", help="time a token and a restore on this machine")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    times = measured() if args.measure else {}
    print(times, flush=True)
    rows = []
    for pattern in ("circle", "popularity", "bursts"):
        for talks in TALKS:
            row: dict[str, object] = {"pattern": pattern, "talks": talks}
            for name, kind in (("worth", Registry), ("least recent", LeastRecent)):
                got = play(kind, pattern, talks, args.visits)
                for model, cost in times.items():
                    got[f"{model}_ms"] = (
                        got["folded_per_visit"] * cost["token_ms"] + got["found"] * cost["restore_ms"]
                    )
                row[name] = got
            rows.append(row)
            told = "   ".join(f"{name} {row[name]['found']:6.1%} {row[name]['folded_per_visit']:7.1f}"  # type: ignore[index]
                              for name in ("worth", "least recent"))  # fmt: skip
            print(f"{pattern:12}{talks:4} talks   found, tokens folded a visit:   {told}", flush=True)
    if args.out:
        facts = {"visits": args.visits, "room": ROOM, "measured": times}
        args.out.write_text(json.dumps({**facts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
