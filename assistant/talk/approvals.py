"""Calls that wait for the person's word: asked aloud and shown, run in the next reply after a yes, else never.

Only one waits at a time; a newer question replaces it. A yes is a whole utterance such as "yes, please", or a front's
AnswerCall. Anything else that is said leaves the call undone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from assistant.base.errors import PeerError
from assistant.talk.conversation import Conversation
from assistant.text.talk_words import TalkWords

NOT_YET = "This has not run: the person was asked whether it may. If they agree, it runs by itself."
DECLINED = "This has not run: the person does not want it."
LONGEST_VALUE, MOST_VALUES = 40, 3
_MARKS = re.compile(r"[^\w' ]+")


@dataclass(frozen=True, slots=True)
class AskedCall:
    """`output_id`: the entry that tells the model that it has not run."""

    id: str
    output_id: str
    name: str
    arguments: str


class Approvals:
    """The one call of a talk that waits, and the answer to it: None while there is none."""

    def __init__(self) -> None:
        self.waiting: AskedCall | None = None
        self.answer: bool | None = None

    def wait_for_answer(self, call: AskedCall) -> None:
        self.waiting, self.answer = call, None

    def decide(self, approval_id: str, approve: bool) -> None:
        """Raises PeerError for a call that does not wait."""
        if self.waiting is None or self.waiting.id != approval_id:
            raise PeerError("item_not_found", f"no call waits for the approval {approval_id!r}", "approval_request_id")
        self.answer = approve

    def asked_in(self, conversation: Conversation) -> AskedCall | None:
        """The call that waits, unless its question was taken back."""
        return self.waiting if self.waiting is not None and self.waiting.output_id in conversation else None

    def settle(self, call: AskedCall) -> None:
        """It was run, or will not be."""
        if self.waiting is call:
            self.waiting = self.answer = None


def agrees(text: str, known: TalkWords | None, own: Iterable[str] = ()) -> bool:
    """Whether somebody who was asked says only yes. `own`: the persona's words for it."""
    said = _bare(text)
    return said != "" and (said in (known.agreeing if known is not None else ()) or said in map(_bare, own))


def _bare(text: str) -> str:
    return " ".join(_MARKS.sub(" ", text.lower()).split())


def question(server: str, name: str, arguments: str) -> str:
    return f"Shall I use {server}: {spoken(name)}{_values(arguments)}?"


def announcement(server: str, name: str) -> str:
    return f"I am using {server}: {spoken(name)}."


def spoken(name: str) -> str:
    """A tool's name at its server as words."""
    return re.sub(r"[_\W]+", " ", name).strip()


def _values(arguments: str) -> str:
    """The short values of a call; the page shows all of them."""
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return ""
    values = [str(value) for value in given.values() if isinstance(value, str | int)] if isinstance(given, dict) else []
    short = [value for value in values if 0 < len(value) <= LONGEST_VALUE][:MOST_VALUES]
    return f", with {', '.join(short)}" if short else ""
