"""Safetensors checkpoints streamed to the device through a name map; every name, shape and dtype is checked first.

    names = catalogue(path)                                  # what is there: name -> TensorEntry (dtype, shape)
    plan = {
        "model.embed_tokens.weight": Target(embed),
        "model.layers.0.mlp.gate_proj.weight": Target(gate_up[:inner]),    # two tensors fused into one
        "model.layers.0.mlp.up_proj.weight": Target(gate_up[inner:]),
        "model.layers.0.conv1d.weight": Target(conv, shape=(channels, 1, width)),     # stored with another shape
        "model.layers.0.qkv.weight": (Target(q, rows=slice(0, 512)), Target(kv, rows=slice(512, 768))),
        "model.layers.0.A_log": Target(decay, transform=lambda a: -a.float().exp()),
    }
    loaded = load(path, plan, skip=("model.visual.*", "mtp.*"), progress=lambda p: print(p))

`path` is a directory (one `model.safetensors`, or shards with `model.safetensors.index.json`), a file, or a list of
files. A tensor of the checkpoint that is neither planned nor skipped, a planned one that is missing, or a shape or
dtype that does not fit raises WeightsError with the name, before a byte is written. Float dtypes are converted piece by
piece; all others must be equal. Nothing is ever held twice: the page cache is the only other copy.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from time import perf_counter
from typing import Protocol

import torch
from torch import Tensor

from capsules.errors import WeightsError
from capsules.feed import FeedPiece, HostFeed, StagedFeed, feed_for, host_bytes, read_exactly, split
from capsules.safefile import SafeFile, TensorEntry
from capsules.shards import Source, catalogue, locate, open_files, some

__all__ = ["Loaded", "Packed", "Plan", "Progress", "Target", "WeightsError", "catalogue", "load", "packing"]

DTYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "I32": torch.int32,
    "I64": torch.int64, "U16": torch.uint16, "U32": torch.uint32, "U64": torch.uint64,
    "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "F8_E8M0": torch.float8_e8m0fnu,
}  # fmt: skip
CASTABLE = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
_STRIP_VALUES = 1 << 24  # values read and packed at a time


@dataclass(frozen=True)
class Target:
    """The destination of one tensor of the checkpoint.

    tensor     destination, any view of any buffer: a row range of a fused tensor, a transposed view, ...
    rows       only these rows (axis 0) of the checkpoint's tensor
    shape      the shape in the file (before `rows`), if it differs from the destination's; same number of elements,
               unless `transform` is given, which must then return the destination's shape
    transform  called with the whole host tensor as stored; for small tensors: it passes through host memory
    accept     dtypes allowed in the file. Default: the destination's own, or any of float16, bfloat16, float32 and
               float64 if the destination is one of them. FP8 is converted only where listed here.
    """

    tensor: Tensor
    rows: slice | None = None
    shape: tuple[int, ...] | None = None
    transform: Callable[[Tensor], Tensor] | None = None
    accept: tuple[torch.dtype, ...] | None = None


Plan = Mapping[str, Target | Sequence[Target]]


class Packed(Protocol):
    """A matrix stored in fewer bits, or some rows of one."""

    @property
    def values(self) -> Tensor: ...

    def fill(self, matrix: Tensor, /) -> Tensor:
        """Take over the scales of plain rows and return their values. If a GPU will hold them, it also packs them:
        sixteen cores took half a minute for four billion weights."""
        ...

    def __getitem__(self, rows: slice, /) -> "Packed": ...


def packing(whole: Packed, shape: tuple[int, ...], edge: int, accept: tuple[torch.dtype, ...]) -> list[Target]:
    """Pack a plain matrix [O, I] some rows at a time, so that a wide one never exists as a whole.

    edge  strips end at multiples of it: rows that share a scale or a place
    """
    step = max(edge, _STRIP_VALUES // shape[1] // edge * edge)
    strips = [slice(first, min(first + step, shape[0])) for first in range(0, shape[0], step)]
    return [
        Target(whole[rows].values, rows=rows, shape=shape, transform=whole[rows].fill, accept=accept) for rows in strips
    ]


@dataclass(frozen=True)
class Progress:
    """Bytes read so far, of how many."""

    done_bytes: int
    total_bytes: int

    def __str__(self) -> str:
        share = self.done_bytes / self.total_bytes if self.total_bytes else 1.0
        return f"{share:4.0%} of {self.total_bytes / 1e9:.2f} GB"


@dataclass(frozen=True)
class Loaded:
    """The result of `load`."""

    tensors: int
    skipped: tuple[str, ...]
    nbytes: int
    seconds: float


def load(
    source: Source,
    plan: Plan,
    skip: Iterable[str] = (),
    progress: Callable[[Progress], None] | None = None,
    feed: HostFeed | StagedFeed | None = None,
) -> Loaded:
    """Fill every target of the plan. See the module's docstring.

    skip       patterns (`fnmatch`, case-sensitive) of checkpoint names that are left out on purpose
    progress   called from this thread after each piece; raising from it stops the load
    feed       how bytes travel; chosen from the targets' device if not given
    Raises WeightsError or CapsuleDamaged. After CapsuleDamaged the targets hold a part of the weights.
    """
    began = perf_counter()
    located = locate(open_files(source))
    skipped = _reconcile(located, plan, tuple(skip))
    jobs = [
        (name, target, *located[name])
        for name, entry in plan.items()
        for target in ([entry] if isinstance(entry, Target) else entry)
    ]
    regions = [_region(name, target, entry) for name, target, _, entry in jobs]
    _refuse_overlap(jobs)
    total = sum(nbytes for _, nbytes in regions)
    done = _counted(total, progress)
    with ExitStack() as stack, torch.no_grad():
        files = {file.path: os.open(file.path, os.O_RDONLY) for file in {id(j[2]): j[2] for j in jobs}.values()}
        for descriptor in files.values():
            stack.callback(os.close, descriptor)
        pieces: dict[torch.device, list[FeedPiece]] = {}
        for (_, target, file, entry), (offset, nbytes) in zip(jobs, regions, strict=True):
            if target.transform is None:
                dest = target.tensor.detach()
                piece = FeedPiece(files[file.path], offset, nbytes, DTYPES[entry.dtype], dest)
                pieces.setdefault(dest.device, []).append(piece)
            else:
                _transformed(target, entry, files[file.path], offset, nbytes)
                done(nbytes)
        for device, group in pieces.items():
            way = feed or feed_for(device)
            way.move_all([part for piece in group for part in split(piece, way.piece_bytes)], done)
    return Loaded(len(plan), skipped, total, perf_counter() - began)


def _counted(total: int, progress: Callable[[Progress], None] | None) -> Callable[[int], None]:
    """Adds up the bytes of finished pieces, and reports them."""
    count = 0

    def done(nbytes: int) -> None:
        nonlocal count
        count += nbytes
        if progress is not None:
            progress(Progress(count, total))

    return done


def _reconcile(
    located: Mapping[str, tuple[SafeFile, TensorEntry]], plan: Plan, skip: tuple[str, ...]
) -> tuple[str, ...]:
    """Names left out on purpose. Raises WeightsError for unknown and missing ones."""
    missing = [name for name in plan if name not in located]
    if missing:
        raise WeightsError(f"the checkpoint lacks {some(missing)}. Is it the model that the config describes?")
    rest = [name for name in located if name not in plan]
    skipped = tuple(name for name in rest if any(fnmatchcase(name, pattern) for pattern in skip))
    unknown = sorted(set(rest) - set(skipped))
    if unknown:
        raise WeightsError(f"nothing in this model takes {some(unknown)}. Map the name, or skip it knowingly.")
    return skipped


def _region(name: str, target: Target, entry: TensorEntry) -> tuple[int, int]:
    """Offset and bytes of the wanted rows, after all checks."""
    dtype, dest = DTYPES[entry.dtype], target.tensor
    shape = list(entry.shape)
    offset, nbytes = entry.offset, entry.nbytes
    if target.shape is not None and entry.shape != target.shape:
        raise WeightsError(f"{name}: shape {shape} in the checkpoint, {list(target.shape)} expected")
    if target.rows is not None:
        first, last = target.rows.start or 0, target.rows.stop
        if not shape or target.rows.step not in (None, 1) or last is None or not 0 <= first <= last <= shape[0]:
            raise WeightsError(f"{name}: rows {first}..{last} are not inside its shape {shape}")
        row = entry.nbytes // shape[0] if shape[0] else 0
        offset, nbytes, shape[0] = offset + first * row, (last - first) * row, last - first
    if target.transform is None:
        same = dest.numel() * dtype.itemsize == nbytes if target.shape is not None else list(dest.shape) == shape
        if not same:
            raise WeightsError(f"{name}: shape {shape} in the checkpoint, {list(dest.shape)} expected")
        if target.shape is not None and not dest.is_contiguous():
            raise WeightsError(f"{name}: a target that changes the shape must be contiguous; use transform")
    allowed = target.accept or (tuple(CASTABLE) if dest.dtype in CASTABLE else (dest.dtype,))
    if dtype not in allowed and (target.transform is None or target.accept):
        listed = ", ".join(sorted(str(d).removeprefix("torch.") for d in allowed))
        raise WeightsError(f"{name}: dtype {entry.dtype} in the checkpoint; {listed} fit the destination")
    return offset, nbytes


def _transformed(target: Target, entry: TensorEntry, file: int, offset: int, nbytes: int) -> None:
    shape = list(entry.shape)
    if target.rows is not None:
        shape[0] = target.rows.stop - (target.rows.start or 0)
    stored = torch.empty(shape, dtype=DTYPES[entry.dtype])
    if nbytes:
        read_exactly(file, offset, host_bytes(stored))
    assert target.transform is not None
    made = target.transform(stored)
    if made.shape != target.tensor.shape:
        raise WeightsError(f"{entry.name}: its transform made {list(made.shape)}, {list(target.tensor.shape)} expected")
    target.tensor.copy_(made)


def _refuse_overlap(jobs: Sequence[tuple[str, Target, SafeFile, TensorEntry]]) -> None:
    """Refuse two tensors in one place: the map is wrong, and timing would decide which of them wins."""
    spans = sorted(
        (t.tensor.data_ptr(), t.tensor.data_ptr() + t.tensor.numel() * t.tensor.element_size(), name)
        for name, t, _, _ in jobs
        if t.tensor.is_contiguous() and t.tensor.numel()
    )
    for (_, end, name), (start, _, other) in pairwise(spans):
        if start < end:
            raise WeightsError(f"{name} and {other} are mapped to the same memory")
