"""Convolutions and linear layers whose result for a frame does not depend on the length of the window around it.

A library picks its algorithm, and with it the order of its sums, by the shape it gets: the same frame decoded in two
windows of different length differs in its last bits. Here a layer is a batch of matrix products of one fixed shape, one
frame each (or 16 positions if a frame has fewer: smaller products would read the weights too often). So a frame's
samples depend only on the frames it sees, and streamed sound equals one-shot sound bit for bit. The library only has to
sum all rows of equally shaped products in one order; tests/tts_engine/test_framewise.py holds it. (MKL turns a batch of
one into a plain product and splits it among its threads, in another order. So there are always at least two.)

Axes: T positions, `per` of them to a frame, C channels in, O channels out, k taps.
Wide layers are rows [..., T, C]; narrow ones columns [C, T], where copies and broadcasts run along T instead of along
a handful of channels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

BATCH = 8  # products in one call on a GPU
_LEAST = 16  # positions in one product


def linear(x: Tensor, weight: Tensor, bias: Tensor, per: int) -> Tensor:
    """x [..., T, C], weight [C, O], bias [O] -> [..., T, O]."""
    length, rows = x.shape[-2], max(per, _LEAST)
    short = _short(length, rows)
    items = (F.pad(x, (0, 0, 0, short)) if short else x).reshape(-1, rows, x.shape[-1])
    made = _products(bias, items, weight)
    return made.view(*x.shape[:-2], length + short, weight.shape[1]).narrow(-2, 0, length)


def conv_rows(
    x: Tensor, weight: Tensor, bias: Tensor, per: int, dilation: int = 1, pad: tuple[int, int] | None = None
) -> Tensor:
    """x [..., T, C], weight [k·C, O] from `pack_rows`, bias [O] -> [..., T, O].

    pad  zeros before and after; together they must make up for the taps. Default: the same on both sides
    """
    channels = x.shape[-1]
    taps = weight.shape[0] // channels
    if taps == 1:
        return linear(x, weight, bias, per)
    seen = _seen(F.pad(x, (0, 0, *(pad or _both(taps, dilation)))), -2, taps, dilation)  # [..., T, C, k]
    return linear(seen.transpose(-1, -2).flatten(-2), weight, bias, per)


def conv_columns(x: Tensor, weight: Tensor, bias: Tensor, per: int, dilation: int = 1) -> Tensor:
    """x [C, T], weight [O, C·k] from `pack_columns`, bias [O, 1] -> [O, T]; zeros on both sides."""
    channels, length = x.shape
    taps, short = weight.shape[1] // channels, _short(length, per)
    before, after = _both(taps, dilation)
    seen = _seen(F.pad(x, (before, after + short)), -1, taps, dilation)  # [C, T, k]
    items = seen.unflatten(1, (-1, per)).permute(1, 0, 3, 2).reshape(-1, channels * taps, per)
    made = _products(bias, items, weight, weight_first=True)  # [frames, O, per]
    return made.transpose(0, 1).reshape(weight.shape[0], -1).narrow(1, 0, length)


def conv_depthwise(x: Tensor, weight: Tensor, bias: Tensor, pad: tuple[int, int]) -> Tensor:
    """x [..., T, C], weight [C, k], bias [C] -> [..., T, C]: a product and a sum per tap, each rounded separately."""
    length, padded = x.shape[-2], F.pad(x, (0, 0, *pad))
    made = bias
    for tap in range(weight.shape[1]):
        made = made + padded.narrow(-2, tap, length) * weight[:, tap]
    return made


def upsample_rows(x: Tensor, weight: Tensor, bias: Tensor, per: int, stride: int) -> Tensor:
    """A transposed convolution of kernel 2·stride: x [T, C], weight [2·C, stride·O] from `pack_upsample`, bias [O]
    -> [T·stride, O]. Padding ⌈stride/2⌉, output padding stride mod 2.

    Before trimming, outputs n·stride … n·stride + stride - 1 come from inputs n - 1 and n.
    """
    length = x.shape[0]
    seen = _seen(F.pad(x, (0, 0, 1, 1)), 0, 2, 1)  # [T + 1, C, 2]
    made = linear(seen.transpose(-1, -2).flatten(-2), weight, bias.repeat(stride), per)
    return made.view(-1, bias.shape[0]).narrow(0, -(-stride // 2), length * stride)


def pack_rows(weight: Tensor) -> Tensor:
    """Weights for `conv_rows`, from a convolution's [O, C, k]."""
    return weight.permute(2, 1, 0).reshape(-1, weight.shape[0]).contiguous()


def pack_columns(weight: Tensor) -> Tensor:
    """Weights for `conv_columns`, from a convolution's [O, C, k]."""
    return weight.flatten(1).contiguous()


def pack_upsample(weight: Tensor) -> Tensor:
    """Weights for `upsample_rows`, from a transposed convolution's [C, O, 2·stride]: the previous input's share
    first."""
    now, before = weight.chunk(2, -1)
    return torch.cat([before, now]).transpose(1, 2).flatten(1).contiguous()


def _products(bias: Tensor, items: Tensor, weight: Tensor, weight_first: bool = False, size: int = 0) -> Tensor:
    """bias + items[i] · weight (or weight · items[i]) for every i: items [N, ...] -> [N, ...].

    size  products in one call; 0: all on a CPU, BATCH on a GPU, where cuBLAS also chooses its kernel by the batch
    """
    count = items.shape[0]
    size = size or (count if items.is_cpu else BATCH)
    matrix = weight.expand(size, -1, -1)

    def product(part: Tensor) -> Tensor:
        return torch.baddbmm(bias, matrix, part) if weight_first else torch.baddbmm(bias, part, matrix)

    if size == count:
        return product(items)
    padded = F.pad(items, (0, 0, 0, 0, 0, -count % size))
    return torch.cat([product(part) for part in padded.split(size)]).narrow(0, 0, count)


def _short(length: int, rows: int) -> int:
    """Positions missing to a whole number of products, at least two."""
    return max(2, -(-length // rows)) * rows - length


def _seen(padded: Tensor, axis: int, taps: int, dilation: int) -> Tensor:
    """A view with one more axis at the end: the input of each tap at each position."""
    return padded.unfold(axis, (taps - 1) * dilation + 1, 1)[..., ::dilation]


def _both(taps: int, dilation: int) -> tuple[int, int]:
    return (taps - 1) // 2 * dilation, taps // 2 * dilation
