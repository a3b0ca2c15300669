"""The configuration of a text model, parsed once into a frozen type that refuses unknown settings.

Read from a published `config.json`: the text part is under `text_config` in the multimodal layout and at the top level
in a text-only save. Source of the keys: transformers' `Qwen3_5TextConfig`, `Qwen3_5MoeTextConfig`, `LlamaConfig`,
`MistralConfig` and `Qwen3Config`, and the published files.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_engine.errors import ConfigError
from llm_engine.quantisation import Quantisation, quantisation_of, refuse_mlx
from llm_engine.rope_config import rope_of, section_of, stretch_of

LINEAR, FULL, PLAIN = "linear_attention", "full_attention", "plain_attention"
"""Kinds of layers: the delta rule, gated attention, and the attention of plain decoders, which say full_attention."""

_MIXTURES = ("qwen3_5_moe_text", "qwen3_5_moe")
_HYBRIDS, _DECODERS = ("qwen3_5_text", "qwen3_5", *_MIXTURES), ("llama", "mistral", "qwen3")
_IGNORED = {  # keys with no effect on inference, read elsewhere, or about other parts of the file
    "_attn_implementation", "_attn_implementation_autoset", "_name_or_path", "architectures", "attention_dropout",
    "audio_token_id", "auto_map", "bos_token_id", "chunk_size_feed_forward", "dtype", "eos_token_id", "id2label",
    "image_token_id", "initializer_range", "is_encoder_decoder", "label2id", "language_model_only", "layer_types",
    "mamba_ssm_dtype", "max_position_embeddings", "mlp_only_layers", "model_type", "mrope_interleaved", "mrope_section",
    "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "output_attentions", "output_hidden_states",
    "pad_token_id", "partial_rotary_factor", "problem_type", "quantization_config", "return_dict", "rope_theta",
    "text_config", "tie_word_embeddings", "torch_dtype", "transformers_version", "unsloth_fixed", "use_cache",
    "video_token_id", "vision_config", "vision_end_token_id", "vision_start_token_id",
    # defaults of generation, which older saves repeat here; generation_config.json decides
    "length_penalty", "max_length", "num_beam_groups", "num_beams", "num_return_sequences", "repetition_penalty",
    "temperature", "top_k", "top_p", "typical_p",
}  # fmt: skip
_IGNORED_OF_DECODERS = {  # the same of plain decoders; a layer's kind decides over its window
    "is_llama_config", "max_window_layers", "pretraining_tp", "sliding_window", "transformers.js_config",
}  # fmt: skip
_IGNORED_OF_MIXTURES = {"intermediate_size", "output_router_logits", "router_aux_loss_coef"}  # the first is of no layer


@dataclass(frozen=True)
class LLMConfig:
    """Shapes and constants of the network. Names follow the published file where it has one."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int  # of the dense block; in a mixture of the shared expert
    layer_types: tuple[str, ...]  # LINEAR, FULL or PLAIN, one per layer
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    linear_num_key_heads: int = 0
    linear_num_value_heads: int = 0
    linear_key_head_dim: int = 0
    linear_value_head_dim: int = 0
    linear_conv_kernel_dim: int = 4
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1e7
    partial_rotary_factor: float = 0.25
    tie_word_embeddings: bool | None = True  # None: not stated; tied if the files hold no head
    mtp_layers: int = 0
    mrope_section: tuple[int, int, int] = (11, 11, 10)  # frequencies that turn with time, height and width
    image_token: int | None = None  # the id that a chat template writes once per picture
    quantisation: Quantisation | None = None
    rope_stretch: tuple[float, ...] | None = None  # divisors of the frequencies, rotary_dim / 2 of them
    centred_norms: bool = True  # norm weights are stored around zero
    head_norms: bool = True  # queries and keys of each head are normalised
    num_experts: int = 0  # of each layer, the shared one not among them; 0: the model is not a mixture
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden_size", "intermediate_size", "head_dim", "linear_conv_kernel_dim"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        unknown = sorted(set(self.layer_types) - {LINEAR, FULL, PLAIN})
        if unknown or not self.layer_types:
            raise ConfigError(f"layer_types names {unknown or 'no layer'}; {LINEAR} and {FULL} are known")
        _multiple("num_attention_heads", self.num_attention_heads, "num_key_value_heads", self.num_key_value_heads)
        if self.linear_layers:
            _multiple(
                "linear_num_value_heads", self.linear_num_value_heads, "linear_num_key_heads", self.linear_num_key_heads
            )
        if self.num_experts and not 1 <= self.num_experts_per_tok <= self.num_experts:
            raise ConfigError(f"num_experts_per_tok is {self.num_experts_per_tok} of {self.num_experts} experts")
        if self.rotary_dim % 2 or not 2 <= self.rotary_dim <= self.head_dim:
            raise ConfigError(
                f"partial_rotary_factor {self.partial_rotary_factor} of head_dim {self.head_dim} rotates "
                f"{self.rotary_dim} dimensions; an even number from 2 to head_dim is needed"
            )

    @property
    def rotary_dim(self) -> int:
        return int(self.head_dim * self.partial_rotary_factor)

    @property
    def key_dim(self) -> int:
        return self.linear_num_key_heads * self.linear_key_head_dim

    @property
    def value_dim(self) -> int:
        return self.linear_num_value_heads * self.linear_value_head_dim

    @property
    def conv_dim(self) -> int:
        return 2 * self.key_dim + self.value_dim

    @property
    def linear_layers(self) -> tuple[int, ...]:
        return tuple(i for i, kind in enumerate(self.layer_types) if kind == LINEAR)

    @property
    def full_layers(self) -> tuple[int, ...]:
        """Those with keys and values."""
        return tuple(i for i, kind in enumerate(self.layer_types) if kind != LINEAR)

    @classmethod
    def read(cls, path: str | Path) -> "LLMConfig":
        """From a checkpoint directory or a config.json. Raises ConfigError, naming the faulty key."""
        file = Path(path)
        file = file / "config.json" if file.is_dir() else file
        try:
            raw = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{file}: not a readable config.json ({error})") from error
        if not isinstance(raw, dict):
            raise ConfigError(f"{file}: an object is expected at the top level")
        return cls.parse(raw)

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> "LLMConfig":
        """From the parsed file. Raises ConfigError."""
        text = raw.get("text_config", raw)
        if not isinstance(text, dict):
            raise ConfigError("text_config is not an object")
        refuse_mlx(raw)
        kind = _family(raw, text)
        _check_constants(text, _CONSTANTS | (_CONSTANTS_OF_MIXTURES if kind in _MIXTURES else {}))
        rope = rope_of(text)
        tied = raw.get("tie_word_embeddings", text.get("tie_word_embeddings"))
        common: dict[str, Any] = {
            "rms_norm_eps": float(text.get("rms_norm_eps", 1e-6)),
            "tie_word_embeddings": None if tied is None else bool(tied),
            "quantisation": quantisation_of(raw.get("quantization_config") or text.get("quantization_config")),
        }
        if kind in _DECODERS:
            config = cls(**common, **_decoder(text, kind, rope))
        else:
            config = cls(**common, **_hybrid(raw, text, rope, kind in _MIXTURES))
        _refuse_unknown(text, _read_of(kind))
        return config

    def to_json(self) -> dict[str, Any]:
        """As a text-only config.json in the published layout of a hybrid, which transformers loads too."""
        if PLAIN in self.layer_types:
            raise ConfigError("only hybrids are written; save a plain decoder with transformers")
        mixture = {name: getattr(self, name) for name in _MIXTURE_SIZES} if self.num_experts else {}
        inner = "shared_expert_intermediate_size" if mixture else "intermediate_size"
        return {
            "architectures": ["Qwen3_5MoeForCausalLM" if mixture else "Qwen3_5ForCausalLM"],
            "model_type": "qwen3_5_moe_text" if mixture else "qwen3_5_text",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            inner: self.intermediate_size,
            **mixture,
            "num_hidden_layers": len(self.layer_types),
            "layer_types": list(self.layer_types),
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "linear_num_key_heads": self.linear_num_key_heads,
            "linear_num_value_heads": self.linear_num_value_heads,
            "linear_key_head_dim": self.linear_key_head_dim,
            "linear_value_head_dim": self.linear_value_head_dim,
            "linear_conv_kernel_dim": self.linear_conv_kernel_dim,
            "rms_norm_eps": self.rms_norm_eps,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": self.rope_theta,
                "partial_rotary_factor": self.partial_rotary_factor,
                "mrope_section": list(self.mrope_section),
                "mrope_interleaved": True,
            },
            "image_token_id": self.image_token,
            "tie_word_embeddings": self.tie_word_embeddings,
            "hidden_act": "silu",
            "attention_bias": False,
            "max_position_embeddings": 32768,
            "mtp_num_hidden_layers": self.mtp_layers,
        }


