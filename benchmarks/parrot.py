"""A language model of random weights that always says one sentence, in any shape.

It works as hard as a trained model of its shape and is as large, so times and bytes are realistic. Its words are known,
so that a voice can speak them. No layer adds anything to the residual stream except the last one's feed-forward: there
each token of the sentence asks for the next.
"""

import json
import struct
from itertools import pairwise
from math import sqrt
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.llm_load import write_checkpoint
from llm_engine.config import LLMConfig
from llm_engine.tokenizer import TextTokenizer

TINY = Path(__file__).parent.parent / "llm_engine" / "tiny"
LOUD = 40.0
"""Logit of the next token, while others are near 0: certain at any temperature."""


def parrot(config: LLMConfig, folder: Path, reply: str) -> Path:
    """Write it, with the shipped model's tokenizer and chat format. No token may occur twice in the reply."""
    text = TextTokenizer.load(TINY)
    said = [text.encode("\n")[-1], *text.encode(reply), next(iter(text.stops()))]
    assert len(set(said)) == len(said), "each token has one that follows"
    write_checkpoint(config, folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"):
        (folder / name).symlink_to(TINY / name)
    held, last = _Held(folder), f"model.layers.{len(config.layer_types) - 1}.mlp"
    for name in held.names:
        if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight", "gate_proj.weight")):
            held.fill(name, 0.0)
    rows = torch.randn(len(said), config.hidden_size, generator=torch.Generator().manual_seed(0))
    rows /= rows.norm(dim=1, keepdim=True)
    held.put("model.embed_tokens.weight", said, rows * LOUD / sqrt(config.hidden_size))
    steps = list(range(len(said) - 1))
    held.put(f"{last}.gate_proj.weight", steps, rows[:-1])
    held.put(f"{last}.up_proj.weight", steps, rows[:-1])
    down = torch.zeros(config.hidden_size, config.intermediate_size)
    for step, (_, after) in enumerate(pairwise(rows)):
        down[:, step] = after
    held.put(f"{last}.down_proj.weight", list(range(config.hidden_size)), down)
    held.close()
    return folder


class _Held:
    """The tensors of a checkpoint in bfloat16, to be overwritten."""

    def __init__(self, folder: Path) -> None:
        self._tensors: dict[str, np.memmap] = {}
        for file in sorted(folder.glob("*.safetensors")):
            with file.open("rb") as opened:
                (length,) = struct.unpack("<Q", opened.read(8))
                header = json.loads(opened.read(length))
            for name, entry in header.items():
                assert entry["dtype"] == "BF16", name
                begin = 8 + length + entry["data_offsets"][0]
                self._tensors[name] = np.memmap(file, np.int16, "r+", begin, tuple(entry["shape"]))

    @property
    def names(self) -> list[str]:
        return list(self._tensors)

    def fill(self, name: str, value: float) -> None:
        self._tensors[name][:] = torch.tensor(value).bfloat16().view(torch.int16).item()

    def put(self, name: str, rows: list[int], values: Tensor) -> None:
        self._tensors[name][rows] = values.bfloat16().view(torch.int16).numpy()

    def close(self) -> None:
        for tensor in self._tensors.values():
            tensor.flush()
