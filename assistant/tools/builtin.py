"""The tools that every talk has: time, timers and alarms, arithmetic, lists and notes, and verbs about the talk itself.

The wording of their answers comes from `answers.py`, because the small model was trained on exactly that. Each talk has
its own timers, lists and notes; when a timer runs out, it is announced as soon as nobody is speaking. All parameters
are text, as the model writes them.

To add a tool, add a method: every public coroutine function here is declared to models that read declarations.
"""

from __future__ import annotations

import datetime as dt
import inspect
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from assistant.tools import answers
from assistant.tools.errors import AnswerError
from assistant.tools.kept import ALARMS, LIST, NOTES, REMINDERS, TIMERS, Kept, Row, Slots
from assistant.tools.moments import read_moment
from assistant.tools.registry import Tool, ToolRegistry, ToolResult

SHOPPING = "shopping"


class BuiltinTools:
    """The functions behind the tools. `kept` stores their data; `now` is the wall clock with its zone; `undoing` holds
    the stored values that the previous exchange changed, as they were before it."""

    def __init__(
        self,
        kept: Kept,
        now: Callable[[], dt.datetime],
        personas: Mapping[str, str],
        persona: Callable[[], str],
        undoing: Callable[[], Slots] = dict,
        rng: random.Random | None = None,
    ) -> None:
        self.kept = kept
        self._now = now
        self._personas, self._persona, self._undoing = personas, persona, undoing
        self._rng = rng if rng is not None else random.Random()

    # ------------------------------------------------------------------------------ time and date

    async def get_time(self) -> str:
        "The time of day."
        return answers.clock(self._now())

    async def get_date(self, day: str = "today") -> str:
        "The date of a day: today, tomorrow, monday, christmas."
        return answers.date(answers.find_day(day, self._now().date()))

    async def days_until(self, day: str) -> str:
        "How many days until a day."
        return answers.days_until(day, self._now().date())

    # ------------------------------------------------------------------------------------- timers

    async def set_timer(self, duration: str, label: str = "") -> str:
        "Set a timer, for example of 5 minutes."
        seconds = answers.seconds_of(duration)
        length = answers.duration(seconds)
        words = f"Your {label} timer is done." if label else "Your timer is done."
        self.kept.add(TIMERS, length, label, self._now() + dt.timedelta(seconds=seconds), words)
        return answers.timer(length, label)

    async def change_timer(self, duration: str) -> str:
        "Set the running timer to another length."
        if not self.kept.rows(TIMERS):
            return "no timer is running"
        answers.seconds_of(duration)
        old = self.kept.rows(TIMERS)[-1]
        self.kept.remove(TIMERS, old)
        return await self.set_timer(duration, old.label)

    async def cancel_timer(self, label: str = "") -> str:
        "Stop a timer."
        found = [row for row in self.kept.rows(TIMERS) if not label or row.label.lower() == label.lower()]
        if not found:
            return "no timer is running"
        self.kept.remove(TIMERS, found[-1])
        return answers.timer(self._left(found[-1]), found[-1].label)

    async def list_timers(self) -> str:
        "Report the time left on the running timers."
        rows = [answers.timer(self._left(row), row.label) for row in self.kept.rows(TIMERS)]
        return answers.listed(rows, "no timer is running")

    async def set_alarm(self, time: str, day: str = "") -> str:
        "Set an alarm at a time of day."
        moment = read_moment(f"{time} {day}", self._now(), waking=True).at
        words = answers.clock(moment) + (f", {day}" if day else "")
        self.kept.add(ALARMS, words, "", moment, f"It is {answers.clock(moment)}.")
        return words

    async def cancel_alarm(self, time: str = "") -> str:
        "Take an alarm back."
        found = list(self.kept.rows(ALARMS))
        if time:
            either = {answers.clock(answers.find_time(time, now)) for now in (None, self._now().time())}
            found = [row for row in found if row.moment is not None and answers.clock(row.moment) in either]
        if not found:
            return "no alarm is set"
        self.kept.remove(ALARMS, found[-1])
        return found[-1].text

    async def list_alarms(self) -> str:
        "The alarms that are set."
        return self._told(ALARMS, "no alarm is set")

    async def set_reminder(self, text: str, time: str) -> str:
        "Remind of something at a time."
        row = answers.entry(text, time)
        self.kept.add(REMINDERS, row, "", read_moment(time, self._now()).at, f"Remember: {text}.")
        return row

    async def list_reminders(self) -> str:
        "All reminders."
        return self._told(REMINDERS, "no reminders")

    # -------------------------------------------------------------------------- numbers and words

    async def calculate(self, expression: str) -> str:
        "The value of an expression like 12 * 8 or 15% of 80."
        return answers.calculate(expression)

    async def convert(self, value: str, unit: str, to: str) -> str:
        "A measure in another unit."
        return answers.convert(value, unit, to)

    async def spell(self, word: str) -> str:
        "The letters of a word."
        return answers.spell(word)

    async def flip_coin(self) -> str:
        "Heads or tails."
        return self._rng.choice(("heads", "tails"))

    async def roll_die(self, sides: str = "6") -> str:
        "A throw of a die."
        if not sides.isdigit() or not 2 <= int(sides) <= 1000:
            raise AnswerError("a die has 2 to 1000 sides")
        return str(self._rng.randint(1, int(sides)))

    # ------------------------------------------------------------------------------ lists, notes

    async def list_add(self, items: str, list: str = SHOPPING) -> str:
        "Put things on a list."
        things = _things(items)
        for thing in things:
            self.kept.add(LIST + list.lower(), thing)
        return ", ".join(things)

    async def list_remove(self, items: str, list: str = SHOPPING) -> str:
        "Take things off a list."
        rows = {row.text.lower(): row for row in reversed(self.kept.rows(LIST + list.lower()))}
        things = _things(items)
        for thing in things:
            if thing.lower() not in rows:
                return f"{thing} is not on the list"
        self.kept.remove(LIST + list.lower(), *(rows[thing.lower()] for thing in things))
        return ", ".join(things)

    async def list_read(self, list: str = SHOPPING) -> str:
        "Read what is on a list."
        return ", ".join(row.text for row in self.kept.rows(LIST + list.lower())) or "empty"

    async def list_clear(self, list: str = SHOPPING) -> str:
        "Empty a list."
        self.kept.remove(LIST + list.lower(), *self.kept.rows(LIST + list.lower()))
        return "cleared"

    async def note_add(self, text: str) -> str:
        "Take a note."
        self.kept.add(NOTES, text)
        return "noted"

    async def note_read(self) -> str:
        "All notes."
        return self._told(NOTES, "no notes")

    # -------------------------------------------------------------------------------- the talk

    async def undo(self) -> ToolResult:
        "Take back the exchange before this one."
        if not (told := self.kept.told(self._undoing())):
            return ToolResult("ok", "undo")
        return ToolResult(f"ok. {told}", "undo", say=f"Okay, I took that back. {told}")

    async def start_over(self) -> ToolResult:
        "Forget the whole talk."
        return ToolResult("ok", "start_over")

    async def switch_persona(self, name: str = "") -> ToolResult:
        "Be somebody else."
        keys = [*self._personas]
        if name:
            wanted = [key for key in keys if name.lower() in (key.lower(), self._personas[key].lower())]
            if not wanted:
                return ToolResult(f"nobody here is called {name}")
            key = wanted[0]
        else:
            key = keys[(keys.index(self._persona()) + 1) % len(keys)]
        return ToolResult(self._personas[key], "switch_persona", key)

    # ------------------------------------------------------------------------------------ inside

    def _told(self, slot: str, none: str) -> str:
        return answers.listed([row.text for row in self.kept.rows(slot)], none)

    def _left(self, timer: Row) -> str:
        assert timer.moment is not None
        return answers.duration((timer.moment - self._now()).total_seconds())


