"""Scenes with the other tools: sums, units, letters, chance, lists and notes."""

from __future__ import annotations

from typing import Final

from assistant.text.written import as_written
from assistant.tools import answers
from recipes.texts.scene import Scene, spoken_list, written_list
from recipes.texts.slots import (
    OPERATORS,
    items,
    noted,
    said_sum,
    shown,
    spoken_sum,
)


def calculated(s: Scene, expression: str, said: str, kind: str = "") -> str | None:
    try:
        result = answers.calculate(expression)
    except answers.AnswerError as error:
        s.fail("calculate", str(error), kind, expression=expression)
        return None
    s.call("calculate", result, kind, expression=expression)
    s.say(f"{said} is {result}.", kind="reply calculate")
    return result


def arithmetic(s: Scene) -> None:
    a, b = s.whole(2, 200), s.whole(2, 100)
    spoken_a, spoken_b = s.number(a), s.number(b)
    shape = s.rng.random()
    result: str | None
    if shape < 0.55:
        expression = s.ask("sum", sum=spoken_sum(s))["sum"]
        result = calculated(s, expression, said_sum(expression))
    elif shape < 0.75:
        intent = s.rng.choice(["add", "subtract", "multiply", "divide"])
        sign = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}[intent]
        slots = s.ask(intent, a=spoken_a, b=spoken_b)
        expression = f"{slots['a']} {sign} {slots['b']}"
        result = calculated(s, expression, said_sum(expression))
    elif shape < 0.83:
        slots = s.ask("percent", a=s.number(s.rng.choice([5 * s.whole(1, 19), s.whole(1, 99)])), b=spoken_a)
        expression = f"{slots['a']}% of {slots['b']}"
        result = calculated(s, expression, expression)
    elif shape < 0.9:
        root = s.ask("sqrt", a=s.number(s.rng.choice([a, s.whole(2, 20) ** 2])))["a"]
        result = calculated(s, f"sqrt({root})", f"the square root of {root}")
    else:
        intent = s.rng.choice(["square", "half", "double"])
        n = s.ask(intent, a=spoken_a)["a"]
        shapes = {
            "square": (f"{n}^2", f"{n} squared"),
            "half": (f"{n} / 2", f"half of {n}"),
            "double": (f"2 * {n}", f"twice {n}"),
        }
        result = calculated(s, *shapes[intent])
    while result is not None and len(result) < 8 and s.chance(0.25):
        if s.chance(0.6):
            operator = s.rng.choice(list(OPERATORS))
            n = s.ask("sum_next", op=operator, b=s.number(s.whole(2, 50)))["b"]
            expression = f"{result} {OPERATORS[operator]} {n}"
        else:
            expression = s.ask("sum_again", sum=spoken_sum(s))["sum"]
        result = calculated(s, expression, said_sum(expression), "follow-up call")


UNITS: Final = (
    ("miles", "kilometers", "meters", "feet", "yards", "inches", "centimeters"),
    ("pounds", "kilograms", "ounces", "grams"),
    ("gallons", "liters", "cups", "pints", "milliliters", "tablespoons", "teaspoons"),
    ("hours", "minutes", "seconds", "days", "weeks"),
)


def conversion(s: Scene) -> None:
    temperature = s.chance(0.18)
    units = ("celsius", "fahrenheit") if temperature else s.rng.choice(UNITS)
    source, target = s.rng.sample(units, 2)
    prefix = s.rng.choice(["degrees ", ""]) if temperature else ""
    singular = {"feet": "foot", "inches": "inch"}.get(source, source.removesuffix("s"))
    one = s.chance(0.07) and not temperature
    n = "one" if one else s.number(s.whole(2, 300))
    if not one and s.chance(0.08):
        n += f" point {s.number(s.whole(1, 9))}"
    slots = s.ask("convert", **{"n": n, "from": prefix + (singular if one else source), "to": target})
    value, unit, to = slots["n"], slots["from"].removeprefix("degrees "), slots["to"]
    s.call("convert", result := answers.convert(value, unit, to), value=value, unit=unit, to=to)
    s.say(f"{result}.", kind="reply convert")
    if s.chance(0.3):
        if s.chance(0.6) or temperature:
            slots = s.ask("convert_next", **{"n": s.number(s.whole(2, 300)), "from": source})
            value, unit = slots["n"], source
        else:
            to = s.ask("convert_to_next", to=s.rng.choice([u for u in units if u not in (source, target)]))["to"]
        s.call("convert", result := answers.convert(value, unit, to), "follow-up call", value=value, unit=unit, to=to)
        s.say(f"{result}.", kind="reply convert")


