"""Fetch models from the hub, with their licence, size and progress; goes on where it was interrupted.

  assistant pull                 the profiles, what they need and what is here
  assistant pull desk            the models of a profile
  assistant pull Qwen/Qwen3.5-4B one repository

What arrived is checked against the digests that the hub announced. A licence that restricts use is shown and asked
about first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from assistant.base.errors import AssistantError

NAME = "pull"
HELP = "fetch models from the hub"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="*", metavar="PROFILE|REPO", help="profiles (desk, desk-9b, …) or repositories")
    parser.add_argument("--accept-licences", action="store_true", help="agree to the licences without being asked")
    parser.add_argument("--endpoint", metavar="URL", help="another hub than huggingface.co")


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config
    from assistant.app.hub import list_repo

    models = load_config().models
    if not args.what:
        print_profiles(models)
        return 0
    listings = [list_repo(repo, args.endpoint) for repo in repos_of(args.what)]
    for listing in listings:
        licence = f"licence {listing.licence}" + (f" ({listing.licence_link})" if listing.needs_consent else "")
        print(f"{listing.repo}: {listing.bytes / 1e9:.2f} GB in {len(listing.files)} files, {licence}")
    restricted = [listing for listing in listings if listing.needs_consent]
    if restricted and not args.accept_licences and not ask_consent([listing.repo for listing in restricted]):
        print("nothing was fetched.", file=sys.stderr)
        return 1
    for listing in listings:
        fetch_with_progress(listing, models, args.endpoint)
    return 0


def repos_of(names: list[str]) -> list[str]:
    """Repositories of profiles and repositories named as they are, each once. Raises AssistantError."""
    from assistant.app.config import PROFILES

    repos: dict[str, None] = {}
    for name in names:
        if name in PROFILES:
            profile = PROFILES[name]
            repos |= dict.fromkeys(repo for repo in (profile.llm, profile.tts) if repo)
        elif "/" in name:
            repos[name] = None
        else:
            known = ", ".join(n for n, profile in PROFILES.items() if profile.llm)
            raise AssistantError(f"there is no profile {name!r}; profiles to fetch: {known}; or name a repository")
    if not repos:
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


def fetch_with_progress(listing: object, models: Path, endpoint: str | None) -> None:
    """One bar over the bytes of a repository."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from assistant.app.hub import RepoListing, fetch, is_present, model_folder, read_mark

    assert isinstance(listing, RepoListing)
    folder = model_folder(models, listing.repo)
    mark = read_mark(folder)
    if mark is not None and mark.revision == listing.revision and is_present(folder):
        print(f"{listing.repo} is here already: {folder}")
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns) as bars:
        bar = bars.add_task(listing.repo, total=listing.bytes)
        fetch(listing, folder, lambda name, n: bars.update(bar, advance=n), endpoint)
        bars.update(bar, completed=listing.bytes, description=f"{listing.repo} verified")
    print(f"{listing.repo} is here: {folder}")


def print_profiles(models: Path) -> None:
    """What could be fetched and what is here."""
    from rich.console import Console
    from rich.table import Table

    from assistant.app.config import PROFILES
    from assistant.app.hub import is_present, model_folder

    table = Table("profile", "models", "GPU memory", "licences", "here")
    for profile in PROFILES.values():
        repos = [repo for repo in (profile.llm, profile.tts) if repo]
        here = [is_present(model_folder(models, repo)) for repo in repos]
        state = "shipped" if not repos else "yes" if all(here) else f"{sum(here)} of {len(here)}" if any(here) else "no"
        memory = f"{profile.gpu_bytes / 2**30:.0f} GiB" if profile.gpu_bytes else "none"
        table.add_row(profile.name, "\n".join(repos) or "part of the program", memory, profile.licence, state)
    Console().print(table)
    print("fetch one with: assistant pull PROFILE")
