"""Fetch models from the hub. Prints licence and size first, shows the progress, and continues interrupted downloads.

  assistant pull                     list everything that can be fetched; what fits this machine is marked
  assistant pull laptop              a language model for a processor with 4 GiB free, and small ears
  assistant pull desk                models for a GPU with 21 GiB free, and medium ears
  assistant pull ears                better ears for a laptop: Moonshine small streaming, 165 MB
  assistant pull ears-medium         the best ears, for a desktop: 304 MB
  assistant pull ears-small-times    ears that also know when each word was said
  assistant pull Qwen/Qwen3.5-4B     one repository; of GGUF files one that fits, or OWNER/NAME:Q4_K_M
  assistant pull laptop --prepare    also store the model in the form that is used here, so that it starts sooner

Downloaded files are checked against the digests that the hub announced. A licence that restricts use needs your consent
first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assistant.base.errors import AssistantError
from assistant.device.memory_plan import GIB

if TYPE_CHECKING:
    from assistant.app.config import Config, Profile
    from assistant.app.hub import RepoListing
    from assistant.asr.streaming import Size

NAME = "pull"
USAGE = "[PROFILE|ears|REPO ...] [OPTIONS]"
HELP = "fetch models from the hub"
SIZES = {"tiny": "51 MB", "small": "165 MB", "medium": "304 MB"}
"""Sizes of the ears, with their downloads."""
EARS = {"ears", *(f"ears-{size}{times}" for size in SIZES for times in ("", "-times"))}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="*", metavar="PROFILE|ears|REPO",
                        help="profiles (laptop, desk, …), ears, or repositories (OWNER/NAME)")  # fmt: skip
    parser.add_argument("--accept-licences", action="store_true", help="agree to the licences without being asked")
    parser.add_argument("--prepare", action="store_true", help="also store models in the form that processor or GPU "
                        "use here (the size is printed), so that later starts are faster")  # fmt: skip
    parser.add_argument("--endpoint", metavar="URL", help="fetch from another hub than huggingface.co")


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import PROFILES, load_config
    from assistant.app.hub import list_repo, model_folder
    from assistant.base import memory
    from assistant.commands.doctor import free_gpu_bytes

    config = load_config()
    models = config.models
    if not args.what:
        if args.prepare:
            raise AssistantError("--prepare needs a profile or a repository: assistant pull laptop --prepare")
        print_profiles(models, free_gpu_bytes(), memory.available_bytes())
        return 0
    listings = [
        (listing, model_folder(models, listing.repo))
        for listing in [list_repo(repo, args.endpoint) for repo in repos_of(args.what)]
    ]
    listings += list_ears(args, models)
    for listing, _ in listings:
        licence = f"licence {listing.licence}" + (f" ({listing.licence_link})" if listing.needs_consent else "")
        print(f"{name_of(listing)}: {listing.bytes / 1e9:.2f} GB in {len(listing.files)} files, {licence}")
    restricted = [name_of(listing) for listing, _ in listings if listing.needs_consent]
    if restricted and not args.accept_licences and not ask_consent(restricted):
        print("nothing was fetched.", file=sys.stderr)
        return 1
    for listing, folder in listings:
        fetch_with_progress(listing, folder, args.endpoint)
    voices = {profile.tts for profile in PROFILES.values()}
    wanted = [(repo, repo in voices) for repo in repos_of(args.what)] if args.prepare else []
    made = [
        prepare(config, model_folder(models, repo), *held_as(config, args.what, repo, voice), voice)
        for repo, voice in wanted
    ]
    return 0 if all(made) else 1


def held_as(config: Config, names: list[str], repo: str, voice: bool) -> tuple[str, str]:
    """The dtype of a model and the device that it will run on: those of the settings, else of the profile that was
    named, or bfloat16."""
    from assistant.app.config import PROFILES, Profile
    from assistant.app.models import llm_dtype, placement, voice_dtype
    from assistant.commands.doctor import free_gpu_bytes

    alone = Profile("", "" if voice else repo, repo if voice else "", "bfloat16", 0)
    named = (PROFILES[name] for name in names if name in PROFILES)
    profile = next((profile for profile in named if repo in profile.repositories), alone)
    placed = placement(config, profile, bool(free_gpu_bytes()))
    if voice:
        return voice_dtype(config, profile, placed.tts), placed.tts
    return llm_dtype(config.llm_dtype or profile.dtype, placed.llm), placed.llm


def prepare(config: Config, folder: Path, dtype: str, device: str, voice: bool) -> bool:
    """Store a model in the form that a device's engine uses."""
    from capsules.nn.panels import BITS
    from llm_engine.errors import LLMError
    from llm_engine.options import DTYPES, MADE
    from llm_engine.weights import prepare_weights
    from tts_engine.errors import TTSError
    from tts_engine.weights import prepare_weights as prepare_voice

    if not (folder / "config.json").is_file():
        print(f"{folder.name} is a GGUF file, which is read as it is: nothing was prepared")
        return True
    eyes, aside, made = config.uses("vision"), config.digests, MADE.get(dtype) if device != "cpu" else None
    if device != "cpu" and dtype not in MADE:
        print(f"{folder}: {dtype} is read straight onto a GPU; preparing it would gain nothing")
        return True
    try:
        if voice:
            return prepare_voice(folder, dtype, aside, print, device)
        return prepare_weights(folder, DTYPES[dtype], None if made else BITS.get(dtype), eyes, aside, print, made)
    except (LLMError, TTSError) as error:
        raise AssistantError(f"the model was not prepared: {error}") from error


