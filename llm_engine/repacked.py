"""Matrices in the layouts of GPTQ and AWQ, read as the plain matrices that they stand for.

    gptq   qweight [I / 8, O]: a word holds eight inputs of one output, the first in its lowest bits
    awq    qweight [I, O / 8]: a word holds eight outputs of one input, in the order 0 2 4 6 1 3 5 7
    both   scales [groups, O], qzeros [groups, O / 8] packed as AWQ's values, in GPTQ in their order and less one;
           a weight is (four bits - zero) · scale

Sources: github.com/AutoGPTQ/AutoGPTQ and github.com/casper-hansen/AutoAWQ.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from capsules.errors import WeightsError
from capsules.nn.groups import GROUP, KnownGroups
from capsules.safefile import SafeFile, TensorEntry
from llm_engine.names import Stored
from llm_engine.quantisation import Quantisation

_ORDER = [0, 4, 1, 5, 2, 6, 3, 7]  # of AWQ: where each output stands in its word
_NUMBERS = {"I32": np.int32, "F16": np.float16, "BF16": np.int16, "F32": np.float32}
_TAILS = ("qweight", "qzeros", "scales", "g_idx")
RAW = tuple(f".{tail}" for tail in _TAILS)
"""Ends of the names of tensors that matrices are read from."""

Located = Mapping[str, tuple[SafeFile, TensorEntry]]


@dataclass(frozen=True)
class RepackedMatrix:
    """One matrix [O, I]."""

    name: str
    method: str
    group: int
    shape: tuple[int, int]
    files: Mapping[str, tuple[Path, TensorEntry]]  # by the last part of a name

    @classmethod
    def of(cls, stem: str, located: Located, quantisation: Quantisation) -> "RepackedMatrix":
        """Raises WeightsError, naming the tensor that is missing or misshapen."""
        files = {t: (located[stem + t][0].path, located[stem + t][1]) for t in _TAILS if stem + t in located}
        missing = [stem + tail for tail in _TAILS[:3] if tail not in files]
        if missing:
            raise WeightsError(f"{stem}qweight is there, but {', '.join(missing)} is missing")
        rows, columns = files["qweight"][1].shape
        method, group = quantisation.method, quantisation.block[1]
        outputs, inputs = (columns, rows * 8) if method == "gptq" else (columns * 8, rows)
        groups = inputs // group
        for tail, shape in {"scales": (groups, outputs), "qzeros": (groups, outputs // 8), "g_idx": (inputs,)}.items():
            if tail in files and files[tail][1].shape != shape:
                found = list(files[tail][1].shape)
                raise WeightsError(f"{stem}{tail}: shape {found}, {list(shape)} expected in groups of {group}")
        made = cls(f"{stem}weight", method, group, (outputs, inputs), files)
        if "g_idx" in files and not torch.equal(made._read("g_idx").long(), torch.arange(inputs) // group):
            raise WeightsError(f"{stem}g_idx: inputs are not in their order (desc_act), which is not read")
        return made

    @property
    def stored(self) -> Stored:
        return Stored(4, grouped=True, shifted=self.method == "awq")

    def groups(self, rows: slice) -> KnownGroups:
        """Scales and shifts of some rows, for groups of 32."""
        scale = KnownGroups.symmetric(self._scales(rows)).scale.repeat_interleave(self.group // GROUP, 1)
        if self.method == "gptq":
            return KnownGroups(scale)
        return KnownGroups(scale, (8 - self._zeros(rows)).repeat_interleave(self.group // GROUP, 1))

    def rows(self, first: int, last: int) -> Tensor:
        """Plain rows first … last, float32."""
        rows = slice(first, last)
        if self.method == "gptq":
            values = _nibbles(self._read("qweight", rows)).transpose(1, 2).flatten(0, 1).t()  # [O, I]
        else:
            values = self._outputs("qweight", rows)
        tiles = values.float().unflatten(1, (-1, self.group)) - self._zeros(rows)[..., None]
        return (tiles * self._scales(rows)[..., None]).flatten(1)

    def _scales(self, rows: slice) -> Tensor:
        """[O, groups] float32."""
        return self._read("scales", rows).float().t()

    def _zeros(self, rows: slice) -> Tensor:
        """[O, groups] float32. Raises WeightsError if a symmetric file has zeros of its own."""
        found = self._outputs("qzeros", rows).float()
        if self.method == "awq":
            return found
        symmetric = bool((found == 7).all()) or bool((found == 8).all())  # less one, but not as `gptq_v2`
        if not symmetric:
            raise WeightsError(f"{self.name}: zero points differ from 8, but config.json calls them symmetric")
        return torch.full_like(found, 8)

    def _outputs(self, tail: str, rows: slice) -> Tensor:
        """A tensor whose words hold outputs: [O, words along the other axis], whole numbers."""
        first = rows.start // 8
        values = _nibbles(self._read(tail, slice(first, -(-rows.stop // 8))))  # [n, words, 8]
        ordered = values[..., _ORDER] if self.method == "awq" else values
        return ordered.flatten(1)[:, rows.start - first * 8 : rows.stop - first * 8].t()

    def _read(self, tail: str, columns: slice = slice(None)) -> Tensor:
        """A tensor of the file, or some of its columns."""
        path, entry = self.files[tail]
        kind = _NUMBERS.get(entry.dtype)
        if kind is None:
            raise WeightsError(f"{self.name.removesuffix('weight')}{tail}: dtype {entry.dtype}; F16 and BF16 are read")
        mapped = np.memmap(path, dtype=kind, mode="r", offset=entry.offset, shape=entry.shape)
        part = torch.from_numpy(np.array(mapped[..., columns]))
        return part.view(torch.bfloat16) if entry.dtype == "BF16" else part


def repacked(located: Located, quantisation: Quantisation | None) -> dict[str, RepackedMatrix]:
    """The matrices of a GPTQ or AWQ folder by the names of the plain ones. Raises WeightsError."""
    if quantisation is None or quantisation.method not in ("gptq", "awq"):
        return {}
    stems = [name.removesuffix("qweight") for name in located if name.endswith(".qweight")]
    return {f"{stem}weight": RepackedMatrix.of(stem, located, quantisation) for stem in stems}


def _nibbles(words: Tensor) -> Tensor:
    """[a, b] int32 to [a, b, 8], the lowest bits first."""
    return (words[..., None] >> torch.arange(0, 32, 4, dtype=torch.int32)) & 15
