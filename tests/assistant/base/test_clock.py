"""Samples of a stream have moments."""

from assistant.base.clock import SampleClock


def test_samples_have_moments():
    clock = SampleClock(16_000)
    clock.advance(16_000, 5.0)
    assert clock.moment_of(8_000) == 4.5 and clock.moment_of(99_000) == 5.0 and clock.ms == 1000
