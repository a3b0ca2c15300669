"""Our own voice is taken out of the microphone and is nobody; the user is heard over it; silence costs nothing."""

import numpy as np
import pytest

from assistant.asr.detector import SileroDetector
from assistant.asr.echo_filter import HOP, PARTITIONS
from assistant.asr.own_voice import LONGEST_LAG, OwnVoice, lag_of
from assistant.contracts import PlayedSound

RATE = 16_000


def bursts(seed: int, seconds: float) -> np.ndarray:
    """Noise that comes and goes four times a second, as loud as speech."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * RATE)) / RATE
    low = np.convolve(rng.standard_normal(time.size), np.ones(4) / 4, "same")
    return (0.2 * low * (np.sin(2 * np.pi * 4 * time + seed) > 0)).astype(np.float32)


def echo_of(played: np.ndarray, delay_ms: float, gain: float = 0.7) -> np.ndarray:
    """Through a small room: a direct sound and a tail that dies out over 100 ms."""
    rng = np.random.default_rng(9)
    tail = rng.standard_normal(1_600) * np.exp(-np.arange(1_600) / 300) * 0.1
    tail[0] = 1.0
    late = np.pad(played, (int(delay_ms * RATE / 1000), 0))[: played.size]
    return (gain * np.convolve(late, tail)[: played.size]).astype(np.float32)


def parted(own: OwnVoice, played: np.ndarray, heard: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    blocks = [own.part(played[at : at + HOP], heard[at : at + HOP]) for at in range(0, played.size - HOP + 1, HOP)]
    return np.concatenate([sound for sound, _ in blocks]), np.array([user for _, user in blocks])


def longest(user: np.ndarray) -> int:
    """Blocks in a row: two make an onset."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], user.astype(int), [0]])))
    return int(np.max(np.diff(ends)[::2], initial=0))


def level_db(sound: np.ndarray) -> float:
    return 10 * float(np.log10(np.mean(np.square(sound, dtype=np.float64)) + 1e-12))


@pytest.mark.parametrize("delay_ms", [60, 130, 480])
def test_an_echo_is_never_the_user_and_goes(delay_ms: float) -> None:
    played = bursts(1, 8.0)
    echo = echo_of(played, delay_ms)
    sound, user = parted(OwnVoice(), played, echo)
    comes = int(np.argmax(np.abs(echo) > 0)) // HOP
    assert longest(user[comes:]) <= 2 and not user[comes + 2 :].any(), "a detector takes three blocks to believe it"
    last = slice(6 * RATE, sound.size)
    assert level_db(sound[last]) < level_db(echo[last]) - 15


