"""The ten minutes on a card, dry: every part still runs, notes what it found at once, and a failure stops nothing."""

import json
from argparse import Namespace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from benchmarks import card
from benchmarks.card_model import CARDS, predictions, steps, steps_table, table
from benchmarks.card_parts import CardBench
from benchmarks.card_whole import command, counted, llama_rows


@pytest.mark.slow
def test_every_part_runs_on_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the server of the last one: others start such a one, and it takes the longest."""

    def served(what: list[str], **_: object) -> CompletedProcess[str]:
        assert what[1:4] == ["-m", "benchmarks.sleep", "--rounds"] and what[-2:] == ["--profile", "tiny"]
        figures = {"awake: first sound ms": 60.0, "warm: first sound ms": 90.0}
        Path(what[what.index("--json") + 1]).write_text(json.dumps({"median": figures}), "utf-8")
        return CompletedProcess(what, 0, "", "")

    monkeypatch.setattr("benchmarks.card_whole.subprocess.run", served)
    bench, out = CardBench("cpu", tmp_path), tmp_path / "card.jsonl"
    for name in card.DRY:
        card.run_part(name, bench, out)
    rows = card.read_rows(out)
    assert {row["part"] for row in rows} == set(card.DRY)
    assert [row["warm: first sound ms"] for row in rows if row["part"] == "serve"] == [90.0]
    told = list(card.report(rows))
    assert any(line.startswith("plain 24 x 128 to 64") for line in told)
    assert not [line for line in told if "NOT" in line], "equal code on both sides keeps the laws"


def test_a_part_that_fails_is_named_and_the_next_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = Namespace(dry=True, folder=tmp_path, out=tmp_path / "card.jsonl", patience=0.001)
    assert card.run_all(["facts", "weights"], asked) == ["facts", "weights"]
    rows = [json.loads(line) for line in asked.out.read_text("utf-8").splitlines()]
    assert [row["part"] for row in rows] == ["facts", "weights"]
    assert all("longer than" in row["trouble"] for row in rows)
    assert capsys.readouterr().out.startswith("facts: took longer than 0.06 s")


def test_a_measure_far_from_its_prediction_wants_an_explanation() -> None:
    wanted = predictions(CARDS[0])["token sampled, bfloat16"]
    rows = [
        {"part": "facts", "case": "device", "name": "NVIDIA H100 80GB HBM3"},
        {"part": "llm", "case": "token sampled, bfloat16", "old": wanted["old"], "new": wanted["new"] * 1.1},
        {"part": "llm", "case": "append 24, bfloat16", "old": 12.3, "new": 12.0},
        {"part": "llm", "case": "laws, bfloat16", "restore goes on": False},
    ]
    _, _, good, bad, law = card.report(rows)
    assert good.endswith("as predicted") and bad.endswith("EXPLAIN")
    assert law == "llm: laws, bfloat16: NOT restore goes on"


def test_the_new_side_is_predicted_faster_on_every_card() -> None:
    for one in CARDS:
        for case, sides in predictions(one).items():
            assert sides["new"] < sides.get("old", float("inf")), f"{one.name}: {case}"


def test_the_page_shows_what_the_arithmetic_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "gpu-path.md").read_text("utf-8")
    assert table() in page and steps_table() in page, "python -m benchmarks.card --predict"
    for one in CARDS:
        last, whole = steps(one, "int4")[-1][1], predictions(one)
        assert last["token"] == whole["token sampled, int4"]["new"]
        assert last["first sound"] == whole["first sound exact, int4"]["new"]


def test_arithmetic_without_switches_gives_what_the_h100_measured() -> None:
    measured = {
        "append 24, bfloat16": 12.3, "append 24, float8": 15.4, "append 24, int4": 12.9, "append 256, bfloat16": 49.8,
        "row, bfloat16": 3.95, "row, float8": 3.96, "first sound exact, bfloat16": 82.7,
        "first sound exact, float8": 86.4,
    }  # fmt: skip
    found = predictions(CARDS[0])
    for case, ms in measured.items():
        assert abs(found[case]["old"] / ms - 1) < 0.04, case


def test_reports_of_other_programs_become_rows(tmp_path: Path) -> None:
    told = json.dumps([{"n_prompt": 24, "n_gen": 0, "avg_ns": 5e6}, {"n_prompt": 0, "n_gen": 64, "avg_ns": 64e6}])
    assert list(llama_rows("Q4_0", told)) == [
        {"case": "llama.cpp Q4_0: append 24", "ms": 5.0}, {"case": "llama.cpp Q4_0: token", "ms": 1.0}
    ]  # fmt: skip
    names = ("ID", "Kernel Name", "gpu__time_duration.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed",
             "sm__throughput.avg.pct_of_peak_sustained_elapsed")  # fmt: skip
    lines = [names, ("", "", "us", "%", "%"), ("0", "heads", "2.0", "5", "9"), ("1", "gemv", "1,007.5", "91.0", "30"),
             ("2", "gemv", "1,009.5", "93.0", "40")]  # fmt: skip
    text = "==PROF== Connected\n" + "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)
    first, second = counted(text)
    assert first == {"case": "ncu gemv", "launches": 2, "all_us": 2017.0, "us": 1008.5, "memory_percent": 92.0,
                     "units_percent": 35.0}  # fmt: skip
    assert second["case"] == "ncu heads"
    [row] = command(CardBench("cpu", tmp_path), ["no-such-program", "x"])
    assert row["told"] == "no-such-program is not on this machine"
