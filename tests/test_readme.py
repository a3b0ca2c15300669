"""What README prints can be typed as it stands, as can what CONTRIBUTING asks of a card: Python runs, commands parse,
targets exist, links lead somewhere."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from assistant import cli
from tests.fakes.web import Site, run

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]
SHELL = [line.split("#")[0] for language, code in BLOCKS if not language for line in code.splitlines()]
CARD = re.findall(r"`((?:assistant|python -m) [^`]*)`", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
USAGE = [line for module in cli.command_modules() for line in (sys.modules[module.__name__].__doc__ or "").splitlines()]
LINKS = [
    (page, link)
    for page in [ROOT / "README.md", *ROOT.glob("*/README.md"), *ROOT.glob("assistant/*/README.md")]
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8"))
    if not link.startswith("http")
]


async def ran(code: str, folder: Path) -> str:
    """What a program prints that is started in a folder with this source tree in it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()
    return told.decode()


@pytest.mark.slow
@pytest.mark.parametrize("code", [code for code in PYTHON if "127.0.0.1" not in code])
def test_python_runs(code):
    asyncio.run(ran(code, ROOT))


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("openai"), reason="no openai here; `make test` installs it")
@pytest.mark.parametrize("code", [code for code in PYTHON if "127.0.0.1" in code])
def test_clients_run_against_a_server(code, tmp_path):
    async def story(site: Site) -> None:
        told = await ran(code.replace("http://127.0.0.1:8765", site.http), tmp_path)
        assert told.strip() == ("You said what time is it." if "print(" in code else "")
        assert ("write_to_file" in code) == any(path.stat().st_size > 10_000 for path in tmp_path.glob("answer.wav"))

    run(story)


def commands(lines: list[str]) -> list[str]:
    """Lines that call the program, without what explains them."""
    called = (re.split(r"\s{2,}", line.strip())[0] for line in lines)
    return sorted({line for line in called if re.match(r"assistant( |$)", line)})


@pytest.mark.parametrize("line", commands(SHELL + USAGE + CARD))
def test_commands_parse(line):
    args = cli.build_parser().parse_args(shlex.split(line)[1:])
    assert hasattr(args, "run") or line == "assistant"


@pytest.mark.parametrize("line", [line for line in CARD if line.startswith("python -m benchmarks.")])
def test_benchmarks_take_what_is_said_of_them(line):
    words = shlex.split(line)[2:]
    source = (ROOT / f"{words[0].replace('.', '/')}.py").read_text("utf-8")
    flags = [word for word in words if word.startswith("--")]
    assert flags and all(f'add_argument("{flag}"' in source for flag in flags)


def test_make_targets_exist():
    targets = {line.split()[1] for line in SHELL if line.startswith("make ")}
    assert targets
    for target in targets:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize(("page", "link"), LINKS, ids=lambda part: str(part).removeprefix(str(ROOT)))
def test_links_lead_somewhere(page, link):
    assert (page.parent / link).exists()
