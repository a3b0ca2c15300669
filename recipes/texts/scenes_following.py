"""Scenes that follow an earlier turn: corrections, chains on the last result, changes, half a request.

Every reply and call whose arguments come from an earlier turn has the kind `correction` or `chain`.
"""

# ruff: noqa: E501  (sentences and word lists read better unbroken)
from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Final

from assistant.text.written import as_written
from assistant.tools import answers
from recipes.texts import smalltalk
from recipes.texts.phrases import PHRASES
from recipes.texts.scene import Scene, Unusable, spoken_list, written_list
from recipes.texts.scenes_told import listed as counted
from recipes.texts.scenes_tools import UNITS, calculated
from recipes.texts.slots import (
    OPERATORS,
    duration,
    items,
    noted,
    said_sum,
    said_time,
    shown,
    task,
    time_of_day,
    turned,
    when,
)
from recipes.texts.stories import new_story, part
from recipes.texts.words import WORDS

FIX: Final = "correction"
CHAIN: Final = "chain"
ASK: Final = "ask back"
HEARD: Final = "number misheard"


def corrected(s: Scene) -> None:
    """A request, and then its correction: a number, a word, a day, or another kind of thing."""
    s.rng.choice(_CORRECTIONS)(s)


def two_numbers(s: Scene, low: int, high: int) -> tuple[int, int]:
    """A number and one that may be mistaken for it: different by one in a digit, a teen for a ten, or any."""
    a = s.whole(low, high)
    near = [n for n in (a + 1, a - 1, a + 2, a - 2, a + 10, a - 10, a * 10, a // 10, a + 20) if low <= n <= high]
    b = s.rng.choice(near) if near and s.chance(0.6) else s.whole(low, high)
    if a == b:
        raise Unusable(str(a))
    return a, b


def timer(s: Scene) -> None:
    wrong, right = two_numbers(s, 2, 95)
    unit, label = s.value("unit_time"), s.value("label") if s.chance(0.3) else ""
    first = f"{s.number(wrong)} {unit}"
    given = s.ask("timer_label", duration=first, label=label) if label else s.ask("timer", duration=first)
    length = given["duration"]
    named = {"label": given["label"]} if label else {}
    ours = f"{given['label']} " if label else ""
    said = answers.duration(answers.seconds_of(length))
    s.call("set_timer", answers.timer(said, label), duration=length, **named)
    s.say(f"Your {ours}timer for {said} has started.", kind="reply set_timer")
    new = f"{s.ask('fix', right=s.number(right), wrong=s.number(wrong))['right']} {unit}"
    said = answers.duration(answers.seconds_of(new))
    s.call("change_timer", answers.timer(said, label), FIX, duration=new)
    s.say(f"Your {ours}timer is now set for {said}.", kind="reply change_timer")


def alarm(s: Scene) -> None:
    """Correct the hour, or add the day; anything not named stays."""
    half = s.rng.choice(["", " a m", " p m"])
    minute = s.rng.choice(["", "", " thirty", " fifteen", " forty five", f" {s.number(s.whole(10, 59))}"])
    wrong, right = two_numbers(s, 1, 12)
    if not half and not minute:
        half = " p m"
    time = s.ask("alarm", time=f"{s.number(wrong)}{minute}{half}")["time"]
    s.call("set_alarm", set_for := said_time(s, time), time=time)
    s.say(f"Your alarm is set for {set_for}.", kind="reply set_alarm")
    if s.chance(0.4):
        day = s.ask("fix", right=s.rng.choice(["tomorrow", s.value("day")]), wrong="today")["right"]
        s.call("cancel_alarm", set_for, FIX, time=set_for)
        s.call("set_alarm", f"{set_for}, {day}", FIX, time=time, day=day)
        s.say(f"Your alarm is set for {set_for} {day if day == 'tomorrow' else f'on {day}'}.", kind="reply set_alarm")
        return
    hour = s.ask("fix", right=f"{s.number(right)}{minute}", wrong=f"{s.number(wrong)}{minute}")["right"]
    new = hour + half.replace("a m", "am").replace("p m", "pm")
    s.call("cancel_alarm", set_for, FIX, time=set_for)
    s.call("set_alarm", said := said_time(s, new), FIX, time=new)
    s.say(f"Your alarm is set for {said}.", kind="reply set_alarm")


def reminder(s: Scene) -> None:
    """No tool deletes a reminder, so the right one is set."""
    what, at = task(s), when(s)
    slots = s.ask("remind", task=what, when=at)
    text, time = slots["task"], slots["when"]
    other, later = task(s), when(s)
    if other == what or later == at:
        raise Unusable(other)
    s.call("set_reminder", answers.entry(text, time), text=text, time=time)
    s.say(f"I will remind you to {turned(text)} {time}.", kind="reply set_reminder")
    if s.chance(0.5):
        time = s.ask("fix", right=later, wrong=at)["right"]
    else:
        text = s.ask("fix", right=other, wrong=what)["right"]
    s.call("set_reminder", answers.entry(text, time), FIX, text=text, time=time)
    s.say(f"I will remind you to {turned(text)} {time}.", kind="reply set_reminder")


def a_sum(s: Scene) -> None:
    """Correct one of the numbers, or the operator."""
    a, b = s.whole(2, 200), s.whole(2, 60)
    _, new = two_numbers(s, 2, 200)
    if len({a, b, new}) < 3:
        raise Unusable(str(new))  # nobody could tell which one was meant
    word = s.rng.choice(list(OPERATORS))
    heard = s.ask("sum", sum=f"{s.number(a)} {word} {s.number(b)}")["sum"]
    calculated(s, heard, said_sum(heard))
    sign = OPERATORS[word]
    if s.chance(0.25):
        right = s.rng.choice([op for op in OPERATORS if op != word])
        s.ask("fix both", right=right, wrong=word)
        sign = OPERATORS[right]
    elif s.chance(0.5):
        s.ask("fix both", right=s.number(new), wrong=s.number(a))
        a = new
    else:
        s.ask("fix both", right=s.number(new), wrong=s.number(b))
        b = new
    calculated(s, f"{a} {sign} {b}", said_sum(f"{a} {sign} {b}"), FIX)


def conversion(s: Scene) -> None:
    source, target, other = s.rng.sample(s.rng.choice([units for units in UNITS if len(units) > 2]), 3)
    wrong, right = two_numbers(s, 2, 300)
    slots = s.ask("convert", **{"n": s.number(wrong), "from": source, "to": target})
    value, unit, to = slots["n"], slots["from"], slots["to"]
    s.call("convert", result := answers.convert(value, unit, to), value=value, unit=unit, to=to)
    s.say(f"{result}.", kind="reply convert")
    if s.chance(0.5):
        to = s.ask("fix", right=other, wrong=target)["right"]
    else:
        value = s.ask("fix", right=s.number(right), wrong=s.number(wrong))["right"]
    s.call("convert", result := answers.convert(value, unit, to), FIX, value=value, unit=unit, to=to)
    s.say(f"{result}.", kind="reply convert")


def count(s: Scene) -> None:
    wrong, right = two_numbers(s, 3, 25)
    s.ask("count", n=s.number(wrong))
    s.say(counted([*range(1, wrong + 1)]), kind="count")
    if s.chance(0.6):
        s.cut(s.rng.randint(1, wrong - 1))
    s.ask("fix", right=s.rng.choice(["", "to ", "up to "]) + s.number(right), wrong=s.number(wrong))
    s.say(counted([*range(1, right + 1)]), kind=FIX)


def until(s: Scene) -> None:
    wrong, right = s.rng.sample(["christmas", "halloween", "new year", *(s.value("month") for _ in range(3))], 2)
    if wrong == right:
        raise Unusable(wrong)
    for kind in ("", FIX):
        day = s.ask("fix", right=right, wrong=wrong)["right"] if kind else s.ask("days_until", feast=wrong)["feast"]
        days = answers.days_until(day, dt.date(2026, 1, 1) + dt.timedelta(days=s.rng.randrange(1500)))
        s.call("days_until", days, kind, day=day)
        s.say(f"It is {days} until {day}.", kind="reply days_until")


def note(s: Scene) -> None:
    wrong, right = noted(s), noted(s)
    if wrong == right:
        raise Unusable(right)
    for kind, slots in (("", {"note": wrong}), (FIX, {"right": right, "wrong": wrong})):
        given = s.ask("fix" if kind else "note", **slots)
        s.call("note_add", "noted", kind, text=given["right" if kind else "note"])
        s.say("I wrote that down.", kind="reply note_add")


def swap(s: Scene) -> None:
    """Replace one thing on the list."""
    things, new = items(s), s.value("item")
    if new in things:
        raise Unusable(new)
    s.ask("list_add", items=spoken_list(things))
    s.call("list_add", written_list(things), items=written_list(things))
    s.say(f"I added {shown(things)} to your shopping list.", kind="reply list_add")
    old = s.rng.choice(things)
    s.ask("list swap", right=new, wrong=old)
    s.call("list_remove", old, FIX, items=old)
    s.call("list_add", new, FIX, items=new)
    s.say(f"I added {new} to your shopping list.", kind="reply list_add")


def say(s: Scene) -> None:
    words = s.words(s.rng.randint(1, 3))
    s.say(f"I say: {s.ask('say', words=words)['words']}.", kind="said after")
    right = s.ask("fix", right=s.words(s.rng.randint(1, 3)), wrong=words)["right"]
    s.say(f"I say: {right}.", kind=FIX)


def another_kind(s: Scene) -> None:
    """The right words, the wrong kind of thing."""
    s.rng.choice([_told_kind, _told_kind, _clock_kind, _timed_kind, _noted_kind])(s)


def _told_kind(s: Scene) -> None:
    pools = {"a joke": smalltalk.JOKES, "a fact": smalltalk.FACTS, "a poem": smalltalk.POEMS}
    wrong, right = s.rng.sample(list(pools), 2)
    s.ask(wrong.removeprefix("a "))
    s.say(pools[wrong][0] if s.chance(0.4) else s.rng.choice(pools[wrong]), kind=wrong.removeprefix("a "))
    s.ask("fix", right=right, wrong=wrong)
    s.say(s.rng.choice(pools[right]), kind=FIX)
    s.turns[-1].accept = pools[right]


def _clock_kind(s: Scene) -> None:
    now, today = answers.clock(dt.time(s.rng.randrange(24), s.rng.randrange(60))), dt.date(2026, 1, 1)
    full = answers.date(today + dt.timedelta(days=s.rng.randrange(1500)))
    kinds = {
        "time": ("the time", "get_time", now, f"It is {now}."),
        "date": ("the date", "get_date", full, f"Today is {full}."),
    }
    wrong, right = s.rng.sample(list(kinds), 2)
    for kind, asked in (("", wrong), (FIX, right)):
        if kind:
            s.ask("fix", right=kinds[right][0], wrong=kinds[wrong][0])
        else:
            s.ask(asked)
        s.call(kinds[asked][1], kinds[asked][2], kind)
        s.say(kinds[asked][3], kind=f"reply {kinds[asked][1]}")


def _timed_kind(s: Scene) -> None:
    """An alarm that should have been a timer or the reverse: only the wish remains."""
    if s.chance(0.5):
        length = s.ask("timer", duration=duration(s))["duration"]
        said = answers.duration(answers.seconds_of(length))
        s.call("set_timer", said, duration=length)
        s.say(f"Your timer for {said} has started.", kind="reply set_timer")
        s.ask("fix", right="an alarm", wrong="a timer")
        s.call("cancel_timer", said, FIX)
        s.say("At what time?", kind=ASK)
        time = s.user(s.rng.choice(["{t}", "at {t}", "for {t}"]), t=time_of_day(s))["t"]
        s.call("set_alarm", clock := said_time(s, time), FIX, time=time)
        s.say(f"Your alarm is set for {clock}.", kind="reply set_alarm")
        return
    time = s.ask("alarm", time=time_of_day(s))["time"]
    s.call("set_alarm", clock := said_time(s, time), time=time)
    s.say(f"Your alarm is set for {clock}.", kind="reply set_alarm")
    s.ask("fix", right="a timer", wrong="an alarm")
    s.call("cancel_alarm", clock, FIX, time=clock)
    s.say("For how long?", kind=ASK)
    length = s.user(s.rng.choice(["{d}", "for {d}", "{d} please"]), d=duration(s))["d"]
    said = answers.duration(answers.seconds_of(length))
    s.call("set_timer", said, FIX, duration=length)
    s.say(f"Your timer for {said} has started.", kind="reply set_timer")


def _noted_kind(s: Scene) -> None:
    """A note that should have been on the list, or a reminder."""
    for_list = s.chance(0.5)
    text = s.ask("note", note=s.value("item") if for_list else task(s))["note"]
    s.call("note_add", "noted", text=text)
    s.say("I wrote that down.", kind="reply note_add")
    if for_list:
        s.ask("fix", right=s.rng.choice(["the shopping list", "my shopping list", "on the list"]), wrong="a note")
        s.call("list_add", text, FIX, items=text)
        s.say(f"I added {text} to your shopping list.", kind="reply list_add")
        return
    s.ask("fix", right=s.rng.choice(["a reminder", "remind me"]), wrong="a note")
    s.say("When shall I remind you?", kind=ASK)
    time = s.user(s.rng.choice(["{when}", "{when} please"]), when=when(s))["when"]
    s.call("set_reminder", answers.entry(text, time), FIX, text=text, time=time)
    s.say(f"I will remind you to {turned(text)} {time}.", kind="reply set_reminder")


_CORRECTIONS: Final[tuple[Callable[[Scene], None], ...]] = (
    timer, timer, alarm, alarm, reminder, a_sum, a_sum, conversion, count, until, note, swap, say, another_kind, another_kind,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------ chains


def chained(s: Scene) -> None:
    """Arithmetic on the last result, whatever it came from; or a count that continues or goes back."""
    if s.chance(0.25):
        count_on(s)
        return
    result = number_said(s)
    for _ in range(s.rng.choice([1, 1, 2, 2, 3])):
        if result is None or len(result) > 7:
            return
        result = calculated(s, *_next(s, result), CHAIN)


def number_said(s: Scene) -> str | None:
    """Something that ends in a number: a sum, a conversion, a die, days."""
    shape = s.rng.random()
    if shape < 0.6:
        expression = f"{s.number(s.whole(2, 300))} {s.rng.choice(list(OPERATORS))} {s.number(s.whole(2, 60))}"
        expression = s.ask("sum", sum=expression)["sum"]
        return calculated(s, expression, said_sum(expression))
    if shape < 0.8:
        source, target = s.rng.sample(s.rng.choice(UNITS), 2)
        slots = s.ask("convert", **{"n": s.number(s.whole(2, 300)), "from": source, "to": target})
        given = {"value": slots["n"], "unit": slots["from"], "to": slots["to"]}
        s.call("convert", result := answers.convert(*given.values()), **given)
        s.say(f"{result}.", kind="reply convert")
        return result.split(" is ")[1].split(" ")[0]
    if shape < 0.9:
        s.ask("die")
        s.call("roll_die", rolled := str(s.rng.randint(1, 6)))
        s.say(f"You rolled a {rolled}.", kind="reply roll_die")
        return rolled
    day = s.ask("days_until", feast=s.rng.choice(["christmas", "halloween", s.value("month")]))["feast"]
    days = answers.days_until(day, dt.date(2026, 1, 1) + dt.timedelta(days=s.rng.randrange(1500)))
    s.call("days_until", days, day=day)
    s.say(f"It is {days} until {day}.", kind="reply days_until")
    return days.split(" ")[0]


def _next(s: Scene, result: str) -> tuple[str, str]:
    """A question about the last result: the expression, and its wording in a reply."""
    how = s.rng.choice(["half", "half", "double", "square", "root", "percent", "add", "subtract", "times", "divide"])
    if how in ("half", "double"):
        s.ask(f"chain {how}")
        return (f"{result} / 2", f"half of {result}") if how == "half" else (f"2 * {result}", f"twice {result}")
    if how in ("square", "root"):
        if result.startswith("-"):
            raise Unusable(result)
        s.ask(f"chain {how}")
        if how == "square":
            return f"{result}^2", f"{result} squared"
        return f"sqrt({result})", f"the square root of {result}"
    if how == "percent":
        share = s.ask("chain percent", a=s.number(s.rng.choice([5 * s.whole(1, 19), s.whole(2, 99)])))["a"]
        return f"{share}% of {result}", f"{share}% of {result}"
    sign = {"add": "+", "subtract": "-", "times": "*", "divide": "/"}[how]
    expression = f"{result} {sign} {s.ask(f'chain {how}', b=s.number(s.whole(2, 60)))['b']}"
    return expression, said_sum(expression)


def count_on(s: Scene) -> None:
    """A count that is then wanted backwards, or further."""
    n = s.whole(3, 20)
    s.ask("count", n=s.number(n))
    run = [*range(1, n + 1)]
    s.say(counted(run), kind="count")
    if s.chance(0.6):
        s.ask("chain backwards")
        s.say(counted(run[::-1]), kind=CHAIN)
    else:
        further = n + s.rng.randint(1, 10)
        s.ask("chain further", n=s.number(further))
        s.say(counted([*range(n + 1, further + 1)]), kind=CHAIN)


# ------------------------------------------------------------------------------------------------------ changes


def tale(s: Scene) -> None:
    """A story about another hero, another story, or only in one sentence."""
    hero = s.value("hero") if s.chance(0.6) else s.word()
    s.ask("story_about", hero=hero)
    first = new_story(s.rng, hero)
    s.say(" ".join(part(s.rng, first, 0)), kind="story 1")
    s.turns[-1].accept = (hero,)
    if s.chance(0.4):
        s.cut(s.rng.randint(3, 20))
    shape = s.rng.random()
    if shape < 0.6:
        other = s.value("hero") if s.chance(0.6) else s.word()
        if other == hero:
            raise Unusable(hero)
        s.ask("story instead", hero=other, wrong=hero)
        second = new_story(s.rng, other)
        s.say(" ".join(part(s.rng, second, 0)), kind="story 1")
        s.turns[-1].accept = (other,)
        if s.chance(0.5):
            s.ask("story_next", hero=other)
            s.say(" ".join(part(s.rng, second, 1)), kind="story 2")
            s.turns[-1].accept = (other,)
    elif shape < 0.8:
        s.ask("story other")
        second = new_story(s.rng)
        s.say(" ".join(part(s.rng, second, 0)), kind="story 1")
        s.turns[-1].accept = tuple(WORDS["hero"])
    elif not s.turns[-1].cut:
        s.ask("shorter")
        s.say(*first.about, kind="shorter")


def shorter(s: Scene) -> None:
    """Only the result."""
    if len(s.turns) < 2 or s.turns[-1].role != "assistant" or s.turns[-2].role != "tool" or s.turns[-1].cut:
        raise Unusable("no result")
    result = s.turns[-2].text
    if len(result) > 60 or result in ("ok", "noted", "cleared", "empty") or result.startswith("{"):
        raise Unusable(result)
    s.ask("shorter")
    s.say(f"{result}.", kind="shorter")


# --------------------------------------------------------------------------------------------- half a request


def half_said(s: Scene) -> None:
    """A request that breaks off before the important part: the assistant says what it understood and asks for the
    rest."""
    s.rng.choice([_half_sum, _half_unit, _half_word, _half_day, _half_alarm, _half_timer, _half_task])(s)


def broken_off(s: Scene, intent: str, **slots: str) -> dict[str, str]:
    """The beginning of a request; nothing polite follows it."""
    return s.user(s.made_and_said(PHRASES[intent])[0].removeprefix("~"), **slots)


def _half_sum(s: Scene) -> None:
    word = s.rng.choice(list(OPERATORS))
    slots = broken_off(s, "half sum", a=s.number(s.whole(2, 200)), op=word)
    s.say(f"{slots['a']} {word} what?", kind=ASK)
    b = s.user(s.rng.choice(["{b}", "{b} please", "{op} {b}"]), b=s.number(s.whole(2, 99)), op=word)["b"]
    expression = f"{slots['a']} {OPERATORS[word]} {b}"
    calculated(s, expression, said_sum(expression), CHAIN)


def _half_unit(s: Scene) -> None:
    source, target = s.rng.sample(s.rng.choice(UNITS), 2)
    slots = broken_off(s, "half convert", **{"n": s.number(s.whole(2, 300)), "from": source})
    s.say(f"{slots['n']} {slots['from']} in which unit?", kind=ASK)
    to = s.user(s.rng.choice(["{to}", "in {to}", "to {to}", "{to} please"]), to=target)["to"]
    s.call("convert", result := answers.convert(slots["n"], slots["from"], to), CHAIN, value=slots["n"], unit=slots["from"], to=to)
    s.say(f"{result}.", kind="reply convert")


def _half_word(s: Scene) -> None:
    if s.chance(0.5):
        broken_off(s, "half spell")
        s.say("Which word shall I spell?", kind=ASK)
        word = s.user(s.rng.choice(["{w}", "the word {w}", "{w} please"]), w=s.word())["w"]
        s.call("spell", letters := answers.spell(word), CHAIN, word=word)
        s.say(f"It is spelled {letters}.", kind="reply spell")
    elif s.chance(0.5):
        broken_off(s, "half story")
        s.say("About whom shall the story be?", kind=ASK)
        hero = s.value("hero")
        s.user(s.rng.choice(["a {h}", "about a {h}", "{h}", "a {h} please"]), h=hero)
        s.say(" ".join(part(s.rng, new_story(s.rng, hero), 0)), kind="story 1")
        s.turns[-1].accept = (hero,)
    else:
        broken_off(s, "half say")
        s.say("What shall I say?", kind=ASK)
        text = s.user("{t}", t=s.words(s.rng.randint(1, 4)))["t"]
        s.say(f"I say: {text}.", kind="said after")


def _half_day(s: Scene) -> None:
    broken_off(s, "half until")
    s.say("Until which day?", kind=ASK)
    day = s.user(s.rng.choice(["{d}", "until {d}", "{d} please"]), d=s.rng.choice([s.value("feast"), s.value("month"), s.value("day")]))["d"]
    days = answers.days_until(day, dt.date(2026, 1, 1) + dt.timedelta(days=s.rng.randrange(1500)))
    s.call("days_until", days, CHAIN, day=day)
    s.say(f"It is {days} until {day}.", kind="reply days_until")


def _half_alarm(s: Scene) -> None:
    broken_off(s, "half alarm")
    s.say("At what time?", kind=ASK)
    time = s.user(s.rng.choice(["{t}", "at {t}", "{t} please"]), t=time_of_day(s))["t"]
    s.call("set_alarm", said := said_time(s, time), CHAIN, time=time)
    s.say(f"Your alarm is set for {said}.", kind="reply set_alarm")


def _half_timer(s: Scene) -> None:
    broken_off(s, "half timer")
    s.say("For how long?", kind=ASK)
    length = s.user(s.rng.choice(["{d}", "for {d}", "{d} please"]), d=duration(s))["d"]
    said = answers.duration(answers.seconds_of(length))
    s.call("set_timer", said, CHAIN, duration=length)
    s.say(f"Your timer for {said} has started.", kind="reply set_timer")


def _half_task(s: Scene) -> None:
    at = broken_off(s, "half remind", when=when(s)).get("when")
    s.say("Of what shall I remind you?", kind=ASK)
    text = s.user(s.rng.choice(["to {t}", "{t}", "{t} please"]), t=task(s))["t"]
    if not at:
        s.say("When shall I remind you?", kind=ASK)
        at = s.user(s.rng.choice(["{when}", "{when} please"]), when=when(s))["when"]
    s.call("set_reminder", answers.entry(text, at), CHAIN, text=text, time=at)
    s.say(f"I will remind you to {turned(text)} {at}.", kind="reply set_reminder")


HOMOPHONES: Final = {
    "two": ("to", "too", "tu"), "four": ("for", "fore"), "eight": ("ate", "hate"), "one": ("won", "wan"), "six": ("sicks", "sex"),
    "seven": ("heaven", "sevin"), "nine": ("nein", "line", "mine"), "ten": ("tan", "tin"), "five": ("fife", "hive"),
    "twenty": ("plenty", "twin t"), "thirty": ("dirty", "thirsty", "third e"), "forty": ("for tea", "fort e", "four tea"),
    "fifty": ("fifth e", "fift e"), "sixty": ("six t", "sick stee"), "seventy": ("seven t", "seven tea"),
    "eighty": ("a d", "achy", "eight e", "aid e"), "ninety": ("nine t", "ninja t", "night e"), "three": ("tree", "free"),
}  # fmt: skip
"""Number words as an ear with an open vocabulary writes them."""


def heard_numbers(s: Scene) -> None:
    """A number that was written down as other words: the call and the reply have the intended number."""
    n = s.whole(2, 99)
    said = s.number(n)
    words = said.split()
    able = [i for i, word in enumerate(words) if word in HOMOPHONES]
    if not able:
        raise Unusable(said)
    at = s.rng.choice(able)
    words[at] = s.rng.choice(HOMOPHONES[words[at]])
    heard = " ".join(words)
    if s.chance(0.6):
        word, b = s.rng.choice(list(OPERATORS)), s.number(s.whole(2, 99))
        first = s.chance(0.5)
        s.ask("sum", sum=f"{heard} {word} {b}" if first else f"{b} {word} {heard}")
        other = as_written(b)
        expression = f"{n} {OPERATORS[word]} {other}" if first else f"{other} {OPERATORS[word]} {n}"
        calculated(s, expression, said_sum(expression), HEARD)
        return
    unit = s.rng.choice(["minutes", "minutes", "seconds", "hours"])
    s.ask("timer", duration=f"{heard} {unit}")
    length = f"{n} {unit}"
    s.call("set_timer", shown_length := answers.duration(answers.seconds_of(length)), HEARD, duration=length)
    s.say(f"Your timer for {shown_length} has started.", kind="reply set_timer")
