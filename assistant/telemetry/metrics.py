"""Counts and distributions of a process's talks, in Prometheus' own types and a registry of their own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from assistant.events import Timeline

_MS_BUCKETS = (5, 10, 20, 40, 60, 80, 100, 150, 200, 300, 400, 600, 800, 1200, 2000, 4000, 8000)
_FIGURES = {
    "ttfa_ms": "Turn committed to first sample of the reply handed to the front",
    "voice_to_voice_ms": "User's last speech sample to first sample of the reply",
    "yield_ms": "First sample of overlapping speech to the reply falling silent",
    "reentry_ms": "Turn committed after a barge-in to first sample of the new reply",
    "restore_ms": "Time to restore state for a turn",
    "rollback_ms": "Time to roll state back for a turn",
}


class Metrics:
    """One per process; `text` is what `/metrics` answers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._figures = {
            name: Histogram(f"assistant_{name}", text, registry=self.registry, buckets=_MS_BUCKETS)
            for name, text in _FIGURES.items()
        }
        self._parts = Histogram(
            "assistant_turn_part_ms", "Parts of the time to first sound", ["part"], registry=self.registry,
            buckets=_MS_BUCKETS,
        )  # fmt: skip
        self.replies = Counter("assistant_replies", "Replies by how they ended", ["status"], registry=self.registry)
        self.turns = Counter("assistant_turns", "User turns committed", registry=self.registry)
        self.candidates = Counter(
            "assistant_candidates", "Replies begun before the turn was certain, by what became of them", ["outcome"],
            registry=self.registry,
        )  # fmt: skip
        self.wasted_ms = Counter(
            "assistant_wasted_ms", "Engine time spent on candidates that were dropped", registry=self.registry
        )
        self.errors = Counter("assistant_errors", "Errors told to fronts, by code", ["code"], registry=self.registry)
        self.sessions = Gauge("assistant_sessions_open", "Sessions open now", registry=self.registry)
        self.refused = Counter("assistant_sessions_refused", "Sessions refused: full", registry=self.registry)

    @property
    def outcomes(self) -> dict[str, int]:
        """How many candidates were released, late or dropped."""
        [counted] = self.candidates.collect()
        return {row.labels["outcome"]: int(row.value) for row in counted.samples if row.name.endswith("_total")}

    def observe(self, timeline: Timeline) -> None:
        """Count one turn's timeline in."""
        for name, histogram in self._figures.items():
            if name in timeline.figures:
                histogram.observe(timeline.figures[name])
        for part in timeline.parts:
            self._parts.labels(part.name).observe(part.ms)

    def text(self) -> bytes:
        return generate_latest(self.registry)
