"""A talk with a published model from its GGUF file, by command."""

import json
import os
import subprocess
import sys
import urllib.request
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


def test_a_server_answers_with_it(tmp_path: Path) -> None:
    environment = os.environ | {"ASSISTANT_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "assistant", "serve", "--port", "0", "--no-browser", "--profile", "tiny"]
    command += ["--llm", str(smollm())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        asked = {"model": "local", "messages": [
            {"role": "system", "content": "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
            {"role": "user", "content": "What is the capital of France?"},
        ]}  # fmt: skip
        request = urllib.request.Request(
            f"{url}/v1/chat/completions", json.dumps(asked | {"temperature": 0, "max_tokens": 40}).encode(),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=300) as answer:
            choice = json.load(answer)["choices"][0]
        assert "Paris" in choice["message"]["content"] and choice["finish_reason"] == "stop"
    finally:
        process.kill()
        process.communicate()


def test_a_file_that_ends_early_is_refused_in_one_line(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(smollm().read_bytes()[:50_000_000])
    done = ask(tmp_path, "--llm", str(cut), "--say", "hello")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith("The file is damaged or incomplete; fetch it again.")
    assert "Traceback" not in done.stderr
