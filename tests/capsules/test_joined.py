"""Kernels that join neighbours: equal to the operators they stand for, and code that fits every card."""

from collections.abc import Callable

import pytest
import torch

from tests.capsules.kernel_tools import ARCHITECTURES, interpreted, launched
from tests.capsules.test_kernels import given, long, wide

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")


def cached(rows: int, heads: int, groups: int, size: int, gated: bool) -> None:
    from capsules.nn.kernels.attention import launch_decode_attention
    from capsules.nn.kernels.chunk_attention import launch_chunk_attention
    from capsules.nn.kernels.heads import launch_heads

    qkv, cache = given(rows, ((2 if gated else 1) * heads + 2 * groups) * size), given(4352, groups, size)
    turn = wide(rows, 64 if gated else size)
    q = launch_heads(qkv, heads, wide(size), wide(size), 1e-6, turn, turn, long(1), cache, cache)
    gate = given(rows, heads, 2 * size)[..., size:] if gated else None
    if rows == 1:
        launch_decode_attention(q[0], cache, cache, long(1), size**-0.5, None if gate is None else gate[0])
    else:
        launch_chunk_attention(q, cache, cache, long(1), size**-0.5, gate)


def plain_heads() -> None:
    from capsules.nn.kernels.heads import launch_heads

    turn, cache = wide(1, 128), given(4352, 8, 128)
    launch_heads(given(1, (32 + 2 * 8) * 128), 32, None, None, 1e-6, turn, turn, long(1), cache, cache)


def drawn(rows: int, candidates: int) -> None:
    from capsules.nn.kernels.draw import launch_draw

    each = (wide(rows, 1), long(rows, 1)) if rows > 1 else (wide(1), long(1))
    launch_draw(wide(rows, candidates), long(rows, candidates), *each, wide(1), wide(1), long(1), long(1))


def penalties() -> None:
    from capsules.nn.kernels.draw import launch_penalise

    flags = given(248320, dtype=torch.bool)
    launch_penalise(wide(248320), flags, given(248320, dtype=torch.int32), flags, wide(1), wide(1))


def residual(size: int) -> None:
    from capsules.nn.kernels.residual import launch_add_norm

    launch_add_norm(given(64, size), given(64, size), wide(size), 1e-6)


def opened() -> None:
    from capsules.nn.kernels.gemv import launch_gemv

    launch_gemv(given(1, 2560), given(2 * 9216, 2560), paired=True)
    launch_gemv(given(1, 2560), given(248320, 2560), wide=True)


def rotary() -> None:
    from capsules.nn.kernels.angles import launch_angles

    launch_angles(long(3, 64), None, 64, 1e7, 11, 10)


LAUNCHES: dict[str, Callable[[], None]] = {
    "a token of the 4B": lambda: cached(1, 16, 4, 256, True),
    "a chunk of the 4B": lambda: cached(64, 16, 4, 256, True),
    "a chunk of the 27B": lambda: cached(24, 24, 4, 256, True),
    "a row of the voice": lambda: cached(1, 32, 8, 128, False),
    "a chunk of the voice": lambda: cached(256, 32, 8, 128, False),
    "heads of a plain decoder": plain_heads,
    "a draw of words": lambda: drawn(1, 1024),
    "a draw of codes": lambda: drawn(8, 128),
    "penalties": penalties,
    "residual of 2560": lambda: residual(2560),
    "residual of 5120": lambda: residual(5120),
    "gate and head": opened,
}
"""As they are launched in the published shapes."""


@pytest.mark.slow
def test_each_equals_what_it_stands_for_in_the_interpreter() -> None:
    found = interpreted("tests.capsules.interpreted_joined")
    assert len(found) == 133 and found.pop("draws") == -150
    exact = ("capacity", "values", "differ", "penalties")
    for case, error in found.items():
        most = 0.0 if case.endswith(exact) else 2e-2 if "bfloat16" in case else 3e-6  # cut off three times in a row
        assert error <= most, case


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", LAUNCHES)
def test_each_fits_every_card(name: str, architecture: int) -> None:
    for launch in launched(LAUNCHES[name]):
        assert launch.compiled(architecture).lacks == [], launch.name


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_only_the_cosine_of_a_far_position_leaves_its_registers(architecture: int) -> None:
    [launch] = launched(rotary)
    code = launch.compiled(architecture)
    assert code.stack <= 48, "the library's own path for angles above 100,000"
    assert code.registers < 64


@pytest.mark.slow
def test_a_draw_takes_its_logarithms_exactly() -> None:
    [launch] = launched(LAUNCHES["a draw of words"])
    fast = launch.compiled(90).instructions["MUFU.LG2"]
    assert not fast, "the fast one loses what makes an unlikely word win: near 1 its error is larger than the value"
