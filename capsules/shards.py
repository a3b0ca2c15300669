"""The files of a published checkpoint: which they are, what they hold together, and a digest of them."""

import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from capsules.errors import WeightsError
from capsules.feed import read_exactly
from capsules.safefile import SafeFile, TensorEntry, read_header

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MAX_INDEX_BYTES = 64 << 20

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def catalogue(source: Source) -> dict[str, TensorEntry]:
    """Every tensor of a checkpoint by name, from the headers alone.

    Raises WeightsError if the layout is not understood or a name occurs in two files, CapsuleDamaged for a bad file.
    """
    return {name: entry for name, (_, entry) in locate(open_files(source)).items()}


def digest(source: Source, full: bool = False) -> str:
    """A hex digest of a checkpoint, for fingerprints: names, dtypes, shapes, and a sample of the bytes.

    The sample is the first and last 4 KiB of every tensor and 4 KiB in every MiB between them: 0.4 % of the file, so
    9 GB take about 40 MB of reads. Any other training run, precision, quantisation or merge changes nearly every
    weight and is seen. An edit of single values may be missed; `full=True` reads every byte (about 1 GB/s) and sees
    it. The two kinds of digest differ from each other, and the names of the files do not matter.
    """
    located = sorted(locate(open_files(source)).items())
    whole = hashlib.blake2b(b"full" if full else b"sample", digest_size=16)
    with ExitStack() as stack, ThreadPoolExecutor(8) as pool:
        files: dict[Path, int] = {}
        for _, (file, _) in located:
            if file.path not in files:
                files[file.path] = os.open(file.path, os.O_RDONLY)
                stack.callback(os.close, files[file.path])
        parts = pool.map(lambda item: _tensor_digest(files[item[1][0].path], item[1][1], full), located)
        for (name, (_, entry)), part in zip(located, parts, strict=True):
            whole.update(f"{len(name)} {name} {entry.dtype} {list(entry.shape)}\n".encode() + part)
    return whole.hexdigest()


def _tensor_digest(file: int, entry: TensorEntry, full: bool, block: int = 4096, stride: int = 1 << 20) -> bytes:
    state = hashlib.blake2b(digest_size=16)
    buffer = memoryview(bytearray(min(stride if full else block, entry.nbytes)))
    spans = set(range(0, entry.nbytes, stride))
    if not full:
        spans.add(max(0, entry.nbytes - block))
    for at in sorted(spans):
        part = buffer[: min(len(buffer), entry.nbytes - at)]
        read_exactly(file, entry.offset + at, part)
        state.update(part)
    return state.digest()


def open_files(source: Source) -> list[SafeFile]:
    """The headers of all files of a checkpoint."""
    if not isinstance(source, (str, os.PathLike)):
        return [read_header(Path(path)) for path in source]
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
    outside = [s for s in shards.values() if Path(s).name != s or s in ("", ".", "..")]
    if outside:
        raise WeightsError(f"{INDEX}: {outside[0]!r} is not a file name in the same directory")
    absent = sorted({s for s in shards.values() if not (path / s).is_file()})
    if absent:
        raise WeightsError(f"{path}: {INDEX} lists {some(absent)}, not there. Finish fetching the checkpoint.")
    files = [read_header(path / shard) for shard in sorted(set(shards.values()))]
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
