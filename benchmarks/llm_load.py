"""Loading a large random checkpoint on the CPU: seconds, and peak memory beside the weights' own bytes.

    python -m benchmarks.llm_load [--shape 0.8b|4b|9b] [--folder DIR] [--keep]

The checkpoint is sharded and written tensor by tensor, so making it needs little memory either. Loading runs in a
separate process; its peak counts the pages that it really touched, not the page cache. Random weights have the sizes
and times of a trained model; nothing else about them is alike.
"""

import argparse
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
from math import prod
from pathlib import Path
from time import perf_counter

import numpy as np

from llm_engine.config import FULL, LINEAR, LLMConfig
from llm_engine.names import published_shapes

COMMON = {"vocab_size": 248320, "head_dim": 256, "linear_num_key_heads": 16, "linear_key_head_dim": 128}
SHAPES = {  # hidden, intermediate, layers, query heads, key heads, linear value heads, tied
    "0.8b": (1024, 3584, 24, 8, 2, 16, True),
    "2b": (2048, 6144, 24, 8, 2, 16, True),
    "4b": (2560, 9216, 32, 16, 4, 32, True),
    "9b": (4096, 12288, 32, 16, 4, 32, False),
    "27b": (5120, 17408, 64, 24, 4, 48, False),
    "35b-a3b": (2048, 512, 40, 16, 2, 32, False),
}
EXPERTS = {"35b-a3b": {"num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512}}
SHARD_BYTES = 1 << 30
FOUR_BITS = {
    "quant_method": "compressed-tensors", "format": "pack-quantized",
    "config_groups": {"group_0": {
        "targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "symmetric": True, "group_size": 32},
    }},
}  # fmt: skip
PLAIN = ("embed_tokens.weight", "lm_head.weight", "in_proj_a.weight", "in_proj_b.weight", "mlp.gate.weight")
"""Endings of matrices that a folder in four bits leaves in bfloat16."""
Stored = tuple[str, str, tuple[int, ...], int]
"""Name, type, shape and bytes of a tensor in a file."""


def config_of(shape: str) -> LLMConfig:
    hidden, inner, layers, heads, groups, values, tied = SHAPES[shape]
    return LLMConfig(
        **EXPERTS.get(shape, {}),
        **COMMON,
        hidden_size=hidden,
        intermediate_size=inner,
        layer_types=tuple(FULL if i % 4 == 3 else LINEAR for i in range(layers)),
        num_attention_heads=heads,
        num_key_value_heads=groups,
        linear_num_value_heads=values,
        linear_value_head_dim=128,
        tie_word_embeddings=tied,
    )


def stored_as(name: str, shape: tuple[int, ...], four_bits: bool) -> list[Stored]:
    """In bfloat16, or as compressed-tensors stores four bits."""
    if not four_bits or len(shape) != 2 or name.endswith((*PLAIN, "shared_expert_gate.weight")):
        return [(name, "BF16", shape, prod(shape) * 2)]
    packed, scales = (shape[0], shape[1] // 8), (shape[0], shape[1] // 32)
    stem = name.removesuffix("weight")
    return [
        (f"{stem}weight_packed", "I32", packed, prod(packed) * 4),
        (f"{stem}weight_scale", "BF16", scales, prod(scales) * 2),
    ]


def write_checkpoint(config: LLMConfig, folder: Path, four_bits: bool = False) -> int:
    """Random shards with an index, in bfloat16 or in int4 of groups of 32. Returns the bytes of all tensors."""
    folder.mkdir(parents=True)
    described = {"quantization_config": FOUR_BITS} if four_bits else {}
    (folder / "config.json").write_text(json.dumps(config.to_json() | described))
    shards: list[list[Stored]] = [[]]
    size = total = 0
    for published in published_shapes(config).items():
        for tensor in stored_as(*published, four_bits):
            if size and size + tensor[3] > SHARD_BYTES:
                shards.append([])
                size = 0
            shards[-1].append(tensor)
            size += tensor[3]
            total += tensor[3]
    where = {}
    noise = np.random.default_rng(0).standard_normal(1 << 20, dtype=np.float32) * 0.02
    block = (noise.view(np.uint32) >> 16).astype(np.uint16).tobytes()  # bfloat16 is the upper half of float32
    for index, shard in enumerate(shards):
        file = f"model-{index + 1:05}-of-{len(shards):05}.safetensors"
        header, offset = {}, 0
        for name, dtype, shape, nbytes in shard:
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + nbytes]}
            offset += nbytes
            where[name] = file
        raw = json.dumps(header).encode()
        raw += b" " * (-len(raw) % 8)
        with (folder / file).open("wb") as out:
            out.write(struct.pack("<Q", len(raw)) + raw)
            while offset:
                out.write(block[: min(offset, len(block))])
                offset -= min(offset, len(block))
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": where})
    )
    return total


def load_and_measure(folder: Path) -> None:
    """In the child: print seconds and peak memory of the load alone, as JSON."""
    import torch

    from capsules import ExecContext
    from llm_engine.weights import load_weights

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    began = perf_counter()
    loaded = load_weights(folder, ExecContext("cpu"), torch.bfloat16)
    seconds = perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "before": before, "peak": peak, "digest": loaded.digest}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="0.8b")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.gettempdir()) / f"llm-load-{args.shape}"
    if args.child:
        load_and_measure(folder)
        return
    weights = sum(file.stat().st_size for file in folder.glob("*.safetensors")) if folder.exists() else 0
    weights = weights or write_checkpoint(config_of(args.shape), folder)
    try:
        command = [sys.executable, "-m", "benchmarks.llm_load", "--child", "--folder", os.fspath(folder)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    finally:
        if not args.keep:
            shutil.rmtree(folder)
    grown = found["peak"] - found["before"]
    print(f"{args.shape}: {weights / 1e9:.2f} GB of weights, loaded in {found['seconds']:.1f} s")
    share = f"{grown / 1e9:.2f} GB = {grown / weights:.2f} x the weights"
    print(f"peak memory {found['peak'] / 1e9:.2f} GB, of which the load {share}")


if __name__ == "__main__":
    main()
