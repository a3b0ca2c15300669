"""How kernels are checked on a machine without a GPU: run in Triton's interpreter, and compiled for our cards."""

import json
import os
import subprocess
import sys

ARCHITECTURES = [89, 90, 120]  # RTX 40, H100/H200, RTX 50


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


def compiled_bytes(kernel: object, signature: dict[str, str], constants: dict[str, object], architecture: int) -> int:
    """Size of the machine code for one card; the compiler raises where it cannot."""
    from triton import compile as build
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = signature | dict.fromkeys(constants, "constexpr")
    names = kernel.arg_names  # type: ignore[attr-defined]
    source = ASTSource(
        fn=kernel,
        signature={name: types[name] for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
    )
    return len(
        build(source, target=GPUTarget("cuda", architecture, 32), options={"enable_fp_fusion": True}).asm["cubin"]
    )
