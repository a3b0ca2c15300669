"""The shared Triton kernels: equal to their plain references in the interpreter, and code that fits every card."""

import importlib

import pytest

from tests.capsules.kernel_tools import ARCHITECTURES, interpreted, shortcomings

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")

BF, F, I64 = "*bf16", "*fp32", "*i64"
_GEMV = {"x": BF, "scale": F, "out": BF} | dict.fromkeys(("outputs", "inputs", "rows", "scale_columns"), "i32")
_STORED = ((0, BF, (1, 1)), (1, "*u8", (128, 128)), (2, "*i32", (1, 32)))
_SPLIT = {"q": BF, "k": BF, "v": BF, "position": I64, "peaks": F, "sums": F, "parts": F, "scale": "fp32"}
_NORM_ROTATE = {"x": BF, "weight": F, "cos": F, "sin": F, "out": BF, "heads": "i32", "row_stride": "i32"}
CASES: list[tuple[str, str, dict[str, str], dict[str, object], int]] = [
    *(
        (
            "gemv", "gemv_kernel", _GEMV | {"w": kind, "scale": BF if stored == 0 else F},
            {"STORED": stored, "GROUP_ROWS": group[0], "GROUP_COLUMNS": group[1], "GRAIN": group[1]}
            | {"BLOCK_O": 2, "BLOCK_I": 1024}, 4 if stored == 0 else 2,
        )
        for stored, kind, group in _STORED
    ),
    *(
        (
            "gemv", "few_rows_kernel", _GEMV | {"w": kind},
            {"STORED": stored, "GROUP_ROWS": group[0], "GROUP_COLUMNS": group[1], "GRAIN": group[1]}
            | {"ROWS": rows, "BLOCK_O": outputs, "BLOCK_I": 128}, warps,
        )
        for rows in (16, 32, 64)
        for outputs, warps in ((16, 4), (64, 8))
        for stored, kind, group in _STORED[1:]  # a plain matrix goes to the library
    ),
    *(
        (
            "norm", "rms_norm_kernel", {"x": BF, "weight": F, "out": BF, "size": "i32", "eps": "fp32"},
            {"BLOCK": block}, warps,
        )
        for block, warps in ((1024, 4), (8192, 8))
    ),
    *(
        (
            "norm", "norm_rotate_kernel", _NORM_ROTATE | {"head_stride": "i32", "eps": "fp32"},
            {"SIZE": size, "TURNED": turned}, 1,
        )
        for size, turned in ((256, 64), (128, 128))
    ),
    ("norm", "swiglu_kernel", {"gate_up": BF, "out": BF, "size": "i32"}, {"BLOCK": 1024}, 4),
    *(
        (
            "attention", "split_kernel", _SPLIT | {"splits": "i32", "key_stride": "i32", "group_stride": "i32"},
            {"SHARE": share, "HEADS": 16, "SIZE": size, "SPLIT": 32}, 4,
        )
        for size, share in ((256, 6), (128, 4))
    ),
    (
        "attention", "join_kernel", {"peaks": F, "sums": F, "parts": F, "position": I64, "out": BF, "splits": "i32"},
        {"SIZE": 256, "SPLIT": 32, "JOINED": 16}, 4,
    ),
]  # fmt: skip
"""Module, kernel, types, constants, warps: as they are launched for the published sizes."""


@pytest.mark.slow
def test_every_kernel_equals_its_reference_in_the_interpreter() -> None:
    found = interpreted("tests.capsules.interpreted_kernels")
    assert len(found) == 74
    # bfloat16: the interpreter cuts off where hardware rounds, so up to one unit in the last place (2^-8 relative).
    wrong = {case: error for case, error in found.items() if error > (1e-2 if "bfloat16" in case else 2e-6)}
    assert not wrong
    assert not {c: e for c, e in found.items() if c.startswith("gemv_") and e}, "the very sums of gemv"


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    ("module", "name", "signature", "constants", "warps"), CASES, ids=lambda part: part if isinstance(part, str) else ""
)
def test_every_kernel_fits_every_card(
    module: str, name: str, signature: dict[str, str], constants: dict[str, object], warps: int, architecture: int
) -> None:
    kernel = getattr(importlib.import_module(f"capsules.nn.kernels.{module}"), name)
    assert shortcomings(kernel, signature, constants, warps, architecture) == []
