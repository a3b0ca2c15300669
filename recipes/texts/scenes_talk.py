"""Scenes about the people and the talk itself: memory, repetition, session verbs, small talk, things out of reach."""

# ruff: noqa: E501  (sentences and word lists read better unbroken)
from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Final

from assistant.tools import answers
from recipes.texts import smalltalk
from recipes.texts.scene import NOT_UNDERSTOOD, Scene, TalkTurn, Unusable
from recipes.texts.slots import turned
from recipes.texts.tools import PERSONAS


def memory(s: Scene) -> None:
    """The user tells something about themselves; later they may ask for it."""
    what = s.rng.choice(["name", "name", "name", "favorite", "home", "pet", "age"])
    if s.known.get(what) and s.chance(0.7):
        recall(s, what)
        return
    if s.chance(0.12) and what not in s.known:
        if what == "favorite":
            thing = s.value("favorite")
            s.ask("favorite_ask", thing=thing)
        elif what == "pet":
            s.ask("pet_ask", pet=s.value("pet"))
        else:
            s.ask(f"{what}_ask")
        s.say("You have not told me yet.", kind="unknown fact")
        return
    if what == "name":
        listed = s.chance(0.8)
        name = s.ask("name_tell", name=s.value("name") if listed else s.word().capitalize())["name"]
        if not listed and not re.search("name|call", s.turns[-1].text):
            raise Unusable(name)  # `I am nervous` does not state a name
        name = s.turns[-1].text[s.turns[-1].text.lower().find(name.lower()) :][: len(name)]
        s.known["name"] = f"Your name is {name}."
        s.say(f"Nice to meet you, {name}.", kind="name told")
    elif what == "favorite":
        thing = s.value("favorite")
        value = {
            "color": s.rng.choice(["red", "blue", "green", "yellow", "purple", "orange", "pink", "black", "white", "brown", "silver"]),
            "season": s.rng.choice(["spring", "summer", "autumn", "winter"]),
            "animal": s.value("pet"), "city": s.value("city"), "food": s.value("item"),
        }.get(thing) or s.word()  # fmt: skip
        slots = s.ask("favorite_tell", thing=thing, value=value)
        s.known["favorite"] = f"Your favorite {slots['thing']} is {slots['value']}."
        s.known["thing"] = slots["thing"]
        s.say("I will remember that.", kind="fact told")
    elif what == "home":
        city = s.ask("home_tell", city=s.value("city"))["city"]
        s.known["home"] = f"You live in {city}."
        s.say("I will remember that.", kind="fact told")
    elif what == "pet":
        slots = s.ask("pet_tell", pet=s.value("pet"), name=s.value("name"))
        s.known["pet"] = f"Your {slots['pet']} is called {slots['name']}."
        s.known["kind"] = slots["pet"]
        s.say("I will remember that.", kind="fact told")
    else:
        age = s.ask("age_tell", age=s.number(s.whole(5, 99)))["age"]
        s.known["age"] = f"You are {age} years old."
        s.say("I will remember that.", kind="fact told")
    if s.chance(0.35):
        recall(s, what)


def recall(s: Scene, what: str) -> None:
    if what == "favorite":
        s.ask("favorite_ask", thing=s.known["thing"])
    elif what == "pet":
        s.ask("pet_ask", pet=s.known["kind"])
    else:
        s.ask(f"{what}_ask")
    s.say(s.known[what], kind="fact asked")


def again(s: Scene) -> None:
    """`Say that again`, `what did I say?`."""
    if not s.turns or s.turns[-1].role != "assistant" or s.turns[-1].call or len(s.turns[-1].text) > 160:
        return
    last = s.turns[-1].text
    asked = next((turn.text for turn in reversed(s.turns) if turn.role == "user"), "")
    if s.chance(0.55) and not s.turns[-1].cut:
        s.ask("repeat")
        s.say(last, kind="repeat")
    elif asked and asked != NOT_UNDERSTOOD:
        s.ask("what_said")
        s.say(f"You said: {asked.rstrip('.?!')}.", kind="what you said")


def after_me(s: Scene) -> None:
    """`Say …`: the words again, whatever they are."""
    if s.practice or s.chance(0.3):
        text = s.words(s.rng.randint(1, 7))
    else:
        text = s.rng.choice([s.value("note"), s.value("task"), f"hello {s.value('name')}", s.value("item")])
    s.say(f"I say: {s.ask('say', words=text)['words']}.", kind="said after")


