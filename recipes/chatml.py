"""The small model's chat format: template, tokenizer, and talks as token ids with a loss weight each.

The format is the Qwen3.5 family's (ChatML turns, XML tool calls, results as a user turn) with two simplifications that
suit a small model. It never thinks, so no think block is written, neither in the generation prompt nor in history: a
talk's tokens are append-only. And the tools block lists names only, because the model learnt the tools by heart.
A third change: a space stands before each argument, each result and each of the user's turns, so that a word is the
same tokens in all of them.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from recipes.texts.scene import Talk, TalkTurn
from recipes.texts.talks import make_talk
from recipes.texts.words import Split

SPECIAL: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKUP: Final = (
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
    "<tool_call>\n<function=", ">\n<parameter=", "\n</parameter>\n<parameter=", ">\n</function>\n</tool_call>",
    "\n</parameter>\n</function>\n</tool_call>", "<tool_response>\n", "\n</tool_response>",
)  # fmt: skip
"""Markup that is one token each. The long ones make a tool call about ten tokens, which is what it costs to wait."""

_PIECES: Final = r" ?[a-z]+(?:_[a-z]+)+| ?\p{L}+(?:'\p{L}+)?|\p{N}| ?[^\s\p{L}\p{N}]+\n?|\s+(?!\S)|\s+"
"""Tool names stay whole, digits stand alone, and a space before a digit is its own piece, so a number is always the
same tokens wherever it stands."""

TEMPLATE: Final = """\
{%- set ns = namespace(system='', names=[]) %}
{%- for tool in tools or [] %}
{%- set ns.names = ns.names + [(tool.function or tool).name] %}
{%- endfor %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- if not loop.first %}{{ raise_exception('The system message must come first.') }}{% endif %}
{%- set ns.system = message.content | trim %}
{%- endif %}
{%- endfor %}
{%- if ns.names or ns.system %}
{{- '<|im_start|>system\\n' }}
{%- if ns.names %}{{- '# Tools\\n\\n<tools>\\n' + ns.names | join(' ') + '\\n</tools>' }}{% endif %}
{%- if ns.names and ns.system %}{{- '\\n\\n' }}{% endif %}
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


def call_text(name: str, arguments: dict[str, str]) -> str:
    """A tool call as the model writes it."""
    parameters = "".join(f"<parameter={key}>\n {value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


def parse_call(text: str) -> tuple[str, dict[str, str]] | None:
    """The call in a reply; None if there is none or it is not well formed."""
    match = re.fullmatch(r"<tool_call>\n<function=(\w+)>\n(.*)</function>\n</tool_call>", text, re.DOTALL)
    if not match:
        return None
    found = re.findall(r"<parameter=(\w+)>\n (.*?)\n</parameter>\n", match[2], re.DOTALL)
    rebuilt = call_text(match[1], dict(found))
    return (match[1], dict(found)) if rebuilt == text else None


def turn_text(turn: TalkTurn) -> str:
    """What stands between the turn's header and its end mark."""
    if turn.role == "tool":
        return f"<tool_response>\n {turn.text}\n</tool_response>"
    if turn.role == "user":
        return f" {turn.text}"
    return call_text(*turn.call) if turn.call else turn.text


def system_text(talk: Talk) -> str:
    """The system turn's content: names of the tools, then the persona."""
    tools = f"# Tools\n\n<tools>\n{' '.join(talk.tools)}\n</tools>\n\n" if talk.tools else ""
    return tools + talk.system


def messages(talk: Talk, until: int | None = None) -> list[dict[str, object]]:
    """The talk up to turn `until` as a chat template takes it."""
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
            yield from ("user\n", "assistant\n", f" {' '.join(talk.tools)}", system_text(talk))
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
    """The id of a token that must be there."""
    found = tokenizer.token_to_id(text)
    if found is None:
        raise ValueError(f"the tokenizer has no token {text!r}; it is not one of this recipe's")
    return int(found)


class TalkEncoder:
    """Talks to ids and loss weights."""

    USER, USER_END = 0.08, 0.3
    """Weight of the user's words and of the end of the user's turn, so that its probability means something."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.end = token_id(tokenizer, "<|im_end|>")
        self.pad = token_id(tokenizer, "<|endoftext|>")
        self._heads = {role: self.ids(f"<|im_start|>{role}\n") for role in ("system", "user", "assistant")}
        self._tail = self.ids("\n")
        self._systems: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        encoded: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return encoded

    def system(self, talk: Talk) -> list[int]:
        """The system turn."""
        text = system_text(talk)
        if text not in self._systems:
            self._systems[text] = [*self._heads["system"], *self.ids(text), self.end, *self._tail]
        return self._systems[text]

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
        weights = [0.0] * len(ids)
        for turn in talk.turns:
            more, its = self.turn(turn)
            ids += more
            weights += its
        return ids, weights

    def rows(
        self, rng: random.Random, count: int, length: int, split: Split = "train"
    ) -> tuple[list[list[int]], list[list[float]]]:
        """`count` rows of `length` + 1 ids, each filled with whole talks, the last one broken off."""
        all_ids, all_weights = [], []
        for _ in range(count):
            ids: list[int] = []
            weights: list[float] = []
            while len(ids) <= length:
                more, its = self.talk(make_talk(rng, split, scenes=rng.choice([2, 5, 9, 20, 20, 20]), practice=True))
                ids += more
                weights += its
            all_ids.append(ids[: length + 1])
            all_weights.append(weights[: length + 1])
        return all_ids, all_weights


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
