"""Models from the hub: what a repository holds and under which licence, fetched, resumed and verified.

A model lies in its own folder under `models/`. `model.json` is written there last, when every file had the size and
the digest that the hub announced; a folder without it is not a model yet, and one that was begun has `begun.json`.
huggingface_hub speaks to the hub; a begun
file is kept here under a name of its own, because the library's own do not outlive an interrupted process.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from glob import escape
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

from assistant.app.ggufs import SUFFIX, gguf_file, quantisation
from assistant.base import memory
from assistant.base.errors import AssistantError

MARK, BEGUN = "model.json", "begun.json"
WANTED = (  # nothing that could be run
    "*.safetensors", "*.json", "*.jinja", "tokenizer.model", "merges.txt", "vocab.txt", "LICENSE*", "NOTICE*",
)  # fmt: skip
FREE_LICENCES = frozenset({"apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "isc", "cc0-1.0"})
BLOCK = 1 << 20
PIECE = 1 << 18
"""Bytes that are written, and told, at a time."""
SPARE_BYTES = 1 << 30
"""Disk that is left free."""


class HubError(AssistantError):
    """The hub cannot be reached, refuses, or sent something else than it announced."""


class FetchHalted(HubError):
    """Raised by the caller's `progress`: the fetch stops here, and a later one goes on."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a repository. Large files have a SHA-256, small ones git's own digest."""

    name: str
    size: int
    sha256: str | None = None
    git_sha1: str | None = None


@dataclass(frozen=True, slots=True)
class RepoPart:
    """Which files of a repository make a model: those right in `folder` (empty: the top one) that match a pattern of
    `wanted`. A repository that does not match each pattern of `needed` is not a model."""

    folder: str = ""
    wanted: tuple[str, ...] = WANTED
    needed: tuple[str, ...] = ("*.safetensors",)

    def name_of(self, path: str) -> str | None:
        """The file's name in the model's own folder, or None for what is not fetched: whatever lies elsewhere, climbs
        out, or would be no plain name on some system."""
        name = path.removeprefix(f"{self.folder}/") if self.folder else path
        if self.folder and name == path:
            return None
        plain = PurePosixPath(name).name == name == PureWindowsPath(name).name
        ours = name in (MARK, BEGUN)
        return name if plain and not ours and any(fnmatch(name, pattern) for pattern in self.wanted) else None


@dataclass(frozen=True, slots=True)
class RepoListing:
    """The files of a repository that a model needs, at one revision. `folder`: where they lie in it."""

    repo: str
    revision: str
    licence: str
    licence_link: str
    files: tuple[HubFile, ...]
    folder: str = ""

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def needs_consent(self) -> bool:
        """Whether the licence restricts use, so that a person has to agree first."""
        return self.licence.lower() not in FREE_LICENCES


def model_folder(models: Path, repo: str, part: str = "") -> Path:
    """The folder of a repository's files; `part` names one of several models in it. All quantisations share one."""
    return models / "--".join([*repo.partition(":")[0].split("/"), *([part] if part else [])])


def is_present(folder: Path, wanted: RepoListing | None = None) -> bool:
    """Whether the model was fetched as a whole, with all that is `wanted` now. Sizes are looked at, digests only when
    fetching."""
    listing = read_mark(folder)
    return listing is not None and not missing(listing, folder) and not (wanted and missing(wanted, folder))


def is_fetched(models: Path, repo: str) -> bool:
    """The same for OWNER/NAME or OWNER/NAME:QUANTISATION."""
    folder, (_, _, wanted) = model_folder(models, repo), repo.partition(":")
    listing = read_mark(folder)
    files = listing.files if listing else ()
    named = not wanted or any(quantisation(file.name) == wanted.upper() for file in files)
    return named and is_present(folder)


def read_mark(folder: Path, mark: str = MARK) -> RepoListing | None:
    """The listing in `model.json`, or in another mark; or None."""
    try:
        data = json.loads((folder / mark).read_text("utf-8"))
        files = tuple(HubFile(**file) for file in data.pop("files"))
        return RepoListing(**data, files=files)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def begun_bytes(folder: Path) -> int:
    """How much is here of a model that was begun; 0 if none was."""
    listing = read_mark(folder, BEGUN)
    names = [name for file in listing.files for name in (file.name, f"{file.name}.part")] if listing else []
    return sum((folder / name).stat().st_size for name in names if (folder / name).is_file())


