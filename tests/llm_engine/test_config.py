"""The config: published layouts, defaults, and refusals by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from llm_engine.config import FULL, LINEAR, PLAIN, LLMConfig, Quantisation
from llm_engine.errors import ConfigError

# The published 0.8B file, as far as it matters here.
PUBLISHED: dict[str, Any] = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "image_token_id": 248056,
    "model_type": "qwen3_5",
    "text_config": {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_output_gate": True,
        "dtype": "bfloat16",
        "eos_token_id": 248044,
        "full_attention_interval": 4,
        "head_dim": 256,
        "hidden_act": "silu",
        "hidden_size": 1024,
        "initializer_range": 0.02,
        "intermediate_size": 3584,
        "layer_types": ([LINEAR] * 3 + [FULL]) * 6,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 16,
        "linear_value_head_dim": 128,
        "mamba_ssm_dtype": "float32",
        "max_position_embeddings": 262144,
        "mlp_only_layers": [],
        "model_type": "qwen3_5_text",
        "mtp_num_hidden_layers": 1,
        "mtp_use_dedicated_embeddings": False,
        "num_attention_heads": 8,
        "num_hidden_layers": 24,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-06,
        "rope_parameters": {
            "mrope_interleaved": True,
            "mrope_section": [11, 11, 10],
            "partial_rotary_factor": 0.25,
            "rope_theta": 10000000,
            "rope_type": "default",
        },
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": 248320,
    },
    "tie_word_embeddings": True,
    "vision_config": {"depth": 12},
}


def changed(**text: Any) -> dict[str, Any]:
    return PUBLISHED | {"text_config": PUBLISHED["text_config"] | text}


def test_the_published_layout_is_read() -> None:
    config = LLMConfig.parse(PUBLISHED)
    assert (config.hidden_size, len(config.layer_types), config.rotary_dim) == (1024, 24, 64)
    assert (config.key_dim, config.value_dim, config.conv_dim) == (2048, 2048, 6144)
    assert len(config.full_layers) == 6 and config.full_layers[0] == 3
    assert config.tie_word_embeddings is True and config.mtp_layers == 1


def test_a_text_only_save_comes_back_the_same(tmp_path: Path) -> None:
    config = LLMConfig.parse(PUBLISHED)
    (tmp_path / "config.json").write_text(json.dumps(config.to_json()))
    assert LLMConfig.read(tmp_path) == config


def test_layer_types_rope_and_tying_have_the_published_defaults() -> None:
    text = dict(PUBLISHED["text_config"])
    for key in ("layer_types", "rope_parameters", "tie_word_embeddings", "mtp_num_hidden_layers"):
        text.pop(key)
    text["rope_theta"] = 5000.0
    config = LLMConfig.parse({"text_config": text})
    assert config.layer_types == LLMConfig.parse(PUBLISHED).layer_types
    assert (config.rope_theta, config.partial_rotary_factor) == (5000.0, 0.25)
    assert config.tie_word_embeddings is None
    outer = changed(tie_word_embeddings=None) | {"tie_word_embeddings": False}
    assert LLMConfig.parse(outer).tie_word_embeddings is False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "qwen3_moe"}, "mixture of experts"),
        ({"num_experts": 256}, "mixture of experts"),
        ({"model_type": "qwen3_5_moe_text"}, "shared_expert_intermediate_size|intermediate_size is None"),
        ({"model_type": "qwen3_next"}, "'qwen3_next' is not implemented; qwen3_5_text, qwen3_5, qwen3_5_moe_text"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"attn_output_gate": False}, "attn_output_gate is False"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"hyper_connections": 4}, "unknown key 'hyper_connections'"),
        ({"hidden_size": None}, "hidden_size is None"),
        ({"hidden_size": True}, "hidden_size is True"),
        ({"vocab_size": "248320"}, "vocab_size is '248320'"),
        ({"num_hidden_layers": 23}, "layer_types lists 24 layers"),
        ({"layer_types": ["sliding_attention"] * 24}, "sliding_attention"),
        ({"num_attention_heads": 7}, "num_attention_heads 7 is not a multiple"),
        ({"linear_num_value_heads": 24}, "linear_num_value_heads 24 is not a multiple"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "rope_type 'yarn'"),
        ({"rope_parameters": {"rope_type": "default", "wobble": 1}}, "wobble"),
        ({"rope_parameters": {"partial_rotary_factor": 2.0}}, "rotates 512 dimensions"),
    ],
)
def test_what_is_not_known_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LLMConfig.parse(changed(**change))


def test_unknown_keys_that_say_nothing_are_let_through() -> None:
    assert LLMConfig.parse(changed(hyper_connections=None, sparse=False, extra=[])) == LLMConfig.parse(PUBLISHED)


INT4: dict[str, Any] = {"num_bits": 4, "type": "int", "symmetric": True, "group_size": 32, "strategy": "group"}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
            Quantisation("fp8", (128, 128), "weight_scale_inv"),
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "float-quantized",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}},
            },
            Quantisation("fp8", (1, 0)),
        ),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, Quantisation("gptq", (1, 128), "scales")),
        ({"quant_method": "awq", "zero_point": True, "version": "gemm"}, Quantisation("awq", (1, 128), "scales")),
        *(
            (
                {
                    "quant_method": "compressed-tensors",
                    "format": "pack-quantized",
                    "config_groups": {"group_0": {"weights": INT4 | {"actorder": order}}},
                },
                Quantisation("int4", (1, 32)),
            )
            for order in (None, False, "static", "weight")
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": {"group_0": {"weights": INT4}},
            },
            Quantisation("int4", (1, 32)),
        ),
    ],
)
def test_quantised_formats_are_recognised(raw: dict[str, Any], expected: Quantisation) -> None:
    assert LLMConfig.parse(PUBLISHED | {"quantization_config": raw}).quantisation == expected


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"quant_method": "gptq", "bits": 4, "desc_act": True}, "desc_act True is not read.*GGUF"),
        ({"quant_method": "gptq", "bits": 8, "sym": False}, "sym False, 8 bits"),
        ({"quant_method": "awq", "zero_point": True, "version": "gemv"}, "version 'gemv'"),
        ({"quant_method": "awq", "group_size": 16}, "group_size 16"),
        ({"quant_method": "fp8", "fmt": "e5m2", "weight_block_size": [128, 128]}, "e4m3 blocks are read"),
        ({"quant_method": "fp8"}, "e4m3 blocks are read"),
        ({"quant_method": "bitsandbytes"}, "'bitsandbytes' is not read; fp8 .* GGUF"),
        (
            {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
            "NVFP4: 4-bit floats.*take the model's int4",
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "NVFP4"),
        ({"quant_method": "mxfp4"}, "MXFP4"),
        *(
            (
                {
                    "quant_method": "compressed-tensors",
                    "format": "pack-quantized",
                    "config_groups": {"g": {"weights": INT4 | wrong}},
                },
                "one group size of 4-bit integers",
            )
            for wrong in ({"num_bits": 8}, {"actorder": "group"}, {"group_size": None})
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "float-quantized",
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float", "strategy": "token"}}},
            },
            "per channel, tensor or block are read",
        ),
    ],
)
def test_other_formats_are_refused_with_what_to_take_instead(raw: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LLMConfig.parse(PUBLISHED | {"quantization_config": raw})


def test_a_folder_of_mlx_is_named() -> None:
    found = {"group_size": 64, "bits": 4, "mode": "affine"}
    with pytest.raises(ConfigError, match=r"MLX folder \(4 bits\).*take a GGUF file"):
        LLMConfig.parse(PUBLISHED | {"quantization": found, "quantization_config": found})


def test_keys_that_say_nothing_about_the_network_are_let_through() -> None:
    text = changed(_attn_implementation_autoset=True, top_k=50, temperature=1.0, num_beams=1)
    rope = text["text_config"].pop("rope_parameters")
    text["text_config"] |= rope  # flat, as MLX writes them
    text["text_config"].pop("rope_type")
    assert LLMConfig.parse(text) == LLMConfig.parse(PUBLISHED)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100000])
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ConfigError):
        LLMConfig.read(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"mrope_interleaved": False}, "interleaved"), ({"mrope_section": [11, 21]}, "three counts")],
)
def test_position_axes_of_another_kind_are_refused(change: dict[str, Any], message: str) -> None:
    rope = PUBLISHED["text_config"]["rope_parameters"]
    with pytest.raises(ConfigError, match=message):
        LLMConfig.parse(changed(rope_parameters=rope | change))


def test_what_stands_for_a_picture_is_read_with_the_axes() -> None:
    rope = PUBLISHED["text_config"]["rope_parameters"] | {"mrope_section": [2, 1, 1]}
    config = LLMConfig.parse(changed(rope_parameters=rope))
    assert config.mrope_section == (2, 1, 1) and config.image_token == 248056
    assert LLMConfig.parse({**PUBLISHED, "image_token_id": None}).image_token is None


LLAMA = {  # Llama-3.2-1B-Instruct's keys that shape the network
    "model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
    "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "hidden_act": "silu",
    "attention_bias": False, "mlp_bias": False, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "pretraining_tp": 1,
    "rope_scaling": {
        "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "tie_word_embeddings": True, "use_cache": True,
}  # fmt: skip


def test_a_plain_decoder_is_read() -> None:
    config = LLMConfig.parse(LLAMA)
    assert config.layer_types == (PLAIN,) * 16 and config.full_layers == tuple(range(16))
    assert (config.rotary_dim, config.head_norms, config.centred_norms) == (64, False, False)
    assert config.rope_stretch is not None and len(config.rope_stretch) == 32
    assert config.rope_stretch[0] == 1 and config.rope_stretch[-1] == 32
    bare = {k: v for k, v in LLAMA.items() if k not in ("head_dim", "num_key_value_heads", "rope_scaling")}
    assert LLMConfig.parse(bare).head_dim == 64 and LLMConfig.parse(bare).num_key_value_heads == 32
    assert LLMConfig.parse(bare).rope_stretch is None
    assert LLMConfig.parse(
        LLAMA | {"model_type": "qwen3", "layer_types": [FULL] * 16, "sliding_window": 4096}
    ).head_norms
    with pytest.raises(ConfigError, match="only hybrids are written"):
        config.to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, "sliding_window is 4096"),
        ({"model_type": "qwen3", "layer_types": ["full_attention", "sliding_attention"] * 8}, "whole context"),
        ({"mlp_bias": True}, "mlp_bias is True"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope_type 'yarn'"),
        ({"rope_scaling": {"rope_type": "linear"}}, "factor is None; a positive number"),
        ({"rope_scaling": LLAMA["rope_scaling"] | {"low_freq_factor": 5}}, "low_freq_factor 5.0 is not below"),
        ({"rope_scaling": LLAMA["rope_scaling"] | {"wobble": 5}}, "wobble"),
        ({"head_dim": None, "num_attention_heads": 24}, "hidden_size 2048 is not a multiple"),
        ({"no_rope_layers": [1, 0]}, "unknown key 'no_rope_layers'"),
    ],
)
def test_a_plain_decoder_that_differs_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LLMConfig.parse(LLAMA | change)
