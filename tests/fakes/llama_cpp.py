"""llama.cpp inside the wheel `xllamacpp`, through its C interface: a text's tokens, and the logits after each token."""

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor


class _Opaque(ctypes.Structure):
    """A structure that is passed back unchanged. Each release enlarges some; this has room for future ones."""

    _fields_ = [("words", ctypes.c_uint32 * 256)]


class _Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.c_void_p),
        ("pos", ctypes.POINTER(ctypes.c_int32)), ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]  # fmt: skip


_silent = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda level, text, data: None)


class LlamaCpp:
    """A GGUF file on one thread."""

    def __init__(self, path: Path, positions: int = 256) -> None:
        self._c = _library()
        self._model = self._c.llama_model_load_from_file(str(path).encode(), self._c.llama_model_default_params())
        assert self._model, f"llama.cpp cannot load {path}"
        wanted = self._c.llama_context_default_params()
        wanted.words[0] = positions  # n_ctx is the first field
        self._context = self._c.llama_init_from_model(self._model, wanted)
        assert self._context and self._c.llama_n_ctx(self._context) >= positions
        self._c.llama_set_n_threads(self._context, 1, 1)
        self._vocab = self._c.llama_model_get_vocab(self._model)
        self._size = self._c.llama_vocab_n_tokens(self._vocab)

    def close(self) -> None:
        self._c.llama_free(self._context)
        self._c.llama_model_free(self._model)

    def encode(self, text: str) -> list[int]:
        """Special tokens are read as such, and none is added."""
        raw = text.encode()
        found = (ctypes.c_int32 * (len(raw) + 8))()
        count = self._c.llama_tokenize(self._vocab, raw, len(raw), found, len(found), False, True)
        assert count >= 0
        return list(found[:count])

    def logits(self, ids: Sequence[int]) -> Tensor:
        """After each of `ids`, from an empty context: [T, V] float32."""
        self._c.llama_memory_clear(self._c.llama_get_memory(self._context), True)
        batch = self._c.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for at, token in enumerate(ids):
            batch.token[at], batch.pos[at], batch.logits[at] = token, at, 1
            batch.n_seq_id[at], batch.seq_id[at][0] = 1, 0
        assert self._c.llama_decode(self._context, batch) == 0
        rows = [self._c.llama_get_logits_ith(self._context, at) for at in range(len(ids))]
        found = torch.from_numpy(np.stack([np.ctypeslib.as_array(row, (self._size,)).copy() for row in rows]))
        self._c.llama_batch_free(batch)
        return found


@cache
def _library() -> Any:
    import xllamacpp

    c: Any = ctypes.CDLL(str(next(Path(xllamacpp.__file__).parent.glob("xllamacpp*.so"))))
    pointer, whole, flag = ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool
    shapes = {
        "llama_model_default_params": (_Opaque, []),
        "llama_context_default_params": (_Opaque, []),
        "llama_model_load_from_file": (pointer, [ctypes.c_char_p, _Opaque]),
        "llama_init_from_model": (pointer, [pointer, _Opaque]),
        "llama_log_set": (None, [type(_silent), pointer]),
        "llama_n_ctx": (ctypes.c_uint32, [pointer]),
        "llama_set_n_threads": (None, [pointer, whole, whole]),
        "llama_model_get_vocab": (pointer, [pointer]),
        "llama_vocab_n_tokens": (whole, [pointer]),
        "llama_tokenize": (whole, [pointer, ctypes.c_char_p, whole, ctypes.POINTER(whole), whole, flag, flag]),
        "llama_get_memory": (pointer, [pointer]),
        "llama_memory_clear": (None, [pointer, flag]),
        "llama_batch_init": (_Batch, [whole, whole, whole]),
        "llama_batch_free": (None, [_Batch]),
        "llama_decode": (whole, [pointer, _Batch]),
        "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), [pointer, whole]),
        "llama_free": (None, [pointer]),
        "llama_model_free": (None, [pointer]),
    }
    for name, (made, taken) in shapes.items():
        getattr(c, name).restype, getattr(c, name).argtypes = made, taken
    c.llama_log_set(_silent, None)
    c.llama_backend_init()
    return c
