"""Wall-clock times and the moments at which they come, in a zone whose clocks are put forward and back.

Python compares and subtracts two times of one zone by their wall clocks. So all arithmetic on moments is done here, in
UTC, and all arithmetic on days is done on times without a zone.
"""

from __future__ import annotations

import calendar
import datetime as dt


def moments_of(wall: dt.datetime, zone: dt.tzinfo) -> tuple[dt.datetime, ...]:
    """The moments at which clocks show this time: one, or two where they are put back. A time that is left out, where
    they are put forward, comes as much later as they are moved: 2:30 is 3:30."""
    found = dict.fromkeys(wall.replace(tzinfo=dt.UTC, fold=0) - offset for offset in _offsets(wall, zone))
    moments = sorted(moment.astimezone(zone) for moment in found)
    shown = [moment for moment in moments if naive(moment) == wall]
    return tuple(shown) if shown else (moments[-1],)


def _offsets(wall: dt.datetime, zone: dt.tzinfo) -> list[dt.timedelta]:
    offsets = [wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)]
    return [offset for offset in offsets if offset is not None]


def naive(moment: dt.datetime) -> dt.datetime:
    """The time that clocks show, without an offset."""
    return moment.replace(tzinfo=None, fold=0)


def seconds_between(earlier: dt.datetime, later: dt.datetime) -> float:
    return (later.astimezone(dt.UTC) - earlier.astimezone(dt.UTC)).total_seconds()


def later(moment: dt.datetime, seconds: float) -> dt.datetime:
    """So many seconds later, in the same zone."""
    return (moment.astimezone(dt.UTC) + dt.timedelta(seconds=seconds)).astimezone(moment.tzinfo)


def add_months(day: dt.date, months: int) -> dt.date:
    """The same day of a later month, or its last one: a month after January 31 is the end of February."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return dt.date(year, month + 1, min(day.day, last_day(year, month + 1)))


def last_day(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


class LocalZone(dt.tzinfo):
    """The zone of this machine, by the rules of its system: it knows when clocks are put forward, as the fixed offset
    that `datetime.astimezone()` brings does not."""

    def utcoffset(self, moment: dt.datetime | None, /) -> dt.timedelta | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: dt.datetime | None, /) -> dt.timedelta | None:
        return None

    def tzname(self, moment: dt.datetime | None, /) -> str | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, moment: dt.datetime, /) -> dt.datetime:
        local = moment.replace(tzinfo=dt.UTC).astimezone()
        return local.replace(tzinfo=self)


def wall_clock() -> dt.datetime:
    """The time now, in the zone of this machine."""
    return dt.datetime.now(LocalZone())
