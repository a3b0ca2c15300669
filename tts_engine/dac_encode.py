"""The published codec, encode side: a reference recording to codes, for voices.

A HuBERT model reads content at 16 kHz, a strided convolution stack reads sound at 24 kHz; both meet in a residual
quantiser. HuBERT attends over the whole clip, so this does not stream and is never captured. Plain functions over the
stored tensors, each cast to float32 at its use. Source: transformers' HiggsAudioV2TokenizerModel, HubertModel.
"""

import math
from collections.abc import Iterator, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

_HUBERT_STRIDES = (5, 2, 2, 2, 2, 2, 2)
_HOP_16K = 160  # zeros on both sides before HuBERT
_DILATIONS = (1, 3, 9)

ENCODER = ("acoustic_encoder.", "semantic_model.", "encoder_semantic.")
"""Parts of the codec that are read when a voice is added, and never while it speaks."""


class _Stored(Mapping[str, Tensor]):
    """Tensors below a prefix, as float32."""

    def __init__(self, tensors: Mapping[str, Tensor], prefix: str = "") -> None:
        self._tensors, self._prefix = tensors, prefix

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[self._prefix + name].float()

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self._prefix) for name in self._tensors if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def at(self, name: str) -> "_Stored":
        return _Stored(self._tensors, f"{self._prefix}{name}.")


@torch.no_grad()
def encode_wave(
    tensors: Mapping[str, Tensor], wave: Tensor, codebooks: int, strides: tuple[int, ...], heads: int
) -> Tensor:
    """wave float32 [samples] at 24 kHz -> codes [Q, T] int64 on the device of the tensors.

    strides are the decoder's; the encoder has the same, in the same order.
    """
    return quantise(tensors, features(tensors, wave, strides, heads), codebooks)


@torch.no_grad()
def features(tensors: Mapping[str, Tensor], wave: Tensor, strides: tuple[int, ...], heads: int) -> Tensor:
    """The features to quantise: [T, acoustic + semantic] float32."""
    t = _Stored(tensors)
    wave = wave.to(t["fc.weight"].device, torch.float32)
    semantic = _semantic_encoder(t.at("encoder_semantic"), _hubert(t.at("semantic_model"), wave, heads))
    acoustic = _acoustic(t.at("acoustic_encoder"), wave, strides)
    if acoustic.shape[-1] != semantic.shape[-1]:
        pad = math.prod(strides) // 2
        acoustic = _acoustic(t.at("acoustic_encoder"), F.pad(wave, (pad, pad)), strides)
    both = torch.cat([acoustic, semantic], dim=1)[0].t()  # [T, acoustic + semantic]
    return F.linear(both, t["fc.weight"], t["fc.bias"])


@torch.no_grad()
def quantise(tensors: Mapping[str, Tensor], residual: Tensor, codebooks: int) -> Tensor:
    """Residual quantisation. residual [T, width] -> codes [Q, T] int64."""
    codes = []
    for q in range(codebooks):
        t = _Stored(tensors, f"quantizer.quantizers.{q}.")
        book = t["codebook.embed"]
        point = F.linear(residual, t["project_in.weight"], t["project_in.bias"])
        nearest = (book.square().sum(1) - 2 * point @ book.t()).argmin(dim=1)
        residual = residual - F.linear(book[nearest], t["project_out.weight"], t["project_out.bias"])
        codes.append(nearest)
    return torch.stack(codes)


def resample_24_to_16(wave: Tensor) -> Tensor:
    """[samples] -> [ceil(2·samples / 3)]. Windowed sinc (Hann), 6 zero crossings, roll-off 0.99: torchaudio's default.

    The codec was trained with exactly this filter, so a better resampler would give worse results here.
    """
    old, new, crossings = 3, 2, 6
    base = new * 0.99
    width = math.ceil(crossings * old / base)
    taps = torch.arange(-width, width + old, dtype=torch.float64)[None] / old
    t = (torch.arange(0, -new, -1, dtype=torch.float64)[:, None] / new + taps) * base
    t = t.clamp(-crossings, crossings)
    kernel = torch.sinc(t) * torch.cos(t * math.pi / crossings / 2).square() * (base / old)
    y = F.conv1d(F.pad(wave, (width, width + old))[None, None], kernel.float()[:, None].to(wave.device), stride=old)
    return y[0].t().reshape(-1)[: math.ceil(new * wave.shape[0] / old)]


