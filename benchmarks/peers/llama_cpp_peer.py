"""llama.cpp through its C interface; works with any release that has these functions."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor


class _Opaque(ctypes.Structure):
    """A structure that is passed back unchanged. Each release enlarges some; this has room for future ones."""

    _fields_ = [("words", ctypes.c_uint32 * 256)]


_silent = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda level, text, data: None)


class LlamaCppPeer:
    """A GGUF file on the CPU.

    libraries  the folder of a build: libllama*.so, libggml*.so and a libggml-cpu-*.so per kind of processor, of which
               the best one is used
    """

    name = "llama.cpp"

    def __init__(self, libraries: Path, path: Path, threads: int, positions: int, vocabulary: int) -> None:
        self._c: Any = _loaded(libraries)
        self._vocabulary = vocabulary
        model = self._c.llama_model_load_from_file(str(path).encode(), self._c.llama_model_default_params())
        if not model:
            raise RuntimeError(f"llama.cpp cannot load {path}; see its log for the reason")
        wanted = self._c.llama_context_default_params()
        wanted.words[0] = positions  # n_ctx is the first field
        self._context = self._c.llama_init_from_model(model, wanted)
        if not self._context or self._c.llama_n_ctx(self._context) != positions:
            raise RuntimeError(f"llama.cpp cannot create a context of {positions} tokens")
        self._c.llama_set_n_threads(self._context, threads, threads)

    def reset(self) -> None:
        self._c.llama_memory_clear(self._c.llama_get_memory(self._context), True)

    def append(self, ids: Sequence[int]) -> int:
        return int(self.fold(ids).argmax())

    def fold(self, ids: Sequence[int]) -> Tensor:
        """The logits [V] float32 after the last id, valid until the next call."""
        for at in range(0, len(ids), 512):
            part = ids[at : at + 512]
            tokens = (ctypes.c_int32 * len(part))(*part)  # the batch only points to it
            if self._c.llama_decode(self._context, self._c.llama_batch_get_one(tokens, len(part))) != 0:
                raise RuntimeError("llama_decode failed")
        logits = self._c.llama_get_logits_ith(self._context, -1)
        return torch.from_numpy(np.ctypeslib.as_array(logits, (self._vocabulary,)))

    def step(self, token: int) -> int:
        return self.append([token])


def _loaded(folder: Path) -> Any:
    c: Any = None
    for stem in ("libggml-base", "libggml", "libllama"):
        found = sorted(path for path in folder.glob(f"{stem}.*") if ".so" in path.name)
        if not found:
            raise FileNotFoundError(f"{folder} has no {stem}.so; see benchmarks/peers/README.md for where to get it")
        c = ctypes.CDLL(str(found[0]), mode=ctypes.RTLD_GLOBAL)
    c.ggml_backend_load_all_from_path(str(folder).encode())
    pointer, whole = ctypes.c_void_p, ctypes.c_int32
    shapes = {
        "llama_model_default_params": (_Opaque, []),
        "llama_context_default_params": (_Opaque, []),
        "llama_model_load_from_file": (pointer, [ctypes.c_char_p, _Opaque]),
        "llama_init_from_model": (pointer, [pointer, _Opaque]),
        "llama_log_set": (None, [type(_silent), pointer]),
        "llama_n_ctx": (ctypes.c_uint32, [pointer]),
        "llama_set_n_threads": (None, [pointer, whole, whole]),
        "llama_get_memory": (pointer, [pointer]),
        "llama_memory_clear": (None, [pointer, ctypes.c_bool]),
        "llama_batch_get_one": (_Opaque, [ctypes.POINTER(whole), whole]),
        "llama_decode": (whole, [pointer, _Opaque]),
        "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), [pointer, whole]),
    }
    for name, (made, taken) in shapes.items():
        getattr(c, name).restype, getattr(c, name).argtypes = made, taken
    c.llama_log_set(_silent, None)
    c.llama_backend_init()
    return c
