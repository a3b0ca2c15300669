"""Matrices of eight or four bits for a processor, made from wider ones at load time.

A *panel* is sixteen rows side by side, so one read brings the same few inputs of all sixteen. A value represents itself
times the scale of its row's group:

    int8   -127 … 127, groups of 64 inputs, stored plus 128
    int4     -8 …   7, groups of 32 inputs, stored plus 8; two steps of four inputs share their bytes, the first in the
             lower bits

Within a group follow steps of four inputs, within a step the sixteen rows. Groups and panels beyond the matrix are
filled with zeros.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

PANEL = 16
GROUPS = {8: 64, 4: 32}  # inputs with one scale, by bits
BITS = {"int8": 8, "int4": 4}
"""By names of dtypes: the bits to which an engine on a processor packs its matrices at load time."""
_STRIP_VALUES = 1 << 22  # values widened at a time: 16 MiB


@dataclass(frozen=True, eq=False)
class PanelWeight:
    """A matrix [O, I] in panels. A slice of rows that begins at a panel's edge is one, too."""

    values: Tensor  # [panels, groups, bytes of a group] uint8
    scale: Tensor  # [panels, groups, 16] bfloat16
    shape: torch.Size  # [O, I]

    @property
    def bits(self) -> int:
        return _bits(self.values)

    def unpack(self, dtype: torch.dtype) -> Tensor:
        """[O, I]; the product is taken in float32 and rounded once."""
        strips = [strip[:, : self.shape[1]].to(dtype) for strip in _unpacked(self.values, self.scale)]
        return torch.cat(strips)[: self.shape[0]]

    def rows(self, ids: Tensor) -> Tensor:
        """Rows of the matrix, typed like activations beside packed weights: [...] int64 to [..., I] bfloat16."""
        panel, place = ids // PANEL, ids % PANEL
        found = self.values.unflatten(-1, (-1, PANEL, 4))[panel, :, :, place]  # [..., groups, steps or half of them, 4]
        values = _widened(found, self.bits).flatten(-2)  # [..., groups, group]
        wide = (values * self.scale[panel, :, place].float()[..., None]).flatten(-2)
        return wide[..., : self.shape[1]].bfloat16()

    def __getitem__(self, rows: slice) -> "PanelWeight":
        first, last, _ = rows.indices(self.shape[0])
        assert first % PANEL == 0, "a panel is not divided"
        panels = slice(first // PANEL, -(-last // PANEL))
        return PanelWeight(self.values[panels], self.scale[panels], torch.Size((last - first, self.shape[1])))

    def fill(self, matrix: Tensor, groups: Tensor | None = None) -> Tensor:
        """Take over the scales of `matrix` [O, I] and return its values, which a loader copies into `values`."""
        values, scale = pack_panels(matrix, self.bits, groups)
        self.scale.copy_(scale)
        return values


def panel_shapes(rows: int, columns: int, bits: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Shapes of `values` and `scale` for a matrix [rows, columns]."""
    panels, groups = -(-rows // PANEL), -(-columns // GROUPS[bits])
    return (panels, groups, PANEL * GROUPS[bits] * bits // 8), (panels, groups, PANEL)


def empty_panels(rows: int, columns: int, bits: int, device: torch.device) -> PanelWeight:
    """Uninitialised."""
    values, scale = panel_shapes(rows, columns, bits)
    return PanelWeight(
        torch.empty(values, dtype=torch.uint8, device=device),
        torch.empty(scale, dtype=torch.bfloat16, device=device),
        torch.Size((rows, columns)),
    )


def pack_panels(matrix: Tensor, bits: int, groups: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """[O, I] of any float type to `values` and `scale`.

    groups  [O, groups], scales that are already known, as for a matrix published in so many bits. Otherwise a
            group's largest magnitude becomes 127 or, in four bits, -8: the scale takes the sign needed for that
    """
    rows, columns = matrix.shape
    shapes = panel_shapes(rows, columns, bits)
    values = torch.empty(shapes[0], dtype=torch.uint8, device=matrix.device)
    scale = torch.empty(shapes[1], dtype=torch.bfloat16, device=matrix.device)
    short = -columns % GROUPS[bits]
    for panels in _strips(shapes[0], bits):
        part = matrix[panels.start * PANEL : panels.stop * PANEL].float()
        part = F.pad(part, (0, short, 0, -part.shape[0] % PANEL))
        tiles = part.unflatten(1, (-1, GROUPS[bits])).unflatten(0, (-1, PANEL)).transpose(1, 2)
        scale[panels] = found = _scales(tiles, bits) if groups is None else _by_panel(groups, panels)
        values[panels] = _stored(tiles, found.float(), bits)
    return values, scale


def _by_panel(groups: Tensor, panels: slice) -> Tensor:
    part = groups[panels.start * PANEL : panels.stop * PANEL]
    whole = F.pad(part.float(), (0, 0, 0, -part.shape[0] % PANEL), value=1.0)
    return whole.unflatten(0, (-1, PANEL)).transpose(1, 2).bfloat16()


def _scales(tiles: Tensor, bits: int) -> Tensor:
    if bits == 8:
        found = tiles.abs().amax(-1) / 127
    else:
        low, high = tiles.aminmax(dim=-1)
        found = torch.where(high > -low, high, low) / -8
    found = found.bfloat16()
    return torch.where(found == 0, 1.0, found)


def _stored(tiles: Tensor, scale: Tensor, bits: int) -> Tensor:
    """[P, groups, 16, group] to bytes [P, groups, bytes]."""
    least, most, zero = (-127, 127, 128) if bits == 8 else (-8, 7, 8)
    whole = (tiles / scale[..., None]).round_().clamp_(least, most).add_(zero).to(torch.uint8)
    steps = whole.unflatten(-1, (-1, 4)).transpose(2, 3)  # [P, groups, steps, 16, 4]
    if bits == 4:
        steps = steps[:, :, 0::2] | (steps[:, :, 1::2] << 4)
    return steps.flatten(2)


def _unpacked(values: Tensor, scale: Tensor) -> Iterator[Tensor]:
    """The padded matrix in float32, some panels at a time."""
    bits = _bits(values)
    for panels in _strips(values.shape, bits):
        steps = values[panels].unflatten(-1, (-1, PANEL, 4)).transpose(2, 3)  # [P, groups, 16, steps or half, 4]
        tiles = _widened(steps, bits).flatten(-2) * scale[panels].float()[..., None]
        yield tiles.transpose(1, 2).flatten(2).flatten(0, 1)


def _widened(steps: Tensor, bits: int) -> Tensor:
    """[..., steps or half of them, 4] bytes to [..., steps, 4] float32."""
    if bits == 8:
        return steps.float() - 128
    return torch.stack((steps & 15, steps >> 4), -2).flatten(-3, -2).float() - 8


def _bits(values: Tensor) -> int:
    return next(bits for bits, group in GROUPS.items() if values.shape[-1] == PANEL * group * bits // 8)


def _strips(shape: torch.Size | tuple[int, ...], bits: int) -> Iterator[slice]:
    count = max(1, _STRIP_VALUES // (shape[1] * GROUPS[bits] * PANEL))
    for first in range(0, shape[0], count):
        yield slice(first, min(first + count, shape[0]))


def _linear(x: Tensor, values: Tensor, scale: Tensor, outputs: int) -> Tensor:
    wide = x.float()
    columns = x.shape[-1]
    parts = [F.linear(wide, strip[:, :columns]) for strip in _unpacked(values, scale)]
    return torch.cat(parts, -1)[..., :outputs].to(x.dtype)


# One operator, so a recording of a step holds no unpacked matrix.
_library = torch.library.Library("capsules_panels", "DEF")
_library.define("linear(Tensor x, Tensor values, Tensor scale, int outputs) -> Tensor")
_library.impl("linear", _linear, "CPU")


def plain_linear(x: Tensor, weight: PanelWeight) -> Tensor:
    """x [..., I] times the unpacked matrix, in torch alone: the reference for the kernels. [..., O] in x's type."""
    made: Tensor = torch.ops.capsules_panels.linear(x, weight.values, weight.scale, weight.shape[0])
    return made
