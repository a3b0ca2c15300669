"""Placement: the dynamic program against brute force, the closed forms of the paper, and what the placer keeps."""

from itertools import combinations
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsules.hull import lower_hull
from capsules.placement import (
    Placer,
    RollbackHistogram,
    Strategy,
    balanced,
    every,
    expected_recompute,
    logarithmic,
    optimal,
    place,
    recompute,
)


def slow_recompute(law, checkpoints):
    """The definition, depth by depth."""
    return sum(p * (t - max([0, *(c for c in checkpoints if c <= t)])) for t, p in enumerate(law))


def brute_force(law, budget, candidates):
    return min(
        slow_recompute(law, chosen)
        for size in range(min(budget, len(candidates)) + 1)
        for chosen in combinations(candidates, size)
    )


def some_law(rng, length):
    """Dense, sparse, peaked, with ties and with mass at zero."""
    kind = rng.integers(4)
    if kind == 0:
        p = rng.random(length + 1)
    elif kind == 1:
        p = rng.random(length + 1) * (rng.random(length + 1) < 0.3)
    elif kind == 2:
        p = rng.random(length + 1) ** 12
    else:
        p = rng.integers(0, 3, length + 1).astype(float)
    p[rng.integers(length + 1)] += 0.1
    return p / p.sum()


def test_the_program_equals_brute_force_on_a_thousand_small_cases():
    rng = np.random.default_rng(7)
    for _ in range(1000):
        length, budget = int(rng.integers(1, 12)), int(rng.integers(0, 5))
        law = some_law(rng, length)
        if rng.random() < 0.5:
            candidates = list(range(1, length + 1))
            chosen = optimal(law, budget)
        else:
            candidates = sorted(
                rng.choice(np.arange(1, length + 1), rng.integers(1, length + 1), replace=False).tolist()
            )
            chosen = optimal(law, budget, candidates)
        assert len(chosen) <= budget and set(chosen) <= set(candidates) and list(chosen) == sorted(set(chosen))
        assert slow_recompute(law, chosen) == pytest.approx(brute_force(law, budget, candidates), abs=1e-12)


def slow_program(law, budget):
    """The quadratic dynamic program over all positions."""
    n = len(law)
    mass, moment = np.cumsum(law), np.cumsum(law * np.arange(n))
    cost = moment.copy()
    for _ in range(budget):
        better = cost.copy()
        for s in range(1, n):
            line = cost[s - 1] + (moment[s:] - moment[s - 1]) - s * (mass[s:] - mass[s - 1])
            better[s:] = np.minimum(better[s:], line)
        cost = better
    return float(cost[-1])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("length", [63, 1000])
def test_the_program_equals_the_quadratic_one(seed, length):
    law = some_law(np.random.default_rng(seed), length)
    for budget in (1, 7, 20):
        assert expected_recompute(law, optimal(law, budget)) == pytest.approx(slow_program(law, budget), rel=1e-10)


@pytest.mark.parametrize("length", [1, 2, 10, 63, 64, 65, 1000])
@pytest.mark.parametrize("budget", [1, 2, 5, 8])
def test_balanced_is_optimal_under_uniform_depths_and_meets_the_closed_forms(length, budget):
    law = np.full(length + 1, 1 / length)
    law[0] = 0
    q, rho = divmod(length + 1, budget + 1)
    closed = ((budget + 1 - rho) * q * (q - 1) / 2 + rho * q * (q + 1) / 2) / length
    spots = balanced(length, budget)
    assert expected_recompute(law, spots) == pytest.approx(closed)
    assert expected_recompute(law, optimal(law, budget)) == pytest.approx(closed)
    assert recompute(length, spots).max() == ceil((length + 1) / (budget + 1)) - 1
    assert closed <= length / (2 * (budget + 1)) + 0.5


