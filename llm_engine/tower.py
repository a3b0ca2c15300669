"""The vision tower from patches to rows of the language model, as pure arithmetic over given weights.

Axes: N patches of one picture, h the tower's width, H heads of size d, I its feed-forward, o the width of its rows.
Every patch sees every other of its picture, none of another. Source: transformers' `Qwen3_5VisionModel`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from capsules.nn import linear, rotate, turns
from llm_engine.pictures import PictureGrid
from llm_engine.pixels import patches, places
from llm_engine.vision_config import CELL, MERGE, VisionConfig

EPS = 1e-6


@dataclass(frozen=True)
class TowerBlock:
    """One block; matrices in the model's type, [h] tensors in float32."""

    norm1: Tensor  # [h]
    norm1_bias: Tensor
    qkv: Tensor  # [3 h, h]
    qkv_bias: Tensor
    proj: Tensor  # [h, h]
    proj_bias: Tensor
    norm2: Tensor
    norm2_bias: Tensor
    fc1: Tensor  # [I, h]
    fc1_bias: Tensor
    fc2: Tensor  # [h, I]
    fc2_bias: Tensor


@dataclass(frozen=True)
class TowerWeights:
    """The whole tower."""

    patch: Tensor  # [h, 768] float32, both moments summed
    patch_bias: Tensor
    positions: Tensor  # [side · side, h] float32
    blocks: tuple[TowerBlock, ...]
    norm: Tensor
    norm_bias: Tensor
    fc1: Tensor  # [4 h, 4 h]
    fc1_bias: Tensor
    fc2: Tensor  # [o, 4 h]
    fc2_bias: Tensor

    @classmethod
    def gather(cls, config: VisionConfig, get: Callable[[str], Tensor]) -> "TowerWeights":
        """From tensors by the names of `llm_engine.vision_weights`."""
        blocks = tuple(
            TowerBlock(**{field: get(f"blocks.{index}.{field}") for field in TowerBlock.__dataclass_fields__})
            for index in range(config.depth)
        )
        fields = [field for field in cls.__dataclass_fields__ if field != "blocks"]
        return cls(blocks=blocks, **{field: get(field) for field in fields})


def embed(weights: TowerWeights, config: VisionConfig, pixels: Tensor) -> Tensor:
    """uint8 [height, width, 3] to [N, h] float32: patches plus their positions."""
    grid = PictureGrid(pixels.shape[0] // CELL, pixels.shape[1] // CELL)
    seen = F.linear(patches(pixels), weights.patch, weights.patch_bias)
    return seen + positions_of(weights.positions, config.side, grid)


def positions_of(table: Tensor, side: int, grid: PictureGrid) -> Tensor:
    """The table's rows [side · side, h] resampled to a picture's patches, [N, h]: bilinear with aligned corners."""
    rows, columns = places(grid, table.device)
    low_row, high_row, row_share = _taps(rows, grid.rows * MERGE, side)
    low_column, high_column, column_share = _taps(columns, grid.columns * MERGE, side)
    made = None
    for row, row_weight in ((low_row, 1 - row_share), (high_row, row_share)):
        for column, column_weight in ((low_column, 1 - column_share), (high_column, column_share)):
            part = F.embedding(row * side + column, table) * (row_weight * column_weight)[:, None]
            made = part if made is None else made + part
    assert made is not None
    return made


def _taps(at: Tensor, count: int, side: int) -> tuple[Tensor, Tensor, Tensor]:
    """The neighbours in a table of `side` for places 0 … count - 1 stretched over it, and the weight of the second."""
    scaled = at.float() * ((side - 1) / max(count - 1, 1))
    low = scaled.floor()
    return low.long(), (low.long() + 1).clamp(max=side - 1), scaled - low


def angles(config: VisionConfig, grid: PictureGrid, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines [N, d] float32: a quarter of a head turns with the row, a quarter with the column, twice."""
    half = config.head_dim // 2
    rows, columns = places(grid, device)
    cos_row, sin_row = turns(rows[:, None], half, config.rope_theta)
    cos_column, sin_column = turns(columns[:, None], half, config.rope_theta)

    def both(row: Tensor, column: Tensor) -> Tensor:
        quarter = half // 2
        return torch.cat((row[:, :quarter], column[:, :quarter]), -1).repeat(1, 2)

    return both(cos_row, cos_column), both(sin_row, sin_column)


def block(x: Tensor, w: TowerBlock, config: VisionConfig, cos: Tensor, sin: Tensor) -> Tensor:
    """[N, h] to [N, h]."""
    qkv = _affine(_norm(x, w.norm1, w.norm1_bias), w.qkv, w.qkv_bias)
    q, k, v = qkv.unflatten(-1, (3, config.num_heads, config.head_dim)).unbind(-3)  # [N, H, d]
    q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    q, k, v = (part.transpose(0, 1)[None] for part in (q, k, v))
    seen = F.scaled_dot_product_attention(q, k, v)[0].transpose(0, 1).flatten(1)
    x = x + _affine(seen, w.proj, w.proj_bias)
    wide = F.gelu(_affine(_norm(x, w.norm2, w.norm2_bias), w.fc1, w.fc1_bias), approximate="tanh")
    return x + _affine(wide, w.fc2, w.fc2_bias)


def merge(x: Tensor, weights: TowerWeights) -> Tensor:
    """[N, h] to [N / 4, o]: the four patches of a cell become one row. The exact GELU here, not the blocks' tanh."""
    cells = _norm(x, weights.norm, weights.norm_bias).view(-1, weights.fc1.shape[1])
    wide = F.gelu(_affine(cells, weights.fc1, weights.fc1_bias))
    return _affine(wide, weights.fc2, weights.fc2_bias)


def _norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x.float(), (x.shape[-1],), weight, bias, EPS).to(x.dtype)


def _affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return (linear(x, weight) + bias).to(x.dtype)
