"""How a command runs until it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable

STOP_SECONDS = 1.8
INTERRUPTED = 130


def run_async(main_task: Awaitable[int]) -> int:
    """`asyncio.run` whose Ctrl-C and SIGTERM cancel the task and, should it not let go, end the process.

    Returns what the task returned, or raises KeyboardInterrupt when it was stopped.
    """

    async def until_stopped() -> int:
        task = asyncio.ensure_future(main_task)
        loop = asyncio.get_running_loop()
        stopped = False

        def stop(*signalled: object) -> None:
            nonlocal stopped
            if not stopped:
                stopped = True
                end_process_soon()
                loop.call_soon_threadsafe(task.cancel)

        # Not the loop's own handlers: those wait for the loop, which may be importing libraries for many seconds.
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            return await task
        except asyncio.CancelledError:
            if stopped:
                raise KeyboardInterrupt from None
            raise
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    return asyncio.run(until_stopped())


def end_process_soon() -> None:
    """Start the timer that ends the process; the ordinary way out is usually faster."""

    def give_up() -> None:
        time.sleep(STOP_SECONDS)
        print("stopped (something would not let go).", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)

    threading.Thread(target=give_up, name="stop-timer", daemon=True).start()
