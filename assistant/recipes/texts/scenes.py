"""What happens in a talk: one function per kind of exchange. `SCENES` gives each its share."""

# ruff: noqa: E501  (sentences and word lists read better unbroken)
from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Final

from assistant.hearing.written import as_written
from assistant.recipes.texts import smalltalk
from assistant.recipes.texts.scene import NOT_UNDERSTOOD, Scene, Turn, Unusable, phrasings, spoken_list, written_list
from assistant.recipes.texts.stories import Story, new_story, part
from assistant.recipes.texts.tools import PERSONAS
from assistant.recipes.texts.words import spoken_ordinal
from assistant.thinking import answers

# --------------------------------------------------------------------------------------------------- slots


def duration(s: Scene) -> str:
    """A length of time as people say it."""
    if s.chance(0.12):
        return s.rng.choice(
            ["an hour", "half an hour", "an hour and a half", "a minute", "a quarter of an hour", "two and a half hours",
             "one hour", "one minute", "two and a half minutes", "three quarters of an hour"]
        )  # fmt: skip
    unit = s.value("unit_time")
    n = (
        s.whole(2, 12)
        if unit == "hours"
        else s.rng.choice([s.whole(2, 20), s.whole(2, 59), 5 * s.whole(1, 12), s.whole(2, 99)])
    )
    text = f"{s.number(n)} {unit}"
    if unit == "hours" and s.chance(0.3):
        text += f" and {s.number(s.whole(2, 59))} minutes"
    elif unit == "minutes" and s.chance(0.1):
        text += f" and {s.number(s.whole(2, 59))} seconds"
    return text


def time_of_day(s: Scene) -> str:
    """A time of day as people say it."""
    hour = s.number(s.whole(1, 12))
    minute = s.rng.choice([15, 30, 45, s.whole(10, 59)])
    half = s.rng.choice([" a m", " p m", " in the morning", " in the evening", "", ""])
    shape = s.rng.random()
    if shape < 0.2:
        return f"{hour} o'clock" + s.rng.choice(["", half])
    if shape < 0.35:
        return f"half past {hour}"
    if shape < 0.5:
        return s.rng.choice(["quarter past", "quarter to", "a quarter past"]) + f" {hour}"
    if shape < 0.55:
        return s.rng.choice(["noon", "midnight"])
    if shape < 0.7 and half:
        return hour + half
    if shape < 0.75:
        return f"{hour} oh {s.number(s.whole(1, 9))}{half}"
    return f"{hour} {s.number(minute)}{half}"


def when(s: Scene) -> str:
    """When to be reminded."""
    return s.rng.choice(
        [f"at {time_of_day(s)}", f"in {duration(s)}", "tomorrow", f"tomorrow at {time_of_day(s)}", f"on {s.value('day')}",
         f"on {s.value('day')} at {time_of_day(s)}", "tonight", f"tomorrow {s.value('part')}", f"at {time_of_day(s)} {s.rng.choice(['tomorrow', 'today'])}"]
    )  # fmt: skip


def relative_day(s: Scene) -> str:
    """A day that is not today."""
    return s.rng.choice(
        [
            "tomorrow",
            "tomorrow",
            "yesterday",
            "the day after tomorrow",
            s.value("day"),
            f"on {s.value('day')}",
            f"next {s.value('day')}",
        ]
    )


def some_day(s: Scene) -> dt.date:
    return dt.date(2026, 1, 1) + dt.timedelta(days=s.rng.randrange(1500))


OPERATORS: Final = {"plus": "+", "minus": "-", "times": "*", "divided by": "/"}


def spoken_sum(s: Scene) -> str:
    """`twelve times eight`, sometimes longer or with a point."""
    big = s.rng.choice([20, 100, 100, 1000])
    words = (
        s.number(s.whole(0, big))
        if not s.chance(0.05)
        else f"{s.number(s.whole(1, 99))} point {s.number(s.whole(1, 9))}"
    )
    for _ in range(1 if s.chance(0.9) else 2):
        operator = s.rng.choice(list(OPERATORS))
        words += f" {operator} {s.number(s.whole(1, 100 if s.chance(0.7) else 12))}"
    return words


