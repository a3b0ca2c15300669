"""The engine's contract with a codec, and which codec a checkpoint brings.

Two codecs exist: the convolutional one inside the published checkpoint (`dac_codec.py`) and the small causal one of
the shipped voice (`istft_codec.py`, named by `codec_config.json` with `"codec_type": "causal_istft"`).
Q codebooks, T frames, W frames of a window.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from tts_engine.errors import ConfigRefused


class Codec(Protocol):
    """Codes to and from 24 kHz mono PCM, 960 samples per frame. Stateless: all state is in the codes.

    left_frames, right_frames  an output frame depends on exactly this many frames before and after it, so a window
                               [a - left, b + right) gives frames [a, b) as one-shot decoding does. Causal: right is 0.
    tensors                    read by `decode_window`; the engine declares them as weight buffers before capture
    """

    @property
    def codebooks(self) -> int: ...

    @property
    def codebook_size(self) -> int: ...

    @property
    def left_frames(self) -> int: ...

    @property
    def right_frames(self) -> int: ...

    @property
    def tensors(self) -> Mapping[str, Tensor]: ...

    def to_sound(self, codes: Tensor) -> Tensor:
        """One-shot, never captured. codes [Q, T] int64 -> float32 [960·T], clipped to ±1."""

    def decode_window(self, codes: Tensor, valid: Tensor) -> Tensor:
        """Captured once per W: no host reads, no random state, tensors only from `tensors` and the arguments.

        codes    [Q, W] int64; the value `codebook_size` is a code not known yet and adds nothing (codecs with
                 right_frames 0 never see it)
        valid    [2] int64 on the device: columns [valid[0], valid[1]) exist. Outside them every convolution must see
                 the zeros that one-shot decoding sees beyond the true start and end, whatever `codes` holds there.
        returns  float32 [960·W], clipped to ±1
        """

    def to_codes(self, wave: Tensor) -> Tensor:
        """Never captured. wave float32 [samples], mono, 24 kHz -> codes [Q, T] int64."""


def read_codec_config(folder: Path) -> dict[str, Any]:
    """`codec_config.json` of a checkpoint directory, or {} for the published codec, which has none."""
    path = folder / "codec_config.json"
    if not path.is_file():
        return {}
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigRefused(f"{path} is not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise ConfigRefused(f"{path} holds a {type(raw).__name__}; an object is needed")
    return raw