def name_of(listing: RepoListing) -> str:
    """The repository, and the folder in it if the model is not all of it."""
    return f"{listing.repo}/{listing.folder}" if listing.folder else listing.repo


def ears_asked(names: list[str]) -> tuple[Size, bool] | None:
    """The size to fetch, and whether with times of words; None: no ears are wanted."""
    from assistant.app.config import PROFILES
    from assistant.app.ears import DESKTOP, LAPTOP

    profiles = [PROFILES[name] for name in names if name in PROFILES]
    asked = next((name for name in names if name in EARS), None)
    if asked is None and not any(profile.llm for profile in profiles):
        return None
    size = (asked or "ears").removesuffix("-times").removeprefix("ears").removeprefix("-")
    usual = DESKTOP if any(profile.gpu_bytes for profile in profiles) else LAPTOP
    return cast("Size", size) if size else usual, (asked or "").endswith("-times")


def list_ears(args: argparse.Namespace, models: Path) -> list[tuple[RepoListing, Path]]:
    """The ears and their folder. Ears that merely come with a profile do not stop it when they cannot be had."""
    from assistant.app.ears import REPO, ears_folder, part_of
    from assistant.app.hub import HubError, list_repo

    asked = ears_asked(args.what)
    if asked is None:
        return []
    size, times = asked
    try:
        return [(list_repo(REPO, args.endpoint, part_of(size, times)), ears_folder(models, size))]
    except HubError as error:
        if EARS & set(args.what):
            raise
        print(f"without better ears: {error}", file=sys.stderr)
        return []


def repos_of(names: list[str]) -> list[str]:
    """Repositories of profiles and repositories named as they are, each once. Raises AssistantError."""
    from assistant.app.config import PROFILES

    repos: dict[str, None] = {}
    for name in names:
        if name in PROFILES:
            profile = PROFILES[name]
            repos |= dict.fromkeys(profile.repositories)
        elif name in EARS:
            continue
        elif "/" in name:
            repos[name] = None
        else:
            known = [*(n for n, profile in PROFILES.items() if profile.llm), *sorted(EARS)]
            near = get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]}?" if near else f"choose from {', '.join(known)}, or name a repository"
            raise AssistantError(f"there is no profile {name!r}; {meant}")
    if not repos and not EARS & set(names):
        raise AssistantError("the tiny profile is part of the program, so there is nothing to fetch")
    return list(repos)


