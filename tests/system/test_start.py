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


BEFORE_THE_PAGE = """
import sys
from assistant.app.config import load_config
from assistant.app.places import check_models
import assistant.server.app
check_models(load_config({"profile": "tiny"}))
print(*{"torch", "onnxruntime", "PIL", "scipy", "jinja2", "llm_engine", "tts_engine.engine"}.intersection(sys.modules))
"""


def test_the_page_waits_for_no_library_of_the_models(tmp_path: Path) -> None:
    environment = os.environ | {"ASSISTANT_HOME": str(tmp_path)}
    command = [sys.executable, "-c", BEFORE_THE_PAGE]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and done.stdout.strip() == "", done.stdout + done.stderr


@pytest.mark.parametrize("after_s", [0.0, 0.6, 1.5])
def test_a_stop_while_it_loads_is_clean(starting: tuple[subprocess.Popen[str], str], after_s: float) -> None:
    process, _ = starting
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and said.splitlines()[-1].startswith("stopped"), said
    assert "Traceback" not in said


def ask(url: str, words: str) -> str:
    body = json.dumps({"model": "local", "messages": [{"role": "user", "content": words}], "temperature": 0}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


def command(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "assistant", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="memory is let go on Linux only")
def test_the_models_sleep_when_told_and_wake_when_asked(starting: tuple[subprocess.Popen[str], str]) -> None:
    _, url = starting
    said = ask(url, "Count to five.")
    told = command("sleep", "--url", url)
    assert "the models sleep" in told and int(told.split("; ")[1].split()[0]) > 50, told
    assert health(url)["asleep"] is True
    assert ask(url, "Count to five.") == said
    assert health(url)["asleep"] is False
    command("sleep", "--url", url)
    assert "awake" in command("wake", "--url", url)
    assert health(url)["asleep"] is False
