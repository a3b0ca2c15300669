"""Tokenizer, text stream and chat template against the tokenizers library and transformers."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from llm_engine.chat import Chat, ChatTemplate
from llm_engine.errors import TextError
from llm_engine.textcut import StopStrings
from llm_engine.tokenizer import TextTokenizer

# The turn structure of the family with the think block written only after the last real user query, as Qwen3.5 does.
TEMPLATE = """\
{%- macro tools_block() %}{%- if tools %}
{{- '# Tools\\n\\n<tools>' }}{%- for tool in tools %}{{- '\\n' + tool | tojson }}{%- endfor %}{{- '\\n</tools>' }}
{%- endif %}{%- endmacro %}
{%- if not messages %}{{ raise_exception('No messages provided.') }}{% endif %}
{%- set ns = namespace(last=-1) %}
{%- for message in messages %}{%- if message.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}
{%- if ns.last < 0 %}{{ raise_exception('No user query found.') }}{% endif %}
{%- if tools or messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + tools_block() }}
{%- if tools and messages[0].role == 'system' %}{{- '\\n\\n' }}{%- endif %}
{%- if messages[0].role == 'system' %}{{- messages[0].content | trim }}{%- endif %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'system' %}{%- if not loop.first %}{{ raise_exception('System must come first.') }}{% endif %}
{%- elif message.role == 'user' %}{{- '<|im_start|>user\\n' + message.content | trim + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}{{- '<|im_start|>assistant\\n' }}
{%- if loop.index0 > ns.last %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{{- message.content | trim + '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{%- if loop.first or loop.previtem.role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{%- if loop.last or loop.nextitem.role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking %}{{- '<think>\\n' }}
{%- else %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}
"""
TOOLS = [{"type": "function", "function": {"name": "get_time", "parameters": {"zone": "<b>&'\"é"}}}]
SYSTEM = {"role": "system", "content": "You are Ada. "}
HELLO = {"role": "user", "content": "  Hello, naïve 世界 🙂! "}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint's text side: byte-level BPE with the family's markup, and the template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(["the user said hello and the assistant answered the user naïve"] * 9, trainer)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in ("<think>", "</think>")])
    path = tmp_path_factory.mktemp("text")
    tokenizer.save(str(path / "tokenizer.json"))
    (path / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def chat(folder: Path) -> Chat:
    return Chat.load(folder)


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("tools", [[], TOOLS], ids=["plain", "tools"])
@pytest.mark.parametrize(
    "messages",
    [
        [HELLO],
        [SYSTEM, HELLO],
        [SYSTEM, HELLO, {"role": "assistant", "content": " Hi "}, HELLO],
        [HELLO, {"role": "assistant", "content": ""}, *({"role": "tool", "content": c} for c in "12")],
    ],
)
def test_rendering_is_transformers_own(
    folder: Path, chat: Chat, messages: list[Any], tools: list[Any], thinking: bool
) -> None:
    from transformers import PreTrainedTokenizerFast

    oracle = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), chat_template=TEMPLATE)
    expected = oracle.apply_chat_template(
        messages, tools=tools or None, add_generation_prompt=True, tokenize=False, enable_thinking=thinking
    )
    assert chat.template.render(messages, tools, thinking=thinking) == expected
    assert chat.tokenizer.encode(expected) == oracle(expected, add_special_tokens=False)["input_ids"]


def test_thinking_is_off_by_default(chat: Chat) -> None:
    assert chat.template.render([HELLO]).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_refusals_keep_the_templates_own_words(chat: Chat, tmp_path: Path) -> None:
    with pytest.raises(TextError, match="No user query found"):
        chat.template.render([SYSTEM])
    with pytest.raises(TextError, match="System must come first"):
        chat.template.render([HELLO, SYSTEM])
    with pytest.raises(TextError, match="no valid Jinja"):
        ChatTemplate("{% if %}")
    with pytest.raises(TextError, match="chat_template"):
        ChatTemplate.load(tmp_path)
    with pytest.raises(TextError, match=r"tokenizer\.json"):
        TextTokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(TextError, match="not a tokenizer"):
        TextTokenizer.load(tmp_path)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{% for i in range(10000000) %}{% endfor %}",
    ],
)
def test_a_template_cannot_leave_the_sandbox(source: str) -> None:
    with pytest.raises(TextError):
        ChatTemplate(source).render([HELLO])


def test_a_template_in_the_tokenizer_config_is_found(folder: Path, tmp_path: Path) -> None:
    for value in (TEMPLATE, [{"name": "default", "template": TEMPLATE}]):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": value}))
        assert ChatTemplate.load(tmp_path).render([HELLO]) == ChatTemplate.load(folder).render([HELLO])


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=40))
def test_streamed_text_is_the_text(chat: Chat, text: str) -> None:
    stream = chat.tokenizer.stream(skip_special=False)
    pieces = [stream.push(token) for token in chat.tokenizer.encode(text)]
    assert all("�" not in piece for piece in pieces) or "�" in text
    assert "".join(pieces) + stream.finish() == chat.tokenizer.decode(chat.tokenizer.encode(text), False)


@settings(max_examples=100, deadline=None)
@given(ids=st.lists(st.integers(0, 380), max_size=60))
def test_any_ids_stream_to_what_decoding_them_at_once_gives(chat: Chat, ids: list[int]) -> None:
    stream = chat.tokenizer.stream()
    streamed = "".join(stream.push(token) for token in ids) + stream.finish()
    assert streamed.replace("�", "") == chat.tokenizer.decode(ids).replace("�", "")


def test_special_tokens_are_not_shown_and_markup_is(chat: Chat) -> None:
    ids = chat.tokenizer.encode("<think>a</think><|im_end|>")
    stream = chat.tokenizer.stream()
    assert "".join(map(stream.push, ids)) == "<think>a</think>"
    assert chat.tokenizer.stops() == {*ids[-1:], *chat.tokenizer.encode("<|endoftext|>")}


@given(text=st.text(alphabet="abS TOP", max_size=30), cuts=st.lists(st.integers(0, 30), max_size=5))
def test_stop_strings_do_not_depend_on_the_cuts(text: str, cuts: list[int]) -> None:
    stops = ["STOP", "TOB", "ab"]
    hits = [at for at in (text.find(stop) for stop in stops) if at >= 0]
    expected = text[: min(hits)] if hits else text
    filter_ = StopStrings(stops)
    edges = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    got = "".join(filter_.push(text[a:b]) for a, b in pairwise(edges))
    assert got + filter_.finish() == expected
    assert filter_.stopped == bool(hits)
