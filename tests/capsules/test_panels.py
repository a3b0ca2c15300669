"""Matrices in panels: what rounding may cost, where values lie, and kernels against the unpacked product."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from capsules.exec import native
from capsules.nn import embed, linear
from capsules.nn.int4 import Int4Weight, quantise_int4
from capsules.nn.panels import GROUPS, PanelWeight, empty_panels, pack_panels, panel_shapes

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="needs a C++ compiler; `apt install g++` brings one"
)
SHAPES = [(1, 1), (16, 32), (131, 100), (48, 700)]
BITS = [8, 4]


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def packed(matrix: Tensor, bits: int) -> PanelWeight:
    return PanelWeight(*pack_panels(matrix, bits), matrix.shape)


def exact_inputs(rows: int, columns: int, bits: int, dtype: torch.dtype) -> Tensor:
    """Whole numbers of which each group holds a 127: eight bits hold them as they are."""
    x = torch.randint(-127, 128, (rows, columns), generator=torch.Generator().manual_seed(rows)).float()
    x[:, :: GROUPS[bits]] = 127
    return (x / 64).to(dtype)


def product(x: Tensor, weight: PanelWeight, folder: Path | None) -> Tensor:
    with torch.no_grad(), native.using(folder):
        return linear(x, weight)


def ratio(actual: Tensor, expected: Tensor) -> float:
    return float((actual.double() - expected).square().mean().sqrt() / expected.square().mean().sqrt())


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_packed_matrix_is_within_half_a_step_of_itself(shape: tuple[int, int], bits: int) -> None:
    plain = randn(*shape) * torch.logspace(-6, 3, shape[0])[:, None]
    weight = packed(plain, bits)
    values, scale = panel_shapes(*shape, bits)
    assert (tuple(weight.values.shape), tuple(weight.scale.shape)) == (values, scale) and weight.bits == bits
    back = weight.unpack(torch.float32)
    step = weight.scale.float().abs().transpose(1, 2).flatten(0, 1).repeat_interleave(GROUPS[bits], 1)
    # Four bits end at 7 on one side, and a scale is rounded to bfloat16: the largest may lie a whole step away.
    far = (0.5 if bits == 8 else 1.0) + 127 / 256 * (bits == 8) + 8 / 256
    assert back.shape == plain.shape
    assert bool(((back - plain).abs() <= step[: shape[0], : shape[1]] * far).all())
    assert ratio(back, plain.double()) < (0.01 if bits == 8 else 0.12)


@pytest.mark.parametrize("bits", BITS)
def test_what_fits_survives_and_lies_where_it_is_said(bits: int) -> None:
    most = 127 if bits == 8 else 7
    whole = torch.randint(-most, most + 1, (40, 3 * GROUPS[bits]), generator=torch.Generator().manual_seed(1)).float()
    whole[:, :: GROUPS[bits]] = -127 if bits == 8 else -8
    weight = packed(whole * 0.5, bits)
    assert torch.equal(weight.unpack(torch.float32), whole * 0.5)
    assert torch.equal(packed(torch.zeros(20, 5), bits).unpack(torch.float32), torch.zeros(20, 5))
    row, column = 21, GROUPS[bits] + 6  # the second panel's sixth row; the second group's second step, third input
    byte = int(weight.values[1, 1, (1 if bits == 8 else 0) * 64 + 5 * 4 + 2])
    assert (byte - 128 if bits == 8 else (byte >> 4) - 8) == int(whole[row, column])


@pytest.mark.parametrize("bits", BITS)
def test_rows_and_slices_are_those_of_the_matrix(bits: int) -> None:
    plain = randn(70, 100)
    weight = packed(plain, bits)
    whole, ids = weight.unpack(torch.bfloat16), torch.tensor([69, 0, 15, 16, 33, 16])
    assert torch.equal(embed(ids, weight), whole[ids])
    assert torch.equal(weight[32:70].unpack(torch.bfloat16), whole[32:])
    assert torch.equal(embed(ids.view(2, 3), weight), whole[ids.view(2, 3)])
    target = empty_panels(*weight.shape, bits, weight.values.device)
    for rows in (slice(0, 32), slice(32, 70)):
        target[rows].values.copy_(target[rows].fill(plain[rows]))
    assert torch.equal(target.values, weight.values) and torch.equal(target.scale, weight.scale)


def test_known_scales_lose_nothing() -> None:
    whole = torch.randint(-8, 8, (30, 64), generator=torch.Generator().manual_seed(2)).float()
    groups = (torch.rand(30, 2, generator=torch.Generator().manual_seed(3)) + 0.5).bfloat16()
    plain = whole * groups.float().repeat_interleave(32, 1)
    weight = PanelWeight(*pack_panels(plain, 4, groups), plain.shape)
    assert torch.equal(weight.unpack(torch.float32), plain)


@pytest.mark.parametrize("bits", BITS)
def test_the_plain_product_is_that_of_the_unpacked_matrix(bits: int) -> None:
    weight = packed(randn(131, 100), bits)
    for rows in (1, 5):
        x = randn(rows, 100, seed=rows).bfloat16()
        expected = x.float() @ weight.unpack(torch.float32).T
        assert ratio(product(x, weight, None), expected.double()) < 3e-3


@pytest.mark.slow  # the kernels are built
@needs_compiler
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_for_any_number_of_rows(
    kernel_folder: Path, dtype: torch.dtype, shape: tuple[int, int], bits: int
) -> None:
    weight = packed(randn(*shape, seed=1), bits)
    whole = weight.unpack(torch.float64)
    for rows in (1, 2, 8, 9, 24, 70):
        exact = exact_inputs(rows, shape[1], bits, dtype)
        actual = product(exact, weight, kernel_folder)
        assert actual.shape == (rows, shape[0]) and actual.dtype == dtype
        assert ratio(actual, exact.double() @ whole.T) < (1e-6 if dtype == torch.float32 else 4e-3)
        x = randn(rows, shape[1], seed=rows).to(dtype)
        assert ratio(product(x, weight, kernel_folder), x.double() @ whole.T) < 0.015  # inputs are in eight bits, too


@pytest.mark.slow  # the kernels are built
@needs_compiler
@pytest.mark.parametrize("bits", BITS)
def test_a_row_does_not_depend_on_its_neighbours_nor_a_result_on_threads(
    kernel_folder: Path, threads: Callable[[int], None], bits: int
) -> None:
    x, weight = randn(64, 700).bfloat16(), packed(randn(500, 700, seed=1), bits)
    threads(1)
    whole = product(x, weight, kernel_folder)
    for rows in (1, 2, 8, 24, 40):
        assert torch.equal(product(x[:rows], weight, kernel_folder), whole[:rows])
    threads(2)
    assert torch.equal(product(x, weight, kernel_folder), whole)
    assert torch.equal(product(x[:1], weight, kernel_folder), whole[:1])


@pytest.mark.slow  # the kernels are built
@needs_compiler
def test_zeros_and_infinities_stay_what_they_are(kernel_folder: Path) -> None:
    weight = packed(randn(20, 100, seed=1), 8)
    x = torch.zeros(3, 100)
    x[1, 70] = float("inf")
    made = product(x, weight, kernel_folder)
    assert torch.equal(made[0], torch.zeros(20)) and torch.equal(made[2], torch.zeros(20))
    assert not bool(made[1].isfinite().any())


CHILD = """
import json, sys
from pathlib import Path
import torch
from capsules.exec import native
native._FLAGS = (*native._FLAGS, sys.argv[1])
from tests.capsules.test_panels import exact_inputs, packed, product, randn
torch.set_num_threads(1)
found = []
for bits in (8, 4):
    weight = packed(randn(131, 100, seed=1), bits)
    for rows in (1, 9, 40):
        exact = exact_inputs(rows, 100, bits, torch.float32)
        found.append([product(x, weight, Path(sys.argv[2])).tolist() for x in (exact, randn(rows, 100))])
