"""The fused delta-net kernel: equal to the plain mixer in the interpreter, and machine code that fits every card."""

import pytest

from tests.capsules.kernel_tools import ARCHITECTURES, interpreted, shortcomings

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")


@pytest.mark.slow
def test_it_equals_the_plain_mixer_over_three_tokens() -> None:
    found = interpreted("tests.llm_engine.interpreted_delta_step")
    assert len(found) == 18
    wrong = {case: error for case, error in found.items() if error > (1e-2 if "bfloat16" in case else 2e-6)}
    assert not wrong


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_fits_every_card(architecture: int) -> None:
    from llm_engine.delta_kernel import delta_step_kernel

    small = dict.fromkeys(("mixed", "gate", "ba", "window", "out"), "*bf16")
    wide = dict.fromkeys(("conv", "decay", "dt_bias", "norm", "memory"), "*fp32")
    sizes = dict.fromkeys(("share", "heads", "channels", "key_dim"), "i32")
    scalars = dict.fromkeys(("eps", "unit_eps", "query_scale"), "fp32")
    constants: dict[str, object] = {"TAPS": 4, "KEY": 128, "VALUE": 128}
    assert shortcomings(delta_step_kernel, small | wide | sizes | scalars, constants, 8, architecture) == []
