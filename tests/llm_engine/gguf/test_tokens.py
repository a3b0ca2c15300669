"""Tokens of mixed texts against llama.cpp on the same file, for every way of cutting a text; template and ends."""

from pathlib import Path

import gguf
import pytest
import torch

from llm_engine.chat import Chat, ChatTemplate
from llm_engine.endings import declared, end_of_turn
from llm_engine.errors import TextError
from llm_engine.gguf.container import GgufFile
from llm_engine.gguf.tokens import template_of, tokenizer_of
from llm_engine.tokenizer import TextTokenizer
from tests.fakes.gguf_files import write_decoder
from tests.fakes.llama_cpp import LlamaCpp
from tests.fakes.smollm import smollm
from tests.house import ROOT

TEXTS = [
    "", " ", "a", "Hello, world!", "It's 12345 o'clock, isn't it? WE'LL see; they'Ve gone.", "3.14159 and 1,000,000",
    "  two  spaces   and\ttabs\t\t", "line\nbreaks\r\n\r\nand\n\n\n  indents", "größe, naïve, façade, Ångström",
    "日本語のテキストと中文", "Привет, мир! Как дела?", "مرحبا بالعالم", "हिन्दी में लिखा", "ไทย ภาษา",
    "🎉🚀 emoji 👨‍👩‍👧 family",
    "camelCaseAndUPPERCase HTTPServer iPhone", "def f(x):\n    return x ** 2  # comment\n", "a/b/c.txt //path\n/next",
    "½ ² ③ Ⅷ ٣ 七", "¡Hola! ¿Qué tal? «oui» “quotes” — dash…", "<|im_start|>user\nHi<|im_end|>\n<|endoftext|>",
    "<|im_start|<|im_end|>|>", "x" * 300, "ab " * 90, "\u00a0nbsp\u2003em space", "'s 'S 't 'RE 'x",
    "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", "e\u0301 is composed", "\u200bzero width\u200d",
    "_snake_case_ __init__",
]  # fmt: skip
COMPOSED = "e\u0301 is composed"
"""Qwen's own tokenizers compose letters first; llama.cpp does not, and gives the model tokens that it never learnt."""


@pytest.mark.parametrize("pre", ["smollm", "llama-bpe", "qwen2", "qwen35", "tekken"])
def test_tokens_are_those_of_llama_cpp(tmp_path: Path, pre: str) -> None:
    path = tmp_path / "random.gguf"
    write_decoder(path, pre=pre)
    ours, theirs = TextTokenizer.load(path), LlamaCpp(path)
    texts = [text for text in TEXTS if not (pre.startswith("qwen") and text == COMPOSED)]
    texts += (ROOT / "README.md").read_text("utf-8").split("\n\n")
    for text in texts:
        assert ours.encode(text) == theirs.encode(text), text
        if not pre.startswith("qwen"):
            assert ours.decode(ours.encode(text), skip_special=False) == text
    theirs.close()


@pytest.mark.slow
def test_tokens_of_a_published_model_are_those_of_llama_cpp() -> None:
    ours, theirs = TextTokenizer.load(smollm()), LlamaCpp(smollm())
    for text in [*TEXTS, *(ROOT / "docs" / "architecture.md").read_text("utf-8").split("\n\n")]:
        assert ours.encode(text) == theirs.encode(text), text
        assert ours.decode(ours.encode(text), skip_special=False) == text
    theirs.close()


def held(**changes: object) -> GgufFile:
    metadata: dict[str, object] = {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.ggml.tokens": ["a", "b", "ab", "<|begin_of_text|>", "<|eot_id|>", "<mark>"],
        "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.token_type": [1, 1, 1, 3, 3, 4],
        "tokenizer.ggml.bos_token_id": 3, "tokenizer.ggml.eos_token_id": 4,
        "tokenizer.chat_template": "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}",
    }  # fmt: skip
    return GgufFile(Path("some.gguf"), metadata | changes, {}, torch.zeros(0, dtype=torch.uint8))


def test_special_tokens_are_found_before_the_text_is_cut() -> None:
    tokenizer = TextTokenizer(tokenizer_of(held()))
    assert tokenizer.encode("ab<|eot_id|>b<mark>a") == [2, 4, 1, 5, 0]
    assert tokenizer.decode([2, 4, 1, 5, 0]) == "abb<mark>a"
    assert tokenizer.stops() == {4}


def test_the_template_may_write_begin_and_end() -> None:
    template = ChatTemplate(*template_of(held()))
    assert template.render([{"role": "user", "content": "x"}]) == "<|begin_of_text|>x<|eot_id|>"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tokenizer.ggml.model": "llama"}, "tokenizer 'llama' is not implemented; gpt2"),
        ({"tokenizer.ggml.pre": "deepseek-v3"}, "pre-tokenizer 'deepseek-v3' is not implemented; smollm, llama-bpe"),
        ({"tokenizer.ggml.tokens": []}, r"no tokenizer\.ggml\.tokens"),
        ({"tokenizer.ggml.merges": ["a zz"]}, "no tokenizer"),
        ({"tokenizer.ggml.merges": ["azz"]}, "no tokenizer"),
    ],
)
def test_what_is_not_known_is_named(changes: dict[str, object], said: str) -> None:
    with pytest.raises(TextError, match=rf"some\.gguf.*{said}"):
        tokenizer_of(held(**changes))


def test_a_file_without_a_template_is_no_model_to_talk_to() -> None:
    with pytest.raises(TextError, match="instruct version"):
        template_of(held(**{"tokenizer.chat_template": None}))


def test_a_file_says_what_ends_a_turn(tmp_path: Path) -> None:
    path = tmp_path / "random.gguf"
    write_decoder(path)
    chat = Chat.load(path)
    ends = declared(path)
    assert len(ends) == 1 and end_of_turn(path) == ends[0]
    assert set(ends) <= chat.tokenizer.stops()
    assert chat.tokenizer.decode(ends, skip_special=False) == "<|im_end|>"
    assert gguf.GGUFReader(path).fields["tokenizer.ggml.eos_token_id"].contents() == ends[0]