def _hubert(t: _Stored, wave: Tensor, heads: int) -> Tensor:
    """Mean of all hidden states, every second step: [T, hidden]."""
    x = F.pad(resample_24_to_16(wave), (_HOP_16K, _HOP_16K))[None, None]
    for i, stride in enumerate(_HUBERT_STRIDES):
        x = F.conv1d(x, t[f"feature_extractor.conv_layers.{i}.conv.weight"], stride=stride)
        if i == 0:
            norm = t.at("feature_extractor.conv_layers.0.layer_norm")
            x = F.group_norm(x, x.shape[1], norm["weight"], norm["bias"])
        x = F.gelu(x)
    x = _norm(x[0].t(), t.at("feature_projection.layer_norm"))
    x = _linear(x, t.at("feature_projection.projection"))
    x = _norm(x + _position(t.at("encoder.pos_conv_embed.conv"), x), t.at("encoder.layer_norm"))
    states, layer = x.clone(), 0
    while f"encoder.layers.{layer}.final_layer_norm.weight" in t:
        x = _hubert_layer(t.at(f"encoder.layers.{layer}"), x, heads)
        states, layer = states + x, layer + 1
    return (states / (layer + 1))[::2]


def _position(t: _Stored, x: Tensor) -> Tensor:
    """Grouped convolution over time, with weight norm unfolded; the even kernel gives one step too many."""
    gain, direction = t["parametrizations.weight.original0"], t["parametrizations.weight.original1"]
    weight = direction * (gain / direction.norm(dim=(0, 1), keepdim=True))
    groups = weight.shape[0] // weight.shape[1]
    y = F.conv1d(x.t()[None], weight, t["bias"], padding=weight.shape[2] // 2, groups=groups)[..., : x.shape[0]]
    return F.gelu(y)[0].t()


def _hubert_layer(t: _Stored, x: Tensor, heads: int) -> Tensor:
    """Post-norm. x [T, hidden]."""
    a = t.at("attention")
    q, k, v = (_linear(x, a.at(f"{n}_proj")).unflatten(1, (heads, -1)).transpose(0, 1) for n in "qkv")
    y = F.scaled_dot_product_attention(q[None], k[None], v[None])[0].transpose(0, 1).flatten(1)
    x = _norm(x + _linear(y, a.at("out_proj")), t.at("layer_norm"))
    y = _linear(F.gelu(_linear(x, t.at("feed_forward.intermediate_dense"))), t.at("feed_forward.output_dense"))
    return _norm(x + y, t.at("final_layer_norm"))


def _semantic_encoder(t: _Stored, x: Tensor) -> Tensor:
    """[T, hidden] -> [1, hidden, T]."""
    y = F.conv1d(x.t()[None], t["conv.weight"], padding=1)
    for block in range(2):
        for unit in range(2):
            u = t.at(f"conv_blocks.{block}.res_units.{unit}")
            y = y + F.conv1d(F.elu(F.conv1d(F.elu(y), u["conv1.weight"], padding=1)), u["conv2.weight"])
        c = t.at(f"conv_blocks.{block}.conv")
        y = F.conv1d(y, c["weight"], c["bias"], padding=1)
    return y


def _acoustic(t: _Stored, wave: Tensor, strides: tuple[int, ...]) -> Tensor:
    """[samples] -> [1, latent, T]."""
    x = F.conv1d(wave[None, None], t["conv1.weight"], t["conv1.bias"], padding=3)
    for i, stride in enumerate(strides):
        b = t.at(f"block.{i}")
        for unit, dilation in enumerate(_DILATIONS, start=1):
            x = x + _acoustic_unit(b.at(f"res_unit{unit}"), x, dilation)
        x = _snake(x, b["snake1.alpha"])
        x = F.conv1d(x, b["conv1.weight"], b["conv1.bias"], stride=stride, padding=-(-stride // 2))
    return F.conv1d(_snake(x, t["snake1.alpha"]), t["conv2.weight"], t["conv2.bias"], padding=1)


def _acoustic_unit(t: _Stored, x: Tensor, dilation: int) -> Tensor:
    x = _snake(x, t["snake1.alpha"])
    x = F.conv1d(x, t["conv1.weight"], t["conv1.bias"], padding=3 * dilation, dilation=dilation)
    return F.conv1d(_snake(x, t["snake2.alpha"]), t["conv2.weight"], t["conv2.bias"])


def _snake(x: Tensor, alpha: Tensor) -> Tensor:
    return x + (alpha + 1e-9).reciprocal() * torch.sin(alpha * x).square()


def _linear(x: Tensor, t: _Stored) -> Tensor:
    return F.linear(x, t["weight"], t["bias"])


def _norm(x: Tensor, t: _Stored) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), t["weight"], t["bias"])
