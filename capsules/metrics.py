"""Counts and levels with labels, readable at any time; knows neither clocks nor exporters."""

from collections.abc import Iterator
from dataclasses import dataclass

HELP = {
    "stored": "capsules taken in",
    "refused": "capsules not taken in, by cause",
    "hits": "capsules found, by how they were asked for and the tier that held them",
    "misses": "capsules not found or not usable, by cause",
    "reentries": "turns by how their state was reached",
    "replayed_tokens": "tokens that had to be folded in again",
    "demotions": "moves to a slower tier",
    "promotions": "moves to a faster tier",
    "copies": "durable copies written or given up, by what happened",
    "evictions": "capsules that are gone, by cause",
    "unreadable": "files of the disk tier that are no capsules of this version",
    "bytes": "bytes held, by tier",
    "shared": "bytes that deltas do not hold again, because their bases hold them",
    "charged": "bytes of state beside the capsules that count for the fastest memory's budget, by what",
    "capsules": "capsules held, by tier; one in memory with a copy on disk counts in both",
}


@dataclass(frozen=True)
class Sample:
    """One number."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float

    def __str__(self) -> str:
        inside = ",".join(f'{key}="{value}"' for key, value in self.labels)
        return f"{self.name}{{{inside}}} {self.value:g}" if inside else f"{self.name} {self.value:g}"


class Counters:
    """All numbers of one registry. Names are those of HELP; a misspelt one is a KeyError."""

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[tuple[str, str], ...], float]] = {name: {} for name in HELP}

    def add(self, name: str, count: float = 1, **labels: str) -> None:
        """Count something that happened."""
        table, key = self._values[name], tuple(sorted(labels.items()))
        table[key] = table.get(key, 0) + count

    def set(self, name: str, value: float, **labels: str) -> None:
        """Note a level."""
        self._values[name][tuple(sorted(labels.items()))] = value

    def total(self, name: str, **labels: str) -> float:
        """The sum over all samples that carry these labels."""
        wanted = set(labels.items())
        return sum(value for key, value in self._values[name].items() if wanted <= set(key))

    def samples(self) -> Iterator[Sample]:
        """Everything, in a fixed order; another thread may be counting."""
        for name, table in self._values.items():
            for key, value in sorted(table.copy().items()):
                yield Sample(name, key, value)
