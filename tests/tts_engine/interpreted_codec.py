"""The codec's kernels in Triton's interpreter: a whole miniature decoder against the plain one, and against itself.

Run as its own process with TRITON_INTERPRET=1; prints one JSON line of error ratios, 0 where bits must be equal.
"""

import json
from unittest import mock

import torch
from torch import Tensor

from tests.capsules.interpreted_kernels import draw, ratio, whole
from tests.tts_engine.miniature import CODEC, Size, miniature_tensors
from tts_engine import dac_layers
from tts_engine.codec_kernels import launch_codes_sum, launch_conv, launch_snake
from tts_engine.dac_codec import CONTEXT_FRAMES, DacCodec, dac_codec
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


def whole_decoder(found: dict[str, float]) -> None:
    size = Size(decoder_width=32)
    tensors = {name.removeprefix(CODEC): t for name, t in miniature_tensors(size, 0).items() if CODEC in name}
    codec = dac_codec(tensors, 8, torch.device("cpu"))
    frames = CONTEXT_FRAMES + 3
    codes, valid = whole(0, 1024, 8, frames), torch.tensor([1, frames - 1])
    found["decoder"] = ratio(ours(codec, codes, valid), codec.decode_window(codes, valid))
    one_shot = ours(codec, codes, torch.tensor([0, frames]))
    part = ours(codec, codes[:, :-2], torch.tensor([0, frames - 2]))
    known = (frames - 2 - CONTEXT_FRAMES) * 960
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
    print(json.dumps(found))


if __name__ == "__main__":
    with torch.no_grad():
        main()