def discard(folder: Path) -> None:
    """Remove what is here of a model that was begun; a whole one stays, and so does what is not of the hub."""
    listing = read_mark(folder, BEGUN)
    if listing is None:
        return
    for file in listing.files:
        for name in (file.name, f"{file.name}.part"):
            (folder / name).unlink(missing_ok=True)
    (folder / BEGUN).unlink(missing_ok=True)
    with suppress(OSError):  # something else is in it
        folder.rmdir()


def missing(listing: RepoListing, folder: Path) -> tuple[HubFile, ...]:
    """Files that are not there in their full size."""

    def there(file: HubFile) -> bool:
        path = folder / file.name
        return path.is_file() and path.stat().st_size == file.size

    return tuple(file for file in listing.files if not there(file))


def damaged(files: Iterable[HubFile], folder: Path, progress: Callable[[int], None] = lambda n: None) -> list[HubFile]:
    """Files whose content is not what the hub announced; `progress` gets the bytes read."""
    return [file for file in files if not _is_whole(folder / file.name, file, progress)]


def _is_whole(path: Path, file: HubFile, progress: Callable[[int], None]) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    digest = hashlib.sha256() if file.sha256 else hashlib.sha1(f"blob {file.size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as data:
        while block := data.read(BLOCK):
            digest.update(block)
            progress(len(block))
    expected = file.sha256 or file.git_sha1
    return expected is None or digest.hexdigest() == expected


# ------------------------------------------------------------------------------------------- the hub


WHOLE = RepoPart()


def list_repo(repo: str, endpoint: str | None = None, part: RepoPart = WHOLE) -> RepoListing:
    """List a repository as it is now. Raises HubError.

    repo  OWNER/NAME, or OWNER/NAME:QUANTISATION for one of its GGUF files; without safetensors one is chosen
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError

    repo, _, wanted = repo.partition(":")
    try:
        info = HfApi(endpoint=endpoint).model_info(repo, files_metadata=True)
    except HFValidationError as error:
        raise HubError(f"{repo!r} is not the name of a repository; they look like Qwen/Qwen3.5-4B") from error
    except Exception as error:
        raise _told(repo, error) from error
    if part is WHOLE:
        part = _whole_or_gguf(repo, wanted, {s.rfilename: s.size or 0 for s in info.siblings or ()})
    card: Any = info.card_data or {}
    licence = card.get("license") or "unknown"
    if licence == "other":
        licence = card.get("license_name") or "other"
    files = tuple(
        HubFile(name, s.size or 0, s.lfs.sha256 if s.lfs else None, None if s.lfs else s.blob_id)
        for s in info.siblings or ()
        if (name := part.name_of(s.rfilename)) is not None
    )
    lacking = [need for need in part.needed if not any(fnmatch(file.name, need) for file in files)]
    if lacking:
        where = f"{repo} ({part.folder})" if part.folder else repo
        raise HubError(f"{where} does not contain {', '.join(lacking)}, which is needed; choose another repository")
    link = card.get("license_link") or f"{endpoint or 'https://huggingface.co'}/{repo}"
    return RepoListing(repo, str(info.sha), licence, link, files, part.folder)


def _whole_or_gguf(repo: str, wanted: str, sizes: Mapping[str, int]) -> RepoPart:
    """All of a repository with safetensors; one file of one without, or if a quantisation is `wanted`."""
    ggufs = any(name.lower().endswith(SUFFIX) for name in sizes)
    if not wanted and (not ggufs or any(WHOLE.name_of(name) and name.endswith(".safetensors") for name in sizes)):
        return WHOLE
    try:
        chosen = escape(gguf_file(sizes, wanted, memory.available_bytes()))
    except ValueError as error:
        raise HubError(f"{repo}: {error}") from error
    return RepoPart("", (chosen, "LICENSE*", "NOTICE*"), (chosen,))


def fetch(
    listing: RepoListing, folder: Path, progress: Callable[[str, int], None], endpoint: str | None = None
) -> None:
    """Bring all files here and mark the folder. `progress(file name, bytes)` hears of every piece.

    Files that are here and whole are not fetched again; a begun one goes on where it stopped. Raises HubError.
    """
    from capsules.durable import alone  # the package loads torch; who only asks what is here needs none

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder):
            _fetch_all(listing, folder, progress, endpoint)
    except BlockingIOError:
        raise HubError(f"{listing.repo}: another process is working in {folder}; wait until it has finished") from None
    except OSError as error:  # of the disk: those on the way to the hub are told already
        why = error.strerror or str(error)
        raise HubError(f"{folder} cannot be written ({why}); run the same command again, it continues") from error


def _fetch_all(
    listing: RepoListing, folder: Path, progress: Callable[[str, int], None], endpoint: str | None
) -> None:
    from capsules.durable import write_json

    todo = missing(listing, folder)
    _check_room(sum(file.size for file in todo), folder)
    before = read_mark(folder, BEGUN)
    for old in before.files if before else ():
        if old not in listing.files:  # the repository has changed since: half of each would be neither
            (folder / f"{old.name}.part").unlink(missing_ok=True)
    write_json(folder / BEGUN, asdict(listing), indent=1)
    (folder / MARK).unlink(missing_ok=True)
    for file in listing.files:
        if file not in todo:
            progress(file.name, file.size)
            continue
        _fetch_one(listing, file, folder, progress, endpoint)
    bad = damaged(listing.files, folder)
    for file in bad:
        (folder / file.name).unlink(missing_ok=True)
    if bad:
        names = ", ".join(file.name for file in bad)
        raise HubError(f"{listing.repo}: {names} arrived damaged and was removed; run the same command again")
    write_json(folder / MARK, asdict(listing), indent=1)
    (folder / BEGUN).unlink(missing_ok=True)


def _check_room(needed: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE_BYTES:
        raise HubError(
            f"{folder} has {free / 1e9:.1f} GB free, {(needed + SPARE_BYTES) / 1e9:.1f} GB are needed; "
            "make room or point ASSISTANT_HOME at a larger disk"
        )


def _fetch_one(
    listing: RepoListing, file: HubFile, folder: Path, progress: Callable[[str, int], None], endpoint: str | None
) -> None:
    """Into `NAME.part`, which a later run continues, then renamed. Its content is checked together with all other
    files."""
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers, tqdm

    class Told(tqdm):
        """Reports to us and draws nothing."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})

        def update(self, n: float | None = 1) -> None:
            progress(file.name, int(n or 0))

    # The library asks for 10 MB at a time: on a slow line nothing would be told, or halted, for minutes.
    constants.DOWNLOAD_CHUNK_SIZE = min(constants.DOWNLOAD_CHUNK_SIZE, PIECE)
    part = folder / f"{file.name}.part"
    if part.is_file() and part.stat().st_size > file.size:
        part.unlink()
    try:
        url = hf_hub_url(
            listing.repo, file.name, subfolder=listing.folder, revision=listing.revision, endpoint=endpoint
        )
        headers = build_hf_headers()
        location = get_hf_file_metadata(url, endpoint=endpoint).location
        if urlsplit(location).netloc != urlsplit(url).netloc:
            headers.pop("authorization", None)
        with part.open("ab") as out:
            progress(file.name, out.tell())
            http_get(
                location, out, resume_size=out.tell(), headers=headers, expected_size=file.size, tqdm_class=Told
            )
    except Exception as error:
        raise _told(listing.repo, error) from error
    part.replace(folder / file.name)


def _told(repo: str, error: Exception) -> HubError:
    """The library's many errors in one sentence each; our own as they are."""
    from huggingface_hub import errors

    if isinstance(error, HubError):
        return error
    if isinstance(error, errors.GatedRepoError):
        return HubError(
            f"{repo} requires consent: agree on its page while logged in, then run `hf auth login` here"
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return HubError(f"the hub has no repository {repo!r}, or it is private and needs `hf auth login`")
    if isinstance(error, errors.HfHubHTTPError):
        return HubError(f"{repo}: the hub answered {str(error).splitlines()[0][:200]}; try again later")
    if isinstance(error, OSError) and error.errno == 28:
        return HubError(f"{repo}: the disk is full; make room and run the same command again, it continues")
    return HubError(
        f"{repo}: the hub cannot be reached ({type(error).__name__}: {str(error)[:150]}); "
        "check the network and run the same command again, it continues where it stopped"
    )
