"""Spoken talks with an assistant whose clock stands still, and the words that each answer must contain.

Written for the score alone, separately from the texts that the models learn from; short requests such as `what time
is it` occur there too, because people say just that. The tools' own functions compute the answers.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assistant.base.days import MONTHS
from assistant.tools import answers
from recipes.sentences import number

NOW = dt.datetime(2026, 11, 18, 15, 25, tzinfo=dt.UTC)
"""A Wednesday afternoon."""
NAMES = ("daniel", "laura", "peter", "susan", "michael", "julia", "robert", "emily")
THINGS = ("milk", "bread", "cheese", "apples", "rice", "butter", "onions", "coffee", "tea", "eggs", "honey", "salt")
WORDS = ("garden", "window", "orange", "kitchen", "bridge", "winter", "yellow", "doctor")
HEROES = ("dragon", "wizard", "robot", "princess", "pirate", "owl", "knight", "fox")


@dataclass(frozen=True)
class Exercise:
    """One turn. `spoken`: lower-case words. `keys`: the answer is right when it contains the words of one of these, in
    order. `needs`: how many turns back is the turn that must have gone well before."""

    kind: str
    spoken: str
    keys: tuple[str, ...]
    needs: int = 0


def talk(rng: random.Random, first: int) -> list[Exercise]:
    """A talk of a few turns; `first` walks through the kinds, so that all are equally frequent."""
    return [question for place in range(2) for question in MAKERS[(first + place) % len(MAKERS)](rng)]


def talks(seed: int, turns: int) -> Iterator[list[Exercise]]:
    """Talks with `turns` turns in all; the last one may be cut short."""
    rng = random.Random(seed)
    first = 0
    while turns > 0:
        made = talk(rng, first)[:turns]
        yield made
        turns -= len(made)
        first += 2


def clock(rng: random.Random) -> list[Exercise]:
    asked = rng.choice(
        ["what time is it", "could you tell me the time please", "what's the time now", "how late is it"]
    )
    return [Exercise("time", asked, (answers.clock(NOW),))]


def date(rng: random.Random) -> list[Exercise]:
    month = MONTHS[NOW.month - 1]
    asked, key = rng.choice(
        [
            ("what is the date today", f"{month} 18th"),
            ("which day of the week is it", "wednesday"),
            ("what month is it", month),
            ("tell me today's date please", f"{month} 18th"),
            ("what day is it today", "wednesday"),
        ]
    )
    return [Exercise("date", asked, (key,))]


def until(rng: random.Random) -> list[Exercise]:
    feast = rng.choice(["christmas", "new year", "saturday", "halloween", "monday"])
    asked = rng.choice(["how many days until {}", "how many days are there until {}", "how long is it until {}"])
    return [Exercise("days until", asked.format(feast), (answers.days_until(feast, NOW.date()),))]


_OPERATIONS = {"plus": "+", "minus": "-", "times": "*"}


def _sum(rng: random.Random) -> tuple[str, str]:
    """(words, value)"""
    name = rng.choice(list(_OPERATIONS))
    b = rng.randint(2, 12) if name == "times" else rng.randint(3, 60)
    a = rng.randint(b, 12 if name == "times" and b < 12 else 90)
    return f"{number(a)} {name} {number(b)}", answers.calculate(f"{a} {_OPERATIONS[name]} {b}")


def arithmetic(rng: random.Random) -> list[Exercise]:
    words, value = _sum(rng)
    asked = rng.choice(["what is {}", "how much is {}", "can you calculate {}", "what's {}"])
    name, more = rng.choice(list(_OPERATIONS)[:2]), rng.randint(2, 30)
    after = answers.calculate(f"{value} {_OPERATIONS[name]} {more}").replace("-", "minus ")
    return [
        Exercise("sum", asked.format(words), (value,)),
        Exercise("sum, follow-up", f"and {name} {number(more)}", (after,), needs=1),
    ]


def percent(rng: random.Random) -> list[Exercise]:
    part, whole = rng.choice([10, 20, 25, 50]), rng.choice([40, 60, 80, 200, 300])
    a = rng.randint(3, 12)
    asked, value = rng.choice(
        [
            (f"what is {number(part)} percent of {number(whole)}", answers.calculate(f"{part}% of {whole}")),
            (f"what is half of {number(whole)}", answers.calculate(f"{whole} / 2")),
            (f"what is {number(a)} squared", answers.calculate(f"{a}^2")),
            (f"what is the square root of {number(a * a)}", str(a)),
        ]
    )
    return [Exercise("percent, root, square", asked, (value,))]


def conversion(rng: random.Random) -> list[Exercise]:
    source, target = rng.choice(
        [("hours", "minutes"), ("meters", "centimeters"), ("minutes", "seconds"), ("weeks", "days"),
         ("kilometers", "meters"), ("miles", "kilometers"), ("pounds", "kilograms")]
    )  # fmt: skip
    value = rng.randint(2, 12)
    asked = rng.choice(["convert {n} {a} to {b}", "how many {b} are {n} {a}", "what is {n} {a} in {b}"])
    result = answers.convert(str(value), source, target).split(" is ")[1]
    return [Exercise("convert", asked.format(n=number(value), a=source, b=target), (result,))]


def timer(rng: random.Random) -> list[Exercise]:
    minutes, other = rng.sample(range(3, 45), 2)
    asked = rng.choice(
        ["set a timer for {} minutes", "start a timer for {} minutes please", "please set a {} minute timer"]
    )
    return [
        Exercise("timer", asked.format(number(minutes)), (f"{minutes} minutes",)),
        rng.choice(
            [
                Exercise("timer, follow-up", "how much time is left", (f"{minutes} minutes",), needs=1),
                Exercise("timer, follow-up", f"make it {number(other)} minutes", (f"{other} minutes",), needs=1),
                Exercise("timer, follow-up", "cancel the timer", ("cancelled", "stopped"), needs=1),
            ]
        ),
    ]


def alarm(rng: random.Random) -> list[Exercise]:
    hour, minute = rng.randint(5, 11), rng.choice([0, 15, 30, 45])
    spoken = f"{number(hour)} {number(minute) + ' ' if minute else ''}a m"
    asked = rng.choice(["wake me up at {}", "set an alarm for {}", "please set an alarm for {}"])
    time = answers.clock(dt.time(hour, minute))
    return [
        Exercise("alarm", asked.format(spoken), (time,)),
        Exercise("alarm, follow-up", rng.choice(["when is my alarm", "what alarms do i have"]), (time,), needs=1),
    ]


def reminder(rng: random.Random) -> list[Exercise]:
    task = rng.choice(
        ["call my mother", "water the plants", "feed the cat", "pay the rent", "go shopping", "walk the dog"]
    )
    hour = rng.randint(5, 9)
    said = task.replace("my", "your")
    when = rng.choice(["tomorrow", f"at {number(hour)} p m", "tonight"])
    return [
        Exercise("reminder", f"remind me to {task} {when}", (said,)),
        Exercise("reminder, follow-up", "what are my reminders", (said,), needs=1),
    ]


def shopping(rng: random.Random) -> list[Exercise]:
    one, two = rng.sample(THINGS, 2)
    asked = rng.choice(["add {a} and {b} to my shopping list", "put {a} and {b} on my list", "we need {a} and {b}"])
    return [
        Exercise("list", asked.format(a=one, b=two), (f"{one} {two}",)),
        Exercise(
            "list, follow-up", rng.choice(["what is on my list", "read my shopping list"]), (f"{one} {two}",), needs=1
        ),
    ]


def note(rng: random.Random) -> list[Exercise]:
    text = rng.choice(
        ["the key is under the mat", "the car needs gas", "the meeting is on friday", "the door code is four two"]
    )
    last = text.split()[-1]
    return [
        Exercise("note", f"make a note that {text}", ("wrote", "noted")),
        Exercise("note, follow-up", rng.choice(["read my notes", "what are my notes"]), (last,), needs=1),
    ]


def spelling(rng: random.Random) -> list[Exercise]:
    word = rng.choice(WORDS)
    asked = rng.choice(["how do you spell {}", "spell the word {}", "can you spell {} for me"])
    return [Exercise("spell", asked.format(word), (answers.spell(word),))]


def counting(rng: random.Random) -> list[Exercise]:
    last = rng.randint(5, 12)
    row = ", ".join(str(n) for n in range(1, last + 1))
    return [
        Exercise(
            "count",
            rng.choice(["count to {}", "please count up to {}", "can you count to {}"]).format(number(last)),
            (row,),
        ),
        Exercise("count, follow-up", "what was the last number you said", (str(last),), needs=1),
    ]


def name(rng: random.Random) -> list[Exercise]:
    who = rng.choice(NAMES)
    told = rng.choice(["my name is {}", "call me {}", "hello i am {}"])
    asked = rng.choice(["what is my name", "do you remember my name", "who am i"])
    return [
        Exercise("name", told.format(who), (who,)),
        Exercise("name, follow-up", asked, (who,), needs=1),
    ]


def fact(rng: random.Random) -> list[Exercise]:
    thing, value = rng.choice(
        [
            ("color", "green"),
            ("color", "blue"),
            ("animal", "dog"),
            ("season", "summer"),
            ("food", "rice"),
            ("color", "red"),
        ]
    )
    return [
        Exercise("fact", f"my favorite {thing} is {value}", ("remember",)),
        Exercise("fact, follow-up", f"what is my favorite {thing}", (value,), needs=1),
    ]


def story(rng: random.Random) -> list[Exercise]:
    hero = rng.choice(HEROES)
    asked = rng.choice(["tell me a story about {}", "i want to hear a story about {}"])
    article = "an" if hero[0] in "aeiou" else "a"
    return [
        Exercise("story", asked.format(f"{article} {hero}"), (hero,)),
        Exercise(
            "story, follow-up", rng.choice(["go on", "what happened next", "continue the story"]), (hero,), needs=1
        ),
    ]


def itself(rng: random.Random) -> list[Exercise]:
    asked, keys = rng.choice(
        [
            ("who are you", ("ada", "ben", "name", "small", "assistant")),
            ("are you a real person", ("not a person", "program")),
            ("what can you do for me", ("timers", "time", "stories")),
            ("do you need the internet", ("without", "no")),
            ("do you send my voice anywhere", ("nothing", "leaves", "machine")),
        ]
    )
    return [Exercise("about itself", asked, keys)]


def beyond(rng: random.Random) -> list[Exercise]:
    asked = rng.choice(
        ["what is the weather like today", "play some music", "what is the capital of france", "who is the president",
         "turn off the lights", "how do i get to london", "tell me about black holes", "what is gravity"]
    )  # fmt: skip
    return [Exercise("beyond it", asked, ("too small", "cannot", "larger model", "do not know", "no map"))]


def session(rng: random.Random) -> list[Exercise]:
    words, value = _sum(rng)
    asked, keys = rng.choice(
        [
            ("undo that", ("took", "back")),
            ("let us start over", ("start over", "start")),
            ("say that again please", (value,)),
            ("i want to talk to ben", ("ben",)),
        ]
    )
    return [
        Exercise("sum", f"what is {words}", (value,)),
        Exercise("repeat" if keys == (value,) else "session verb", asked, keys, needs=1),
    ]


def chance(rng: random.Random) -> list[Exercise]:
    asked, keys = rng.choice(
        [
            ("flip a coin", ("heads", "tails")),
            ("roll a die", ("1", "2", "3", "4", "5", "6")),
            ("toss a coin for me", ("heads", "tails")),
        ]
    )
    return [Exercise("chance", asked, keys)]


def small_talk(rng: random.Random) -> list[Exercise]:
    asked, keys = rng.choice(
        [
            ("hello there", ("help", "do for you")),
            ("how are you today", ("fine", "well")),
            ("thank you very much", ("welcome",)),
            ("good night", ("good night", "sleep")),
            ("tell me a joke", ("why", "what")),
            ("i am tired", ("rest", "nap")),
        ]
    )
    return [Exercise("small talk", asked, keys)]


MAKERS: tuple[Callable[[random.Random], list[Exercise]], ...] = (
    clock, arithmetic, date, timer, until, shopping, conversion, counting, percent, alarm, spelling, name, itself,
    reminder, chance, story, beyond, note, small_talk, session, fact,
)  # fmt: skip