def session(s: Scene) -> None:
    """Undo, start over, be someone else."""
    shape = s.rng.random()
    if shape < 0.4:
        s.ask("undo")
        s.call("undo", "ok")
        s.say("Okay, I took that back.", kind="reply undo")
    elif shape < 0.65:
        s.ask("start_over")
        s.call("start_over", "ok")
        s.say("All right, we start over.", kind="reply start_over")
    elif shape < 0.85:
        who = s.rng.choice([*PERSONAS, s.value("name")])
        who = s.ask("persona", who=who)["who"]
        who = who.capitalize()
        if s.chance(0.85):
            s.call("switch_persona", who, name=who)
            s.say(f"You are now talking to {who}.", kind="reply switch_persona")
        else:
            s.call("switch_persona", f"nobody here is called {who}", name=who)
            s.say(f"Nobody here is called {who}.", kind="reply switch_persona")
    else:
        s.ask("persona_any")
        who = s.rng.choice([*PERSONAS, s.value("name")])
        s.call("switch_persona", who)
        s.say(f"You are now talking to {who}.", kind="reply switch_persona")


def fixed(s: Scene, pairs: smalltalk.Pairs, kind: str) -> None:
    """A question with a fixed answer; the more phrasings it has, the more often it is asked, by the root of their
    number."""
    asked, said = s.rng.choices(pairs, [len(lines) ** 0.5 for lines, _ in pairs])[0]
    made, line = s.made_and_said(asked)
    fill: dict[str, Callable[[], str]] = {
        "word": s.word,
        "topic": lambda: s.value("topic") if s.chance(0.6) else s.words(s.rng.choice([1, 1, 2])),
        "country": lambda: s.value("city"),
        "inventor_bare": lambda: s.value("inventor").removeprefix("the "),
        "rel": lambda: s.rng.choice(["today", "tomorrow", "tonight", f"on {s.value('day')}", "this weekend"]),
    }
    slots = {key: fill[key]() if key in fill else s.value(key) for key in re.findall(r"{(\w+)}", line) if key != "me"}
    given = s.user(line, **slots)
    named = named_in(made, given, s.turns[-1].text)
    able = [text for text in said if not _PLACE.search(text) or _PLACE.findall(text)[0] in named]
    ways = [text for text in able if _PLACE.search(text)] or able
    fill_in = {"{me}": s.me, **named}
    s.say(*(filled(text, fill_in) for text in ways), kind=kind)
    accept = (filled(text, fill_in) for text in smalltalk.as_right(tuple(ways)))
    s.turns[-1].accept = tuple(text for text in accept if "{" not in text)


def filled(text: str, values: dict[str, str]) -> str:
    """A reply with its places filled."""
    for place, value in values.items():
        text = text.replace(place, value)
    return text


_PLACE: Final = re.compile("{this}|{about}")
_ABOUT: Final = ("topic", "inventor", "word", "object", "country", "city", "far", "name", "item", "pet", "relative")
_POLITE: Final = re.compile(r"\b(please|now|for me|again|right now|then|thanks)\b")
_THINGS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:the|an?) (?!way$)(?:(?:first|last|best|most|next|good|nice|new|big|cheap|normal|great|real|\w+est) )?\w+"
        r"(?: of (?:the |our |it |an? |being |human )?\w+)?",
        r"\b(?:why|how|where|when|what) (?:do|does|did|can|are|is|was|were|don't|can't) (\w+)",
        r"\b(?:how many|is|are|does|do|will|can|of|about|for|to|my|our|your|(?:who|i|should i|solve|explain|play|have) \w+) (\w+)",
        r"\b(?:explain|play|solve|who) (\w+)",
    )
)
"""The subject of a question without a slot for it: something with an article, a person, or a quantity."""
_NO_THING: Final = frozenset(
    re.findall(
        r"\S+",
        "i you we they he she it that this these those there the a an my your our his her to do does did is are was be in on "
        "at any all some so too one me us them much many better best if not no real right good bad what who how why when "
        "where possible here it's about with for by such tell know think true most very and or have has had get give going "
        "go being human really happen",
    )
)


