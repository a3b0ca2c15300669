"""The language model is switched while the program runs: all is let go, and opened again with other settings.

A switch is a restart without an end of the process, in which what did not change stays loaded (`standing`). Talks are
parked in their journals as at any end, and go on with their words folded into the new model; the old one is freed
before the new one is loaded, because a card rarely has room for both. If the new one cannot be opened, the old one is
opened again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TypeVar

from assistant.app.chosen import SwitchState
from assistant.app.config import Config
from assistant.base.errors import AssistantError, PeerError
from capsules.errors import CapsuleError
from llm_engine.errors import LLMError
from tts_engine.errors import TTSError

T = TypeVar("T")
FAILURES = (AssistantError, CapsuleError, LLMError, TTSError, OSError, MemoryError)
"""Raised where models cannot be opened."""


class Choices:
    """The settings that are to run next. Called on the loop."""

    def __init__(self, state: SwitchState | None = None) -> None:
        self.state = state or SwitchState()
        self._next: asyncio.Queue[Config] = asyncio.Queue(1)

    def choose(self, model: str, config: Config) -> None:
        """Raises PeerError while another switch is under way."""
        if self.state.phase == "switching":
            raise PeerError("switch_busy", f"{self.state.model} is being loaded; wait until it answers")
        self.state = SwitchState("switching", model)
        self._next.put_nowait(config)

    async def chosen(self) -> Config:
        """Wait for the next choice."""
        return await self._next.get()

    def opened(self) -> None:
        """The chosen model runs; a switch that failed stays told."""
        if self.state.phase == "switching":
            self.state = replace(self.state, phase="done")

    def failed(self, why: str) -> None:
        """The chosen model cannot be opened."""
        self.state = replace(self.state, phase="failed", told=why)


async def run_switching(
    config: Config, choices: Choices, opened: Callable[[Config], AbstractAsyncContextManager[T]],
    serve: Callable[[T], None], pause: Callable[[], Awaitable[None]], freed: Callable[[], None],
    before: Config | None = None,
) -> None:  # fmt: skip
    """Keep open what `choices` name, until cancelled.

    serve   what is open may be used from now on
    pause   it may not any more: return once nobody uses it. Called in the midst of a switch, not at the end
    freed   it is gone
    before  settings to go back to if the first ones cannot be opened
    Raises what opening raises for the first settings, and for those before a switch that failed.
    """
    while True:
        running = False
        try:
            async with opened(config) as app:
                running = True
                choices.opened()
                serve(app)
                wanted = await choices.chosen()
                await pause()
                del app  # it would outlive its models otherwise
        except FAILURES as error:
            if running or before is None:
                raise
            choices.failed(str(error))
            config, before = before, None
        else:
            config, before = wanted, config
        freed()
