"""Judges a language model's replies: makes each from the true history, and decides if it is right or garbled."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from assistant.contracts import Line, Prompt, ToolCall
from assistant.events import ToolSpec
from assistant.llm.small import SmallMind
from capsules import ExecContext
from llm_engine import HybridLLM, Sampling
from llm_engine.model import forward_train
from recipes.chatml import TalkEncoder, parse_call, tool_specs, turn_text
from recipes.texts import smalltalk
from recipes.texts.phrases import PHRASES
from recipes.texts.scene import Talk, TalkTurn
from recipes.texts.slots import turned
from recipes.texts.words import WORDS, dictionary


def prompt_of(talk: Talk, turn: int) -> Prompt:
    """The assistant's prompt for the reply that is turn `turn`."""
    functions: list[Any] = [spec["function"] for spec in tool_specs(talk)]
    tools = [ToolSpec(its["name"], its.get("description", ""), its["parameters"]) for its in functions]
    lines = []
    for number, before in enumerate(talk.turns[:turn]):
        calls = (ToolCall(str(number), before.call[0], json.dumps(before.call[1])),) if before.call else ()
        lines.append(Line(before.role, "" if before.call else before.text, calls))
    return Prompt(talk.system, tuple(tools), tuple(lines))


class ReplyJudge:
    """Asks the model for every reply of a talk, each from the true history.

    One pass over the whole talk shows where the model's most likely tokens are those of the right reply: there it would
    have said exactly that. Only where they differ does the engine make the reply.
    """

    def __init__(self, path: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        self.encoder = TalkEncoder(self.tokenizer)
        self.llm = HybridLLM.load(path, ExecContext("cpu"), dtype="float32", max_positions=2048)
        self._params = {name: p.float() for name, p in load_file(path / "model.safetensors").items()}
        self._language = SmallMind(path).language()
        self.tokens, self.seconds = 0, 0.0

    def replies(self, talk: Talk) -> Iterator[tuple[TalkTurn, str]]:
        """Every reply's turn, and the model's own reply in its place; `…` at its end if it finds none."""
        ids, _ = self.encoder.talk(talk)
        if len(ids) > 1900:
            return
        with torch.inference_mode():
            logits = forward_train(self.llm.config, self._params, torch.tensor([ids]))[0]
        likely = logits.argmax(-1).tolist()
        for index, turn in enumerate(talk.turns):
            if turn.role != "assistant" or turn.cut:
                continue
            wanted = [*self.encoder.ids(turn_text(turn)), self.encoder.end]
            start = len(self.encoder.prompt(talk, index)) - 1
            told = likely[start : start + len(wanted)] == wanted
            if told and self._may_say(talk, index, wanted, logits[start:]):
                yield turn, turn_text(turn)
            else:
                yield turn, self.reply(talk, index)

    def _may_say(self, talk: Talk, turn: int, wanted: Sequence[int], logits: torch.Tensor) -> bool:
        """Whether the assistant would let the model say its own choice, which `logits` [T, V] show."""
        at = 0

        def ahead(ids: Sequence[int]) -> Sequence[float]:
            if [*ids] != [*wanted[at : at + len(ids)]]:
                raise LookupError  # what it would say behind other tokens is not known here
            chances: Sequence[float] = logits[at + len(ids)].softmax(-1).tolist()
            return chances

        try:
            guide = self._language.guide(prompt_of(talk, turn), ahead)
            for at, token in enumerate(wanted):  # noqa: B007 (the guide asks for it)
                if (among := guide.among()) and token not in among:
                    return False
                guide.push(token, self.tokenizer.decode([token], skip_special_tokens=False))
        except LookupError:
            return False
        return True

    def _ahead(self, ids: Sequence[int]) -> Sequence[float]:
        begin = self.llm.position
        self.llm.catch_up()
        if ids:
            self.llm.append(ids)
        chances: Sequence[float] = self.llm.logits.softmax(-1).tolist()
        if ids:
            self.llm.rollback(begin)
        return chances

    def reply(self, talk: Talk, turn: int) -> str:
        """The reply under the assistant's rules: words that it knows or heard, and only calls that the request may
        mean."""
        self.llm.reset()
        self.llm.append(self.encoder.prompt(talk, turn))
        self.llm.set_sampling(Sampling.greedy())
        started, asked = time.process_time(), prompt_of(talk, turn)
        guide, ids = self._language.guide(asked, self._ahead), list[int]()
        while len(ids) < 160 and ids[-1:] != [self.encoder.end]:
            ids.append(self.llm.step(guide.among()))
            guide.push(ids[-1], self.tokenizer.decode(ids[-1:], skip_special_tokens=False))
        self.seconds += time.process_time() - started
        self.tokens += len(ids)
        ended = bool(ids) and ids[-1] == self.encoder.end
        return self.tokenizer.decode(ids[:-1] if ended else ids, skip_special_tokens=False) + ("" if ended else " …")


def is_right(turn: TalkTurn, said: str) -> bool:
    """Whether a reply counts as right."""
    if turn.call:
        return parse_call(said) == (turn.call[0], turn.call[1])
    if turn.kind.startswith("story") and turn.kind[-1] in "123":
        ends = said.endswith(turn.text.rsplit(". ", 1)[-1])
        return ends and any(f" {hero} " in said for hero in turn.accept) and "<" not in said
    if turn.kind == "story taken up":
        return any(said.split(" ")[:4] == way.split(" ")[:4] for way in turn.accept) and "<" not in said
    if turn.kind == "refusal in own words":
        return said.startswith(REFUSING) and any(name in said.lower() for name in turn.accept)
    return said in turn.accept


REFUSING: Final = ("I cannot ", "I am too small ", "I do not know ", "I have no ")
_PLACE: Final = re.compile(r"\\{(?:this|about)\\}")


def refused(said: str, wanted: str, asked: str) -> bool:
    """Whether a refusal is as right as the `wanted` one: of the same kind, and naming what was `asked`."""
    heard = turned(asked.lower())
    for ways in _refusals():
        if any(way.fullmatch(wanted) for way in ways):
            found = [match for way in ways if (match := way.fullmatch(said))]
            if any(all(turned(part.lower()) in heard for part in match.groups()) for match in found):
                return True
    return False


@cache
def _refusals() -> tuple[tuple[re.Pattern[str], ...], ...]:
    """The acceptable replies for each kind of refused request."""
    pairs = (*smalltalk.OUT_OF_REACH, *smalltalk.KNOWLEDGE)
    return tuple(
        tuple(re.compile(_PLACE.sub("(.+)", re.escape(way))) for way in smalltalk.as_right(replies))
        for _, replies in pairs
    )


def names_it(said: str, talk: str) -> bool:
    """Whether a refusal names the thing it refuses: the one asked for, or its kind (music, the weather)."""
    part = re.match(
        r"I cannot (?:look up )?(.+?)(?:, because|\.)|I am too small to know about (.+?)\.|I do not know (.+?),", said
    )
    if not part:
        return said.startswith(("I have no", "I speak English only"))
    named = next(group for group in part.groups() if group)
    if named in ("do that", "look that up"):
        return False
    return turned(named.lower()) in turned(talk.lower()) or said in _kinds()


def names_thing(said: str, wanted: str, asked: str) -> bool:
    """Whether a refusal for lack of a tool names the thing of the `wanted` one, with or without further words that were
    `asked`: `the bathroom dryers` for `the dryers`."""
    ours, theirs = (_NO_TOOL.fullmatch(text) for text in (said, wanted))
    if not ours or not theirs:
        return False
    named = f" {ours[1].lower()} "
    return f" {theirs[1].lower()} " in named and named.strip() in asked.lower()


_NO_TOOL: Final = re.compile(r"I have no tool for (?:the |an? )?(.+)\.")


@cache
def _kinds() -> frozenset[str]:
    """The fixed refusals that name their kind of thing."""
    pairs = (*smalltalk.OUT_OF_REACH, *smalltalk.KNOWLEDGE)
    return frozenset(way for _, replies in pairs for way in replies if "{" not in way)


@cache
def english() -> frozenset[str]:
    """Existing words: the pronouncing dictionary's and the texts' own."""
    texts = [line for lines in PHRASES.values() for line in lines]
    texts += [text for pairs in smalltalk.ALL for lines, replies in pairs for text in (*lines, *replies)]
    texts += [*smalltalk.JOKES, *smalltalk.FACTS, *smalltalk.POEMS]
    texts += [value for values in WORDS.values() for value in values]
    own = {word for text in texts for word in re.findall(r"[a-z]+", text.lower())}
    return frozenset(own | {*dictionary("train"), *dictionary("test")})


def garbled(said: str, before: str) -> bool:
    """Whether a reply is empty, does not end, is a broken call or one with markup or underscores in a value, or has a
    word that neither exists nor appeared `before`."""
    if not said.strip() or said.endswith("…"):
        return True
    if "<" in said:
        call = parse_call(said)
        return call is None or any(re.search("[<>]|__", value) for value in call[1].values())
    heard = set(re.findall(r"[a-z]+", before.lower()))
    long_words = [word for word in re.findall(r"[a-z]+", said.lower()) if 3 <= len(word) <= 9]
    return any(word not in heard and word not in english() for word in long_words)


def wanted_turn(text: str) -> TalkTurn:
    """The right side of a line of `own_worded.txt` as the wanted turn."""
    if text == "joke":
        return TalkTurn("assistant", smalltalk.JOKES[0], kind="joke", accept=smalltalk.JOKES)
    if text.startswith("story "):
        return TalkTurn("assistant", "Shall I go on?", kind="story 1", accept=(text.removeprefix("story "),))
    if text.startswith("refuse "):
        return TalkTurn("assistant", "", kind="refusal in own words", accept=tuple(text[7:].split("|")))
    if text.startswith('"'):
        replies = tuple(text.strip('"').split("|"))
        return TalkTurn("assistant", replies[0], kind="own words", accept=replies)
    tool, _, given = text.partition(" ")
    arguments = {key: value for key, _, value in (pair.partition("=") for pair in given.split("; ") if pair)}
    return TalkTurn("assistant", "", (tool, arguments), kind="own words")