def test_strategies_place_where_they_say():
    assert balanced(99, 3) == (25, 50, 75)
    assert every(64, 400) == (64, 128, 192, 256, 320, 384)
    assert every(64, 63) == ()
    assert logarithmic(999, 2) == (10, 100) or logarithmic(999, 2) == (9, 99)
    law = np.full(1025, 1 / 1025)
    assert place(Strategy.NONE, 5, law) == ()
    assert place(Strategy.BLOCK, 2, law) == (384, 768)
    assert place(Strategy.BLOCK, 16, law) == every(64, 1024) and place(Strategy.BLOCK, 99, law) == every(64, 1024)
    assert place(Strategy.SQUARE_ROOT, 3, law) == (288, 576, 864)
    assert place(Strategy.SQUARE_ROOT, 3, law, grid=64) == (256, 576, 832)
    assert place(Strategy.SQUARE_ROOT, 40, law) == every(32, 1024)
    for strategy in Strategy:
        spots = place(strategy, 6, law, grid=64)
        assert len(spots) <= 6 and all(p % 64 == 0 and 0 < p <= 1024 for p in spots)


@pytest.mark.parametrize("length", [1, 63, 64, 65, 1000, 4097, 8192])
@pytest.mark.parametrize("budget", [1, 2, 4, 7, 64])
@pytest.mark.parametrize("strategy", [Strategy.BLOCK, Strategy.SQUARE_ROOT])
def test_even_spacings_reach_through_the_whole_prefix(strategy, budget, length):
    """As wide as the budget asks for and no wider: no gap, the one behind the last included, exceeds the spacing."""
    unit = 64 if strategy is Strategy.BLOCK else int(length**0.5)
    spots = place(strategy, budget, np.full(length + 1, 1 / (length + 1)))
    spacing = min(k * unit for k in range(1, length + 2) if length // (k * unit) <= budget)
    assert spots == every(spacing, length) and len(spots) <= budget
    assert recompute(length, spots).max() <= spacing - 1


@pytest.mark.parametrize("seed", range(8))
def test_on_the_grid_optimal_beats_every_other_strategy(seed):
    law = some_law(np.random.default_rng(seed), 1500)
    best = expected_recompute(law, place(Strategy.OPTIMAL, 6, law, grid=64))
    for strategy in Strategy:
        assert best <= expected_recompute(law, place(strategy, 6, law, grid=64)) + 1e-9


def test_edges():
    assert optimal(np.array([1.0]), 3) == ()
    assert optimal(np.array([0.5, 0.5]), 0) == ()
    assert optimal(np.array([0.5, 0.5]), 3) == (1,)
    assert optimal(np.array([0.0, 0.5, 0.5]), 1, candidates=[]) == ()


def slow_hull(c, b):
    stack: list[int] = []
    for i in range(len(c)):
        while len(stack) > 1:
            h, k = stack[-2], stack[-1]
            if (b[k] - b[h]) * (c[i] - c[k]) < (b[i] - b[k]) * (c[k] - c[h]):
                break
            stack.pop()
        stack.append(i)
    return stack


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-30, 30)), min_size=1, max_size=300))
def test_hull_of_integer_points_supports_as_the_monotone_chain_does(points):
    c = np.cumsum([p[0] for p in points]).astype(float)
    b = np.array([p[1] for p in points], float)
    hull = lower_hull(c, b)
    assert set(slow_hull(c, b)) <= set(hull.tolist())
    assert (np.diff(hull) > 0).all()
    assert (np.diff(np.diff(b[hull]) / np.diff(c[hull])) >= -1e-12).all()


@pytest.mark.parametrize("arcs", [1, 2, 5, 20, 200])
def test_hull_of_long_arcs(arcs):
    """Arcs whose common tangents cut off most of both: removing points one by one would take thousands of rounds."""
    c = np.arange(4000.0)
    b = np.concatenate([k * 900 + (x - 500) ** 2 for k, x in enumerate(np.array_split(c, arcs))])
    assert lower_hull(c, b).tolist() == slow_hull(c, b)


