"""A guess at the language model: the talk's state before it, and the way back to that. On the engines' thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assistant.base.errors import EngineFailed
from assistant.contracts import Prompt
from assistant.device.guess import Guess
from assistant.llm.talk_state import LetGo
from assistant.llm.token_log import Written
from assistant.llm.way import TalkFolding
from llm_engine import Sampling


@dataclass(frozen=True, slots=True)
class TalkBefore:
    """A talk's state before a guess, as far as it is in line with the talk: undoing the guess returns to it. `known`:
    there was one."""

    known: bool
    position: int
    written: Mapping[str, Written]
    let_go: LetGo
    sampling: Sampling


def state_before(folding: TalkFolding, talk: str, prompt: Prompt) -> TalkBefore:
    """Raises EngineFailed if a guess could not be taken back, because the talk would be shortened to make room."""
    state, sampling = folding.lease.find(talk), folding.llm.sampling
    if state is None:
        return TalkBefore(False, 0, {}, LetGo(), sampling)
    wanted = folding.window.steps(state, prompt, open_reply=True)
    if not folding.window.holds(wanted):
        raise EngineFailed("there is no room for a guess in the context; the reply itself will make room")
    return TalkBefore(True, state.log.plan(wanted).keep, dict(state.written), state.let_go, sampling)


def undo_reply(folding: TalkFolding, talk: str, guess: Guess[TalkBefore]) -> None:
    """Undo the guess. State that it found out of line with the talk stays rolled back."""
    lease = folding.lease
    lease.show(talk)
    before, state = guess.before, lease.find(talk)
    if before is None or state is None:
        return
    if not before.known:
        lease.discard(talk)
        return
    folding.own(talk)
    folding.cut(state, before.position)
    state.written, state.let_go = dict(before.written), before.let_go
    folding.llm.set_sampling(before.sampling)
    lease.note(talk)