def ask_consent(repos: list[str], answer: Callable[[str], str] = input) -> bool:
    """Ask a person. Without one at the keyboard the answer is no, and the option that agrees is named."""
    names = " and ".join(repos)
    if not sys.stdin.isatty() and answer is input:
        print(f"{names}: the licence restricts use; read it, and agree with --accept-licences", file=sys.stderr)
        return False
    question = f"{names}: the licence restricts use (for instance commercial use). Have you read it, and agree? [y/N] "
    try:
        return answer(question).strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def fetch_with_progress(listing: RepoListing, folder: Path, endpoint: str | None) -> None:
    """One bar over the bytes of a model."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from assistant.app.ggufs import SUFFIX
    from assistant.app.hub import fetch, is_present, read_mark

    mark, name = read_mark(folder), name_of(listing)
    if mark is not None and mark.revision == listing.revision and is_present(folder, listing):
        print(f"{name} is here already, in {folder}")
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns) as bars:
        bar = bars.add_task(name, total=listing.bytes)
        fetch(listing, folder, lambda name, n: bars.update(bar, advance=n), endpoint)
        bars.update(bar, completed=listing.bytes, description=f"{name} verified")
    ggufs = [file.name for file in listing.files if file.name.endswith(SUFFIX)]
    print(f"{name} is in {folder}" + "".join(f"; use it with --llm {folder / file}" for file in ggufs))


def profile_cells(profile: Profile) -> tuple[str, str, str, str, str]:
    """Name, models, download, free memory and licences, as README's table has them too."""
    gpu, host = profile.gpu_bytes >> 30, profile.host_bytes >> 30
    memory = f"GPU {gpu} GiB" if gpu else f"{host} GiB, no GPU" if host else "any, no GPU"
    download = f"{profile.download_gb:g} GB" if profile.download_gb else "none"
    return profile.name, " ".join(profile.repositories) or "part of the program", download, memory, profile.licence


def print_profiles(models: Path, gpu_free_bytes: int, host_free_bytes: int) -> None:
    """One line of at most 80 columns for everything that can be fetched; `*` marks the best that fits this machine."""
    from assistant.app.config import PROFILES, offer
    from assistant.app.ears import DESKTOP, LAPTOP, LICENCE, REPO, fetched_sizes
    from assistant.app.hub import is_present, model_folder

    best = offer(gpu_free_bytes, host_free_bytes)
    row = "{:1} {:<12} {:<8} {:<14} {:<7} {}".format
    lines = [row("", "name", "download", "free memory", "here", "models")]
    for profile in PROFILES.values():
        name, _, download, memory, _ = profile_cells(profile)
        repos = profile.repositories
        here = [is_present(model_folder(models, repo)) for repo in repos]
        state = "shipped" if not repos else "yes" if all(here) else f"{sum(here)} of {len(here)}" if any(here) else "no"
        plain = " ".join(repo.rpartition("/")[2] for repo in repos) or "part of the program"
        lines.append(row("*" if profile is best else "", name, download, memory, state, plain))
    ears, fitting = fetched_sizes(models), DESKTOP if best.gpu_bytes else LAPTOP
    for size, download in SIZES.items():
        state, mark = "yes" if size in ears else "no", "*" if size == fitting else ""
        lines.append(row(mark, f"ears-{size}", download, "any, no GPU", state, "Moonshine streaming, English"))
    told = (part for profile in PROFILES.values() for part in profile.licence.split("; "))
    licences = dict.fromkeys(part for part in told if ":" in part)
    print("\n".join(lines))
    free = f"{gpu_free_bytes / GIB:.1f} GiB on the GPU, " if gpu_free_bytes else ""
    print(f"\n* fits this machine best ({free}{host_free_bytes / GIB:.1f} GiB of memory are free)")
    print(f"licences: {'; '.join(licences)}; ears ({REPO}): {LICENCE}")
    print("fetch one with: assistant pull NAME")
