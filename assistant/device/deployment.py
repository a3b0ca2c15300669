"""What the local engines of a process share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from assistant.device.thread import EngineThread
from capsules import ExecContext
from capsules.registry import Registry


@dataclass(frozen=True)
class Deployment:
    """One context, one thread that issues its replays, one place where capsules are kept.

    talks   where what is known of parked talks lies over a restart; None keeps it in memory only
    now     seconds that only grow, for what is measured and for how much of a sound has been played
    """

    ctx: ExecContext
    thread: EngineThread
    registry: Registry
    talks: Path | None = None
    now: Callable[[], float] = time.monotonic
