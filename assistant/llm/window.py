"""How much of a talk the model's context holds, and which of its oldest turns have to go.

Many go at once, so that it happens seldom. What goes depends on what surely stays of the talk, not on what is being
said now; so it is the same whether it is found ahead of time, while nobody speaks, or when the next reply is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assistant.base.errors import ContextExceeded
from assistant.contracts import Prompt
from assistant.llm.language import Language
from assistant.llm.talk_state import TalkState
from assistant.llm.token_log import Encode, FoldStep, heard_steps, open_steps, wanted_steps

REPLY_ROOM = 256
"""Positions that a prompt leaves free for the reply."""
CROWDED_SHARE = 0.85
"""Of the rest, from which on the next turn may not find room."""
KEPT_SHARE = 0.6
"""And what is kept of it then: far below."""


class ContextWindow:
    """Of a model that holds `max_positions`."""

    def __init__(self, language: Language, encode: Encode, max_positions: int) -> None:
        self._language, self._encode = language, encode
        self._limit = max_positions - REPLY_ROOM

    def steps(self, state: TalkState, prompt: Prompt, *, open_reply: bool) -> list[FoldStep]:
        """The steps that lead to what is shown of a prompt."""
        shown = replace(prompt, lines=prompt.lines[state.dropped :])
        return wanted_steps(shown, self._language.layout, self._encode, state.written.get, open_reply=open_reply)

    def heard_steps(self, state: TalkState, prompt: Prompt) -> list[FoldStep]:
        """The same where the prompt's last line still goes on."""
        shown = replace(prompt, lines=prompt.lines[state.dropped :])
        return heard_steps(shown, self._language.layout, self._encode, state.written.get)

    def open_steps(self, state: TalkState, prompt: Prompt) -> tuple[list[FoldStep], tuple[int, ...]]:
        """The steps that surely stay where the prompt's last line still goes on, and its ids since then."""
        shown = replace(prompt, lines=prompt.lines[state.dropped :])
        return open_steps(shown, self._language.layout, self._encode, state.written.get)

    def holds(self, steps: Sequence[FoldStep]) -> bool:
        """Whether there is room for these and a reply."""
        return _length(steps) <= self._limit

    def crowded(self, state: TalkState, prompt: Prompt) -> bool:
        """Whether the turn after these may not find room."""
        return _length(self.steps(state, prompt, open_reply=False)) > self._limit * CROWDED_SHARE

    def shorten(self, state: TalkState, prompt: Prompt) -> list[FoldStep]:
        """Let the oldest turns go; returns the steps of what is left. Raises ContextExceeded if the last message
        alone is too long."""
        while state.dropped < len(prompt.lines) - 1:
            state.dropped += 1
            if prompt.lines[state.dropped].role != "user":
                continue
            kept = _length(self.steps(state, prompt, open_reply=False))
            if kept <= self._limit * KEPT_SHARE and self.holds(self.steps(state, prompt, open_reply=True)):
                break
        wanted = self.steps(state, prompt, open_reply=True)
        if not self.holds(wanted):
            raise ContextExceeded(
                f"the last message takes {_length(wanted)} tokens, this model holds {self._limit} beside its reply; "
                "say less at once or start with a larger --max-positions"
            )
        return wanted

    def forget(self, state: TalkState, prompt: Prompt) -> None:
        """The tokens of replies that are no longer shown are not needed again."""
        shown = {line.reply_id for line in prompt.lines[state.dropped :]}
        state.written = {reply: written for reply, written in state.written.items() if reply in shown}


def _length(steps: Sequence[FoldStep]) -> int:
    return sum(len(step.ids) for step in steps)
