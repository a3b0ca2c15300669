"""Ten minutes on a card: what it is, whether the new kernels are right there, and what each switch gains.

    python -m benchmarks.card                       all parts, in order; random weights, written first (18 GB)
    python -m benchmarks.card --only products       one part
    python -m benchmarks.card --dry                 on the processor with small shapes: does every part still run?
    python -m benchmarks.card --predict             what arithmetic expects of several cards, without one

Every part is a process of its own with its own limit. Its rows are appended to one file of JSON lines as soon as they
are known; a part that fails or takes too long is named, and the next begins. The last lines are a table: old and new
side of every switch, what was predicted, and the verdict. Both sides are taken in turns in one process.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.card_model import CARDS, predictions, steps_table, table
from benchmarks.card_parts import (
    CardBench,
    Row,
    checkpoint,
    facts,
    language,
    memory,
    products,
    profile,
    voice,
)
from benchmarks.card_whole import command, counters, llama, on_card, peer, picture, serve


@dataclass(frozen=True)
class CardPart:
    """`limit_s` on a card; a dry run has a minute for each."""

    name: str
    limit_s: int
    run: Callable[[CardBench], Iterator[Row]]


def weights(bench: CardBench) -> Iterator[Row]:
    for model in ("llm", "tts"):
        began = time.monotonic()
        path = checkpoint(bench, model)
        yield {"case": f"checkpoint of {model}", "s": time.monotonic() - began, "path": path.name}


TESTS = [sys.executable, "-m", "pytest", "-q", "-m"]
KERNELS = "tests/capsules/test_on_a_card.py"
DTYPES = ("bfloat16", "float8", "int4")
PARTS = [
    CardPart("facts", 30, facts),
    CardPart("weights", 150, weights),
    CardPart("products", 60, products),
    CardPart("kernels", 60, partial(command, what=[*TESTS, "gpu", KERNELS])),
    CardPart("sanitizer", 60, partial(on_card, what=["compute-sanitizer", *TESTS, "gpu", KERNELS])),
    *(CardPart(f"llm {dtype}", 60, partial(language, dtype=dtype)) for dtype in DTYPES),
    *(CardPart(f"tts {dtype}", 60, partial(voice, dtype=dtype)) for dtype in DTYPES),
    CardPart("profile", 40, profile),
    CardPart("ncu", 60, counters),
    CardPart("picture", 60, picture),
    CardPart("peer", 60, peer),
    CardPart("llama.cpp", 120, llama),
    CardPart("memory", 120, memory),
    CardPart("serve", 150, serve),
    CardPart("laws", 120, partial(command, what=[*TESTS, "gpu", "tests/capsules", "tests/llm_engine/test_laws.py"])),
]
DRY = ("facts", "weights", "products", "sanitizer", "llm float32", "tts float32", "profile", "ncu", "picture", "peer",
       "llama.cpp", "memory", "serve")  # fmt: skip
"""The models that are shipped are in float32 there. Parts that run tests are left out: the suite has them."""


def part_of(name: str) -> CardPart:
    """Raises KeyError for a name that is none."""
    every = {part.name: part for part in PARTS}
    every |= {"llm float32": CardPart("llm float32", 60, partial(language, dtype="float32"))}
    every |= {"tts float32": CardPart("tts float32", 60, partial(voice, dtype="float32"))}
    return every[name]


def note(out: Path, row: Row) -> None:
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def run_part(name: str, bench: CardBench, out: Path) -> None:
    """In this process."""
    for row in part_of(name).run(bench):
        note(out, {"part": name} | row)


def run_all(names: Sequence[str], args: argparse.Namespace) -> list[str]:
    """Each in a process of its own; returns the names of those that failed."""
    failed = []
    for name in names:
        limit, began = 60 if args.dry else part_of(name).limit_s, time.monotonic()
        what = [sys.executable, "-m", "benchmarks.card", "--part", name, "--out", str(args.out)]
        what += ["--folder", str(args.folder), *(["--dry"] if args.dry else [])]
        try:
            done = subprocess.run(what, timeout=limit * args.patience, capture_output=True, text=True, check=False)
            trouble = "" if done.returncode == 0 else (done.stderr.strip() or "no word").splitlines()[-1]
        except subprocess.TimeoutExpired:
            trouble = f"took longer than {limit * args.patience} s"
        if trouble:
            failed.append(name)
        note(args.out, {"part": name, "case": "part", "s": time.monotonic() - began, "trouble": trouble})
        print(f"{name}: {trouble or 'done'} ({time.monotonic() - began:.0f} s)", flush=True)
    return failed


def report(rows: Sequence[Row]) -> Iterator[str]:
    """A line per case that has two sides, with what was predicted for this card."""
    device = next((str(row.get("name", "")) for row in rows if row.get("case") == "device"), "")
    card = next((card for card in CARDS if card.name.split()[-1] in device or card.name in device), None)
    expected: dict[str, dict[str, float]] = predictions(card) if card else {}
    yield f"{device or 'no device'}: predictions {'of ' + card.name if card else 'unknown'}"
    yield f"{'case':40} {'old':>9} {'new':>9} {'new/old':>8} {'predicted':>9}  verdict"
    for row in rows:
        if "new" not in row or "old" not in row:
            continue
        told, old, new = row["case"], row["old"], row["new"]
        wanted = expected.get(told, {}).get("new")
        verdict = "" if wanted is None else "as predicted" if abs(new / wanted - 1) < 1 / 3 else "EXPLAIN"
        share = "" if wanted is None else f"{wanted:.2f}"
        yield f"{told[:40]:40} {old:9.3f} {new:9.3f} {new / old:8.2f} {share:>9}  {verdict}"
    for row in rows:
        wrong = [key for key, value in row.items() if value is False]
        if wrong:
            yield f"{row['part']}: {row['case']}: NOT {', '.join(wrong)}"
        if row.get("trouble"):
            yield f"{row['part']}: {row['trouble']}"


def read_rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()] if out.exists() else []


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[part.name for part in PARTS], action="append", help="repeat one part")
    parser.add_argument("--dry", action="store_true", help="on the processor, with small shapes")
    parser.add_argument("--predict", action="store_true", help="only print what arithmetic expects")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--patience", type=float, default=1.0, help="multiplies every limit")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "card", help="for checkpoints")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/card.jsonl"))
    args = parser.parse_args(arguments)
    if args.predict:
        print(f"{table()}\n\n{steps_table()}")
        return 0
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.part:
        run_part(args.part, CardBench("cpu" if args.dry else "cuda", args.folder), args.out)
        return 0
    failed = run_all(args.only or (DRY if args.dry else [part.name for part in PARTS]), args)
    print("\n".join(report(read_rows(args.out))))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
