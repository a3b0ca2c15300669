"""Processes of talks killed at random moments, and states evicted: what `python -m benchmarks.kills` does 300 times."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("what", ["--kills", "--evictions"])
def test_a_talk_is_the_one_that_was_never_disturbed(tmp_path: Path, what: str) -> None:
    command = [sys.executable, "-m", "benchmarks.kills", what, "6", "--seed", "5"]
    command += ["--out", str(tmp_path / "found.json")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    found = json.loads((tmp_path / "found.json").read_text())[what.removeprefix("--")]["summary"]
    if what == "--kills":
        assert found["resumed"] > 2 and found["equal"] == found["resumed"] and not found["failed"], ran.stdout
    else:
        assert found["evictions"] > 5 and found["llm_equal"] == found["tts_equal"] == found["evictions"]
