"""The one sequence of an engine: its tokens, how they were folded into the state, and folding them again.

A decoded token is folded no later than the next call that needs it; `catch_up` does it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from capsules.arguments import token_ids
from llm_engine.checkpoints import SequenceCheckpoints
from llm_engine.config import LLMConfig
from llm_engine.errors import Cancelled, StateError
from llm_engine.graphs import EngineGraphs
from llm_engine.grid import ROWS, Fold, FoldLog, GridChunk, chunks
from llm_engine.pictures import PlacedPictures, at_hand
from llm_engine.rowstore import PictureStore
from llm_engine.state import EngineState


class FoldedSequence:
    """The host's knowledge of the state on the device. Every change of the state by tokens goes through here."""

    def __init__(
        self, config: LLMConfig, state: EngineState, graphs: EngineGraphs, points: SequenceCheckpoints,
        max_positions: int,
    ) -> None:  # fmt: skip
        self.tokens: list[int] = []
        self.placed = PlacedPictures()
        self.log = FoldLog()
        self.ready = False  # the logits belong to the position
        self.pictures = PictureStore(config.hidden_size)
        self.points = points
        self._config, self._state, self._graphs, self._max_positions = config, state, graphs, max_positions
        self._pending = False  # the last token is sampled but not folded yet

    @property
    def position(self) -> int:
        return len(self.tokens)

    # -------------------------------------------------------------------------------------- checks

    def check_ids(self, ids: Sequence[int]) -> None:
        """Raises StateError for ids that cannot be appended: unknown ones, none, or more than there is room for."""
        text = ids
        if self.pictures and isinstance(ids, list | tuple):
            text = [i for i in ids if not (type(i) is int and i in self.pictures)]
        token_ids(StateError, "ids", text, self._config.vocab_size)
        if not ids:
            raise StateError("no tokens given; at least one is needed")
        if len(text) < len(ids) and self._config.image_token is None:
            raise StateError("the checkpoint's config.json names no image_token_id, so it takes no pictures")
        self.check_room(ids)

    def check_text(self, ids: Sequence[int]) -> None:
        """Raises StateError for ids that are not text, and for text in the middle of a picture."""
        token_ids(StateError, "ids", ids, self._config.vocab_size)
        if self.placed.inside(self.position):
            raise StateError(f"position {self.position} is inside a picture; append the rest of its rows first")

    def check_room(self, ids: Sequence[int]) -> None:
        """Raises StateError if these are too many."""
        if self.position + len(ids) > self._max_positions:
            raise StateError(
                f"{self.position} + {len(ids)} tokens exceed max_positions={self._max_positions}; shorten the "
                "conversation or load with a larger max_positions"
            )

    def need_logits(self) -> None:
        """Raises StateError if there are none."""
        if not self.ready:
            raise StateError(
                f"there are no logits at position {self.position}; append tokens first"
                + (" (the last append was cancelled)" if self.tokens else "")
            )

    def need_room_to_decode(self) -> None:
        """Raises StateError if no token can be decoded."""
        self.need_logits()
        self.check_text(())
        if self.position >= self._max_positions:
            raise StateError(
                f"position {self.position} is the last of this engine (max_positions={self._max_positions})"
            )

    # ------------------------------------------------------------------------------------- forward

    def fold(self, ids: Sequence[int], cancel: Callable[[], bool] | None) -> None:
        """Fold chunk by chunk on the grid, up to the logits after the last id. Raises Cancelled between two chunks."""
        placed = self.placed.with_more(self.position, ids, self.pictures)
        self.catch_up()
        self.mark()
        self.placed = placed
        plan = chunks(self.position, len(ids))
        done = 0
        for chunk in plan:
            if cancel is not None and cancel():
                self.placed = placed.upto(self.position)
                raise Cancelled(f"append stopped after {done} of {len(ids)} tokens, at position {self.position}")
            part = ids[done : done + chunk.count]
            last = chunk is plan[-1]
            self._replay_chunk(chunk, part, head=last)
            self.tokens += part
            self.log.chunk(chunk.count)
            self.ready = last
            done += chunk.count
        self.mark()

    def fold_singly(self, ids: Sequence[int]) -> None:
        """Fold ids one by one, as decoded tokens are folded."""
        self.catch_up()
        for token in ids:
            self.log.step()
            self._follow_one(token)

    def add_decoded(self, token: int) -> None:
        """Make this the last token; it is folded when it has to be."""
        self.tokens.append(token)
        self._pending = True

    def catch_up(self) -> None:
        """Fold the last decoded token if that is still to be done."""
        if self._pending:
            self._fold_token(self.tokens[-1], self.position - 1)
            self.log.step()
            self._pending = False
            self.ready = True
            if self.points.due(self.position):
                self.mark()

    def mark(self) -> None:
        """Consider this boundary for a checkpoint."""
        if self.ready and self.tokens:
            self.points.consider(self.position)

    @contextmanager
    def folded_ahead(self, ids: Sequence[int]) -> Iterator[None]:
        """Inside the block the logits are those after `ids`; behind it the state is as it was."""
        before = self.points.copy_now(self.position)
        try:
            plan = chunks(self.position, len(ids))
            done = 0
            for chunk in plan:
                self._replay_chunk(chunk, ids[done : done + chunk.count], head=chunk is plan[-1])
                done += chunk.count
            yield
        finally:
            self.points.put_back(before)

    def _replay_chunk(self, chunk: GridChunk, ids: Sequence[int], head: bool) -> None:
        s, end = self._state, chunk.start + chunk.count
        pad = self._config.image_token or 0  # below zero are pictures, if a config names this token
        plain = [token if token >= 0 else pad for token in ids]
        s.pictured.zero_()
        for one, begin, until in self.placed.among(chunk.start, end):
            s.pictured[begin - chunk.start : until - chunk.start].fill_(True)
            rows = at_hand(self.pictures, one.id).rows[begin - one.first : until - one.first]
            s.pictures[begin - chunk.start : until - chunk.start].copy_(rows)
        s.ids[: chunk.rows].copy_(torch.tensor([*plain, *[plain[0]] * (chunk.rows - chunk.count)]))
        s.count.fill_(chunk.count)
        s.axes[:, : chunk.rows].copy_(self.placed.axes(chunk.start, chunk.rows))
        s.delta_after.fill_(self.placed.delta(end))
        self._graphs.chunk(chunk, head)

    def _fold_token(self, token: int, position: int) -> None:
        self._state.token.fill_(token)
        self._graphs.decode(position)

    def _follow_one(self, token: int) -> None:
        self._fold_token(token, self.position)
        self.tokens.append(token)
        self.ready = True
        if self.points.due(self.position):
            self.mark()

    # ---------------------------------------------------------------------------------------- back

    def reset(self) -> None:
        """Return to an empty sequence."""
        self._forget_tokens()
        self.points.restart()
        self._empty_state()

    def continue_from(self, tokens: Sequence[int], placed: PlacedPictures, log: FoldLog, ready: bool) -> None:
        """Continue with these tokens, after the state was restored."""
        self._forget_tokens()
        self.tokens, self.placed, self.log, self.ready = list(tokens), placed, log, ready
        self.log.truncate(self.position)
        self.points.restart(self.position)

    def capsule_facts(self) -> dict[str, Any]:
        """The facts that a capsule holds beside the tokens."""
        return {"folds": self.log.to_json(), "ready": self.ready, "pictures": self.placed.to_json()}

    def needed(self, position: int) -> list[int]:
        """The pictures that a rollback to this position folds again."""
        if position >= self.position - self._pending:
            return []
        point = self.points.last_before(position)
        base = 0 if point is None else point.position
        return [one.id for one, _, _ in self.placed.among(base, position)]

    def rollback(self, position: int) -> bool:
        """Return to an earlier position, from the nearest checkpoint before it. False: the state was not beyond it.

        Raises StateError, with nothing changed, if a picture that must be folded again is no longer at hand.
        """
        if self._pending:
            self.tokens.pop()
            self._pending = False
            if position == self.position:
                return False
        self.points.rolled_back(self.position - position)
        tokens, log, placed, point = self.tokens[:position], self.log, self.placed, self.points.last_before(position)
        for one in self.needed(position):
            at_hand(self.pictures, one)
        base = 0 if point is None else point.position
        log.truncate(position)
        if point is None:
            self._empty_state()
        else:
            self.points.put_back(point)
        self._forget_tokens()
        self.points.restart(base, upto=position)
        self.log, self.placed = log, placed.upto(position)
        self._refold(tokens, base)
        return True

    def _refold(self, tokens: list[int], base: int) -> None:
        """Fold tokens[base:] as the log records, marking boundaries as at first."""
        self.tokens = tokens[:base]
        self.ready = base > 0
        folds = self.log.between(base, len(tokens))
        for index, fold in enumerate(folds):
            part = tokens[self.position : self.position + fold.count]
            self._refold_one(fold, part, head=_needs_head(folds, index))

    def _refold_one(self, fold: Fold, part: list[int], head: bool) -> None:
        if fold.kind == "chunk":
            rows = next(rows for rows in ROWS if rows >= fold.count)
            self._replay_chunk(GridChunk(self.position, fold.count, rows), part, head)
            self.tokens += part
            self.ready = head
        else:
            for token in part:
                self._follow_one(token)

    def _forget_tokens(self) -> None:
        self.tokens, self.placed, self.log = [], PlacedPictures(), FoldLog()
        self._pending = self.ready = False

    def _empty_state(self) -> None:
        s = self._state
        for layer in s.layers:
            for tensor in (layer.window, layer.memory):
                if tensor is not None:
                    tensor.zero_()
        for tensor in (s.position, s.rope_delta, s.logits, s.generated, s.seen):
            tensor.zero_()


def _needs_head(folds: Sequence[Fold], index: int) -> bool:
    """Whether logits are wanted after fold `index`: at the end, or before a decoded token or boundary."""
    return index + 1 == len(folds) or folds[index + 1].kind == "steps"
