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
from capsules.nn.groups import KnownGroups
from capsules.nn.int4 import Int4Weight, quantise_int4
from capsules.nn.panels import FORMS, PanelForm, PanelWeight, empty_panels, pack_panels

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
    return PanelWeight(*pack_panels(matrix, FORMS[bits]), matrix.shape)


def exact_inputs(rows: int, columns: int, bits: int, dtype: torch.dtype) -> Tensor:
    """Whole numbers of which each group holds a 127: eight bits hold them as they are."""
    x = torch.randint(-127, 128, (rows, columns), generator=torch.Generator().manual_seed(rows)).float()
    x[:, :: FORMS[bits].group] = 127
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
    values, scale = FORMS[bits].shapes(*shape)
    assert (tuple(weight.values.shape), tuple(weight.scale.shape)) == (values, scale) and weight.bits == bits
    back = weight.unpack(torch.float32)
    step = weight.scale.float().abs().transpose(1, 2).flatten(0, 1).repeat_interleave(FORMS[bits].group, 1)
    # Four bits end at 7 on one side, and a scale is rounded to bfloat16: the largest may lie a whole step away.
    far = (0.5 if bits == 8 else 1.0) + 127 / 256 * (bits == 8) + 8 / 256
    assert back.shape == plain.shape
    assert bool(((back - plain).abs() <= step[: shape[0], : shape[1]] * far).all())
    assert ratio(back, plain.double()) < (0.01 if bits == 8 else 0.12)


@pytest.mark.parametrize("bits", BITS)
def test_what_fits_survives_and_lies_where_it_is_said(bits: int) -> None:
    most = 127 if bits == 8 else 7
    group = FORMS[bits].group
    whole = torch.randint(-most, most + 1, (40, 3 * group), generator=torch.Generator().manual_seed(1)).float()
    whole[:, ::group] = -127 if bits == 8 else -8
    weight = packed(whole * 0.5, bits)
    assert torch.equal(weight.unpack(torch.float32), whole * 0.5)
    assert torch.equal(packed(torch.zeros(20, 5), bits).unpack(torch.float32), torch.zeros(20, 5))
    row, column = 21, group + 6  # the second panel's sixth row; the second group's second step, third input
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
    target = empty_panels(*weight.shape, FORMS[bits], weight.values.device)
    for rows in (slice(0, 32), slice(32, 70)):
        target[rows].values.copy_(target[rows].fill(plain[rows]))
    assert torch.equal(target.values, weight.values) and torch.equal(target.scale, weight.scale)


PUBLISHED = [PanelForm(4, 32), PanelForm(4, 32, True), PanelForm(8, 32), PanelForm(8, 32, True)]
"""Forms of values that come with scales for groups of 32."""


