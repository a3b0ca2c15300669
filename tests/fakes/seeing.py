"""A small random model that sees, in the published layout, files and all: what a person's own checkpoint looks like."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from llm_engine.config import FULL, LINEAR, LLMConfig
from llm_engine.model import init_params
from llm_engine.vision_config import VisionConfig
from llm_engine.vision_weights import tower_parts
from llm_engine.weights import save_checkpoint

TINY = Path(__file__).parents[2] / "llm_engine" / "tiny"
WORDS = 2544
"""Tokens of the shipped tokenizer that are text; behind them stands its markup."""
MARKS = {"<|vision_start|>": 2560, "<|image_pad|>": 2561, "<|vision_end|>": 2562}
END = 2546
OFTEN = 2.5
"""How much longer than others the row is that ends a reply: it wins once in some fifteen tokens."""
TEMPLATE = """\
{%- macro said(content) %}{% if content is string %}{{ content }}{% else %}{% for part in content %}
{%- if part.type == 'image' %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}{% else %}{{ part.text }}{% endif %}
{%- endfor %}{% endif %}{% endmacro %}
{%- for message in messages %}
{%- set role = 'user' if message.role == 'tool' else message.role %}
{{- '<|im_start|>' + role + '\\n' + said(message.content) | trim + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}{% endif %}"""
TOWER = {
    "model_type": "qwen3_5", "depth": 2, "hidden_size": 48, "num_heads": 4, "intermediate_size": 72,
    "out_hidden_size": 48, "num_position_embeddings": 36,
}  # fmt: skip


def write_published_llm(folder: Path, seed: int = 3) -> Path:
    """Text and tower under the published names, tokenizer, chat format, sizes of pictures. Its words mean nothing."""
    generator = torch.Generator().manual_seed(seed)
    config = LLMConfig(
        vocab_size=2576, hidden_size=48, intermediate_size=80, layer_types=(LINEAR, LINEAR, LINEAR, FULL),
        num_attention_heads=6, num_key_value_heads=2, head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=16, linear_value_head_dim=16, tie_word_embeddings=True,
    )  # fmt: skip
    save_checkpoint(folder, config, init_params(config, generator, deviation=0.3))
    text = load_file(folder / "model.safetensors")
    rows = text["model.embed_tokens.weight"]
    rows[WORDS:] = 0  # markup is never the likeliest
    rows[END] = torch.randn(48, generator=generator) * 0.3 * OFTEN
    tensors = {name.replace("model.", "model.language_model.", 1): tensor for name, tensor in text.items()}
    for part in tower_parts(VisionConfig.parse(TOWER, {})):
        shape = (part.shape[0], 3, 2, 16, 16) if part.name == "patch" else part.shape
        tensors[f"model.visual.{part.source}"] = torch.randn(shape, generator=generator) * 0.3
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    _write_configs(folder)
    _write_text(folder)
    return folder


def _write_configs(folder: Path) -> None:
    path = folder / "config.json"
    whole = {
        "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
        "text_config": json.loads(path.read_text()), "vision_config": TOWER, "tie_word_embeddings": True,
        "image_token_id": MARKS["<|image_pad|>"], "vision_start_token_id": MARKS["<|vision_start|>"],
        "vision_end_token_id": MARKS["<|vision_end|>"],
    }  # fmt: skip
    path.write_text(json.dumps(whole))
    size = {"shortest_edge": 4096, "longest_edge": 65_536}
    (folder / "preprocessor_config.json").write_text(json.dumps({"size": size, "patch_size": 16, "merge_size": 2}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [END]}))


def _write_text(folder: Path) -> None:
    tokenizer = json.loads((TINY / "tokenizer.json").read_text("utf-8"))
    like = tokenizer["added_tokens"][0]
    tokenizer["added_tokens"] += [like | {"id": i, "content": mark} for mark, i in MARKS.items()]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
