"""Which tokens end a turn or a text, by a checkpoint's own word."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_engine.gguf.container import is_gguf, open_gguf
from llm_engine.gguf.tokens import declared_ends

ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>")
"""Texts of such tokens, those that end a turn first."""


def declared(path: Path) -> list[int]:
    """The ids that a GGUF file or a folder's generation_config.json names."""
    if is_gguf(path):
        return declared_ends(open_gguf(path))
    ends = _json(path / "generation_config.json").get("eos_token_id")
    return [end for end in (ends if isinstance(ends, list) else [ends]) if type(end) is int]


def end_of_turn(path: Path) -> int | None:
    """The id of <|im_end|> or another end of a turn: from the tokenizer, else the first declared one, else None."""
    ids = _ids(path)
    known = [ids[text] for text in ENDS[:2] if text in ids]
    return next(iter(known or declared(path)), None)


def _ids(path: Path) -> Mapping[str, int]:
    """Ids by the texts of special tokens."""
    if is_gguf(path):
        tokens = open_gguf(path).metadata.get("tokenizer.ggml.tokens", [])
        return {text: tokens.index(text) for text in ENDS if text in tokens}
    added = _json(path / "tokenizer.json").get("added_tokens", [])
    return {token["content"]: int(token["id"]) for token in added if "content" in token}


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    read = json.loads(path.read_text("utf-8"))
    return read if isinstance(read, dict) else {}
