"""The page's pure modules, run by Node's own test runner."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NODE = shutil.which("node")


@pytest.mark.slow
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


UI = HERE.parents[1] / "ui"
PURE = [
    "blocks",
    "session",
    "spoken",
    "clock",
    "timeline",
    "figures",
    "recording",
    "running",
    *(f"audio/{name}" for name in ("ring", "player", "pcm", "heard")),
]
WORLDLY = re.compile(
    r"\b(document|window|navigator|location|performance|WebSocket|AudioContext|setTimeout|Date|fetch)\b[.(]"
)


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_know_no_page_no_clock_and_only_each_other(name: str) -> None:
    text = (UI / f"{name}.js").read_text(encoding="utf-8")
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    assert WORLDLY.findall(code) == []
    folder = (UI / f"{name}.js").parent
    for target in re.findall(r'from "([^"]+)"', code):
        assert str((folder / target).resolve().relative_to(UI).with_suffix("")) in PURE, target


def test_the_page_loads_nothing_from_elsewhere() -> None:
    for path in [UI / "index.html", UI / "style.css", *UI.rglob("*.js")]:
        addresses = re.findall(r"https?://[^\s\"'`)]+", path.read_text(encoding="utf-8"))
        assert [
            one for one in addresses if not one.startswith(("http://127.0.0.1", "http://www.w3.org/"))
        ] == [], path
