"""What is known of one talk's state in a language model, and its form on disk beside the capsule."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from assistant.llm.token_log import TokenLog, Written


@dataclass(slots=True)
class TalkState:
    """The steps folded for a talk, and its replies as the model wrote them."""

    tape: TokenLog = field(default_factory=TokenLog)
    written: dict[str, Written] = field(default_factory=dict)
    dropped: int = 0
    """Lines at the start of the talk that no longer fit into the context."""
    key: str | None = None
    """Its capsule in the registry, while another talk has the engine."""

    def write(self, folder: Path, talk: str) -> bool:
        """Keep it as `folder/TALK.tape`; False if the disk would not."""
        facts = {
            "tape": self.tape.to_json(),
            "written": {reply: written.to_json() for reply, written in self.written.items()},
            "dropped": self.dropped,
            "key": self.key,
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            aside = folder / f"{talk}.part"
            aside.write_text(json.dumps(facts), "utf-8")
            aside.replace(folder / f"{talk}.tape")
        except OSError:
            return False
        return True

    @classmethod
    def take(cls, folder: Path, talk: str) -> TalkState | None:
        """What `write` kept, which is gone then; None if there is nothing or it is damaged."""
        path = folder / f"{talk}.tape"
        try:
            facts = json.loads(path.read_text("utf-8"))
            path.unlink()
            written = {str(reply): Written.from_json(row) for reply, row in facts["written"].items()}
            return cls(TokenLog.from_json(facts["tape"]), written, int(facts["dropped"]), str(facts["key"]))
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            return None