def said_sum(expression: str) -> str:
    """`12 * 8` in words for a reply: `12 times 8`."""
    for word, sign in OPERATORS.items():
        expression = expression.replace(f" {sign} ", f" {word} ")
    return expression


# ---------------------------------------------------------------------------------------------- time and date


def clock(s: Scene) -> None:
    s.ask("time")
    now = answers.clock(dt.time(s.rng.randrange(24), s.rng.randrange(60)))
    s.call("get_time", now)
    s.say(f"It is {now}.", kind="reply get_time")


def date(s: Scene) -> None:
    today = some_day(s)
    full = answers.date(today)
    month, weekday = full.split(", ")[1].split(" ")[0], full.split(",")[0]
    shape = s.rng.random()
    if shape < 0.35:
        s.ask("date")
        s.call("get_date", full)
        s.say(f"Today is {full}.", kind="reply get_date")
    elif shape < 0.55:
        s.ask("weekday", day=s.value("day"))
        s.call("get_date", full)
        s.say(f"Today is {weekday}.", kind="reply get_date")
    elif shape < 0.6:
        s.ask("month")
        s.call("get_date", full)
        s.say(f"It is {month}.", kind="reply get_date")
    elif shape < 0.65:
        s.ask("year")
        s.call("get_date", full)
        s.say(f"It is {today.year}.", kind="reply get_date")
    else:
        said_date(s, "date_of", today)
    if s.chance(0.35):
        said_date(s, "date_of_next", today)


def said_date(s: Scene, intent: str, today: dt.date) -> None:
    day = s.ask(intent, rel=relative_day(s))["rel"].removeprefix("on ").removeprefix("next ").removeprefix("the ")
    day = day if day in ("tomorrow", "yesterday") or day[0].isupper() else f"the {day}"
    full = answers.date(answers.find_day(day, today))
    s.call("get_date", full, "follow-up call" if intent.endswith("next") else "", day=day.removeprefix("the "))
    verb = "was" if day == "yesterday" else "is"
    s.say(f"{day} {verb} {full}.", kind="reply get_date")


def until(s: Scene) -> None:
    if s.chance(0.5):
        feast = s.value("feast")
    else:
        feast = s.rng.choice(
            [s.value("day"), f"{s.value('month')} {spoken_ordinal(s.rng.randint(1, 28))}", s.value("month")]
        )
    feast = s.ask("days_until", feast=feast)["feast"]
    days = answers.days_until(feast, some_day(s))
    s.call("days_until", days, day=feast)
    s.say(f"It is {days} until {feast}.", kind="reply days_until")


# ----------------------------------------------------------------------------------- timers, alarms, reminders


def timer(s: Scene) -> None:
    if s.chance(0.12):
        s.ask("timer_open")
        s.say("For how long?", kind="ask back")
        length = s.user(s.rng.choice(["{d}", "for {d}", "{d} please", "make it {d}"]), d=duration(s))["d"]
        label, kind = "", "follow-up call"
    elif s.chance(0.25):
        slots = s.ask("timer_label", duration=duration(s), label=s.value("label"))
        length, label, kind = slots["duration"], slots["label"], ""
    else:
        length, label, kind = s.ask("timer", duration=duration(s))["duration"], "", ""
    named = {"label": label} if label else {}
    said = answers.duration(answers.seconds_of(length))
    s.call("set_timer", answers.timer(said, label), kind, duration=length, **named)
    s.say(f"Your {label + ' ' if label else ''}timer for {said} has started.", kind="reply set_timer")
    if s.chance(0.22):
        change_timer(s, label)


