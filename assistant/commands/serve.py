"""Serve the page and the OpenAI-compatible APIs; everything stays on this machine.

  assistant serve                               choose models for this machine, serve http://127.0.0.1:8765
  assistant serve --profile desk                use larger models, fetched with `assistant pull desk`
  assistant serve --llm http://gpu-box:8000/v1  use the language model of another server (vLLM, SGLang, llama.cpp …)
  assistant serve --uri tcp://127.0.0.1:10400   serve Home Assistant too, with the same models
  assistant serve --host 0.0.0.0 --tls cert.pem key.pem   with a token in config.toml: token = "…"

Settings can also stand in $ASSISTANT_HOME/config.toml, or in variables such as ASSISTANT_PORT. A token belongs there:
everybody on this machine can read --token in the list of processes.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.base.errors import AssistantError, SettingError
from assistant.base.memory import share_heaps
from assistant.commands._front import NO_WAKE_WORDS, add_model_arguments, add_wake_argument, model_flags
from assistant.commands._wyoming import URI_HELP, uri_line, wyoming_address

if TYPE_CHECKING:
    import ssl

    from aiohttp import web

    from assistant.app import start
    from assistant.app.config import Config
    from assistant.realtime.fields import Json
    from assistant.server.backend import ServerContext
    from assistant.server.security import Gate
    from assistant.server.starting import Starting
    from assistant.server.wyoming.houses import HouseTalk
    from capsules.registry import Budgets, Listing

NAME = "serve"
USAGE = "[OPTIONS]"
HELP = "serve the page and the APIs, for a browser or any OpenAI client"
SERVER_FLAGS = ("host", "port", "sessions", "token", "allow", "sleep_after")
TIERS = ("gpu", "host", "disk")
STOP_SECONDS = 0.3
"""Time for answers under way to end by themselves; the server waits twice as long at most."""
HANDOVER_SECONDS = 0.001
"""How long the models' thread may keep the interpreter from the one that serves clients. Sound that is ready waits that
long for the wire, again and again; Python's own 5 ms add up to what is measured as the link."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-browser", action="store_true", help="do not open the page in a browser")
    add_wake_argument(parser)
    talk = parser.add_argument_group("talks")
    talk.add_argument("--sessions", metavar="N", help="how many talks may be open at once (4)")
    talk.add_argument("--sleep-after", metavar="MINUTES", help="free the models' memory after this long without work "
                      "(0: never)")
    net = parser.add_argument_group("network")
    net.add_argument("--host", metavar="ADDRESS", help="address to listen on (127.0.0.1); any other needs a token")
    net.add_argument("--port", metavar="N", help="port to listen on (8765); 0: any free one")
    net.add_argument("--token", metavar="TEXT", help="secret that clients must send, at least 8 characters; safer "
                     "in config.toml or ASSISTANT_TOKEN")
    net.add_argument("--tls", nargs=2, type=Path, metavar=("CERT", "KEY"), help="serve https: the certificate and its "
                     "key, as PEM files")
    net.add_argument("--allow", action="append", metavar="NAME|URL", help="another name of this server, or the address "
                     "of a web page from elsewhere that may connect; may be given again")
    net.add_argument("--uri", metavar="URI", help=URI_HELP)
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config
    from assistant.commands._run import run_async
    from assistant.server.security import TLS_HINT, is_loopback, make_gate, split_allowed

    config = load_config(model_flags(args) | {name: getattr(args, name) for name in SERVER_FLAGS})
    gate = make_gate(config.host, config.token or None, *split_allowed(config.allow))
    tls = None if args.tls is None else tls_context(*args.tls)
    if tls is None and not is_loopback(config.host):
        print(f"note: without TLS the network can read everything, the token too. {TLS_HINT}", file=sys.stderr)
    if args.token:
        print("note: other users of this machine see --token in the list of processes; config.toml and ASSISTANT_TOKEN "
              "keep it from them", file=sys.stderr)
    house = None if args.uri is None else wyoming_address(args.uri)
    sys.setswitchinterval(HANDOVER_SECONDS)
    share_heaps()
    return run_async(serve(config, gate, tls, not args.no_browser, args.wake, house))


def tls_context(cert: Path, key: Path) -> ssl.SSLContext:
    """Raises SettingError for files that are not a certificate and its key."""
    import ssl

    for path in (cert, key):
        if not path.is_file():
            raise SettingError(f"--tls: there is no file {path}")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise SettingError(f"--tls: {cert} and {key} are not a certificate and its key, as PEM ({error})") from error
    return context


