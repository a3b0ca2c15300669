"""FP8 matrices: what rounding may cost, blocks that end short, and rows taken out of a fused matrix."""

import pytest
import torch

from capsules.nn import embed, linear
from capsules.nn.fp8 import Fp8Weight, empty_fp8, quantise_fp8, unpack_fp8
from capsules.nn.int4 import Int4Weight


def matrix(rows: int, columns: int) -> torch.Tensor:
    return (
        torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows)) * torch.logspace(-6, 3, rows)[:, None]
    )


@pytest.mark.parametrize("block", [(1, 1), (32, 128), (3, 5), (128, 128)])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (63, 65), (96, 256)])
def test_a_packed_matrix_is_within_half_a_step_of_itself(rows: int, columns: int, block: tuple[int, int]) -> None:
    plain = matrix(rows, columns)
    values, scale = quantise_fp8(plain, block)
    back = unpack_fp8(values, scale, block)
    assert values.dtype == torch.float8_e4m3fn and values.shape == plain.shape
    assert scale.shape == (-(-rows // block[0]), -(-columns // block[1]))
    step = scale.repeat_interleave(block[0], 0)[:rows].repeat_interleave(block[1], 1)[:, :columns]
    # 3 bits behind the point: half a step is 1/16 of a value, and never less than half of the smallest one, 2^-9.
    assert bool(((back - plain).abs() <= torch.maximum(plain.abs() / 16, step * 2**-10) * 1.0001).all())


def test_zeros_and_the_largest_survive() -> None:
    plain = torch.zeros(64, 128)
    plain[40, 5] = -7.0
    values, scale = quantise_fp8(plain, (32, 128))
    assert torch.equal(unpack_fp8(values, scale, (32, 128)), plain) and bool((scale[0] == 1).all())


def test_a_product_is_that_of_the_unpacked_matrix() -> None:
    packed = Fp8Weight(*quantise_fp8(matrix(96, 64), (32, 128)), (32, 128))
    for rows in (1, 3):
        x = torch.randn(rows, 64).to(torch.bfloat16)
        assert torch.equal(linear(x, packed), linear(x, packed.unpack(torch.bfloat16)))


def test_rows_of_a_fused_matrix_are_filled_apart() -> None:
    fused, parts = empty_fp8(96, 200, (32, 128), torch.device("cpu")), (matrix(64, 200), matrix(32, 200))
    for part, rows in zip(parts, (slice(0, 64), slice(64, 96)), strict=True):
        fused[rows].values.copy_(fused[rows].fill(part))
    whole = Fp8Weight(*quantise_fp8(torch.cat(parts), (32, 128)), (32, 128))
    assert torch.equal(fused.unpack(torch.float32), whole.unpack(torch.float32))


def test_rows_are_those_of_the_unpacked_matrix() -> None:
    packed = Fp8Weight(*quantise_fp8(matrix(96, 200), (32, 128)), (32, 128))
    ids = torch.tensor([95, 0, 33, 33])
    assert torch.equal(embed(ids, packed), packed.unpack(torch.bfloat16)[ids])


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["float8", "int4"])
def test_a_gpu_packs_the_very_bits_of_a_processor(kind: str) -> None:
    plain = (torch.randn(320, 640, generator=torch.Generator().manual_seed(0)) * 0.02).bfloat16()

    def filled(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        where = torch.device(device)
        weight: Fp8Weight | Int4Weight = (
            empty_fp8(320, 640, (32, 128), where)
            if kind == "float8"
            else Int4Weight(torch.empty(320, 80, dtype=torch.int32, device=where), torch.empty(320, 20, device=where))
        )
        values = weight.fill(plain)
        assert values.device.type == device
        return values.cpu().view(torch.uint8), weight.scale.cpu()

    assert all(map(torch.equal, filled("cuda"), filled("cpu")))