def change_timer(s: Scene, label: str) -> None:
    length = s.ask("timer_change", duration=duration(s), wrong=s.number(s.whole(2, 90)))["duration"]
    if s.chance(0.93):
        said = answers.duration(answers.seconds_of(length))
        s.call("change_timer", answers.timer(said, label), "follow-up call", duration=length)
        s.say(f"Your {label + ' ' if label else ''}timer is now set for {said}.", kind="reply change_timer")
    else:
        s.call("change_timer", "no timer is running", "follow-up call", duration=length)
        s.say("There is no timer running.", kind="reply change_timer")


def timers(s: Scene) -> None:
    if s.chance(0.5):
        label = s.value("label") if s.chance(0.4) else ""
        if label:
            s.ask("timer_cancel_label", label=label)
        else:
            s.ask("timer_cancel")
        if s.chance(0.75):
            length = answers.duration(60 * s.whole(1, 60))
            s.call("cancel_timer", answers.timer(length, label), **({"label": label} if label else {}))
            s.say(f"I cancelled your {label + ' ' if label else ''}timer for {length}.", kind="reply cancel_timer")
        else:
            s.call("cancel_timer", "no timer is running", **({"label": label} if label else {}))
            s.say("There is no timer running.", kind="reply cancel_timer")
        return
    s.ask("timer_list")
    rows = [
        answers.timer(answers.duration(s.rng.randint(5, 4000)), s.value("label") if s.chance(0.4) else "")
        for _ in range(s.rng.choice([0, 1, 1, 1, 2]))
    ]
    s.call("list_timers", answers.listed(rows, "no timer is running"))
    if not rows:
        s.say("There is no timer running.", kind="reply list_timers")
    elif len(rows) == 1:
        s.say(f"You have one timer: {rows[0]}.", kind="reply list_timers")
    else:
        s.say(f"You have two timers: {rows[0]}; and {rows[1]}.", kind="reply list_timers")


def said_time(s: Scene, time: str) -> str:
    """The time that the clock makes of a request, at some moment of the day."""
    try:
        return answers.clock(answers.find_time(time, dt.time(s.rng.randrange(24), s.rng.randrange(60))))
    except answers.AnswerError as error:
        raise Unusable(time) from error


def alarm(s: Scene) -> None:
    shape = s.rng.random()
    if shape < 0.55:
        time = s.ask("alarm", time=time_of_day(s))["time"]
        s.call("set_alarm", said := said_time(s, time), time=time)
        s.say(f"Your alarm is set for {said}.", kind="reply set_alarm")
    elif shape < 0.75:
        day = s.rng.choice(["tomorrow", s.value("day")])
        slots = s.ask("alarm_day", time=time_of_day(s), day=day)
        said = said_time(s, slots["time"])
        s.call("set_alarm", f"{said}, {slots['day']}", time=slots["time"], day=slots["day"])
        day = slots["day"] if slots["day"] == "tomorrow" else f"on {slots['day']}"
        s.say(f"Your alarm is set for {said} {day}.", kind="reply set_alarm")
    elif shape < 0.83:
        s.ask("alarm_open")
        s.say("At what time?", kind="ask back")
        time = s.user(s.rng.choice(["{t}", "at {t}", "{t} please", "for {t}"]), t=time_of_day(s))["t"]
        s.call("set_alarm", said := said_time(s, time), "follow-up call", time=time)
        s.say(f"Your alarm is set for {said}.", kind="reply set_alarm")
    elif shape < 0.91:
        s.ask("alarm_cancel")
        time = answers.clock(dt.time(s.rng.randrange(24), s.rng.choice([0, 15, 30, 45])))
        some = s.chance(0.75)
        s.call("cancel_alarm", time if some else "no alarm is set")
        s.say(f"I cancelled your alarm for {time}." if some else "There is no alarm set.", kind="reply cancel_alarm")
    else:
        s.ask("alarm_list")
        rows = [
            answers.clock(dt.time(s.rng.randrange(24), s.rng.choice([0, 15, 30, 45])))
            for _ in range(s.rng.choice([0, 1, 1, 2]))
        ]
        s.call("list_alarms", answers.listed(rows, "no alarm is set"))
        if not rows:
            s.say("There is no alarm set.", kind="reply list_alarms")
        elif len(rows) == 1:
            s.say(f"Your alarm is set for {rows[0]}.", kind="reply list_alarms")
        else:
            s.say(f"You have two alarms: {rows[0]}; and {rows[1]}.", kind="reply list_alarms")


