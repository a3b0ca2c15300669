"""Scenes with longer answers, which may be cut off: counting, stories, jokes."""

from __future__ import annotations

import random

from recipes.texts import smalltalk
from recipes.texts.scene import Scene, Unusable
from recipes.texts.scenes_time import clock, timer
from recipes.texts.scenes_tools import arithmetic
from recipes.texts.stories import Story, new_story, part
from recipes.texts.words import WORDS


def counting(s: Scene) -> None:
    """Counts, often cut off by the user, who then asks how far it got, or lets it continue."""
    run = asked_run(s)
    s.say(listed(run), kind="count")
    if len(run) >= 3 and not s.chance(0.15):
        cut_off(s, run)
    elif s.chance(0.5):
        s.ask("last_number")
        s.say(f"The last number I said was {run[-1]}.", kind="last number")


def asked_run(s: Scene) -> list[int]:
    """The numbers that the user asks for: up to one, between two, down, in steps, or only when asked back."""
    shape = s.rng.random()
    if shape < 0.6:
        far = s.whole(20, 45) if s.chance(0.3) else 5
        n = s.rng.choice([10, 20, s.whole(3, 10), s.whole(3, 20), s.whole(5, 30), far])
        s.ask("count", n=s.number(n))
        return list(range(1, n + 1))
    if shape < 0.72:
        m = s.whole(2, 60)
        n = m + s.rng.randint(3, 12)
        s.ask("count_from", m=s.number(m), n=s.number(n))
        return list(range(m, n + 1))
    if shape < 0.85:
        n = s.rng.choice([5, 10, 20, s.whole(3, 25)])
        s.ask("count_down", n=s.number(n))
        return list(range(n, 0, -1))
    if shape < 0.95:
        step = s.rng.choice([2, 5, 10])
        n = step * s.rng.randint(3, 12)
        s.ask("count_by", n=s.number(n), step={2: "twos", 5: "fives", 10: "tens"}[step])
        return list(range(step, n + 1, step))
    s.ask("count_open")
    s.say("To which number?", kind="ask back")
    n = s.whole(3, 20)
    s.user(s.rng.choice(["{n}", "to {n}", "up to {n}"]), n=s.number(n))
    return list(range(1, n + 1))


def cut_off(s: Scene, run: list[int]) -> None:
    """The user breaks into the count, asks or ends something once or twice, or has it continue where it was heard."""
    heard = s.rng.randint(0, len(run) - 1) if s.chance(0.9) else 0
    s.cut(heard)
    last = run[heard - 1] if heard else None
    for _ in range(s.rng.choice([1, 1, 2])):
        what = s.rng.random()
        if what < (0.3 if s.practice else 0.6):
            s.ask("last_number")
            said = f"The last number I said was {last}." if last is not None else "I had not said a number yet."
            s.say(said, kind="last number")
        elif what < 0.85:
            s.ask("go_on")
            s.say(listed(run[heard:]), kind="go on counting")
            return
        else:
            s.ask("stop")
            s.say("Okay.", kind="stop")


def listed(run: list[int]) -> str:
    return ", ".join(map(str, run)) + "."


def story(s: Scene) -> None:
    """A story in parts, continued, ended, refused, or cut off and resumed."""
    shape = s.rng.random()
    asked = shape >= 0.35
    if not asked:
        s.ask("story")
        tale = new_story(s.rng)
    elif shape < 0.85:
        hero = s.value("hero")
        s.ask("story_about", hero=hero)
        tale = new_story(s.rng, hero)
    else:
        hero, friend = s.value("hero"), s.value("friend")
        if hero == friend:
            raise Unusable(hero)
        s.ask("story_about_two", hero=hero, friend=friend)
        tale = new_story(s.rng, hero, friend)
    for number in range(3):
        sentences = part(s.rng, tale, number)
        s.say(" ".join(sentences), kind=f"story {number + 1}")
        s.turns[-1].accept = (tale.hero,) if asked or number else tuple(WORDS["hero"])
        if s.chance(0.45 if s.practice else 0.25):
            told = s.turns[-1]
            if not (left := interrupted(s, sentences)):
                return
            s.say(" ".join(left), kind="story taken up")
            s.turns[-1].accept = ways_on(tale, number, sentences, len(left), len(told.text.split(" ")))
        if number == 2:
            break
        what = s.rng.random()
        if what < 0.62:
            s.ask("story_next", hero=tale.hero)
        elif what < 0.72:
            s.ask("story_end")
            s.say(" ".join(part(s.rng, tale, 2)), kind="story 3")
            s.turns[-1].accept = (tale.hero,)
            break
        elif what < 0.82:
            s.ask("story_no")
            s.say("Okay.", kind="story stopped")
            return
        elif what < 0.9:
            about(s, tale)
            return
        else:
            return
    if s.chance(0.3):
        about(s, tale)


def about(s: Scene, tale: Story) -> None:
    s.ask("story_what")
    s.say(*tale.about, kind="story about")


def ways_on(tale: Story, number: int, sentences: list[str], left: int, heard: int) -> tuple[str, ...]:
    """Possible continuations after `heard` words of a part with `left` sentences still to tell.

    A sentence that was begun must be repeated; the wording of one that was not begun cannot be known.
    """
    begun = sentences[-left].split(" ")[: heard - sum(len(sentence.split(" ")) for sentence in sentences[:-left])]
    ways = {part(random.Random(seed), tale, number)[-left] for seed in range(64)}
    return tuple(sorted(way for way in ways if way.split(" ")[: len(begun)] == begun))


def interrupted(s: Scene, sentences: list[str]) -> list[str]:
    """The user cuts in; an aside may follow. Returns the sentences still to tell, including the interrupted one."""
    words = [len(sentence.split(" ")) for sentence in sentences]
    heard = s.rng.randint(1, sum(words) - 1)
    s.cut(heard)
    done = 0
    left = list(sentences)
    while left and done + len(left[0].split(" ")) <= heard:
        done += len(left.pop(0).split(" "))
    what = s.rng.random()
    if what < 0.25:
        s.ask("stop")
        s.say("Okay.", kind="stop")
        if s.chance(0.5):
            return []
    elif what < 0.5:
        s.rng.choice([clock, arithmetic, timer])(s)
    s.ask("go_on")
    return left


def fun(s: Scene) -> None:
    """Jokes, facts and poems, and another one: the next in their order, which a small model can learn."""
    kind, pool = s.rng.choice(
        [("joke", smalltalk.JOKES), ("joke", smalltalk.JOKES), ("fact", smalltalk.FACTS), ("poem", smalltalk.POEMS)]
    )
    s.ask(kind)
    at = s.rng.randrange(len(pool))
    untold = set(pool)
    while True:
        told = s.say(pool[at], kind=kind)
        s.turns[-1].accept = tuple(sorted(untold))
        untold.remove(told)
        at = (at + 1) % len(pool)
        if not untold or not s.chance(0.4):
            return
        s.ask("another")
