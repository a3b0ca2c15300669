"""Tensors of a GGUF file under their published names, and what a converter changed in them, so that it can be undone.

llama    the two halves of each query's and key's head are interleaved
qwen35   value heads that share a key head lie apart ("tiled") and no longer side by side, in rows of most tensors
         and in the columns of one; norms hold 1 + w, which the config says; the decay is no longer a logarithm
mixture  the experts of a layer are stacked, their gates, their ups and their downs each in a tensor (some converters
         put an expert's up below its gate)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from capsules.nn.groups import GROUP, KnownGroups
from llm_engine.config import LLMConfig
from llm_engine.gguf.container import GgufFile, GgufTensor
from llm_engine.gguf.described import STRETCH
from llm_engine.names import Stored

_OUTER = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_INNER = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "post_attention_norm": "post_attention_layernorm",
    "attn_qkv": "linear_attn.in_proj_qkv", "attn_gate": "linear_attn.in_proj_z", "ssm_alpha": "linear_attn.in_proj_a",
    "ssm_beta": "linear_attn.in_proj_b", "ssm_conv1d": "linear_attn.conv1d", "ssm_norm": "linear_attn.norm",
    "ssm_out": "linear_attn.out_proj", "ffn_gate_inp": "mlp.gate", "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj",
}  # fmt: skip
"""Tensors of a block, with `.weight`."""
_BARE = {"ssm_a": "linear_attn.A_log", "ssm_dt.bias": "linear_attn.dt_bias", "ssm_dt": "linear_attn.dt_bias"}
"""Those without."""
_STACKED = {
    "ffn_gate_exps": ("gate_proj",), "ffn_up_exps": ("up_proj",), "ffn_down_exps": ("down_proj",),
    "ffn_gate_up_exps": ("gate_proj", "up_proj"),
}  # fmt: skip
"""Tensors [experts, rows, columns], and the matrices of an expert that lie below each other in them."""
_BESIDE = ("v.", "mm.", "mtp.")
"""Vision and drafts, which some converters put into the same file; they are not run."""


@dataclass(frozen=True)
class PublishedTensor:
    """One tensor as it was published: read from the file in another order, if there is one."""

    stored: GgufTensor
    shape: tuple[int, ...]
    rows: Tensor | None = None  # for each published row (or element of a vector) the one in the file
    columns: Tensor | None = None
    start: int = 0  # the row of the file's tensor that comes first
    undo: Callable[[Tensor], Tensor] = lambda values: values

    def in_order(self, file: GgufFile, first: int, last: int) -> Tensor:
        """Published rows first … last, float32."""
        wanted = self._places(first, last)
        if len(self.shape) == 1:  # one row of the file
            values = file.rows(self.stored.name)[0, wanted]
        else:
            values = file.rows(self.stored.name, wanted)
        values = values if self.columns is None else values[:, self.columns]
        return self.undo(values).view(last - first, *self.shape[1:])

    def _places(self, first: int, last: int) -> slice | Tensor:
        """The places of published rows in the tensor of the file."""
        return slice(self.start + first, self.start + last) if self.rows is None else self.rows[first:last]

    @property
    def held(self) -> Stored:
        """Groups of 32 are published ones only if the columns are in an order that leaves them whole."""
        stored = self.stored.kind.stored
        return stored if self._group_order is not None else replace(stored, grouped=False)

    @property
    def _group_order(self) -> Tensor | slice | None:
        if self.columns is None:
            return slice(None)
        groups = self.columns.view(-1, GROUP) if len(self.columns) % GROUP == 0 else self.columns[:, None]
        whole = bool((groups == groups[:, :1] + torch.arange(GROUP)).all()) and not bool((groups[:, 0] % GROUP).any())
        return groups[:, 0] // GROUP if whole else None

    def known_groups(self, file: GgufFile, first: int, last: int) -> KnownGroups:
        """Scales and shifts of published rows first … last."""
        order = self._group_order
        assert order is not None
        known = self.stored.kind.groups(file.raw_bytes(self.stored.name)[self._places(first, last)])
        return KnownGroups(known.scale[:, order], None if known.shift is None else known.shift[:, order])


def published_tensors(file: GgufFile, config: LLMConfig) -> dict[str, PublishedTensor]:
    """By name. A tensor whose name is not known keeps it, and nothing will take it."""
    architecture = file.metadata["general.architecture"]
    found: dict[str, PublishedTensor] = {}
    tiled = file.metadata.get(f"{architecture}.ssm.v_head_reordered", True)  # Ollama's converter says whether it did
    for name, tensor in file.tensors.items():
        published = _published(name, len(config.layer_types))
        if published is None:
            continue
        if len(tensor.shape) == 3:
            found |= _experts(name, tensor)
        elif architecture == "llama":
            found[published] = _interleaved(published, tensor, config)
        elif architecture.startswith("qwen35"):
            found[published] = _hybrid(published, tensor, config, tiled)
        else:
            found[published] = PublishedTensor(tensor, tensor.shape)
    return found


def _published(name: str, layers: int) -> str | None:
    """None for tensors that the network does not use."""
    if name == STRETCH or name.startswith(_BESIDE):
        return None
    if not name.startswith("blk."):
        return _OUTER.get(name, name)
    block, _, inner = name.removeprefix("blk.").partition(".")
    if block.isdecimal() and int(block) >= layers:  # the draft block stands behind the network's
        return None
    stem = inner.removesuffix(".weight")
    known = _BARE.get(inner) or (f"{_INNER[stem]}.weight" if stem in _INNER else None)
    return f"model.layers.{block}.{known}" if known else name


def _experts(name: str, tensor: GgufTensor) -> dict[str, PublishedTensor]:
    """Each expert's matrices by their names; a stack that is not known keeps its own."""
    _, block, stem, *_ = name.split(".")
    ways = _STACKED.get(stem)
    if ways is None:
        return {name: PublishedTensor(tensor, tensor.shape)}
    experts, rows = tensor.shape[0], tensor.shape[1] // len(ways)
    return {
        f"model.layers.{block}.mlp.experts.{expert}.{way}.weight": PublishedTensor(
            tensor, (rows, tensor.shape[2]), start=(expert * len(ways) + at) * rows
        )
        for expert in range(experts)
        for at, way in enumerate(ways)
    }


