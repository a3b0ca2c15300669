"""Decides whether the models fit the GPU, before a byte of them is read."""

from dataclasses import dataclass

from assistant.base.errors import SettingError

GIB = 1 << 30
WORKING_BYTES = 23 * GIB // 10
"""Captured graphs, their temporaries, the libraries' workspaces, and memory that torch holds from old capsules.

On an H100 with `desk`: 1.2 GiB at the start and 2.3 after 120 turns; with `desk-12`: 1.0 at the start (in the published
shapes). The driver's own 0.5 comes on top, and does not count as free."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`told` is a line for a person, `room` the part of the capsules' budget that fits, `eyes` whether the language
    model's eyes fit."""

    told: str
    room: int
    eyes: bool = True


def plan(free_bytes: int, llm_bytes: int, tts_bytes: int, capsule_bytes: int, eyes_bytes: int = 0) -> Plan:
    """Bytes of each on this GPU; 0 if it runs elsewhere. Eyes are left out if only they do not fit.

    Raises SettingError if the models do not fit.
    """
    takes = [("the language model", llm_bytes), ("its eyes", eyes_bytes), ("the voice", tts_bytes)]
    left = free_bytes - llm_bytes - eyes_bytes - tts_bytes - WORKING_BYTES
    eyes = left >= 0
    if not eyes:
        takes.remove(("its eyes", eyes_bytes))
        left += eyes_bytes
    told = f"{_gib(free_bytes)} are free on the GPU; needed: " + ", ".join(
        [f"{what} {_gib(count)}" for what, count in takes if count] + [f"work {_gib(WORKING_BYTES)}"]
    )
    if left < 0:
        raise SettingError(
            f"the models do not fit the GPU: {told}, {_gib(-left)} too much; close other programs that use it, lower "
            "--max-positions, use --dtype float8 or int4 or a smaller --profile, or --device cpu"
        )
    room = min(left, capsule_bytes)
    blind = f"; its eyes ({_gib(eyes_bytes)}) have no room and are left out" if eyes_bytes and not eyes else ""
    return Plan(f"{told}; up to {_gib(room)} for capsules{blind}", room, eyes)


def _gib(count: int) -> str:
    return f"{count / GIB:.1f} GiB"
