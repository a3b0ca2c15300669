"""A talk with a published model from its GGUF file, by command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.smollm import smollm

pytestmark = pytest.mark.slow


def ask(home: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "assistant", "ask", "--profile", "tiny", *flags]
    environment = os.environ | {"ASSISTANT_HOME": str(home)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)


def test_smollm_answers_out_of_its_file(tmp_path: Path) -> None:
    flags = "--say", "What is the capital of France?", "--json", f"{tmp_path}/said"
    done = ask(tmp_path, "--llm", str(smollm()), *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "said").read_text("utf-8"))
    assert told["facts"]["llm"] == smollm().name and told["facts"]["capsules"]
    [turn] = told["turns"]
    assert turn["status"] == "completed" and len(turn["said"].split()) > 1
    beside = {path.name for path in smollm().parent.iterdir()}
    assert beside == {smollm().name}, "nothing is stored beside a file that may be another program's"


def test_a_file_that_ends_early_is_refused_in_one_line(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(smollm().read_bytes()[:50_000_000])
    done = ask(tmp_path, "--llm", str(cut), "--say", "hello")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith("The file is damaged or incomplete; fetch it again.")
    assert "Traceback" not in done.stderr
