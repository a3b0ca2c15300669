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
    """read_tb_s of memory that a product reaches, 1e12 lane instructions per second, microseconds of a launch; whether
    kernels may overlap."""

    name: str
    read_tb_s: float
    lanes: float
    launch_us: float
    gib: int
    overlaps: bool = False


CARDS = (
    Card("H100", 3.05, 29.6, 2.3, 80, overlaps=True),
    Card("RTX 4090", 0.93, 41.0, 2.0, 24),
    Card("RTX 5090", 1.67, 52.0, 2.0, 32, overlaps=True),
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
OLD_LAUNCH_US = {"token": 4.0, "row": 4.85, "window": 4.9}
"""A launch of a chunk, a voice's prefill and a codec window in the old form, with its small work: measured on the H100
in bfloat16, less the weights. Other cards by the price of a launch."""
PACKED_CHUNK_MS = {
    "token": {"bfloat16": 0.0, "float8": 4.3, "int4": 2.5}, "row": {"bfloat16": 0.0, "float8": 5.6, "int4": 5.6},
}  # fmt: skip
"""Time of a chunk's packed products above memory, measured on the H100 (not for the voice in four bits). No switch
changes it. Other cards by their lanes: it is arithmetic."""
CODEC_MS = 0.8
"""Time of a window's convolutions in float32 without matrix units, on an H100: an estimate from their loops."""
PDL_US = 1.1
"""Microseconds of a launch that overlap hides in a decoded step: an estimate from figures of others."""
ROWS_OF_FIRST_SOUND = 18


def one_row(card: Card, kind: str, dtype: str, launches: int, new: bool, pdl: bool = False) -> float:
    """Milliseconds of a token or a row of the voice."""
    price = card.launch_us - (PDL_US if pdl and card.overlaps else 0.0)
    memory = GB_READ[kind][dtype] / card.read_tb_s
    if dtype == "bfloat16":
        products = memory
    else:
        issued = INSTRUCTIONS["new" if new else "old"][dtype] * WEIGHTS[kind] / card.lanes
        products = max(memory, issued) if new or card.name != "H100" else memory + H100_EXCESS_MS[dtype]
    return products + launches * price / 1e3


def chunk(card: Card, kind: str, dtype: str, launches: int, layers: int, new: bool) -> float:
    """Milliseconds of a chunk of up to 64 rows."""
    share = CARDS[0].lanes / card.lanes
    price = card.launch_us if new else OLD_LAUNCH_US[kind] * card.launch_us / CARDS[0].launch_us
    own = layers * CHUNK_US / 1e3 * share if new else 0.0
    packed = PACKED_CHUNK_MS[kind][dtype] * share
    return GB_READ[kind][dtype] / card.read_tb_s + launches * price / 1e3 + own + packed


def window(card: Card, launches: int, new: bool) -> float:
    """Milliseconds of the codec's smallest window."""
    if new:
        return launches * card.launch_us / 1e3 + CODEC_MS * CARDS[0].lanes / card.lanes
    return launches * OLD_LAUNCH_US["window"] * card.launch_us / CARDS[0].launch_us / 1e3


def predictions(card: Card) -> dict[str, dict[str, float]]:
    """Milliseconds by case and side of the switches."""
    found: dict[str, dict[str, float]] = {}
    for dtype in ("bfloat16", "float8", "int4"):
        for side, name in (("old", "proven"), ("new", "all switches")):
            new, llm, tts = side == "new", LAUNCHES[name]["language model"], LAUNCHES[name]["voice"]
            token = one_row(card, "token", dtype, llm["token sampled"], new, new)
            row = one_row(card, "row", dtype, tts["row"], new, new)
            cell = chunk(card, "token", dtype, llm["chunk of 64"], 32, new)
            prefill = chunk(card, "row", dtype, tts["prefill of a chunk"], 36, new)
            sound = ROWS_OF_FIRST_SOUND * row + prefill + window(card, tts["window of 21"], new)
            cases = {"token sampled": token, "append 24": cell, "append 256": 4 * cell, "append 1024": 16 * cell,
                     "row": row, "first sound exact": sound}  # fmt: skip
            for case, ms in cases.items():
                found.setdefault(f"{case}, {dtype}", {})[side] = ms
    return found


def steps(card: Card, dtype: str) -> list[tuple[str, dict[str, float]]]:
    """Milliseconds after each switch, in the order in which they were built; those before it stay on."""
    old, new = (LAUNCHES[name] for name in ("proven", "all switches"))
    llm, tts = ({"old": old[part], "new": new[part]} for part in ("language model", "voice"))
    drawn = {side: counts["token sampled"] - counts["token"] for side, counts in llm.items()}
    made = []
    order = ("off", "PACKED", "JOINED", "DRAW", "CHUNK", "CODEC", "PDL")
    for on, switch in enumerate(order):
        joined, draw, cells, codec = ("new" if on >= first else "old" for first in (2, 3, 4, 5))
        row = one_row(card, "row", dtype, tts["new" if on >= 3 else "old"]["row"], on >= 1, on >= 6)
        cell = chunk(card, "token", dtype, llm[cells]["chunk of 64"], 32, on >= 4)
        prefill = chunk(card, "row", dtype, tts[cells]["prefill of a chunk"], 36, on >= 4)
        sound = ROWS_OF_FIRST_SOUND * row + prefill + window(card, tts[codec]["window of 21"], on >= 5)
        token = one_row(card, "token", dtype, llm[joined]["token"] + drawn[draw], on >= 1, on >= 6)
        made.append((switch, {"token": token, "append 24": cell, "row": row, "first sound": sound}))
    return made


def steps_table(dtype: str = "float8") -> str:
    """Markdown: after each switch, token / 24 tokens / first sound on every card. A row's launches count with DRAW."""
    lines = ["| after | " + " | ".join(card.name for card in CARDS) + " |", "|" + "---|" * (len(CARDS) + 1)]
    every = [steps(card, dtype) for card in CARDS]
    for at, (switch, _) in enumerate(every[0]):
        cells = [" / ".join(f"{one[at][1][case]:.1f}" for case in ("token", "append 24", "first sound"))
                 for one in every]  # fmt: skip
        lines.append(f"| {switch} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table() -> str:
    """Markdown, a row per case: switches off → on."""
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
