"""Short stories in three parts that can be told one at a time, broken off and taken up again."""

# ruff: noqa: E501  (sentences and word lists read better unbroken)
from __future__ import annotations

import random
from dataclasses import dataclass

from recipes.texts.words import WORDS


@dataclass(frozen=True, slots=True)
class Story:
    """The constants of a story."""

    hero: str
    adj: str
    friend: str
    goal: str
    place: str
    obstacle: str

    @property
    def about(self) -> tuple[str, ...]:
        """Its subject, in one sentence."""
        return (f"It was about a {self.adj} {self.hero} who wanted to find {self.goal}.",)


def new_story(rng: random.Random, hero: str | None = None, friend: str | None = None) -> Story:
    """A story about `hero`, or about anyone."""
    hero = hero or rng.choice(WORDS["hero"])
    others = [f for f in WORDS["friend"] if f != hero]
    return Story(
        hero,
        rng.choice([a for a in WORDS["adj"] if a[0] not in "aeiou"]),
        friend or rng.choice(others),
        rng.choice(WORDS["goal"]),
        rng.choice(WORDS["place"]),
        rng.choice(WORDS["obstacle"]),
    )


def part(rng: random.Random, story: Story, number: int) -> list[str]:
    """The sentences of part 0, 1 or 2."""
    s, pick = story, rng.choice
    an = "an" if s.friend[0] in "aeiou" else "a"
    if number == 0:
        return [
            pick([f"Once upon a time, a {s.adj} {s.hero} lived {s.place}.", f"There once was a {s.adj} {s.hero} who lived {s.place}."]),
            pick([f"Every night, the {s.hero} dreamed of {s.goal}.", f"The {s.hero} had heard of {s.goal} and could think of nothing else."]),
            pick([f"One day, the {s.hero} set out to find it.", f"One morning, the {s.hero} left home to look for it."]),
            "Shall I go on?",
        ]  # fmt: skip
    if number == 1:
        return [
            pick([f"On the way, the {s.hero} met {an} {s.friend}.", f"Soon the {s.hero} met {an} {s.friend} on the road."]),
            pick([f"I know where {s.goal} is, said the {s.friend}.", f"I can help you find {s.goal}, said the {s.friend}."]),
            pick([f"But between them and {s.goal} was {s.obstacle}.", f"But first they had to get past {s.obstacle}."]),
            "Shall I go on?",
        ]  # fmt: skip
    return [
        pick([f"It took all day, but together they got past {s.obstacle}.", f"The {s.friend} had a good idea, and so they got past {s.obstacle}."]),
        pick([f"And there it was: {s.goal}.", f"And at last they found {s.goal}."]),
        pick([f"The {s.hero} thanked the {s.friend}, and they stayed friends for ever.", f"The {s.hero} and the {s.friend} went home together, tired and happy."]),
        "The end.",
    ]  # fmt: skip
