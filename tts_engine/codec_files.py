"""The codec of a checkpoint: opened for an engine, or alone to turn recordings into codes."""

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tts_engine.codec import Codec, read_codec_config
from tts_engine.config import TTSConfig, load_config
from tts_engine.dac_codec import dac_codec
from tts_engine.errors import CheckpointRefused, ConfigRefused
from tts_engine.istft_codec import CODEC_TYPE, CausalCodec, CodecShape
from tts_engine.reference import prepare_reference
from tts_engine.weights import load_codec_tensors

CODEBOOKS = ("quantizer.", "quantiser.")


def codec_of(raw: Mapping[str, Any], tensors: Mapping[str, Tensor], config: TTSConfig, device: torch.device) -> Codec:
    """`raw` is the folder's codec_config.json. Raises ConfigRefused, CheckpointRefused."""
    kind = raw.get("codec_type", "higgs_audio_v2")
    if kind == CODEC_TYPE:
        codec: Codec = CausalCodec(CodecShape.parse(raw), tensors).to(device)
    elif kind == "higgs_audio_v2":
        codec = dac_codec(tensors, config.audio.codebooks, device, raw.get("semantic_heads"))
    else:
        raise ConfigRefused(f"codec_type is {kind!r}; 'higgs_audio_v2' and {CODEC_TYPE!r} are supported")
    if (codec.codebooks, codec.codebook_size) != (config.audio.codebooks, config.audio.size):
        raise CheckpointRefused(
            f"the codec has {codec.codebooks} codebooks of {codec.codebook_size}, config.json says "
            f"{config.audio.codebooks} of {config.audio.size}"
        )
    return codec


def reference_codes(folder: Path, wave: Any, rate: int) -> Tensor:
    """A recording as codes [Q, T], on the processor: reads only the codec of the checkpoint, and frees it again.

    wave  see `voices.prepare_reference`
    Raises ReferenceRefused; ConfigRefused, CheckpointRefused.
    """
    prepared = prepare_reference(wave, rate)
    tensors = load_codec_tensors(folder)
    return codec_of(read_codec_config(folder), tensors, load_config(folder), torch.device("cpu")).to_codes(prepared)


def codec_digest(folder: Path) -> str:
    """A digest, equal for checkpoints in which equal codes mean equal sound. Reads the codebooks, some MB.

    Raises CheckpointRefused.
    """
    digest = blake2b(digest_size=16)
    for name, tensor in sorted(load_codec_tensors(folder, CODEBOOKS).items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
