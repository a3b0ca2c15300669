"""The rotary positions that a config.json describes: base, dimensions, axes and stretched frequencies.

Newer saves nest the keys in `rope_parameters`, older ones in `rope_scaling` beside flat ones.
"""

import math
from collections.abc import Mapping
from typing import Any

from llm_engine.errors import ConfigError

_KEYS = {"mrope_interleaved", "mrope_section", "partial_rotary_factor", "rope_theta", "rope_type", "type"}
_FLAT = ("mrope_interleaved", "mrope_section", "partial_rotary_factor", "rope_theta")
_STRETCHED = {
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
}
"""Ways to stretch the frequencies for long contexts, and what each must state."""


def rope_of(text: Mapping[str, Any]) -> dict[str, Any]:
    """Rope parameters, completed from the flat keys of older saves. Raises ConfigError for what is not implemented."""
    nested = text.get("rope_parameters") or text.get("rope_scaling") or {}
    kind = nested.get("rope_type", nested.get("type", "default"))
    if kind not in ("default", "mrope", *_STRETCHED):
        raise ConfigError(
            f"rope_type {kind!r} (long-context scaling) is not implemented; {', '.join(_STRETCHED)} and the unscaled "
            "config are"
        )
    unknown = sorted(set(nested) - _KEYS - set(_STRETCHED.get(kind, ())))
    if unknown:
        raise ConfigError(f"rope_parameters has unknown keys {unknown}")
    flat = {key: text[key] for key in _FLAT if text.get(key) is not None}
    return flat | {key: value for key, value in nested.items() if value is not None} | {"rope_type": kind}


def stretch_of(rope: Mapping[str, Any], dims: int, theta: float) -> tuple[float, ...] | None:
    """The divisor of each of the dims / 2 frequencies; None if they stay as they are. Raises ConfigError.

    Source of llama3: Llama 3.1's reference code, `apply_scaling`: short waves stay, long ones become `factor` times as
    long, those between are blended.
    """
    kind = rope.get("rope_type", "default")
    if kind not in _STRETCHED:
        return None
    values: dict[str, Any] = {key: rope.get(key) for key in _STRETCHED[kind]}
    for key, value in values.items():
        if type(value) not in (int, float) or value <= 0:
            raise ConfigError(f"rope_parameters: {key} is {value!r}; a positive number is needed")
    factor = float(values["factor"])
    if kind == "linear":
        return (factor,) * (dims // 2)
    low, high, context = (float(values[key]) for key in _STRETCHED["llama3"][1:])
    if low >= high:
        raise ConfigError(f"rope_parameters: low_freq_factor {low} is not below high_freq_factor {high}")
    found = []
    for j in range(dims // 2):
        waves = context * theta ** (-2 * j / dims) / (2 * math.pi)  # in the context that it was trained on
        share = min(1.0, max(0.0, (waves - low) / (high - low)))
        found.append(1 / (share + (1 - share) / factor))
    return tuple(found)


def section_of(rope: Mapping[str, Any]) -> tuple[int, int, int]:
    """Raises ConfigError unless there are three axes, interleaved over the frequencies."""
    section = rope.get("mrope_section", [11, 11, 10])
    if not isinstance(section, list) or len(section) != 3 or not all(type(n) is int and n >= 0 for n in section):
        raise ConfigError(f"mrope_section is {section!r}; three counts (time, height, width) are needed")
    if rope.get("mrope_interleaved", True) is not True:
        raise ConfigError("mrope_interleaved is false; only axes interleaved over the frequencies are implemented")
    return section[0], section[1], section[2]
