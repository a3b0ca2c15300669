"""The ten minutes on a card, dry: every part still runs, notes what it found at once, and a failure stops nothing."""

import json
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks import card
from benchmarks.card_model import CARDS, predictions
from benchmarks.card_parts import CardBench


@pytest.mark.slow
def test_every_part_runs_on_a_processor(tmp_path: Path) -> None:
    bench, out = CardBench("cpu", tmp_path), tmp_path / "card.jsonl"
    for name in card.DRY:
        card.run_part(name, bench, out)
    rows = card.read_rows(out)
    assert {row["part"] for row in rows} == set(card.DRY)
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
