"""Serve speech to Home Assistant and its satellites, over the Wyoming protocol.

  assistant wyoming                                  on this machine: tcp://127.0.0.1:10400
  assistant wyoming --uri tcp://0.0.0.0:10400        for a Home Assistant on another machine of your network

In Home Assistant: Settings, Devices & services, Add integration, Wyoming Protocol, then host and port. It offers speech
to text, text to speech, a conversation agent that answers with the assistant's own tools, and wake words. Each can be
chosen by itself in a voice assistant of Home Assistant.

The protocol has no key and no encryption: everybody who reaches the port can use all of it.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from assistant.base.errors import SettingError
from assistant.base.extras import adding
from assistant.commands._front import add_model_arguments, model_flags
from assistant.commands.serve import context_of, listening_socket

if TYPE_CHECKING:
    from assistant.app.config import Config

WYOMING = "tcp://127.0.0.1:10400"
NAME = "wyoming"
USAGE = "[--uri URI] [OPTIONS]"
HELP = "speech for Home Assistant and its satellites"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--uri", default=WYOMING, metavar="URI", help=f"address to listen on ({WYOMING})")
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config
    from assistant.commands._run import run_async
    from assistant.server.security import is_loopback

    config = load_config(model_flags(args))
    host, port = read_uri(args.uri)
    try:
        import wyoming  # noqa: F401
    except ImportError as error:
        raise SettingError(f"the Wyoming protocol needs the package wyoming; {adding('wyoming')}") from error
    if not is_loopback(host):
        print("note: Wyoming has no key and no encryption: everybody who reaches this port can hear answers, use the "
              "tools and change your lists. Let a firewall admit Home Assistant alone.", file=sys.stderr)  # fmt: skip
    return run_async(serve(config, host, port))


def read_uri(uri: str) -> tuple[str, int]:
    """Host and port. Raises SettingError."""
    try:
        parts = urlsplit(uri)
        host, port, scheme = parts.hostname, parts.port, parts.scheme
    except ValueError:
        host = port = scheme = None
    if host is None or port is None or scheme != "tcp":
        raise SettingError(f"--uri: {uri!r} is not an address such as {WYOMING}")
    return host, port


async def serve(config: Config, host: str, port: int) -> int:
    """Until cancelled."""
    import asyncio

    from assistant.app.checks import check_settings

    check_settings(config)
    with listening_socket(host, port, "--uri") as sock:
        from assistant.app.start import open_talks
        from assistant.local.ringing import has_loudspeaker, play_aloud
        from assistant.server.wyoming.service import wyoming_service

        def report(line: str) -> None:
            print(line, flush=True)

        play = play_aloud if has_loudspeaker() else None
        if play is None:
            report("there is no loudspeaker here: timers wait for a later conversation and are told there")
        async with open_talks(config, report, play=play) as app, wyoming_service(context_of(app), sock):
            engines = app.talks.engines
            report(f"{engines.llm.name} answers, {engines.tts.name} speaks, {engines.asr.name} listens")
            report(f"wyoming    tcp://{host}:{sock.getsockname()[1]}\nCtrl-C stops.")
            await asyncio.Event().wait()
    return 0
