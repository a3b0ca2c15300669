"""The player: what is taken is what was put, stopping fades, ducking glides."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assistant.local.player import DUCKED, FADE_SAMPLES, Player


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 900)), max_size=8),
    st.lists(st.integers(1, 700), max_size=12),
)
def test_what_is_taken_is_what_was_put_in_order(put, taken):
    player = Player()
    for index, (item, samples) in enumerate(put):
        player.put(item, np.full(samples, (index + 1) / 10, np.float32))
    wanted = np.concatenate([np.full(n, (i + 1) / 10, np.float32) for i, (_, n) in enumerate(put)] or [np.zeros(0)])
    got = np.concatenate([player.take(n) for n in taken] or [np.zeros(0)])
    n = min(wanted.size, got.size)
    assert np.array_equal(got[:n], wanted[:n]) and not got[n:].any()
    heard = sum(player.heard_samples(item) for item in "ab")
    assert heard == n


def test_stopping_fades_and_says_what_was_heard():
    player = Player(latency_samples=100)
    player.put("a", np.ones(10_000, np.float32))
    player.take(2_000)
    assert player.current == "a" and player.heard_samples("a") == 1_900
    assert player.stop() == "a" and player.stop() == ""
    tail = player.take(2_000)
    assert tail[0] == 1 and tail[FADE_SAMPLES - 1] == 0 and not tail[FADE_SAMPLES:].any()
    assert player.heard_samples("a") == 2_000 and player.current is None and player.stop() is None


def test_ducking_glides():
    player = Player()
    player.put("a", np.ones(5_000, np.float32))
    player.duck()
    low = player.take(1_000)
    assert low[0] == 1 and low[-1] == np.float32(DUCKED) and np.abs(np.diff(low)).max() < 0.01
    player.unduck()
    assert player.take(1_000)[-1] == 1 and player.heard_samples("a") == 2_000


def test_held_it_falls_silent_stays_at_its_sample_and_goes_on_from_there():
    player, ramp = Player(), np.linspace(0.1, 1.0, 6_000, dtype=np.float32)
    player.put("a", ramp)
    player.take(1_000)
    player.duck(0.0)
    fading, silence = player.take(1_000), player.take(700)
    assert not fading[FADE_SAMPLES:].any() and not silence.any()
    assert player.heard_samples("a") == 1_000 + FADE_SAMPLES
    player.unduck()
    assert player.take(1_000)[-1] == ramp[1_000 + FADE_SAMPLES + 999]
    player.duck(0.0)
    player.take(900)
    assert player.stop() == "a" and not player.take(900).any()
