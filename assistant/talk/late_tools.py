"""Tools of MCP servers that were still starting when the talk began: they join it once their server is ready.

A reply keeps the tools that it began with. The talk is folded again with the longer list, while nobody waits; one
without words begins as any new one does, from the persona's capsule.
"""

from __future__ import annotations

from collections.abc import Callable

from assistant.events import ServersStarting
from assistant.talk.context import TalkContext
from assistant.talk.messages import ToolsCame
from assistant.talk.sync import StateSync
from assistant.tools.registry import ToolRegistry


class LateTools:
    """`registry` makes the tools that a talk has which begins now."""

    def __init__(self, context: TalkContext, state_sync: StateSync, registry: Callable[[], ToolRegistry]) -> None:
        self._context, self._state_sync, self._registry = context, state_sync, registry
        self._came = False

    async def wait_for_servers(self) -> None:
        """Until every server is ready or given up. The front is told which ones are not."""
        servers = self._context.services.servers
        if servers is None or not servers.starting:
            return
        while starting := servers.starting:
            await self._context.emit(ServersStarting(starting))
            await servers.one_is_up()
            await self._context.inbox.send(ToolsCame())
        await self._context.emit(ServersStarting(()))

    async def came(self, message: ToolsCame) -> None:
        self._came = True

    def take_in(self) -> None:
        """Called between messages: no reply begins meanwhile."""
        context = self._context
        if not self._came or context.turn.replying:
            return
        self._came = False
        before = context.view.prompt(context.settings)
        context.view.renew(self._registry())
        if len(context.conversation) and context.view.prompt(context.settings) != before:
            self._state_sync.soon()
