"""The choice of the next token, as a caller requests it."""

import math
from dataclasses import dataclass
from numbers import Integral, Real

from capsules.arguments import a_kind, whole
from capsules.nn.drawing import CANDIDATES
from llm_engine.errors import StateError


@dataclass(frozen=True)
class Sampling:
    """Parameters of the draw; the defaults draw from the model's own distribution.

    temperature         0 picks the most likely token, whatever else is set
    top_k               0 is off; at most 1024, since only that many of the most likely tokens ever take part in a draw
    top_p, min_p        1 and 0 are off
    presence_penalty    subtracted from every token that this reply has used (OpenAI's meaning); 0 is off
    repetition_penalty  divides the odds of every token in prompt or reply; 1 is off
    seed                the draw at a position is a function of seed and position alone
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p", "min_p", "presence_penalty", "repetition_penalty"):
            a_kind(StateError, name, getattr(self, name), Real, "a number")
        whole(StateError, "top_k", self.top_k, most=CANDIDATES)
        a_kind(StateError, "seed", self.seed, Integral, "an integer")
        checks = {
            "temperature": (self.temperature, 0 <= self.temperature < math.inf, "0 or more"),
            "top_p": (self.top_p, 0 < self.top_p <= 1, "above 0, at most 1"),
            "min_p": (self.min_p, 0 <= self.min_p < 1, "0 or more, below 1"),
            "presence_penalty": (self.presence_penalty, math.isfinite(self.presence_penalty), "a finite number"),
            "repetition_penalty": (self.repetition_penalty, 0 < self.repetition_penalty < math.inf, "above 0"),
        }
        for name, (value, good, allowed) in checks.items():
            if not good:
                raise StateError(f"{name} is {value}; it must be {allowed}")

    @classmethod
    def greedy(cls) -> "Sampling":
        """Always the most likely token."""
        return cls(temperature=0.0)

    @property
    def is_plain_greedy(self) -> bool:
        """Whether the draw is simply the largest logit."""
        return self.temperature == 0 and self.presence_penalty == 0 and self.repetition_penalty == 1
