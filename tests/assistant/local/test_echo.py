"""The echo canceller of `assistant talk`: the loudspeaker's sound goes, the user's stays, blocks keep their length."""

import numpy as np
import pytest

from assistant.events import REPLY_RATE
from assistant.local.echo import echo_canceller
from assistant.local.form import BLOCK

pytest.importorskip("livekit", reason="no echo canceller here; pip install 'voice-assistant[talk]' to un-skip")


def bursts(seed: int, seconds: float) -> np.ndarray:
    """Noise that comes and goes four times a second, as loud as speech."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * REPLY_RATE)) / REPLY_RATE
    low = np.convolve(rng.standard_normal(time.size), np.ones(6) / 6, "same")
    return (0.2 * low * (np.sin(2 * np.pi * 4 * time) > 0)).astype(np.float32)


def heard(played: np.ndarray, microphone: np.ndarray) -> np.ndarray:
    canceller = echo_canceller()
    cleaned = []
    for start in range(0, played.size - BLOCK + 1, BLOCK):
        canceller.played(played[start : start + BLOCK])
        cleaned.append(canceller.cleaned(microphone[start : start + BLOCK]))
    assert {part.size for part in cleaned} == {BLOCK}
    return np.concatenate(cleaned)


def level_db(sound: np.ndarray) -> float:
    return 20 * np.log10(float(np.sqrt(np.mean(sound.astype(np.float64) ** 2))) + 1e-9)


@pytest.mark.parametrize("delay_ms", [60, 400])
def test_the_loudspeakers_sound_is_removed_and_the_users_is_not(delay_ms: int):
    """400 ms is more than devices hold, and less than a loaded machine does."""
    played = bursts(1, 4.0)
    delay = REPLY_RATE * delay_ms // 1000
    echo = 0.4 * np.concatenate([np.zeros(delay, np.float32), played[:-delay]])
    last = slice(2 * REPLY_RATE, 4 * REPLY_RATE - BLOCK)
    assert level_db(heard(played, echo)[last]) < level_db(echo[last]) - 20
    user = bursts(2, 4.0)
    assert level_db(heard(np.zeros_like(user), user)[last]) > level_db(user[last]) - 3


def test_a_word_over_a_reply_stays_where_nothing_echoes():
    """Headphones: half a second of the user's voice, after seconds of a reply that the microphone does not hear."""
    played, word = bursts(1, 8.0), slice(5 * REPLY_RATE, 11 * REPLY_RATE // 2)
    microphone = 3e-4 * np.random.default_rng(3).standard_normal(played.size).astype(np.float32)
    microphone[word] += bursts(2, 0.5)
    assert level_db(heard(played, microphone)[word]) > level_db(microphone[word]) - 1
