"""Matrices of eight or four bits for a processor, made from wider ones at load time.

A *panel* is sixteen rows side by side, so one read brings the same few inputs of all sixteen. A value represents itself
times the scale of its row's group:

    int8   -127 … 127, groups of 64 inputs, or 32 for published values; stored plus 128
    int4     -8 …   7, groups of 32 inputs, stored plus 8; two steps of four inputs share their bytes, the first in the
             lower bits

Groups of 32 may also have a shift, which is added to a value before it is scaled: published files have minima and zero
points. Within a group follow steps of four inputs, within a step the sixteen rows. Groups and panels beyond the matrix
are filled with zeros.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from capsules.nn.groups import GROUP, KnownGroups

PANEL = 16
BITS = {"int8": 8, "int4": 4}
"""By names of dtypes: the bits to which an engine on a processor packs its matrices at load time."""
_STRIP_VALUES = 1 << 22  # values widened at a time: 16 MiB


@dataclass(frozen=True)
class PanelForm:
    """How a matrix lies in panels."""

    bits: int
    group: int  # inputs with one scale
    shifted: bool = False

    @property
    def group_bytes(self) -> int:
        return PANEL * self.group * self.bits // 8

    def shapes(self, rows: int, columns: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Shapes of `values` and `scale` for a matrix [rows, columns]."""
        panels, groups = -(-rows // PANEL), -(-columns // self.group)
        return (panels, groups, self.group_bytes), (panels, groups, PANEL * (1 + self.shifted))

    @classmethod
    def of(cls, values: Tensor, scale: Tensor) -> "PanelForm":
        """As the tensors of a matrix show it."""
        bits, group = next((f.bits, f.group) for f in _KINDS if f.group_bytes == values.shape[-1])
        return cls(bits, group, scale.shape[-1] == 2 * PANEL)


FORMS = {8: PanelForm(8, 64), 4: PanelForm(4, GROUP)}
"""By bits: the forms into which any matrix is packed."""
_KINDS = (*FORMS.values(), PanelForm(8, GROUP))


@dataclass(frozen=True, eq=False)
class PanelWeight:
    """A matrix [O, I] in panels. A slice of rows that begins at a panel's edge is one, too."""

    values: Tensor  # [panels, groups, bytes of a group] uint8
    scale: Tensor  # [panels, groups, 16] bfloat16; [panels, groups, 32] where sixteen shifts follow the scales
    shape: torch.Size  # [O, I]

    @property
    def form(self) -> PanelForm:
        return PanelForm.of(self.values, self.scale)

    @property
    def bits(self) -> int:
        return self.form.bits

    def unpack(self, dtype: torch.dtype) -> Tensor:
        """[O, I]; the product is taken in float32 and rounded once."""
        strips = [strip[:, : self.shape[1]].to(dtype) for strip in _unpacked(self.values, self.scale)]
        return torch.cat(strips)[: self.shape[0]]

    def rows(self, ids: Tensor) -> Tensor:
        """Rows of the matrix, typed like activations beside packed weights: [...] int64 to [..., I] bfloat16."""
        panel, place = ids // PANEL, ids % PANEL
        found = self.values.unflatten(-1, (-1, PANEL, 4))[panel, :, :, place]  # [..., groups, steps or half of them, 4]
        values = _widened(found, self.bits).flatten(-2)  # [..., groups, group]
        each = self.scale.unflatten(-1, (-1, PANEL))[panel, :, :, place].float()  # [..., groups, 1 or 2]
        wide = _scaled(values, each).flatten(-2)
        return wide[..., : self.shape[1]].bfloat16()

    def __getitem__(self, rows: slice) -> "PanelWeight":
        first, last, _ = rows.indices(self.shape[0])
        assert first % PANEL == 0, "a panel is not divided"
        panels = slice(first // PANEL, -(-last // PANEL))
        return PanelWeight(self.values[panels], self.scale[panels], torch.Size((last - first, self.shape[1])))

    def fill(self, matrix: Tensor, known: KnownGroups | None = None) -> Tensor:
        """Take over the scales of `matrix` [O, I] and return its values, which a loader copies into `values`."""
        values, scale = pack_panels(matrix, self.form, known)
        self.scale.copy_(scale)
        return values


def empty_panels(rows: int, columns: int, form: PanelForm, device: torch.device) -> PanelWeight:
    """Uninitialised."""
    values, scale = form.shapes(rows, columns)
    return PanelWeight(
        torch.empty(values, dtype=torch.uint8, device=device),
        torch.empty(scale, dtype=torch.bfloat16, device=device),
        torch.Size((rows, columns)),
    )


def pack_panels(matrix: Tensor, form: PanelForm, known: KnownGroups | None = None) -> tuple[Tensor, Tensor]:
    """[O, I] of any float type to `values` and `scale`.

    known  scales and shifts that the matrix was published with, for groups of 32; its values are found again, and the
           scales are rounded to bfloat16. Otherwise a group's largest magnitude becomes 127 or, in four bits, -8: the
           scale takes the sign needed for that
    """
    rows, columns = matrix.shape
    shapes = form.shapes(rows, columns)
    values = torch.empty(shapes[0], dtype=torch.uint8, device=matrix.device)
    scale = torch.empty(shapes[1], dtype=torch.bfloat16, device=matrix.device)
    short = -columns % form.group
    for panels in _strips(shapes[0], form):
        strip = slice(panels.start * PANEL, panels.stop * PANEL)
        part = matrix[strip].float()
        if known is None:
            tiles = _by_panel(F.pad(part, (0, short)), form.group, 0.0)
            found = _scales(tiles, form.bits)
            whole, shift = tiles / found.float()[..., None], None
        else:
            assert form.group == GROUP and not short, "groups of 32"
            part = KnownGroups(known.scale[strip], None if known.shift is None else known.shift[strip]).wholes(part)
            whole, found = _by_panel(part, GROUP, 0.0), _by_panel(known.scale[strip], 1, 1.0)[..., 0].bfloat16()
            shift = None if known.shift is None else _by_panel(known.shift[strip], 1, 0.0)[..., 0].bfloat16()
        if form.shifted:
            found = torch.cat((found, torch.zeros_like(found) if shift is None else shift), -1)
        assert form.shifted or shift is None, "there is room for shifts"
        scale[panels] = found
        values[panels] = _stored(whole, form.bits)
    return values, scale


def _by_panel(part: Tensor, group: int, beyond: float) -> Tensor:
    """[rows, columns] to [P, columns / group, 16, group]; `beyond` fills the last panel."""
    whole = F.pad(part, (0, 0, 0, -part.shape[0] % PANEL), value=beyond)
    return whole.unflatten(1, (-1, group)).unflatten(0, (-1, PANEL)).transpose(1, 2)


def _scales(tiles: Tensor, bits: int) -> Tensor:
    if bits == 8:
        found = tiles.abs().amax(-1) / 127
    else:
        low, high = tiles.aminmax(dim=-1)
        found = torch.where(high > -low, high, low) / -8
    found = found.bfloat16()
    return torch.where(found == 0, 1.0, found)


def _stored(tiles: Tensor, bits: int) -> Tensor:
    """[P, groups, 16, group] of values to bytes [P, groups, bytes]."""
    least, most, zero = (-128, 127, 128) if bits == 8 else (-8, 7, 8)
    whole = tiles.round_().clamp_(least, most).add_(zero).to(torch.uint8)
    steps = whole.unflatten(-1, (-1, 4)).transpose(2, 3)  # [P, groups, steps, 16, 4]
    if bits == 4:
        steps = steps[:, :, 0::2] | (steps[:, :, 1::2] << 4)
    return steps.flatten(2)


def _unpacked(values: Tensor, scale: Tensor) -> Iterator[Tensor]:
    """The padded matrix in float32, some panels at a time."""
    form = PanelForm.of(values, scale)
    for panels in _strips(values.shape, form):
        steps = values[panels].unflatten(-1, (-1, PANEL, 4)).transpose(2, 3)  # [P, groups, 16, steps or half, 4]
        each = scale[panels].float().unflatten(-1, (-1, PANEL)).transpose(2, 3)  # [P, groups, 16, 1 or 2]
        tiles = _scaled(_widened(steps, form.bits).flatten(-2), each)
        yield tiles.transpose(1, 2).flatten(2).flatten(0, 1)


def _scaled(values: Tensor, each: Tensor) -> Tensor:
    """Values [..., group] with `each` group's scale and, if there is one, shift [..., 1 or 2]."""
    shifted = values + each[..., 1:] if each.shape[-1] == 2 else values
    return shifted * each[..., :1]


def _widened(steps: Tensor, bits: int) -> Tensor:
    """[..., steps or half of them, 4] bytes to [..., steps, 4] float32."""
    if bits == 8:
        return steps.float() - 128
    return torch.stack((steps & 15, steps >> 4), -2).flatten(-3, -2).float() - 8


def _strips(shape: torch.Size | tuple[int, ...], form: PanelForm) -> Iterator[slice]:
    count = max(1, _STRIP_VALUES // (shape[1] * form.group * PANEL))
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
