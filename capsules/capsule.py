"""Capsule and Checkpoint: the state at a boundary as bytes, and the four verbs over the declared closure.

The closure of a scope is every buffer declared with role STATE. All verbs walk that declaration, so none can forget
a buffer. A capsule is complete and portable between processes of one deployment; a checkpoint holds only what is
live as a whole (recurrent state, counters) and is valid while the prefix rows below its position are still in place.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor

from capsules.arguments import a_kind
from capsules.errors import CapsuleMismatch, CapsuleTooLarge, ContractMisuse
from capsules.exec import Buffer, ExecContext, Prefix, Role, Whole
from capsules.exec.switches import Switch

_ALIGN = 64  # bytes; keeps every tensor of a capsule on a cache line


@dataclass(frozen=True)
class Fingerprint:
    """Facts that two engines must share before a capsule of one is valid in the other."""

    facts: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, ctx: ExecContext, scope: str, *, weights: str, code: str, **facts: str) -> "Fingerprint":
        """The fingerprint of a scope as it is declared now.

        weights  digest of the checkpoint
        code     version of the code that gives the bytes their meaning, for example "llm_engine/1"
        facts    anything else that must agree: dtype, template, chunk schedule
        """
        layout = "; ".join(buffer.layout for buffer in closure(ctx, scope))
        every = {"weights": weights, "code": code, "device": ctx.describe(), "layout": layout, **facts}
        return cls(tuple(sorted(every.items())))

    @property
    def digest(self) -> str:
        """64 hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.facts).encode()).hexdigest()

    def difference(self, other: "Fingerprint") -> str | None:
        """A sentence on the first thing that differs, or None."""
        mine, theirs = dict(self.facts), dict(other.facts)
        for key in sorted(mine.keys() | theirs.keys()):
            here, there = mine.get(key, "nothing"), theirs.get(key, "nothing")
            if here != there:
                if key == "layout":
                    here, there = _first_difference(here.split("; "), there.split("; "))
                return f"{key} is {here} here and {there} there"
        return None


@dataclass(frozen=True, eq=False)
class Base:
    """The capsule that a delta follows: its rows are the first `position` of every tensor that has rows.

    key     under which it is stored
    nbytes  of those rows
    digest  of those rows: other rows under the same key are a different base
    rows    None until they are found; see `delta.joined`
    """

    key: str
    label: str
    position: int
    nbytes: int
    digest: str
    rows: Mapping[str, Tensor] | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Capsule:
    """The complete state of one scope at a boundary. Its tensors are copies and are never written again.

    axes  for tensors with a row per position: along which axis. With a `base` they hold the rows after it
    """

    label: str
    scope: str
    position: int  # tokens (or rows) folded into the state
    fingerprint: Fingerprint
    tokens: tuple[int, ...]  # enough to rebuild the state if the capsule is refused
    host: Mapping[str, Any]  # JSON facts of the engine that no buffer holds
    tensors: Mapping[str, Tensor] = field(repr=False)  # buffer name → live bytes
    axes: Mapping[str, int] = field(default_factory=dict)
    base: Base | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of its own tensors; those of a base belong to the base."""
        return sum(t.numel() * t.element_size() for t in self.tensors.values())

    @property
    def device(self) -> torch.device:
        return next(iter(self.tensors.values())).device


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The recurrent part at a boundary. Good only while the prefix rows [0, position) are those of that boundary."""

    scope: str
    position: int
    tensors: Mapping[str, Tensor] = field(repr=False)

    @property
    def nbytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.tensors.values())


def closure(ctx: ExecContext, scope: str) -> tuple[Buffer, ...]:
    """Every STATE buffer of a scope. Raises CapsuleMismatch if there is none."""
    buffers = ctx.buffers(scope, Role.STATE)
    if not buffers:
        raise CapsuleMismatch(f"scope {scope!r} has no state buffers; declare them before taking or restoring capsules")
    return buffers


def snapshot(
    ctx: ExecContext,
    scope: str,
    position: int,
    fingerprint: Fingerprint,
    *,
    tokens: Sequence[int] = (),
    label: str = "",
    host: Mapping[str, Any] | None = None,
) -> Capsule:
    """Freeze a boundary: one copy of the live bytes, in one allocation on the device. Raises CapsuleTooLarge."""
    buffers = closure(ctx, scope)
    wide = Switch.WIDE in ctx.switches
    live = copy_out({buffer.name: buffer.live_view(position) for buffer in buffers}, ctx.bytes, wide)
    axes = {buffer.name: buffer.live.axis for buffer in buffers if isinstance(buffer.live, Prefix)}
    return Capsule(label, scope, position, fingerprint, tuple(tokens), dict(host or {}), live, axes)


