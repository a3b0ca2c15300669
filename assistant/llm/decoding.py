"""One reply decoded, token by token: each is noted on the talk's log and read as words and calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from assistant.contracts import BadCall, CallPiece, Prompt, ReplyOptions, ReplyPiece, TextPiece
from assistant.device.thread import Work
from assistant.llm.language import Language
from assistant.llm.talk_state import TalkState
from assistant.llm.token_log import Written
from llm_engine import HybridLLM
from llm_engine.textcut import StopStrings
from llm_engine.toolcalls import MalformedCall, Piece

MOST_TOKENS = 1024
MOST_HIDDEN = 160
"""Tokens in a row that show nothing, a call's, after which a limited model has lost its way: its calls have a fifth."""


class Writing:
    """Run `steps` to the end; then `reason` and `tokens` say how it ended. Sampling was set before."""

    def __init__(
        self, llm: HybridLLM, language: Language, state: TalkState, prompt: Prompt, options: ReplyOptions
    ) -> None:
        self.reason: Literal["stop", "length", "tool_calls"] = "length"
        self._llm, self._stop_tokens, self._state = llm, language.stops, state
        self._language, self._prompt, self._options = language, prompt, options
        self._most_hidden = MOST_HIDDEN if language.limited else MOST_TOKENS
        self._begin = llm.position
        self._start(None)
        self._room = max(0, min(options.max_tokens or MOST_TOKENS, llm.max_positions - llm.position - 1))
        self._call_id = f"call_{options.reply_id.removeprefix('resp_').replace('.', '_')}"

    def _start(self, rejected: str | None) -> None:
        language, prompt = self._language, self._prompt
        self._written = self._state.written[self._options.reply_id] = Written()
        self._text, self._calls = language.text_stream(), language.call_stream(prompt)
        self._ends = StopStrings(self._options.stop)
        self._held: list[ReplyPiece] = []
        self._guide = language.guide(prompt, self._llm.probability, rejected)

    def _start_again(self) -> None:
        """As if nothing had been written; the guide is told what had been."""
        rejected = self._written.text
        self._llm.rollback(self._begin)
        self._state.log.truncate(self._begin)
        self._start(rejected)

    @property
    def tokens(self) -> int:
        return len(self._written.tokens)

    def steps(self) -> Work[ReplyPiece]:
        """Decode until the model ends its turn; the ending token is not folded, the next append begins with it."""
        hidden, told = 0, False
        while self.tokens < self._room:
            token = self._llm.step(self._guide.among())
            if token in self._stop_tokens:
                self._llm.rollback(self._llm.position - 1)
                self.reason = "stop"
                break
            self._state.log.wrote(token)
            text = self._text.push(token)
            self._guide.push(token, text)
            found = self._upto_stop(self._calls.push(text))
            self._written.add(token, _words(found))
            pieces, stands = [*self._held, *self._pieces(found)], self._guide.stands()
            if stands is False and not told:
                self._start_again()
                pieces, hidden = [], 0
            self._held, pieces = (pieces, []) if stands is None else ([], pieces)
            told = told or bool(pieces)
            yield from pieces
            if not pieces:
                yield None
            hidden = 0 if pieces else hidden + 1
            if hidden > self._most_hidden:
                break
            if self._ends.stopped:
                self.reason = "stop"
                break
        self._llm.catch_up()
        found = self._upto_stop([*self._calls.push(self._text.finish()), *self._calls.finish()])
        found.append(self._ends.finish())
        self._written.text += _words(found)
        yield from (*self._held, *self._pieces(found))
        if self._written.calls and self.reason == "stop":
            self.reason = "tool_calls"

    def _upto_stop(self, found: Sequence[Piece]) -> list[Piece]:
        """The pieces before a stop string."""
        ends = self._ends
        return [ends.push(part) if isinstance(part, str) else part for part in found if not ends.stopped]

    def _pieces(self, found: Sequence[Piece]) -> Iterator[ReplyPiece]:
        for part in found:
            if isinstance(part, str):
                if part:
                    yield TextPiece(part)
            elif isinstance(part, MalformedCall):
                yield BadCall(part.text, part.reason)
            else:
                self._written.calls += 1
                yield CallPiece(f"{self._call_id}_{self._written.calls}", part.name, part.arguments_json, True)


def _words(found: Sequence[Piece]) -> str:
    return "".join(part for part in found if isinstance(part, str))