def _interleaved(name: str, tensor: GgufTensor, config: LLMConfig) -> PublishedTensor:
    heads = {"q_proj.weight": config.num_attention_heads, "k_proj.weight": config.num_key_value_heads}
    count = heads.get(name.rpartition("self_attn.")[2])
    if count is None:
        return PublishedTensor(tensor, tensor.shape)
    order = torch.arange(count * config.head_dim).view(count, -1, 2).transpose(1, 2).flatten()
    return PublishedTensor(tensor, tensor.shape, order)


def _hybrid(name: str, tensor: GgufTensor, config: LLMConfig, tiled: bool) -> PublishedTensor:
    if name.endswith("mlp.shared_expert_gate.weight"):
        return PublishedTensor(tensor, (1, tensor.shape[-1]))  # some converters write a vector
    kind = name.rpartition("linear_attn.")[2]
    size, keys = config.linear_value_head_dim, torch.arange(2 * config.key_dim)

    def heads(width: int) -> Tensor:
        """Value heads of so many rows: in the file the first of every key head, then the second, and so on."""
        order = torch.arange(config.linear_num_value_heads * width)
        if tiled:
            order = order.view(-1, config.linear_num_key_heads, width).transpose(0, 1).flatten()
        return order

    match kind:
        case "in_proj_qkv.weight":
            return PublishedTensor(tensor, tensor.shape, torch.cat((keys, len(keys) + heads(size))))
        case "conv1d.weight":
            shape = (tensor.shape[0], 1, tensor.shape[-1])
            return PublishedTensor(tensor, shape, torch.cat((keys, len(keys) + heads(size))))
        case "in_proj_z.weight":
            return PublishedTensor(tensor, tensor.shape, heads(size))
        case "in_proj_a.weight" | "in_proj_b.weight" | "dt_bias":
            return PublishedTensor(tensor, tensor.shape, heads(1))
        case "A_log":
            return PublishedTensor(tensor, tensor.shape, heads(1), undo=lambda decay: (-decay).log())
        case "out_proj.weight":
            return PublishedTensor(tensor, tensor.shape, columns=heads(size))
    return PublishedTensor(tensor, tensor.shape)