def restore(ctx: ExecContext, capsule: Capsule, fingerprint: Fingerprint) -> None:
    """Restore a boundary in place; every captured graph continues from it.

    Nothing is written unless the whole capsule fits. Raises CapsuleMismatch with what differs.
    """
    a_kind(ContractMisuse, "capsule", capsule, Capsule, "a capsule, as snapshot gives it,")
    difference = fingerprint.difference(capsule.fingerprint)
    if difference is not None:
        raise CapsuleMismatch(
            f"capsule {capsule.label!r} does not belong to this engine: {difference}. Rebuild it from its "
            f"{len(capsule.tokens)} tokens."
        )
    targets = [(b, b.live_view(capsule.position)) for b in closure(ctx, capsule.scope)]
    _copy_in(capsule, targets, Switch.WIDE in ctx.switches)


class Recurrent:
    """The part of a closure that is live as a whole, laid out once, so a checkpoint is one allocation and one call.

    It is taken every few tokens of a reply, so anything that stays the same between two is not looked up again. Buffers
    never move, so views of their bytes stay valid; declare all of the scope's buffers before this.
    """

    def __init__(self, ctx: ExecContext, scope: str) -> None:
        self.scope = scope
        self._allocate = ctx.bytes
        whole = [b for b in closure(ctx, scope) if isinstance(b.live, Whole)]
        whole.sort(key=lambda b: -b.tensor.element_size())  # widest first: each begins at a multiple of its item size
        self._buffers = {b.name: b.tensor for b in whole}
        self._rows = [b.tensor.reshape(-1).view(torch.uint8) for b in whole]
        self._starts = [0, *accumulate(row.numel() for row in self._rows)]

    @property
    def nbytes(self) -> int:
        """Bytes of one checkpoint."""
        return self._starts[-1]

    def checkpoint_at(self, position: int) -> Checkpoint:
        """A checkpoint of the current state. Raises CapsuleTooLarge."""
        if not self._rows:
            return Checkpoint(self.scope, position, {})
        flat = _allocated(self._allocate, self._starts[-1])
        torch.cat(self._rows, out=flat)
        return Checkpoint(self.scope, position, _Views(flat, self._buffers, self._starts))


class _Views(Mapping[str, Tensor]):
    """Tensors that lie one behind the other in `flat`, made on demand: most checkpoints are never read."""

    def __init__(self, flat: Tensor, like: Mapping[str, Tensor], starts: Sequence[int]) -> None:
        self._flat, self._like, self._starts = flat, like, starts
        self._made: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        if not self._made:
            for (one, like), (start, end) in zip(self._like.items(), pairwise(self._starts), strict=True):
                self._made[one] = self._flat[start:end].view(like.dtype).view(like.shape)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._like)

    def __len__(self) -> int:
        return len(self._like)


def checkpoint(ctx: ExecContext, scope: str, position: int) -> Checkpoint:
    """Freeze only what a rollback cannot find in place. Raises CapsuleTooLarge."""
    return Recurrent(ctx, scope).checkpoint_at(position)


def earlier(ctx: ExecContext, capsule: Capsule, point: Checkpoint) -> Capsule:
    """The capsule that a snapshot at a checkpoint of the same sequence would have given, sharing memory with both."""
    base, tensors = capsule.base, {}
    if base is not None and point.position < base.position:
        base = None
    for buffer in closure(ctx, capsule.scope):
        if isinstance(buffer.live, Whole):
            tensors[buffer.name] = point.tensors[buffer.name]
            continue
        rows, begin = capsule.tensors[buffer.name], 0 if base is None else base.position
        if base is None and capsule.base is not None:
            rows = (capsule.base.rows or {})[buffer.name]
        tensors[buffer.name] = rows.narrow(buffer.live.axis, 0, point.position - begin)
    tokens = capsule.tokens[: point.position]
    return replace(capsule, position=point.position, tokens=tokens, tensors=tensors, base=base)


def rollback(ctx: ExecContext, point: Checkpoint) -> None:
    """Return to an earlier boundary of the same session. The cost does not depend on the position."""
    a_kind(ContractMisuse, "point", point, Checkpoint, "a checkpoint, as checkpoint gives it,")
    _copy_in(point, [(b, b.tensor) for b in closure(ctx, point.scope) if isinstance(b.live, Whole)])