def listening_socket(host: str, port: int, flag: str = "--port") -> socket.socket:
    """Opened before the models load, so that a port in use is reported at once, and after the settings were checked: a
    wrong setting is wrong whatever else runs. Raises AssistantError."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind)
    except OSError as error:
        raise AssistantError(f"{host} is not an address of this machine ({error.strerror})") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(64)
    except OSError as error:
        sock.close()
        raise AssistantError(f"cannot listen on {host}:{port} ({error.strerror}); choose another {flag}") from error
    return sock


async def serve(
    config: Config, gate: Gate, tls: ssl.SSLContext | None, browser: bool, wake: bool = False,
    house: tuple[str, int] | None = None,
) -> int:  # fmt: skip
    """Until cancelled. `wake`: the page waits for a name. `house`: host and port for Home Assistant."""
    from aiohttp import web

    from assistant.app.checks import check_settings

    # Cheap checks come first: a wrong setting, then a port in use, then seconds of imports and loading.
    check_settings(config)
    with listening_socket(config.host, config.port) as sock, (
        listening_socket(*house, "--uri") if house else nullcontext()
    ) as house_sock:
        from assistant.server.app import make_app
        from assistant.server.starting import Starting

        starting, url = Starting(), address_of(config.host, sock.getsockname()[1], tls is not None)
        ui = Path(__file__).resolve().parents[2] / "ui"
        web_app = make_app(starting, gate, ui if (ui / "index.html").is_file() else None)
        runner = web.AppRunner(web_app, access_log=None, shutdown_timeout=STOP_SECONDS)
        await runner.setup()
        try:
            await web.SockSite(runner, sock, ssl_context=tls, shutdown_timeout=STOP_SECONDS).start()
            notify_systemd()
            print("page       " + url + ("/#token=…" if config.token else ""), flush=True)
            if browser:
                open_page(url)
            await _serve_models(config, starting, url, runner, wake, house_sock)
        finally:
            await runner.cleanup()
    return 0


async def _serve_models(
    config: Config, starting: Starting, url: str, runner: web.AppRunner, wake: bool, house: socket.socket | None
) -> None:
    """Load the models that the running server waits for, and keep them until cancelled; the server closes first. When
    another language model is chosen, everything but the voice and the ears is opened again with it."""
    import asyncio
    from importlib import import_module

    def report(line: str) -> None:
        print(line, flush=True)
        starting.tell(line)

    await asyncio.to_thread(import_module, "assistant.app.chooser")  # beside the first requests
    from assistant.app.chooser import LanguageModels
    from assistant.app.chosen import kept_choice
    from assistant.app.start import open_talks
    from assistant.app.switching import Choices, run_switching
    from assistant.device.execution import give_back_memory
    from assistant.local.ringing import find_loudspeaker
    from assistant.server.app import pause_talks
    from assistant.server.backend import Keys

    play = find_loudspeaker(report, "timers ring only in talks that are open")
    first, state = kept_choice(config)
    choices = Choices(state)
    models, keys, known = LanguageModels(config, choices), Keys(), dict[str, "HouseTalk"]()

    @asynccontextmanager
    async def opened(wanted: Config) -> AsyncIterator[start.App]:
        opening = open_talks(wanted, report, play=play, pages=True, standing=models.standing)
        async with opening as app, _for_houses(app, house, known):
            try:
                yield app
            finally:
                if choices.state.phase != "switching":
                    await runner.cleanup()

    def ready(app: start.App) -> None:
        if choices.state.phase == "failed":
            report(f"{choices.state.model} did not load, so {app.models.llm.name} answers: {choices.state.told}")
        models.runs(app.config, app.models.profile)
        starting.ready(replace(context_of(app), models=models, keys=keys, wake=wake))
        announce(url, app, wake, house)

    try:
        pause, before = partial(pause_talks, runner.app), None if first is config else config
        await run_switching(first, choices, opened, ready, pause, give_back_memory, before)
    finally:
        models.halt_fetch()


def notify_systemd() -> None:
    """The port is open, for which the one that installs a service waits. Source: sd_notify(3)."""
    import os

    if address := os.environ.get("NOTIFY_SOCKET"):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"READY=1", address.replace("@", "\0", 1) if address.startswith("@") else address)


def address_of(host: str, port: int, secure: bool) -> str:
    """The address that a person types into a browser."""
    name = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, host)
    return f"{'https' if secure else 'http'}://{f'[{name}]' if ':' in name else name}:{port}"


def _for_houses(
    app: start.App, house: socket.socket | None, known: dict[str, HouseTalk]
) -> AbstractAsyncContextManager[None]:
    """Serve Home Assistant while the models are there; meanwhile its connections wait at the socket itself. `known`:
    see `Houses`."""
    if house is None:
        return nullcontext()
    from assistant.server.wyoming.service import wyoming_service

    return wyoming_service(context_of(app), house.dup(), known)


def announce(url: str, app: start.App, wake: bool, house: socket.socket | None) -> None:
    if wake and app.talks.wake_words is None:
        print(NO_WAKE_WORDS)
    engines = app.talks.engines
    print(f"{engines.llm.name} thinks, {engines.tts.name} speaks, {engines.asr.name} listens")
    print(f"realtime   {url.replace('http', 'ws', 1)}/v1/realtime\nOpenAI     {url}/v1")
    if house is not None:
        print(uri_line(house))
    print("Ctrl-C stops.", flush=True)


def open_page(url: str) -> None:
    """Opens it only if there is a screen and somebody in front of it."""
    import os
    import webbrowser

    screen = sys.platform != "linux" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    if screen and sys.stdout.isatty():
        webbrowser.open(url)


# ------------------------------------------------------------------------- facts for the web server


def context_of(app: start.App) -> ServerContext:
    """The process behind its talks, as the web server wants to know it."""
    from assistant.base.clock import LoopClock
    from assistant.realtime.settings import Character, Facts
    from assistant.server.backend import ServerContext

    tts = app.talks.engines.tts
    first = tts.voices[0] if tts.voices else "default"

    def character(name: str) -> Character | None:
        persona = app.personas.get(name)
        return None if persona is None else Character(persona.instructions, persona.voice or first)

    return ServerContext(
        talks=app.talks,
        clock=LoopClock(),
        facts=Facts(app.models.profile.name, lambda: tts.voices, character, app.servers.named),
        personas=lambda: personas_json(app),
        capsules=lambda: capsules_json(app.capsules(), app.models.budgets),
        about=lambda: about_json(app),
        metrics=app.metrics,
        thread=app.models.deployment.thread,
        settings=app.talks.defaults,
        household=app.household,
        memory=app.remembered,
        voices=app.voices,
    )


def personas_json(app: start.App) -> Json:
    tts = app.talks.engines.tts
    personas = [
        {"name": name, "title": p.title, "description": p.description, "voice": p.voice or ""}
        for name, p in app.personas.items()
    ]
    return {"current": app.config.persona, "personas": personas, "voices": list(tts.voices)}


def capsules_json(kept: Sequence[Listing], room: Budgets) -> Json:
    """Each capsule once, at its fastest tier; what each tier holds against what it may hold."""
    budgets = {"gpu": room.gpu_bytes, "host": room.host_bytes, "disk": room.disk_bytes}
    used = dict.fromkeys(TIERS, 0)
    rows = []
    for one in kept:
        for home, size in one.homes.items():
            used[home] += size
        tier = next((tier for tier in TIERS if tier in one.homes), "")
        rows.append(
            {
                "name": one.label or one.name or one.key,
                "engine": one.scope,
                "position": one.position,
                "bytes": one.homes.get(tier, 0),
                "tier": tier,
                "pinned": one.pinned,
                "age_s": round(one.idle_s, 1),
            }
        )
    tiers = {tier: {"used_bytes": used[tier], "budget_bytes": budgets[tier]} for tier in TIERS}
    return {"capsules": rows, "tiers": tiers}


def about_json(app: start.App) -> Json:
    """The models that run here, and the larger profile for which this machine has room beside them. The names of the
    models are `/healthz`'s own."""
    from assistant.app.config import is_larger, offer
    from assistant.device.execution import gpu_free_bytes

    facts = {name: value for name, value in app.facts.items() if name in {"device", "profile", "ready_s", "memory"}}
    name = app.models.profile.name
    if app.facts.get("llm", f"{name}-llm") != f"{name}-llm":
        facts["chosen"] = True  # the language model is not the profile's
    larger = offer(gpu_free_bytes())
    if is_larger(larger, app.models.profile):
        facts["larger"] = {
            "profile": larger.name,
            "models": list(larger.repositories),
            "command": f"assistant pull {larger.name}",
            "download_gb": larger.download_gb,
        }
    return facts
