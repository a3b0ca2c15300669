"""Wake a server's sleeping models now, so that nobody has to wait for them later.

  assistant wake         see `assistant sleep`
"""

from __future__ import annotations

import argparse

from assistant.commands._server import add_server_arguments, running_server

NAME = "wake"
USAGE = "[--url URL] [--key KEY]"
HELP = "wake the models of a running server before they are needed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config

    found = running_server(args, load_config()).request("POST", "/v1/wake")
    print(f"the models are awake ({found['ms']:.0f} ms)")
    return 0
