"""How much device memory an engine will need, from its config alone."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from math import prod
from pathlib import Path
from typing import cast

import torch

from capsules import ExecContext
from capsules.ledger import Ledger
from capsules.nn.groups import GROUP
from capsules.weights import catalogue
from llm_engine.config import LLMConfig
from llm_engine.eyes import EyesBuffers, most_pixels
from llm_engine.gguf.container import is_gguf
from llm_engine.grid import capacity
from llm_engine.names import DRAFT, FP8_BLOCK, KEPT, Kind, Part, Stored, made_as, packed_form, parts, text_only
from llm_engine.options import DTYPES, LLMOptions
from llm_engine.published import open_published, read_config
from llm_engine.state import EngineState
from llm_engine.vision_config import CELL, MERGE, VisionConfig
from llm_engine.vision_weights import tower_bytes, tower_prefix


def needed_bytes(
    path: str | Path, dtype: str, max_positions: int, packed: bool = False, *, eyes: str = "auto", device: str = "cuda",
    checkpoints: int = 8,
) -> int:  # fmt: skip
    """Bytes for the model in a directory or a GGUF file, with the arguments of `HybridLLM.load`. Raises ConfigError.

    Weights published in packed form stay packed, whatever `dtype` makes of others. They need at most the size of their
    files, including vision, which is not always loaded.
    """
    config = read_config(path)
    files = catalogue(path) if any(Path(path).glob("*.safetensors")) else {}
    held = sum(entry.nbytes for name, entry in files.items() if not fnmatchcase(name, DRAFT))
    tower = VisionConfig.read(path) if eyes != "off" and files and tower_prefix(files) else None
    straight = config.quantisation is not None and config.quantisation.method in ("fp8", "int4")
    most = held if packed and straight and held else None
    seeing = eyes_bytes(tower, DTYPES[dtype], most_pixels(tower, device, max_positions)) if tower is not None else 0
    stored = open_published(path).stored if is_gguf(path) or files else None
    kept = packed and most is None
    model = model_bytes(config, dtype, max_positions, checkpoints, most, device=device, stored=stored, kept=kept)
    return model + seeing


def eyes_bytes(config: VisionConfig, dtype: torch.dtype, most: int) -> int:
    """Bytes for a tower with pictures of up to `most` pixels: weights, buffers, and the output of its widest step."""
    ledger = Ledger()
    EyesBuffers.declare(cast(ExecContext, ledger), config, dtype, most, "eyes")
    patches = most // CELL**2 * MERGE**2
    widest = patches * (8 * config.hidden_size + 2 * config.intermediate_size) * torch.float32.itemsize
    return tower_bytes(config, dtype) + ledger.nbytes + widest


def model_bytes(
    config: LLMConfig, dtype: str, max_positions: int, checkpoints: int = 8, most: int | None = None,
    *, device: str = "cpu", stored: Callable[[str], Stored] | None = None, kept: bool = False,
) -> int:  # fmt: skip
    """Weights (at most `most`, if given), all buffers, and the checkpoints of one talk. Captured graphs come on top.

    stored  the precision of a published tensor, by its name in a text-only save; default: all are plain
    kept    published values of four bits stay packed, whatever `dtype` is
    """
    bits, made = LLMOptions(dtype).forms_on(torch.device(device))
    made = made or (KEPT if kept else None)

    def size(part: Part) -> int:
        held = [stored(text_only(source)) for source, _ in part.sources] if stored is not None else []
        return _part_bytes(part, dtype, bits, made, held)

    weights = sum(map(size, parts(config))) if most is None else most
    ledger = Ledger()
    EngineState.declare(cast(ExecContext, ledger), config, DTYPES[dtype], capacity(max_positions))
    return weights + ledger.nbytes + checkpoints * ledger.checkpoint_bytes


def _part_bytes(part: Part, dtype: str, bits: int | None, made: str | None, held: Sequence[Stored]) -> int:
    form = made_as(part, made, held)
    if form is not None:
        block, size, scale = (FP8_BLOCK, 8, torch.float32) if form == "fp8" else ((1, GROUP), 4, torch.bfloat16)
        scales = -(-part.shape[0] // block[0]) * -(-part.shape[1] // block[1])
        shifted = form == "int4" and any(one.shifted for one in held)
        return prod(part.shape) * size // 8 + scales * scale.itemsize * (1 + shifted)
    panels = packed_form(part, bits, held)
    if panels is None:
        return prod(part.shape) * (DTYPES[dtype] if part.kind is Kind.MATRIX else torch.float32).itemsize
    values, scales_at = panels.shapes(part.shape[0], part.shape[1])
    return prod(values) + prod(scales_at) * torch.bfloat16.itemsize