_CONSTANTS: dict[str, tuple[Any, ...]] = {  # keys that must have one of these values if present
    "hidden_act": ("silu",),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "attn_output_gate": (True,),
    "output_gate_type": ("swish", "silu", None),
    "rope_interleaved": (False,),
    "use_sliding_window": (False, None),
}
_CONSTANTS_OF_MIXTURES: dict[str, tuple[Any, ...]] = {
    "decoder_sparse_step": (1,),
    "mlp_only_layers": ([], None),
    "norm_topk_prob": (True,),
}
_SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads")
_HYBRID_SIZES = (
    "num_key_value_heads", "head_dim", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
    "linear_value_head_dim", "linear_conv_kernel_dim",
)  # fmt: skip
_MIXTURE_SIZES = ("num_experts", "num_experts_per_tok", "moe_intermediate_size")


def _family(raw: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    """The model_type, if it is implemented. Raises ConfigError."""
    kind = str(text.get("model_type", raw.get("model_type")))
    mixture = "moe" in kind or any(key.startswith(("num_experts", "moe_")) and text[key] for key in text)
    if mixture and kind not in _MIXTURES:
        raise ConfigError(f"model_type {kind!r} is a mixture of experts; those of {', '.join(_MIXTURES)} are read")
    if kind not in _HYBRIDS + _DECODERS:
        raise ConfigError(f"model_type {kind!r} is not implemented; {', '.join(_HYBRIDS + _DECODERS)} are")
    return kind


def _check_constants(text: Mapping[str, Any], constants: Mapping[str, tuple[Any, ...]]) -> None:
    for name, allowed in constants.items():
        if name in text and text[name] not in allowed:
            raise ConfigError(f"{name} is {text[name]!r}; {' or '.join(map(repr, allowed))} is implemented")


def _read_of(kind: str) -> set[str]:
    """Keys of one family that need no further look."""
    if kind in _DECODERS:
        return _IGNORED_OF_DECODERS
    mixture = {*_MIXTURE_SIZES, "shared_expert_intermediate_size", *_IGNORED_OF_MIXTURES, *_CONSTANTS_OF_MIXTURES}
    return {"full_attention_interval", *(mixture if kind in _MIXTURES else ())}


def _refuse_unknown(text: Mapping[str, Any], ignored: set[str]) -> None:
    handled = {*_SIZES, *_HYBRID_SIZES, *_CONSTANTS, *_IGNORED, *ignored}
    handled |= {"num_hidden_layers", "rms_norm_eps", "rope_parameters", "rope_scaling"}
    for name, value in text.items():
        if name not in handled and value not in (None, False, [], {}):
            raise ConfigError(
                f"unknown key {name!r} = {value!r}. It may change the network, so it is not ignored; "
                "add it to llm_engine/config.py once its meaning is known."
            )


def _hybrid(raw: Mapping[str, Any], text: Mapping[str, Any], rope: Mapping[str, Any], mixture: bool) -> dict[str, Any]:
    """The fields of a Qwen3.5-family model."""
    if rope["rope_type"] not in ("default", "mrope"):
        raise ConfigError(f"rope_type {rope['rope_type']!r} is implemented for plain decoders; use the unscaled config")
    if mixture:
        text = {**text, "intermediate_size": text.get("shared_expert_intermediate_size")}
    names = (*_SIZES, *_HYBRID_SIZES, *(_MIXTURE_SIZES if mixture else ()))
    return {
        **{name: _integer(text, name) for name in names},
        "layer_types": _layer_types(text, _integer(text, "num_hidden_layers")),
        "rope_theta": float(rope.get("rope_theta", 1e7)),
        "partial_rotary_factor": float(rope.get("partial_rotary_factor", 0.25)),
        "mtp_layers": int(text.get("mtp_num_hidden_layers") or 0),
        "mrope_section": section_of(rope),
        "image_token": _image_token(raw, text),
    }


def _decoder(text: Mapping[str, Any], kind: str, rope: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a plain decoder: attention over everything before, in every layer."""
    sizes = {name: _integer(text, name) for name in _SIZES}
    layers, heads = _integer(text, "num_hidden_layers"), sizes["num_attention_heads"]
    sizes["num_key_value_heads"] = _integer({"num_key_value_heads": heads, **text}, "num_key_value_heads")
    windowed = text.get("sliding_window") if kind == "mistral" else None
    others = set(text.get("layer_types") or [FULL]) - {FULL}
    if windowed or others:
        raise ConfigError(
            f"sliding_window is {text.get('sliding_window')!r}; only attention over the whole context is implemented "
            "for plain decoders"
        )
    if text.get("head_dim") is None:
        _multiple("hidden_size", sizes["hidden_size"], "num_attention_heads", heads)
        size = sizes["hidden_size"] // heads
    else:
        size = _integer(text, "head_dim")
    theta, share = float(rope.get("rope_theta", 1e4)), float(rope.get("partial_rotary_factor", 1.0))
    return {
        **sizes,
        "head_dim": size,
        "layer_types": (PLAIN,) * layers,
        "rope_theta": theta,
        "partial_rotary_factor": share,
        "rope_stretch": stretch_of(rope, int(size * share), theta),
        "centred_norms": False,
        "head_norms": kind == "qwen3",
    }


def _integer(text: Mapping[str, Any], name: str) -> int:
    value = text.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"{name} is {value!r}; a positive integer is needed")
    return value


def _layer_types(text: Mapping[str, Any], layers: int) -> tuple[str, ...]:
    listed = text.get("layer_types")
    if listed is None:
        interval = int(text.get("full_attention_interval") or 4)
        return tuple(FULL if (i + 1) % interval == 0 else LINEAR for i in range(layers))
    if len(listed) != layers:
        raise ConfigError(f"layer_types lists {len(listed)} layers, num_hidden_layers is {layers}")
    return tuple(str(kind) for kind in listed)


def _image_token(raw: Mapping[str, Any], text: Mapping[str, Any]) -> int | None:
    token = raw.get("image_token_id")
    return token if type(token) is int and 0 <= token < _integer(text, "vocab_size") else None


def _multiple(name: str, value: int, other: str, divisor: int) -> None:
    if divisor < 1 or value % divisor:
        raise ConfigError(f"{name} {value} is not a multiple of {other} {divisor}")
