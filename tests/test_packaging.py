"""It comes in one piece: the wheel has every file, and the docs name every package."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.house import PRODUCT, ROOT, files_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FOR_WORK = ("dev", "train", "judge")
"""Extras that only a checkout is of use with."""


def shipped() -> set[str]:
    """Every file of the packages; git says which are ours."""
    told = subprocess.run(["git", "ls-files", *PRODUCT, "ui"], cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        pytest.skip("not a git checkout, which alone says which files are the product's")
    return set(told.stdout.split("\n")) - {""}


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_packages_and_the_licence(tmp_path: Path) -> None:
    """Built from a copy, as setuptools leaves its scratch beside the sources."""
    files = shipped()
    for name in (*files, "pyproject.toml", "README.md", "LICENSE"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).hardlink_to(ROOT / name)
    build = "from setuptools.build_meta import build_wheel; print(build_wheel('dist'))"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    notes = {name for name in inside if name.split("/")[0].endswith(".dist-info")}
    assert inside - notes == files
    assert {name.split("/")[-1] for name in notes} >= {"LICENSE", "entry_points.txt"}


# ---------------------------------------------------------------------------------------- extras


def table() -> dict[str, list[str]]:
    """Rows of the table of packages by their extras: packages, purpose, the sentence without it."""
    rows = re.findall(r"^\| (`?[\w`, ]+`?) \|(.*)\|$", (ROOT / "docs" / "install.md").read_text("utf-8"), re.MULTILINE)
    return {name.replace("`", ""): [cell.strip() for cell in rest.split("|")] for name, rest in rows if name != "extra"}


def names(requirements: list[str]) -> list[str]:
    return [Requirement(one).name for one in requirements]


def test_the_table_of_packages_is_that_of_the_project() -> None:
    extras = PROJECT["optional-dependencies"]
    wanted = {name: ", ".join(names(needed)) for name, needed in extras.items() if name not in FOR_WORK}
    wanted |= {"core": ", ".join(names(PROJECT["dependencies"])), ", ".join(FOR_WORK): ""}
    assert {name: cells[0] for name, cells in table().items()} == wanted


def test_each_sentence_of_the_table_is_said_by_the_program() -> None:
    said = "\n".join(file.text for file in files_of(ROOT, "assistant"))
    for name, (_, _, sentence) in table().items():
        for words in re.findall('"([^"]+)"', sentence):
            assert words in said, name
        assert name.startswith("dev") or '"' in sentence


def test_no_advice_names_an_extra_that_is_not_there() -> None:
    said = "\n".join(file.text for file in files_of(ROOT, "assistant"))
    advised = set(re.findall(r"adding\(['\"](\w+)['\"]\)", said)) | set(re.findall(r"voice-assistant\[(\w+)\]", said))
    assert advised <= set(PROJECT["optional-dependencies"])
