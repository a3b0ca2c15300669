"""Layers that work frame by frame: the library's convolutions in value, and blind to what surrounds a frame.

Here with one thread; with more in test_tts_engine.py, which runs `threaded_codecs`.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tts_engine import framewise

FRAMES = 29
LAYERS = ["linear", "rows", "columns", "depthwise", "upsample"]
Layer = Callable[[Tensor], Tensor]  # rows [T, C] -> rows, whatever the layout within


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def layer(kind: str, per: int, dilation: int = 3, dtype: torch.dtype = torch.float32) -> tuple[Layer, Layer, int]:
    """(frame-wise, the library's, outputs per position), 12 channels to 20."""
    bias = normal(20, seed=1, dtype=dtype)
    if kind == "linear":
        w = normal(20, 12, dtype=dtype)
        return lambda x: framewise.linear(x, w.t(), bias, per), lambda x: F.linear(x, w, bias), 1
    if kind == "upsample":
        w = normal(12, 20, 10, dtype=dtype)
        packed = framewise.pack_upsample(w)
        return (
            lambda x: framewise.upsample_rows(x, packed, bias, per, 5),
            lambda x: F.conv_transpose1d(x.t()[None], w, bias, 5, padding=3, output_padding=1)[0].t(),
            5,
        )
    if kind == "depthwise":
        w = normal(12, 7, dtype=dtype)
        return (
            lambda x: framewise.conv_depthwise(x, w, bias[:12], (6, 0)),
            lambda x: F.conv1d(F.pad(x.t()[None], (6, 0)), w[:, None], bias[:12], groups=12)[0].t(),
            1,
        )
    w = normal(20, 12, 7, dtype=dtype)
    if kind == "rows":
        packed = framewise.pack_rows(w)
        made: Layer = lambda x: framewise.conv_rows(x, packed, bias, per, dilation)  # noqa: E731
    else:
        packed = framewise.pack_columns(w)
        made = lambda x: framewise.conv_columns(x.t().contiguous(), packed, bias[:, None], per, dilation).t()  # noqa: E731
    return made, lambda x: F.conv1d(x.t()[None], w, bias, padding=3 * dilation, dilation=dilation)[0].t(), 1


@pytest.mark.parametrize("count", [1, 7, 8, 9, 21])
def test_calls_of_one_size_make_the_products_of_one_call(count: int) -> None:
    rows, columns = normal(count, 16, 12, dtype=torch.float64), normal(count, 12, 5, dtype=torch.float64)
    w, bias = normal(12, 20, dtype=torch.float64), normal(20, dtype=torch.float64)
    v = normal(20, 12, dtype=torch.float64)
    exact = {"rtol": 0, "atol": 1e-12}
    torch.testing.assert_close(framewise._products(bias, rows, w, size=8), bias + rows @ w, **exact)
    made = framewise._products(bias[:, None], columns, v, weight_first=True, size=8)
    torch.testing.assert_close(made, bias[:, None] + v @ columns, **exact)


@pytest.mark.parametrize("per", [1, 4, 40])
@pytest.mark.parametrize("kind", LAYERS)
def test_value_is_that_of_the_librarys_layer(kind: str, per: int) -> None:
    made, plain, _ = layer(kind, per, dtype=torch.float64)
    x = normal(FRAMES * per, 12, seed=2, dtype=torch.float64)
    torch.testing.assert_close(made(x), plain(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("per", [1, 4, 40])
@pytest.mark.parametrize("kind", LAYERS)
def test_a_frame_is_the_same_in_every_window_at_every_place(kind: str, per: int) -> None:
    made, _, out = layer(kind, per)
    x = normal(FRAMES * per, 12, seed=2)
    whole = made(x)
    reach = -(-9 // per)  # frames that a frame sees to either side
    for first in (0, 1, 6):
        for last in (first + 1, first + 2, 17, 18, 20, FRAMES):
            part = made(x[first * per : last * per])
            low = first + reach if first else 0
            high = last - reach if last < FRAMES else FRAMES
            if low < high:
                seen = part[(low - first) * per * out : (high - first) * per * out]
                assert torch.equal(seen, whole[low * per * out : high * per * out]), (first, last)


def test_a_batch_is_its_items() -> None:
    made, _, _ = layer("rows", 4)
    x = normal(3, 9 * 4, 12)
    assert torch.equal(made(x), torch.stack([made(item) for item in x]))
