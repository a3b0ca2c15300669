"""Plan: replays of several graphs on several streams, as a directed acyclic graph with explicit waits."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from capsules.errors import PlanError
from capsules.exec.graph import Graph
from capsules.exec.shapekey import ShapeKey
from capsules.exec.sync import Event, Stream


@dataclass(frozen=True)
class Step:
    """One replay. It starts after the named steps; steps on one stream also follow each other in plan order."""

    name: str
    graph: Graph
    key: ShapeKey
    stream: Stream
    after: tuple[str, ...] = field(default=())


class Plan:
    """A fixed schedule of replays, checked once and run many times. The host waits for none of them."""

    def __init__(self, steps: Sequence[Step], home: Stream) -> None:
        self._home = home
        self._steps = _ordered(steps)

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(step.name for step in self._steps)

    def run(self) -> None:
        """Issue every replay. Work issued on the home stream afterwards sees all results."""
        start = self._home.record()
        events: dict[str, Event] = {}
        last: dict[str, Event] = {}
        for step in self._steps:
            if step.stream.name not in last:
                step.stream.wait(start)
            for name in step.after:
                step.stream.wait(events[name])
            step.graph.replay(step.key, step.stream)
            events[step.name] = last[step.stream.name] = step.stream.record()
        for event in last.values():
            self._home.wait(event)


def _ordered(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Topological order that keeps the given order wherever it may. Raises PlanError."""
    names = [step.name for step in steps]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(f"two steps are called {name!r}; names must be unique")
    for step in steps:
        for name in step.after:
            if name not in names:
                raise PlanError(f"step {step.name!r} waits for {name!r}, which is not in the plan: {', '.join(names)}")
    ordered: list[Step] = []
    waiting = list(steps)
    while waiting:
        done = {step.name for step in ordered}
        ready = next((step for step in waiting if done.issuperset(step.after)), None)
        if ready is None:
            raise PlanError(f"these steps wait for each other: {', '.join(step.name for step in waiting)}")
        ordered.append(ready)
        waiting.remove(ready)
    return tuple(ordered)
