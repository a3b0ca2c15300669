"""The exact, printable key of a captured variant."""

from collections.abc import Iterator
from dataclasses import dataclass

from capsules.exec.errors import ContractMisuse


@dataclass(frozen=True, init=False)
class ShapeKey:
    """Named integer extents, for example `ShapeKey(lanes=1, tokens=64, kv=1024)`. Equal only if all are equal."""

    dims: tuple[tuple[str, int], ...]

    def __init__(self, **dims: int) -> None:
        for name, size in dims.items():
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise ContractMisuse(f"ShapeKey: {name}={size!r}; extents are integers from 0 up")
        object.__setattr__(self, "dims", tuple(sorted(dims.items())))

    def __getitem__(self, name: str) -> int:
        return dict(self.dims)[name]

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self.dims)

    def __str__(self) -> str:
        return "(" + ", ".join(f"{name}={size}" for name, size in self.dims) + ")"
