"""Behind an interruption: a reply was broken off at any word, and something else is wanted.

`broken_off` stands before any exchange of a practised talk, whatever that exchange is. The talks that are scored lack
it, so that a score stays comparable: `recipes.interrupted` scores the replies behind an interruption by themselves.
"""

from __future__ import annotations

import re
from typing import Final

from recipes.texts.scene import Scene, TalkTurn, Unusable
from recipes.texts.scenes_talk import itself, knowledge, memory, small_talk
from recipes.texts.scenes_time import reminder, several
from recipes.texts.scenes_told import asked_run, fun, listed
from recipes.texts.scenes_tools import lists, notes
from recipes.texts.stories import Story, new_story, part

SHARE: Final = 0.35
"""Share of the practised exchanges with a broken reply before them."""
FEWEST: Final = 4
"""Words of a reply that is long enough to be broken off."""
_TALK: Final = (fun, fun, itself, knowledge, small_talk, memory)
_READ: Final = (lists, lists, notes, reminder, several)
"""Replies that read something out."""


def now_and_then(s: Scene) -> None:
    """A broken reply, in practice, before a part of the exchanges."""
    if not s.practice or not s.chance(SHARE):
        return
    turns, known = len(s.turns), dict(s.known)
    try:
        broken_off(s)
    except Unusable:
        del s.turns[turns:]
        s.known = known


def broken_off(s: Scene) -> None:
    """A reply that the user breaks off at any word: a count, a story, or any other that is long enough."""
    shape = s.rng.random()
    if shape < 0.45:
        _count(s)
    elif shape < 0.7:
        _story(s)
    else:
        others = (*_TALK, *_READ) if "list_read" in s.tools else _TALK
        s.rng.choice(others)(s)
        whole = s.turns[-1].text
        _break(s)
        if s.turns[-1].cut and s.chance(0.12):
            heard = len(s.turns[-1].text.split(" "))
            s.ask("go_on")
            s.say(left_of(whole, heard), kind="go on")


def left_of(whole: str, heard: int) -> str:
    """The sentences of a reply that are not over after `heard` words; the one that was begun is said again."""
    sentences = re.split(r"(?<=[.?!]) ", whole)
    while len(sentences) > 1 and heard >= (first := len(sentences[0].split(" "))):
        heard -= first
        sentences.pop(0)
    return " ".join(sentences)


def interrupted(s: Scene) -> None:
    """A count or a story, broken off, and then the like: the same once more, from its start, or another one."""
    s.rng.choice([_counts, _stories])(s)


def start_alone(s: Scene) -> None:
    """A bare verb of beginning asks for nothing yet, so nothing is wiped."""
    s.user(s.phrasing(_START))
    s.say(f"I heard: {s.turns[-1].text.rstrip('.?!')}. What shall I do?", kind="not understood")


_START: Final = (
    "~start", "start", "~begin", "start now", "please start", "start please", "okay start", "and start", "begin now",
    "~start it", "let's start", "let's begin", "start then", "so start", "just start", "you can start", "you may begin",
    "start already", "the start", "you can start now", "starting", "ready start", "ready set go", "and begin",
    "now start", "go and start", "yes start", "start that", "okay let's start", "get started", "let's get started",
)  # fmt: skip


def _break(s: Scene, most: int = 60) -> None:
    """Break the last reply off: mostly behind any word, now and then before its first, or before a word's mark."""
    turn = s.turns[-1]
    words = len(turn.text.split(" "))
    if turn.role != "assistant" or turn.call or turn.cut or words < FEWEST:
        raise Unusable(turn.text)
    s.cut(0 if s.chance(0.06) else s.rng.randint(1, min(most, words - 1)))
    if s.turns[-1].cut and s.chance(0.12):  # a front that stops a written reply stops it at any token
        s.turns[-1].text = s.turns[-1].text.rstrip(".,;:") or s.turns[-1].text


def _count(s: Scene) -> None:
    if s.chance(0.5):
        n = s.rng.choice([50, 100, s.whole(20, 100), s.whole(20, 60)])
        s.ask("count", n=s.number(n))
        run = [*range(1, n + 1)]
    else:
        run = asked_run(s)
    s.say(listed(run), kind="count")
    _break(s, most=s.rng.choice([6, 12, 12, 24, 40]))


def _story(s: Scene) -> Story:
    hero = s.value("hero") if s.chance(0.6) else None
    if hero:
        s.ask("story_about", hero=hero)
    else:
        s.ask("story")
    tale = new_story(s.rng, hero)
    last = s.rng.choice([0, 0, 0, 1, 2])
    for number in range(last + 1):
        if number:
            s.ask("story_next", hero=tale.hero)
        s.say(" ".join(part(s.rng, tale, number)), kind=f"story {number + 1}")
    _break(s)
    return tale


def _counts(s: Scene) -> None:
    begun = len(s.turns)
    run = asked_run(s)
    s.say(listed(run), kind="count")
    if len(run) < FEWEST:
        raise Unusable(str(run))
    _break(s)
    first = s.turns[begun]
    if s.chance(0.6) and len(s.turns) == begun + 2:  # not asked back for the number
        s.turns.append(TalkTurn("user", first.text, spoken=first.spoken))
    elif s.chance(0.5):
        run = asked_run(s)
    else:
        s.ask("count", n=s.number(n := s.whole(3, 25)))
        run = [*range(1, n + 1)]
    s.say(listed(run), kind="count")


def _stories(s: Scene) -> None:
    tale = _story(s)
    hero = tale.hero if s.chance(0.5) else s.value("hero")
    s.ask("story_about", hero=hero)
    s.say(" ".join(part(s.rng, new_story(s.rng, hero), 0)), kind="story 1")
    s.turns[-1].accept = (hero,)
