"""One row times a packed matrix: as near to float64 as the plain product or nearer, in half the instructions."""

from functools import partial

import pytest
import torch

from capsules.exec.switches import Switch, switched
from capsules.nn import linear
from capsules.nn.fp8 import Fp8Weight
from capsules.nn.int4 import Int4Weight
from tests.capsules.kernel_tools import ARCHITECTURES, Launch, interpreted, launched
from tests.capsules.test_kernels import PRODUCTS, given, wide
from tests.fakes.cuda import fake_cuda
from tests.fakes.launches import count

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")

WEIGHTS = 2 * 4 * 128 * 8 / 128
"""Of a thread in one round of the loop, which is two tiles long."""


def launch(stored: str, paired: bool = False, shifted: bool = False) -> Launch:
    from capsules.nn.kernels.packed_row import launch_packed_row

    if stored == "fp8":
        w, scale, group = given(12288, 2560, dtype=torch.float8_e4m3fn), wide(384, 20), (32, 128)
    else:
        w, scale, group = given(12288, 320, dtype=torch.int32), given(12288, 80), (1, 32)
    shift = scale if shifted else None
    [found] = launched(lambda: launch_packed_row(given(1, 2560), w, scale, group, shift, paired))
    return found


@pytest.mark.slow
def test_it_is_as_near_to_float64_as_the_plain_product() -> None:
    found = interpreted("tests.capsules.interpreted_packed_row")
    assert len(found) == 101 and found.pop("every E4M3 value exactly") == 0
    for case, error in found.items():
        if case.endswith(" wide"):
            plain = found[f"{case.removesuffix(' wide')} plain"]
            assert error <= plain, f"{case}: {error} where the plain product has {plain}"
        elif not case.endswith(" plain"):
            assert error < (5e-6 if case.endswith("paired") else 4e-7), case


@pytest.mark.slow
@pytest.mark.parametrize("shifted", [False, True], ids=["", "shifted"])
@pytest.mark.parametrize("paired", [False, True], ids=["", "paired"])
@pytest.mark.parametrize(("stored", "most"), [("fp8", 6.6), ("int4", 7.2)])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_waits_for_nobody_and_rounds_no_weight(
    architecture: int, stored: str, most: float, paired: bool, shifted: bool
) -> None:
    code = launch(stored, paired, shifted).compiled(architecture)
    assert code.lacks == []
    assert not [name for name in code.loop if name.startswith(("F2F", "BAR", "LDS", "STS"))]
    assert code.loop.total() / WEIGHTS <= most + shifted
    assert code.registers <= (72 if shifted else 64), "seven or eight blocks of four warps on a unit"


@pytest.mark.slow
@pytest.mark.parametrize("stored", ["fp8", "int4"])
def test_the_product_that_rounds_takes_half_as_many_again(stored: str) -> None:
    old = launched(PRODUCTS[f"{stored} 1x2560 to 12288"])[0].compiled(90)
    assert old.instructions["F2F.BF16.F32"] == 32
    assert old.loop.total() / 32 > 1.4 * launch(stored).compiled(90).loop.total() / WEIGHTS


def test_its_switch_decides_about_one_row() -> None:
    with fake_cuda() as ctx:
        eight = Fp8Weight(
            torch.empty(64, 256, dtype=torch.float8_e4m3fn, device=ctx.device),
            torch.empty(2, 2, device=ctx.device), (32, 128),
        )  # fmt: skip
        four = Int4Weight(
            torch.empty(64, 32, dtype=torch.int32, device=ctx.device), torch.empty(64, 8, device=ctx.device)
        )
        odd = Fp8Weight(eight.values, torch.empty(22, 37, device=ctx.device), (3, 7))
        row, rows = (torch.empty(n, 256, dtype=torch.bfloat16, device=ctx.device) for n in (1, 3))
        with switched(frozenset({Switch.PACKED})):
            pairs = ((row, eight), (row, four), (row, odd), (rows, four))
            on = [dict(count(partial(linear, x, w))) for x, w in pairs]
        off = dict(count(lambda: linear(row, four)))
    assert on == [{"capsules::packed_row": 1}] * 2 + [{"capsules::gemv_fp8": 1}, {"capsules::gemv_int4": 1}]
    assert off == {"capsules::gemv_int4": 1}
