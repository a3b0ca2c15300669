"""Scenes about time: the clock, dates, timers, alarms, reminders."""

from __future__ import annotations

import datetime as dt

from assistant.text.written import as_written
from assistant.tools import answers
from recipes.texts.scene import Scene
from recipes.texts.slots import (
    duration,
    relative_day,
    said_time,
    short_duration,
    some_day,
    task,
    time_of_day,
    turned,
    when,
)
from recipes.texts.words import spoken_ordinal


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


def timer(s: Scene) -> None:
    if s.chance(0.12):
        s.ask("timer_open")
        s.say("For how long?", kind="ask back")
        length = s.user(s.rng.choice(["{d}", "for {d}", "{d} please", "make it {d}"]), d=duration(s))["d"]
        label, kind = "", "follow-up call"
    elif s.chance(0.25):
        slots = s.ask("timer_label", duration=duration(s), label=s.value("label"))
        length, label, kind = slots["duration"], slots["label"], ""
    elif s.chance(0.2):
        labelled = s.chance(0.25)
        slots = s.ask(
            "timer_short_label" if labelled else "timer_short", short=short_duration(s), label=s.value("label")
        )
        length, label, kind = slots["short"], slots.get("label", ""), ""
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
    told_timers(s, rows)


def told_timers(s: Scene, rows: list[str]) -> None:
    s.call("list_timers", answers.listed(rows, "no timer is running"))
    s.say(answers.counted("timer", rows) if rows else "There is no timer running.", kind="reply list_timers")


def told_alarms(s: Scene, rows: list[str]) -> None:
    s.call("list_alarms", answers.listed(rows, "no alarm is set"))
    if len(rows) == 1:
        s.say(f"Your alarm is set for {rows[0]}.", kind="reply list_alarms")
    else:
        s.say(answers.counted("alarm", rows) if rows else "There is no alarm set.", kind="reply list_alarms")


def told_reminders(s: Scene, rows: list[str]) -> None:
    rows = [as_written(row.replace(", ", " , ")).replace(" , ", ", ") for row in rows]
    s.call("list_reminders", answers.listed(rows, "no reminders"))
    if not rows:
        s.say("You have no reminders.", kind="reply list_reminders")
    else:
        s.say("You wanted to " + "; and to ".join(turned(row) for row in rows) + ".", kind="reply list_reminders")


def several(s: Scene) -> None:
    """Three and more timers, alarms or reminders read out."""
    many = s.rng.choice([3, 3, 3, 4, 4, 5, 6])
    shape = s.rng.random()
    if shape < 0.5:
        s.ask("timer_list")
        lengths = [answers.duration(s.rng.choice([s.rng.randint(5, 4000), 60 * s.whole(1, 60)])) for _ in range(many)]
        told_timers(s, [answers.timer(length, s.value("label") if s.chance(0.4) else "") for length in lengths])
    elif shape < 0.75:
        s.ask("alarm_list")
        times = [answers.clock(dt.time(s.rng.randrange(24), s.rng.randrange(0, 60, 5))) for _ in range(many)]
        days = [s.rng.choice(["", "", "tomorrow", s.value("day").capitalize()]) for _ in range(many)]
        told_alarms(s, [f"{time}, {day}" if day else time for time, day in zip(times, days, strict=True)])
    else:
        s.ask("remind_list")
        told_reminders(s, [answers.entry(task(s).lower(), when(s)) for _ in range(min(many, 4))])


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
        told_alarms(s, rows)


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
        told_reminders(s, [answers.entry(task(s).lower(), when(s)) for _ in range(s.rng.choice([0, 1, 1, 2]))])
        return
    s.call("set_reminder", answers.entry(slots["task"], slots["when"]), kind, text=slots["task"], time=slots["when"])
    s.say(f"I will remind you to {turned(slots['task'])} {slots['when']}.", kind="reply set_reminder")
