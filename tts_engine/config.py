"""The checkpoint's `config.json`, parsed once into frozen types; unsupported settings are refused by name.

One format serves the published Higgs checkpoint and the small voice that ships with the package. The small voice adds
four optional keys: `cursor_config` (a text cursor instead of a learned alignment), `codebook_temperatures` (a factor
per codebook for the requested temperature), `frontend` ("phones" instead of a tokenizer file) and
`special_tokens` (name → id, required with the phones front end).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tts_engine.errors import ConfigRefused

SAMPLE_RATE = 24_000  # Hz
FRAME_SAMPLES = 960  # samples in one codec frame
FRAME_MS = 40
SPECIALS = ("<|tts|>", "<|text|>", "<|audio|>", "<|ref_audio|>")  # `<|ref_text|>` is optional


@dataclass(frozen=True)
class BackboneConfig:
    """Qwen3 shape. Attention width is heads · head_dim, which need not equal hidden."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    text_vocab: int
    max_positions: int
    rms_eps: float = 1e-6
    rope_theta: float = 1e6

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise ConfigRefused(
                f"num_attention_heads {self.heads} is not a multiple of num_key_value_heads {self.kv_heads}"
            )
        if self.head_dim % 2:
            raise ConfigRefused(f"head_dim {self.head_dim} is odd; rotary positions need pairs")


@dataclass(frozen=True)
class AudioConfig:
    """Codebooks and their vocabulary: `size` real codes, then begin-of-codes, then end-of-codes."""

    codebooks: int
    vocab: int

    @property
    def size(self) -> int:
        return self.vocab - 2

    @property
    def boc(self) -> int:
        return self.vocab - 2

    @property
    def eoc(self) -> int:
        return self.vocab - 1

    @property
    def delay(self) -> int:
        """Rows by which the last codebook lags behind the first."""
        return self.codebooks - 1


@dataclass(frozen=True)
class CursorConfig:
    """A cursor over the phones of a piece: an input of every row, moved by a head that predicts the advance.

    offsets      phones seen, relative to the cursor; consecutive
    max_rows     rows spent on one phone are embedded up to max_rows - 1
    max_advance  the largest step of one row
    max_hold     after this many rows on one phone the cursor moves on, whatever the head says
    temperature  of the advance, unless sampling is greedy
    """

    offsets: tuple[int, ...]
    max_rows: int
    max_advance: int
    max_hold: int = 50
    temperature: float = 0.5


@dataclass(frozen=True)
class TTSConfig:
    """`temperatures` has a factor for each codebook; the requested temperature is multiplied by it."""

    backbone: BackboneConfig
    audio: AudioConfig
    temperatures: tuple[float, ...]
    cursor: CursorConfig | None = None
    frontend: str = "bpe"
    special_tokens: Mapping[str, int] = field(default_factory=dict)


_TOP = {
    "architectures", "model_type", "_hidden_size", "_vocab_size", "audio_token_id", "ignore_index",
    "transformers_version", "audio_encoder_config", "text_config", "cursor_config", "frontend", "special_tokens",
    "codebook_temperatures", "dtype", "torch_dtype", "tie_word_embeddings", "_name_or_path",
}  # fmt: skip
_AUDIO = {
    "model_type", "encoder_type", "num_codebooks", "vocab_size", "out_dim", "tie_word_embeddings",
    "use_delay_pattern", "max_chunk_size", "mel_per_sample", "qwen3_aut_config", "whisper_config", "dtype",
}  # fmt: skip
_CURSOR = {"offsets", "max_rows", "max_advance", "max_hold", "temperature"}


def load_config(folder: Path) -> TTSConfig:
    """The configuration of a checkpoint directory. Raises ConfigRefused."""
    path = folder / "config.json"
    if not path.is_file():
        raise ConfigRefused(f"{folder} has no config.json; expected a checkpoint directory in the published layout")
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigRefused(f"{path} is not JSON: {error}") from error
    return parse_config(raw)


def parse_config(raw: Mapping[str, Any]) -> TTSConfig:
    """Raises ConfigRefused with the key, its value and what is supported."""
    _only(raw, _TOP, "config.json")
    _is(raw, "model_type", "higgs_multimodal_qwen3", "config.json")
    audio = _audio(_section(raw, "audio_encoder_config"))
    backbone = _backbone(_section(raw, "text_config"))
    if _section(raw, "audio_encoder_config").get("out_dim", backbone.hidden) != backbone.hidden:
        raise ConfigRefused(f"audio_encoder_config.out_dim is not the hidden size {backbone.hidden}")
    frontend = raw.get("frontend", "bpe")
    if frontend not in ("bpe", "phones"):
        raise ConfigRefused(f"frontend is {frontend!r}; 'bpe' and 'phones' are supported")
    cursor = _cursor(raw["cursor_config"]) if raw.get("cursor_config") else None
    specials = {str(name): int(value) for name, value in raw.get("special_tokens", {}).items()}
    if frontend == "phones" and not set(SPECIALS) <= set(specials):
        raise ConfigRefused(
            f"frontend 'phones' needs special_tokens with {', '.join(SPECIALS)}; found {sorted(specials)}"
        )
    return TTSConfig(backbone, audio, _temperatures(raw, audio.codebooks), cursor, frontend, specials)


