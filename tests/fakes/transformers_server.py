"""`transformers serve`, a server of another project, in a process of its own on a small random Whisper."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.fakes.random_whisper import write_hf

NEEDED = {
    "accelerate": "accelerate",
    "fastapi": "fastapi",
    "uvicorn": "uvicorn",
    "python_multipart": "python-multipart",
    "soxr": "soxr",
}
"""What it imports → what that is called where it is fetched."""
STARTS_S = 60.0


def lacking() -> list[str]:
    """The packages that are not here, as pip names them."""
    return [name for module, name in NEEDED.items() if find_spec(module) is None]


@contextmanager
def serving_whisper(folder: Path) -> Iterator[str]:
    """The address of its transcriptions, model included. It loads the model when it is first asked."""
    model = write_hf(folder / "hf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "home").mkdir()
    surroundings = {
        **os.environ,
        "HF_HOME": str(folder / "home"),  # empty: it lists no models
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", "--host", "127.0.0.1", "--device", "cpu"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([*command, "--port", str(port)], env=surroundings, stdout=log, stderr=log)
    try:
        _wait(server, f"http://127.0.0.1:{port}/health", folder / "log")
        yield f"http://127.0.0.1:{port}/v1#{model}"
    finally:
        server.terminate()
        server.wait(30)


def _wait(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + STARTS_S
    while server.poll() is None and time.monotonic() < until:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"transformers serve did not start:\n{log.read_text()[-2000:]}")
