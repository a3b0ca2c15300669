"""Alarms and reminders: what rings at a moment. Each answer names the moment that was stored."""

from __future__ import annotations

import datetime as dt

from assistant.tools import answers
from assistant.tools.errors import AnswerError
from assistant.tools.kept import Kept
from assistant.tools.moments import TimeIsOver, find_time, read_moment
from assistant.tools.registry import ToolResult
from assistant.tools.rows import ALARMS, REMINDERS, Promise
from assistant.tools.timers import ALL, bounded, read_out

NO_ALARM, NO_REMINDER = "no alarm is set", "no reminders"
_SMALL_WORDS = frozenset(
    ["a", "an", "the", "my", "our", "to", "of", "for", "about", "on", "at", "that", "this", "reminder"]
)


class AlarmTools:
    """`kept` is the talk's view of the store; its clock is the wall clock."""

    kept: Kept

    async def set_alarm(self, time: str, day: str = "") -> str | ToolResult:
        "Set an alarm at a time of day, perhaps of a day; `every weekday` repeats it."
        now = self.kept.home.now()
        try:
            moment = read_moment(f"{time} {day}".strip(), now, waking=True)
        except TimeIsOver:
            raise
        except AnswerError:
            if not day or day.lower() not in time.lower():
                raise
            moment = read_moment(time, now, waking=True)  # a model may write the day twice
        self.kept.promise(ALARMS, "", moment)
        told = answers.alarm(moment.at, now, moment.repeat) + answers.skipped(moment.meant, moment.at)
        return bounded(self.kept, told, f"Your alarm is set: {told}.")

    async def cancel_alarm(self, time: str = "") -> str:
        "Take an alarm back, found by its time; all of them for `all`."
        rows = self.kept.promises(ALARMS)
        if not rows:
            return NO_ALARM
        if time.lower().strip() in ALL:
            self.kept.remove(ALARMS, *rows)
            return answers.listed([self._alarm(row) for row in rows], NO_ALARM)
        found = [row for row in rows if self._rings_at(row, time)] if time else rows
        if not found:
            raise AnswerError(f"no alarm is set for {time!r}", f"There is no such alarm. I have {self._alarms(rows)}.")
        if len(found) > 1:
            raise AnswerError(f"several alarms are set: {self._alarms(found)}", f"Which one: {self._alarms(found)}?")
        self.kept.remove(ALARMS, found[0])
        return self._alarm(found[0])

    async def list_alarms(self) -> str | ToolResult:
        "The alarms that are set."
        return read_out("alarm", [self._alarm(row) for row in self.kept.promises(ALARMS)], NO_ALARM)

    async def set_reminder(self, text: str, time: str) -> str | ToolResult:
        "Remind of something at a time, for example at 5 pm, in 10 minutes or every Monday at 8 am."
        now = self.kept.home.now()
        moment = read_moment(time, now)
        self.kept.promise(REMINDERS, text.strip(), moment)
        shown = answers.when(moment.at, now, moment.repeat)
        if moment.wait_s is not None:
            shown = f"in {answers.duration(moment.wait_s)}"
        told = answers.entry(text.strip(), shown) + answers.skipped(moment.meant, moment.at)
        return bounded(self.kept, told, f"I will remind you: {told}.")

    async def cancel_reminder(self, text: str = "") -> str:
        "Take a reminder back, found by words of it; all of them for `all`."
        rows = self.kept.promises(REMINDERS)
        if not rows:
            return NO_REMINDER
        if text.lower().strip() in ALL:
            self.kept.remove(REMINDERS, *rows)
            return answers.listed([self._reminder(row) for row in rows], NO_REMINDER)
        wanted = _words(text)
        found = [row for row in rows if wanted <= _words(row.text)]
        shown = "; ".join(self._reminder(row) for row in found or rows)
        if not found:
            raise AnswerError(f"no reminder fits {text!r}; set: {shown}", f"There is no such reminder. I have {shown}.")
        if len(found) > 1:
            raise AnswerError(f"several reminders fit: {shown}", f"Which one: {shown}?")
        self.kept.remove(REMINDERS, found[0])
        return shown

    async def list_reminders(self) -> str | ToolResult:
        "All reminders."
        return read_out("reminder", [self._reminder(row) for row in self.kept.promises(REMINDERS)], NO_REMINDER)

    # -------------------------------------------------------------------------------- inside

    def _alarm(self, row: Promise) -> str:
        return answers.alarm(row.at, self.kept.home.now(), row.repeat)

    def _alarms(self, rows: list[Promise]) -> str:
        return " or ".join(self._alarm(row) for row in rows)

    def _reminder(self, row: Promise) -> str:
        return answers.entry(row.text, answers.when(row.at, self.kept.home.now(), row.repeat))

    def _rings_at(self, row: Promise, time: str) -> bool:
        """Whether an alarm may be meant by `7`, `the 7 am alarm` or `7 am tomorrow`."""
        said = " ".join(word for word in time.split() if word.lower() not in ("the", "alarm", "my", "one"))
        try:
            halves = {find_time(said), find_time(said, dt.time(11, 59)), find_time(said, dt.time(23, 59))}
        except AnswerError:
            try:
                return read_moment(said, self.kept.home.now(), waking=True).at == row.at
            except AnswerError:
                return False
        return row.at.time() in halves


def _words(text: str) -> set[str]:
    return {word.strip(".,;:!?").lower() for word in text.split()} - _SMALL_WORDS
