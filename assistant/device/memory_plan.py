"""Decides whether the models fit the GPU, before a byte of them is read."""

from dataclasses import dataclass

from assistant.base.errors import SettingError

GIB = 1 << 30
WORKING_BYTES = {"packed": 13 * GIB // 10, "plain": 23 * GIB // 10}
"""Captured graphs, their temporaries, the libraries' workspaces, and memory that torch holds from old capsules: if all
models here are packed, and if one is not.

On an H100 with `desk`: 1.2 GiB at the start and 2.3 after 120 turns; with `desk-12`: 1.0 at the start (in the published
shapes). The driver's own 0.5 comes on top, and does not count as free. The growth over the turns came from capsules of
ever other sizes; they have few sizes since. No card has shown that yet, so 0.3 are reserved for it, and all of it for
`desk`."""
LEAN_CHECKPOINTS, LEAN_VOICE_POSITIONS = 4, 2048
"""For scarce memory: fewer places that a language model can go back to, and 80 s of a voice's own context."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`told` is a line for a person, `room` the part of the capsules' budget that fits, `eyes` whether the language
    model's eyes fit, `lean` whether both engines must do with less state."""

    told: str
    room: int
    eyes: bool = True
    lean: bool = False


@dataclass(frozen=True, slots=True)
class Needs:
    """Bytes of each on this GPU; 0 if it runs elsewhere. `spare`: how much less they take if they must be lean;
    `packed`: whether all matrices here are packed."""

    llm: int
    tts: int
    eyes: int = 0
    spare: int = 0
    packed: bool = False


def plan(free_bytes: int, needs: Needs, capsule_bytes: int) -> Plan:
    """Eyes are left out if only they do not fit; if the models alone do not fit, they are lean.

    Raises SettingError if the models do not fit even so.
    """
    work, eyes_bytes = WORKING_BYTES["packed" if needs.packed else "plain"], needs.eyes
    takes = [("the language model", needs.llm), ("its eyes", eyes_bytes), ("the voice", needs.tts)]
    left = free_bytes - needs.llm - eyes_bytes - needs.tts - work
    eyes = left >= 0
    if not eyes:
        takes.remove(("its eyes", eyes_bytes))
        left += eyes_bytes
    lean = left < 0 <= left + needs.spare
    if lean:
        left += needs.spare
    told = f"{_gib(free_bytes)} are free on the GPU; needed: " + ", ".join(
        [f"{what} {_gib(count)}" for what, count in takes if count] + [f"work {_gib(work)}"]
    )
    if left < 0:
        raise SettingError(
            f"the models do not fit the GPU: {told}, {_gib(-left)} too much; close other programs that use it, lower "
            "--max-positions, use --dtype float8 or int4 or a smaller --profile, or --device cpu"
        )
    room = min(left, capsule_bytes)
    blind = f"; its eyes ({_gib(eyes_bytes)}) have no room and are left out" if eyes_bytes and not eyes else ""
    less = f", {_gib(needs.spare)} less by fewer checkpoints and a shorter context of the voice" if lean else ""
    return Plan(f"{told}{less}; up to {_gib(room)} for capsules{blind}", room, eyes, lean)


def _gib(count: int) -> str:
    return f"{count / GIB:.1f} GiB"
