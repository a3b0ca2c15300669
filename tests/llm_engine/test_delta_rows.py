"""The delta-net kernels of a row and of a chunk: as near to float64 as the plain form, and code for every card."""

import pytest

from tests.capsules.kernel_tools import ARCHITECTURES, Launch, interpreted, launched
from tests.capsules.test_kernels import given, long, wide

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")


def launches(rows: int, heads: int, hidden: int = 2560) -> list[Launch]:
    """As they are launched for the 4B and the 9B (32 value heads), and for the 27B (48)."""
    from llm_engine.delta_row import launch_delta_row
    from llm_engine.delta_rows import launch_delta_rows

    channels, width = 2 * 16 * 128 + heads * 128, heads * 128
    both = given(rows, channels + width)
    taken = (
        given(rows, hidden), both[:, :channels], both[:, channels:], given(2 * heads, hidden), given(3, channels),
        wide(4, channels), wide(heads), wide(heads), wide(128), wide(heads, 128, 128),
    )  # fmt: skip
    if rows == 1:
        return launched(lambda: launch_delta_row(*taken, 1e-6))
    return launched(lambda: launch_delta_rows(*taken, long(1), 1e-6))


@pytest.mark.slow
def test_they_equal_the_mixer_in_float64() -> None:
    found = interpreted("tests.llm_engine.interpreted_delta_rows")
    assert len(found) == 66
    for case, error in found.items():
        if case.endswith("window"):
            assert error == 0, case
        elif "bfloat16" in case:  # the interpreter cuts off where hardware rounds
            assert error < 1e-2, case
        elif not case.endswith("plain"):
            assert error <= max(2 * found.get(f"{case} plain", 0.0), 5e-7), case


@pytest.mark.slow
@pytest.mark.parametrize("heads", [32, 48])
@pytest.mark.parametrize("rows", [1, 8, 24, 40, 64])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_they_fit_every_card(architecture: int, rows: int, heads: int) -> None:
    made = launches(rows, heads)
    assert len(made) == (2 if rows == 1 else 4)
    for launch in made:
        assert launch.compiled(architecture).lacks == [], launch.name


def test_a_row_stands_on_the_whole_card() -> None:
    rule, _ = launches(1, 32)
    assert rule.grid == (32, 4), "four programs a head: 128 where there are 132 units"
