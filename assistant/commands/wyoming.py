"""Serve speech to Home Assistant and its satellites, over the Wyoming protocol.

  assistant wyoming                                  on this machine: tcp://127.0.0.1:10400
  assistant wyoming --uri tcp://0.0.0.0:10400        for a Home Assistant on another machine of your network
  assistant serve --uri tcp://127.0.0.1:10400        the same beside the page, with the same models

In Home Assistant: Settings, Devices & services, Add integration, Wyoming Protocol, then host and port. It offers speech
to text, text to speech, a conversation agent that answers with the assistant's own tools, and wake words. Each can be
chosen by itself in a voice assistant of Home Assistant.

The protocol has no key and no encryption: everybody who reaches the port can use all of it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from assistant.commands._front import add_model_arguments, model_flags
from assistant.commands._wyoming import URI_HELP, WYOMING, uri_line, wyoming_address
from assistant.commands.serve import context_of, listening_socket

if TYPE_CHECKING:
    from assistant.app.config import Config

NAME = "wyoming"
USAGE = "[--uri URI] [OPTIONS]"
HELP = "speech for Home Assistant and its satellites"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--uri", metavar="URI", default=WYOMING, help=URI_HELP)
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config
    from assistant.commands._run import run_async

    return run_async(serve(load_config(model_flags(args)), *wyoming_address(args.uri)))


async def serve(config: Config, host: str, port: int) -> int:
    """Until cancelled."""
    import asyncio

    from assistant.app.checks import check_settings

    check_settings(config)
    with listening_socket(host, port, "--uri") as sock:
        from assistant.app.start import open_talks
        from assistant.local.ringing import find_loudspeaker
        from assistant.server.wyoming.service import wyoming_service

        def report(line: str) -> None:
            print(line, flush=True)

        play = find_loudspeaker(report, "nothing can ring, so timers and alarms are refused")
        async with open_talks(config, report, play=play) as app, wyoming_service(context_of(app), sock):
            engines = app.talks.engines
            report(f"{engines.llm.name} answers, {engines.tts.name} speaks, {engines.asr.name} listens")
            report(f"{uri_line(sock)}\nCtrl-C stops.")
            await asyncio.Event().wait()
    return 0
