"""The tools that every talk has: time, timers and alarms, arithmetic, lists and notes, and verbs about the talk itself.

The wording of their answers comes from `answers.py`, because the small model was trained on exactly that. Timers,
alarms, reminders, lists and notes belong to the home and are in files of their own. All parameters are text, as the
model writes them.

To add a tool, add a method: every public coroutine function of the class is declared to models that read declarations.
"""

from __future__ import annotations

import datetime as dt
import inspect
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from assistant.tools import answers
from assistant.tools.alarms import AlarmTools
from assistant.tools.errors import AnswerError
from assistant.tools.kept import Kept
from assistant.tools.lists import ListTools
from assistant.tools.registry import Tool, ToolRegistry, ToolResult
from assistant.tools.remembering import MemoryTools
from assistant.tools.rows import Changes
from assistant.tools.timers import TimerTools


class BuiltinTools(TimerTools, AlarmTools, ListTools, MemoryTools):
    """The functions behind the tools. `kept` is the talk's view of the store; `now` is the wall clock with its zone;
    `undoing` holds the stored rows that the previous exchange changed, before and after."""

    def __init__(
        self,
        kept: Kept,
        now: Callable[[], dt.datetime],
        personas: Mapping[str, str],
        persona: Callable[[], str],
        undoing: Callable[[], Changes] = dict,
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


TRAINED_TOOLS: Final = (
    "get_time", "get_date", "days_until", "set_timer", "change_timer", "cancel_timer", "list_timers", "set_alarm",
    "cancel_alarm", "list_alarms", "set_reminder", "list_reminders", "calculate", "convert", "spell", "list_add",
    "list_remove", "list_read", "list_clear", "note_add", "note_read", "flip_coin", "roll_die", "undo", "start_over",
    "switch_persona",
)  # fmt: skip
"""The tools that the small model learnt in training, in this order: it is shown only their names. Any further
built-in tool would be declared to it in full, in every talk. New weights may change this list."""


QUESTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "days_until": {"day": "Until which day?"},
    "set_timer": {"duration": "For how long?"},
    "change_timer": {"duration": "To how long?"},
    "set_alarm": {"time": "At what time?"},
    "set_reminder": {"text": "What shall I remind you of?", "time": "When shall I remind you?"},
    "calculate": {"expression": "What shall I calculate?"},
    "convert": {"value": "How much of it?", "unit": "From which unit?", "to": "To which unit?"},
    "spell": {"word": "Which word?"},
    "list_add": {"items": "What shall I put down?"},
    "list_remove": {"items": "What shall I take off?"},
    "note_add": {"text": "What shall I note?"},
    "remember": {"fact": "What shall I remember, in a sentence?"},
    "forget": {"fact": "What shall I forget?"},
}
"""Asked of the person where a model leaves out what a tool needs: each parameter that is required has one."""

ASKED: Final = {"start_over": "Shall I forget this whole talk?"}
"""Tools that wait for a yes: nothing brings back what they take, and a model may have misread a single word."""

READING: Final = frozenset({
    "get_time", "get_date", "days_until", "list_timers", "list_alarms", "list_reminders", "calculate", "convert",
    "spell", "list_read", "note_read", "check_timer", "what_you_know",
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


def builtin_tools(
    household: BuiltinTools, own: Iterable[Tool] = (), names: Sequence[str] | None = None
) -> ToolRegistry:
    """The tools of a talk: the built-in ones of these names over one household, all if None, and `own` ones."""
    registry = ToolRegistry(kept=household.kept)
    for name in builtin_names(type(household)) if names is None else names:
        questions, asking = QUESTIONS.get(name, {}), ASKED.get(name, "")
        registry.tool(getattr(household, name), reads=name in READING, questions=questions, asking=asking)
    return ToolRegistry((*registry, *own), household.kept)