def _audio(raw: Mapping[str, Any]) -> AudioConfig:
    where = "audio_encoder_config"
    _only(raw, _AUDIO, where)
    _is(raw, "encoder_type", "discrete", where)
    _is(raw, "use_delay_pattern", True, where)
    _is(raw, "tie_word_embeddings", True, where)
    audio = AudioConfig(_integer(raw, "num_codebooks", where), _integer(raw, "vocab_size", where))
    if audio.codebooks < 2 or audio.vocab < 4:
        raise ConfigRefused(f"{where}: {audio.codebooks} codebooks of {audio.vocab}; at least 2 of 4 are needed")
    return audio


def _backbone(raw: Mapping[str, Any]) -> BackboneConfig:
    where = "text_config"
    _is(raw, "model_type", "qwen3", where)
    _is(raw, "hidden_act", "silu", where, default="silu")
    _is(raw, "attention_bias", False, where, default=False)
    _is(raw, "sliding_window", None, where, default=None)
    if set(raw.get("layer_types") or ["full_attention"]) != {"full_attention"}:
        raise ConfigRefused(
            f"{where}.layer_types has {sorted(set(raw['layer_types']))}; only full_attention is supported"
        )
    rope = raw.get("rope_parameters") or {}
    _is(rope, "rope_type", "default", f"{where}.rope_parameters", default="default")
    return BackboneConfig(
        hidden=_integer(raw, "hidden_size", where),
        layers=_integer(raw, "num_hidden_layers", where),
        heads=_integer(raw, "num_attention_heads", where),
        kv_heads=_integer(raw, "num_key_value_heads", where),
        head_dim=_integer(raw, "head_dim", where),
        intermediate=_integer(raw, "intermediate_size", where),
        text_vocab=_integer(raw, "vocab_size", where),
        max_positions=_integer(raw, "max_position_embeddings", where),
        rms_eps=float(raw.get("rms_norm_eps", 1e-6)),
        rope_theta=float(rope.get("rope_theta") or raw.get("rope_theta") or 1e6),  # early exports have null
    )


def _cursor(raw: Mapping[str, Any]) -> CursorConfig:
    where = "cursor_config"
    _only(raw, _CURSOR, where)
    offsets = tuple(int(o) for o in raw.get("offsets", ()))
    if not offsets or offsets != tuple(range(offsets[0], offsets[0] + len(offsets))):
        raise ConfigRefused(f"{where}.offsets is {list(offsets)}; consecutive integers are needed, at least one")
    defaults = CursorConfig(offsets, 1, 1)
    return CursorConfig(
        offsets,
        _integer(raw, "max_rows", where),
        _integer(raw, "max_advance", where),
        int(raw.get("max_hold", defaults.max_hold)),
        float(raw.get("temperature", defaults.temperature)),
    )


def _temperatures(raw: Mapping[str, Any], codebooks: int) -> tuple[float, ...]:
    parts = raw.get("codebook_temperatures", [1.0] * codebooks)
    numbers = isinstance(parts, list) and all(type(part) in (int, float) and 0 < part <= 10 for part in parts)
    if not numbers or len(parts) != codebooks:
        raise ConfigRefused(f"codebook_temperatures is {parts!r}; a list of {codebooks} numbers, 0 to 10, is needed")
    return tuple(float(part) for part in parts)


def _section(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    section = raw.get(key)
    if not isinstance(section, Mapping):
        raise ConfigRefused(f"config.json has no section {key!r}")
    return section


def _integer(raw: Mapping[str, Any], key: str, where: str) -> int:
    value = raw.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigRefused(f"{where}.{key} is {value!r}; a positive integer is needed")
    return value


def _only(raw: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(raw) - known)
    if unknown:
        raise ConfigRefused(f"{where} has keys this engine does not know: {', '.join(unknown)}")


def _is(raw: Mapping[str, Any], key: str, wanted: object, where: str, **default: object) -> None:
    value = raw.get(key, default.get("default"))
    if value != wanted:
        raise ConfigRefused(f"{where}.{key} is {value!r}; only {wanted!r} is supported")
