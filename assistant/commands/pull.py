"""Fetch models from the hub, with their licence, size and progress; goes on where it was interrupted.

  assistant pull                     what can be fetched, what it needs and what is here
  assistant pull ears                better ears for a laptop: Moonshine small streaming, 165 MB
  assistant pull ears --size medium  the best ones, for a desktop: 304 MB
  assistant pull laptop              a language model for a processor with 4 GiB free, and small ears
  assistant pull desk                the models of a profile, and the medium ears (--no-ears: without)
  assistant pull Qwen/Qwen3.5-4B     one repository
  assistant pull REPO --prepare      and keep it as a processor holds it, so that later starts map it

What arrived is checked against the digests that the hub announced. A licence that restricts use is shown and asked
about first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.base.errors import AssistantError

if TYPE_CHECKING:
    from assistant.app.config import Config, Profile
    from assistant.app.hub import RepoListing
    from assistant.asr.streaming import Size

NAME = "pull"
HELP = "fetch models from the hub"
EARS = "ears"
SIZES = {"tiny": "51 MB", "small": "165 MB", "medium": "304 MB"}
"""Of the ears, and what each takes to fetch."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="*", metavar="PROFILE|ears|REPO", help="profiles (desk, …), ears, repositories")
    parser.add_argument("--size", choices=SIZES, help="of the ears: medium with a profile for a GPU, else small")
    parser.add_argument("--word-times", action="store_true", help="ears that know when each word was")
    parser.add_argument("--no-ears", action="store_true", help="a profile without better ears")
    parser.add_argument("--accept-licences", action="store_true", help="agree to the licences without being asked")
    parser.add_argument("--prepare", action="store_true",
                        help="keep models as a processor holds them, in one file beside each (its size is "
                             "told): later starts map it instead of joining and packing anew")
    parser.add_argument("--endpoint", metavar="URL", help="another hub than huggingface.co")


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import PROFILES, load_config
    from assistant.app.hub import list_repo, model_folder

    config = load_config()
    models = config.models
    if not args.what:
        if args.prepare:
            raise AssistantError("--prepare needs a profile or a repository: assistant pull REPO --prepare")
        print_profiles(models)
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
        prepare(config, model_folder(models, repo), held_as(config, args.what, repo, voice), voice)
        for repo, voice in wanted
    ]
    return 0 if all(made) else 1


def held_as(config: Config, names: list[str], repo: str, voice: bool) -> str:
    """How a processor holds a model: as settings say, else as the profile that was named has it, or in bfloat16."""
    from assistant.app.config import PROFILES, Profile
    from assistant.app.models import llm_dtype, voice_dtype
    from assistant.device.device_choice import CPU

    alone = Profile("", "" if voice else repo, repo if voice else "", "bfloat16", 0)
    named = (PROFILES[name] for name in names if name in PROFILES)
    profile = next((profile for profile in named if repo in profile.repositories), alone)
    return voice_dtype(config, profile, CPU) if voice else llm_dtype(config.dtype or profile.dtype, CPU)


def prepare(config: Config, folder: Path, dtype: str, voice: bool) -> bool:
    """Keep a model as a processor holds it."""
    from capsules.nn.panels import BITS
    from llm_engine.errors import LLMError
    from llm_engine.options import DTYPES
    from llm_engine.weights import prepare_weights
    from tts_engine.errors import TTSError
    from tts_engine.weights import prepare_weights as prepare_voice

    try:
        if voice:
            return prepare_voice(folder, dtype, config.digests, print)
        return prepare_weights(folder, DTYPES[dtype], BITS.get(dtype), config.vision != "off", config.digests, print)
    except (LLMError, TTSError) as error:
        raise AssistantError(f"nothing is prepared: {error}") from error


def name_of(listing: RepoListing) -> str:
    """The repository, and the folder in it if the model is not all of it."""
    return f"{listing.repo}/{listing.folder}" if listing.folder else listing.repo


