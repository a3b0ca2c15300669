"""From pixels to patches, like the family's own image processor, and the digest of the tower's input.

Source: transformers' `Qwen2VLImageProcessor` (`smart_resize`, `patchify`) with the published preprocessor_config.json.
"""

import math
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from llm_engine.errors import PictureError
from llm_engine.pictures import PictureGrid, virtual_id
from llm_engine.vision_config import CELL, CHANNELS, MERGE, PATCH

MOST_ASPECT = 200
_VERSION = b"pixels/1"
"""Part of every digest: raised whenever the same picture would become different pixels."""


@dataclass(frozen=True, eq=False)
class FittedPicture:
    """A picture at the tower's input size: uint8 [h, w, 3], both multiples of 32."""

    pixels: NDArray[np.uint8]
    digest: bytes

    @property
    def id(self) -> int:
        return virtual_id(self.digest)

    @property
    def grid(self) -> PictureGrid:
        return PictureGrid(self.pixels.shape[0] // CELL, self.pixels.shape[1] // CELL)


def fitted_size(height: int, width: int, least: int, most: int) -> tuple[int, int]:
    """Height and width nearest to a picture's with both a multiple of 32 and `least` to `most` pixels.

    Ties go to the even multiple, and the two clamps differ, as at the source: down with a floor, up with a ceiling.
    Raises PictureError if a side is zero, or more than 200 times the other.
    """
    if min(height, width) < 1 or max(height, width) / min(height, width) > MOST_ASPECT:
        raise PictureError(
            f"a picture of {width} x {height} pixels; one side may be up to {MOST_ASPECT} times the other. Cut it."
        )
    tall, wide = round(height / CELL) * CELL, round(width / CELL) * CELL
    if tall * wide > most:
        shrink = math.sqrt(height * width / most)
        tall, wide = (max(CELL, math.floor(side / shrink / CELL) * CELL) for side in (height, width))
    elif tall * wide < least:
        grow = math.sqrt(least / (height * width))
        tall, wide = (math.ceil(side * grow / CELL) * CELL for side in (height, width))
    return tall, wide


def fit(pixels: NDArray[np.uint8], least: int, most: int) -> FittedPicture:
    """Resize RGB [h, w, 3]: bicubic with antialias, like Pillow. Raises PictureError."""
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != CHANNELS:
        raise PictureError(f"pixels are {pixels.dtype} {list(pixels.shape)}; uint8 [height, width, 3] is needed")
    tall, wide = fitted_size(pixels.shape[0], pixels.shape[1], least, most)
    if pixels.shape[:2] != (tall, wide):
        from PIL import Image

        source = Image.fromarray(np.ascontiguousarray(pixels))
        pixels = np.asarray(source.resize((wide, tall), Image.Resampling.BICUBIC))
    pixels = np.array(pixels, order="C")  # a copy: the caller's may change, and torch needs a writable one
    digest = blake2b(_VERSION + np.array([tall, wide], "<i8").tobytes(), digest_size=16)
    digest.update(pixels.data)
    return FittedPicture(pixels, digest.digest())


def patches(pixels: Tensor) -> Tensor:
    """uint8 [h, w, 3] to float32 [N, 768] from -1 to 1, on the device of the pixels.

    A patch is channel, y, x of its 16 × 16 pixels. The four patches of a cell follow each other, cells go row by row.
    """
    height, width, _ = pixels.shape
    cells = pixels.view(height // CELL, MERGE, PATCH, width // CELL, MERGE, PATCH, CHANNELS)
    return (cells.permute(0, 3, 1, 4, 6, 2, 5).flatten(4).flatten(0, 3).float() / 127.5) - 1.0


def places(grid: PictureGrid, device: torch.device) -> tuple[Tensor, Tensor]:
    """Row and column of every patch, [N] int64 each, in the order of `patches`."""
    at = torch.arange(grid.count * MERGE**2, device=device)
    inner, cell = at % MERGE**2, at // MERGE**2
    rows = torch.div(cell, grid.columns, rounding_mode="floor") * MERGE + torch.div(inner, MERGE, rounding_mode="floor")
    return rows, cell % grid.columns * MERGE + inner % MERGE
