"""The facts about one talk's state in a language model, and their form in the talk's journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assistant.llm.token_log import FoldStep, TokenLog, Written
from capsules.journal import JSON, Rows


@dataclass(frozen=True, slots=True)
class LetGo:
    """The parts of a talk that no longer fit into the context: its first `lines`, and the pictures of its first
    `pictured` lines, each replaced by a word."""

    lines: int = 0
    pictured: int = 0


@dataclass(slots=True)
class TalkState:
    """The steps folded for a talk, and its replies as the model wrote them."""

    log: TokenLog = field(default_factory=TokenLog)
    written: dict[str, Written] = field(default_factory=dict)
    let_go: LetGo = LetGo()
    kept: int = 0
    """The position at which its capsule was last written to disk at leisure."""

    def to_rows(self) -> dict[str, JSON]:
        """One row for each step and each reply, so that a turn adds rows and changes none."""
        rows: dict[str, JSON] = {"dropped": self.let_go.lines, "pictures dropped": self.let_go.pictured}
        rows |= {f"reply {reply}": one.to_json() for reply, one in self.written.items()}
        rows |= {f"fold {place}": [int(step.written), *step.ids] for place, step in enumerate(self.log.steps)}
        return rows

    @classmethod
    def from_rows(cls, rows: Rows) -> TalkState:
        """The inverse of `to_rows`. Raises KeyError, TypeError, ValueError or IndexError on anything else."""
        found: Mapping[str, Any] = rows
        replies = {key.removeprefix("reply "): row for key, row in found.items() if key.startswith("reply ")}
        count = sum(key.startswith("fold ") for key in found)
        steps = [found[f"fold {place}"] for place in range(count)]
        log = TokenLog([FoldStep(tuple(int(i) for i in ids), bool(written)) for written, *ids in steps])
        let_go = LetGo(int(found["dropped"]), int(found.get("pictures dropped", 0)))
        return cls(log, {reply: Written.from_json(row) for reply, row in replies.items()}, let_go)
