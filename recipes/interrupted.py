"""Scores whether a request behind an interruption is answered as without one.

    python -m recipes.interrupted            prints a table
    python -m recipes.interrupted --show     and the misses

`interrupted.txt` holds requests with long replies and, behind a line `---`, other requests; no text has their
wordings. `interrupted_second.txt` was written after the last training. Each of these is asked as the first of a talk,
and behind a long reply that was broken off at any word. It is answered as without an interruption if the call is the
same or the words are; any joke, fact, poem or story is as good as another. A long reply that needs a tool is written
`request => tool => its result`.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import torch

from assistant.llm.small.reading import for_small_model
from recipes.chatml import parse_call
from recipes.judge import ReplyJudge, garbled
from recipes.score import TINY, Tally
from recipes.texts import smalltalk
from recipes.texts.scene import Talk, TalkTurn
from recipes.texts.tools import PERSONAS, TOOL_NAMES

HERE: Final = Path(__file__).with_suffix(".txt")
SYSTEM: Final = next(iter(PERSONAS.values()))
POOLS: Final = (smalltalk.JOKES, smalltalk.FACTS, smalltalk.POEMS)
BEGINNINGS: Final = ("Once upon a time, ", "There once was ")


def requests(path: Path) -> tuple[list[str], list[str]]:
    """Those with long replies, and those that follow the interruption."""
    long, _, other = path.read_text("utf-8").partition("---\n")
    return long.splitlines(), other.splitlines()


def as_without(fresh: str, said: str) -> bool:
    """Whether `said` answers what `fresh` answers in a new talk."""
    if parse_call(fresh) or parse_call(said):
        return parse_call(fresh) == parse_call(said)
    if fresh.startswith(BEGINNINGS):
        return said.startswith(BEGINNINGS)
    return any(fresh in pool and said in pool for pool in POOLS) or said in smalltalk.as_right((fresh,))


def reply(judge: ReplyJudge, turns: list[TalkTurn]) -> str:
    """The reply to the last of these turns."""
    return judge.reply(Talk(SYSTEM, TOOL_NAMES, [*turns, TalkTurn("assistant", "")]), len(turns))


def asked(text: str) -> TalkTurn:
    return TalkTurn("user", for_small_model(text))


def long_talk(judge: ReplyJudge, line: str) -> tuple[list[TalkTurn], list[str]]:
    """The turns before a long reply, and its words."""
    request, *used = line.split(" => ")
    turns = [asked(request)]
    if used:
        turns += [TalkTurn("assistant", "", (used[0], {})), TalkTurn("tool", used[1])]
    return turns, reply(judge, turns).removesuffix(" …").split(" ")


def pairs(judge: ReplyJudge, path: Path, seed: int) -> Iterator[tuple[str, str, str, str]]:
    """The long request, the one behind the interruption, and its replies in a new talk and there."""
    rng = random.Random(f"interrupted {seed}")
    lines, others = requests(path)
    long = {line: long_talk(judge, line) for line in lines}
    for at, request in enumerate(others):
        turns, words = long[line := lines[at % len(lines)]]
        heard = TalkTurn("assistant", " ".join(words[: rng.randint(1, len(words) - 1)]), cut=True)
        yield line, request, reply(judge, [asked(request)]), reply(judge, [*turns, heard, asked(request)])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=TINY)
    parser.add_argument("--requests", type=Path, default=HERE, help="a file of the form of interrupted.txt")
    parser.add_argument("--seed", type=int, default=99, help="seed of the places where replies are broken off")
    parser.add_argument("--show", action="store_true", help="the misses")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tally = Tally()
    for line, request, fresh, said in pairs(ReplyJudge(arguments.model), arguments.requests, arguments.seed):
        right = as_without(fresh, said)
        tally.add("= answered as without", right)
        tally.add("= garbled", garbled(said, f"{line} {request}"))
        tally.add(f"behind {line.partition(' => ')[0]}", right)
        if not right:
            tally.misses.append((line, request, fresh, said))
    for name, row in tally.rows().items():
        print(f"{name:50s} {row['percent']:6.1f} ± {row['error']:<4.1f} %  n {row['n']:.0f}")
    for line, request, fresh, said in tally.misses if arguments.show else ():
        print(f"MISS behind {line}\n  asked   {request!r}\n  alone   {fresh!r}\n  behind  {said!r}")


if __name__ == "__main__":
    main()