def test_histogram_forgets():
    seen = RollbackHistogram(gamma=0.9)
    for _ in range(40):
        seen.add_rollback(10)
    assert seen.law(100)[90] == pytest.approx(1)
    seen.add_rollback(30)
    law = seen.law(100)
    assert law.sum() == pytest.approx(1)
    assert law[70] == pytest.approx((1 - 0.9) / (1 - 0.9**41))
    assert seen.law(20)[10] > 0 and seen.law(20)[0] == pytest.approx(law[70])
    assert RollbackHistogram().law(4).tolist() == [0, 0.25, 0.25, 0.25, 0.25]
    assert RollbackHistogram().law(0).tolist() == [1]
    with pytest.raises(ValueError, match="back by -1"):
        seen.add_rollback(-1)


def test_placer_re_solves_every_tenth_observation():
    placer = Placer(budget=3)
    boundaries = list(range(64, 64 * 20 + 1, 64))
    before = placer.surviving(boundaries, 1300)
    for _ in range(9):
        placer.observe(1300 - 700)
    assert placer.surviving(boundaries, 1300) == before
    placer.observe(1300 - 700)
    assert placer.surviving(boundaries, 1300) == {640, 1280}


@pytest.mark.parametrize("seed", range(12))
def test_doing_without_one_is_as_good_as_the_program(seed):
    """One boundary too many: the one that is let go costs no more than the exact program over all of them would."""
    rng = np.random.default_rng(seed)
    budget, placer, seen = int(rng.integers(1, 9)), None, RollbackHistogram()
    placer = Placer(budget, solve_every=1)
    for step in range(60):
        length = int(rng.integers(budget + 2, 3000))
        boundaries = sorted(rng.choice(np.arange(1, length + 1), budget + 1, replace=False).tolist())
        kept = sorted(placer.surviving(boundaries, length))
        law = seen.law(length)
        best = {*optimal(law[: boundaries[-1]], budget - 1, boundaries[:-1]), boundaries[-1]}
        assert len(kept) == budget and boundaries[-1] in kept
        assert expected_recompute(law, kept) <= expected_recompute(law, sorted(best)) + 1e-9
        if step % 3:
            back = int(rng.exponential(300)) if rng.random() < 0.8 else 4000
            placer.observe(back)
            seen.add_rollback(back)


def test_mass_is_the_law_summed():
    seen = RollbackHistogram()
    assert seen.mass(50)(17) == 17
    for back in (3, 3, 40, 90, 200):
        seen.add_rollback(back)
    law, below = seen.law(100), seen.mass(100)
    sums = np.concatenate(([0.0], np.cumsum(law)))
    assert [below(t) / below(101) for t in range(102)] == pytest.approx(sums.tolist())


@pytest.mark.parametrize("strategy", Strategy)
def test_placer_keeps_the_newest_and_no_more_than_the_budget(strategy):
    rng = np.random.default_rng(3)
    placer = Placer(budget=5, strategy=strategy)
    kept: frozenset[int] = frozenset()
    for position in range(64, 64 * 60, 64):
        kept = placer.surviving(sorted({*kept, position}), position + 10)
        assert position in kept and len(kept) <= 5
        placer.observe(int(rng.exponential(200)))
    if strategy is not Strategy.NONE:
        assert len(kept) == 5 or strategy is not Strategy.OPTIMAL


def test_placer_follows_a_drift():
    """Rollbacks move from deep to shallow; a hundred observations later the expected replay is small again."""
    placer, boundaries = Placer(budget=4), list(range(64, 6401, 64))
    for back in (6000, 6100, 6200, 6300) * 25:
        placer.observe(back)
    deep = placer.surviving(boundaries, 6400)
    recent = RollbackHistogram()
    for back in (100, 300, 500) * 100:
        placer.observe(back)
        recent.add_rollback(back)
    law = recent.law(6400)
    assert expected_recompute(law, sorted(placer.surviving(boundaries, 6400))) < 64 * 2
    assert expected_recompute(law, sorted(deep)) > 64 * 4


def test_a_placer_without_budget_is_refused():
    with pytest.raises(ValueError, match="budget of 0"):
        Placer(budget=0)