def fork(ctx: ExecContext, capsule: Capsule, fingerprint: Fingerprint, branches: int) -> Iterator[int]:
    """Yield each branch number with the state back at the capsule. The caller runs, and freezes the states to keep."""
    for branch in range(branches):
        restore(ctx, capsule, fingerprint)
        yield branch


def copy_out(
    live: Mapping[str, Tensor], allocate: Callable[[int], Tensor], wide: bool = False
) -> dict[str, Tensor]:
    """Copies of all tensors in one allocation, under the same names.

    allocate  gives uninitialised bytes
    wide      see `copy_wide`
    Raises CapsuleTooLarge if there is not enough memory.
    """
    sizes = [t.numel() * t.element_size() for t in live.values()]
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + -(-size // _ALIGN) * _ALIGN)
    flat = _allocated(allocate, starts[-1])
    copies = {}
    for (name, tensor), start, size in zip(live.items(), starts, sizes, strict=False):
        copies[name] = flat[start : start + size].view(tensor.dtype).view(tensor.shape)
        if wide:
            copy_wide(copies[name], tensor)
        else:
            copies[name].copy_(tensor)
    return copies


def copy_wide(target: Tensor, source: Tensor) -> None:
    """Copy equal shapes and types in elements of 16 bytes where both lie so, else as they are.

    On a GPU rows of a cache are strided, so a copy takes a thread for each element: two bytes at a time reach 59 % of a
    plain copy's speed.
    """
    wide = [one for one in map(_in_words, (target, source)) if one is not None]
    if len(wide) == 2:
        target, source = wide
    target.copy_(source, non_blocking=True)


def _in_words(tensor: Tensor) -> Tensor | None:
    """The same memory as complex128, the one type of 16 bytes; None if it does not lie so."""
    per = 16 // tensor.element_size()
    steps = (*tensor.stride()[:-1], tensor.storage_offset(), tensor.shape[-1] if tensor.dim() else 1)
    even = tensor.dim() > 0 and tensor.stride(-1) == 1 and not any(step % per for step in steps)
    return tensor.view(torch.complex128) if even else None


def _allocated(allocate: Callable[[int], Tensor], nbytes: int) -> Tensor:
    try:
        return allocate(nbytes)
    except (MemoryError, RuntimeError) as error:
        raise CapsuleTooLarge(
            f"no memory for {nbytes / 1e6:.1f} MB of state ({str(error)[:120]}); it is rebuilt from its tokens. "
            "Lower --sessions, --max-positions or the capsule budgets."
        ) from error


_Part = tuple[str, Tensor | None, Tensor]


def _copy_in(
    source: Capsule | Checkpoint, targets: Sequence[tuple[Buffer, Tensor]], wide: bool = False
) -> None:
    parts = [part for buffer, target in targets for part in _parts(source, buffer, target)]
    for name, held, target in parts:
        if held is None or held.shape != target.shape or held.dtype != target.dtype:
            found = "nothing" if held is None else f"{list(held.shape)} {held.dtype}"
            raise CapsuleMismatch(
                f"{name} at position {source.position} needs {list(target.shape)} {target.dtype}, but the "
                f"capsule holds {found}. Nothing was restored."
            )
    for _, held, target in parts:
        assert held is not None
        if wide:
            copy_wide(target, held)
        else:
            target.copy_(held, non_blocking=True)


def _parts(source: Capsule | Checkpoint, buffer: Buffer, target: Tensor) -> Iterator[_Part]:
    """(name, stored bytes, destination): for a delta first the base's rows, then those behind them."""
    base = source.base if isinstance(source, Capsule) else None
    if base is not None and isinstance(buffer.live, Prefix):
        axis = buffer.live.axis
        yield buffer.name, (base.rows or {}).get(buffer.name), target.narrow(axis, 0, base.position)
        target = target.narrow(axis, base.position, source.position - base.position)
    yield buffer.name, source.tensors.get(buffer.name), target


def _first_difference(here: Sequence[str], there: Sequence[str]) -> tuple[str, str]:
    for mine, theirs in zip(here, there, strict=False):
        if mine != theirs:
            return f"[{mine}]", f"[{theirs}]"
    return f"{len(here)} buffers", f"{len(there)} buffers"
