"""The shared Triton kernels: equal to their plain references in the interpreter, and code that fits every card."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.capsules.kernel_tools import ARCHITECTURES, interpreted, launched

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")


def given(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """Without memory, at an address as even as a card's."""
    return torch.empty(shape, dtype=dtype, device="meta")


def wide(*shape: int) -> Tensor:
    return given(*shape, dtype=torch.float32)


def long(*shape: int) -> Tensor:
    return given(*shape, dtype=torch.int64)


def product(stored: str, rows: int, outputs: int = 12288, inputs: int = 2560) -> None:
    """As `linear` launches it: block scales of 32 x 128, groups of 32."""
    from capsules.nn.kernels import gemv

    x = given(rows, inputs)
    if stored == "plain":
        gemv.launch_gemv(x, given(outputs, inputs))
    elif stored == "fp8":
        values = given(outputs, inputs, dtype=torch.float8_e4m3fn)
        gemv.launch_gemv_fp8(x, values, wide(outputs // 32, inputs // 128), 32, 128)
    else:
        packed, groups = given(outputs, inputs // 8, dtype=torch.int32), given(outputs, inputs // 32)
        gemv.launch_gemv_int4(x, packed, groups, groups if stored == "shifted" else None)


def attention(heads: int, groups: int, size: int) -> None:
    from capsules.nn.kernels.attention import launch_decode_attention

    cache = given(4160, groups, size)
    launch_decode_attention(given(heads, size), cache, cache, long(1), size**-0.5)


def norms(size: int) -> None:
    from capsules.nn.kernels.norm import launch_rms_norm

    launch_rms_norm(given(1, size), wide(size), 1e-6)


def norm_rotate(heads: int, size: int, turned: int) -> None:
    from capsules.nn.kernels.norm import launch_norm_rotate

    launch_norm_rotate(given(1, heads, 2 * size)[..., :size], wide(size), 1e-6, wide(1, turned), wide(1, turned))


def swiglu() -> None:
    from capsules.nn.kernels.norm import launch_swiglu

    launch_swiglu(given(1, 2 * 9216))


PRODUCTS: dict[str, Callable[[], None]] = {
    f"{stored} {rows}x{inputs} to {outputs}": lambda a=stored, r=rows, o=outputs, i=inputs: product(a, r, o, i)  # type: ignore[misc]
    for stored, rows, outputs, inputs in (
        ("plain", 1, 12288, 2560), ("fp8", 1, 12288, 2560), ("int4", 1, 12288, 2560), ("int4", 1, 2560, 9216),
        ("shifted", 64, 12288, 2560),
        *((stored, rows, outputs, 2560) for stored in ("fp8", "int4") for rows in (8, 24, 64)
          for outputs in (2560, 12288)),
    )
}  # fmt: skip
LAUNCHES: dict[str, Callable[[], None]] = PRODUCTS | {
    "attention of the 4B": lambda: attention(16, 4, 256),
    "attention of the 27B": lambda: attention(24, 4, 256),
    "attention of the voice": lambda: attention(32, 8, 128),
    "norm of 2560": lambda: norms(2560),
    "norm of 5120": lambda: norms(5120),
    "norm and rotary of the 4B": lambda: norm_rotate(16, 256, 64),
    "norm and rotary of the voice": lambda: norm_rotate(32, 128, 128),
    "gate": swiglu,
}
"""As they are launched in the published shapes."""


@pytest.mark.slow
def test_every_kernel_equals_its_reference_in_the_interpreter() -> None:
    found = interpreted("tests.capsules.interpreted_kernels")
    assert len(found) == 94
    # bfloat16: the interpreter cuts off where hardware rounds, so up to one unit in the last place (2^-8 relative).
    wrong = {case: error for case, error in found.items() if error > (1e-2 if "bfloat16" in case else 2e-6)}
    assert not wrong
    assert not {c: e for c, e in found.items() if c.startswith("gemv_") and e}, "the very sums of gemv"


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", LAUNCHES)
def test_every_kernel_fits_every_card(name: str, architecture: int) -> None:
    launches = launched(LAUNCHES[name])
    assert launches
    for launch in launches:
        assert launch.compiled(architecture).lacks == [], launch.name


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_one_row_of_a_plain_matrix_is_read_sixteen_bytes_at_a_time(architecture: int) -> None:
    code = launched(PRODUCTS["plain 1x2560 to 12288"])[0].compiled(architecture)
    loads = {name for name in code.loop if name.startswith("LDG")}
    assert loads <= {"LDG.E.128", "LDG.E.128.CONSTANT", "LDG.E.ENL2.256"}, "a launch's pointers are multiples of 16"
    assert not any(name.startswith("BAR") for name in code.loop)
    weights = 2 * 1024 / (32 * code.launch.warps)
    assert code.loop.total() / weights < 5.5, "instructions a weight"
