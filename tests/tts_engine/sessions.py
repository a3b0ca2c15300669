"""What the tests of a session share: running it, reading its state, spoiling what must not matter."""

import torch
from torch import Tensor

from capsules import Role
from tests.capsules.toy import dead_view
from tts_engine.engine import HiggsTTS

SCOPE = "tts"


def run(tts: HiggsTTS, steps: int | None = None) -> list[list[int]]:
    """Step until idle, or so many rows; the rows sampled so far, of all pieces."""
    done = 0
    while steps is None or done < steps:
        kind = tts.step().kind
        if kind == "idle":
            break
        done += kind == "row"
    return rows(tts)


def rows(tts: HiggsTTS) -> list[list[int]]:
    return [row for piece in tts._generator.session.pieces for row in piece.rows]


def sound(tts: HiggsTTS) -> Tensor:
    """All audio that can be taken now."""
    parts = []
    while (found := tts.take_audio()) is not None:
        parts.append(found.pcm)
    return torch.cat(parts) if parts else torch.zeros(0)


def state_bytes(tts: HiggsTTS) -> dict[str, bytes]:
    """The live bytes of the closure."""
    return {
        b.name: b.live_view(tts.position).contiguous().cpu().view(torch.uint8).numpy().tobytes()
        for b in tts._ctx.buffers(SCOPE, Role.STATE)
    }


def scramble(tts: HiggsTTS) -> None:
    """Large finite junk in all state and io."""
    for buffer in tts._ctx.buffers(SCOPE):
        if buffer.role is not Role.WEIGHT:
            buffer.tensor.fill_(3 if buffer.tensor.dtype == torch.int64 else 777.0)


def poison_dead(tts: HiggsTTS) -> None:
    """Junk wherever no step may look."""
    for buffer in tts._ctx.buffers(SCOPE, Role.STATE):
        dead_view(buffer, tts.position).fill_(999)
