"""Distributions of what was measured: quantiles that occurred, each with its n, shares that sum to one."""

import pytest

from assistant.bench.figures import Distribution, distribution, figures_of, shares_of, summary, table
from assistant.events import Timeline, TimelinePart


def test_quantiles_are_values_that_occurred():
    assert distribution(range(1, 101)) == Distribution(100, 50, 90, 99, 100)
    assert distribution([7.0]) == Distribution(1, 7.0, 7.0, 7.0, 7.0)
    assert distribution([3, 1, 2]).median == 2
    with pytest.raises(ValueError, match="at least one"):
        distribution([])


def test_figures_and_parts_are_gathered_with_their_n():
    timelines = [
        Timeline(1, "r1", 0.0, (TimelinePart("wait", 0.0, 5.0),), {"ttfa_ms": 9.0, "underruns": 3.0}),
        Timeline(2, "r2", 1.0, (TimelinePart("wait", 0.0, 7.0),), {"ttfa_ms": 11.0, "yield_ms": 2.0}),
    ]
    found = figures_of(timelines)
    assert found == {"ttfa_ms": [9.0, 11.0], "part: wait": [5.0, 7.0], "yield_ms": [2.0]}
    assert summary(found)["yield_ms"]["n"] == 1
    assert len(table(found)) == 4 and "ttfa_ms" in table(found)[1]


def test_a_part_that_comes_twice_counts_once_a_turn_and_shares_sum_to_one():
    twice = (TimelinePart("prefill", 0.0, 5.0), TimelinePart("tool", 5.0, 1.0), TimelinePart("prefill", 6.0, 3.0))
    timelines = [Timeline(1, "r1", 0.0, twice, {}), Timeline(2, "r2", 9.0, (TimelinePart("tool", 0.0, 1.0),), {})]
    assert figures_of(timelines) == {"part: prefill": [8.0], "part: tool": [1.0, 1.0]}
    assert shares_of(timelines) == pytest.approx({"prefill": 0.8, "tool": 0.2})
    assert "80.0%" in table(figures_of(timelines), shares_of(timelines))[1]
