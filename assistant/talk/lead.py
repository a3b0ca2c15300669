"""The lead of a reply over its player: how much of the sent sound the front still has to play."""

from __future__ import annotations

from assistant.base.clock import Clock

MAX_LEAD_S = 6.0
"""An interruption would mostly throw away sound beyond this."""


class Lead:
    """Counts the sound that was sent. `paced`: the front plays at the pace of time; otherwise it has heard all at once,
    so that speech cannot overlap it."""

    def __init__(self, clock: Clock, paced: bool) -> None:
        self.play_end = 0.0
        """When the front will have played all that was sent, clock seconds."""
        self.underruns = 0
        """How often the front had played all that there was before more came."""
        self._clock, self._paced = clock, paced

    def count(self, seconds: float, *, first: bool) -> None:
        """Count these seconds as sent."""
        now = self._clock.now()
        if not self._paced:
            self.play_end = now
            return
        if not first and self.play_end < now:
            self.underruns += 1
        self.play_end = max(self.play_end, now) + seconds

    async def hold(self) -> None:
        """Wait until the lead allows more."""
        if self.play_end - self._clock.now() > MAX_LEAD_S:
            await self._clock.sleep_until(self.play_end - MAX_LEAD_S)
