"""The shared Triton kernels: equal to their plain references in the interpreter, and compilable for every card."""

import pytest

from tests.capsules.kernel_tools import ARCHITECTURES, compiled_bytes, interpreted

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")

BF, F, I64 = "*bf16", "*fp32", "*i64"
KERNELS: dict[str, tuple[str, dict[str, str], dict[str, object]]] = {
    "gemv_kernel": (
        "gemv",
        {"x": BF, "w": BF, "out": BF, "outputs": "i32", "inputs": "i32", "rows": "i32"},
        {"ROWS": 1, "BLOCK_O": 8, "BLOCK_I": 1024},
    ),
    "gemv_fp8_kernel": (
        "gemv_fp8",
        {"x": BF, "w": "*u8", "scale": F, "out": BF}
        | dict.fromkeys(("outputs", "inputs", "rows", "scale_columns"), "i32"),
        {"BLOCK_ROWS": 128, "BLOCK_COLUMNS": 128, "ROWS": 1, "BLOCK_O": 8, "BLOCK_I": 1024},
    ),
    "rms_norm_kernel": (
        "norm",
        {"x": BF, "weight": F, "out": BF, "size": "i32", "eps": "fp32"},
        {"BLOCK": 4096},
    ),
    "norm_rotate_kernel": (
        "norm",
        {"x": BF, "weight": F, "cos": F, "sin": F, "out": BF, "heads": "i32", "row_stride": "i32"}
        | {"head_stride": "i32", "eps": "fp32"},
        {"SIZE": 256, "TURNED": 64},
    ),
    "swiglu_kernel": ("norm", {"gate_up": BF, "out": BF, "size": "i32"}, {"BLOCK": 1024}),
    "split_kernel": (
        "attention",
        {"q": BF, "k": BF, "v": BF, "position": I64, "peaks": F, "sums": F, "parts": F, "scale": "fp32"}
        | {"splits": "i32", "key_stride": "i32", "group_stride": "i32"},
        {"SHARE": 4, "HEADS": 16, "SIZE": 256, "SPLIT": 256, "TILE": 64},
    ),
    "join_kernel": (
        "attention",
        {"peaks": F, "sums": F, "parts": F, "position": I64, "out": BF, "splits": "i32"},
        {"SIZE": 256, "SPLIT": 256},
    ),
}


def test_every_kernel_equals_its_reference_in_the_interpreter() -> None:
    found = interpreted("tests.capsules.interpreted_kernels")
    assert len(found) == 42
    # bfloat16: the interpreter cuts off where hardware rounds, so up to one unit in the last place (2^-8 relative).
    wrong = {case: error for case, error in found.items() if error > (1e-2 if "bfloat16" in case else 2e-6)}
    assert not wrong
    assert not {c: e for c, e in found.items() if c.startswith("gemv_fp8") and e}, "the very sums of gemv"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_compiles_for_every_card(name: str, architecture: int) -> None:
    module, signature, constants = KERNELS[name]
    kernel = getattr(__import__(f"capsules.nn.kernels.{module}", fromlist=[name]), name)
    assert compiled_bytes(kernel, signature, constants, architecture) > 1000
