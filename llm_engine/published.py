"""A published checkpoint, whichever way it is stored: a folder of safetensors with a config.json, or one GGUF file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Protocol

from capsules.digests import known_digest
from capsules.nn.groups import KnownGroups
from capsules.safefile import SafeFile, TensorEntry
from capsules.shards import locate, open_files
from capsules.weights import Plan, Progress, load
from llm_engine.config import LLMConfig
from llm_engine.errors import CheckpointError
from llm_engine.gguf.checkpoint import GgufCheckpoint
from llm_engine.gguf.container import is_gguf, open_gguf
from llm_engine.gguf.described import config_of
from llm_engine.names import DRAFT, Stored


class Published(Protocol):
    """The questions that a loader asks of the files. Names are those of the safetensors layout."""

    @property
    def config(self) -> LLMConfig: ...

    @property
    def files(self) -> list[SafeFile]:
        """Files beside which the engine's own form of them may be stored."""
        ...

    @property
    def names(self) -> Mapping[str, TensorEntry]: ...

    def stored(self, name: str) -> Stored:
        """The precision of a tensor that `fill` widens."""
        ...

    def groups(self, name: str, rows: slice) -> KnownGroups:
        """Scales and shifts of some rows of a matrix that is stored in groups."""
        ...

    def digest(self, aside: Path | None) -> str: ...

    def fill(self, plan: Plan, skip: Sequence[str], progress: Callable[[Progress], None] | None) -> None: ...


class SafetensorsFolder:
    """A folder with a config.json. Experts that are stacked in one tensor are named apart, as others store them."""

    def __init__(self, path: Path) -> None:
        self.path, self.config = path, LLMConfig.read(path)
        self.files = open_files(path)
        self._apart = [replace(file, entries=_apart(file.entries, self.config)) for file in self.files]
        self.names: Mapping[str, TensorEntry] = {name: entry for name, (_, entry) in locate(self._apart).items()}

    def stored(self, name: str) -> Stored:
        return Stored()

    def groups(self, name: str, rows: slice) -> KnownGroups:
        raise AssertionError(f"{name} is plain")

    def digest(self, aside: Path | None) -> str:
        return known_digest(self.path, aside, (DRAFT,))

    def fill(self, plan: Plan, skip: Sequence[str], progress: Callable[[Progress], None] | None) -> None:
        load(self._apart, plan, skip, progress)


def _apart(entries: Mapping[str, TensorEntry], config: LLMConfig) -> dict[str, TensorEntry]:
    """The contents of a file with the matrices of each expert as tensors of their own, at their places in the stack."""
    size, hidden = config.moe_intermediate_size, config.hidden_size
    stacks = {  # each expert holds these matrices one below the other
        ".mlp.experts.gate_up_proj": (("gate_proj", "up_proj"), (size, hidden)),
        ".mlp.experts.down_proj": (("down_proj",), (hidden, size)),
    }
    found: dict[str, TensorEntry] = {}
    for name, entry in entries.items():
        tail = next((tail for tail in stacks if name.endswith(tail)), None)
        if tail is None or fnmatchcase(name, DRAFT):
            found[name] = entry
            continue
        ways, shape = stacks[tail]
        if entry.shape != (config.num_experts, len(ways) * shape[0], shape[1]):
            raise CheckpointError(f"{name}: shape {list(entry.shape)} does not hold {config.num_experts} experts")
        stem, nbytes = name.rpartition(".")[0], entry.nbytes // (config.num_experts * len(ways))
        for at, (expert, way) in enumerate(product(range(config.num_experts), ways)):
            one = f"{stem}.{expert}.{way}.weight"
            found[one] = TensorEntry(one, entry.dtype, shape, entry.offset + at * nbytes, nbytes)
    return found


def open_published(path: str | Path) -> Published:
    """Raises ConfigError, CheckpointError."""
    return GgufCheckpoint(Path(path)) if is_gguf(path) else SafetensorsFolder(Path(path))


def read_config(path: str | Path) -> LLMConfig:
    """The config alone, from a folder, a config.json or a GGUF file. Raises ConfigError, CheckpointError."""
    return config_of(open_gguf(path)) if is_gguf(path) else LLMConfig.read(path)
