"""The small model's chat format: template, tokenizer, and talks as token ids with a loss weight each.

The format is the Qwen3.5 family's (ChatML turns, XML tool calls, results as a user turn) with two simplifications that
suit a small model. It never thinks, so no think block is written, neither in the generation prompt nor in history: a
talk's tokens are append-only. And the tools block is short: tools that the model learnt by heart are listed by name, in
one line; every other tool by its purpose and its parameters, in two:

     switch a light on or off
    set_light(room: kitchen, hall;level?: number, in percent)

The purpose comes first, so the tokens of the name come after it. A parameter is followed by its possible values:
a list of them, or `number` or `list` and the first words of its description; `?` marks an optional one. The template
alone decides which tools are known by heart: those with a known name and the parameters of the known tool, all of them
plain text.
A third change: a space precedes each argument, each result and each of the user's turns, so that a word has the same
tokens in all of them; names of tools and parameters never have one, so that they are the same in a call.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from llm_engine.chat import ChatTemplate
from recipes.texts.scene import Declaration, Talk, TalkTurn
from recipes.texts.scenes_declared import declared_talk
from recipes.texts.scenes_written_talks import written_talk
from recipes.texts.talks import make_talk
from recipes.texts.tools import PARAMETERS, specs
from recipes.texts.words import Split

SPECIAL: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKUP: Final = (
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
    "<tool_call>\n<function=", ">\n<parameter=", "\n</parameter>\n<parameter=", ">\n</function>\n</tool_call>",
    "\n</parameter>\n</function>\n</tool_call>", "<tool_response>\n", "\n</tool_response>",
)  # fmt: skip
"""Markup that is one token each. The long ones keep a tool call to about ten tokens, which is the time it costs."""

_PIECES: Final = r" ?[a-z]+(?:_[a-z]+)+| ?\p{L}+(?:'\p{L}+)?|\p{N}| ?[^\s\p{L}\p{N}]+\n?|\s+(?!\S)|\s+"
"""Tool names stay whole, digits are single, and a space before a digit is its own piece, so a number always has the
same tokens."""

_KNOWN: Final = "{" + ", ".join(f"'{name}': '{' '.join(keys)}'" for name, keys in PARAMETERS.items()) + "}"

TEMPLATE: Final = (
    """\
{%- set known = """
    + _KNOWN
    + """ %}
{%- set ns = namespace(system='', names=[], told='') %}
{%- for tool in tools or [] %}
{%- set tool = tool.function or tool %}
{%- set schema = tool.parameters or {} %}
{%- set its = namespace(named=[], shown=[], plain=true) %}
{%- set required = schema.required if schema.required is sequence else [] %}
{%- for key, value in (schema.properties if schema.properties is mapping else {}) | items %}
{%- set key = key if key in required else key + '?' %}
{%- set enum = value.enum if value.enum is sequence and value.enum is not string else [] %}
{%- set words = ((value.description or '') | lower).rstrip('. ').split()[:8] | join(' ') %}
{%- set kind = 'number' if value.type in ['number', 'integer'] else 'list' if value.type == 'array' else '' %}
{%- set free = ([kind] if kind else []) + ([words] if words else []) %}
{%- set options = enum or (['true', 'false'] if value.type == 'boolean' else free) %}
{%- set its.named = its.named + [key] %}
{%- set its.shown = its.shown + [key + (': ' + options | join(', ') if options else '')] %}
{%- set its.plain = its.plain and value.type == 'string' and not enum %}
{%- endfor %}
{%- if its.plain and known.get(tool.name) == its.named | join(' ') %}
{%- set ns.names = ns.names + [tool.name] %}
{%- else %}
{%- set words = ((tool.description or '') | lower).rstrip('. ').split('. ')[0].split()[:16] | join(' ') %}
{%- set ns.told = ns.told + ('\\n ' + words if words else '') %}
{%- set ns.told = ns.told + '\\n' + tool.name + '(' + its.shown | join(';') + ')' %}
{%- endif %}
{%- endfor %}
{%- set block = ((ns.names | join(' ')) + ns.told) %}
{%- set block = block[1:] if block[:1] == '\\n' else block %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- if not loop.first %}{{ raise_exception('The system message must come first.') }}{% endif %}
{%- set ns.system = message.content | trim %}
{%- endif %}
{%- endfor %}
{%- if block or ns.system %}
{{- '<|im_start|>system\\n' }}
{%- if block %}{{- '# Tools\\n\\n<tools>\\n' + block + '\\n</tools>' }}{% endif %}
{%- if block and ns.system %}{{- '\\n\\n' }}{% endif %}
{{- ns.system + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' %}
{{- '<|im_start|>user\\n ' + message.content | trim + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' + (message.content or '') | trim }}
{%- for call in message.tool_calls or [] %}
{%- set call = call.function or call %}
{%- if not loop.first %}{{- '\\n' }}{% elif (message.content or '') | trim %}{{- '\\n\\n' }}{% endif %}
{{- '<tool_call>\\n<function=' + call.name + '>\\n' }}
{%- for key, value in call.arguments | items %}
{{- '<parameter=' + key + '>\\n ' + (value if value is string else value | tojson) + '\\n</parameter>\\n' }}
{%- endfor %}
{{- '</function>\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{%- if loop.first or loop.previtem.role != 'tool' %}{{- '<|im_start|>user' }}{% endif %}
{{- '\\n<tool_response>\\n ' + message.content + '\\n</tool_response>' }}
{%- if loop.last or loop.nextitem.role != 'tool' %}{{- '<|im_end|>\\n' }}{% endif %}
{%- elif message.role != 'system' %}
{{- raise_exception('Unknown role: ' + message.role) }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}
"""
)


def call_text(name: str, arguments: dict[str, str]) -> str:
    """A tool call as the model writes it."""
    parameters = "".join(f"<parameter={key}>\n {value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


def parse_call(text: str) -> tuple[str, dict[str, str]] | None:
    """The call in a reply; None if there is none or it is malformed."""
    match = re.fullmatch(r"<tool_call>\n<function=(\w+)>\n(.*)</function>\n</tool_call>", text, re.DOTALL)
    if not match:
        return None
    found = re.findall(r"<parameter=([^<>\n]+)>\n (.*?)\n</parameter>\n", match[2], re.DOTALL)
    rebuilt = call_text(match[1], dict(found))
    return (match[1], dict(found)) if rebuilt == text else None


def turn_text(turn: TalkTurn) -> str:
    """The text between the turn's header and its end mark."""
    if turn.role == "tool":
        return f"<tool_response>\n {turn.text}\n</tool_response>"
    if turn.role == "user":
        return f" {turn.text}"
    return call_text(*turn.call) if turn.call else turn.text


_LAYOUT: Final = ChatTemplate(TEMPLATE)


def tool_specs(talk: Talk) -> list[dict[str, object]]:
    """The talk's tools in the form that a chat template takes."""
    known = {spec["function"]["name"]: spec for spec in specs()}
    return [known[tool] if isinstance(tool, str) else tool.spec() for tool in talk.tools]


@lru_cache(1024)
def _tools_block(tools: tuple[str | Declaration, ...], system: str) -> str:
    turn = _LAYOUT.render(messages(Talk(system, tools)), tool_specs(Talk(system, tools)), add_generation_prompt=False)
    return turn.removeprefix("<|im_start|>system\n").removesuffix("<|im_end|>\n")


def system_text(talk: Talk) -> str:
    """The system turn's content, as the template writes it: the tools, then the persona."""
    return _tools_block(talk.tools, talk.system)


def messages(talk: Talk, until: int | None = None) -> list[dict[str, object]]:
    """The talk up to turn `until` in the form that a chat template takes."""
    out: list[dict[str, object]] = [{"role": "system", "content": talk.system}]
    for turn in talk.turns[:until]:
        if turn.call:
            call = {"type": "function", "function": {"name": turn.call[0], "arguments": turn.call[1]}}
            out.append({"role": "assistant", "content": "", "tool_calls": [call]})
        else:
            out.append({"role": turn.role, "content": turn.text})
    return out


def train_tokenizer(seed: int = 0, talks: int = 6000, size: int = 2560) -> Tokenizer:
    """Byte-level BPE over generated talks, with the family's markup as whole tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(_PIECES), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    rng = random.Random(f"tokenizer {seed}")

    def texts() -> Iterator[str]:
        for _ in range(talks):
            talk = make_talk(rng)
            names = [tool for tool in talk.tools if isinstance(tool, str)]
            yield from ("user\n", "assistant\n", f" {' '.join(names)}", system_text(talk))
            for turn in talk.turns:
                yield from (f"{key}>\n" for key in (turn.call[1] if turn.call else ()))
                yield from [turn.call[0], *turn.call[1].values()] if turn.call else [turn.text]

    trainer = trainers.BpeTrainer(
        vocab_size=size - len(SPECIAL) - len(MARKUP),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(), trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKUP])
    return tokenizer


def token_id(tokenizer: Tokenizer, text: str) -> int:
    """The id of a token that must exist."""
    found = tokenizer.token_to_id(text)
    if found is None:
        raise ValueError(f"the tokenizer has no token {text!r}; this recipe did not make it")
    return int(found)


class TalkEncoder:
    """Talks to ids and loss weights."""

    USER, USER_END = 0.08, 0.3
    """Weight of the user's words and of the end of the user's turn, so that its probability is meaningful."""
    DECLARED = 0.08
    """Weight of the system turn if tools are declared: a name follows from the text before it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.end = token_id(tokenizer, "<|im_end|>")
        self.pad = token_id(tokenizer, "<|endoftext|>")
        self._heads = {role: self.ids(f"<|im_start|>{role}\n") for role in ("system", "user", "assistant")}
        self._tail = self.ids("\n")
        self._system = lru_cache(1024)(self._system_ids)

    def ids(self, text: str) -> list[int]:
        encoded: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return encoded

    def system(self, talk: Talk) -> list[int]:
        """The system turn."""
        return self._system(system_text(talk))

    def _system_ids(self, text: str) -> list[int]:
        return [*self._heads["system"], *self.ids(text), self.end, *self._tail]

    def prompt(self, talk: Talk, turn: int) -> list[int]:
        """Everything before the reply that is turn `turn`, its header included."""
        out = list(self.system(talk))
        for before in talk.turns[:turn]:
            out += self.turn(before)[0]
        return out + self._heads["assistant"]

    def turn(self, turn: TalkTurn) -> tuple[list[int], list[float]]:
        """One turn with its header and end, and the weights."""
        head = self._heads["assistant" if turn.role == "assistant" else "user"]
        body = self.ids(turn_text(turn))
        inner, end = {"user": (self.USER, self.USER_END), "assistant": (1.0, 1.0), "tool": (0.0, 0.0)}[turn.role]
        if turn.cut:
            end = 0.0  # the user ended it, not the model
        weights = [0.0] * len(head) + [inner] * len(body) + [end] + [0.0] * len(self._tail)
        return [*head, *body, self.end, *self._tail], weights

    def talk(self, talk: Talk) -> tuple[list[int], list[float]]:
        """Ids, and for each the weight of predicting it."""
        ids = list(self.system(talk))
        weights = [0.0 if all(isinstance(tool, str) for tool in talk.tools) else self.DECLARED] * len(ids)
        for turn in talk.turns:
            more, its = self.turn(turn)
            ids += more
            weights += its
        return ids, weights

    def step(
        self,
        rng: random.Random,
        tokens: int,
        length: int,
        split: Split = "train",
        declared: float = 0.0,
        written: float = 0.0,
    ) -> list[tuple[list[int], list[float]]]:
        """Whole talks, each on its own as in use, until they have `tokens` together; one longer than `length`
        is cut off there. `declared`: share of talks with tools that have to be read, `written`: share of those whose
        lines were made up by hand."""
        out: list[tuple[list[int], list[float]]] = []
        while sum(len(ids) for ids, _ in out) < tokens:
            if declared and rng.random() < declared:
                talk = declared_talk(rng, split, practice=True)
            elif written and rng.random() < written / (1 - declared):
                talk = written_talk(rng, split, practice=True)
            else:
                talk = make_talk(rng, split, scenes=rng.choice([1, 2, 4, 7, 12, 20]), practice=True)
            ids, weights = self.talk(talk)
            out.append((ids[: length + 1], weights[: length + 1]))
        return out


def tokenizer_config() -> str:
    """tokenizer_config.json, for transformers."""
    return json.dumps(
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "add_bos_token": False,
            "clean_up_tokenization_spaces": False,
            "model_max_length": 4096,
        },
        indent=2,
    )