print(json.dumps(found))
"""


@pytest.mark.slow  # the kernels are built
@needs_compiler
@pytest.mark.parametrize("flag", ["-march=x86-64", "-march=x86-64-v3", "-DNO_TILES"])
def test_older_processors_agree(kernel_folder: Path, tmp_path: Path, flag: str) -> None:
    """Built for another processor the sums of a group are the same whole numbers; only fused roundings may differ."""
    if os.uname().machine != "x86_64":
        pytest.skip("kernels for x86-64 run there alone")
    command = [sys.executable, "-c", CHILD, flag, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    found = iter(json.loads(done.stdout))
    for bits in BITS:
        weight = packed(randn(131, 100, seed=1), bits)
        for rows in (1, 9, 40):
            inputs = exact_inputs(rows, 100, bits, torch.float32), randn(rows, 100)
            for x, theirs in zip(inputs, next(found), strict=True):
                assert ratio(torch.tensor(theirs), product(x, weight, kernel_folder).double()) < 1e-6


def test_four_bits_of_a_gpu_are_those_of_a_processor() -> None:
    plain = randn(80, 96) * torch.logspace(-3, 3, 80)[:, None]
    plain[3] = 0
    plain[4, :32] = plain[4, :32].abs()
    four = Int4Weight(*quantise_int4(plain))
    assert torch.equal(four.unpack(torch.float32), packed(plain, 4).unpack(torch.float32))
    assert four.scale.dtype == torch.bfloat16 and four.packed.shape == (80, 12)
    rows = Int4Weight(torch.zeros_like(four.packed), torch.zeros_like(four.scale))
    for part in (slice(0, 16), slice(16, 80)):
        rows[part].values.copy_(rows[part].fill(plain[part]))
    assert torch.equal(rows.packed, four.packed) and torch.equal(rows.scale, four.scale)
