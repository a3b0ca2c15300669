"""The published codec, decode side: residual codes to 24 kHz PCM through a DAC-shaped decoder.

Quantiser tables are folded once with both projections, so a frame is Q lookups, a sum and one bias. All in float32;
transposed convolutions are unstable in bfloat16. Same arithmetic as transformers' HiggsAudioV2TokenizerModel: output
padding stride mod 2 in transposed convolutions, no final tanh. Every layer works frame by frame, so windows of any
length give the samples of one-shot decoding bit for bit. Measured on CPUs, not yet on a GPU.
Q codebooks, K codes each, T frames, C channels.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from capsules.exec.switches import Switch
from capsules.nn import kernels
from tts_engine.config import FRAME_SAMPLES
from tts_engine.dac_encode import ENCODER, encode_wave
from tts_engine.errors import CheckpointRefused
from tts_engine.framewise import conv_columns, conv_rows, pack_columns, pack_rows, pack_upsample, upsample_rows

CONTEXT_FRAMES = 10  # exact receptive field on either side, by interval propagation through strides 8, 5, 4, 2, 3
_DILATIONS = (1, 3, 9)
_UNITS = ("res_unit1", "res_unit2", "res_unit3")
_NARROW = 16  # channels; layers with fewer run in columns (see tts_engine.framewise)


@dataclass(frozen=True, eq=False)
class DacCodec:
    """`tensors` are read by decoding (float32, packed, on the device); `encoder` holds the rest on the host, as stored.

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

    def to_sound(self, codes: Tensor) -> Tensor:
        """[Q, T] int64 -> float32 [960·T], clipped to ±1."""
        table = self.tensors["table"]
        with torch.no_grad():
            if kernels.switched_on(table, Switch.CODEC):
                whole = torch.tensor([0, codes.shape[1]], device=table.device)
                return self._decode_layers(codes.to(table.device), whole)
            return self._decode(codes.to(table.device), None)

    def decode_window(self, codes: Tensor, valid: Tensor) -> Tensor:
        """See tts_engine.codec.Codec."""
        if kernels.switched_on(self.tensors["table"], Switch.CODEC):
            return self._decode_layers(codes, valid)
        index = torch.arange(codes.shape[1], device=valid.device)
        return self._decode(codes, ((index >= valid[0]) & (index < valid[1])).float())

    def _decode_layers(self, codes: Tensor, valid: Tensor) -> Tensor:
        from tts_engine.dac_layers import decode_layers

        return decode_layers(self.tensors, self.strides, codes, valid)

    def to_codes(self, wave: Tensor) -> Tensor:
        """float32 [samples], mono, 24 kHz -> [Q, T] int64 on the host: it happens when a voice is added, and not again.
        """
        return encode_wave(self.encoder, wave, self.codebooks, self.strides, self.semantic_heads)

    def _decode(self, codes: Tensor, mask: Tensor | None) -> Tensor:
        """`mask` [W] is 1 where a column exists; None means everywhere."""
        t, per = self.tensors, 1
        latent = t["bias"]
        for q, table in enumerate(t["table"].chunk(self.codebooks)):  # one by one: the order of a sum() depends on T
            latent = latent + F.embedding(codes[q], table)
        x = conv_rows(_masked(latent, mask), t["conv1.weight"], t["conv1.bias"], per)
        columns = False
        for i, stride in enumerate(self.strides):
            name = f"block.{i}"
            x = _masked(_snake(x, t, f"{name}.snake1"), mask, columns)
            x = upsample_rows(
                x.t() if columns else x, t[f"{name}.conv_t1.weight"], t[f"{name}.conv_t1.bias"], per, stride
            )
            per *= stride
            mask = None if mask is None else mask.repeat_interleave(stride, output_size=mask.shape[0] * stride)
            columns = x.shape[1] < _NARROW
            x = x.t().contiguous() if columns else x
            for unit, dilation in zip(_UNITS, _DILATIONS, strict=True):
                at = f"{name}.{unit}"
                y = _conv(
                    _masked(_snake(x, t, f"{at}.snake1"), mask, columns), t, f"{at}.conv1", per, columns, dilation
                )
                x = x + _conv(_snake(y, t, f"{at}.snake2"), t, f"{at}.conv2", per, columns)
        x = _conv(_masked(_snake(x, t, "snake1"), mask, columns), t, "conv2", per, columns)
        return x.flatten().clamp(-1.0, 1.0)


def dac_codec(
    tensors: Mapping[str, Tensor], codebooks: int, device: torch.device, semantic_heads: int | None = None
) -> DacCodec:
    """Build the codec from the tensors below the codec prefix of a checkpoint, of any float type.

    semantic_heads  of the HuBERT part, the only number that no shape reveals; default: 64 channels per head
                    (as published)
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
    decoder = _pack(
        {
            name.removeprefix("acoustic_decoder."): value.to(device, torch.float32)
            for name, value in tensors.items()
            if name.startswith("acoustic_decoder.")
        }
    )
    encoder = {
        name: value.cpu() for name, value in tensors.items() if name.startswith(_ENCODE_PARTS) and _used(name)
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


_ENCODE_PARTS = (*ENCODER, "fc.", "quantizer.")
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


def _pack(decoder: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The decoder's tensors in the order in which the frame-wise layers read them; a snake also gets 1 / alpha."""
    packed: dict[str, Tensor] = {}
    for name, value in decoder.items():
        layer, kind = name.rsplit(".", 1)
        if kind == "alpha":
            alpha = value.view(-1, 1) if value.numel() < _NARROW else value.flatten()
            packed |= {name: alpha.contiguous(), f"{layer}.inverse": (alpha + 1e-9).reciprocal()}
        elif layer.endswith("conv_t1"):
            packed[name] = pack_upsample(value) if kind == "weight" else value.contiguous()
        else:
            columns = layer != "conv1" and decoder[f"{layer}.weight"].shape[1] < _NARROW
            if kind == "weight":
                packed[name] = pack_columns(value) if columns else pack_rows(value)
            else:
                packed[name] = value.view(-1, 1).contiguous() if columns else value.contiguous()
    return packed


def _masked(x: Tensor, mask: Tensor | None, columns: bool = False) -> Tensor:
    if mask is None:
        return x
    return x * (mask if columns else mask[:, None])


def _snake(x: Tensor, t: Mapping[str, Tensor], name: str) -> Tensor:
    return x + t[f"{name}.inverse"] * torch.sin(t[f"{name}.alpha"] * x).square()


def _conv(x: Tensor, t: Mapping[str, Tensor], name: str, per: int, columns: bool, dilation: int = 1) -> Tensor:
    conv = conv_columns if columns else conv_rows
    return conv(x, t[f"{name}.weight"], t[f"{name}.bias"], per, dilation)
