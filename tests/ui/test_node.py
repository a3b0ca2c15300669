"""The page's pure modules, run by Node's own test runner."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NODE = shutil.which("node")


@pytest.mark.skipif(
    NODE is None, reason="no Node here; install nodejs 20 or newer to run the page's unit tests"
)
@pytest.mark.parametrize("file", sorted(path.name for path in HERE.glob("*.test.mjs")))
def test_pure_modules(file: str) -> None:
    run = subprocess.run(
        [str(NODE), "--expose-gc", "--test-reporter=spec", "--test", file], cwd=HERE, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"pass (\d+)", run.stdout)
    assert passed and int(passed[1]) > 0, run.stdout
