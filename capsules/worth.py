"""The worth of a capsule: the cost of folding it again, against the bytes it holds until it is wanted again.

Worth = tokens / (bytes x seconds until the next use). The next use is guessed from earlier ones: a capsule that returns
every five minutes and was used a minute ago is four minutes away. So if talks take turns in a circle, some capsules
stay and are found, while least-recently-used would keep none. A capsule that is overdue is given as long again as it
has been away. Uses are also remembered for capsules that have gone, or those that return seldom would never be known.
"""

from collections import OrderedDict
from dataclasses import dataclass

REMEMBERED = 1024
"""Keys whose uses are remembered, including those of capsules that have gone."""
RECENT = 0.5
"""Weight of the latest interval in the usual one."""
SOON = 0.1
"""Share of the usual interval: a use is never expected sooner."""


@dataclass(slots=True)
class _Uses:
    last: float
    interval: float | None = None
    wanted: bool = False  # asked for since it was last stored


class Arrivals:
    """When each key was used, and so when it may be used next. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._uses: OrderedDict[str, _Uses] = OrderedDict()
        self._usual: float | None = None  # over all keys

    def note_request(self, key: str, now: float) -> None:
        """It was requested, whether it was there or not. Several requests at one instant count as one."""
        self._used(key, now).wanted = True

    def note_stored(self, key: str, now: float) -> None:
        """It was stored: a use of its own, unless it ends the one that began with a request."""
        known = self._uses.get(key)
        if known is None or not known.wanted:
            known = self._used(key, now)
        known.wanted = False

    def _used(self, key: str, now: float) -> _Uses:
        known = self._uses.setdefault(key, _Uses(now))
        self._uses.move_to_end(key)
        if (away := now - known.last) > 0:
            known.interval = _mixed(known.interval, away)
            self._usual = _mixed(self._usual, away)
            known.last = now
        while len(self._uses) > REMEMBERED:
            self._uses.popitem(last=False)
        return known

    def expected_wait_s(self, key: str, now: float) -> float:
        """Expected seconds until the next use, as of now; above 0."""
        known = self._uses.get(key)
        idle = max(0.0, now - known.last) if known is not None else 0.0
        usual = known.interval if known is not None and known.interval is not None else self._usual
        if usual is None or idle >= usual:
            return 1.0 + idle
        return max(usual - idle, SOON * usual)


def worth(tokens: int, nbytes: int, wait_s: float) -> float:
    """Worth of keeping a capsule: tokens that are not folded again, per byte and second."""
    return (1 + tokens) / ((1 + nbytes) * wait_s)


def _mixed(usual: float | None, last: float) -> float:
    return last if usual is None else (1 - RECENT) * usual + RECENT * last
