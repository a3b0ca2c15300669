"""The configuration of a vision tower, and of how pictures are resized for it, parsed once.

From `vision_config` of config.json and from preprocessor_config.json (in some saves processor_config.json, under
`image_processor`). Source of the keys: transformers' `Qwen3_5VisionConfig` and `Qwen2VLImageProcessor`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_engine.errors import ConfigError

PATCH, TAPS, MERGE, CHANNELS = 16, 2, 2, 3
"""Pixels of a patch's side, frames of a patch, patches of a row's side: the same in every published size."""
CELL = PATCH * MERGE
"""Side in pixels of the square that becomes one row of the language model."""
_FIXED: dict[str, tuple[Any, ...]] = {  # keys that must have one of these values if present
    "model_type": ("qwen3_5", "qwen3_5_vision", "qwen3_5_moe", "qwen3_5_moe_vision"),
    "patch_size": (PATCH, [PATCH, PATCH]),
    "temporal_patch_size": (TAPS,),
    "spatial_merge_size": (MERGE,),
    "in_channels": (CHANNELS,),
    "hidden_act": ("gelu_pytorch_tanh",),
    "deepstack_visual_indexes": ([], None),
}
_IGNORED = {  # no effect on inference
    "_name_or_path", "architectures", "attention_dropout", "chunk_size_feed_forward", "dtype", "id2label",
    "initializer_range", "is_encoder_decoder", "label2id", "output_attentions", "output_hidden_states",
    "problem_type", "return_dict", "torch_dtype", "transformers_version",
}  # fmt: skip
_SIZES = ("depth", "hidden_size", "num_heads", "intermediate_size", "out_hidden_size", "num_position_embeddings")


@dataclass(frozen=True)
class VisionConfig:
    """Shapes of a tower, and the range of pixels to which its pictures are resized."""

    depth: int
    hidden_size: int
    num_heads: int
    intermediate_size: int
    out_hidden_size: int  # the language model's width
    num_position_embeddings: int  # a square table
    rope_theta: float = 10_000.0
    least_pixels: int = 65_536
    most_pixels: int = 16_777_216

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_heads or self.head_dim % 4:
            raise ConfigError(
                f"vision_config: hidden_size {self.hidden_size} in {self.num_heads} heads; a multiple of 4 per head "
                "is needed"
            )
        if self.side**2 != self.num_position_embeddings:
            raise ConfigError(f"vision_config: {self.num_position_embeddings} position embeddings are no square")
        if not CELL**2 <= self.least_pixels <= self.most_pixels:
            raise ConfigError(f"pictures of {self.least_pixels} to {self.most_pixels} pixels; {CELL**2} are the least")

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads

    @property
    def side(self) -> int:
        """Side of the table of positions."""
        return int(self.num_position_embeddings**0.5)

    @classmethod
    def read(cls, folder: str | Path) -> "VisionConfig | None":
        """The tower of a checkpoint directory; None if its config.json describes none. Raises ConfigError."""
        raw = _json(Path(folder) / "config.json").get("vision_config")
        if raw is None:
            return None
        if not isinstance(raw, dict):
            raise ConfigError("vision_config is not an object")
        return cls.parse(raw, _processor(Path(folder)))

    @classmethod
    def parse(cls, raw: Mapping[str, Any], processor: Mapping[str, Any]) -> "VisionConfig":
        """From both parsed files. Raises ConfigError, naming the faulty key."""
        for name, allowed in _FIXED.items():
            if name in raw and raw[name] not in allowed:
                raise ConfigError(f"vision_config: {name} is {raw[name]!r}; {allowed[0]!r} is implemented")
        sizes = {name: raw.get(name) for name in _SIZES}
        wrong = [name for name, value in sizes.items() if type(value) is not int or value < 1]
        if wrong:
            raise ConfigError(f"vision_config: {wrong[0]} is {sizes[wrong[0]]!r}; a positive integer is needed")
        rope = raw.get("rope_parameters") or {}
        if rope.get("rope_type", "axial") != "axial":
            raise ConfigError(f"vision_config: rope_type {rope['rope_type']!r}; 'axial' is implemented")
        for name, value in raw.items():
            if name not in {*_FIXED, *_SIZES, *_IGNORED, "rope_parameters"} and value not in (None, False, [], {}):
                raise ConfigError(
                    f"vision_config: unknown key {name!r} = {value!r}. It may change the tower, so it is not ignored; "
                    "load with eyes='off', or add it to llm_engine/vision_config.py once its meaning is known."
                )
        least, most = _limits(processor)
        return cls(**sizes, rope_theta=float(rope.get("rope_theta", 10_000)), least_pixels=least, most_pixels=most)  # type: ignore[arg-type]


def _limits(processor: Mapping[str, Any]) -> tuple[int, int]:
    """Despite their names these are numbers of pixels. Raises ConfigError if pictures are prepared in another way."""
    for name, expected in (("image_mean", [0.5] * 3), ("image_std", [0.5] * 3), ("patch_size", PATCH)):
        if processor.get(name, expected) != expected:
            raise ConfigError(f"preprocessor_config.json: {name} is {processor[name]!r}; {expected!r} is implemented")
    size = processor.get("size") or {}
    found = size.get("shortest_edge", 65_536), size.get("longest_edge", 16_777_216)
    if not all(type(n) is int for n in found):
        raise ConfigError(f"preprocessor_config.json: size is {size!r}; two counts of pixels are needed")
    return found


def _processor(folder: Path) -> Mapping[str, Any]:
    for name in ("preprocessor_config.json", "processor_config.json"):
        read = _json(folder / name)
        if found := read.get("image_processor", read if name.startswith("pre") else {}):
            return dict(found)
    return {}


def _json(file: Path) -> dict[str, Any]:
    try:
        read = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not readable as JSON ({error})") from error
    return read if isinstance(read, dict) else {}
