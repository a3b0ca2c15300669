"""What the interpreter shows of the new kernels, shown by a card: the same cases, in hardware's own rounding."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.gpu

MOST = {"float32": 3e-6, "bfloat16": 1e-2}


@pytest.mark.parametrize(
    "module",
    ["tests.capsules.interpreted_packed_row", "tests.capsules.interpreted_joined",
     "tests.llm_engine.interpreted_delta_rows"],
)  # fmt: skip
def test_every_case_holds_in_hardware(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "cuda"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    wrong = {
        case: error
        for case, error in found.items()
        if not case.endswith(" plain") and not error <= MOST["bfloat16" if "bfloat16" in case else "float32"]
    }
    assert not wrong
