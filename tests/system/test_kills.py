"""Processes of talks killed at random moments, and states evicted: what `python -m benchmarks.kills` does 300 times."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_a_talk_is_the_one_that_was_never_disturbed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.kills", "--kills", "6", "--evictions", "6", "--seed", "5"]
    command += ["--out", str(tmp_path / "found.json")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    found = json.loads((tmp_path / "found.json").read_text())
    kills, evictions = found["kills"]["summary"], found["evictions"]["summary"]
    assert kills["resumed"] > 2 and kills["equal"] == kills["resumed"] and not kills["failed"], ran.stdout
    assert evictions["evictions"] > 5 and evictions["llm_equal"] == evictions["tts_equal"] == evictions["evictions"]
