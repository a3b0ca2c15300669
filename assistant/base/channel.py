"""A bounded, closable queue between two tasks: a slow receiver slows its sender, closing ends the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from assistant.base.errors import ChannelClosed

T = TypeVar("T")


class Channel(Generic[T]):
    """Many senders, many receivers, one event loop. What was sent before `close` is still received."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a channel needs room for at least one item, not {capacity}")
        self._items: deque[T] = deque()
        self._capacity = capacity
        self._closed = False
        self._senders: deque[asyncio.Future[None]] = deque()
        self._receivers: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def closed(self) -> bool:
        """True once nothing more can be sent; items may still be waiting."""
        return self._closed

    async def send(self, item: T) -> None:
        """Wait for room, then put the item in. Raises ChannelClosed if the channel is or becomes closed."""
        while not self._closed and len(self._items) >= self._capacity:
            await self._wait(self._senders)
        if not self.offer(item):
            raise ChannelClosed("sent into a closed channel; its receiver has gone")

    def offer(self, item: T) -> bool:
        """Put the item in if there is room and the channel is open; say whether it went in. Never waits."""
        if self._closed or len(self._items) >= self._capacity:
            return False
        self._items.append(item)
        _wake_one(self._receivers)
        return True

    async def receive(self) -> T:
        """The oldest item. Raises ChannelClosed once the channel is closed and empty."""
        while not self._items:
            if self._closed:
                raise ChannelClosed("the channel is closed and empty")
            await self._wait(self._receivers)
        item = self._items.popleft()
        _wake_one(self._senders)
        return item

    def close(self) -> None:
        """Take nothing more; receivers get what is left, then their loop ends. May be called again."""
        self._closed = True
        for waiters in (self._senders, self._receivers):
            while waiters:
                _wake_one(waiters)

    def __aiter__(self) -> Channel[T]:
        return self

    async def __anext__(self) -> T:
        try:
            return await self.receive()
        except ChannelClosed:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Channel[T]:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    async def _wait(self, waiters: deque[asyncio.Future[None]]) -> None:
        """Sleep until woken. A waiter cancelled after it was woken passes the wake-up on."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future in waiters:
                waiters.remove(future)
            elif waiters:
                _wake_one(waiters)
            raise


def _wake_one(waiters: deque[asyncio.Future[None]]) -> None:
    while waiters:
        future = waiters.popleft()
        if not future.done():
            future.set_result(None)
            return
