"""How kernels are checked on a machine without a GPU: run in Triton's interpreter, and compiled for our cards.

A launcher is called with tensors that have no memory; what it hands to Triton is what a card would compile: types,
constants, warps, and which pointers and sizes are multiples of 16, without which loads are byte by byte.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

SHARED_BYTES = {80: 166_912, 86: 101_376, 89: 101_376, 90: 232_448, 120: 101_376}
"""For one block, by architecture: A100, RTX 30, RTX 40, H100 and H200, RTX 50. CUDA programming guide, compute
capabilities."""
ARCHITECTURES = list(SHARED_BYTES)


def interpreted(module: str) -> dict[str, float]:
    """Error ratios by case, from a process of its own: the interpreter is chosen when a kernel is defined."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.capsules.interpreter", module],
        env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error::RuntimeWarning"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


@dataclass(frozen=True, eq=False)
class Launch:
    """One kernel as it is launched: `grid` programs, `options` as Triton takes them."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.kernel.__name__)

    @property
    def warps(self) -> int:
        return int(self.options.get("num_warps", 4))

    def compiled(self, architecture: int) -> "MachineCode":
        """For one card; the compiler raises where there can be no code."""
        from triton import compile as build
        from triton.backends.compiler import GPUTarget
        from triton.backends.nvidia.compiler import get_ptxas
        from triton.compiler import ASTSource, make_backend
        from triton.runtime.jit import create_function_from_signature

        target = GPUTarget("cuda", architecture, 32)
        backend = make_backend(target)
        bind = create_function_from_signature(self.kernel.signature, self.kernel.params, backend)
        bound, special, options = bind(*self.arguments, **self.options)
        options, signature, constants, facts = self.kernel._pack_args(backend, self.options, bound, special, options)
        made = build(ASTSource(self.kernel, signature, constants, facts), target=target, options=options.__dict__)
        tool = Path(get_ptxas(architecture).path).with_name("cuobjdump")
        return MachineCode(
            self, architecture, int(made.metadata.shared), str(made.asm["ptx"]), bytes(made.asm["cubin"]), tool
        )


@dataclass(frozen=True, eq=False)
class MachineCode:
    """What the compiler made of a launch for one card. `shared`: bytes of shared memory of a block; `tool` reads it."""

    launch: Launch
    architecture: int
    shared: int
    ptx: str
    code: bytes
    tool: Path

    def _read(self, what: str) -> str:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(self.code)
            file.flush()
            return subprocess.run([self.tool, what, file.name], capture_output=True, text=True, check=True).stdout

    @cached_property
    def usage(self) -> str:
        return self._read("--dump-resource-usage")

    @cached_property
    def listing(self) -> str:
        """The instructions, which take as long to read back as a kernel takes to compile."""
        return self._read("-sass")

    @property
    def registers(self) -> int:
        return self._used("REG")

    @property
    def stack(self) -> int:
        """Bytes per thread that did not fit into registers: "spilled", which costs more than the kernel's own work."""
        return self._used("STACK")

    def _used(self, what: str) -> int:
        return max(int(count) for count in re.findall(rf"{what}:(\d+)", self.usage))

    @cached_property
    def _lines(self) -> list[tuple[int, str]]:
        found = re.findall(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\d+ )?([A-Z][^;]*);", self.listing)
        return [(int(address, 16), text) for address, text in found]

    @property
    def order(self) -> list[str]:
        """The operations in the order in which they stand."""
        return [text.split()[0] for _, text in self._lines]

    @property
    def instructions(self) -> Counter[str]:
        """How often each operation stands in the code, modifiers included."""
        return Counter(text.split()[0] for _, text in self._lines)

    @property
    def loop(self) -> Counter[str]:
        """The same of the longest loop."""
        ends = [
            (address - int(target, 16), int(target, 16), address)
            for address, text in self._lines
            if text.startswith("BRA") and (target := text.rsplit("0x", 1)[-1].strip("` ()")) and "0x" in text
            and int(target, 16) < address
        ]  # fmt: skip
        _, first, last = max(ends)
        return Counter(text.split()[0] for address, text in self._lines if first <= address <= last)

    @property
    def lacks(self) -> list[str]:
        """What it wants that the card does not have."""
        found = []
        if self.stack:
            found.append(f"{self.stack} bytes per thread do not fit into registers")
        if self.shared > SHARED_BYTES[self.architecture]:
            found.append(f"{self.shared} bytes of shared memory where there are {SHARED_BYTES[self.architecture]}")
        if self.registers * 32 * self.launch.warps > 65_536:
            found.append(f"{self.launch.warps} warps of {self.registers} registers")
        return found


def launched(call: Callable[[], object]) -> list[Launch]:
    """The kernels that `call` launches, in order, without running one. Its tensors should be on the device "meta"."""
    from triton.runtime.jit import JITFunction

    found: list[Launch] = []

    def note(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
        names = [name for name in self.arg_names if name in options]
        constants = {name: options.pop(name) for name in names}
        order = self.arg_names[: len(args)]
        given = dict(zip(order, args, strict=True)) | constants
        found.append(Launch(self, tuple(grid), tuple(given[name] for name in self.arg_names), options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JITFunction, "run", note)
        call()
    return found
