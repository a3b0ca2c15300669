"""Random engines in the published layouts, small enough for every test, with a chat format one character a token."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from assistant.llm.chat_layout import find_layout
from assistant.llm.language import Language
from llm_engine.callguide import CallGuide
from llm_engine.config import FULL, LINEAR, LLMConfig
from llm_engine.model import init_params
from llm_engine.toolcalls import ParsedCall
from llm_engine.vision_config import VisionConfig
from llm_engine.vision_weights import tower_parts
from llm_engine.weights import save_checkpoint

SPECIALS = {
    "<|im_start|>": 130, "<|im_end|>": 131, "<think>": 132, "</think>": 133,
    "<|vision_start|>": 134, "<|image_pad|>": 135, "<|vision_end|>": 136,
}  # fmt: skip
NAMES = {number: name for name, number in SPECIALS.items()}
_PARTS = re.compile("(" + "|".join(re.escape(name) for name in SPECIALS) + ")")


def write_llm(folder: Path, seed: int = 1) -> Path:
    """A hybrid model with a vocabulary of 160; loud enough that its greedy text is not one letter for ever."""
    config = LLMConfig(
        vocab_size=160, hidden_size=48, intermediate_size=80, layer_types=(LINEAR, LINEAR, LINEAR, FULL),
        num_attention_heads=6, num_key_value_heads=2, head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=16, linear_value_head_dim=16,
    )  # fmt: skip
    params = init_params(config, torch.Generator().manual_seed(seed), deviation=0.3)
    save_checkpoint(folder, config, params)
    (folder / "generation_config.json").write_text('{"eos_token_id": [131]}')
    return folder


def write_plain_llm(folder: Path, seed: int = 1) -> Path:
    """The same as a plain decoder."""
    raw = {
        "model_type": "llama", "vocab_size": 160, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3,
        "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True,
    }  # fmt: skip
    params = init_params(LLMConfig.parse(raw), torch.Generator().manual_seed(seed), deviation=0.3)
    save_file(params, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(raw))
    (folder / "generation_config.json").write_text('{"eos_token_id": [131]}')
    return folder


def write_seeing_llm(folder: Path, seed: int = 1) -> Path:
    """The same with a vision tower, for pictures of 4 rows and more."""
    write_llm(folder, seed)
    raw = json.loads((folder / "config.json").read_text())
    tower = {
        "depth": 2, "hidden_size": 48, "num_heads": 4, "intermediate_size": 72, "out_hidden_size": 48,
        "num_position_embeddings": 36,
    }  # fmt: skip
    raw |= {"vision_config": tower, "image_token_id": SPECIALS["<|image_pad|>"]}
    (folder / "config.json").write_text(json.dumps(raw))
    size = {"shortest_edge": 4096, "longest_edge": 65_536}
    (folder / "preprocessor_config.json").write_text(json.dumps({"size": size, "patch_size": 16}))
    generator = torch.Generator().manual_seed(seed)
    tensors = load_file(folder / "model.safetensors")
    for part in tower_parts(VisionConfig.parse(tower, {})):
        shape = (part.shape[0], 3, 2, 16, 16) if part.name == "patch" else part.shape
        tensors[f"model.visual.{part.source}"] = torch.randn(shape, generator=generator) * 0.3
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def render(messages: list[dict[str, Any]], tools: list[dict[str, Any]], add_generation_prompt: bool) -> str:
    """ChatML as the family writes it, thinking off, earlier replies without their empty block."""
    out = ""
    head = messages[0]["content"] if messages and messages[0]["role"] == "system" else ""
    if head or tools:
        names = " ".join(tool["function"]["name"] for tool in tools)
        out += f"<|im_start|>system\n{names}{head}<|im_end|>\n"
    for message in messages:
        role = message["role"]
        if role == "tool":
            out += f"<|im_start|>user\n[{message['content']}]<|im_end|>\n"
        elif role != "system":
            calls = "".join(f"({call['function']['name']})" for call in message.get("tool_calls", []))
            out += f"<|im_start|>{role}\n{_content(message['content'])}{calls}<|im_end|>\n"
    return out + ("<|im_start|>assistant\n<think>\n\n</think>\n\n" if add_generation_prompt else "")


def _content(content: str | list[dict[str, str]]) -> str:
    if isinstance(content, str):
        return content
    mark = "<|vision_start|><|image_pad|><|vision_end|>"
    return "".join(mark if part["type"] == "image" else part["text"] for part in content)


def encode(text: str) -> list[int]:
    ids: list[int] = []
    for part in _PARTS.split(text):
        ids += [SPECIALS[part]] if part in SPECIALS else [ord(letter) % 128 for letter in part]
    return ids


class Letters:
    """Tokens to text."""

    def push(self, token: int) -> str:
        return chr(token) if 32 <= token < 127 else "."

    def finish(self) -> str:
        return ""


class Braces:
    """`{` begins and ends a call of the tool `look`: enough to see calls come out of the stream."""

    def push(self, text: str) -> list[Any]:
        return [ParsedCall("look", {}) if part == "{" else part for part in re.split(r"(\{)", text) if part]

    def finish(self) -> list[Any]:
        return []


def language(calls: bool = False) -> Language:
    class Plain(Braces):
        def push(self, text: str) -> list[Any]:
            return [text] if text else []

    stream = Braces if calls else Plain
    free = CallGuide({}, "", encode)
    return Language(
        find_layout(render), encode, Letters, lambda prompt: stream(), lambda prompt, ahead: free, frozenset([131])
    )
