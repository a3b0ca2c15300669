"""A published checkpoint, whichever way it is stored: a folder of safetensors with a config.json, or one GGUF file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Protocol

from capsules.digests import known_digest
from capsules.errors import WeightsError
from capsules.nn.groups import KnownGroups
from capsules.safefile import SafeFile, TensorEntry
from capsules.shards import locate, open_files, some
from capsules.weights import Plan, Progress, Target, load
from llm_engine.config import LLMConfig
from llm_engine.errors import CheckpointError
from llm_engine.gguf.checkpoint import GgufCheckpoint
from llm_engine.gguf.container import is_gguf, open_gguf
from llm_engine.gguf.described import config_of
from llm_engine.names import DRAFT, Stored
from llm_engine.repacked import RAW, repacked
from llm_engine.widened import fill_target


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
    """A folder with a config.json. Experts that are stacked in one tensor are named apart, as others store them, and
    matrices of GPTQ and AWQ count as plain ones in float32."""

    def __init__(self, path: Path) -> None:
        self.path, self.config = path, LLMConfig.read(path)
        self.files = open_files(path)
        self._apart = [replace(file, entries=_apart(file.entries, self.config)) for file in self.files]
        located = locate(self._apart)
        self._repacked = repacked(located, self.config.quantisation)
        whole = {name: TensorEntry(name, "F32", matrix.shape, 0, 0) for name, matrix in self._repacked.items()}
        plain = {n: entry for n, (_, entry) in located.items() if not (whole and n.endswith(RAW))}
        self.names: Mapping[str, TensorEntry] = plain | whole

    def stored(self, name: str) -> Stored:
        return self._repacked[name].stored if name in self._repacked else Stored()

    def groups(self, name: str, rows: slice) -> KnownGroups:
        return self._repacked[name].groups(rows)

    def digest(self, aside: Path | None) -> str:
        return known_digest(self.path, aside, (DRAFT,))

    def fill(self, plan: Plan, skip: Sequence[str], progress: Callable[[Progress], None] | None) -> None:
        unknown = [n for n in self._repacked if n not in plan and not any(fnmatchcase(n, one) for one in skip)]
        if unknown:
            raise WeightsError(f"nothing in this model takes {some(sorted(unknown))}")
        raw = [f"*{tail}" for tail in RAW] if self._repacked else []
        load(self._apart, {n: t for n, t in plan.items() if n not in self._repacked}, (*skip, *raw), progress)
        for name in (n for n in plan if n in self._repacked):
            matrix, targets = self._repacked[name], plan[name]
            for target in [targets] if isinstance(targets, Target) else targets:
                fill_target(name, matrix.shape, target, matrix.rows)


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
