"""One turn's timeline: moments marked in order, so that its parts follow each other and sum to the total.

A stretch between two moments may be split by the costs that an engine reports for its work inside it; what they leave
over stays as the stretch's own part. So nothing is counted twice and nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from assistant.contracts import Cost
from assistant.events import Timeline, TimelinePart


class TurnTrace:
    """Marks of one turn in the session's clock, seconds. `begin` is the user's last speech sample."""

    def __init__(self, turn: int, begin: float, *, spoken: bool = False, after_barge_in: bool = False) -> None:
        self.turn = turn
        self.begin = begin
        self.committed = begin
        """When the turn was certain; the wait for the reply counts from here."""
        self._spoken, self._after_barge_in = spoken, after_barge_in
        self._last = begin
        self._parts: list[TimelinePart] = []
        self._figures: dict[str, float] = {}
        self._closed = False

    @property
    def closed(self) -> bool:
        """The first sound or text went out; later marks would no longer be part of the wait."""
        return self._closed

    def mark(self, name: str, moment: float, costs: Iterable[Cost] = ()) -> None:
        """The stretch since the last mark ended now; it was spent on `name`, less the costs named."""
        if self._closed:
            return
        moment = max(moment, self._last)
        whole = (moment - self._last) * 1000
        start = (self._last - self.begin) * 1000
        named = [cost for cost in costs if cost.ms > 0]
        known = sum(cost.ms for cost in named)
        shrink = min(1.0, whole / known) if known else 0.0
        for cost in named:
            start = self._add(cost.name, start, cost.ms * shrink)
        rest = whole - known * shrink
        if rest > 1e-9 or not named:
            self._add(name, start, max(0.0, rest))
        self._last = moment

    def close(self, moment: float) -> None:
        """The first sound or text of the reply was handed over."""
        self._closed = True
        wait = (moment - self.committed) * 1000
        self.figure("ttfa_ms", wait)
        if self._spoken:
            self.figure("voice_to_voice_ms", (moment - self.begin) * 1000)
        if self._after_barge_in:
            self.figure("reentry_ms", wait)

    def played(self, moment: float) -> None:
        """The front's player rendered the first sample then: the wait was longer by its part."""
        if self._closed and "player_ms" not in self._figures:
            ms = max(0.0, (moment - self._last) * 1000)
            self._add("player", (self._last - self.begin) * 1000, ms)
            self.figure("player_ms", ms)
            if self._spoken:
                self.figure("voice_to_voice_ms", (max(moment, self._last) - self.begin) * 1000)

    def figure(self, name: str, value: float) -> None:
        self._figures[name] = value

    def timeline(self, response_id: str) -> Timeline:
        return Timeline(self.turn, response_id, self.begin, tuple(self._parts), dict(self._figures))

    def _add(self, name: str, start: float, ms: float) -> float:
        if self._parts and self._parts[-1].name == name:
            last = self._parts.pop()
            self._parts.append(TimelinePart(name, last.start_ms, last.ms + ms))
        else:
            self._parts.append(TimelinePart(name, start, ms))
        return start + ms


def to_json(timeline: Timeline) -> dict[str, object]:
    """A timeline as JSON values, milliseconds to the microsecond."""
    return {
        "turn": timeline.turn,
        "response_id": timeline.response_id,
        "started_s": round(timeline.started, 6),
        "total_ms": round(timeline.total_ms, 3),
        "parts": [
            {"name": part.name, "start_ms": round(part.start_ms, 3), "ms": round(part.ms, 3)}
            for part in timeline.parts
        ],
        "figures": {name: round(value, 3) for name, value in timeline.figures.items()},
    }


class TraceLog:
    """Timelines as JSON lines, one file; kept short by starting again past `limit_bytes` (one old file stays)."""

    def __init__(self, path: Path, limit_bytes: int = 16 << 20) -> None:
        self._path = path
        self._limit = limit_bytes
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, timeline: Timeline, facts: Mapping[str, object] | None = None) -> None:
        """Append one line. A full or unwritable disk costs the line, not the talk."""
        line = json.dumps({**(facts or {}), **to_json(timeline)}, ensure_ascii=False)
        try:
            if self._path.exists() and self._path.stat().st_size > self._limit:
                self._path.replace(self._path.with_suffix(self._path.suffix + ".1"))
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError:
            return
