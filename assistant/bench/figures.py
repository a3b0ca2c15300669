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
    """Of at least one value; quantiles are values that occurred (nearest rank)."""
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
        for part in timeline.parts:
            found.setdefault(f"part: {part.name}", []).append(part.ms)
    return found


def summary(values: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    """As JSON, rounded to a microsecond."""
    told = {}
    for name, measured in values.items():
        fields = asdict(distribution(measured))
        told[name] = {key: round(value, 3) for key, value in fields.items()}
    return told


def table(values: Mapping[str, Sequence[float]]) -> list[str]:
    """Lines for a terminal."""
    lines = [f"{'':<26}{'n':>5}{'median':>10}{'p90':>10}{'p99':>10}{'most':>10}"]
    for name, measured in values.items():
        d = distribution(measured)
        lines.append(f"{name:<26}{d.n:>5}{d.median:>10.1f}{d.p90:>10.1f}{d.p99:>10.1f}{d.most:>10.1f}")
    return lines
