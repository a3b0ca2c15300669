"""The pages can be trusted: programs run as they stand, commands parse, targets exist, links lead somewhere."""

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
from assistant.app.config import PROFILES
from tests.fakes.web import Site, run
from tests.house import BESIDE, PRODUCT, fronted

ROOT = Path(__file__).parents[1]
WORDS = 900
"""Ceiling of README: a page for somebody who has two minutes."""
README = (ROOT / "README.md").read_text("utf-8")
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for folder in (*PRODUCT, *BESIDE, "ui", "docs")
    for path in [*ROOT.glob("*.md"), *sorted((ROOT / folder).rglob("*.md"))]
}
FOR_PEOPLE = [text for page, text in PAGES.items() if page in ("README.md", "CONTRIBUTING.md") or "docs/" in page]
BLOCKS = [block for text in FOR_PEOPLE for block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)]
PYTHON = [code for language, code in BLOCKS if language == "python"]
SHELL = [line.split("#")[0] for language, code in BLOCKS if not language for line in code.splitlines()]
QUOTED = [" ".join(code.split()) for text in FOR_PEOPLE for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
USAGE = [line for module in cli.command_modules() for line in (sys.modules[module.__name__].__doc__ or "").splitlines()]
LINKS = [
    (page, link)
    for page, text in PAGES.items()
    for link in re.findall(r"\]\(([^)]+)\)", text)
    if not link.startswith("http")
]
FILES = [
    (page, name)
    for page, text in PAGES.items()
    for name in re.findall(r"(?<![\w.`])`([\w/]+\.(?:py|cpp))(?:: [\w.]+)?`", text)
    if "/tiny/" not in page
]
LAWS = PAGES["docs/laws.md"]


async def ran(code: str, folder: Path) -> str:
    """What a program prints that is started in a folder with this source tree in it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    return printed.decode()


@pytest.mark.slow
@pytest.mark.parametrize("code", [code for code in PYTHON if "127.0.0.1" not in code])
def test_python_runs(code):
    asyncio.run(ran(code, ROOT))


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("openai"), reason="no openai here; `make test` installs it")
@pytest.mark.parametrize("code", [code for code in PYTHON if "127.0.0.1" in code])
def test_clients_run_against_a_server(code, tmp_path):
    async def story(site: Site) -> None:
        printed = await ran(code.replace("http://127.0.0.1:8765", site.http), tmp_path)
        assert printed.strip() == ("You said what time is it." if "print(" in code else "")
        assert ("write_to_file" in code) == any(path.stat().st_size > 10_000 for path in tmp_path.glob("answer.wav"))

    run(story)


def test_every_program_is_found():
    assert [len(re.findall("```python", PAGES[page])) for page in ("README.md", "docs/programs.md")] == [1, 2]
    assert len(PYTHON) == sum(text.count("```python") for text in FOR_PEOPLE)


def commands(lines: list[str]) -> list[str]:
    """Lines that call the program, without their explanation."""
    called = (re.split(r"\s{2,}", line.strip())[0] for line in lines)
    return sorted({line for line in called if re.match(r"assistant( |$)", line)})


@pytest.mark.parametrize("line", commands(SHELL + USAGE + QUOTED))
def test_commands_parse(line):
    args = cli.build_parser().parse_args(shlex.split(line)[1:])
    assert hasattr(args, "run") or line == "assistant"


@pytest.mark.parametrize("line", sorted({line for line in QUOTED if re.match(r"python (-m )?[a-z]+[./]", line)}))
def test_scripts_take_the_flags_that_pages_give_them(line):
    words = shlex.split(line)
    name = words[2].replace(".", "/") if words[1] == "-m" else words[1].removesuffix(".py")
    source = (ROOT / f"{name}.py").read_text("utf-8")
    unknown = [word for word in words if word.startswith("--") and f'add_argument("{word}"' not in source]
    assert not unknown


def test_make_targets_exist():
    targets = {line.split()[1] for line in SHELL + QUOTED if line.startswith("make ")}
    assert {"run", "test", "quick"} <= targets
    for target in targets:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_links_lead_somewhere(page, link):
    path, _, anchor = link.partition("#")
    target = (ROOT / page).parent / path if path else ROOT / page
    assert target.exists()
    if anchor:
        headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.M)
        assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("page", "name"), FILES)
def test_files_that_a_page_names_exist(page, name):
    folders = (ROOT, ROOT / "assistant", (ROOT / page).parent, *(ROOT / folder for folder in PRODUCT))
    assert any((folder / name).exists() for folder in folders)


def test_every_picture_is_shown_by_a_page():
    shown = {((ROOT / page).parent / link).resolve() for page, link in LINKS}
    assert [path.name for path in (ROOT / "docs").glob("*.png") if path.resolve() not in shown] == []


def test_readme_is_read_in_two_minutes():
    assert len(README.split()) <= WORDS


def test_readme_lists_the_profiles_of_the_code():
    rows = [[cell.strip(" `") for cell in row.split("|")[1:-1]] for row in README.splitlines()]
    listed = {row[1]: (row[0], row[3]) for row in rows if len(row) == 4 and row[1] in PROFILES}
    expected = {}
    for profile in PROFILES.values():
        gpu, host = profile.gpu_bytes >> 30, profile.host_bytes >> 30
        memory = f"{gpu} (GPU)" if gpu else f"{host}" if host else "any"
        expected[profile.name] = (memory, f"{profile.download_gb:g}" if profile.download_gb else "none")
    assert listed == expected


def test_each_law_is_defined_and_held_by_tests_that_exist():
    assert re.findall(r"^\*\*(L\d)\.", LAWS, re.M) == [f"L{number}" for number in range(1, 9)]
    paragraphs = re.split(r"^\*\*L\d\.", LAWS, flags=re.M)[1:]
    assert all(missing_tests(paragraph) == [] for paragraph in paragraphs)
    assert all("`tests/" in paragraph for paragraph in paragraphs)


def missing_tests(text: str) -> list[tuple[str, str]]:
    """The tests that a page names and that are not there."""
    return [
        (path, name)
        for path, name in re.findall(r"`(tests/\S+\.py)::(\w+)`", text)
        if not re.search(rf"^\s*(def|async def|class) {name}\b", (ROOT / path).read_text("utf-8"), re.M)
    ]


def test_each_case_from_the_field_names_tests_that_exist():
    rows = [row for row in PAGES["docs/field.md"].splitlines() if row.startswith("| ") and not row.startswith("| case")]
    assert len(rows) > 41 + 60 and missing_tests(PAGES["docs/field.md"]) == []


def test_no_sentence_of_a_page_or_docstring_opens_with_its_object():
    sentences, _ = fronted()
    assert sentences == []
