"""Run by test_disk.py in a process of its own: forks writers, kills each at a random point, checks what is left.

    python crash_child.py FOLDER KILLS

Half of the writers die by an unhandled timer signal, anywhere; the other half at a chosen system call of the writer,
halfway through its bytes if it is a write. Prints one JSON line.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from capsules.capsule import Capsule, Fingerprint
from capsules.disk import CapsuleFolder

CALLS = ("write", "fsync", "rename", "open", "close")


def made(version: int) -> Capsule:
    tensors = {"kv": torch.full((300, 100), version, dtype=torch.int32), "s": torch.full((50,), version / 2)}
    return Capsule("a", "toy", version, Fingerprint((("code", "1"),)), (1, 2), {"version": version}, tensors)


def die_at(count: int) -> None:
    """Kill this process at its `count`-th call into the file system."""
    left = count

    def wrap(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                if name == "write":
                    file, chunk = args
                    real(file, memoryview(chunk)[: random.randrange(len(chunk) + 1)])  # type: ignore[arg-type]
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return call

    for name in CALLS:
        setattr(os, name, wrap(name, getattr(os, name)))


def child(folder: Path, version: int, report: int, arm: Callable[[], object], write: Callable[..., int]) -> None:
    store = CapsuleFolder(folder)
    arm()
    while True:
        version += 1
        store.save("a", made(version))
        write(report, version.to_bytes(4, "little"))  # from here on this version may never be lost


def main() -> None:
    folder, kills = Path(sys.argv[1]), int(sys.argv[2])
    random.seed(20)
    store = CapsuleFolder(folder)
    store.save("keep", made(7))
    began = time.perf_counter()
    for _ in range(5):
        store.save("a", made(0))
    typical = (time.perf_counter() - began) / 5
    known, swept, survived, mid_write = 0, 0, 0, 0
    for kill in range(kills):
        seconds, calls = random.uniform(1e-5, 3 * typical), random.randrange(0, 20)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            if kill % 2:
                child(folder, known, write, partial(die_at, calls), os.write)
            else:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                child(folder, known, write, partial(signal.setitimer, signal.ITIMER_REAL, seconds), os.write)
        os.close(write)
        reported = b""
        while part := os.read(read, 4096):
            reported += part
        os.close(read)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), "the writer ended by itself"
        if reported:
            known = int.from_bytes(reported[-4:], "little")
        mid_write += any(folder.glob(".*.part"))
        swept += len(list(folder.glob(".*.part")))
        store = CapsuleFolder(folder)  # a new start: sweeps
        assert not list(folder.glob(".*")), "something was left aside"
        keys = store.keys()
        assert keys == ("a", "keep")
        for key in keys:
            capsule = store.load(key)
            version = 7 if key == "keep" else capsule.position
            assert capsule.host == {"version": version}
            assert all(torch.equal(t, made(version).tensors[n]) for n, t in capsule.tensors.items())
            if key == "a":
                assert version in (known, known + 1), f"version {version} on disk, {known} was confirmed"
                survived += version == known
                known = version
    print(json.dumps({"kills": kills, "mid_write": mid_write, "swept": swept, "old_version_kept": survived}))


if __name__ == "__main__":
    main()
