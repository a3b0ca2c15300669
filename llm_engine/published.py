"""A published checkpoint, whichever way it is stored: a folder of safetensors with a config.json, or one GGUF file."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from capsules.digests import known_digest
from capsules.safefile import SafeFile, TensorEntry
from capsules.shards import locate, open_files
from capsules.weights import Plan, Progress, load
from llm_engine.config import LLMConfig
from llm_engine.gguf.checkpoint import GgufCheckpoint
from llm_engine.gguf.container import is_gguf, open_gguf
from llm_engine.gguf.described import config_of
from llm_engine.names import DRAFT


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

    def digest(self, aside: Path | None) -> str: ...

    def fill(self, plan: Plan, skip: Sequence[str], progress: Callable[[Progress], None] | None) -> None: ...


class SafetensorsFolder:
    """A folder with a config.json."""

    def __init__(self, path: Path) -> None:
        self.path, self.config = path, LLMConfig.read(path)
        self.files = open_files(path)
        self.names: Mapping[str, TensorEntry] = {name: entry for name, (_, entry) in locate(self.files).items()}

    def digest(self, aside: Path | None) -> str:
        return known_digest(self.path, aside, (DRAFT,))

    def fill(self, plan: Plan, skip: Sequence[str], progress: Callable[[Progress], None] | None) -> None:
        load(self.path, plan, skip, progress)


def open_published(path: str | Path) -> Published:
    """Raises ConfigError, CheckpointError."""
    return GgufCheckpoint(Path(path)) if is_gguf(path) else SafetensorsFolder(Path(path))


def read_config(path: str | Path) -> LLMConfig:
    """The config alone, from a folder, a config.json or a GGUF file. Raises ConfigError, CheckpointError."""
    return config_of(open_gguf(path)) if is_gguf(path) else LLMConfig.read(path)
