"""How much of a talk the model's context holds, and which of its earliest parts must go: old pictures, then old turns.

A picture takes hundreds of positions and leaves a word behind, so the pictures of all but the last turns go before any
turn does. Much goes at once, so that it happens seldom, and the talk is folded anew from there. The choice depends on
the lasting part of the talk, not on the words being said now; so it is the same whether it is made ahead of time,
while nobody speaks, or when the next reply is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assistant.base.errors import ContextExceeded
from assistant.contracts import Line, Prompt
from assistant.llm.language import Language
from assistant.llm.talk_state import LetGo, TalkState
from assistant.llm.token_log import Encode, FoldStep, heard_steps, open_steps, wanted_steps

REPLY_ROOM = 256
"""Positions that a prompt leaves free for the reply."""
CROWDED_SHARE = 0.85
"""Above this share of the rest, the next turn may not fit."""
KEPT_SHARE = 0.6
"""The share of it that stays then: far below …"""
KEPT_OF_TALK = 0.3
"""… or, if long instructions take more, of the room beside them."""
SEEN_TURNS = 2
"""The last turns, whose pictures stay as long as the turns do; the newest frame of a camera is expected to be among
them (`talk/shown.py`)."""


class ContextWindow:
    """The context of a model that holds `max_positions`, and understands as many as its language reaches."""

    def __init__(self, language: Language, encode: Encode, max_positions: int) -> None:
        self._language, self._encode = language, encode
        self._limit = max_positions - REPLY_ROOM
        self._reach = min(language.reach or self._limit, self._limit)

    def steps(self, state: TalkState, prompt: Prompt, *, open_reply: bool) -> list[FoldStep]:
        """The steps to the shown part of a prompt."""
        shown = _shown(state, prompt)
        return wanted_steps(shown, self._language.layout, self._encode, state.written.get, open_reply=open_reply)

    def heard_steps(self, state: TalkState, prompt: Prompt) -> list[FoldStep]:
        """The same if the prompt's last line still goes on."""
        return heard_steps(_shown(state, prompt), self._language.layout, self._encode, state.written.get)

    def open_steps(self, state: TalkState, prompt: Prompt) -> tuple[list[FoldStep], tuple[int, ...]]:
        """The lasting steps if the prompt's last line still goes on, and its ids since then."""
        return open_steps(_shown(state, prompt), self._language.layout, self._encode, state.written.get)

    def holds(self, steps: Sequence[FoldStep]) -> bool:
        """Whether there is room for these and a reply."""
        return _length(steps) <= self._room(steps)

    def crowded(self, state: TalkState, prompt: Prompt) -> bool:
        """Whether the turn after these may not fit."""
        steps = self.steps(state, prompt, open_reply=False)
        return _length(steps) > self._room(steps) * CROWDED_SHARE

    def shorten(self, state: TalkState, prompt: Prompt) -> list[FoldStep]:
        """Let the oldest pictures and turns go; return the steps of the rest. Raises ContextExceeded if the last
        message alone is too long."""
        kept = replace(prompt, lines=prompt.lines[: _answered(prompt.lines)])
        while True:
            wanted = self.steps(state, prompt, open_reply=True)
            roomy = self._roomy(self.steps(state, kept, open_reply=False))
            if (roomy and self.holds(wanted)) or not _let_go(state, prompt.lines):
                break
        if _length(wanted) > self._limit:
            raise ContextExceeded(
                f"instructions, tools and the last message take {_length(wanted)} tokens, this model holds "
                f"{self._limit} beside its reply; say less at once or start with a larger --max-positions"
            )
        return wanted

    def _room(self, steps: Sequence[FoldStep]) -> int:
        """Positions for such steps: the reach, or, beside instructions that take most of it, half as many again for the
        talk, because a half-understood talk is better than a forgotten one."""
        return min(self._limit, max(self._reach, _instructions(steps) + self._reach // 2))

    def _roomy(self, steps: Sequence[FoldStep]) -> bool:
        """Whether many turns will fit behind these."""
        room, instructions = self._room(steps), _instructions(steps)
        return _length(steps) <= max(room * KEPT_SHARE, instructions + (room - instructions) * KEPT_OF_TALK)

    def forget_hidden(self, state: TalkState, prompt: Prompt) -> None:
        """Drop the tokens of replies that are no longer shown: they are not needed again."""
        shown = {line.reply_id for line in prompt.lines[state.let_go.lines :]}
        state.written = {reply: written for reply, written in state.written.items() if reply in shown}


def come_back(state: TalkState, prompt: Prompt) -> None:
    """Show everything of a talk that began anew, or the pictures behind the answers of one that went back."""
    gone = state.let_go
    anew = gone.lines >= len(prompt.lines)
    state.let_go = LetGo() if anew else replace(gone, pictured=min(gone.pictured, _answered(prompt.lines)))


def _shown(state: TalkState, prompt: Prompt) -> Prompt:
    gone = state.let_go
    in_words = (line.in_words for line in prompt.lines[gone.lines : gone.pictured])
    return replace(prompt, lines=(*in_words, *prompt.lines[max(gone.lines, gone.pictured) :]))


def _answered(lines: Sequence[Line]) -> int:
    """The number of lasting lines: those up to the last answer."""
    return max((place for place, line in enumerate(lines, 1) if line.role == "assistant"), default=0)


def _let_go(state: TalkState, lines: Sequence[Line]) -> bool:
    """Let one more thing go: the oldest picture's turn, otherwise the oldest turn. False: nothing more may go."""
    gone = state.let_go
    turns = [place for place in range(_answered(lines)) if lines[place].role == "user"]
    for place in turns[:-SEEN_TURNS]:
        if place >= max(gone.lines, gone.pictured) and lines[place].pictures:
            state.let_go = replace(gone, pictured=place + 1)
            return True
    last = len(lines) - 1
    ends = (place for place in range(gone.lines + 1, last) if lines[place].role == "user")
    state.let_go = replace(gone, lines=max(gone.lines, next(ends, last)))
    return state.let_go != gone


def _instructions(steps: Sequence[FoldStep]) -> int:
    return len(steps[0].ids) if steps else 0


def _length(steps: Sequence[FoldStep]) -> int:
    return sum(len(step.ids) for step in steps)
