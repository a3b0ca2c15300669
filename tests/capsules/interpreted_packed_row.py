"""The packed one-row product in Triton's interpreter against float64, beside the plain product of the same matrix.

Run as its own process with TRITON_INTERPRET=1, or on a card with the argument "cuda"; prints one JSON line of errors
by case. "plain" is the product of a bfloat16 row with the unpacked matrix, as the law had it before; "wide" is ours
of that row.
"""

import json

import torch
from torch import Tensor
from torch.nn import functional as F

from capsules.nn.fp8 import Fp8Weight, quantise_fp8
from capsules.nn.int4 import unpack_int4
from capsules.nn.kernels.gemv import launch_gemv
from capsules.nn.kernels.packed_row import launch_packed_row
from tests.capsules.interpreted_kernels import draw, on_device, ratio, whole

SHAPES = ((4, 1024), (6, 136), (101, 72), (31, 2184), (12, 8))


def gated(both: Tensor) -> Tensor:
    gate, up = both.chunk(2, -1)
    return F.silu(gate) * up


def compare(found: dict[str, float], case: str, x: Tensor, matrix: Tensor, *packed: object) -> None:
    """matrix  float64, what is packed stands for"""
    want = x.double() @ matrix.T
    found[f"{case} ours"] = ratio(launch_packed_row(x, *packed), want)  # type: ignore[arg-type]
    if matrix.shape[0] % 2 == 0:
        small = (x * (20 / want.abs().max())).float()
        both = launch_packed_row(small, *packed, paired=True)  # type: ignore[arg-type, misc]
        found[f"{case} paired"] = ratio(both, gated(small.double() @ matrix.T))
    half = x.bfloat16()
    made = launch_packed_row(half, *packed, wide=True)  # type: ignore[arg-type, misc]
    assert made.dtype == torch.float32
    want = half.double() @ matrix.T
    found[f"{case} wide"] = ratio(made, want)
    found[f"{case} plain"] = ratio(launch_gemv(half, matrix.bfloat16(), wide=True), want)


def main() -> None:
    found: dict[str, float] = {}
    for outputs, inputs in SHAPES:
        x, w = draw(1, inputs), draw(outputs, inputs) * torch.logspace(-4, 3, outputs)[:, None]
        for block in ((32, 128), (3, 8)):
            values, scale = quantise_fp8(w, block)
            wide = scale.double().repeat_interleave(block[0], 0)[:outputs]
            matrix = values.double() * wide.repeat_interleave(block[1], 1)[:, :inputs]
            assert torch.equal(Fp8Weight(values, scale, block).unpack(torch.float32), matrix.float())
            compare(found, f"fp8 {outputs}x{inputs} {block}", x, matrix, values.contiguous(), scale, block)
        bits = whole(-(2**31), 2**31, outputs, inputs // 8).int()
        for groups in (1, inputs // 8):
            scale, shift = draw(outputs, groups).bfloat16(), draw(outputs, groups).bfloat16()
            matrix, group = unpack_int4(bits, scale).double(), (1, inputs // groups)
            compare(found, f"int4 {outputs}x{inputs} {groups}", x, matrix, bits, scale, group)
            matrix = unpack_int4(bits, scale.double(), shift).double()
            compare(found, f"int4 {outputs}x{inputs} {groups} shifted", x, matrix, bits, scale, group, shift)
    every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)  # each E4M3 value, subnormal ones too
    every = torch.where(every.float().isnan(), torch.zeros(()), every.float()).to(torch.float8_e4m3fn)
    matrix = torch.diag(every.double())
    values = torch.diag(every.view(torch.uint8)).view(torch.float8_e4m3fn)
    got = launch_packed_row(torch.ones(1, 256), values, torch.ones(8, 2), (32, 128))
    found["every E4M3 value exactly"] = float((got[0].double() != matrix.sum(1)).any())
    print(json.dumps(found))


if __name__ == "__main__":
    with on_device():
        main()
