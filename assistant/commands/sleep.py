"""Free the memory of a running server's models until they are needed; no talk loses anything by it.

  assistant sleep        once nothing is being made, for which it waits ten seconds; whoever connects, speaks or asks
                         wakes them
  assistant serve --sleep-after 30     by itself, after so many minutes without work

Everything that the models hold waits in a file in $ASSISTANT_HOME, which goes with the process. On Linux and on a
processor; where one of the models is on a GPU, all stay awake, and it says so.
"""

from __future__ import annotations

import argparse

from assistant.commands._server import add_server_arguments, running_server

NAME = "sleep"
HELP = "free the memory of a running server's models until they are needed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config

    found = running_server(args, load_config()).ask("POST", "/v1/sleep")
    if found["asleep"]:
        print(f"the models sleep; {found['freed_bytes'] / 1e6:.0f} MB are free until they are needed")
        return 0
    print(f"the models stay awake: {found['reason']}")
    return 1
