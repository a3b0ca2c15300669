"""How much device memory an engine will need, from its config and the headers of its checkpoint."""

from math import prod
from pathlib import Path
from typing import cast

from torch import Tensor

from capsules import ExecContext
from capsules.ledger import Ledger
from capsules.safefile import TensorEntry
from capsules.weights import catalogue
from tts_engine.config import TTSConfig, load_config
from tts_engine.dac_codec import CONTEXT_FRAMES
from tts_engine.engine import DEFAULT_POSITIONS
from tts_engine.graphs import plan_shapes
from tts_engine.state import declare
from tts_engine.weights import CODEC_PREFIX, DTYPES, empty_weights, named

_AS_STORED = ("acoustic_encoder.", "semantic_model.", "encoder_semantic.")


def needed_bytes(folder: Path, dtype: str, max_positions: int | None = None) -> int:
    """Weights, codec and all buffers. The memory of captured graphs comes on top. Raises ConfigRefused."""
    config = load_config(folder)
    codec = sum(_codec_bytes(name, entry) for name, entry in catalogue(folder).items())
    return codec + backbone_bytes(config, dtype, max_positions)


def backbone_bytes(config: TTSConfig, dtype: str, max_positions: int | None = None) -> int:
    """Everything except the codec."""
    positions = min(max_positions or DEFAULT_POSITIONS, config.backbone.max_positions)
    shapes = plan_shapes(positions, CONTEXT_FRAMES, CONTEXT_FRAMES)
    ledger = Ledger()
    declare(cast(ExecContext, ledger), config, shapes.capacity, DTYPES[dtype], shapes.chunks[-1], max(shapes.windows))
    weights = empty_weights(config, ledger.device, dtype)
    sizes = (
        matrix.nbytes if isinstance(matrix, Tensor) else matrix.values.nbytes + matrix.scale.nbytes
        for _, matrix in named(weights, config)
    )
    return ledger.nbytes + sum(sizes)


def _codec_bytes(name: str, entry: TensorEntry) -> int:
    """The encoding part of the published codec stays as stored; everything else is float32."""
    part = name.removeprefix(CODEC_PREFIX)
    if part == name:
        return 0
    return entry.nbytes if part.startswith(_AS_STORED) else prod(entry.shape) * 4
