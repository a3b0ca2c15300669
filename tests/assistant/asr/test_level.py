"""One level for every microphone, and a hiss that hides nothing."""

import numpy as np

from assistant.asr.level import MOST_GAIN, USUAL, Level
from assistant.asr.mfcc import CEPSTRA, FILTERS, Cepstra, MelPower, power_of_white_noise


def leveled(sound: np.ndarray, level: Level) -> np.ndarray:
    powers = list(MelPower().push(sound * 32767))
    level.settle(powers)
    cepstra = Cepstra()
    return np.array([cepstra.of(level.leveled(power)) for power in powers])


def test_a_quiet_microphone_gives_the_cepstra_of_a_loud_one(spoken):
    sound = spoken("what time is it").astype(np.float64)
    loud, quiet = leveled(sound, Level()), leveled(sound / 20, Level())
    assert np.allclose(loud, quiet, atol=1e-6)
    assert np.ptp(loud[:, 0]) > 20


def test_digital_silence_is_a_faint_hiss():
    silence = leveled(np.zeros(16_000), Level())
    assert silence.shape[1] == CEPSTRA
    assert np.isfinite(silence).all()


def test_a_new_talk_is_judged_by_its_first_frames_and_a_known_one_by_what_was_learnt():
    loud, soft = (np.full(FILTERS, np.exp(USUAL - below) / FILTERS) for below in (0.0, 4.0))
    level = Level()
    gains = []
    for powers in ([soft] * 10, [loud] * 10, [loud] * 10):
        gains.append(level.settle(powers))
        level.learn(powers)
    assert np.allclose(np.log(gains), [4.0, 0.0, -2.0])
    hiss = level.leveled(np.zeros(FILTERS))
    assert np.allclose(level.leveled(soft) - hiss, soft * np.exp(2.0))


def test_silence_says_nothing_of_a_voice():
    voice = [np.full(FILTERS, np.exp(USUAL) / FILTERS)] * 10
    level = Level()
    assert level.settle([np.zeros(FILTERS)] * 10) == MOST_GAIN
    level.learn([np.zeros(FILTERS)] * 10)
    assert not level.known
    assert np.isclose(level.settle(voice), 1 / MOST_GAIN)


def test_noise_is_known_at_any_level():
    """What was learnt of the noise at one gain holds at another."""
    noise = power_of_white_noise()
    once, again = Cepstra(), Cepstra()
    for _ in range(50):
        once.of(noise * 1e6)
        again.of(noise * 1e3)
    again.scale(1e3)
    assert np.allclose(once.of(noise * 1e6), again.of(noise * 1e6))
