"""Every stored type against the package `gguf`, to the bit, on random bytes."""

import gguf
import numpy as np
import pytest
import torch

from llm_engine.gguf.blocks import NAMES, TYPES, BlockType, widen

HALVES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q4_K": (0, 2), "Q5_K": (0, 2),
          "Q6_K": (208,)}  # fmt: skip
"""The places of float16 numbers in a block."""


def random_rows(kind: BlockType, rows: int, blocks: int) -> np.ndarray:
    """Bytes of a tensor: any quants, and scales that are numbers."""
    random = np.random.default_rng(len(kind.name) + rows)
    if kind.values == 1:
        wide = random.standard_normal((rows, blocks)).astype(np.float32)
        return gguf.quantize(wide, gguf.GGMLQuantizationType[kind.name]).view(np.uint8).reshape(rows, -1)
    made = random.integers(0, 256, (rows, blocks, kind.nbytes), dtype=np.uint8)
    for at in HALVES[kind.name]:
        made[..., at : at + 2] = random.standard_normal((rows, blocks, 1)).astype(np.float16).view(np.uint8)
    return made.reshape(rows, -1)


@pytest.mark.parametrize("kind", TYPES.values(), ids=lambda kind: kind.name)
@pytest.mark.parametrize(("rows", "blocks"), [(1, 1), (3, 2), (65, 3)])
def test_values_equal_those_of_the_package_to_the_bit(kind: BlockType, rows: int, blocks: int) -> None:
    stored = random_rows(kind, rows, blocks)
    ours = widen(torch.from_numpy(stored.copy()), kind)
    theirs = gguf.dequantize(stored, gguf.GGMLQuantizationType[kind.name]).reshape(rows, -1)
    assert ours.shape == (rows, blocks * kind.values)
    assert np.array_equal(ours.numpy().view(np.uint32), theirs.astype(np.float32).view(np.uint32))


def test_numbers_and_sizes_of_types_are_those_of_the_package() -> None:
    for number, kind in TYPES.items():
        assert gguf.GGMLQuantizationType(number).name == kind.name
        assert gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(number)] == (kind.values, kind.nbytes)
    for number, name in NAMES.items():
        assert gguf.GGMLQuantizationType(number).name == name
