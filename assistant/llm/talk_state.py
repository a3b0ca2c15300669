"""What is known of one talk's state in a language model, and its form on disk beside the capsule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assistant.llm.token_log import TokenLog, Written


@dataclass(slots=True)
class TalkState:
    """The steps folded for a talk, and its replies as the model wrote them."""

    log: TokenLog = field(default_factory=TokenLog)
    written: dict[str, Written] = field(default_factory=dict)
    dropped: int = 0
    """Lines at the start of the talk that no longer fit into the context."""

    def to_json(self) -> dict[str, object]:
        written = {reply: one.to_json() for reply, one in self.written.items()}
        return {"tape": self.log.to_json(), "written": written, "dropped": self.dropped}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> TalkState:
        """The inverse of `to_json`. Raises KeyError, TypeError, ValueError or IndexError on anything else."""
        written = {str(reply): Written.from_json(row) for reply, row in facts["written"].items()}
        return cls(TokenLog.from_json(facts["tape"]), written, int(facts["dropped"]))
