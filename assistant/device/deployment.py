"""Everything that the local engines of a process share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from assistant.device.thread import EngineThread
from capsules import ExecContext
from capsules.journal import Journals
from capsules.registry import Registry


@dataclass(frozen=True)
class Deployment:
    """One context, one thread that issues its replays, one place that stores capsules.

    journals  the talks' journals; the facts about an open talk are written into its own
    now       seconds that only grow, for measurements and for how much of a sound has been played
    """

    ctx: ExecContext
    thread: EngineThread
    registry: Registry
    journals: Journals = field(default_factory=lambda: Journals(None))
    now: Callable[[], float] = time.monotonic
