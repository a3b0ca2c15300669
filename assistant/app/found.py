"""Language models that lie on this machine: ours, and those that other programs keep in known places.

They are listed and read in place. Nothing here loads a model or imports an engine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from assistant.app.hub import BEGUN, read_mark

OLLAMA, LM_STUDIO, HUB, LLAMA_CPP, OURS, FOLDER = "Ollama", "LM Studio", "hub", "llama.cpp", "ours", "folder"
_WEIGHTS, _MLX = "application/vnd.ollama.image.model", "application/vnd.ollama.image.tensor"

UNFINISHED = "it is not fetched completely; `assistant pull` with its name goes on"


@dataclass(frozen=True)
class FoundModel:
    """One model. `trouble` says in a sentence why it cannot even be tried; empty where it can."""

    name: str
    program: str
    path: Path
    nbytes: int
    trouble: str = ""


@dataclass(frozen=True)
class ModelPlace:
    """A folder that a program keeps models in."""

    program: str
    folder: Path


def places(models: Path, environment: Mapping[str, str], home: Path) -> list[ModelPlace]:
    """Every known folder, whether it is there or not. `models`: our own."""
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    hub = environment.get("HF_HUB_CACHE") or Path(environment.get("HF_HOME") or cache / "huggingface") / "hub"
    ollama = environment.get("OLLAMA_MODELS")
    return [
        ModelPlace(OURS, models),
        ModelPlace(HUB, Path(hub)),
        *(ModelPlace(OLLAMA, Path(p)) for p in ([ollama] if ollama else [home / ".ollama" / "models"])),
        ModelPlace(OLLAMA, Path("/usr/share/ollama/.ollama/models")),  # where its Linux service keeps them
        ModelPlace(LM_STUDIO, home / ".lmstudio" / "models"),
        ModelPlace(LM_STUDIO, cache / "lm-studio" / "models"),
        ModelPlace(LLAMA_CPP, Path(environment.get("LLAMA_CACHE") or cache / "llama.cpp")),
    ]


def known_models(models: Path) -> list[FoundModel]:
    """Those in every known place of this machine."""
    return list(find_models(places(models, os.environ, Path.home())))


def find_models(among: Iterable[ModelPlace]) -> Iterator[FoundModel]:
    """In the order of the places; a folder that may not be read is named with the command that helps."""
    for place in among:
        try:
            if not place.folder.is_dir():
                continue
            found = _ollama(place.folder) if place.program == OLLAMA else _folders(place)
            yield from sorted(found, key=lambda model: model.name)
        except PermissionError as error:
            at = error.filename or place.folder
            trouble = f"{at} may not be read; `sudo chmod -R a+rX {place.folder}` allows it"
            yield FoundModel(str(place.folder), place.program, place.folder, 0, trouble)


def _folders(place: ModelPlace) -> list[FoundModel]:
    """GGUF files, and folders with a config.json and safetensors, however deep."""
    found = []
    for folder, _, files in os.walk(place.folder, onerror=_refuse, followlinks=False):
        at = Path(folder)
        half = {file.name for file in listing.files} if (listing := read_mark(at, BEGUN)) else set()
        for file in sorted(files):
            if file.endswith(".gguf") and not file.startswith("mmproj") and _first_part(file):
                size, begun = (at / file).stat().st_size, UNFINISHED if file in half else ""
                found.append(FoundModel(_named(place, at / file), place.program, at / file, size, begun))
        weights = [at / file for file in files if file.endswith(".safetensors")]
        if "config.json" in files and weights:
            nbytes = sum(file.stat().st_size for file in weights)
            begun = UNFINISHED if BEGUN in files else ""
            found.append(FoundModel(_named(place, at), place.program, at, nbytes, begun))
    return found


def _first_part(file: str) -> bool:
    """The first file of a model that was cut into files stands for all of them."""
    return "-of-" not in file or "-00001-of-" in file


def _named(place: ModelPlace, path: Path) -> str:
    """As its program calls it: in the hub's cache the repository, without the snapshot."""
    parts = path.relative_to(place.folder).parts
    if place.program == HUB and parts and parts[0].startswith("models--"):
        return "/".join((parts[0].removeprefix("models--").replace("--", "/"), *parts[3:]))
    return "/".join(parts) or path.name


def _ollama(folder: Path) -> list[FoundModel]:
    found = []
    for at, _, files in os.walk(folder / "manifests", onerror=_refuse):
        for file in files:
            path = Path(at) / file
            found.append(_listed(folder, path, path.relative_to(folder / "manifests").parts))
    return found


def _listed(folder: Path, manifest: Path, parts: tuple[str, ...]) -> FoundModel:
    """One tag: HOST/NAMESPACE/NAME/TAG, of which the usual host and namespace are left out as Ollama does."""
    shown = [part for part in parts[:-1] if part not in ("registry.ollama.ai", "library")]
    name = f"{'/'.join(shown)}:{parts[-1]}"
    try:
        layers = json.loads(manifest.read_text("utf-8"))["layers"]
        kinds = {layer["mediaType"] for layer in layers}
        weights = next((layer for layer in layers if layer["mediaType"] == _WEIGHTS), None)
        blob = folder / "blobs" / str(weights["digest"]).replace(":", "-") if weights else None
        size = int(weights["size"]) if weights else 0
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return FoundModel(name, OLLAMA, manifest, 0, f"its manifest {manifest} is not understood ({error!r})")
    if blob is None:
        why = "it is kept as MLX tensors, which are not read; pull a GGUF tag" if _MLX in kinds else "it has no weights"
        return FoundModel(name, OLLAMA, manifest, 0, why)
    there = blob.stat().st_size if blob.is_file() else 0
    if there != size:
        return FoundModel(name, OLLAMA, blob, there, f"{there} of {size} bytes are here; `ollama pull {name}` goes on")
    return FoundModel(name, OLLAMA, blob, size)


def _refuse(error: OSError) -> None:
    """`os.walk` would pass over a folder that may not be read."""
    if not isinstance(error, FileNotFoundError):
        raise error
