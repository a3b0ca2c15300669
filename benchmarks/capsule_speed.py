"""Snapshot, restore and rollback against one memcpy of the same bytes, and the loader against the disk, in one run.

    python benchmarks/capsule_speed.py [--device cpu] [--megabytes 16 64 256] [--repeats 15] [--busy] [--out FILE.json]

Every figure is printed in ms and as a multiple of its floor, measured in the same loop, call by call: for snapshot and
restore, one copy of as many bytes between two existing buffers; for the loader, a sequential read of the same file into
existing memory. Snapshots reuse memory left by an earlier one; the first of a size also pays for its pages. On a
machine shared with others, --busy counts processor time with one thread. The state is shaped like that of a hybrid
model: four fifths are a growing prefix, the rest is recurrent.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import torch
from safetensors.torch import save_file

from capsules import ExecContext, Fingerprint, Prefix, Role, checkpoint, restore, rollback, snapshot
from capsules.weights import Target, load

MB = 1 << 20


class Bench:
    """A context, a clock that waits for the device, and the raw times."""

    def __init__(self, device: str, repeats: int, busy: bool) -> None:
        self.ctx = ExecContext(device)
        self.now = process_time if busy else perf_counter
        self.repeats = repeats
        self.raw: dict[str, list[float]] = {}

    def interleaved(self, **calls: Callable[[], object]) -> None:
        """Time each call once per round, after two warm-up rounds; writes milliseconds into `raw`."""
        for round_ in range(self.repeats + 2):
            for name, call in calls.items():
                self.ctx.synchronize()
                began = self.now()
                call()
                self.ctx.synchronize()
                if round_ >= 2:
                    self.raw.setdefault(name, []).append((self.now() - began) * 1e3)

    def line(self, name: str, floor: str) -> str:
        times = self.raw[name]
        ratio = median(t / f for t, f in zip(times, self.raw[floor], strict=True))
        spread = f"{min(times):.3f}..{max(times):.3f}"
        return f"{name:32}{median(times):10.3f} ms  {ratio:6.2f} x floor   ({spread}, n={len(times)})"


def state(ctx: ExecContext, scope: str, nbytes: int, rows: int, position: int) -> Fingerprint:
    """Declare a closure whose live part at `position` of `rows` is `nbytes`."""
    width = nbytes * 4 // 5 // (position * 2 * 8)
    kv = ctx.buffer(f"{scope}.kv", [8, rows, width], torch.bfloat16, role=Role.STATE, live=Prefix(1))
    memory = ctx.buffer(f"{scope}.memory", [nbytes // 5 // 4], torch.float32, role=Role.STATE)
    kv.tensor.normal_()
    memory.tensor.normal_()
    return Fingerprint.of(ctx, scope, weights="random", code="benchmark/1")


def copies(bench: Bench, megabytes: int) -> None:
    scope, position = f"c{megabytes}", 512
    fingerprint = state(bench.ctx, scope, megabytes * MB, 1024, position)
    kept = snapshot(bench.ctx, scope, position, fingerprint)
    one, two = (torch.ones(kept.nbytes, dtype=torch.uint8, device=bench.ctx.device) for _ in range(2))
    names = [f"{what} {megabytes} MB" for what in ("memcpy", "snapshot", "restore")]
    bench.interleaved(**{
        names[0]: lambda: two.copy_(one),
        names[1]: lambda: snapshot(bench.ctx, scope, position, fingerprint),
        names[2]: lambda: restore(bench.ctx, kept, fingerprint),
    })  # fmt: skip
    for name in names:
        print(bench.line(name, names[0]))
    bench.ctx.release(scope)


def rollbacks(bench: Bench) -> None:
    positions = (512, 4096, 32768)
    calls: dict[str, Callable[[], object]] = {}
    for position in positions:
        scope = f"r{position}"
        width = 64
        bench.ctx.buffer(f"{scope}.kv", [8, 32768, width], torch.bfloat16, role=Role.STATE, live=Prefix(1))
        bench.ctx.buffer(f"{scope}.memory", [4 * MB], torch.float32, role=Role.STATE)
        point = checkpoint(bench.ctx, scope, position)
        calls[f"rollback to {position}, 16 MB"] = lambda point=point: rollback(bench.ctx, point)
    one, two = (torch.ones(16 * MB, dtype=torch.uint8, device=bench.ctx.device) for _ in range(2))
    bench.interleaved(**{"memcpy for rollback": lambda: two.copy_(one)}, **calls)
    for name in calls:
        print(bench.line(name, "memcpy for rollback"))
    for position in positions:
        bench.ctx.release(f"r{position}")


def loading(bench: Bench, megabytes: int) -> None:
    """Cold: the page cache is asked to drop the file before every call (if the file system complies)."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        path = Path(folder) / "model.safetensors"
        count = 8
        shape = (megabytes * MB // 2 // count // 1024, 1024)
        save_file({f"w{i}": torch.randn(shape).bfloat16() for i in range(count)}, path)
        device = bench.ctx.device
        same = {f"w{i}": Target(torch.zeros(shape, dtype=torch.bfloat16, device=device)) for i in range(count)}
        wide = {f"w{i}": Target(torch.zeros(shape, device=device)) for i in range(count)}
        buffer = memoryview(bytearray(megabytes * MB + MB))

        def forget() -> int:
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            return file

        def sequential(cold: bool) -> None:
            file = forget() if cold else os.open(path, os.O_RDONLY)
            at = 0
            while count := os.readv(file, [buffer[at : at + 8 * MB]]):
                at += count
            os.close(file)

        def loader(plan: dict[str, Target]) -> None:
            os.close(forget())
            load(path, plan)

        bench.interleaved(**{
            f"read {megabytes} MB, cold": lambda: sequential(True),
            f"load {megabytes} MB, cold": lambda: loader(same),
            f"load {megabytes} MB to float32, cold": lambda: loader(wide),
            f"read {megabytes} MB, cached": lambda: sequential(False),
            f"load {megabytes} MB, cached": lambda: load(path, same),
        })  # fmt: skip
    for name in [name for name in bench.raw if name.endswith(", cold")]:
        print(bench.line(name, f"read {megabytes} MB, cold"))
    for name in [name for name in bench.raw if name.endswith(", cached")]:
        print(bench.line(name, f"read {megabytes} MB, cached"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--file-megabytes", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--busy", action="store_true", help="count processor time on one thread; for CPUs only")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.busy:
        torch.set_num_threads(1)
    bench = Bench(args.device, args.repeats, args.busy)
    print(f"{bench.ctx.describe()}, {torch.get_num_threads()} threads, {bench.now.__name__}")
    for megabytes in args.megabytes:
        copies(bench, megabytes)
    rollbacks(bench)
    loading(bench, args.file_megabytes)
    if args.out:
        facts = {"deployment": bench.ctx.describe(), "torch": torch.__version__, "threads": torch.get_num_threads()}
        facts["clock"] = bench.now.__name__
        args.out.write_text(json.dumps({**facts, "unit": "ms", "raw": bench.raw}, indent=1))


if __name__ == "__main__":
    main()