YOURS: Final = {"my": "your", "me": "you", "i": "you"}


def turned(text: str) -> str:
    """`call my mother` → `call your mother`."""
    return " ".join(YOURS.get(word, word) for word in text.split())


def task(s: Scene) -> str:
    """Something to be reminded of."""
    if s.chance(0.25):
        return f"{s.rng.choice(['call', 'meet', 'visit', 'write to', 'pick up', 'thank'])} {s.value('name')}"
    if s.chance(0.2):
        return f"{s.rng.choice(['buy', 'get', 'order'])} {s.value('item')}"
    return s.value("task")


def reminder(s: Scene) -> None:
    shape = s.rng.random()
    if shape < 0.7:
        slots = s.ask("remind", task=task(s), when=when(s))
        kind = ""
    elif shape < 0.83:
        slots = s.ask("remind_open", task=task(s))
        s.say("When shall I remind you?", kind="ask back")
        slots |= s.user(s.rng.choice(["{when}", "{when} please"]), when=when(s))
        kind = "follow-up call"
    else:
        s.ask("remind_list")
        rows = [answers.entry(task(s).lower(), when(s)) for _ in range(s.rng.choice([0, 1, 1, 2]))]
        rows = [as_written(row.replace(", ", " , ")).replace(" , ", ", ") for row in rows]
        s.call("list_reminders", answers.listed(rows, "no reminders"))
        if not rows:
            s.say("You have no reminders.", kind="reply list_reminders")
        else:
            s.say("You wanted to " + "; and to ".join(turned(row) for row in rows) + ".", kind="reply list_reminders")
        return
    s.call("set_reminder", answers.entry(slots["task"], slots["when"]), kind, text=slots["task"], time=slots["when"])
    s.say(f"I will remind you to {turned(slots['task'])} {slots['when']}.", kind="reply set_reminder")


# -------------------------------------------------------------------------------------- sums, units, letters


def calculated(s: Scene, expression: str, said: str, kind: str = "") -> str | None:
    try:
        result = answers.calculate(expression)
    except answers.AnswerError as error:
        s.call("calculate", str(error), kind, expression=expression)
        s.say(f"{error}.", kind="reply calculate")
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


# ---------------------------------------------------------------------------------------------- lists and notes


def items(s: Scene) -> list[str]:
    """One to three things to buy. Three at once are single words, or nobody could tell where one ends."""

    def one() -> str:
        return s.word() if s.chance(0.2) else s.value("item")

    count = s.rng.choice([1, 1, 1, 2, 2, 3])
    out: list[str] = []
    while len(out) < count:
        item = one()
        if item not in out and (count < 3 or " " not in item):
            out.append(item)
    return out


def shown(things: list[str]) -> str:
    """`milk, eggs and bread`."""
    return things[0] if len(things) == 1 else ", ".join(things[:-1]) + f" and {things[-1]}"


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
            if s.chance(0.4)
            else s.value("note")
        )
        note = s.ask("note", note=text)["note"]
        s.call("note_add", "noted", text=note)
        s.say("I wrote that down.", kind="reply note_add")
    elif shape < 0.75:
        s.ask("note_open")
        s.say("What shall I write down?", kind="ask back")
        note = s.user("{note}", note=s.value("note"))["note"]
        s.call("note_add", "noted", "follow-up call", text=note)
        s.say("I wrote that down.", kind="reply note_add")
    else:
        s.ask("note_read")
        rows = s.rng.sample(list(dict.fromkeys(s.value("note") for _ in range(6))), s.rng.choice([0, 1, 1, 2]))
        s.call("note_read", answers.listed(rows, "no notes"))
        s.say(f"Your notes say: {'; '.join(rows)}." if rows else "You have no notes.", kind="reply note_read")


