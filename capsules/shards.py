"""The files of a published checkpoint: which they are and what they hold together."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from capsules.errors import WeightsError
from capsules.safefile import SafeFile, TensorEntry, read_header

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MAX_INDEX_BYTES = 64 << 20

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str] | SafeFile]


def catalogue(source: Source) -> dict[str, TensorEntry]:
    """Every tensor of a checkpoint by name, from the headers alone.

    Raises WeightsError if the layout is not understood or a name occurs in two files, CapsuleDamaged for a bad file.
    """
    return {name: entry for name, (_, entry) in locate(open_files(source)).items()}


def open_files(source: Source) -> list[SafeFile]:
    """The headers of all files of a checkpoint."""
    if not isinstance(source, (str, os.PathLike)):
        return [one if isinstance(one, SafeFile) else read_header(Path(one)) for one in source]
    path = Path(source)
    if path.is_file():
        return [read_header(path)]
    if not path.is_dir():
        raise WeightsError(f"{path}: no such file or directory")
    if (path / INDEX).exists():
        return _open_indexed(path)
    if (path / SINGLE).exists():
        return [read_header(path / SINGLE)]
    files = sorted(path.glob("*.safetensors"))
    if len(files) != 1:
        raise WeightsError(
            f"{path}: expected {INDEX}, {SINGLE} or exactly one .safetensors file, found "
            f"{', '.join(f.name for f in files) or 'none'}. Fetch the checkpoint again or name the files."
        )
    return [read_header(files[0])]


def _open_indexed(path: Path) -> list[SafeFile]:
    index = path / INDEX
    if index.stat().st_size > MAX_INDEX_BYTES:
        raise WeightsError(f"{INDEX}: {index.stat().st_size} bytes; at most {MAX_INDEX_BYTES} are read")
    try:
        where = json.loads(index.read_text("utf-8"))["weight_map"]
        shards = {str(name): str(shard) for name, shard in where.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise WeightsError(f"{INDEX}: not an index with a weight_map ({error!r})") from error
    listed = sorted(set(shards.values()))
    outside = [s for s in listed if Path(s).name != s or s in ("", ".", "..")]
    if outside:
        raise WeightsError(f"{INDEX}: {outside[0]!r} is not a file name in the same directory")
    absent = [s for s in listed if not (path / s).is_file()]
    if absent:
        raise WeightsError(f"{path}: {INDEX} lists {some(absent)}, not there. Finish fetching the checkpoint.")
    files = [read_header(path / shard) for shard in listed]
    held = {name: file.path.name for file in files for name in file.entries}
    wrong = [name for name, shard in shards.items() if held.get(name) != shard]
    if wrong:
        raise WeightsError(f"{INDEX}: {some(wrong)} not in the shard it names. Fetch the checkpoint again.")
    return files


def locate(files: Sequence[SafeFile]) -> dict[str, tuple[SafeFile, TensorEntry]]:
    """Name -> file and entry. Raises WeightsError if two files hold the same name."""
    located: dict[str, tuple[SafeFile, TensorEntry]] = {}
    for file in files:
        for name, entry in file.entries.items():
            if name in located:
                raise WeightsError(f"{name!r} is in {located[name][0].path.name} and in {file.path.name}")
            located[name] = (file, entry)
    return located


def some(names: Sequence[str]) -> str:
    """A list for an error message."""
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
