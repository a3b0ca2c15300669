"""`assistant serve` while it loads: the page and `/healthz` answer, and a stop is clean."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PATIENCE = 120.0


@pytest.fixture
def starting(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server's process as soon as it names its page, and that address."""
    environment = os.environ | {"ASSISTANT_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "assistant", "serve", "--port", "0", "--no-browser", "--profile", "tiny"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("page "), line
    try:
        yield process, line.split()[1]
    finally:
        process.kill()
        process.communicate()


def health(url: str) -> dict[str, object]:
    with urllib.request.urlopen(f"{url}/healthz", timeout=PATIENCE) as answer:
        return json.load(answer)


def test_it_says_starting_serves_the_page_and_then_is_there(starting: tuple[subprocess.Popen[str], str]) -> None:
    _, url = starting
    assert health(url)["status"] == "starting"
    with urllib.request.urlopen(f"{url}/", timeout=PATIENCE) as answer:
        assert b"<title>" in answer.read()
    with urllib.request.urlopen(f"{url}/v1/models", timeout=PATIENCE) as answer:  # waits until somebody can answer
        assert len(json.load(answer)["data"]) > 1
    assert health(url)["status"] == "ok"


@pytest.mark.parametrize("after_s", [0.0, 0.6, 1.5])
def test_a_stop_while_it_loads_is_clean(starting: tuple[subprocess.Popen[str], str], after_s: float) -> None:
    process, _ = starting
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and said.splitlines()[-1].startswith("stopped"), said
    assert "Traceback" not in said
