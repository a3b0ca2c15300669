"""Recordings that are kept: the same bits as those made now, and found only where they would be made again."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from capsules import ExecContext, Role, ShapeKey
from capsules.exec import shelf
from capsules.exec.recorder import Recording
from capsules.exec.shelf import CODES_KEPT
from llm_engine import HybridLLM
from tts_engine.engine import HiggsTTS

ONE = ShapeKey(n=1)
ROOT = Path(__file__).parents[2]


class Halves:
    """x ← x · 0.5 + 1e-06 · w, over a part of one buffer and another behind it."""

    def __init__(self, folder: Path, facts: str = "halves", rows: int = 3) -> None:
        self.ctx = ExecContext("cpu", recordings=folder)
        self.x = self.ctx.buffer("h.x", [rows, 4], torch.float32, role=Role.STATE).tensor
        self.w = self.ctx.adopt("h.w", torch.arange(8.0)).tensor
        self.runs = 0
        self.graph = self.ctx.graph("h.step", shelf=self.ctx.shelf(facts))
        self.graph.capture(ONE, self.step)

    def step(self) -> None:
        self.runs += 1
        part = self.x[1:, ::2]
        part.mul_(0.5).add_(self.w[3:5], alpha=1e-06)

    def after(self, count: int) -> Tensor:
        self.x.copy_(torch.arange(self.x.numel()).view_as(self.x))
        for _ in range(count):
            self.graph.replay(ONE)
        return self.x.clone()


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.json"))


def test_what_was_kept_is_not_run_again_and_gives_the_same_bits(tmp_path: Path) -> None:
    made = Halves(tmp_path)
    again = Halves(tmp_path)
    assert (made.runs, again.runs) == (1, 0)
    assert torch.equal(made.after(5), again.after(5))
    assert again.graph.touched(ONE) == (again.ctx["h.x"],)


def test_other_facts_layouts_names_and_code_find_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Halves(tmp_path)
    assert Halves(tmp_path, facts="others").runs == 1
    assert Halves(tmp_path, rows=5).runs == 1
    monkeypatch.setattr(shelf, "code_digest", lambda *packages: "0" * 32)
    assert Halves(tmp_path).runs == 1
    assert len(kept(tmp_path)) == 4


def test_code_is_every_source_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the package that is named and of this one, whatever its name or kind."""
    for name in ("capsules/exec/shelf.py", "engine/a.py", "engine/deep/b.cpp"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("one")
    monkeypatch.setattr(shelf, "__file__", str(tmp_path / "capsules/exec/shelf.py"))
    found = set()
    for change in ("", "capsules/exec/shelf.py", "engine/a.py", "engine/deep/b.cpp"):
        if change:
            (tmp_path / change).write_text("two")
        shelf.code_digest.cache_clear()
        found.add(shelf.code_digest("engine"))
    shelf.code_digest.cache_clear()
    assert len(found) == 4


def far(row: dict[str, list[list[object]]]) -> None:
    row["constants"][0][1] = 10**6


def fewer(row: dict[str, list[object]]) -> None:
    row["constants"].pop()


def unknown(row: dict[str, list[object]]) -> None:
    row["touched"] = ["h.y"]


def without_library(row: dict[str, list[object]]) -> None:
    row["libraries"] = ["gone.so"]


@pytest.mark.parametrize("damage", [far, fewer, unknown, without_library])
def test_a_file_that_does_not_fit_is_recorded_anew(tmp_path: Path, damage: Callable[[object], None]) -> None:
    expected = Halves(tmp_path).after(3)
    (file,) = kept(tmp_path)
    row = json.loads(file.read_text())
    damage(row)
    file.write_text(json.dumps(row))
    mended = Halves(tmp_path)
    assert mended.runs == 1 and torch.equal(mended.after(3), expected)
    assert Halves(tmp_path).runs == 0


@pytest.mark.parametrize("size", [0, 1, 100, -1])
def test_a_file_that_was_cut_off_is_recorded_anew(tmp_path: Path, size: int) -> None:
    expected = Halves(tmp_path).after(3)
    (file,) = kept(tmp_path)
    file.write_bytes(file.read_bytes()[:size])
    mended = Halves(tmp_path)
    assert mended.runs == 1 and torch.equal(mended.after(3), expected)


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert [Halves(tmp_path / "file").runs for _ in range(2)] == [1, 1]


def test_recordings_of_old_code_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in "abcde":
        monkeypatch.setattr(shelf, "code_digest", lambda *packages, version=version: version * 32)
        Halves(tmp_path)
    assert len(list(tmp_path.iterdir())) == CODES_KEPT and (tmp_path / ("e" * 32)).is_dir()


@pytest.mark.parametrize(
    "value", [0.1, 1e-6, 1.1920928955078125e-07, math.pi, -0.0, math.inf, -math.inf, 1e300, 5e-324, 10**15]
)
def test_numbers_in_a_step_are_read_back_to_the_bit_or_not_kept(tmp_path: Path, value: float) -> None:
    def filled() -> Tensor:
        ctx = ExecContext("cpu", recordings=tmp_path)
        x = ctx.buffer("n.x", [4], torch.float64, role=Role.STATE).tensor
        graph = ctx.graph("n.fill", shelf=ctx.shelf(str(value)))
        graph.capture(ONE, lambda: x.fill_(value))
        graph.replay(ONE)
        return x.view(torch.int64).clone()

    assert torch.equal(filled(), filled())


@pytest.mark.slow  # both engines are loaded twice
def test_engines_of_kept_recordings_say_the_same_to_the_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said() -> tuple[Tensor, list[int], Tensor, str]:
        ctx = ExecContext("cpu", recordings=tmp_path)
        llm = HybridLLM.load(ROOT / "llm_engine/tiny", ctx, max_positions=512)
        logits, tokens = llm.append(list(range(40, 130))), llm.decode(12)
        tts = HiggsTTS.load(ROOT / "tts_engine/tiny", ctx, max_positions=512)
        return logits, tokens, torch.cat(list(tts.speak("Good morning, it is ten."))), llm.fingerprint.digest

    first = said()

    def refuse(*args: object) -> Recording:
        raise AssertionError("a step was run that had been kept")

    monkeypatch.setattr("capsules.exec.cpu.record", refuse)
    again = said()
    assert torch.equal(first[0], again[0]) and first[1] == again[1]
    assert torch.equal(first[2], again[2]) and first[3] == again[3]