def spelling(s: Scene) -> None:
    word = s.ask("spell", word=s.word())["word"]
    kind = ""
    while True:
        s.call("spell", letters := answers.spell(word), kind, word=word)
        s.say(f"It is spelled {letters}.", kind="reply spell")
        if not s.chance(0.25):
            return
        word, kind = s.ask("spell_next", word=s.word())["word"], "follow-up call"


def chance_games(s: Scene) -> None:
    if s.chance(0.5):
        s.ask("coin")
        side = s.rng.choice(["heads", "tails"])
        s.call("flip_coin", side)
        s.say(f"It is {side}.", kind="reply flip_coin")
    elif s.chance(0.6):
        s.ask("die")
        rolled = str(s.rng.randint(1, 6))
        s.call("roll_die", rolled)
        s.say(f"You rolled a {rolled}.", kind="reply roll_die")
    else:
        sides = s.ask("die_sides", sides=s.number(s.whole(2, 100)))["sides"]
        rolled = str(s.rng.randint(1, int(sides)))
        s.call("roll_die", rolled, sides=sides)
        s.say(f"You rolled a {rolled}.", kind="reply roll_die")


def lists(s: Scene) -> None:
    shape = s.rng.random()
    name = s.value("list") if s.chance(0.3) else ""
    of_list = {"list": name} if name else {}
    your = f"your {name or 'shopping'} list"
    if shape < 0.5:
        kind = ""
        if s.chance(0.1):
            s.ask("list_add_open")
            s.say("What shall I add?", kind="ask back")
            things = items(s)
            s.user("{items}", items=spoken_list(things))
            kind, of_list, your = "follow-up call", {}, "your shopping list"
        else:
            things = items(s)
            slots = s.ask("list_add_named" if name else "list_add", items=spoken_list(things), **of_list)
            of_list = {"list": slots["list"]} if name else {}
        s.call("list_add", written_list(things), kind, items=written_list(things), **of_list)
        s.say(f"I added {shown(things)} to {your}.", kind="reply list_add")
        if s.chance(0.25):
            more = items(s)
            s.ask("list_add_next", items=spoken_list(more))
            s.call("list_add", written_list(more), "follow-up call", items=written_list(more), **of_list)
            s.say(f"I added {shown(more)} to {your}.", kind="reply list_add")
        elif s.chance(0.2):
            s.ask("list_remove_next")
            s.call("list_remove", written_list(things), "follow-up call", items=written_list(things), **of_list)
            s.say(f"I removed {shown(things)} from {your}.", kind="reply list_remove")
    elif shape < 0.68:
        things = items(s)[:2]
        s.ask("list_remove", items=spoken_list(things))
        if s.chance(0.8) or len(things) > 1:
            s.call("list_remove", written_list(things), items=written_list(things))
            s.say(f"I removed {shown(things)} from your shopping list.", kind="reply list_remove")
        else:
            s.call("list_remove", f"{things[0]} is not on the list", items=things[0])
            s.say(f"I see no {things[0]} on the list.", kind="reply list_remove")
    elif shape < 0.9:
        slots = s.ask("list_read_named" if name else "list_read", **of_list)
        of_list = {"list": slots["list"]} if name else {}
        things = list(dict.fromkeys(s.value("item") for _ in range(s.rng.randint(0, 6))))
        s.call("list_read", written_list(things) or "empty", **of_list)
        s.say(f"On {your}: {written_list(things)}." if things else f"{your} is empty.", kind="reply list_read")
    else:
        s.ask("list_clear")
        s.call("list_clear", "cleared")
        s.say("Your shopping list is empty now.", kind="reply list_clear")


def notes(s: Scene) -> None:
    shape = s.rng.random()
    if shape < 0.6:
        text = (
            f"{s.value('name')} {s.rng.choice(['likes', 'needs', 'has', 'wants'])} {s.value('item')}"
            if s.chance(0.3)
            else noted(s)
        )
        note = s.ask("note", note=text)["note"]
        s.call("note_add", "noted", text=note)
        s.say("I wrote that down.", kind="reply note_add")
    elif shape < 0.75:
        s.ask("note_open")
        s.say("What shall I write down?", kind="ask back")
        note = s.user("{note}", note=noted(s))["note"]
        s.call("note_add", "noted", "follow-up call", text=note)
        s.say("I wrote that down.", kind="reply note_add")
    else:
        s.ask("note_read")
        rows = [noted(s) for _ in range(s.rng.choice([0, 1, 1, 2, 3]))]
        rows = [as_written(row) for row in rows]
        s.call("note_read", answers.listed(rows, "no notes"))
        s.say(f"Your notes say: {'; '.join(rows)}." if rows else "You have no notes.", kind="reply note_read")
