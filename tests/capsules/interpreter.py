"""Runs a module in Triton's interpreter, with Triton's language patched once.

    TRITON_INTERPRET=1 python -m tests.capsules.interpreter MODULE

By itself the interpreter patches it anew for each launch and each call between kernels: a third of all its time.
"""

import runpy
import sys
from types import SimpleNamespace

import triton.language as tl
from triton.runtime import interpreter


def patch_once() -> None:
    """For both modules by which kernels, ours and Triton's own, see the language."""
    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    interpreter._patch_lang = lambda fn: interpreter._LangPatchScope()


if __name__ == "__main__":
    patch_once()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
