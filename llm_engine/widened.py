"""Tensors that are widened while they are read: the common last step of every layout that stores few bits."""

from collections.abc import Callable
from math import prod

from torch import Tensor

from capsules.errors import WeightsError
from capsules.weights import Target

_STRIP_VALUES = 1 << 22  # values widened at a time: 16 MiB


def fill_target(name: str, shape: tuple[int, ...], target: Target, rows: Callable[[int, int], Tensor]) -> None:
    """Fill one target with the tensor of that name and shape; `rows` returns some of its rows, first … last, float32.

    Raises WeightsError.
    """
    if shape != (target.shape or (shape if target.rows else tuple(target.tensor.shape))):
        wanted = list(target.shape or target.tensor.shape)
        raise WeightsError(f"{name}: shape {list(shape)} in the file, {wanted} expected")
    first, last, _ = (target.rows or slice(None)).indices(shape[0])
    if target.transform is not None:
        target.tensor.copy_(target.transform(rows(first, last)))
        return
    step = max(1, _STRIP_VALUES // prod(shape[1:]))
    for row in range(first, last, step):
        upto = min(row + step, last)
        target.tensor[row - first : upto - first].copy_(rows(row, upto))
