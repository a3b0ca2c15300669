"""The published codec, decode side: residual codes to 24 kHz PCM through a DAC-shaped decoder.

Quantiser tables are folded once with both projections, so a frame is Q lookups, a sum and one bias. Float32 throughout;
transposed convolutions are unstable in bfloat16. Same arithmetic as transformers' HiggsAudioV2TokenizerModel: output
padding stride mod 2 in transposed convolutions, no final tanh.
Q codebooks, K codes each, T frames, C channels.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tts_engine.config import FRAME_SAMPLES
from tts_engine.dac_encode import encode_wave
from tts_engine.errors import CheckpointRefused

CONTEXT_FRAMES = 10  # exact receptive field on either side, by interval propagation through strides 8, 5, 4, 2, 3
_DILATIONS = (1, 3, 9)
_UNITS = ("res_unit1", "res_unit2", "res_unit3")


@dataclass(frozen=True, eq=False)
class DacCodec:
    """`tensors` is what decoding reads (float32, on the device); `encoder` the rest, as stored.

    Implements tts_engine.codec.Codec.
    """

    codebooks: int
    codebook_size: int
    strides: tuple[int, ...]
    semantic_heads: int
    tensors: Mapping[str, Tensor]
    encoder: Mapping[str, Tensor]
    left_frames: int = CONTEXT_FRAMES
    right_frames: int = CONTEXT_FRAMES

    def decode(self, codes: Tensor) -> Tensor:
        """[Q, T] int64 -> float32 [960·T], clipped to ±1."""
        with torch.no_grad():
            return self._decode(codes.to(self.tensors["table"].device), None)

    def decode_window(self, codes: Tensor, valid: Tensor) -> Tensor:
        """See tts_engine.codec.Codec."""
        return self._decode(codes, _columns(codes.shape[1], valid))

    def encode(self, wave: Tensor) -> Tensor:
        """float32 [samples], mono, 24 kHz -> [Q, T] int64."""
        return encode_wave(self.encoder, wave, self.codebooks, self.strides, self.semantic_heads)

    def _decode(self, codes: Tensor, mask: Tensor | None) -> Tensor:
        """`mask` [1, 1, W] is 1 where a column exists; None: everywhere."""
        t = self.tensors
        offsets = torch.arange(self.codebooks, device=codes.device)[:, None] * (self.codebook_size + 1)
        latent = F.embedding(codes + offsets, t["table"]).sum(dim=0) + t["bias"]  # [T, C]
        x = latent.t()[None]
        x = _conv(_masked(x, mask), t, "conv1", padding=3)
        for i, stride in enumerate(self.strides):
            name = f"block.{i}"
            x = F.conv_transpose1d(
                _masked(_snake(x, t, f"{name}.snake1"), mask),
                t[f"{name}.conv_t1.weight"],
                t[f"{name}.conv_t1.bias"],
                stride=stride,
                padding=-(-stride // 2),
                output_padding=stride % 2,
            )
            mask = None if mask is None else mask.repeat_interleave(stride, dim=-1, output_size=mask.shape[-1] * stride)
            for unit, dilation in zip(_UNITS, _DILATIONS, strict=True):
                x = x + _residual(x, t, f"{name}.{unit}", dilation, mask)
        x = _conv(_masked(_snake(x, t, "snake1"), mask), t, "conv2", padding=3)
        return x.flatten().clamp(-1.0, 1.0)


def dac_codec(
    tensors: Mapping[str, Tensor], codebooks: int, device: torch.device, semantic_heads: int | None = None
) -> DacCodec:
    """From the tensors below the codec prefix of a checkpoint, of any float type.

    semantic_heads  of the HuBERT part, the one number no shape tells; default: 64 channels per head, as published
    Raises CheckpointRefused if a tensor is missing or shapes do not fit together.
    """
    missing = [name for name in _required(codebooks) if name not in tensors]
    if missing:
        raise CheckpointRefused(
            f"the codec part lacks {len(missing)} tensors, first {missing[0]!r}; speech needs them all"
        )
    strides: list[int] = []
    while (name := f"acoustic_decoder.block.{len(strides)}.conv_t1.weight") in tensors:
        strides.append(tensors[name].shape[2] // 2)
    samples = 1
    for stride in strides:
        samples *= stride
    if samples != FRAME_SAMPLES:
        raise CheckpointRefused(
            f"decoder strides {strides} make {samples} samples per frame; {FRAME_SAMPLES} are needed"
        )
    table, bias = _fold(tensors, codebooks, device)
    decoder = {
        name.removeprefix("acoustic_decoder."): value.to(device, torch.float32).contiguous()
        for name, value in tensors.items()
        if name.startswith("acoustic_decoder.")
    }
    encoder = {
        name: value.to(device) for name, value in tensors.items() if name.startswith(_ENCODE_PARTS) and _used(name)
    }
    width = tensors["semantic_model.encoder.layer_norm.weight"].shape[0]
    return DacCodec(
        codebooks=codebooks,
        codebook_size=table.shape[0] // codebooks - 1,
        strides=tuple(strides),
        semantic_heads=semantic_heads or max(1, width // 64),
        tensors={"table": table, "bias": bias, **decoder},
        encoder=encoder,
    )


_ENCODE_PARTS = ("acoustic_encoder.", "semantic_model.", "encoder_semantic.", "fc.", "quantizer.")
_UNUSED = ("embed_avg", "cluster_size", "inited", "masked_spec_embed")


def _used(name: str) -> bool:
    return not name.endswith(_UNUSED)


def _required(codebooks: int) -> list[str]:
    names = ["fc2.weight", "fc2.bias", "fc.weight", "fc.bias", "semantic_model.encoder.layer_norm.weight"]
    for q in range(codebooks):
        part = f"quantizer.quantizers.{q}"
        names += [f"{part}.codebook.embed"]
        names += [f"{part}.{side}.{kind}" for side in ("project_in", "project_out") for kind in ("weight", "bias")]
    for end in ("conv1.weight", "conv1.bias", "snake1.alpha", "conv2.weight", "conv2.bias"):
        names += [f"acoustic_decoder.{end}", f"acoustic_encoder.{end}"]
    for block in range(5):
        for unit in _UNITS:
            for kind in ("snake1.alpha", "conv1.weight", "conv1.bias", "snake2.alpha", "conv2.weight", "conv2.bias"):
                names += [
                    f"acoustic_decoder.block.{block}.{unit}.{kind}",
                    f"acoustic_encoder.block.{block}.{unit}.{kind}",
                ]
        for kind in ("weight", "bias"):
            names += [f"acoustic_decoder.block.{block}.conv_t1.{kind}", f"acoustic_encoder.block.{block}.conv1.{kind}"]
        names += [f"acoustic_decoder.block.{block}.snake1.alpha", f"acoustic_encoder.block.{block}.snake1.alpha"]
    return names


def _fold(tensors: Mapping[str, Tensor], codebooks: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """([Q·(K + 1), C], [C]): row q·(K+1) + k is fc2(project_out(embed[k])) without biases; row K is zero (unknown)."""
    fc2 = tensors["fc2.weight"].to(device, torch.float32)
    total = torch.zeros(fc2.shape[1], device=device)
    parts = []
    for q in range(codebooks):
        part = f"quantizer.quantizers.{q}"
        embed = tensors[f"{part}.codebook.embed"].to(device, torch.float32)
        projected = F.linear(embed, tensors[f"{part}.project_out.weight"].to(device, torch.float32))
        parts += [F.linear(projected, fc2), torch.zeros(1, fc2.shape[0], device=device)]
        total = total + tensors[f"{part}.project_out.bias"].to(device, torch.float32)
    return torch.cat(parts), F.linear(total, fc2, tensors["fc2.bias"].to(device, torch.float32))


def _columns(count: int, valid: Tensor) -> Tensor:
    """[1, 1, count] float32: 1 where the column exists."""
    index = torch.arange(count, device=valid.device)
    return ((index >= valid[0]) & (index < valid[1])).float()[None, None]


def _masked(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None else x * mask


def _snake(x: Tensor, t: Mapping[str, Tensor], name: str) -> Tensor:
    alpha = t[f"{name}.alpha"]
    return x + (alpha + 1e-9).reciprocal() * torch.sin(alpha * x).square()


def _conv(x: Tensor, t: Mapping[str, Tensor], name: str, padding: int, dilation: int = 1) -> Tensor:
    return F.conv1d(x, t[f"{name}.weight"], t[f"{name}.bias"], padding=padding, dilation=dilation)


def _residual(x: Tensor, t: Mapping[str, Tensor], name: str, dilation: int, mask: Tensor | None) -> Tensor:
    y = _conv(_masked(_snake(x, t, f"{name}.snake1"), mask), t, f"{name}.conv1", 3 * dilation, dilation)
    return _conv(_snake(y, t, f"{name}.snake2"), t, f"{name}.conv2", padding=0)
