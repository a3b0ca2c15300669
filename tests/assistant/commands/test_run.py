"""A command's asyncio part: stop signals end it soon and cleanly, and its result comes back."""

import asyncio
import signal
import subprocess
import sys
import time

import pytest

from assistant.commands._run import run_async

SLEEPER = """
import asyncio, sys
from assistant import cli
from assistant.commands._run import run_async
async def work():
    print("ready", flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        print("cleaned", flush=True)
    return 0
class Module:
    NAME, USAGE, HELP = "x", "", "x"
    add_arguments = staticmethod(lambda parser: None)
    run = staticmethod(lambda args: run_async(work()))
cli.command_modules = lambda: [Module]
sys.argv = ["assistant", "x"]
cli.run_and_exit()
"""


STUBBORN = SLEEPER.replace('        print("cleaned", flush=True)', "        import time; time.sleep(60)")


BLOCKED = SLEEPER.replace("await asyncio.sleep(60)", "while True: pass")  # as during the import of a large library


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "clean"), [(SLEEPER, True), (STUBBORN, False), (BLOCKED, False)], ids=["clean", "stubborn", "blocked"]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stop_signals_end_the_process_within_two_seconds(code, clean, number):
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    begin = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert time.monotonic() - begin < 4.0 and process.returncode == 130  # 1.8 s, and a busy machine
    assert ("cleaned" in out) == clean and err.startswith("stopped")
    assert len(err.splitlines()) == 1


def test_run_async_gives_the_tasks_result():
    async def seven() -> int:
        await asyncio.sleep(0)
        return 7

    assert run_async(seven()) == 7
