"""The configuration that a GGUF file states, in the words of the published config.json."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from llm_engine.config import LLMConfig
from llm_engine.errors import ConfigError
from llm_engine.gguf.container import GgufFile

ARCHITECTURES = {"llama": "llama", "qwen3": "qwen3", "qwen35": "qwen3_5_text", "qwen35moe": "qwen3_5_moe_text"}
"""model_type by the file's `general.architecture`; Mistral's models are of the first."""
STRETCH = "rope_freqs.weight"
"""A converter computes the divisors of Llama 3's frequencies and leaves out what they were computed from."""


def config_of(file: GgufFile) -> LLMConfig:
    """Raises ConfigError, naming the key or the architecture."""
    try:
        config = LLMConfig.parse(_as_published(file))
    except ConfigError as error:
        raise ConfigError(f"{file.path.name}: {error}") from error
    config = replace(config, centred_norms=False)  # converters add the 1
    if STRETCH not in file.tensors:
        return config
    stretch = tuple(file.rows(STRETCH).flatten().tolist())
    if len(stretch) != config.rotary_dim // 2 or not all(0 < divisor < 1e6 for divisor in stretch):
        raise ConfigError(f"{file.path.name}: {STRETCH} holds {len(stretch)} numbers that stretch no frequencies")
    return replace(config, rope_stretch=stretch)


def _as_published(file: GgufFile) -> dict[str, Any]:
    metadata = file.metadata
    architecture = metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise ConfigError(_other(architecture))

    if (count := metadata.get("split.count", 1)) > 1:
        raise ConfigError(f"it is one of {count} parts of a model; join them with `llama-gguf-split --merge`")

    def given(key: str) -> Any:
        return metadata.get(f"{architecture}.{key}")

    mixture = architecture == "qwen35moe"
    if given("expert_count") and not mixture:
        raise ConfigError("it is a mixture of experts of a family that is not implemented; take a dense model")
    heads = given("attention.head_count")
    size = given("attention.key_length")
    if size != given("attention.value_length"):
        raise ConfigError(f"keys are {size} wide and values {given('attention.value_length')}; they must be equal")
    text = {
        "model_type": ARCHITECTURES[architecture],
        "vocab_size": _vocabulary(file),
        "hidden_size": given("embedding_length"),
        "intermediate_size": given("feed_forward_length"),
        "num_hidden_layers": (given("block_count") or 0) - (given("nextn_predict_layers") or 0),
        "num_attention_heads": heads,
        "num_key_value_heads": _most(given("attention.head_count_kv")) or heads,
        "head_dim": size,
        "rms_norm_eps": given("attention.layer_norm_rms_epsilon"),
        "rope_parameters": _rope(given),
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }
    if architecture.startswith("qwen35"):
        text |= _recurrent(given)
    if mixture:
        text |= {
            "num_experts": given("expert_count"),
            "num_experts_per_tok": given("expert_used_count"),
            "moe_intermediate_size": given("expert_feed_forward_length"),
            "shared_expert_intermediate_size": given("expert_shared_feed_forward_length"),
        }
    if given("attention.sliding_window"):
        text |= {"model_type": "mistral", "sliding_window": given("attention.sliding_window")}
    return {key: value for key, value in text.items() if value is not None}


def _recurrent(given: Any) -> dict[str, Any]:
    """The keys of the delta-net layers."""
    heads, inner = given("ssm.time_step_rank"), given("ssm.inner_size")
    return {
        "full_attention_interval": given("full_attention_interval"),
        "linear_conv_kernel_dim": given("ssm.conv_kernel"),
        "linear_key_head_dim": given("ssm.state_size"),
        "linear_num_key_heads": given("ssm.group_count"),
        "linear_num_value_heads": heads,
        "linear_value_head_dim": inner // heads if heads and inner else None,
    }


def _most(heads: Any) -> Any:
    """Some converters write one number for each layer, 0 where there is no attention."""
    return max(heads, default=None) if isinstance(heads, list) else heads


def _vocabulary(file: GgufFile) -> Any:
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None:
        raise ConfigError("it has no token_embd.weight: it holds a part of a model, such as a projector or an adapter")
    return embedding.shape[0]


def _rope(given: Any) -> Mapping[str, Any]:
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": given("rope.freq_base") or 1e4}
    kind, factor = given("rope.scaling.type"), given("rope.scaling.factor")
    if kind not in (None, "none"):
        rope |= {"rope_type": kind, "factor": factor}
    size = given("attention.key_length") or (given("embedding_length") or 0) // (given("attention.head_count") or 1)
    if (turned := given("rope.dimension_count")) and size:
        rope["partial_rotary_factor"] = turned / size
    if sections := given("rope.dimension_sections"):
        rope["mrope_section"] = sections[:3]
    return rope


def _other(architecture: Any) -> str:
    known = ", ".join(ARCHITECTURES)
    if architecture == "clip":
        return f"architecture 'clip' is a vision projector and not a language model; {known} are read"
    if isinstance(architecture, str) and "moe" in architecture:
        return f"architecture {architecture!r} is a mixture of experts, which is not implemented; {known} are read"
    return f"architecture {architecture!r} is not implemented; {known} are"
