"""C++ kernels of the cpu backend: compiled once on this machine, stored in a folder, loaded as torch operators.

They use torch's stable interface, so a build takes seconds and needs only a C++ compiler. While a backend with a folder
captures a step, `operators` returns them; otherwise the plain torch code runs. The backend's description, and so every
fingerprint, says which of the two ran: they differ in the order of sums.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import torch

from capsules.exec.errors import CompileError

_FLAGS = ("-O3", "-march=native", "-std=c++20", "-fPIC", "-shared", "-Wno-psabi")
_HEADERS = [Path(__file__).with_name(name) for name in ("vectors.h", "tiles.h")]
_folder: ContextVar[Path | None] = ContextVar("native_folder", default=None)
_loaded: dict[Path, Any] = {}
_files: dict[str, str] = {}
"""Library names of the operators that were returned."""
_libraries: set[str] = set()
"""Names of the libraries in this process. A name is a digest of the code; a copy in another folder must not be opened
as well: it would register the same operators a second time, which ends the process."""


@contextmanager
def using(folder: Path | None) -> Iterator[None]:
    """Inside, `operators` compiles into `folder`; None switches the kernels off."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def operators(name: str, source: Path) -> Any:
    """The operators `torch.ops.<name>` of one source file, built on first use; None if kernels are switched off.

    Raises CompileError with the compiler's message.
    """
    folder = _folder.get()
    if folder is None:
        return None
    if source not in _loaded:
        library = _built(source, folder)
        _open(library)
        _loaded[source], _files[name] = getattr(torch.ops, name), library.name
    return _loaded[source]


def needed(graph: str) -> list[str]:
    """The libraries whose operators a recorded graph calls."""
    return [library for name, library in _files.items() if f"{name}::" in graph]


def load(libraries: Sequence[str], folder: Path | None) -> None:
    """Load the libraries that `needed` named. Raises LookupError if one is no longer in the folder."""
    for library in libraries:
        if folder is None or Path(library).name != library or not (folder / library).is_file():
            raise LookupError(f"there is no library {library} in {folder}")
        _open(folder / library)


def _open(library: Path) -> None:
    if library.name not in _libraries:
        torch.ops.load_library(str(library))
        _libraries.add(library.name)


def toolchain() -> str:
    """A digest of compiler and processor: equal digests turn equal source into equal bits. Raises CompileError."""
    return _toolchain(_compiler())


@cache
def _toolchain(compiler: str) -> str:
    macros = _run([compiler, "-march=native", "-dM", "-E", "-x", "c++", os.devnull])
    return hashlib.sha256(f"{macros} {_flags()} {torch.__version__}".encode()).hexdigest()[:16]


@cache
def _flags() -> tuple[str, ...]:
    return _FLAGS if _tiles_granted() else (*_FLAGS, "-DNO_TILES")


def _tiles_granted() -> bool:
    """Whether the system lets this process use an x86 processor's tiles (AMX), if present: sandboxes may not."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    arch_prctl, ask_for, tiles = 158, 0x1023, 18
    return ctypes.CDLL(None).syscall(arch_prctl, ask_for, tiles) == 0


def _built(source: Path, folder: Path) -> Path:
    content = b"".join(file.read_bytes() for file in (source, *_HEADERS)) + toolchain().encode()
    target = folder / f"{source.stem}-{hashlib.sha256(content).hexdigest()[:16]}.so"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        base = Path(torch.__file__).parent
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / target.name
            places = [f"-I{Path(__file__).parent}", f"-I{base / 'include'}", f"-L{base / 'lib'}"]
            _run([_compiler(), *_flags(), *places, str(source), "-o", str(made), "-ltorch_cpu"])
            with made.open("rb") as file:
                os.fsync(file.fileno())  # a name that outlived its bytes would fail at every later start
            made.replace(target)
    return target


def _compiler() -> str:
    found = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if not found or sys.platform == "win32":
        raise CompileError(
            "no C++ compiler (c++, g++ or clang++) is on the path; install one, for example `apt install g++`, "
            "or run without compiled kernels"
        )
    return found


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CompileError(f"{command[0]} cannot be run: {error}; set CXX to a C++ compiler") from error
    if done.returncode != 0:
        raise CompileError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout
