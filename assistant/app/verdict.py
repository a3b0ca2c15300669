"""Whether a language model runs here: asked of its files' descriptions, without loading a weight."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from capsules.errors import CapsuleError
from llm_engine.chat import Chat
from llm_engine.errors import LLMError
from llm_engine.footprint import needed_bytes
from llm_engine.published import open_published


@dataclass(frozen=True, slots=True)
class Verdict:
    """`told`: a phrase that says what it needs on a processor, or why it does not run.
    `needs_bytes` 0: it does not run."""

    told: str
    needs_bytes: int = 0


def verdict(path: Path, positions: int, bits: int = 8) -> Verdict:
    """With matrices packed into 8 or 4 bits. Reads the description, the tokenizer and the chat template, which takes up
    to a second."""
    try:
        open_published(path)
        Chat.load(path)
        nbytes = needed_bytes(path, f"int{bits}", positions, eyes="off", device="cpu")
    except (LLMError, CapsuleError, OSError) as error:
        said = str(error).removeprefix(f"{path.name}: ").removeprefix(f"{path}: ")
        return Verdict(f"does not run: {said}")
    packed = {8: "eight", 4: "four"}[bits]
    return Verdict(f"runs: {nbytes / 1e9:.1f} GB in {packed} bits with {positions} tokens", nbytes)
