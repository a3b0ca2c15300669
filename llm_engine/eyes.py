"""Turns pictures into rows of the language model, in short steps: between two steps other work can use the device.

The tower is a scope of its own, with weights and scratch but no state, so it is never in a capsule. Every step is
captured per picture size, when a picture of that size first arrives. A block reads one of two buffers and writes the
other, so running it twice, as a capture may, changes nothing.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

import torch
from torch import Tensor

from capsules import ExecContext, Role, ShapeKey
from llm_engine.errors import StateError
from llm_engine.pictures import PictureGrid, SeenPicture
from llm_engine.pixels import FittedPicture
from llm_engine.tower import TowerWeights, angles, block, embed, merge
from llm_engine.vision_config import CELL, MERGE, VisionConfig

CAPTURED = 4
"""Number of sizes whose steps stay captured: enough for a camera and a screen."""
DETAILS = {"low": 65_536, "auto": 786_432, "high": 2_097_152, "original": 2_097_152}
"""Most pixels of a picture on a GPU. A row is 1,024 of them."""
DETAILS_CPU = {"low": 65_536, "auto": 131_072, "high": 524_288, "original": 524_288}
"""The same on a processor: 128 rows take about a second with the smallest published tower; time grows faster than rows.
"""


@dataclass(frozen=True)
class EyesBuffers:
    """Working buffers of the steps."""

    pixels: Tensor  # [most pixels, 3] uint8; IO
    streams: tuple[Tensor, Tensor]  # [N, h] in the model's type; scratch, as all below
    cos: Tensor  # [N, d] float32
    sin: Tensor
    rows: Tensor  # [N / 4, o]; IO

    @classmethod
    def declare(
        cls, ctx: ExecContext, config: VisionConfig, dtype: torch.dtype, most: int, scope: str
    ) -> "EyesBuffers":
        """most: pixels of a picture."""
        count = most // CELL**2 * MERGE**2

        def made(name: str, shape: tuple[int, int], kind: torch.dtype, role: Role = Role.SCRATCH) -> Tensor:
            return ctx.buffer(f"{scope}.{name}", shape, kind, role=role).tensor

        return cls(
            pixels=made("pixels", (most, 3), torch.uint8, Role.IO),
            streams=(made("even", (count, config.hidden_size), dtype), made("odd", (count, config.hidden_size), dtype)),
            cos=made("cos", (count, config.head_dim), torch.float32),
            sin=made("sin", (count, config.head_dim), torch.float32),
            rows=made("rows", (count // MERGE**2, config.out_hidden_size), dtype, Role.IO),
        )


class _Look:
    """A picture on its way through the tower."""

    def __init__(self, picture: FittedPicture) -> None:
        self.picture = picture
        self.done = self.waiting = 0
        self.seen: SeenPicture | None = None


class Eyes:
    """The tower of one engine. Call it from one thread at a time."""

    def __init__(
        self, ctx: ExecContext, config: VisionConfig, weights: TowerWeights, buffers: EyesBuffers, scope: str
    ) -> None:
        self.config = config
        self._weights, self._buffers = weights, buffers
        self._graph = ctx.graph(f"{scope}.look", pool=ctx.pool(scope))
        self._sizes: set[PictureGrid] = set()
        self._looks: dict[int, _Look] = {}
        details = DETAILS_CPU if ctx.device.type == "cpu" else DETAILS
        self._most = {detail: min(pixels, buffers.pixels.shape[0]) for detail, pixels in details.items()}

    @property
    def steps(self) -> int:
        """Steps for one picture."""
        return len(self._weights.blocks) + 2

    def pixels_of(self, detail: str) -> tuple[int, int]:
        """The least and most pixels to which a picture of this detail is resized. Raises StateError for an unknown
        one."""
        if detail not in self._most:
            raise StateError(f"detail is {detail!r}; {', '.join(self._most)} are known")
        return min(self.config.least_pixels, self._most[detail]), self._most[detail]

    def look(self, picture: FittedPicture) -> Generator[None, None, SeenPicture]:
        """The picture's rows, after at least `steps` yields. Pictures are processed in order, and any waiting caller
        works on the first. The next caller who asks for a half-finished one continues it."""
        count = picture.pixels.shape[0] * picture.pixels.shape[1]
        if count > self._buffers.pixels.shape[0]:
            raise StateError(f"the picture has {count} pixels; fit it to {self._buffers.pixels.shape[0]} at most")
        look = self._looks.setdefault(picture.id, _Look(picture))
        look.waiting += 1
        try:
            while look.seen is None:
                self._advance()
                yield
            return look.seen
        finally:
            look.waiting -= 1
            if look.seen is not None:
                self._looks.pop(picture.id, None)

    def _advance(self) -> None:
        """Do one step of the first picture that somebody waits for."""
        name, look = next((name, look) for name, look in self._looks.items() if look.waiting and look.seen is None)
        for earlier in [other for other in self._looks if other != name and not self._looks[other].waiting]:
            del self._looks[earlier]  # abandoned; its place in the buffers goes to another
        grid = look.picture.grid
        if look.done == 0:
            flat = torch.from_numpy(look.picture.pixels).view(-1, 3)
            self._buffers.pixels[: flat.shape[0]].copy_(flat)
            self._make_room(grid)
        self._encode_step(grid, look.done)
        look.done += 1
        if look.done == self.steps:
            look.seen = SeenPicture(grid, self._buffers.rows[: grid.count].to("cpu", copy=True))

    def _make_room(self, grid: PictureGrid) -> None:
        if grid not in self._sizes and len(self._sizes) == CAPTURED:
            self._graph.clear()
            self._sizes.clear()
        self._sizes.add(grid)

    def _encode_step(self, grid: PictureGrid, step: int) -> None:
        key = ShapeKey(rows=grid.rows, columns=grid.columns, step=step)
        if key in self._graph:
            self._graph.replay(key)
        else:
            self._graph.capture(key, self._step(grid, step), preserve=False)  # without a shelf: it runs

    def _step(self, grid: PictureGrid, step: int) -> Callable[[], object]:
        if step == 0:
            return lambda: self._embed(grid)
        if step == self.steps - 1:
            return lambda: self._merge(grid)
        return lambda: self._block(grid, step - 1)

    def _embed(self, grid: PictureGrid) -> None:
        b, count = self._buffers, grid.count * MERGE**2
        pixels = b.pixels[: grid.count * CELL**2].view(grid.rows * CELL, grid.columns * CELL, 3)
        cos, sin = angles(self.config, grid, pixels.device)
        b.cos[:count].copy_(cos)
        b.sin[:count].copy_(sin)
        b.streams[0][:count].copy_(embed(self._weights, self.config, pixels))

    def _block(self, grid: PictureGrid, index: int) -> None:
        b, count = self._buffers, grid.count * MERGE**2
        x = b.streams[index % 2][:count]
        made = block(x, self._weights.blocks[index], self.config, b.cos[:count], b.sin[:count])
        b.streams[(index + 1) % 2][:count].copy_(made)

    def _merge(self, grid: PictureGrid) -> None:
        b, count = self._buffers, grid.count * MERGE**2
        b.rows[: grid.count].copy_(merge(b.streams[len(self._weights.blocks) % 2][:count], self._weights))


def most_pixels(config: VisionConfig, device: str, positions: int) -> int:
    """Most pixels of a picture on a device, in a context of `positions`: three quarters of them are left for words.

    Never below twice the least: sides are rounded up to a cell, and for a strip each by up to one cell.
    """
    budget = max((DETAILS_CPU if device == "cpu" else DETAILS).values())
    return max(2 * config.least_pixels, min(budget, config.most_pixels, positions // 4 * CELL**2))
