"""Talks with the built-in tools that strangers made up, each turn asked from the true history."""

from __future__ import annotations

import random
import re
from typing import Any, Final

from assistant.llm.small.reading import for_small_model
from recipes.chatml import parse_call
from recipes.judge import ReplyJudge, garbled
from recipes.score import Tally
from recipes.texts.scene import Scene, Talk, TalkTurn, Unusable
from recipes.texts.scenes_written_talks import Desk

_ARTICLE: Final = re.compile(r"^(?:a|an|at|my|some|the|to) ")
_CALL: Final = TalkTurn("assistant", "")


def score_talk(judge: ReplyJudge, name: str, turns: list[dict[str, Any]], tally: Tally) -> None:
    """One talk: whether each turn gets the wanted call with its arguments, or no call if none is wanted."""
    scene = Scene(random.Random(0), "train")
    desk, which = Desk(scene), "first"
    for turn in turns:
        scene.turns.append(TalkTurn("user", for_small_model(turn["say"])))
        said, want = _reply(judge, scene), turn["call"]
        call, given = parse_call(said), {key: _small(key, value) for key, value in (turn.get("args") or {}).items()}
        if call and call[0] == "cancel_alarm" and want == "set_alarm":  # the old alarm goes before the new one comes
            scene.turns += [TalkTurn("assistant", "", call), TalkTurn("tool", call[1].get("time", "done"))]
            call = parse_call(said := _reply(judge, scene))
        right = call is None if want is None else call is not None and alike(call, (want, given))
        tally.add(f"{name}: {'no call' if want is None else f'{which} call'}", right)
        if want:
            tally.add(f"{name}: {which} tool", call is not None and call[0] == want)
        tally.add(f"{name}: garbled", garbled(said, " ".join(each.text for each in scene.turns)))
        if not right:
            tally.misses.append((name, turn["say"], f"{want} {turn.get('args') or ''}", said))
        which = "later"
        _happens(scene, desk, want, given, said if call is None else "Okay.")


def _reply(judge: ReplyJudge, scene: Scene) -> str:
    talk = Talk(scene.system, scene.tools, [*scene.turns, _CALL])
    return judge.reply(talk, len(scene.turns))


def _happens(scene: Scene, desk: Desk, want: str | None, given: dict[str, str], said: str) -> None:
    """Do the right call, and answer as the model was taught to."""
    if want is None:
        scene.turns.append(TalkTurn("assistant", said.removesuffix(" …") or "Okay."))
        return
    try:
        desk.call(want, "", given)
    except Unusable:
        scene.turns += [
            TalkTurn("assistant", "", (want, given)),
            TalkTurn("tool", "ok"),
            TalkTurn("assistant", "Okay."),
        ]


def _small(key: str, value: str) -> str:
    """An argument as the small model writes it."""
    if key == "expression":
        return value
    return ", ".join(map(for_small_model, value.split(","))) if key == "items" else for_small_model(value)


def alike(call: tuple[str, dict[str, str]], want: tuple[str, dict[str, str]]) -> bool:
    """Whether two calls do the same: items in any order, words in either number, without articles."""
    return call[0] == want[0] and _plain(call) == _plain(want)


def _plain(call: tuple[str, dict[str, str]]) -> dict[str, object]:
    tool, given = call
    found: dict[str, object] = {}
    for key, value in given.items():
        if key == "expression":
            found[key] = value.replace(" ", "")
        elif key == "items":
            found[key] = {_words(item) for item in value.split(",")}
        elif key != "list" or value != "shopping":
            whole = f"{value}:00" if key == "time" and value.isdigit() and tool.endswith("alarm") else value
            found[key] = _words(whole)
    return found


def _words(text: str) -> str:
    return " ".join(word.removesuffix("s") for word in _ARTICLE.sub("", text.lower().strip()).split())