def named_in(made: str, given: dict[str, str], text: str) -> dict[str, str]:
    """The things that a refusal of `text` can name: `{this}`, the refused command, and `{about}`, the question's
    subject."""
    named: dict[str, str] = {}
    if made.startswith("~"):
        told = made.removeprefix("~").format(me="you", **given)
        command = turned(" ".join(_POLITE.sub("", told).split()))
        if 1 < len(command.split()) < 10:
            named["{this}"] = command
    about = next((given[key] for key in _ABOUT if key in given), "") or thing_in(text)
    if about:
        named["{about}"] = about
    return named


def thing_in(text: str) -> str:
    """The subject of a question in its own words; empty if there is nothing to name."""
    words = text.rstrip(".?!")
    for pattern in _THINGS:
        for found in pattern.finditer(words):
            thing = found[found.lastindex or 0]
            if not set(thing.lower().split()) <= _NO_THING:
                return thing
    return ""


def small_talk(s: Scene) -> None:
    fixed(s, smalltalk.SMALL_TALK, "small talk")


def itself(s: Scene) -> None:
    fixed(s, smalltalk.ABOUT, "about itself")


def out_of_reach(s: Scene) -> None:
    fixed(s, smalltalk.OUT_OF_REACH, "refusal")


def knowledge(s: Scene) -> None:
    """Questions for a larger model; the refusal says so."""
    fixed(s, smalltalk.KNOWLEDGE, "refusal")


def unclear(s: Scene) -> None:
    """Noise instead of words, or words without a request: it says what it understood, and asks."""
    if s.chance(0.25):
        s.turns.append(TalkTurn("user", NOT_UNDERSTOOD))
        s.say("I did not catch that. Could you say it again?", kind="not understood")
        return
    if s.chance(0.5):
        s.user(s.words(s.rng.randint(2, 5)))
    else:
        pieces = [piece for _ in range(s.rng.randint(2, 4)) for piece in s.piece()]
        s.user(" ".join(s.rng.sample(pieces, len(pieces))))
    s.say(f"I heard: {s.turns[-1].text.rstrip('.?!')}. What shall I do?", kind="not understood")


def stopping(s: Scene) -> None:
    """The user cuts the last reply short."""
    if s.turns and s.turns[-1].role == "assistant" and not s.turns[-1].call and not s.turns[-1].cut:
        words = len(s.turns[-1].text.split(" "))
        if words > 3:
            s.cut(s.rng.randint(1, words - 1))
    s.ask("stop")
    s.say("Okay.", kind="stop")


def failed(s: Scene) -> None:
    """A tool that fails: it is slow, it breaks, or it was asked for something that does not exist."""
    shape = s.rng.random()
    if shape < 0.4:
        tool, intent = s.rng.choice(
            [("get_time", "time"), ("get_date", "date"), ("list_read", "list_read"), ("note_read", "note_read"), ("flip_coin", "coin"),
             ("list_timers", "timer_list"), ("list_alarms", "alarm_list"), ("list_reminders", "remind_list"), ("undo", "undo")]
        )  # fmt: skip
        s.ask(intent)
        late = f"{tool} did not answer within {s.rng.choice([2, 5, 8, 10, 20])} s"
        s.fail(tool, s.rng.choice([late, f"{tool} failed: {s.words(s.rng.randint(1, 4))}"]))
    elif shape < 0.55:
        time = s.ask("alarm", time=s.words(s.rng.randint(1, 2)))["time"]
        s.fail("set_alarm", said_error(answers.find_time, time), time=time)
    elif shape < 0.7:
        feast = s.ask("days_until", feast=s.words(s.rng.randint(1, 2)))["feast"]
        s.fail("days_until", said_error(answers.find_day, feast, dt.date(2026, 1, 1)), day=feast)
    elif shape < 0.8:
        sides = s.ask("die_sides", sides=s.number(s.rng.choice([0, 1, s.whole(1001, 9000)])))["sides"]
        s.fail("roll_die", "a die has 2 to 1000 sides", sides=sides)
    else:
        n, (source, target) = (
            s.number(s.whole(2, 300)),
            s.rng.sample(["miles", "pounds", "cups", "hours", s.word(), s.word()], 2),
        )
        slots = s.ask("convert", **{"n": n, "from": source, "to": target})
        given = {"value": slots["n"], "unit": slots["from"], "to": slots["to"]}
        s.fail("convert", said_error(answers.convert, *given.values()), **given)


def said_error(ask: Callable[..., object], *given: object) -> str:
    """The product tool's own error message for these arguments."""
    try:
        ask(*given)
    except answers.AnswerError as error:
        return str(error)
    raise Unusable(str(given))
