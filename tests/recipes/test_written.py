"""Talks from lines that writers made up: what is told comes back, calls take what was said, topics are held out."""

import random
import re

import pytest
from tokenizers import Tokenizer

from assistant.llm.small.reading import for_small_model
from assistant.text.written import as_written
from recipes.chatml import TalkEncoder
from recipes.llm import TINY
from recipes.texts.scene import Talk
from recipes.texts.scenes_recalled import RECALL
from recipes.texts.scenes_written import NOT_TOLD, told_talk, tool_sets, tools_talk, topics
from recipes.texts.tools import TOOL_NAMES
from recipes.texts.words import Split

SPLITS: tuple[Split, ...] = ("train", "test")


@pytest.fixture(scope="module")
def told() -> list[Talk]:
    return [told_talk(random.Random(seed), split, practice=True) for split in SPLITS for seed in range(100)]


@pytest.fixture(scope="module")
def offered() -> list[Talk]:
    return [tools_talk(random.Random(seed), split, practice=True) for split in SPLITS for seed in range(150)]


def test_whole_topics_and_sets_are_held_out() -> None:
    kept, held = ({topic.told for topic in topics(split)} for split in SPLITS)
    assert len(kept) > 400 and len(held) > 40 and not kept & held
    sets, others = ({tools.name for tools in tool_sets(split)} for split in SPLITS)
    assert len(sets) > 300 and len(others) > 30 and not sets & others


def test_lines_are_spoken_words_as_the_assistant_hands_them_on() -> None:
    lines = [line for split in SPLITS for topic in topics(split) for line in topic.told + topic.asked + topic.never]
    tools = [tool for split in SPLITS for tools in tool_sets(split) for tool in tools.tools.values()]
    lines += [line for tool in tools for line in tool.do + tool.ask]
    lines += [re.sub("[<>]", "", line) for split in SPLITS for tools in tool_sets(split) for line in tools.none]
    plain = {" ".join(re.sub(r"\{\w+=\w+\}", "", re.sub(r"\{\w+\}", "it", line)).split()) for line in lines}
    assert len(plain) > 20000 and not [line for line in plain if not re.fullmatch(r"[a-z' -]+", line)]
    words = {word for line in plain for word in line.split() if re.fullmatch(r"[a-z'-]+", word)}
    heard = {word: for_small_model(f"say {word} now") for word in words}
    assert {w: h for w, h in heard.items() if h not in (as_written(f"say {w} now"), "say now")} == {}


def test_every_slot_has_values_and_every_request_its_parameters() -> None:
    for split in SPLITS:
        for topic in topics(split):
            assert {*re.findall(r"\{(\w+)\}", " ".join(topic.told))} == topic.slots.keys()
            assert not re.search("[{}]", " ".join(topic.asked + topic.never))
        for tools in tool_sets(split):
            for name, tool in tools.tools.items():
                required = {key for key, slot in tool.slots.items() if slot.required}
                assert name not in TOOL_NAMES and tool.do
                for line in tool.do + tool.ask:
                    given = {*re.findall(r"\{(\w+)", line)}
                    assert given <= tool.slots.keys() and (required <= given) == (line in tool.do), line


def test_what_is_asked_for_was_told_or_is_said_not_to_be(told: list[Talk]) -> None:
    seen = {RECALL: 0, "recall: never told": 0}
    for talk in told:
        lines = [turn.text.rstrip(".?!") for turn in talk.turns if turn.role == "user"]
        for at, turn in enumerate(talk.turns):
            if turn.text.startswith("You said: ") and turn.kind == RECALL:
                assert turn.text.removeprefix("You said: ").removesuffix(".") in lines
            if turn.kind in seen and talk.turns[at - 1].role == "user":
                seen[turn.kind] += 1
            assert turn.kind != "recall: never told" or turn.text == NOT_TOLD
    assert min(seen.values()) > 50, seen


def test_calls_take_what_was_said_and_what_is_missing_is_asked_for(offered: list[Talk]) -> None:
    calls = asks = refusals = 0
    for talk in offered:
        declared = {tool.name: tool for tool in talk.tools if not isinstance(tool, str)}
        said = ""
        for at, turn in enumerate(talk.turns):
            said += f" {turn.text.lower()}" if turn.role == "user" else ""
            asks += turn.kind == "ask declared"
            if turn.kind == "refusal declared":
                refusals += 1
                assert turn.text.removeprefix("I have no tool for the ").rstrip(".") in talk.turns[at - 1].text
            if not turn.call or turn.call[0] not in declared:
                continue
            calls += 1
            given, takes = turn.call[1], {p.name: p for p in declared[turn.call[0]].parameters}
            assert {name for name, p in takes.items() if p.required} <= given.keys() <= takes.keys()
            for name, value in given.items():
                assert not takes[name].values or value in takes[name].values
                assert takes[name].values or takes[name].kind == "boolean" or value.lower() in said
    assert calls > 200 and asks > 40 and refusals > 60


def test_the_same_seed_makes_the_same_talks_and_they_are_short(told: list[Talk], offered: list[Talk]) -> None:
    assert told_talk(random.Random(3), practice=True) == told[3]
    assert tools_talk(random.Random(3), practice=True) == offered[3]
    encoder = TalkEncoder(Tokenizer.from_file(str(TINY / "tokenizer.json")))
    lengths = [len(encoder.talk(talk)[0]) for talk in told + offered]
    assert sum(lengths) / len(lengths) < 700 and sum(length < 1024 for length in lengths) > 0.9 * len(lengths)
