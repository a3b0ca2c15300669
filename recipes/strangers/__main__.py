"""Scores the small model, under the assistant's rules, on texts that strangers made up.

    python -m recipes.strangers              prints a table
    python -m recipes.strangers --show       and the misses

`told_*.jsonl` are short talks of one person, whose last line asks for something told before: `want` are its words, or
null if it never was told. `tools_*.jsonl` are sets of declared tools with requests: `want` is the call, "ask" if the
request leaves out something needed, null if no tool fits. `talks_*.jsonl` are talks with the built-in tools, with the
call that each turn means. The writers had not seen the texts, nor the assistant's rules. Misses of the first two sets
of told and of tools and of the first talks were read while the rules of `assistant/llm` were made, those of the others
were not. A reply recalls if it holds the words; a call is right if its tool and all arguments are.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import torch

from assistant.llm.small.reading import for_small_model
from recipes.chatml import parse_call
from recipes.judge import REFUSING, ReplyJudge, garbled
from recipes.score import TINY, Tally
from recipes.strangers.built_in import score_talk
from recipes.texts.scene import Declaration, Parameter, Talk, TalkTurn
from recipes.texts.tools import PERSONAS, TOOL_NAMES

HERE: Final = Path(__file__).parent
SYSTEM: Final = next(iter(PERSONAS.values()))
SETS: Final = ("first", "second", "third", "fourth")
NOT_TOLD: Final = (*REFUSING, "You have not told me")


def rows(name: str) -> Iterator[dict[str, Any]]:
    for line in (HERE / f"{name}.jsonl").read_text("utf-8").splitlines():
        yield json.loads(line)


def talked(judge: ReplyJudge, turns: list[str]) -> str:
    """The reply to the last of one person's lines; calls before it are carried out."""
    talk = Talk(SYSTEM, TOOL_NAMES, [])
    for text in turns:
        talk.turns.append(TalkTurn("user", for_small_model(text)))
        for _ in range(3):
            talk.turns.append(TalkTurn("assistant", ""))
            said = judge.reply(talk, len(talk.turns) - 1)
            call = parse_call(said)
            talk.turns[-1] = TalkTurn("assistant", "" if call else said, call)
            if call is None:
                break
            talk.turns.append(TalkTurn("tool", "noted" if call[0] == "note_add" else "done"))
    return said


def told(judge: ReplyJudge, name: str, tally: Tally) -> None:
    for row in rows(name):
        said, want = talked(judge, row["turns"]), row["want"]
        if want is None:
            right = said.startswith(NOT_TOLD)
        else:
            right = _alike(for_small_model(want)) in _alike(said)
        tally.add(f"{name}: {'never told' if want is None else 'recalled'}", right)
        tally.add(f"{name}: garbled", garbled(said, " ".join(map(for_small_model, row["turns"]))))
        if not right:
            tally.misses.append((name, row["turns"][-1], str(want), said))


def _alike(text: str) -> str:
    """`6:45` is `6 45`."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def declaration(tool: dict[str, Any]) -> Declaration:
    """One of their tools in the texts' format."""
    takes = tool["parameters"]
    parameters = tuple(
        Parameter(
            key, it["type"], tuple(it.get("enum", ())), it.get("description", ""), key in takes.get("required", ())
        )
        for key, it in takes["properties"].items()
    )
    return Declaration(tool["name"], tool["description"], parameters)


def same(call: tuple[str, dict[str, str]] | None, want: dict[str, Any]) -> bool:
    """Whether it is the wanted call; values are compared as they are spoken."""
    if call is None or call[0] != want["name"]:
        return False
    wanted = {key: str(value) for key, value in want["arguments"].items()}
    return {key: _plain(value) for key, value in call[1].items()} == {k: _plain(v) for k, v in wanted.items()}


def _plain(value: str) -> str:
    return value.lower().replace("_", " ").removesuffix(".0").strip()


def tools(judge: ReplyJudge, name: str, tally: Tally) -> None:
    for row in rows(name):
        declared = tuple(declaration(tool) for tool in row["tools"])
        for request in row["requests"]:
            talk = Talk(SYSTEM, (*TOOL_NAMES, *declared), [TalkTurn("user", for_small_model(request["say"]))])
            talk.turns.append(TalkTurn("assistant", ""))
            said, want = judge.reply(talk, 1), request["want"]
            call = parse_call(said)
            if want == "ask":
                kind, right = "asked for what is missing", call is None and said.endswith("?")
            elif want is None:
                kind, right = "none called", call is None or call[0] not in {tool.name for tool in declared}
            else:
                kind, right = "right call", same(call, want)
                tally.add(f"{name}: right tool", call is not None and call[0] == want["name"])
            tally.add(f"{name}: {kind}", right)
            tally.add(f"{name}: garbled", garbled(said, f"{row['tools']} {for_small_model(request['say'])}"))
            if not right:
                tally.misses.append((name, request["say"], str(want), said))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=TINY)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, help="which sets")
    parser.add_argument("--show", action="store_true", help="the misses")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    judge, tally = ReplyJudge(arguments.model), Tally()
    for which in arguments.sets:
        told(judge, f"told_{which}", tally)
        tools(judge, f"tools_{which}", tally)
        for row in rows(f"talks_{which}") if (HERE / f"talks_{which}.jsonl").exists() else ():
            score_talk(judge, f"talks_{which}", row["turns"], tally)
    for name, row in tally.rows().items():
        print(f"{name:42s} {row['percent']:6.1f} ± {row['error']:<4.1f} %  n {row['n']:.0f}")
    for name, asked, want, said in tally.misses if arguments.show else ():
        print(f"MISS {name}\n  asked  {asked!r}\n  wanted {want!r}\n  said   {said!r}")


if __name__ == "__main__":
    main()