def test_the_user_is_heard_over_the_echo_and_stays_in_it() -> None:
    played = bursts(1, 8.0)
    words = np.zeros_like(played)
    words[5 * RATE : 7 * RATE] = bursts(2, 2.0)
    sound, user = parted(OwnVoice(), played, echo_of(played, 200) + words)
    inside = slice(5 * RATE // HOP + 1, 7 * RATE // HOP)
    loud = np.abs(words[: user.size * HOP]).reshape(-1, HOP).max(axis=1) > 0.1
    assert user[inside][loud[inside]].mean() > 0.6
    assert longest(user[inside][:8]) >= 2, "noticed within a quarter of a second"
    assert not user[200 * RATE // 1000 // HOP + 3 : 5 * RATE // HOP - 1].any()
    spoken = slice(5 * RATE, 7 * RATE)
    assert level_db((sound - words[: sound.size])[spoken]) < level_db(words[spoken]) - 8


def test_the_next_reply_may_come_back_later_or_earlier() -> None:
    own = OwnVoice()
    parted(own, bursts(1, 6.0), echo_of(bursts(1, 6.0), 200))
    for seed, delay_ms in ((3, 240), (4, 150)):
        played = np.concatenate([np.zeros(RATE, np.float32), bursts(seed, 4.0)])
        own.begin()
        sound, user = parted(own, played, echo_of(played, delay_ms))
        assert longest(user[RATE // HOP + PARTITIONS :]) < 2, "from the first sound that can have come back"
        assert level_db(sound[3 * RATE :]) < level_db(echo_of(played, delay_ms)[3 * RATE :]) - 12


def test_with_headphones_everything_goes_on_bit_for_bit() -> None:
    own, words = OwnVoice(), bursts(2, 6.0)
    for seed in (1, 3):
        own.begin()
        sound, user = parted(own, bursts(seed, 6.0), words)
        assert user.all() and np.array_equal(sound, words[: sound.size])


def test_who_puts_headphones_on_is_heard_untouched_again() -> None:
    own, words = OwnVoice(), bursts(2, 6.0)
    parted(own, bursts(1, 6.0), echo_of(bursts(1, 6.0), 200))
    own.begin()
    sound, user = parted(own, bursts(3, 6.0), words)
    last = slice(4 * RATE // HOP, None)
    assert user[last].all() and np.array_equal(sound[4 * RATE :], words[4 * RATE : sound.size])


def test_who_hears_nothing_of_a_reply_is_not_suspected_later() -> None:
    own, played = OwnVoice(), bursts(1, 6.0)
    parted(own, played[: 2 * RATE], np.zeros(2 * RATE, np.float32))
    _, user = parted(own, played[2 * RATE :], echo_of(played, 200)[2 * RATE :])
    assert user.all(), "whatever it is: this reply does not come back"
    own.begin()
    assert not parted(own, played, echo_of(played, 200))[1][RATE // HOP :].any(), "the next may"


def test_before_an_echo_is_certain_no_sound_is_changed() -> None:
    played, own = bursts(1, 2.0), OwnVoice()
    echo = echo_of(played, 200)
    sound, user = parted(own, played, echo)
    first = int(np.argmax(~user)) * HOP
    assert 0 < first < 0.4 * RATE and np.array_equal(sound[: first + 4 * HOP], echo[: first + 4 * HOP])


def test_whoever_gets_a_detector_next_sits_in_another_room() -> None:
    played, heard = bursts(1, 3.0), bursts(2, 3.0)
    used, fresh = SileroDetector(), SileroDetector()
    used.push(echo_of(played, 200), PlayedSound(played, anew=True))
    used.reset()
    assert used.push(heard, PlayedSound(played, anew=True)) == fresh.push(heard, PlayedSound(played, anew=True))


def test_where_nothing_plays_nothing_is_touched() -> None:
    own, heard, silence = OwnVoice(), bursts(2, 2.0), np.zeros(2 * RATE, np.float32)
    sound, user = parted(own, silence, heard)
    assert user.all() and np.array_equal(sound, heard[: sound.size])
    parted(own, bursts(1, 2.0), echo_of(bursts(1, 2.0), 100))
    parted(own, silence[: (PARTITIONS + 1) * HOP], heard[: (PARTITIONS + 1) * HOP])
    sound, user = parted(own, silence, heard)
    assert user.all() and np.array_equal(sound, heard[: sound.size])


@pytest.mark.parametrize("lag", [0, 37, -411, LONGEST_LAG])
def test_a_lag_is_found_with_its_gain(lag: int) -> None:
    sound = bursts(1, 1.0)
    there = np.roll(np.pad(sound, (3_000, 3_000)), lag) * 0.5
    found = lag_of(np.pad(sound, (3_000, 3_000)), there.astype(np.float32))
    assert found.samples == lag and found.gain == pytest.approx(0.5, rel=0.01) and found.alike > 0.99
    assert lag_of(np.zeros(100, np.float32), sound[:100]).alike == 0.0


def test_the_detector_cuts_both_sounds_alike_however_they_come() -> None:
    played, heard = bursts(1, 1.0), echo_of(bursts(1, 1.0), 50) + bursts(2, 1.0)
    whole = SileroDetector().push(heard, PlayedSound(played, anew=True))
    detector, pieces, at = SileroDetector(), [], 0
    for size in [1, 511, 512, 513, 7, 3_000, 20_000]:
        part = slice(at, at + size)
        pieces += detector.push(heard[part], PlayedSound(played[part], anew=at == 0))
        at += size
    assert pieces == whole
    assert all(np.array_equal(a.sound, b.sound) for a, b in zip(pieces, whole, strict=True))
