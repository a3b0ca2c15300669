"""The tensors of a GGUF file under their published names, read into any target."""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path

from capsules.digests import file_digest
from capsules.errors import WeightsError
from capsules.nn.groups import KnownGroups
from capsules.safefile import SafeFile, TensorEntry
from capsules.shards import some
from capsules.weights import Plan, Progress, Target
from llm_engine.config import LLMConfig
from llm_engine.gguf.container import GgufFile, open_gguf
from llm_engine.gguf.described import config_of
from llm_engine.gguf.undone import published_tensors
from llm_engine.names import Stored
from llm_engine.widened import fill_target


class GgufCheckpoint:
    """A GGUF file as a checkpoint. Tensors that the converter permuted are in their published order again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: list[SafeFile] = []  # its folder may be another program's: nothing is stored there
        self._file: GgufFile = open_gguf(path)
        self.config: LLMConfig = config_of(self._file)
        self._held = published_tensors(self._file, self.config)

    @cached_property
    def names(self) -> Mapping[str, TensorEntry]:
        """Every tensor by its published name. All count as float32, whatever they are stored as."""
        return {
            name: TensorEntry(name, "F32", held.shape, held.stored.offset, held.stored.nbytes)
            for name, held in self._held.items()
        }

    def stored(self, name: str) -> Stored:
        return self._held[name].held if name in self._held else Stored()

    def groups(self, name: str, rows: slice) -> KnownGroups:
        return self._held[name].known_groups(self._file, rows.start, rows.stop)

    def digest(self, aside: Path | None) -> str:
        return file_digest(self.path, aside)

    def fill(self, plan: Plan, skip: Sequence[str], progress: Callable[[Progress], None] | None) -> None:
        """Fill every target of a plan, as `capsules.weights.load` does. Raises WeightsError."""
        missing = [name for name in plan if name not in self._held]
        if missing:
            raise WeightsError(f"the file lacks {some(missing)}. Is it a whole model?")
        unknown = [n for n in self._held if n not in plan and not any(fnmatchcase(n, pattern) for pattern in skip)]
        if unknown:
            raise WeightsError(f"nothing in this model takes {some(sorted(unknown))}")
        total, done = sum(self.names[name].nbytes for name in plan), 0
        for name, targets in plan.items():
            for target in [targets] if isinstance(targets, Target) else targets:
                fill_target(name, self._held[name].shape, target, partial(self._held[name].in_order, self._file))
            done += self.names[name].nbytes
            if progress is not None:
                progress(Progress(done, total))
