"""The codec's kernels: the plain decoder in value, blind to what surrounds a frame, and code that fits every card."""

from collections.abc import Callable

import pytest

from tests.capsules.kernel_tools import ARCHITECTURES, interpreted, launched
from tests.capsules.test_kernels import long, wide

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")


def convolution(rows: int, channels: int, outputs: int, taps: int, narrow: bool) -> None:
    from tts_engine.codec_kernels import launch_conv

    strides = [channels * outputs, outputs, 1]
    weight, added = wide(taps * channels, outputs), wide(rows, outputs)
    launch_conv(wide(rows, channels), weight, wide(outputs), strides, taps, outputs, 3, 9, rows, narrow, added)


def in_columns() -> None:
    from tts_engine.codec_kernels import launch_conv

    launch_conv(wide(20160, 32), wide(1, 224), wide(1), [1, 7, 224], 7, 1, 1, 3, 20160, False)


def codes() -> None:
    from tts_engine.codec_kernels import launch_codes_sum

    launch_codes_sum(long(8, 21), wide(8 * 1025, 1024), wide(1024), long(2))


def snake() -> None:
    from tts_engine.codec_kernels import launch_snake

    launch_snake(wide(168, 512), wide(512), wide(512), long(2), 8)


LAUNCHES: dict[str, Callable[[], None]] = {
    "codes": codes,
    "few positions": lambda: convolution(168, 512, 512, 7, True),
    "many positions": lambda: convolution(20160, 64, 64, 7, False),
    "in columns": in_columns,
}


@pytest.mark.slow
def test_they_make_the_plain_decoders_sound_and_stream_it_bit_for_bit() -> None:
    found = interpreted("tests.tts_engine.interpreted_codec")
    assert len(found) == 15 and found.pop("streamed") == 0
    assert not {case: error for case, error in found.items() if not error < 2e-6}


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", LAUNCHES)
def test_each_fits_every_card(name: str, architecture: int) -> None:
    [launch] = launched(LAUNCHES[name])
    assert launch.compiled(architecture).lacks == []


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_only_the_sine_of_a_large_value_leaves_its_registers(architecture: int) -> None:
    [launch] = launched(snake)
    assert launch.compiled(architecture).stack <= 48, "the library's own path for values above 100,000"
