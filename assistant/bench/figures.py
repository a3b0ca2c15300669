"""Distributions of measured times: median, p90, p99, with n always beside them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from assistant.events import Timeline


@dataclass(frozen=True, slots=True)
class Distribution:
    """Milliseconds over `n` turns."""

    n: int
    median: float
    p90: float
    p99: float
    most: float


def distribution(values: Sequence[float]) -> Distribution:
    """Quantiles of at least one value; each is a value that occurred (nearest rank)."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("a distribution needs at least one value")

    def rank(percent: int) -> float:
        return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]

    return Distribution(len(ordered), rank(50), rank(90), rank(99), ordered[-1])


def figures_of(timelines: Iterable[Timeline]) -> dict[str, list[float]]:
    """Every named time of the turns: figures in milliseconds as they are, parts as `part: NAME`."""
    found: dict[str, list[float]] = {}
    for timeline in timelines:
        for name, value in timeline.figures.items():
            if name.endswith("_ms"):
                found.setdefault(name, []).append(value)
        for name, ms in parts_of(timeline).items():
            found.setdefault(f"part: {name}", []).append(ms)
    return found


def parts_of(timeline: Timeline) -> dict[str, float]:
    """Milliseconds by part; a part that came twice (a prefill before and after a tool) counts with its sum."""
    parts: dict[str, float] = {}
    for part in timeline.parts:
        parts[part.name] = parts.get(part.name, 0.0) + part.ms
    return parts


def shares_of(timelines: Sequence[Timeline]) -> dict[str, float]:
    """The share of each part in the time of all these turns; the shares sum to 1."""
    whole = sum(timeline.total_ms for timeline in timelines)
    shares: dict[str, float] = {}
    for timeline in timelines:
        for name, ms in parts_of(timeline).items():
            shares[name] = shares.get(name, 0.0) + ms / whole
    return shares


def summary(values: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    """As JSON, rounded to a microsecond."""
    told = {}
    for name, measured in values.items():
        fields = asdict(distribution(measured))
        told[name] = {key: round(value, 3) for key, value in fields.items()}
    return told


def table(values: Mapping[str, Sequence[float]], shares: Mapping[str, float] | None = None) -> list[str]:
    """Lines for a terminal; parts with their share of all waiting."""
    lines = [f"{'':<26}{'n':>5}{'median':>10}{'p90':>10}{'p99':>10}{'most':>10}{'share':>8}"]
    for name, measured in values.items():
        d = distribution(measured)
        share = (shares or {}).get(name.removeprefix("part: "))
        told = "" if share is None else f"{share:8.1%}"
        lines.append(f"{name:<26}{d.n:>5}{d.median:>10.1f}{d.p90:>10.1f}{d.p99:>10.1f}{d.most:>10.1f}{told}")
    return lines
