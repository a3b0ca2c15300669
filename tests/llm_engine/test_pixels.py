"""Pixels to patches: sizes by a table, everything else equal to the family's own image processor."""

from typing import Any

import numpy as np
import pytest
import torch

from llm_engine.errors import PictureError
from llm_engine.pictures import PictureGrid
from llm_engine.pixels import FittedPicture, fit, fitted_size, patches, places

LEAST, MOST = 65_536, 16_777_216
SIZES = {  # height, width: resized height, width
    (256, 256): (256, 256), (40, 40): (256, 256), (512, 512): (512, 512), (480, 640): (480, 640),
    (720, 1280): (704, 1280), (1080, 1920): (1088, 1920), (2160, 3840): (2176, 3840), (2048, 16): (2912, 32),
    (1, 1): (256, 256), (10, 2000): (32, 3648), (4096, 4096): (4096, 4096), (4112, 4112): (4096, 4096),
    (336, 1008): (320, 1024), (304, 1040): (320, 1024),
}  # fmt: skip


def photograph(height: int, width: int, seed: int = 0) -> Any:
    """Smooth colours with edges and noise."""
    draw = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / draw.uniform(3, 90) + draw.uniform(0, 6)) * np.cos(y / draw.uniform(3, 90)) for _ in range(3)]
    made = np.stack(waves, -1) * 90 + 128 + (x > width / 2)[..., None] * 40 + draw.normal(0, 12, (height, width, 3))
    return made.clip(0, 255).astype(np.uint8)


def family(least: int = LEAST, most: int = MOST) -> Any:
    module = pytest.importorskip("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")
    return module.Qwen2VLImageProcessorPil(
        size={"shortest_edge": least, "longest_edge": most}, patch_size=16, temporal_patch_size=2, merge_size=2,
        image_mean=[0.5] * 3, image_std=[0.5] * 3,
    )  # fmt: skip


@pytest.mark.parametrize(("size", "fitted"), SIZES.items())
def test_sizes_of_the_table(size: tuple[int, int], fitted: tuple[int, int]) -> None:
    assert fitted_size(*size, LEAST, MOST) == fitted


def test_a_smaller_budget_is_the_same_rule() -> None:
    assert fitted_size(1080, 1920, LEAST, 131_072) == (256, 480)
    assert fitted_size(1080, 1920, LEAST, 65_536) == (192, 320)
    assert fitted_size(10, 2000, LEAST, 131_072) == (32, 3648)


@pytest.mark.parametrize("size", [(1, 100_000), (201, 1), (0, 5), (5, 0)])
def test_what_is_no_picture_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(PictureError, match="200 times"):
        fitted_size(*size, LEAST, MOST)


@pytest.mark.parametrize(
    "bad", [np.zeros((9, 9), np.uint8), np.zeros((9, 9, 4), np.uint8), np.zeros((9, 9, 3), np.float32)]
)
def test_pixels_of_another_kind_are_refused(bad: Any) -> None:
    with pytest.raises(PictureError, match="uint8"):
        fit(bad, LEAST, MOST)


def equal_to_the_family(height: int, width: int, least: int, most: int, seed: int) -> None:
    pixels = photograph(height, width, seed)
    ours = fit(pixels, least, most)
    theirs = family(least, most)(images=[pixels], return_tensors="pt", input_data_format="channels_last")
    _, rows, columns = theirs["image_grid_thw"][0].tolist()
    assert ours.grid == PictureGrid(rows // 2, columns // 2)
    seen = patches(torch.from_numpy(ours.pixels)).view(-1, 3, 1, 256).expand(-1, 3, 2, 256).flatten(1)
    assert torch.equal(seen, theirs["pixel_values"])  # every bit


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(10))
def test_200_random_sizes_are_equal_to_the_family(batch: int) -> None:
    draw = np.random.default_rng(batch)
    for seed in range(20):
        height, width = (int(2 ** draw.uniform(0, 9.7)) for _ in range(2))
        if max(height, width) > 200 * min(height, width):
            height = width
        least, most = (LEAST, MOST) if seed % 2 else (4096, int(2 ** draw.uniform(12, 19)))
        equal_to_the_family(height, width, least, most, seed)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(3024, 4032), (4032, 3024), (1080, 1920), (720, 1280), (1536, 2048), (1600, 1200)])
def test_photographs_are_equal_to_the_family(size: tuple[int, int]) -> None:
    equal_to_the_family(*size, LEAST, 786_432, 3)


def test_places_follow_the_order_of_patches() -> None:
    grid = PictureGrid(2, 3)
    rows, columns = places(grid, torch.device("cpu"))
    pixels = torch.zeros(64, 96, 3, dtype=torch.uint8)
    for row in range(4):
        for column in range(6):
            pixels[16 * row : 16 * row + 16, 16 * column : 16 * column + 16] = 10 * row + column
    shown = ((patches(pixels)[:, 0] + 1) * 127.5).round().long()
    assert shown.tolist() == (10 * rows + columns).tolist()


def test_the_digest_is_of_what_is_seen() -> None:
    one = fit(photograph(300, 500), LEAST, MOST)
    assert fit(photograph(300, 500), LEAST, MOST).id == one.id < 0
    assert fit(one.pixels, LEAST, MOST).id == one.id
    assert fit(photograph(300, 500, seed=1), LEAST, MOST).id != one.id
    flat = np.zeros((256, 512, 3), np.uint8)
    assert fit(flat, LEAST, MOST).id != fit(flat.transpose(1, 0, 2), LEAST, MOST).id
    assert isinstance(one, FittedPicture) and len(one.digest) == 16
