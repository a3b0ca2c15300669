"""The fused delta-net kernel: equal to the plain mixer in the interpreter, and machine code that fits every card."""

import pytest

from tests.capsules.kernel_tools import ARCHITECTURES, interpreted, launched
from tests.capsules.test_kernels import given, wide

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")


@pytest.mark.slow
def test_it_equals_the_plain_mixer_over_three_tokens() -> None:
    found = interpreted("tests.llm_engine.interpreted_delta_step")
    assert len(found) == 18
    wrong = {case: error for case, error in found.items() if error > (1e-2 if "bfloat16" in case else 2e-6)}
    assert not wrong


@pytest.mark.parametrize("heads", [32, 48])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_fits_every_card(architecture: int, heads: int) -> None:
    from llm_engine.delta_kernel import launch_delta_step

    channels, width = 2 * 16 * 128 + heads * 128, heads * 128
    row = given(1, channels + width)
    taken = (
        row[:, :channels], row[:, channels:], given(1, 2 * heads), given(3, channels), wide(4, channels), wide(heads),
        wide(heads), wide(128), wide(heads, 128, 128),
    )  # fmt: skip
    [launch] = launched(lambda: launch_delta_step(*taken, 1e-6))
    assert launch.compiled(architecture).lacks == []
