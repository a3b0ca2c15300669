"""Timers: several at once, found by name or by length."""

from __future__ import annotations

from dataclasses import replace

from assistant.tools import answers
from assistant.tools.errors import AnswerError
from assistant.tools.kept import Kept
from assistant.tools.moments import Moment
from assistant.tools.registry import ToolResult
from assistant.tools.rows import TIMERS, Promise
from assistant.tools.wall import later, seconds_between

NONE = "no timer is running"
ALL = ("all", "every", "everything", "all of them", "all timers")


class TimerTools:
    """`kept` is the talk's view of the store; its clock is the wall clock."""

    kept: Kept

    async def set_timer(self, duration: str, label: str = "") -> str | ToolResult:
        "Set a timer, for example of 5 minutes."
        seconds = answers.seconds_of(duration)
        length = answers.duration(seconds)
        self.kept.promise(TIMERS, length, Moment(later(self.kept.home.now(), seconds)), label.strip())
        told = answers.timer(length, label)
        return bounded(self.kept, told, f"Your timer is set: {told}.")

    async def change_timer(self, duration: str) -> str:
        "Set the newest timer to another length."
        seconds = answers.seconds_of(duration)
        if not (running := self.kept.promises(TIMERS)):
            return NONE
        return self._set_to(running[-1], seconds)

    async def adjust_timer(self, timer: str = "", to: str = "", add: str = "", subtract: str = "") -> str:
        """Change the time that a timer has left: to a length, by adding one, or by subtracting one. `timer` is its
        name or its length."""
        row, which = self._found(timer)
        if to:
            return self._set_to(row, answers.seconds_of(to)) + which
        if not (add or subtract):
            raise AnswerError("adjust_timer needs to, add or subtract", "By how much?")
        change = answers.seconds_of(add) if add else -answers.seconds_of(subtract)
        left = self._left_s(row) + change
        if left <= 0:
            raise AnswerError("the timer has less time left", "It has less time left than that. Shall I stop it?")
        self.kept.replace(TIMERS, row, self._with_left(row, left))
        return f"{answers.timer(answers.duration(left), row.label)} left{which}"

    async def pause_timer(self, timer: str = "") -> str:
        "Pause a timer. `timer` is its name or its length; the newest one if empty."
        row, which = self._found(timer)
        if row.left_s is None:
            self.kept.replace(TIMERS, row, replace(row, left_s=self._left_s(row)))
        return f"{self._shown(row)} left, paused{which}"

    async def resume_timer(self, timer: str = "") -> str:
        "Let a paused timer go on. `timer` is its name or its length."
        paused = [row for row in self.kept.promises(TIMERS) if row.left_s is not None]
        row, which = self._found(timer, paused if len(paused) == 1 or not timer else None)
        if row.left_s is not None:
            self.kept.replace(TIMERS, row, replace(self._with_left(row, row.left_s), left_s=None))
        return f"{self._shown(row)} left, running{which}"

    async def cancel_timer(self, label: str = "") -> str | ToolResult:
        "Stop a timer, found by its name or its length; all of them for `all`."
        running = self.kept.promises(TIMERS)
        if not running:
            return NONE
        if label.lower().strip() in ALL:
            self.kept.remove(TIMERS, *running)
            return answers.listed([answers.timer(row.text, row.label) for row in running], NONE)
        row, which = self._found(label)
        self.kept.remove(TIMERS, row)
        shown = answers.timer(row.text, row.label)
        said = f"I cancelled the newer one: {shown}." if which else None
        return ToolResult(f"{shown}{which}", say=said)

    async def cancel_all_timers(self) -> str | ToolResult:
        "Stop all timers."
        return await self.cancel_timer("all")

    async def list_timers(self) -> str | ToolResult:
        "Report the time left on the running timers."
        return read_out("timer", [self._shown(row) for row in self.kept.promises(TIMERS)], NONE)

    async def check_timer(self, timer: str = "") -> str:
        "Report the time left on one timer, found by its name or its length."
        row, which = self._found(timer)
        return f"{self._shown(row)} left{', paused' if row.left_s is not None else ''}{which}"

    # -------------------------------------------------------------------------------- inside

    def _found(self, which: str, among: list[Promise] | None = None) -> tuple[Promise, str]:
        """The timer of this name or length, the newest if several are; and words that say so. Raises AnswerError."""
        running = self.kept.promises(TIMERS) if among is None else among
        if not running:
            raise AnswerError(NONE, "No timer is running.")
        found = [row for row in running if _fits(row, which)]
        if not found:
            rows = "; ".join(self._shown(row) for row in running)
            raise AnswerError(f"no timer fits {which!r}; running: {rows}", f"There is no such timer. I have {rows}.")
        return found[-1], f"; the newest of {len(found)} timers" if len(found) > 1 else ""

    def _set_to(self, row: Promise, seconds: float) -> str:
        length = answers.duration(seconds)
        self.kept.replace(TIMERS, row, replace(self._with_left(row, seconds), text=length))
        return answers.timer(length, row.label)

    def _with_left(self, row: Promise, seconds: float) -> Promise:
        paused = None if row.left_s is None else seconds
        return replace(row, at=later(self.kept.home.now(), seconds), left_s=paused)

    def _left_s(self, row: Promise) -> float:
        return seconds_between(self.kept.home.now(), row.at) if row.left_s is None else row.left_s

    def _shown(self, row: Promise) -> str:
        """pasta, 4 minutes 10 seconds"""
        return answers.timer(answers.duration(self._left_s(row)), row.label)


def bounded(kept: Kept, told: str, sentence: str) -> str | ToolResult:
    """A promise as it is told, with its bounds if they are to be said: to the model behind it, else in a sentence."""
    bounds = kept.bounds()
    return ToolResult(f"{told}. {bounds}", say=f"{sentence} {bounds}") if bounds else told


def read_out(what: str, rows: list[str], none: str) -> str | ToolResult:
    """The rows for the model; three and more also as a sentence, since the shipped model counts to two."""
    told = answers.listed(rows, none)
    return ToolResult(told, say=answers.counted(what, rows)) if len(rows) > 2 else told


def _fits(row: Promise, which: str) -> bool:
    """By name, by length, or `it`; `the pasta timer` is `pasta`."""
    words = [word for word in which.lower().split() if word not in ("the", "timer", "timers", "my", "for", "of")]
    name = " ".join(words)
    if name in ("", "it", "that", "this", "last", "newest"):
        return True
    if row.label and name in (row.label.lower(), row.label.lower().removesuffix(" timer")):
        return True
    try:
        return answers.duration(answers.seconds_of(name)) == row.text
    except AnswerError:
        return False
