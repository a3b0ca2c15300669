"""The models sleep: their memory is let go while nobody needs them, and the next step of work brings it back.

Nothing else knows of it. Everything of both engines lies in buffers whose bytes wait in a file and whose addresses
stay. The bytes are complete, so a talk goes on from the very same bit, between two steps of a reply if need be.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from assistant.base.errors import EngineFailed
from capsules import ExecContext
from capsules.errors import ContractMisuse
from capsules.exec.away import Away


@dataclass(frozen=True, slots=True)
class Waking:
    """When memory came back, in the thread's seconds; both 0 before the first time."""

    begin: float = 0.0
    end: float = 0.0

    def ms_after(self, moment: float) -> float:
        """The part of waking that a request at this moment waited for, in milliseconds."""
        return max(0.0, self.end - max(self.begin, moment)) * 1000


class Sleep:
    """The sleep of all models in these contexts. Call `fall` and `wake` on the engines' thread, the rest from
    anywhere."""

    def __init__(
        self, contexts: Sequence[ExecContext], folder: Path, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._contexts, self._folder, self._now = contexts, folder, now
        self._away: Away | None = None
        self.latest = Waking()
        """The last time that the models woke."""
        self.count = 0
        """How often they have woken."""

    @property
    def freed_bytes(self) -> int:
        """Memory that is let go now; 0: awake."""
        return 0 if self._away is None else self._away.nbytes

    def fall(self) -> Generator[None, None, None]:
        """Fall asleep step by step; waking the models meanwhile ends it. Raises EngineFailed if they cannot sleep; then
        they are awake."""
        woken = self.count
        try:
            if self._away is None:
                buffers = [buffer for ctx in self._contexts for buffer in ctx.buffers()]
                fixed = [ctx.fixed for ctx in self._contexts if ctx.fixed is not None]
                self._away = Away(buffers, self._folder, fixed)
            with closing(self._away.let_go()) as steps:
                for _ in steps:
                    yield None
                    if self.count != woken:
                        return
        except (OSError, ContractMisuse) as error:
            self.wake()
            raise EngineFailed(f"the models stay awake: {error}") from error

    def wake(self) -> None:
        """Bring everything back as it was; does nothing if the models are awake."""
        if self._away is None or not self._away.nbytes:
            return
        begin = self._now()
        self._away.bring_back()
        self.latest = Waking(begin, self._now())
        self.count += 1

    def discard(self) -> None:
        if self._away is not None:
            self._away.discard()
