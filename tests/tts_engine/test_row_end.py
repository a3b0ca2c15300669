"""The kernel that closes a row: the very integers of the step's own operators, and code that fits every card."""

import pytest

from tests.capsules.kernel_tools import ARCHITECTURES, interpreted, launched
from tests.capsules.test_kernels import given, long

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")


@pytest.mark.slow
def test_it_leaves_what_the_plain_form_leaves() -> None:
    found = interpreted("tests.tts_engine.interpreted_row_end")
    assert found.pop("ended") == 1, "the last piece has no end"
    assert len(found) == 7 and not any(found.values()), found


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_fits_every_card(architecture: int) -> None:
    from tts_engine.row_end import launch_row_end

    one = long(1)
    [launch] = launched(
        lambda: launch_row_end(
            long(8), given(1, 2560), long(2), long(8), one, one, one, long(4352, 8), long(4352, 2), long(21), 1024
        )
    )
    assert launch.compiled(architecture).lacks == []
