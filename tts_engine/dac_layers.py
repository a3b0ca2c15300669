"""The published codec's decoder over `tts_engine.codec_kernels`: the layers of `DacCodec`, two launches each."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from tts_engine.codec_kernels import codes_sum, conv, snake

DILATIONS = (1, 3, 9)
UNITS = ("res_unit1", "res_unit2", "res_unit3")
FEW = 16  # positions of a frame, up to which a layer has few rows


def decode_layers(t: Mapping[str, Tensor], strides: Sequence[int], codes: Tensor, valid: Tensor) -> Tensor:
    """codes [Q, T] -> samples, clipped to ±1.

    t      the decoder's tensors as `dac_codec` packs them
    valid  [2] int64: frames outside are silence to their neighbours
    """
    x, per = codes_sum(codes.contiguous(), t["table"], t["bias"], valid), 1
    x = _conv(x, t, "conv1", per)
    for i, stride in enumerate(strides):
        name = f"block.{i}"
        x = _upsampled(_snake(x, t, f"{name}.snake1", per, valid), t, f"{name}.conv_t1", stride, per)
        per *= stride
        for unit, dilation in zip(UNITS, DILATIONS, strict=True):
            at = f"{name}.{unit}"
            y = _conv(_snake(x, t, f"{at}.snake1", per, valid), t, f"{at}.conv1", per, dilation)
            x = _conv(_snake(y, t, f"{at}.snake2", per, None), t, f"{at}.conv2", per, residual=x)
    x = _conv(_snake(x, t, "snake1", per, valid), t, "conv2", per)
    return x.flatten().clamp(-1.0, 1.0)


def _snake(x: Tensor, t: Mapping[str, Tensor], name: str, per: int, valid: Tensor | None) -> Tensor:
    return snake(x, t[f"{name}.alpha"].flatten(), t[f"{name}.inverse"].flatten(), valid, per)


def _conv(
    x: Tensor, t: Mapping[str, Tensor], name: str, per: int, dilation: int = 1, residual: Tensor | None = None
) -> Tensor:
    """Either packing: `pack_rows` [k · C, O] for wide layers, `pack_columns` [O, C · k] for narrow ones."""
    weight, bias, channels = t[f"{name}.weight"], t[f"{name}.bias"], x.shape[1]
    outputs = bias.numel()
    taps = weight.numel() // (channels * outputs)
    in_columns = bias.dim() == 2
    strides = [1, taps, channels * taps] if in_columns else [channels * outputs, outputs, 1]
    left = (taps - 1) // 2 * dilation
    return conv(x, weight, bias.flatten(), strides, taps, outputs, dilation, left, x.shape[0], per < FEW, residual)


def _upsampled(x: Tensor, t: Mapping[str, Tensor], name: str, stride: int, per: int) -> Tensor:
    """A transposed convolution as one of two taps, whose outputs are `stride` positions each."""
    weight, bias = t[f"{name}.weight"], t[f"{name}.bias"].flatten()
    (length, channels), outputs = x.shape, weight.shape[1]
    strides = [channels * outputs, outputs, 1]
    made = conv(x, weight, bias, strides, 2, outputs, 1, 1, length + 1, per < FEW)
    return made.view(-1, bias.shape[0]).narrow(0, -(-stride // 2), length * stride)
