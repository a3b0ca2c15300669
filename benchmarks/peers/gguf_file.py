"""A published-layout checkpoint as a GGUF file of architecture `qwen35` or `qwen35moe`, in llama.cpp's plain formats.

The differences undone here (known from transformers' reader) are: other names; zero-centred norms as 1 + w, the gated
norm as it is; -exp(A_log); a two-dimensional convolution; value heads tiled instead of grouped, in every tensor that
is indexed by value head; experts stacked.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from llm_engine.config import LLMConfig

_NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_a": "ssm_alpha", "linear_attn.in_proj_b": "ssm_beta", "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm", "linear_attn.out_proj": "ssm_out",
    "mlp.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp", "mlp.experts.gate_proj": "ffn_gate_exps",
    "mlp.experts.up_proj": "ffn_up_exps", "mlp.experts.down_proj": "ffn_down_exps",
}  # fmt: skip
_CENTRED = ("input_layernorm", "post_attention_layernorm", "q_norm", "k_norm", "model.norm")


Encode = Callable[[Tensor, Any], Any]
"""A matrix [O, I] float32 in a type of `gguf`, as the file stores it: a numpy array of bytes."""


def write_gguf(checkpoint: Path, target: Path, kind: str = "BF16", encode: Encode | None = None) -> None:
    """checkpoint: a directory with config.json and safetensors, names as in a text-only save.

    kind    of the matrices: BF16, Q8_0, Q4_0 and so on; with Q4_0 the embedding is Q8_0, as ours also keeps eight bits.
            The delta rule's gates and what routes to experts stay BF16
    encode  writes a type that the package `gguf` cannot
    """
    import gguf

    config = LLMConfig.read(checkpoint)
    writer = gguf.GGUFWriter(str(target), "qwen35moe" if config.num_experts else "qwen35")
    _metadata(writer, config)
    files = sorted(checkpoint.glob("*.safetensors"))
    tensors = {name: tensor for file in files for name, tensor in load_file(file).items()}
    for name, tensor in _stacked(tensors, config).items():
        new, value = _convert(name, tensor, config)
        if value.dim() > 1 and value.dtype == torch.bfloat16 and "conv1d" not in new:
            form = "Q8_0" if kind == "Q4_0" and new in ("token_embd.weight", "output.weight") else kind
            exact = any(word in new for word in ("ssm_alpha", "ssm_beta", "ffn_gate_inp"))
            held = gguf.GGMLQuantizationType["BF16" if exact else form]
            raw = encode(value, held) if encode else gguf.quants.quantize(value.float().contiguous().numpy(), held)
            writer.add_tensor(new, raw, raw_dtype=held)
        else:
            writer.add_tensor(new, value.float().contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _metadata(writer: Any, config: LLMConfig) -> None:
    interval = config.full_layers[0] + 1
    if config.full_layers != tuple(range(interval - 1, len(config.layer_types), interval)):
        raise ValueError("GGUF supports only evenly spaced full-attention layers")
    third = config.rotary_dim // 6
    values: dict[str, int | float | list[int]] = {
        "block_count": len(config.layer_types),
        "context_length": 32768,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "vocab_size": config.vocab_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": config.head_dim,
        "attention.value_length": config.head_dim,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "rope.freq_base": config.rope_theta,
        "rope.dimension_count": config.rotary_dim,
        "rope.dimension_sections": [config.rotary_dim // 2 - 2 * third, third, third, 0],
        "ssm.conv_kernel": config.linear_conv_kernel_dim,
        "ssm.state_size": config.linear_key_head_dim,
        "ssm.group_count": config.linear_num_key_heads,
        "ssm.time_step_rank": config.linear_num_value_heads,
        "ssm.inner_size": config.value_dim,
        "full_attention_interval": interval,
    }
    if config.num_experts:
        del values["feed_forward_length"]
        values |= {
            "expert_count": config.num_experts,
            "expert_used_count": config.num_experts_per_tok,
            "expert_feed_forward_length": config.moe_intermediate_size,
            "expert_shared_feed_forward_length": config.intermediate_size,
        }
    for key, value in values.items():
        if isinstance(value, list):
            writer.add_array(f"{writer.arch}.{key}", value)
        elif isinstance(value, float):
            writer.add_float32(f"{writer.arch}.{key}", value)
        else:
            writer.add_uint32(f"{writer.arch}.{key}", value)
    writer.add_tokenizer_model("no_vocab")
    writer.add_token_list([f"t{i}" for i in range(config.vocab_size)])


def _stacked(tensors: dict[str, Tensor], config: LLMConfig) -> dict[str, Tensor]:
    """Every layer's experts in three tensors of three axes."""
    rest = {name: tensor for name, tensor in tensors.items() if ".mlp.experts." not in name}
    for index in range(len(config.layer_types) if config.num_experts else 0):
        for way in ("gate", "up", "down"):
            stem = f"model.layers.{index}.mlp.experts"
            each = [tensors[f"{stem}.{expert}.{way}_proj.weight"] for expert in range(config.num_experts)]
            rest[f"{stem}.{way}_proj.weight"] = torch.stack(each)
    return rest


def _convert(name: str, tensor: Tensor, config: LLMConfig) -> tuple[str, Tensor]:
    top = {"model.embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight"}
    if name in top:
        return top[name], tensor
    if name == "model.norm.weight":
        return "output_norm.weight", 1 + tensor.float()
    _, _, layer, rest = name.split(".", 3)
    block = f"blk.{layer}."
    tile = _tiled(config)
    if rest == "linear_attn.A_log":
        return block + "ssm_a", tile(-tensor.float().exp(), 1)
    if rest == "linear_attn.dt_bias":
        return block + "ssm_dt.bias", tile(tensor, 1)
    stem = rest.removesuffix(".weight")
    new = f"{block}{_NAMES[stem]}.weight"
    size, keys = config.linear_value_head_dim, 2 * config.key_dim
    if any(name.endswith(f"{centred}.weight") for centred in _CENTRED):
        return new, 1 + tensor.float()
    if stem in ("linear_attn.in_proj_qkv", "linear_attn.conv1d"):
        tensor = tensor.squeeze(1) if tensor.dim() == 3 else tensor
        return new, torch.cat((tensor[:keys], tile(tensor[keys:], size)))
    if stem == "linear_attn.in_proj_z":
        return new, tile(tensor, size)
    if stem in ("linear_attn.in_proj_a", "linear_attn.in_proj_b"):
        return new, tile(tensor, 1)
    if stem == "linear_attn.out_proj":
        return new, tile(tensor.t(), size).t()
    if stem == "mlp.shared_expert_gate":
        return new, tensor[0]
    return new, tensor


def _tiled(config: LLMConfig) -> Callable[[Tensor, int], Tensor]:
    """Rows by value head, grouped by key head, to: the first value head of every key head, then the second, …"""
    keys, share = config.linear_num_key_heads, config.linear_num_value_heads // config.linear_num_key_heads

    def tile(rows: Tensor, size: int) -> Tensor:
        return rows.unflatten(0, (keys, share, size)).transpose(0, 1).flatten(0, 2)

    return tile
