"""The kernel that closes a row in Triton's interpreter, against the step's own operators, over whole pieces.

Run as its own process with TRITON_INTERPRET=1; prints one JSON line: which state differs, by buffer.
"""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import torch

from tests.tts_engine.miniature import PUBLISHED, config_json
from tts_engine.config import parse_config
from tts_engine.row_end import launch_row_end
from tts_engine.state import ENDLESS, State
from tts_engine.steps import Steps

BUFFERS = ("row", "count", "total", "position", "rows", "track", "out")


def state(books: int) -> Any:
    return SimpleNamespace(
        rows=torch.zeros(64, books, dtype=torch.int64), track=torch.zeros(64, 2, dtype=torch.int64),
        position=torch.tensor([5]), row=torch.zeros(books, dtype=torch.int64), count=torch.tensor([0]),
        total=torch.tensor([ENDLESS]), cursor=torch.tensor([3, 4]), out=torch.zeros(2 * books + 5, dtype=torch.int64),
    )  # fmt: skip


def main() -> None:
    config = parse_config(config_json(replace(PUBLISHED, layers=1)))
    audio, noise = config.audio, torch.Generator().manual_seed(0)
    found = dict.fromkeys(BUFFERS, 0)
    for ends_at in (9, 17, 99):
        plain, ours = state(audio.codebooks), state(audio.codebooks)
        steps = Steps(config, cast(Any, None), cast(Any, None), cast(Any, None), cast(State, plain), 7)
        for at in range(30):
            drawn = torch.randint(0, audio.size, (audio.codebooks,), generator=noise)
            drawn[0] = audio.eoc if at == ends_at else drawn[0]
            hidden = torch.randn(1, 130, generator=noise)
            hidden[0, at] = (1.0, float("nan"), float("inf"), -float("inf"))[at % 4]
            steps._end_row(drawn, hidden)
            launch_row_end(
                drawn, hidden, ours.cursor, ours.row, ours.count, ours.total, ours.position, ours.rows, ours.track,
                ours.out, audio.size,
            )  # fmt: skip
            for name in BUFFERS:
                found[name] += int(not torch.equal(getattr(plain, name), getattr(ours, name)))
    found["ended"] = int(ours.total == ENDLESS)
    print(json.dumps(found))


if __name__ == "__main__":
    with torch.no_grad():
        main()
