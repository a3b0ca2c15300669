"""Written talks with the built-in tools: held out whole, as people say it, and no number of a call out of nowhere."""

import random
import re

import pytest
from tokenizers import Tokenizer

from recipes.chatml import TalkEncoder
from recipes.llm import TINY
from recipes.texts.scene import Talk
from recipes.texts.scenes_written_talks import CHATS, spoken_talk, talks
from recipes.texts.tools import PARAMETERS
from recipes.texts.words import Split

SPLITS: tuple[Split, ...] = ("train", "test")


@pytest.fixture(scope="module")
def said() -> list[Talk]:
    return [spoken_talk(random.Random(seed), split, practice=True) for split in SPLITS for seed in range(120)]


def test_whole_talks_are_held_out() -> None:
    kept, held = ({talk.turns for talk in talks(split)} for split in SPLITS)
    assert len(kept) > 500 and len(held) > 40 and not kept & held


def test_lines_are_spoken_words_and_calls_take_what_the_tools_take() -> None:
    for talk in (talk for split in SPLITS for talk in talks(split)):
        heard: set[str] = set()
        for turn in talk.turns:
            assert all(re.fullmatch(r"[a-z' -]+", re.sub(r"\{\w+\}", "it", line)) for line in turn.said), turn
            heard |= {hole for line in turn.said for hole in re.findall(r"\{(\w+)\}", line)}
            assert heard <= talk.slots.keys(), turn
            if turn.chat:
                assert turn.chat in CHATS and not turn.tool
                continue
            takes, given = PARAMETERS[turn.tool], dict(turn.takes)
            assert {key for key in takes if not key.endswith("?")} <= given.keys() <= {key.rstrip("?") for key in takes}
            holes = {hole for value in given.values() for hole in re.findall(r"\{(\w+)\}", value)}
            assert holes <= heard | {"result"}, turn


def test_numbers_of_a_call_were_said_or_came_out(said: list[Talk]) -> None:
    calls = 0
    for talk in said:
        for at, turn in enumerate(talk.turns):
            if turn.call:
                before = " ".join(each.text for each in talk.turns[:at])
                numbers = re.findall(r"\d+(?:\.\d+)?", " ".join(turn.call[1].values()))
                held = re.findall(r"\d+(?:\.\d+)?", before)
                small = {str(n) for n in range(13)}  # `half of that`, `a normal die`, `a dozen`
                assert {*numbers} - small <= {*held}, turn
                calls += 1
    assert calls > 600


def test_the_encoder_takes_them(said: list[Talk]) -> None:
    encoder = TalkEncoder(Tokenizer.from_file(str(TINY / "tokenizer.json")))
    assert all(len(encoder.talk(talk)[0]) < 2000 for talk in said)
