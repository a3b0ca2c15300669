"""The tensors of a GGUF file under their published names, read into any target."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from capsules.digests import file_digest
from capsules.errors import WeightsError
from capsules.safefile import SafeFile, TensorEntry
from capsules.shards import some
from capsules.weights import Plan, Progress, Target
from llm_engine.config import LLMConfig
from llm_engine.gguf.container import GgufFile, open_gguf
from llm_engine.gguf.described import STRETCH, config_of

_STRIP_VALUES = 1 << 22  # values widened at a time: 16 MiB
_OUTER = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_INNER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
"""Tensors of a block."""


@dataclass(frozen=True)
class _Held:
    """One published tensor: its name in the file, and which row there is each of its own (None: in order)."""

    name: str
    order: Tensor | None


class GgufCheckpoint:
    """A GGUF file as a checkpoint. Tensors that the converter permuted are in their published order again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: list[SafeFile] = []  # its folder may be another program's: nothing is stored there
        self._file: GgufFile = open_gguf(path)
        self.config: LLMConfig = config_of(self._file)
        self._held = {published: self._find(name, published) for name, published in _published(self._file).items()}

    @cached_property
    def names(self) -> Mapping[str, TensorEntry]:
        """Every tensor by its published name. All count as float32, whatever they are stored as."""
        return {
            published: TensorEntry(published, "F32", tensor.shape, tensor.offset, tensor.nbytes)
            for published, held in self._held.items()
            for tensor in [self._file.tensors[held.name]]
        }

    def digest(self, aside: Path | None) -> str:
        return file_digest(self.path, aside)

    def fill(self, plan: Plan, skip: Sequence[str], progress: Callable[[Progress], None] | None) -> None:
        """Fill every target of a plan, as `capsules.weights.load` does. Raises WeightsError."""
        missing = [name for name in plan if name not in self._held]
        if missing:
            raise WeightsError(f"the file lacks {some(missing)}. Is it a whole model?")
        unknown = [n for n in self._held if n not in plan and not any(fnmatchcase(n, pattern) for pattern in skip)]
        if unknown:
            raise WeightsError(f"nothing in this model takes {some(sorted(unknown))}")
        total, done = sum(self.names[name].nbytes for name in plan), 0
        for name, targets in plan.items():
            for target in [targets] if isinstance(targets, Target) else targets:
                self._fill(name, target)
            done += self.names[name].nbytes
            if progress is not None:
                progress(Progress(done, total))

    def _find(self, name: str, published: str) -> _Held:
        """Converters of the llama architecture interleave the two halves of each query's and key's head."""
        turned = published.endswith(("q_proj.weight", "k_proj.weight"))
        if not turned or self._file.metadata["general.architecture"] != "llama":
            return _Held(name, None)
        queries = published.endswith("q_proj.weight")
        heads = self.config.num_attention_heads if queries else self.config.num_key_value_heads
        order = torch.arange(heads * self.config.head_dim)
        return _Held(name, order.view(heads, -1, 2).transpose(1, 2).flatten())

    def _fill(self, name: str, target: Target) -> None:
        shape = self.names[name].shape
        if shape != (target.shape or (shape if target.rows else tuple(target.tensor.shape))):
            wanted = list(target.shape or target.tensor.shape)
            raise WeightsError(f"{name}: shape {list(shape)} in the file, {wanted} expected")
        first, last, _ = (target.rows or slice(None)).indices(shape[0])
        if target.transform is not None:
            whole = self._rows(name, first, last).view(last - first, *shape[1:])
            target.tensor.copy_(target.transform(whole))
            return
        step = max(1, _STRIP_VALUES // prod(shape[1:]))
        for row in range(first, last, step):
            upto = min(row + step, last)
            part = self._rows(name, row, upto).view(upto - row, *shape[1:])
            target.tensor[row - first : upto - first].copy_(part)

    def _rows(self, name: str, first: int, last: int) -> Tensor:
        held = self._held[name]
        if len(self.names[name].shape) == 1:  # one row, of which these are elements
            return self._file.rows(held.name)[0, first:last]
        return self._file.rows(held.name, slice(first, last) if held.order is None else held.order[first:last])


def _published(file: GgufFile) -> dict[str, str]:
    """Name in the file to published name; a name that is not known stays as it is, and nothing will take it."""
    found = {}
    for name in file.tensors:
        if name == STRETCH:
            continue
        block, _, inner = name.removeprefix("blk.").partition(".")
        kind, _, tail = inner.rpartition(".")
        if name.startswith("blk.") and kind in _INNER:
            found[name] = f"model.layers.{block}.{_INNER[kind]}.{tail}"
        else:
            found[name] = _OUTER.get(name, name)
    return found
