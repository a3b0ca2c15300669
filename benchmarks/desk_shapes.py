"""Random checkpoints of both models in their published shapes, for times and memory without a download.

    python -m benchmarks.desk_shapes FOLDER [--shape 0.8b|4b|9b]      18 GB with the 4B, a minute or two
    assistant serve --profile desk --llm FOLDER/llm --tts FOLDER/tts

They keep bytes, shapes and latency, and nothing else: the words are random, and so is their length. The language model
says only words of the shipped tokenizer, which it borrows, so that there is something to speak.
"""

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.llm_load import SHAPES, config_of, write_checkpoint
from capsules.safefile import read_header
from tests.tts_engine.miniature import PUBLISHED, write_miniature

TINY = Path(__file__).parents[1] / "llm_engine" / "tiny"
BORROWED = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
VOCABULARY = ("model.embed_tokens.weight", "lm_head.weight")


def write_language_model(shape: str, folder: Path) -> None:
    write_checkpoint(config_of(shape), folder)
    for name in BORROWED:
        shutil.copy(TINY / name, folder)
    known = len(json.loads((TINY / "tokenizer.json").read_text("utf-8"))["model"]["vocab"])
    index = json.loads((folder / "model.safetensors.index.json").read_text("utf-8"))["weight_map"]
    for name in index.keys() & set(VOCABULARY):
        silence(folder / index[name], name, known)


def silence(file: Path, name: str, known: int) -> None:
    """Zero the rows of tokens that the tokenizer does not have: others are then always likelier."""
    entry = read_header(file).entries[name]
    rows = np.memmap(file, np.uint16, "r+", entry.offset, entry.shape)
    rows[known:] = 0
    rows.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="4b", help="shape of the language model (4b)")
    args = parser.parse_args()
    if args.folder.exists():
        parser.error(f"{args.folder} already exists; name a new folder")
    print(f"the language model, {args.shape} …", flush=True)
    write_language_model(args.shape, args.folder / "llm")
    print("the voice, 4 billion weights …", flush=True)
    write_miniature(args.folder / "tts", replace(PUBLISHED, layers=36, hubert_layers=12), drawn=torch.bfloat16)
    size = sum(file.stat().st_size for file in args.folder.glob("*/*")) / 1e9
    print(f"{size:.1f} GB: assistant serve --profile desk --llm {args.folder}/llm --tts {args.folder}/tts")


if __name__ == "__main__":
    main()
