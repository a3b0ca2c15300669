"""The facts about a talk in its journal are those of one model: another one folds the talk's words anew."""

from types import SimpleNamespace
from typing import cast

from assistant.llm.frozen import FrozenTalks
from assistant.llm.talk_state import LetGo, TalkState
from assistant.llm.token_log import FoldStep, TokenLog, Written
from llm_engine import HybridLLM


def frozen(digest: str) -> FrozenTalks:
    return FrozenTalks(cast(HybridLLM, SimpleNamespace(fingerprint=SimpleNamespace(digest=digest))))


def test_tokens_are_taken_back_by_their_own_model_alone() -> None:
    log = TokenLog([FoldStep((5, 6)), FoldStep((7,), written=True)])
    state = TalkState(log, {"r": Written([7], [2], "hi")}, LetGo(1, 0))
    rows = frozen("one").to_rows(state)
    again = frozen("one").from_rows(rows)
    assert (again.log.steps, again.written, again.let_go) == (log.steps, state.written, state.let_go)
    without = {key: value for key, value in rows.items() if key != "model"}  # as older journals have it
    for other in (frozen("two").from_rows(rows), frozen("one").from_rows(without)):
        assert (other.log.steps, other.written, other.let_go) == ([], {}, LetGo())