def ears_size(args: argparse.Namespace) -> Size | None:
    """The size to fetch; None: no ears are wanted."""
    from assistant.app.config import PROFILES
    from assistant.app.ears import DESKTOP, LAPTOP

    with_profile = any(PROFILES[name].llm for name in args.what if name in PROFILES) and not args.no_ears
    if EARS not in args.what and not with_profile:
        return None
    size: Size | None = args.size
    on_gpu = any(PROFILES[name].gpu_bytes for name in args.what if name in PROFILES)
    return size or (DESKTOP if on_gpu else LAPTOP)


def list_ears(args: argparse.Namespace, models: Path) -> list[tuple[RepoListing, Path]]:
    """The ears and where they will lie. What merely comes with a profile must not be in its way."""
    from assistant.app.ears import REPO, ears_folder, part_of
    from assistant.app.hub import HubError, list_repo

    size = ears_size(args)
    if size is None:
        return []
    try:
        return [(list_repo(REPO, args.endpoint, part_of(size, args.word_times)), ears_folder(models, size))]
    except HubError as error:
        if EARS in args.what:
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
        elif name == EARS:
            continue
        elif "/" in name:
            repos[name] = None
        else:
            known = ", ".join([*(n for n, profile in PROFILES.items() if profile.llm), EARS])
            raise AssistantError(f"there is no profile {name!r}; to fetch: {known}; or name a repository")
    if not repos and EARS not in names:
        raise AssistantError("the tiny profile is part of the program; there is nothing to fetch")
    return list(repos)


def ask_consent(repos: list[str], answer: Callable[[str], str] = input) -> bool:
    """Ask a person. Without one at the keyboard the answer is no, and the way out is told."""
    names = " and ".join(repos)
    if not sys.stdin.isatty() and answer is input:
        print(f"{names}: the licence restricts use; read it and pass --accept-licences to agree.", file=sys.stderr)
        return False
    question = f"{names}: the licence restricts use (for instance commercial use). Have you read it, and agree? [y/N] "
    try:
        return answer(question).strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def fetch_with_progress(listing: RepoListing, folder: Path, endpoint: str | None) -> None:
    """One bar over the bytes of a model."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from assistant.app.hub import fetch, is_present, read_mark

    mark, name = read_mark(folder), name_of(listing)
    if mark is not None and mark.revision == listing.revision and is_present(folder, listing):
        print(f"{name} is here already: {folder}")
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns) as bars:
        bar = bars.add_task(name, total=listing.bytes)
        fetch(listing, folder, lambda name, n: bars.update(bar, advance=n), endpoint)
        bars.update(bar, completed=listing.bytes, description=f"{name} verified")
    print(f"{name} is here: {folder}")


def profile_cells(profile: Profile) -> tuple[str, str, str, str, str]:
    """Name, models, download, free memory and licences, as README's table has them too."""
    gpu, host = profile.gpu_bytes >> 30, profile.host_bytes >> 30
    memory = f"GPU {gpu} GiB" if gpu else f"{host} GiB, no GPU" if host else "any, no GPU"
    download = f"{profile.download_gb:g} GB" if profile.download_gb else "none"
    return profile.name, " ".join(profile.repositories) or "part of the program", download, memory, profile.licence


def print_profiles(models: Path) -> None:
    """What could be fetched and what is here."""
    from rich.console import Console
    from rich.table import Table

    from assistant.app.config import PROFILES
    from assistant.app.ears import LICENCE, REPO, fetched_sizes
    from assistant.app.hub import is_present, model_folder

    table = Table("what", "models", "download", "free memory", "licences", "here")
    for profile in PROFILES.values():
        repos = profile.repositories
        here = [is_present(model_folder(models, repo)) for repo in repos]
        state = "shipped" if not repos else "yes" if all(here) else f"{sum(here)} of {len(here)}" if any(here) else "no"
        table.add_row(*profile_cells(profile), state)
    ears = fetched_sizes(models)
    for size, download in SIZES.items():
        table.add_row(f"ears --size {size}", REPO, download, "any, no GPU", LICENCE, "yes" if size in ears else "no")
    Console().print(table)
    print("fetch one with: assistant pull PROFILE, or: assistant pull ears --size SIZE")
