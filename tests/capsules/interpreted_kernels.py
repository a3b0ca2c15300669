"""Runs every kernel in Triton's interpreter against its plain reference; prints one JSON line of error ratios.

Run as its own process with TRITON_INTERPRET=1, because the interpreter is chosen when a kernel is defined.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from capsules.nn import attend, gated_mlp, rms_norm, rotate
from capsules.nn.fp8 import Fp8Weight, quantise_fp8
from capsules.nn.int4 import Int4Weight
from capsules.nn.kernels.attention import launch_decode_attention
from capsules.nn.kernels.gemv import launch_gemv, launch_gemv_fp8, launch_gemv_int4
from capsules.nn.kernels.norm import launch_norm_rotate, launch_rms_norm, launch_swiglu

NOISE = torch.Generator().manual_seed(0)


def draw(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=NOISE, device="cpu").to(torch.get_default_device(), dtype)


def whole(low: int, high: int, *shape: int) -> Tensor:
    """Integers from `low` to below `high`."""
    return torch.randint(low, high, shape, generator=NOISE, device="cpu").to(torch.get_default_device())


@contextmanager
def on_device() -> Iterator[None]:
    """New tensors lie on the device that the command line names, uninitialised ones hold NaN."""
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.set_deterministic_debug_mode("warn")
    with torch.no_grad(), torch.device(sys.argv[1] if len(sys.argv) > 1 else "cpu"):
        yield


def ratio(got: Tensor, want: Tensor) -> float:
    """Root mean square of the difference over that of the reference."""
    return float((got.double() - want.double()).square().mean().sqrt() / want.double().square().mean().sqrt())


def main() -> None:
    found: dict[str, float] = {}
    for dtype in (torch.float32, torch.bfloat16):
        kind = str(dtype).removeprefix("torch.")
        for rows, outputs, inputs in ((1, 40, 72), (1, 3, 1400), (3, 17, 200), (24, 9, 1000), (64, 20, 136)):
            # the interpreter's matrix product takes the bits of bfloat16 for whole numbers
            form = torch.float16 if rows > 1 and dtype == torch.bfloat16 else dtype
            x, w = draw(rows, inputs, dtype=form), draw(outputs, inputs, dtype=form)
            want = (x.double() @ w.double().T).to(form)
            found[f"gemv {kind} {rows}x{inputs}"] = ratio(launch_gemv(x, w), want)
            for block in ((32, 128), (3, 7)):
                values, scale = quantise_fp8(w, block)
                if dtype == torch.bfloat16:  # a scale that needs no rounding, which the interpreter does its own way
                    scale = scale.log2().round().exp2()
                packed = Fp8Weight(values, scale, block)
                got = launch_gemv_fp8(x, packed.values.contiguous(), packed.scale, *block)
                plain = launch_gemv(x, packed.unpack(form))
                found[f"gemv_fp8 {kind} {rows}x{inputs} {block}"] = ratio(got, plain)
            bits = whole(-(2**31), 2**31, outputs, inputs // 8).int()
            for groups in (1, inputs // 8):
                four = Int4Weight(bits, draw(outputs, groups).log2().round().exp2().nan_to_num(0.5))
                got = launch_gemv_int4(x, four.packed, four.scale)
                found[f"gemv_int4 {kind} {rows}x{inputs} {groups}"] = ratio(got, launch_gemv(x, four.unpack(form)))
                four = Int4Weight(bits, four.scale, whole(-8, 9, outputs, groups).bfloat16())  # no sum needs rounding
                got = launch_gemv_int4(x, four.packed, four.scale, four.shift)
                found[f"gemv_int4 {kind} {rows}x{inputs} {groups} shifted"] = ratio(
                    got, launch_gemv(x, four.unpack(form))
                )
        for size in (65, 128, 1000):
            x, w = draw(3, size, dtype=dtype), draw(size)
            found[f"rms_norm {kind} {size}"] = ratio(launch_rms_norm(x, w, 1e-6), rms_norm(x, w, 1e-6))
        for size, turned in ((64, 64), (64, 16)):
            x = draw(2, 3, 2 * size, dtype=dtype)[..., :size]
            w, angle = draw(size), draw(2, turned)
            cos, sin = angle.cos(), angle.sin()
            want = rotate(rms_norm(x, w, 1e-6), cos, sin)
            found[f"norm_rotate {kind} {turned}/{size}"] = ratio(launch_norm_rotate(x, w, 1e-6, cos, sin), want)
        gate_up = draw(2, 2 * 300, dtype=dtype)
        both = gated_mlp(gate_up, torch.eye(600, dtype=dtype), torch.eye(300, dtype=dtype))
        found[f"swiglu {kind}"] = ratio(launch_swiglu(gate_up), both)
        for heads, groups, size, at in ((4, 2, 16, 0), (4, 1, 64, 255), (6, 2, 32, 256), (8, 2, 32, 700)):
            q = draw(heads, size, dtype=dtype)
            k, v = draw(2, 1000, groups, size, dtype=dtype)
            position = torch.tensor([at])
            want = attend(q[None], k, v, position)[0]
            got = launch_decode_attention(q, k, v, position, size**-0.5)
            found[f"decode_attention {kind} {heads}/{groups} at {at}"] = ratio(got, want)
            if at == 256:
                k[at + 1 :], v[at + 1 :] = float("nan"), float("nan")
                again = launch_decode_attention(q, k, v, position, size**-0.5)
                short = launch_decode_attention(q, k[:300], v[:300], position, size**-0.5)
                found[f"decode_attention {kind} reads beyond"] = 0.0 if torch.equal(again, got) else 1.0
                found[f"decode_attention {kind} depends on capacity"] = 0.0 if torch.equal(short, got) else 1.0
    print(json.dumps(found))


if __name__ == "__main__":
    with on_device():
        main()
