"""The codec's kernels in Triton's interpreter: a whole miniature decoder against the plain one, and against itself.

Run as its own process with TRITON_INTERPRET=1; prints one JSON line of error ratios, 0 where bits must be equal.
"""

import json
import math
from unittest import mock

import torch
from torch import Tensor

from tests.capsules.interpreted_kernels import draw, ratio, whole
from tests.tts_engine import miniature
from tts_engine import dac_codec, dac_layers
from tts_engine.codec_kernels import launch_codes_sum, launch_conv, launch_snake
from tts_engine.dac_codec import DacCodec
from tts_engine.framewise import conv_columns, conv_rows, pack_columns, pack_rows, pack_upsample, upsample_rows


def layers(found: dict[str, float]) -> None:
    """Convolutions of odd sizes in both packings, at the edges of their tiles."""
    sizes = ((5, 40, 33, 7, 3), (70, 3, 1, 7, 1), (16, 33, 20, 1, 1), (33, 8, 70, 7, 9))
    for length, channels, outputs, taps, dilation in sizes:
        x, w, bias = draw(length, channels), draw(outputs, channels, taps), draw(outputs)
        want = conv_rows(x.double(), pack_rows(w.double()), bias.double(), 1, dilation)
        left, case = (taps - 1) // 2 * dilation, f"conv {length} x {channels} to {outputs}"
        for narrow in (True, False):
            rows = [channels * outputs, outputs, 1]
            got = launch_conv(x, pack_rows(w), bias, rows, taps, outputs, dilation, left, length, narrow)
            found[f"{case} {narrow}"] = ratio(got, want)
        columns = [1, taps, channels * taps]
        got = launch_conv(x, pack_columns(w), bias, columns, taps, outputs, dilation, left, length, False, got)
        plain = conv_columns(x.t().double(), pack_columns(w.double()), bias.double()[:, None], 1, dilation).t()
        found[f"{case} in columns, added"] = ratio(got, 2 * plain)
    x, w, bias = draw(7, 12), draw(12, 20, 10), draw(20)
    made = launch_conv(x, pack_upsample(w), bias, [1200, 100, 1], 2, 100, 1, 1, 8, True)
    want = upsample_rows(x.double(), pack_upsample(w.double()), bias.double(), 1, 5)
    found["upsampled"] = ratio(made.view(-1, 20).narrow(0, 3, 35), want)


def decoder(strides: tuple[int, ...]) -> DacCodec:
    samples = math.prod(strides)
    with mock.patch.object(miniature, "STRIDES", strides), mock.patch.object(dac_codec, "FRAME_SAMPLES", samples):
        tensors = miniature.miniature_tensors(miniature.Size(decoder_width=32), 0)
        below = {name.removeprefix(miniature.CODEC): t for name, t in tensors.items() if miniature.CODEC in name}
        return dac_codec.dac_codec(below, 8, torch.device("cpu"))


def whole_decoder(found: dict[str, float]) -> None:
    """The published strides, with silence on either side of the one frame that exists."""
    codec, codes, valid = decoder(miniature.STRIDES), whole(0, 1024, 8, 3), torch.tensor([1, 2])
    found["decoder"] = ratio(ours(codec, codes, valid), codec.decode_window(codes, valid))


def streamed(found: dict[str, float]) -> None:
    """The interpreter takes as long for each tile, so a frame has 40 samples here instead of 960, and sees further."""
    codec, context = decoder((8, 5, 1, 1, 1)), 13
    frames = context + 3
    codes = whole(0, 1024, 8, frames)
    one_shot = ours(codec, codes, torch.tensor([0, frames]))
    part = ours(codec, codes[:, :-2], torch.tensor([0, frames - 2]))
    known = (frames - 2 - context) * 40
    found["streamed"] = float(not torch.equal(part[:known], one_shot[:known]))


def ours(codec: DacCodec, codes: Tensor, valid: Tensor) -> Tensor:
    with (
        mock.patch.object(dac_layers, "codes_sum", launch_codes_sum),
        mock.patch.object(dac_layers, "snake", launch_snake), mock.patch.object(dac_layers, "conv", launch_conv),
    ):  # fmt: skip
        return dac_layers.decode_layers(codec.tensors, codec.strides, codes, valid)


def main() -> None:
    found: dict[str, float] = {}
    layers(found)
    whole_decoder(found)
    streamed(found)
    print(json.dumps(found))


if __name__ == "__main__":
    with torch.no_grad():
        main()
