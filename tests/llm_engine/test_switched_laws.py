"""With every switch on a whole engine keeps the laws bit for bit, and computes what the plain engine computes."""

import pytest

from tests.capsules.kernel_tools import interpreted

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")


@pytest.mark.slow
def test_an_engine_on_the_interpreter_keeps_the_laws() -> None:
    found = interpreted("tests.llm_engine.interpreted_laws")
    assert found.pop("graphs") == -8, "five chunks, one step, two draws: one bucket"
    for case, error in found.items():
        assert error <= (1e-5 if case.startswith("logits") else 0.0), case


@pytest.mark.slow
def test_plain_decoders_and_mixtures_compute_the_same_with_every_switch_on_and_off() -> None:
    found = interpreted("tests.llm_engine.interpreted_families")
    assert len(found) == 2 * 3, "with and without norms of heads, a stretched rotary, experts; plain and packed"
    for case, error in found.items():
        assert error <= 1e-5, case
