"""Published checkpoints in and out: prefixes, fusions, quantised matrices; all the rest is refused by name."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from llm_engine.config import LLMConfig
from llm_engine.errors import CheckpointError
from llm_engine.names import published_shapes

_FLOAT32 = ("A_log", "linear_attn.norm.weight")  # float32 in the published files of the first generation


def save_checkpoint(
    directory: str | Path, config: LLMConfig, params: Mapping[str, Tensor], dtype: torch.dtype = torch.bfloat16
) -> None:
    """Write config.json and model.safetensors in the text-only published layout.

    params  by published name, all of them and no other; A_log and gated norms are stored as float32
    Raises CheckpointError for names or shapes that the config does not have.
    """
    shapes = published_shapes(config, draft=any(name.startswith("mtp.") for name in params))
    wrong = sorted(shapes.keys() ^ params.keys())
    wrong += [name for name in shapes.keys() & params.keys() if tuple(params[name].shape) != shapes[name]]
    if wrong:
        raise CheckpointError(f"parameters do not fit the config: {', '.join(wrong[:5])}")
    stored = {
        name: value.detach().to("cpu", torch.float32 if name.endswith(_FLOAT32) else dtype).contiguous()
        for name, value in params.items()
    }
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config.to_json(), indent=1) + "\n", encoding="utf-8")
