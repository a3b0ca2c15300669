"""The places for capsules' bytes: on the device, in pinned host memory, on disk; and the moves between these.

Moves between device and host run on a separate stream and never make the host wait: each held capsule carries the
event after which its bytes are there. On the CPU the same code runs with streams that are only names.
"""

import os
import time
from collections.abc import Container, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from capsules.capsule import Capsule, copy_out
from capsules.disk import About, CapsuleFolder, CapsuleNotSaved, saved_bytes
from capsules.errors import CapsuleDamaged
from capsules.exec import ExecContext
from capsules.exec.sync import Event, HostEvent

TICK_NS = 20_000_000
"""Time resolution of file systems: a folder changed this recently may change again unnoticed."""


@dataclass(frozen=True, eq=False)
class Held:
    """A capsule and the event after which its bytes are valid."""

    capsule: Capsule
    ready: Event


class Tier(Protocol):
    """A place for capsules. It only stores; the store decides on budgets and order."""

    name: str
    budget_bytes: int  # may be lowered: capsules leave when the next one needs their room
    durable: bool  # survives the process, so a copy here is worth keeping beside a faster one

    def cost(self, capsule: Capsule, notes: Mapping[str, str]) -> int:
        """Bytes that the capsule needs here."""

    def place_copy(self, key: str, held: Held, notes: Mapping[str, str]) -> None:
        """Raises CapsuleNotSaved."""

    def fetch(self, key: str) -> Held:
        """Raises CapsuleDamaged if the stored bytes cannot be used."""

    def delete_copy(self, key: str) -> None: ...


class Mover:
    """Carries capsules between memories of one context."""

    def __init__(self, ctx: ExecContext) -> None:
        self._device = ctx.device
        self._side = ctx.named_stream("capsules")
        self._ctx = ctx

    def bytes(self, count: int) -> Tensor:
        """[count] uint8, uninitialised, in the same memory as the engines' state."""
        return self._ctx.bytes(count)

    def fresh(self, capsule: Capsule) -> Held:
        """A capsule just written by work on the current stream."""
        return Held(capsule, self._now(capsule.device))

    def move(self, held: Held, device: torch.device) -> Held:
        """A copy on another device, in progress; on the same device the capsule itself."""
        source = held.capsule
        if source.device.type == device.type:
            return held
        if not isinstance(held.ready, HostEvent):  # the host's bytes are there already; no device can wait for it
            self._side.wait(held.ready)
        with self._side.use():
            tensors = copy_flat(source.tensors, device)
            for tensor in (*source.tensors.values(), *tensors.values()):
                if tensor.device.type == "cuda":
                    tensor.record_stream(torch.cuda.current_stream(tensor.device))
        return Held(replace(source, tensors=tensors), self._side.record())

    def deliver(self, held: Held) -> Capsule:
        """The capsule, ready for the current stream (on the device) or for the host."""
        if held.capsule.device.type == "cuda":
            stream = torch.cuda.current_stream(held.capsule.device)
            if isinstance(held.ready, torch.cuda.Event):
                stream.wait_event(held.ready)
            for tensor in held.capsule.tensors.values():
                tensor.record_stream(stream)
        else:
            held.ready.synchronize()
        return held.capsule

    def _now(self, device: torch.device) -> Event:
        return torch.cuda.current_stream(device).record_event() if device.type == "cuda" else HostEvent()


class MemoryTier:
    """Device memory, or pinned host memory."""

    durable = False

    def __init__(self, name: str, device: torch.device, budget_bytes: int, mover: Mover) -> None:
        self.name = name
        self.budget_bytes = budget_bytes
        self._device = device
        self._mover = mover
        self._held: dict[str, Held] = {}

    def cost(self, capsule: Capsule, notes: Mapping[str, str]) -> int:
        return capsule.nbytes

    def place_copy(self, key: str, held: Held, notes: Mapping[str, str]) -> None:
        self._held[key] = self._mover.move(held, self._device)

    def fetch(self, key: str) -> Held:
        return self._held[key]

    def delete_copy(self, key: str) -> None:
        del self._held[key]


