"""Whether the models fit the GPU, told before a byte of them is read."""

from assistant.base.errors import SettingError

GIB = 1 << 30
WORKING_BYTES = 2 * GIB
"""Captured graphs, their temporaries, the libraries' workspaces: an allowance, not yet measured on a card."""


def plan(free_bytes: int, llm_bytes: int, tts_bytes: int, capsule_bytes: int) -> tuple[str, int]:
    """A line for a person, and how much of the capsules' budget there is room for.

    Raises SettingError if the models do not fit.
    """
    left = free_bytes - llm_bytes - tts_bytes - WORKING_BYTES
    told = (
        f"of {_gib(free_bytes)} free on the GPU the language model takes {_gib(llm_bytes)}, the voice "
        f"{_gib(tts_bytes)}, work {_gib(WORKING_BYTES)}"
    )
    if left < 0:
        raise SettingError(
            f"the models do not fit the GPU: {told}, {_gib(-left)} too much. Close other programs that use it, lower "
            "--max-positions, take --dtype float8 or a smaller --profile, or --device cpu"
        )
    room = min(left, capsule_bytes)
    return f"{told}; up to {_gib(room)} for capsules", room


def _gib(count: int) -> str:
    return f"{count / GIB:.1f} GiB"
