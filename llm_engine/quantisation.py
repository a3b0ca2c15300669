"""The quantised formats that a config.json may describe: those that are read, and what to take instead of others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capsules.nn.groups import GROUP
from llm_engine.errors import ConfigError


@dataclass(frozen=True)
class Quantisation:
    """How the large matrices are stored.

    method  "fp8": E4M3 with a scale per block; "int4": compressed-tensors `pack-quantized`; "gptq" or "awq"
    block   rows and columns with one scale; 0 columns: all. In four bits (1, group size along the input)
    scales  the tensor beside `weight` that holds the scales
    """

    method: str
    block: tuple[int, int]
    scales: str = "weight_scale"


def quantisation_of(raw: Mapping[str, Any] | None) -> Quantisation | None:
    """From `quantization_config`. Raises ConfigError with the name of an unsupported format."""
    if not raw:
        return None
    match raw.get("quant_method"):
        case "fp8":
            return _fp8(raw)
        case "compressed-tensors":
            return _compressed(raw)
        case "gptq":
            return _four(raw, "gptq", desc_act=(False, None), sym=(True, None))
        case "awq":
            return _four(raw, "awq", version=("gemm", None), zero_point=(True,))
    raise ConfigError(_instead(str(raw.get("quant_method")), str(raw.get("quant_algo") or raw.get("format") or "")))


def refuse_mlx(raw: Mapping[str, Any]) -> None:
    """Raise ConfigError for a folder that MLX wrote: it describes its quantisation under a key of its own."""
    found = raw.get("quantization")
    if isinstance(found, Mapping) and not raw.get("quant_method") and "bits" in found:
        raise ConfigError(
            f"an MLX folder ({found['bits']} bits), which is for Apple's processors; take a GGUF file of the model, "
            "such as Q4_K_M, or its published folder"
        )


def _fp8(raw: Mapping[str, Any]) -> Quantisation:
    block = raw.get("weight_block_size")
    if raw.get("fmt", "e4m3") != "e4m3" or block is None or not _pair(block):
        raise ConfigError(f"fp8 with fmt {raw.get('fmt')!r} and weight_block_size {block!r}; e4m3 blocks are read")
    return Quantisation("fp8", (block[0], block[1]), "weight_scale_inv")


def _compressed(raw: Mapping[str, Any]) -> Quantisation:
    kind, schemes = raw.get("format"), _schemes(raw)
    if kind == "pack-quantized":
        return Quantisation("int4", (1, _int4_group(schemes)))
    if kind in ("float-quantized", "naive-quantized") and schemes:
        return Quantisation("fp8", _float_block(schemes))
    raise ConfigError(_instead("compressed-tensors", str(kind)))


def _schemes(raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    groups = raw.get("config_groups")
    found = [group.get("weights") or {} for group in groups.values()] if isinstance(groups, Mapping) else []
    return [scheme for scheme in found if isinstance(scheme, Mapping)]


def _int4_group(schemes: list[Mapping[str, Any]]) -> int:
    """The group size. An activation order `static` or `weight` sorts inputs before they are quantised and stores them
    in their own order, so it changes no format."""
    sizes = {scheme.get("group_size") for scheme in schemes}
    bad = [
        s
        for s in schemes
        if s.get("num_bits") != 4
        or s.get("type", "int") != "int"
        or s.get("actorder") not in (None, False, "static", "weight")
    ]
    size = sizes.pop() if len(sizes) == 1 else None
    if bad or not isinstance(size, int) or size < 8:
        raise ConfigError(
            f"compressed-tensors groups {schemes}: one group size of 4-bit integers, with no activation order but "
            "static and weight, is read; take a GGUF file of the model, such as Q4_K_M"
        )
    return size


def _float_block(schemes: list[Mapping[str, Any]]) -> tuple[int, int]:
    """Rows and columns with one scale, by the strategy."""
    scheme = schemes[0]
    blocks = {"channel": (1, 0), "tensor": (1, 0)}
    structure = scheme.get("block_structure")
    if structure is not None and _pair(structure):
        blocks["block"] = (structure[0], structure[1])
    found = blocks.get(str(scheme.get("strategy")))
    alike = all(other.get("strategy") == scheme.get("strategy") for other in schemes)
    if found is None or not alike or any(s.get("num_bits") != 8 or s.get("type") != "float" for s in schemes):
        raise ConfigError(
            f"compressed-tensors groups {schemes}: 8-bit floats with one scale per channel, tensor or block are read"
        )
    return found


def _four(raw: Mapping[str, Any], method: str, **allowed: tuple[Any, ...]) -> Quantisation:
    """GPTQ and AWQ in four bits."""
    group = raw.get("group_size", 128)
    wrong = [f"{key} {raw[key]!r}" for key, values in allowed.items() if key in raw and raw[key] not in values]
    if raw.get("bits", 4) != 4:
        wrong.append(f"{raw['bits']} bits")
    if type(group) is not int or group < 1 or group % GROUP:
        wrong.append(f"group_size {group!r}")
    if wrong:
        raise ConfigError(
            f"{method} with {', '.join(wrong)} is not read; four bits in groups of a multiple of {GROUP} are"
            + (", symmetric and without desc_act" if method == "gptq" else ", with zero points, as `gemm`")
            + ". Take a GGUF file of the model, such as Q4_K_M, or its int4 by llm-compressor"
        )
    return Quantisation(method, (1, group), "scales")


def _pair(found: Any) -> bool:
    return isinstance(found, list) and len(found) == 2 and all(type(n) is int and n > 0 for n in found)


def _instead(method: str, kind: str) -> str:
    """A sentence on a format that is not read."""
    named = f"quant_method {method!r}" + (f" with format {kind!r}" if kind else "")
    both = f"{method} {kind}".lower()
    if "nvfp4" in both or "mxfp4" in both or "mixed-precision" in both or method == "modelopt":
        four = "MXFP4" if "mxfp4" in both else "NVFP4"
        return f"{named} ({four}: 4-bit floats) is not read; take the model's int4 or AWQ folder, or its GGUF Q4_K_M"
    return (
        f"{named} is not read; fp8 in blocks or per channel, compressed-tensors int4, symmetric GPTQ and AWQ are. Take "
        "one of them, or a GGUF file of the model, such as Q4_K_M"
    )
