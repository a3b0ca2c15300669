"""How kernels are checked on a machine without a GPU: run in Triton's interpreter, and compiled for our cards."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SHARED_BYTES = {89: 101_376, 90: 232_448, 120: 101_376}
"""For one block, by architecture: RTX 40, H100 and H200, RTX 50. CUDA programming guide, compute capabilities."""
ARCHITECTURES = list(SHARED_BYTES)


def interpreted(module: str) -> dict[str, float]:
    """Error ratios by case, from a process of its own: the interpreter is chosen when a kernel is defined."""
    done = subprocess.run(
        [sys.executable, "-m", module],
        env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error::RuntimeWarning"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def shortcomings(
    kernel: object, signature: dict[str, str], constants: dict[str, object], warps: int, architecture: int
) -> list[str]:
    """What the machine code for one card wants that the card lacks; the compiler raises where there can be none.

    Registers beyond 255 per thread are kept in memory ("spilled"), which costs more than the kernel's own work.
    """
    from triton import compile as build
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import get_ptxas
    from triton.compiler import ASTSource

    types = signature | dict.fromkeys(constants, "constexpr")
    names = kernel.arg_names  # type: ignore[attr-defined]
    source = ASTSource(
        fn=kernel,
        signature={name: types[name] for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
    )
    options = {"enable_fp_fusion": True, "num_warps": warps}
    made = build(source, target=GPUTarget("cuda", architecture, 32), options=options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        tool = Path(get_ptxas(architecture).path).with_name("cuobjdump")
        told = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True)
    found = {name: int(count) for name, count in re.findall(r"(REG|STACK):(\d+)", told.stdout)}
    lacks = []
    if found["STACK"]:
        lacks.append(f"{found['STACK']} bytes per thread do not fit into registers")
    if made.metadata.shared > SHARED_BYTES[architecture]:
        lacks.append(f"{made.metadata.shared} bytes of shared memory where there are {SHARED_BYTES[architecture]}")
    if found["REG"] * 32 * warps > 65_536:
        lacks.append(f"{warps} warps of {found['REG']} registers")
    return lacks