def _things(items: str) -> list[str]:
    """`milk, eggs and bread` → milk, eggs, bread"""
    things = [thing.strip() for part in items.split(",") for thing in part.split(" and ")]
    found = [thing for thing in things if thing]
    if not found:
        raise AnswerError("there is nothing to put down")
    return found


TRAINED_TOOLS: Final = (
    "get_time", "get_date", "days_until", "set_timer", "change_timer", "cancel_timer", "list_timers", "set_alarm",
    "cancel_alarm", "list_alarms", "set_reminder", "list_reminders", "calculate", "convert", "spell", "list_add",
    "list_remove", "list_read", "list_clear", "note_add", "note_read", "flip_coin", "roll_die", "undo", "start_over",
    "switch_persona",
)  # fmt: skip
"""The tools that the small model learnt in training, in this order: it is shown only their names. Any further
built-in tool would be declared to it in full, in every talk. New weights may change this list."""


READING: Final = frozenset({
    "get_time", "get_date", "days_until", "list_timers", "list_alarms", "list_reminders", "calculate", "convert",
    "spell", "list_read", "note_read",
})  # fmt: skip
"""Tools that change nothing, not even the next throw of a die."""


def builtin_names(tools: type[BuiltinTools] = BuiltinTools) -> tuple[str, ...]:
    """Every tool that the class declares: its public coroutine functions, trained ones first."""
    declared = [
        name
        for base in reversed(tools.__mro__)
        for name, function in vars(base).items()
        if inspect.iscoroutinefunction(function) and not name.startswith("_")
    ]
    return tuple(dict.fromkeys((*TRAINED_TOOLS, *declared)))


def builtin_tools(household: BuiltinTools, own: Iterable[Tool] = (), *, limited: bool = False) -> ToolRegistry:
    """The tools of a talk: the built-in ones over one household, and `own` ones. A `limited` model (see `LLM.limited`)
    gets only those built-in tools that it learnt in training."""
    registry = ToolRegistry(kept=household.kept)
    for name in TRAINED_TOOLS if limited else builtin_names(type(household)):
        registry.tool(getattr(household, name), reads=name in READING)
    return ToolRegistry((*registry, *own), household.kept)