class DiskTier:
    """Files. With a writer they are written in the background, and read back from memory until they are there.

    Several processes may share the folder: a file is written only if it fits beside all files there at that moment,
    whoever wrote them, and `changed`, `lost` and `strangers` report what the others did.

    max_pending_bytes  how much may wait to be written; beyond it `put` waits for the oldest write
    """

    name = "disk"
    durable = True

    def __init__(
        self,
        path: Path,
        budget_bytes: int,
        writer: Executor | None = None,
        pin_memory: bool = False,
        max_pending_bytes: int = 1 << 30,
    ) -> None:
        self.folder = CapsuleFolder(path)
        self.budget_bytes = budget_bytes
        self._writer = writer
        self._pin_memory = pin_memory
        self._max_pending_bytes = max_pending_bytes
        self._pending: dict[str, tuple[Future[None], Held]] = {}
        self._files: dict[str, tuple[int, int]] = {}  # written or taken over by this process: inode and size
        self._unreadable: set[str] = set()
        self._seen_ns = 0  # when the folder had last changed, as of the last look

    def folder_changed(self) -> bool:
        """Whether any process may have added or removed files since the last look."""
        return self.folder.changed_ns() != self._seen_ns

    def lost(self) -> list[str]:
        """Keys whose files another process removed or replaced since the last look."""
        changed_ns = self.folder.changed_ns()
        self._seen_ns = changed_ns if time.time_ns() - changed_ns > TICK_NS else 0
        there = self.folder.files()
        moved = [key for key, file in tuple(self._files.items()) if key not in there or _identity(there[key]) != file]
        gone = [key for key in moved if key not in self._pending and not self._damaged(key)]
        for key in gone:
            del self._files[key]
        return gone

    def strangers(self, known: Container[str]) -> tuple[list[About], int]:
        """Capsules that other processes wrote under keys outside `known`, least recently used first, and the number of
        files that are not capsules of ours."""
        found: list[About] = []
        before = len(self._unreadable)
        for key, file in self.folder.files().items():
            if key in known or key in self._unreadable:
                continue
            try:
                found.append(self.folder.about(key))
                self._files[key] = _identity(file)
            except FileNotFoundError:
                continue
            except (CapsuleDamaged, OSError):
                self._unreadable.add(key)
        return sorted(found, key=lambda about: about.used_at), len(self._unreadable) - before

    def cost(self, capsule: Capsule, notes: Mapping[str, str]) -> int:
        return saved_bytes(capsule, notes)

    def place_copy(self, key: str, held: Held, notes: Mapping[str, str]) -> None:
        if self._writer is None:
            self._save(key, held, notes)
            return
        self._wait_for(key)
        waiting = [(future, h.capsule.nbytes) for future, h in self._pending.values() if not future.done()]
        pending_bytes = held.capsule.nbytes + sum(nbytes for _, nbytes in waiting)
        for future, nbytes in waiting:
            if pending_bytes > self._max_pending_bytes:
                future.exception()
                pending_bytes -= nbytes
        self._pending[key] = (self._writer.submit(self._save, key, held, notes), held)

    def fetch(self, key: str) -> Held:
        if key in self._pending:
            return self._pending[key][1]
        try:
            return Held(self.folder.load(key, pin_memory=self._pin_memory), HostEvent())
        except OSError as error:
            raise CapsuleDamaged(f"capsule file {key} cannot be read: {error.strerror or error}") from error

    def delete_copy(self, key: str) -> None:
        self._wait_for(key)
        self._files.pop(key, None)
        with suppress(OSError):  # if the disk refuses even this, the file stays and the talk goes on
            self.folder.delete_file(key)

    def failed(self) -> list[str]:
        """Keys whose background write failed since the last call; they are not stored."""
        done = [key for key, (future, _) in self._pending.items() if future.done()]
        return [key for key in done if self._ended(key) is not None]

    def flush(self) -> None:
        """Wait for all background writes; `failed` still reports failures."""
        for future, _ in self._pending.values():
            future.exception()

    def _wait_for(self, key: str) -> None:
        if key in self._pending:
            self._pending[key][0].exception()
            self._ended(key)

    def _ended(self, key: str) -> CapsuleNotSaved | None:
        future, _ = self._pending.pop(key)
        error = future.exception()
        if error is not None and not isinstance(error, CapsuleNotSaved):
            raise error
        return error

    def _save(self, key: str, held: Held, notes: Mapping[str, str]) -> None:
        held.ready.synchronize()
        with self.folder.alone():
            beside = {other: file.st_size for other, file in self.folder.files().items() if other != key}
            others = sum(size for other, size in beside.items() if other not in self._unreadable)
            room, needed = self.budget_bytes - others, self.cost(held.capsule, notes)
            if needed > room:
                self._seen_ns = 0
                raise CapsuleNotSaved(
                    f"capsule {held.capsule.label!r} ({needed / 1e6:.1f} MB) was not saved: another process that uses "
                    f"{self.folder.path} has left {max(0, room) / 1e6:.1f} MB of the disk budget"
                )
            self.folder.save(key, held.capsule, notes)
            self._files[key] = _identity(self.folder.files()[key])

    def _damaged(self, key: str) -> bool:
        """Whether a file is damaged. This is not another process's work: a request gets an error, and the file goes."""
        try:
            self.folder.about(key)
        except CapsuleDamaged:
            return True
        except OSError:
            return False
        return False


def _identity(file: os.stat_result) -> tuple[int, int]:
    return file.st_ino, file.st_size


def copy_flat(tensors: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    """The same tensors on another device; one transfer if they share one allocation, as snapshots do.

    Raises CapsuleNotSaved if there is no memory for them.
    """
    first = next(iter(tensors.values()))
    storage = first.untyped_storage()
    if any(t.untyped_storage().data_ptr() != storage.data_ptr() for t in tensors.values()):
        gathered = copy_out(tensors, lambda count: torch.empty(count, dtype=torch.uint8, device=first.device))
        return copy_flat(gathered, device)
    flat = torch.empty(0, dtype=torch.uint8, device=first.device).set_(storage)
    pinned = device.type == "cpu" and first.device.type == "cuda"
    try:
        there = torch.empty(flat.shape, dtype=torch.uint8, device=device, pin_memory=pinned)
    except (MemoryError, RuntimeError) as error:
        place = "pinned host memory" if pinned else str(device)
        raise CapsuleNotSaved(f"no room for {flat.numel() / 1e6:.1f} MB in {place}: {str(error)[:120]}") from error
    there.copy_(flat, non_blocking=True)
    moved = {}
    for name, tensor in tensors.items():
        start, nbytes = tensor.storage_offset() * tensor.element_size(), tensor.numel() * tensor.element_size()
        moved[name] = there[start : start + nbytes].view(tensor.dtype).view(tensor.shape)
    return moved
