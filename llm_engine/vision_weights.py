"""The published tensors of the vision tower: their names, shapes and places, and which of them are refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from capsules.safefile import TensorEntry
from capsules.weights import Target
from llm_engine.errors import CheckpointError, ConfigError
from llm_engine.tower import TowerWeights
from llm_engine.vision_config import CHANNELS, MERGE, PATCH, TAPS, VisionConfig

PREFIXES = ("model.visual.", "visual.", "vision_tower.", "model.vision_tower.", "language_model.visual.")
FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_PLAIN = ("F32", "BF16", "F16")
_BLOCK = {  # our name to the published name, without .weight and .bias
    "norm1": "norm1", "qkv": "attn.qkv", "proj": "attn.proj", "norm2": "norm2", "fc1": "mlp.linear_fc1",
    "fc2": "mlp.linear_fc2",
}  # fmt: skip


@dataclass(frozen=True)
class TowerPart:
    """One tensor of the tower. `matrix`: in the model's type; everything else is float32."""

    name: str
    source: str
    shape: tuple[int, ...]
    matrix: bool = False


def tower_parts(config: VisionConfig) -> tuple[TowerPart, ...]:
    """Every tensor, in the order of computation; `shape` as the tower holds it."""
    h, inner, cell = config.hidden_size, config.intermediate_size, MERGE**2 * config.hidden_size
    shapes = {"norm1": (h,), "qkv": (3 * h, h), "proj": (h, h), "norm2": (h,), "fc1": (inner, h), "fc2": (h, inner)}
    found = [
        TowerPart("patch", "patch_embed.proj.weight", (h, CHANNELS * PATCH**2)),
        TowerPart("patch_bias", "patch_embed.proj.bias", (h,)),
        TowerPart("positions", "pos_embed.weight", (config.num_position_embeddings, h)),
    ]
    for index in range(config.depth):
        for name, source in _BLOCK.items():
            found += _pair(f"blocks.{index}.{name}", f"blocks.{index}.{source}", shapes[name])
    found += _pair("norm", "merger.norm", (h,))
    found += _pair("fc1", "merger.linear_fc1", (cell, cell))
    found += _pair("fc2", "merger.linear_fc2", (config.out_hidden_size, cell))
    return tuple(found)


def tower_bytes(config: VisionConfig, dtype: torch.dtype) -> int:
    """Bytes of the weights."""
    parts = tower_parts(config)
    return sum(prod(part.shape) * (dtype if part.matrix else torch.float32).itemsize for part in parts)


def tower_prefix(names: Mapping[str, TensorEntry]) -> str | None:
    """The prefix of a checkpoint's tower tensors, or None if it has no tower."""
    return next((prefix for prefix in PREFIXES if prefix + "patch_embed.proj.weight" in names), None)


def check_tower(path: Path, config: VisionConfig, width: int, image_token: int | None) -> None:
    """Raises ConfigError if the language model cannot use the tower's output."""
    if config.out_hidden_size != width:
        raise ConfigError(
            f"{path}: the tower gives rows of {config.out_hidden_size}, the language model takes {width}; load with "
            "eyes='off'"
        )
    if image_token is None:
        raise ConfigError(f"{path}: config.json has a tower but no image_token_id; load with eyes='off'")


def place_tower(
    path: Path,
    names: Mapping[str, TensorEntry],
    config: VisionConfig,
    allocate: Callable[[TowerPart], Tensor],
) -> tuple[TowerWeights, dict[str, Target]]:
    """The tower's tensors, and the plan for filling them from the files.

    Raises CheckpointError for quantised tensors, by name: no published file has them.
    """
    prefix = tower_prefix(names)
    assert prefix is not None
    _refuse_quantised(path, names, prefix)
    made, plan = {}, {}
    for part in tower_parts(config):
        tensor = made[part.name] = allocate(part)
        source = prefix + part.source
        if part.name == "patch":
            stored = names[source].shape
            plan[source] = Target(tensor, shape=_kernel(path, source, stored, config), transform=_flat, accept=FLOATS)
        else:
            plan[source] = Target(tensor, accept=FLOATS)
    return TowerWeights.gather(config, made.__getitem__), plan


def _pair(name: str, source: str, shape: tuple[int, ...]) -> list[TowerPart]:
    matrix = len(shape) > 1
    return [TowerPart(name, f"{source}.weight", shape, matrix), TowerPart(f"{name}_bias", f"{source}.bias", shape[:1])]


def _refuse_quantised(path: Path, names: Mapping[str, TensorEntry], prefix: str) -> None:
    for name, entry in names.items():
        if name.startswith(prefix) and (entry.dtype not in _PLAIN or not name.endswith((".weight", ".bias"))):
            raise CheckpointError(
                f"{path}: {name} is {entry.dtype}, so the vision tower is quantised; towers are read in float32, "
                "float16 and bfloat16. Use another save, or load without it: eyes='off'."
            )


def _kernel(path: Path, name: str, stored: tuple[int, ...], config: VisionConfig) -> tuple[int, ...]:
    """The stored shape of the patch kernel: channels first as published, or last as MLX writes it."""
    h = config.hidden_size
    known = (h, CHANNELS, TAPS, PATCH, PATCH), (h, TAPS, PATCH, PATCH, CHANNELS)
    if stored not in known:
        raise CheckpointError(f"{path}: {name} is {list(stored)}; {list(known[0])} or {list(known[1])} is read")
    return stored


def _flat(kernel: Tensor) -> Tensor:
    """[h, 768] float32. A still picture fills both moments alike, so they are added up."""
    if kernel.shape[-1] == CHANNELS:
        kernel = kernel.permute(0, 4, 1, 2, 3)
    return kernel.float().sum(2).flatten(1)
