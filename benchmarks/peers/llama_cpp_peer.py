"""llama.cpp through the low-level interface of its Python binding."""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


class LlamaCppPeer:
    """A GGUF file on the CPU."""

    name = "llama.cpp"

    def __init__(self, path: Path, threads: int, positions: int, vocabulary: int) -> None:
        import llama_cpp

        self._c: Any = llama_cpp
        self._vocabulary = vocabulary
        libraries = os.environ.get("LLAMA_CPP_LIB_PATH")
        if libraries:  # a distribution with one library per kind of processor: the best one is taken
            ctypes.CDLL(str(Path(libraries) / "libggml.so")).ggml_backend_load_all_from_path(libraries.encode())
        self._c.llama_backend_init()
        model = self._c.llama_model_default_params()
        model.n_gpu_layers = 0
        self._model = self._c.llama_model_load_from_file(str(path).encode(), model)
        if not self._model:
            raise RuntimeError(f"llama.cpp does not load {path}; its log says why")
        context = self._c.llama_context_default_params()
        context.n_ctx = positions
        context.n_batch = context.n_ubatch = 512
        context.n_threads = context.n_threads_batch = threads
        self._context = self._c.llama_init_from_model(self._model, context)

    def reset(self) -> None:
        self._c.llama_memory_clear(self._c.llama_get_memory(self._context), True)

    def append(self, ids: Sequence[int]) -> int:
        for at in range(0, len(ids), 512):
            part = ids[at : at + 512]
            tokens = (self._c.llama_token * len(part))(*part)  # the batch only points to it
            if self._c.llama_decode(self._context, self._c.llama_batch_get_one(tokens, len(part))) != 0:
                raise RuntimeError("llama_decode failed")
        logits = self._c.llama_get_logits_ith(self._context, -1)
        return int(
            np.ctypeslib.as_array(ctypes.cast(logits, ctypes.POINTER(ctypes.c_float)), (self._vocabulary,)).argmax()
        )

    def step(self, token: int) -> int:
        return self.append([token])
