"""Free the memory of a running server's models until they are needed; no talk loses anything by it.

  assistant sleep                      as soon as no reply is being made; the next talk or request wakes the models
  assistant serve --sleep-after 30     sleep automatically after 30 minutes without work

The models' state waits in a file in $ASSISTANT_HOME until the process ends. This works on Linux, with models on the
processor; if one of them is on a GPU, all stay awake.
"""

from __future__ import annotations

import argparse

from assistant.commands._server import add_server_arguments, running_server

NAME = "sleep"
USAGE = "[--url URL] [--key KEY]"
HELP = "free the memory of a running server's models until they are needed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config

    found = running_server(args, load_config()).request("POST", "/v1/sleep")
    if found["asleep"]:
        print(f"the models sleep; {found['freed_bytes'] / 1e6:.0f} MB are free until they are needed")
        return 0
    print(f"the models stay awake: {found['reason']}")
    return 1
