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
    "4b": (2560, 9216, 32, 16, 4, 32, True),
    "9b": (4096, 12288, 32, 16, 4, 32, False),
}
SHARD_BYTES = 1 << 30


def config_of(shape: str) -> LLMConfig:
    hidden, inner, layers, heads, groups, values, tied = SHAPES[shape]
    return LLMConfig(
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


def write_checkpoint(config: LLMConfig, folder: Path) -> int:
    """Random bfloat16 shards with an index. Returns the bytes of all tensors."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config.to_json()))
    shards: list[list[tuple[str, tuple[int, ...]]]] = [[]]
    size = total = 0
    for name, shape in published_shapes(config).items():
        nbytes = prod(shape) * 2
        if size and size + nbytes > SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1].append((name, shape))
        size += nbytes
        total += nbytes
    where = {}
    noise = np.random.default_rng(0).standard_normal(1 << 20, dtype=np.float32) * 0.02
    block = (noise.view(np.uint32) >> 16).astype(np.uint16).tobytes()  # bfloat16 is the upper half of float32
    for index, shard in enumerate(shards):
        file = f"model-{index + 1:05}-of-{len(shards):05}.safetensors"
        header, offset = {}, 0
        for name, shape in shard:
            nbytes = prod(shape) * 2
            header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + nbytes]}
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
