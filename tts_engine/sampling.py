"""How a row is drawn: temperature, top-k, top-p and a seed, one independent draw per codebook."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Protocol, runtime_checkable

from capsules.arguments import a_kind
from tts_engine.errors import EngineMisuse

CANDIDATES = 128  # the draw is among this many most likely codes of each codebook


@runtime_checkable
class SamplingLike(Protocol):
    """The sampling fields that the engine reads; any object with these four will do."""

    @property
    def temperature(self) -> float: ...

    @property
    def top_k(self) -> int: ...

    @property
    def top_p(self) -> float: ...

    @property
    def seed(self) -> int: ...


@dataclass(frozen=True)
class VoiceSampling:
    """The published recommendation by default. Greedy speech is fragile (loops, missed endings); use it for tests.

    temperature  0 picks the most likely code
    top_k        0 is off; never more than the 128 most likely codes take part
    top_p        1 is off; the code that crosses p is kept
    seed         the same seed, text and voice give the same codes
    """

    temperature: float = 0.8
    top_k: int = 50
    top_p: float = 1.0
    seed: int = 0

    @classmethod
    def greedy(cls) -> "VoiceSampling":
        return cls(temperature=0.0, top_k=1)

    def __str__(self) -> str:
        return (
            "greedy" if self.temperature == 0 else f"t{self.temperature:g} k{self.top_k} p{self.top_p:g} s{self.seed}"
        )


def check_sampling(sampling: SamplingLike) -> None:
    """Raises EngineMisuse for meaningless values."""
    needed = "a VoiceSampling (temperature, top_k, top_p and seed; VoiceSampling.greedy() for tests)"
    a_kind(EngineMisuse, "sampling", sampling, SamplingLike, needed)
    for name in ("temperature", "top_p"):
        a_kind(EngineMisuse, name, getattr(sampling, name), Real, "a number")
    for name in ("top_k", "seed"):
        a_kind(EngineMisuse, name, getattr(sampling, name), Integral, "an integer")
    if not 0 <= sampling.temperature <= 10:
        raise EngineMisuse(f"temperature is {sampling.temperature}; 0 to 10 is allowed, 0.8 is usual")
    if sampling.top_k < 0:
        raise EngineMisuse(f"top_k is {sampling.top_k}; 0 (off) or more is allowed, 50 is usual")
    if not 0 < sampling.top_p <= 1:
        raise EngineMisuse(f"top_p is {sampling.top_p}; above 0 up to 1 is allowed, 1 is off")
