"""The time of a step on a card by arithmetic: bytes over bandwidth, or instructions over lanes, and a price a launch.

    T = max(bytes / bandwidth, instructions / lanes) + launches · price + kernels of a chunk

Bytes, launches and instructions are counted (`results/launches.json`, machine code of `capsules.nn.kernels`), bandwidth
and price were measured on the H100 and are estimates for other cards. A measurement that misses its prediction by more
than a third wants an explanation before the next kernel is written.
"""

import json
from dataclasses import dataclass
from pathlib import Path

LAUNCHES = json.loads((Path(__file__).parent / "results" / "launches.json").read_text("utf-8"))


@dataclass(frozen=True)
class Card:
    """read_tb_s of memory that a product reaches, 1e12 lane instructions per second, microseconds of a launch."""

    name: str
    read_tb_s: float
    lanes: float
    launch_us: float
    gib: int


CARDS = (
    Card("H100", 3.05, 29.6, 2.3, 80),
    Card("RTX 4090", 0.93, 41.0, 2.0, 24),
    Card("RTX 5090", 1.67, 52.0, 2.0, 32),
    Card("RTX 3060 12 GB", 0.33, 6.3, 2.0, 12),
    Card("RTX 4060 8 GB", 0.25, 7.5, 2.0, 8),
)
GB_READ = {  # of one step, by format
    "token": {"bfloat16": 8.52, "float8": 4.96, "int4": 2.76},
    "row": {"bfloat16": 7.35, "float8": 3.72, "int4": 2.06},
}
WEIGHTS = {"token": 3.57, "row": 3.60}
"""1e9 of the layers: those that are packed."""
INSTRUCTIONS = {"old": {"float8": 11.2, "int4": 10.1}, "new": {"float8": 6.3, "int4": 7.0}}
"""Instructions for one weight in the one-row product, on sm_90."""
H100_EXCESS_MS = {"float8": 1.15, "int4": 1.27}
"""Time of a token's packed products above memory, measured with the old kernel there: waiting for barriers, too."""
CHUNK_US = 20.0
"""Microseconds of a layer's own work in the chunk kernels, on an H100; other cards by their lanes."""
CODEC_MS = 0.8
"""Time of a window's convolutions in float32 without matrix units, on an H100: an estimate from their loops."""


def one_row(card: Card, kind: str, dtype: str, launches: int, new: bool) -> float:
    """Milliseconds of a token or a row of the voice."""
    memory = GB_READ[kind][dtype] / card.read_tb_s
    if dtype == "bfloat16":
        products = memory
    else:
        issued = INSTRUCTIONS["new" if new else "old"][dtype] * WEIGHTS[kind] / card.lanes
        products = max(memory, issued) if new or card.name != "H100" else memory + H100_EXCESS_MS[dtype]
    return products + launches * card.launch_us / 1e3


def chunk(card: Card, kind: str, dtype: str, launches: int, layers: int) -> float:
    """Milliseconds of a chunk of up to 64 rows, with the chunk kernels."""
    work = layers * CHUNK_US / 1e3 * CARDS[0].lanes / card.lanes
    return GB_READ[kind][dtype] / card.read_tb_s + launches * card.launch_us / 1e3 + work


def predictions(card: Card) -> dict[str, dict[str, float]]:
    """Milliseconds by case and side of the switches."""
    found: dict[str, dict[str, float]] = {}
    for dtype in ("bfloat16", "float8", "int4"):
        for kind, part, name in (("token", "language model", "token sampled"), ("row", "voice", "row")):
            sides = {"old": LAUNCHES["proven"][part][name], "new": LAUNCHES["all switches"][part][name]}
            case = {side: one_row(card, kind, dtype, count, side == "new") for side, count in sides.items()}
            found[f"{name}, {dtype}"] = case
        new = LAUNCHES["all switches"]
        found[f"append 24, {dtype}"] = {"new": chunk(card, "token", dtype, new["language model"]["chunk of 64"], 32)}
        prefill = chunk(card, "row", dtype, new["voice"]["prefill of a chunk"], 36)
        window = new["voice"]["window of 21"] * card.launch_us / 1e3 + CODEC_MS * CARDS[0].lanes / card.lanes
        found[f"first sound exact, {dtype}"] = {"new": 18 * found[f"row, {dtype}"]["new"] + prefill + window}
    return found


def table() -> str:
    """Markdown, a row per case."""
    every = {card.name: predictions(card) for card in CARDS}
    lines = ["| ms | " + " | ".join(every) + " |", "|" + "---|" * (len(every) + 1)]
    for case in every[CARDS[0].name]:
        cells = []
        for card in CARDS:
            sides = every[card.name][case]
            fits = GB_READ["token" if case.startswith(("token", "append")) else "row"][case.rsplit(", ", 1)[1]]
            told = " → ".join(f"{ms:.1f}" for ms in sides.values())
            cells.append(told if fits < 0.8 * card.gib else "–")
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