# ------------------------------------------------------------------------------------------------- counting


def counting(s: Scene) -> None:
    """Counts, often cut off by the user, who then asks how far it got, or lets it go on."""
    shape = s.rng.random()
    step = 1
    if shape < 0.6:
        n = s.rng.choice([10, 20, 20, s.whole(3, 20), s.whole(5, 30), s.whole(20, 45) if s.chance(0.3) else 10])
        s.ask("count", n=s.number(n))
        run = list(range(1, n + 1))
    elif shape < 0.72:
        m = s.whole(2, 60)
        n = m + s.rng.randint(3, 12)
        s.ask("count_from", m=s.number(m), n=s.number(n))
        run = list(range(m, n + 1))
    elif shape < 0.85:
        n = s.rng.choice([5, 10, 20, s.whole(3, 25)])
        s.ask("count_down", n=s.number(n))
        run, step = list(range(n, 0, -1)), -1
    elif shape < 0.95:
        step = s.rng.choice([2, 5, 10])
        n = step * s.rng.randint(3, 12)
        s.ask("count_by", n=s.number(n), step={2: "twos", 5: "fives", 10: "tens"}[step])
        run = list(range(step, n + 1, step))
    else:
        s.ask("count_open")
        s.say("To which number?", kind="ask back")
        n = s.whole(3, 20)
        s.user(s.rng.choice(["{n}", "to {n}", "up to {n}"]), n=s.number(n))
        run = list(range(1, n + 1))
    s.say(", ".join(map(str, run)) + ".", kind="count")
    if len(run) < 3 or s.chance(0.15):
        if s.chance(0.5):
            s.ask("last_number")
            s.say(f"The last number I said was {run[-1]}.", kind="last number")
        return
    heard = s.rng.randint(0, len(run) - 1) if s.chance(0.9) else 0
    s.cut(heard)
    last = run[heard - 1] if heard else None
    for _ in range(s.rng.choice([1, 1, 2])):
        what = s.rng.random()
        if what < 0.6:
            s.ask("last_number")
            said = f"The last number I said was {last}." if last is not None else "I had not said a number yet."
            s.say(said, kind="last number")
        elif what < 0.85:
            s.ask("go_on")
            rest = run[heard:]
            s.say(", ".join(map(str, rest)) + ".", kind="go on counting")
            return
        else:
            s.ask("stop")
            s.say("Okay.", kind="stop")


# --------------------------------------------------------------------------------------------------- stories


def story(s: Scene) -> None:
    """A story in parts, told on, ended, refused, or cut off and taken up again."""
    shape = s.rng.random()
    if shape < 0.35:
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
        if s.chance(0.2):
            sentences = interrupted(s, sentences)
            if not sentences:
                return
            s.say(" ".join(sentences), kind="story taken up")
        if number == 2:
            break
        what = s.rng.random()
        if what < 0.62:
            s.ask("story_next", hero=tale.hero)
        elif what < 0.72:
            s.ask("story_end")
            s.say(" ".join(part(s.rng, tale, 2)), kind="story 3")
            break
        elif what < 0.82:
            s.ask("story_no")
            s.say("All right, I will stop here.", kind="story stopped")
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


def interrupted(s: Scene, sentences: list[str]) -> list[str]:
    """The user cuts in; an aside may follow. Returns the sentences still to be told, the broken one again."""
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
    """Jokes, facts and poems, and another one that is not the same."""
    kind, pool = s.rng.choice(
        [("joke", smalltalk.JOKES), ("joke", smalltalk.JOKES), ("fact", smalltalk.FACTS), ("poem", smalltalk.POEMS)]
    )
    s.ask(kind)
    left = list(pool)
    while True:
        told = s.say(*left, kind=kind)
        left.remove(told)
        if not left or not s.chance(0.3):
            return
        s.ask("another")


# ---------------------------------------------------------------------------------------------------- memory


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
        name = s.value("name") if s.chance(0.8) else s.word().capitalize()
        name = s.ask("name_tell", name=name)["name"]
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


