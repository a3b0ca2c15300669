"""Repeats: `every weekday at 8`, and when the next one comes. They are stored as RFC 5545 writes them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from assistant.base.days import DAYS
from assistant.tools.durations import DAYS_IN, MONTHS_IN, SECONDS
from assistant.tools.wall import add_months, last_day, later, moments_of, seconds_between

FREQUENCIES: Final = {
    "second": "SECONDLY", "minute": "MINUTELY", "hour": "HOURLY", "day": "DAILY", "week": "WEEKLY",
    "month": "MONTHLY", "year": "YEARLY",
}  # fmt: skip
_SETS: Final = {tuple(range(7)): "every day", tuple(range(5)): "every weekday", (5, 6): "every weekend"}


@dataclass(frozen=True, slots=True)
class Repeat:
    """Every `count` of a unit; some days of the week; a day of the month. `time` is the wall clock's, so that a day on
    which it does not exist moves no other day. Repeats by the second, minute and hour have none."""

    unit: str
    count: int = 1
    weekdays: tuple[int, ...] = ()
    month_day: int = 0
    time: dt.time | None = None

    @property
    def rule(self) -> str:
        """FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=8;BYMINUTE=0"""
        parts = [f"FREQ={FREQUENCIES[self.unit]}"]
        parts += [f"INTERVAL={self.count}"] if self.count > 1 else []
        parts += [f"BYDAY={','.join(DAYS[day][:2].upper() for day in self.weekdays)}"] if self.weekdays else []
        parts += [f"BYMONTHDAY={self.month_day}"] if self.month_day else []
        parts += [f"BYHOUR={self.time.hour}", f"BYMINUTE={self.time.minute}"] if self.time else []
        return ";".join(parts)

    @classmethod
    def from_rule(cls, rule: str) -> Repeat:
        """The inverse. Raises ValueError or KeyError for a rule that is not written here."""
        parts = dict(part.split("=") for part in rule.split(";"))
        units = {frequency: unit for unit, frequency in FREQUENCIES.items()}
        letters = [day[:2].upper() for day in DAYS]
        time = dt.time(int(parts["BYHOUR"]), int(parts["BYMINUTE"])) if "BYHOUR" in parts else None
        weekdays = tuple(letters.index(day) for day in parts["BYDAY"].split(",")) if "BYDAY" in parts else ()
        month_day, count = int(parts.get("BYMONTHDAY", 0)), int(parts.get("INTERVAL", 1))
        return cls(units[parts["FREQ"]], count, weekdays, month_day, time)

    def after(self, last: dt.datetime, now: dt.datetime) -> dt.datetime:
        """The next time that is later than `now`, counted on from `last`."""
        if self.time is None:
            step = self.count * SECONDS[self.unit]
            missed = max(0, int(seconds_between(last, now) // step))
            return later(last, (missed + 1) * step)
        assert last.tzinfo is not None
        for day in self._days(last.date()):
            for moment in moments_of(dt.datetime.combine(day, self.time), last.tzinfo):
                if seconds_between(now, moment) > 0 and seconds_between(last, moment) > 0:
                    return moment
        raise AssertionError("days go on for ever")

    def _days(self, first: dt.date) -> Iterator[dt.date]:
        """Those on which it comes, `first` among them."""
        if self.unit in MONTHS_IN:
            start = first.replace(day=1)
            for n in range(200 * 12):
                day = add_months(start, n * self.count * MONTHS_IN[self.unit])
                yield day.replace(day=min(self.month_day, last_day(day.year, day.month)))
        step = self.count * DAYS_IN.get(self.unit, 1)
        for n in range(200 * 366):
            day = first + dt.timedelta(days=n if self.weekdays else n * step)
            if not self.weekdays or day.weekday() in self.weekdays:
                yield day

    def __str__(self) -> str:
        """every Monday and Thursday"""
        if self.weekdays:
            return _SETS.get(self.weekdays) or f"every {' and '.join(DAYS[day].capitalize() for day in self.weekdays)}"
        if self.unit == "month" and self.count == 1:
            return f"on day {self.month_day} of every month"
        return f"every {self.unit}" if self.count == 1 else f"every {self.count} {self.unit}s"