def known(form: PanelForm, rows: int, columns: int) -> tuple[Tensor, KnownGroups]:
    """A matrix of random values in groups, whose scales and shifts bfloat16 holds; one group is flat, one is zero."""
    draw, most = torch.Generator().manual_seed(2), 16 if form == PanelForm(8, 32, True) else 1 << (form.bits - 1)
    whole = torch.randint(-most, most, (rows, columns // 32, 32), generator=draw).float()
    scale = (torch.rand(rows, columns // 32, generator=draw) + 0.5).bfloat16().float()
    if not form.shifted:
        return (whole * scale[..., None]).flatten(1), KnownGroups(scale)
    shift = (torch.randn(rows, columns // 32, generator=draw) * 5).bfloat16().float()
    shift[0, 0], scale[1, 0], shift[1, 0] = 0, 0, 0
    least = (shift - most) * scale
    least[2, 0], scale[2, 0] = -0.75, 0  # every weight is -0.75
    matrix = ((whole + most) * scale[..., None] + least[..., None]).flatten(1)
    return matrix, KnownGroups.of(scale, least, most)


def kept(form: PanelForm, rows: int, columns: int) -> PanelWeight:
    matrix, groups = known(form, rows, columns)
    return PanelWeight(*pack_panels(matrix, form, groups), matrix.shape)


@pytest.mark.parametrize("form", PUBLISHED, ids=str)
def test_published_values_are_kept(form: PanelForm) -> None:
    matrix, groups = known(form, 70, 96)
    weight = PanelWeight(*pack_panels(matrix, form, groups), matrix.shape)
    assert weight.form == form
    assert torch.allclose(weight.unpack(torch.float32), matrix, rtol=1e-6, atol=1e-5)
    assert torch.equal(weight.unpack(torch.float32)[1:3, :32].unique(), matrix[1:3, :32].unique())
    ids = torch.tensor([69, 0, 15, 16, 33, 2])
    assert torch.equal(embed(ids, weight), weight.unpack(torch.bfloat16)[ids])
    target = empty_panels(70, 96, form, matrix.device)
    for rows in (slice(0, 32), slice(32, 70)):
        part = KnownGroups(groups.scale[rows], None if groups.shift is None else groups.shift[rows])
        target[rows].values.copy_(target[rows].fill(matrix[rows], part))
    assert torch.equal(target.values, weight.values) and torch.equal(target.scale, weight.scale)


def test_a_matrix_without_published_scales_fits_into_a_form_with_shifts() -> None:
    """It is joined with one that has them."""
    plain, form = randn(40, 64), PanelForm(8, 32, True)
    weight = PanelWeight(*pack_panels(plain, form), plain.shape)
    assert ratio(weight.unpack(torch.float32), plain.double()) < 0.01


@pytest.mark.parametrize("shifted", [False, True])
def test_four_published_bits_of_a_gpu_are_those_of_a_processor(shifted: bool) -> None:
    form = PanelForm(4, 32, shifted)
    matrix, groups = known(form, 48, 64)
    scale = torch.empty(48, 2, dtype=torch.bfloat16)
    four = Int4Weight(torch.empty(48, 8, dtype=torch.int32), scale, torch.empty_like(scale) if shifted else None)
    four.values.copy_(four.fill(matrix, groups))
    assert torch.equal(four.unpack(torch.float32), kept(form, 48, 64).unpack(torch.float32))
    assert torch.equal(four[16:48].unpack(torch.float32), four.unpack(torch.float32)[16:48])


@pytest.mark.slow  # the kernels are built
@needs_compiler
@pytest.mark.parametrize("form", PUBLISHED, ids=str)
def test_products_with_published_values_for_any_number_of_rows(kernel_folder: Path, form: PanelForm) -> None:
    """A shift is added in float32, once for a group: as exact as the rest, and no row depends on another."""
    weight = kept(form, 131, 704)
    whole = weight.unpack(torch.float64)
    exact = exact_inputs(70, 704, 4, torch.float32)
    made = product(exact, weight, kernel_folder)
    assert ratio(made, exact.double() @ whole.T) < 1e-6
    assert ratio(product(exact, weight, None), exact.double() @ whole.T) < 1e-6
    for rows in (1, 2, 8, 9, 24):
        assert torch.equal(product(exact[:rows], weight, kernel_folder), made[:rows])
    x = randn(5, 704, seed=5).bfloat16()
    assert ratio(product(x, weight, kernel_folder), x.double() @ whole.T) < 0.015


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
native._FLAGS = (*native._FLAGS, "-O1", sys.argv[1])  # the processor is asked about, not the optimiser
from tests.capsules.test_panels import PUBLISHED, exact_inputs, kept, packed, product, randn
torch.set_num_threads(1)
found = []
for bits in (8, 4):
    weight = packed(randn(131, 100, seed=1), bits)
    for rows in (1, 9, 40):
        exact = exact_inputs(rows, 100, bits, torch.float32)
        found.append([product(x, weight, Path(sys.argv[2])).tolist() for x in (exact, randn(rows, 100))])
for form in PUBLISHED:
    exact = exact_inputs(9, 704, 4, torch.float32)
    found.append([product(exact, kept(form, 131, 704), Path(sys.argv[2])).tolist()])
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
    for form in PUBLISHED:
        ours = product(exact_inputs(9, 704, 4, torch.float32), kept(form, 131, 704), kernel_folder)
        assert ratio(torch.tensor(next(found)[0]), ours.double()) < 1e-6


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