# --------------------------------------------------------------------------------------- talk about the talk


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


def fixed(s: Scene, pairs: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...], kind: str) -> None:
    asked, said = s.rng.choice(pairs)
    line = s.rng.choice(phrasings(asked, s.split))
    slots = {key: s.value(key) for key in ("city", "name", "topic", "item") if f"{{{key}}}" in line}
    if "{rel}" in line:
        slots["rel"] = s.rng.choice(["today", "tomorrow", "tonight", f"on {s.value('day')}", "this weekend"])
    s.user(line, **slots)
    s.say(*(text.replace("{me}", s.me) for text in said), kind=kind)


def small_talk(s: Scene) -> None:
    fixed(s, smalltalk.SMALL_TALK, "small talk")


def itself(s: Scene) -> None:
    fixed(s, smalltalk.ABOUT, "about itself")


def out_of_reach(s: Scene) -> None:
    fixed(s, smalltalk.OUT_OF_REACH, "refusal")


def knowledge(s: Scene) -> None:
    """What only a larger model could answer; the refusal names it."""
    shape = s.rng.choice(["explain {topic}", "tell you about {topic}", "tell you about {topic}", *smalltalk.KNOWLEDGE])
    line = s.rng.choice(phrasings(smalltalk.KNOWLEDGE[shape], s.split))
    inventor = s.value("inventor")
    topic = s.value("topic") if s.chance(0.75) else " ".join(s.word() for _ in range(s.rng.choice([1, 1, 2])))
    country = s.value("city")
    slots = {
        "topic": topic, "object": s.value("object"), "quality": s.value("quality"), "country": country, "city": s.value("city"),
        "far": s.value("far"), "inventor": inventor, "word": s.word(), "language": s.value("language"),
        "inventor_bare": inventor.removeprefix("the "),
    }  # fmt: skip
    used = {key: value for key, value in slots.items() if f"{{{key}}}" in line}
    written = s.user(line, **used)
    if "inventor_bare" in written:
        written["inventor"] = inventor
    would = shape.format(**written)
    s.say(f"I am too small to {would}. A larger model could.", kind="refusal")


def unclear(s: Scene) -> None:
    """Noise instead of words; then the user may say it again."""
    if s.chance(0.4):
        s.turns.append(Turn("user", NOT_UNDERSTOOD))
    else:
        s.user(" ".join(s.word() for _ in range(s.rng.randint(1, 4))))
    s.say("I did not catch that. Could you say it again?", kind="not understood")


def stopping(s: Scene) -> None:
    """The user cuts the last reply short."""
    if s.turns and s.turns[-1].role == "assistant" and not s.turns[-1].call and not s.turns[-1].cut:
        words = len(s.turns[-1].text.split(" "))
        if words > 3:
            s.cut(s.rng.randint(1, words - 1))
    s.ask("stop")
    s.say("Okay.", kind="stop")


def failed(s: Scene) -> None:
    """A tool that fails."""
    s.ask("time")
    s.call(
        "get_time",
        '{"error": "'
        + s.rng.choice(["get_time did not answer within 8 s", "the clock is not available", "get_time failed"])
        + '"}',
    )
    s.say("Sorry, that did not work.", kind="reply error")


SCENES: Final[tuple[tuple[Callable[[Scene], None], float], ...]] = (
    (clock, 2), (date, 4), (until, 2), (timer, 8), (timers, 3.5), (alarm, 8), (reminder, 7), (arithmetic, 9), (conversion, 4),
    (spelling, 2.5), (chance_games, 2), (lists, 9), (notes, 5), (counting, 6), (story, 4), (fun, 2), (memory, 6), (again, 4),
    (session, 5), (small_talk, 6), (itself, 4), (out_of_reach, 4), (knowledge, 7), (unclear, 2), (stopping, 1.5), (failed, 0.3),
)  # fmt: skip
"""Every kind of exchange and its share."""
