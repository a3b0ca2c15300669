"""The engine's API: append, decode, snapshot, restore, rollback, over one sequence at a time.

Position counts tokens: those appended and those decoded. A decoded token is folded into the state no later than the
next call that needs it, so that the caller has it at once; `catch_up` folds it when there is time.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capsules import Capsule, Checkpoint, ExecContext, Fingerprint, earlier, restore, rollback, snapshot
from capsules.arguments import a_function, a_kind, shown, token_ids, whole
from capsules.capsule import Recurrent
from capsules.errors import CapsuleTooLarge
from capsules.placement import Placer
from capsules.weights import Progress
from llm_engine.config import LLMConfig
from llm_engine.errors import Cancelled, ConfigError, StateError
from llm_engine.eyes import Eyes, EyesBuffers, most_pixels
from llm_engine.graphs import EngineGraphs
from llm_engine.grid import ROWS, Fold, FoldLog, GridChunk, capacity, chunks
from llm_engine.options import PACKED, LLMOptions
from llm_engine.pictures import PlacedPictures, at_hand
from llm_engine.rowstore import PictureStore
from llm_engine.sampling import Sampling
from llm_engine.state import EngineState
from llm_engine.weights import LoadedTower, LoadedWeights, Tell, eyes_scope, load_weights

CODE = "llm_engine/2"  # raised whenever the same bytes would mean something else

Cancel = Callable[[], bool]


class HybridLLM:
    """One Qwen3.5-family model, one sequence, all state in declared buffers. Call it from one thread at a time."""

    def __init__(self, ctx: ExecContext, loaded: LoadedWeights, options: LLMOptions, end_of_turn: int | None) -> None:
        self.config: LLMConfig = loaded.config
        self.loaded = loaded
        self.max_positions = options.max_positions
        self.end_of_turn = end_of_turn
        dtype, scope = options.tensor_dtype, options.scope
        self._ctx, self._scope = ctx, scope
        rows = capacity(options.max_positions)
        self.state = EngineState.declare(ctx, loaded.config, dtype, rows, scope)
        self.graphs = EngineGraphs(ctx, loaded.config, loaded.model, self.state, rows, scope)
        form = options.dtype if options.dtype in PACKED else str(dtype)
        self.fingerprint = Fingerprint.of(
            ctx, scope, weights=loaded.digest, code=CODE, dtype=form,
            schedule=f"grid 64, rows {ROWS}",
        )  # fmt: skip
        self._recurrent = Recurrent(ctx, scope)
        self._checkpoints = options.checkpoints
        self._placer = Placer(options.checkpoints)
        self._every = options.checkpoint_every
        self.pictures = PictureStore(loaded.config.hidden_size)
        """What ids below zero stand for: `append` takes those that are in here."""
        self.eyes = _open_eyes(ctx, loaded.tower, dtype, options)
        """None without a tower."""
        self._tokens: list[int] = []
        self._placed = PlacedPictures()
        self._log = FoldLog()
        self._points: dict[int, Checkpoint] = {}
        self._pending = False  # the last token is sampled but not folded yet
        self._ready = False  # the logits belong to the position
        self._sampling = Sampling.greedy()
        self._marked = 0  # position of the last checkpoint that was considered
        self.state.set_sampling(self._sampling)

    @classmethod
    def load(
        cls,
        path: str | Path,
        ctx: ExecContext,
        dtype: str = "float32",
        max_positions: int = 4096,
        *,
        packed: bool = False,
        checkpoints: int = 8,
        checkpoint_every: int = 16,
        capture: bool = True,
        scope: str = "llm",
        eyes: str = "auto",
        progress: Callable[[Progress], None] | None = None,
        aside: Path | None = None,
        tell: Tell | None = None,
    ) -> "HybridLLM":
        """From a directory in the published layout.

        dtype             "float32" or "bfloat16", of the matrices and the KV cache; the recurrent state is float32.
                          "float8", "int8" (on a processor) and "int4" are bfloat16 with matrices packed while they
                          are loaded
        max_positions     longest sequence; its KV cache is allocated now
        packed            keep FP8 or int4 matrices packed (see `load_weights`)
        checkpoints       how many recurrent checkpoints may be held for rollbacks; each is a copy of the fixed state
        checkpoint_every  decoded tokens between two candidates for one
        capture           False leaves the capture to `warm`
        eyes              "auto": with the vision tower, if the checkpoint has one; "off": without
        aside             where the weights' digest is kept if it cannot be kept beside them
        tell              takes a line about weights that `prepare_weights` kept, where there is something to say
        Raises ConfigError, CheckpointError; StateError for an argument without a meaning.
        """
        options = LLMOptions(dtype, max_positions, checkpoints, checkpoint_every, scope, eyes)
        a_kind(ConfigError, "path", path, str | Path, "a checkpoint directory")
        a_kind(StateError, "ctx", ctx, ExecContext, "an ExecContext")
        a_function(StateError, "progress", progress)
        a_function(StateError, "tell", tell)
        bits, made = options.forms_on(ctx.device)
        loaded = load_weights(
            path, ctx, options.tensor_dtype, scope=scope, packed=packed, bits=bits, made=made, eyes=eyes != "off",
            progress=progress, aside=aside, tell=tell,
        )  # fmt: skip
        engine = cls(ctx, loaded, options, _end_of_turn(Path(path)))
        if capture:
            engine.warm()
        return engine

    # ------------------------------------------------------------------------------------ position

    @property
    def position(self) -> int:
        """Tokens in the sequence."""
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The sequence itself."""
        return tuple(self._tokens)

    @property
    def logits(self) -> Tensor:
        """[V] float32 after the last token, a copy. Raises StateError if nothing was folded."""
        self.catch_up()
        self._need_logits()
        return self.state.logits.clone()

    @property
    def checkpoint_bytes(self) -> int:
        """Of all the checkpoints that may be held for rollbacks."""
        return self._checkpoints * self._recurrent.nbytes

    def checkpoint_before(self, position: int) -> Checkpoint | None:
        """The last checkpoint at or before a position: what a rollback to there would start from."""
        whole(StateError, "position", position)
        return self._points.get(max((at for at in self._points if at <= position), default=0))

    def hold(self, point: Checkpoint | None) -> None:
        """Let rollbacks start from a checkpoint of this very sequence, taken before another one had the engine."""
        a_kind(StateError, "point", point, Checkpoint | None, "a checkpoint, as checkpoint_before gives it, or None")
        if point is not None and point.position <= self.position:
            self._points[point.position] = point

    def warm(self) -> None:
        """Capture every variant, so that nothing is captured later. Only at position 0."""
        if self._tokens:
            raise StateError(f"warm at position {self.position}; reset first, or warm up right after loading")
        self.state.ids.zero_()
        self.state.count.fill_(1)
        self.graphs.capture_all()

    def reset(self) -> None:
        """Back to an empty sequence. Sampling parameters stay."""
        self._forget()
        s = self.state
        for layer in s.layers:
            for tensor in (layer.window, layer.memory):
                if tensor is not None:
                    tensor.zero_()
        for tensor in (s.position, s.rope_delta, s.logits, s.generated, s.seen):
            tensor.zero_()

    # ------------------------------------------------------------------------------------- forward

    def append(self, ids: Sequence[int], cancel: Cancel | None = None) -> Tensor:
        """Fold `ids` and return the logits after the last of them, float32 [V].

        ids      tokens; a picture is its id from `pictures`, once for each of its rows
        cancel   asked between chunks; True leaves the sequence at the last whole chunk and raises Cancelled
        Raises StateError, with nothing changed, for an empty list, an unknown id or a full cache.
        """
        self._check(ids)
        a_function(StateError, "cancel", cancel)
        placed = self._placed.with_more(self.position, ids, self.pictures)
        self.catch_up()
        self._mark()
        self._placed = placed
        plan = chunks(self.position, len(ids))
        done = 0
        for chunk in plan:
            if cancel is not None and cancel():
                self._placed = placed.upto(self.position)
                raise Cancelled(f"append stopped after {done} of {len(ids)} tokens, at position {self.position}")
            part = ids[done : done + chunk.count]
            last = chunk is plan[-1]
            self._replay_chunk(chunk, part, head=last)
            self._tokens += part
            self._log.chunk(chunk.count)
            self._ready = last
            done += chunk.count
        self._mark()
        return self.state.logits.clone()

    def follow(self, ids: Sequence[int]) -> None:
        """Fold tokens one by one, as `step` did when it decoded them: the state is as if it had decoded them now.

        Raises StateError, with nothing changed, for what `append` refuses.
        """
        self._check(ids)
        self._check_text(ids)
        self.catch_up()
        for token in ids:
            self._log.step()
            self._follow_one(token)

    @property
    def sampling(self) -> Sampling:
        """What the next tokens are sampled with."""
        return self._sampling

    def set_sampling(self, sampling: Sampling) -> None:
        """For the tokens from here on."""
        _check_sampling(sampling)
        if sampling != self._sampling:
            self._sampling = sampling
            self.state.set_sampling(sampling)

    def step(self, among: Sequence[int] = ()) -> int:
        """Decode one token with the sampling that is set, and return it. Other engines may run between two steps.

        among   the tokens that may come; none says that any may
        Raises StateError if the cache is full or nothing was appended, or for an unknown id.
        """
        if among:
            token_ids(StateError, "among", among, self.config.vocab_size)
        self.catch_up()
        self._need_logits()
        self._check_text(())
        if self.position >= self.max_positions:
            raise StateError(
                f"position {self.position} is the last of this engine (max_positions={self.max_positions})"
            )
        if among:
            self.state.barred.fill_(True)[torch.tensor([*among])] = False
        self.graphs.sample(self._sampling.is_plain_greedy)
        token = int(self.state.token.item())
        if among:
            self.state.barred.zero_()
        self._tokens.append(token)
        self._pending = True
        return token

    def catch_up(self) -> None:
        """Fold the last decoded token if that is still to be done. Worth calling when the device is idle."""
        if self._pending:
            self._fold_token(self._tokens[-1], self.position - 1)
            self._log.step()
            self._pending = False
            self._ready = True
            if self.position - self._marked >= self._every:
                self._mark()

    def decode(
        self, n: int, sampling: Sampling | None = None, stop: Collection[int] = (), cancel: Cancel | None = None
    ) -> list[int]:
        """Up to n tokens from the current position.

        sampling  None goes on with what was set last
        stop      ids that end the reply; the one that does is the last of the list
        cancel    asked before every token; True ends the list early
        """
        return list(self.stream(n, sampling, stop, cancel))

    def stream(
        self, n: int, sampling: Sampling | None = None, stop: Collection[int] = (), cancel: Cancel | None = None
    ) -> Iterator[int]:
        """`decode`, one token at a time."""
        whole(StateError, "n", n)
        if sampling is not None:
            _check_sampling(sampling)
        if isinstance(stop, str) or not isinstance(stop, Collection) or not all(type(i) is int for i in stop):
            raise StateError(f"stop is {shown(stop)}; a collection of token ids is needed, as a tokenizer's stops()")
        a_function(StateError, "cancel", cancel)
        return self._stream(n, sampling, stop, cancel)

    def _stream(self, n: int, sampling: Sampling | None, stop: Collection[int], cancel: Cancel | None) -> Iterator[int]:
        if sampling is not None:
            self.set_sampling(sampling)
        for _ in range(n):
            if cancel is not None and cancel():
                return
            token = self.step()
            yield token
            if token in stop:
                return

    def probability(self, token: int) -> float:
        """How probable it is that `token` comes next, before any is barred, and at temperature 1.

        Raises StateError if nothing was appended, or for an unknown id.
        """
        token_ids(StateError, "token", [token], self.config.vocab_size)
        self.catch_up()
        self._need_logits()
        return self._probability(token)

    def turn_end_probability(self, ids: Sequence[int]) -> float:
        """How probable it is that the user's turn is complete after `ids`: P(<|im_end|> next).

        ids   the user's words so far, as far as they are not appended yet; may be empty
        The state is left as it was. Raises StateError if the checkpoint names no end-of-turn token.
        """
        if self.end_of_turn is None:
            raise StateError("the checkpoint names no end-of-turn token (no tokenizer.json or generation_config.json)")
        self._check_text(ids)
        if not ids:
            return self.probability(self.end_of_turn)
        self.catch_up()
        self._check_room(ids)
        before = self._recurrent.checkpoint_at(self.position)
        try:
            plan = chunks(self.position, len(ids))
            done = 0
            for chunk in plan:
                self._replay_chunk(chunk, ids[done : done + chunk.count], head=chunk is plan[-1])
                done += chunk.count
            return self._probability(self.end_of_turn)
        finally:
            rollback(self._ctx, before)

    # --------------------------------------------------------------------------------------- state

    def snapshot(self, name: str = "") -> Capsule:
        """Everything, at this boundary."""
        a_kind(StateError, "name", name, str, "text")
        self.catch_up()
        host = {
            "folds": self._log.to_json(),
            "ready": self._ready,
            "sampling": vars(self._sampling),
            "pictures": self._placed.to_json(),
        }
        capsule = snapshot(
            self._ctx, self._scope, self.position, self.fingerprint, tokens=self._tokens, label=name, host=host
        )
        self._mark()
        return capsule

    def restore(self, capsule: Capsule, point: Checkpoint | None = None) -> None:
        """Go on from a capsule of this engine. Raises CapsuleMismatch, with nothing changed, for any other.

        point   a checkpoint of the capsule's own sequence: go on from there, as if nothing after it had happened
        """
        _check_capsule(capsule)
        a_kind(StateError, "point", point, Checkpoint | None, "a checkpoint, as checkpoint_before gives it, or None")
        ready = bool(capsule.host["ready"]) or point is not None  # only where there are logits is one taken
        if point is not None:
            capsule = earlier(self._ctx, capsule, point)
        placed = PlacedPictures.from_json(capsule.host.get("pictures", ()), capsule.tokens)
        restore(self._ctx, capsule, self.fingerprint)
        self._forget()
        self._tokens, self._placed = list(capsule.tokens), placed
        self._log = FoldLog.from_json(capsule.host["folds"])
        self._log.truncate(self.position)
        self._ready = ready
        self._sampling = Sampling(**capsule.host["sampling"])
        self._marked = self.position
        self.state.set_sampling(self._sampling)
        self._mark()

    def fork(self, capsule: Capsule, branches: int) -> Iterator[int]:
        """Yield each branch number with the state back at the capsule; freeze what is to be kept with `snapshot`."""
        _check_capsule(capsule)
        whole(StateError, "branches", branches)
        return self._fork(capsule, branches)

    def _fork(self, capsule: Capsule, branches: int) -> Iterator[int]:
        for branch in range(branches):
            self.restore(capsule)
            yield branch

    def needed(self, position: int) -> list[int]:
        """The pictures that a rollback to there folds again."""
        whole(StateError, "position", position)
        if position >= self.position - self._pending:
            return []
        base = max((at for at in self._points if at <= position), default=0)
        return [one.id for one, _, _ in self._placed.among(base, position)]

    def rollback(self, position: int) -> None:
        """Back to an earlier position of this sequence, as if nothing after it had happened.

        The recurrent state comes from the nearest checkpoint at or before it; the tokens from there are folded again
        the way they were first folded. A position inside a chunk becomes that chunk's end.
        Raises StateError, with nothing changed, if a picture that is to be folded again is no longer in `pictures`.
        """
        a_kind(StateError, "position", position, Integral, "an integer")
        position = int(position)
        if not 0 <= position <= self.position:
            raise StateError(f"rollback to {position}; the sequence holds 0 to {self.position}")
        if position == self.position:
            return
        if self._pending:  # the state never saw it
            self._tokens.pop()
            self._pending = False
            if position == self.position:
                return
        self._placer.observe(self.position - position)
        tokens, log, points = self._tokens[:position], self._log, self._points
        placed = self._placed.upto(position)
        base = max((at for at in points if at <= position), default=0)
        for one in self.needed(position):
            at_hand(self.pictures, one)
        log.truncate(position)
        if base:
            rollback(self._ctx, points[base])
            self._forget()
        else:
            self.reset()
        self._points = {at: point for at, point in points.items() if at <= position}
        self._log, self._marked, self._placed = log, base, placed
        self._refold(tokens, base)
        self.state.set_sampling(self._sampling)

    def _refold(self, tokens: list[int], base: int) -> None:
        """Fold tokens[base:] as the log says, marking boundaries as at first."""
        self._tokens = tokens[:base]
        self._ready = base > 0
        folds = self._log.between(base, len(tokens))
        for index, fold in enumerate(folds):
            part = tokens[self.position : self.position + fold.count]
            self._refold_one(fold, part, head=_needs_head(folds, index))

    def _refold_one(self, fold: Fold, part: list[int], head: bool) -> None:
        if fold.kind == "chunk":
            rows = next(rows for rows in ROWS if rows >= fold.count)
            self._replay_chunk(GridChunk(self.position, fold.count, rows), part, head)
            self._tokens += part
            self._ready = head
        else:
            for token in part:
                self._follow_one(token)

    def _follow_one(self, token: int) -> None:
        self._fold_token(token, self.position)
        self._tokens.append(token)
        self._ready = True
        if self.position - self._marked >= self._every:
            self._mark()

    # ------------------------------------------------------------------------------------- private

    def _probability(self, token: int) -> float:
        return float(self.state.logits.softmax(-1)[token].item())

    def _replay_chunk(self, chunk: GridChunk, ids: Sequence[int], head: bool) -> None:
        s, end = self.state, chunk.start + chunk.count
        pad = self.config.image_token or 0  # below zero are pictures, which only a config that names it gets
        plain = [token if token >= 0 else pad for token in ids]
        s.pictured.zero_()
        for one, begin, until in self._placed.among(chunk.start, end):
            s.pictured[begin - chunk.start : until - chunk.start].fill_(True)
            rows = at_hand(self.pictures, one.id).rows[begin - one.first : until - one.first]
            s.pictures[begin - chunk.start : until - chunk.start].copy_(rows)
        s.ids[: chunk.rows].copy_(torch.tensor([*plain, *[plain[0]] * (chunk.rows - chunk.count)]))
        s.count.fill_(chunk.count)
        s.axes[:, : chunk.rows].copy_(self._placed.axes(chunk.start, chunk.rows))
        s.delta_after.fill_(self._placed.delta(end))
        self.graphs.chunk(chunk, head)

    def _fold_token(self, token: int, position: int) -> None:
        self.state.token.fill_(token)
        self.graphs.decode(position)

    def _mark(self) -> None:
        """Consider this boundary for a checkpoint. Without memory for one a later rollback refolds more."""
        if not self._ready or not self._tokens or self.position in self._points:
            return
        self._marked = self.position
        kept = self._placer.surviving(sorted((*self._points, self.position)), self.position)
        self._points = {at: point for at, point in self._points.items() if at in kept}
        if self.position in kept:
            with suppress(CapsuleTooLarge):
                self._points[self.position] = self._recurrent.checkpoint_at(self.position)

    def _forget(self) -> None:
        self._tokens, self._placed, self._log, self._points = [], PlacedPictures(), FoldLog(), {}
        self._pending = self._ready = False
        self._marked = 0

    def _need_logits(self) -> None:
        if not self._ready:
            raise StateError(
                f"there are no logits at position {self.position}; append tokens first"
                + (" (the last append was cancelled)" if self._tokens else "")
            )

    def _check(self, ids: Sequence[int]) -> None:
        text = ids
        if self.pictures and isinstance(ids, list | tuple):
            text = [i for i in ids if not (type(i) is int and i in self.pictures)]
        token_ids(StateError, "ids", text, self.config.vocab_size)
        if not ids:
            raise StateError("no tokens given; at least one is needed")
        if len(text) < len(ids) and self.config.image_token is None:
            raise StateError("the checkpoint's config.json names no image_token_id, so it takes no pictures")
        self._check_room(ids)

    def _check_text(self, ids: Sequence[int]) -> None:
        """Only text may follow, and only where no picture has begun that is not whole."""
        token_ids(StateError, "ids", ids, self.config.vocab_size)
        if self._placed.inside(self.position):
            raise StateError(f"position {self.position} is inside a picture; append the rest of its rows first")

    def _check_room(self, ids: Sequence[int]) -> None:
        if self.position + len(ids) > self.max_positions:
            raise StateError(
                f"{self.position} + {len(ids)} tokens exceed max_positions={self.max_positions}; shorten the "
                "conversation or load with a larger max_positions"
            )


def _open_eyes(ctx: ExecContext, tower: LoadedTower | None, dtype: torch.dtype, options: LLMOptions) -> Eyes | None:
    if tower is None:
        return None
    scope = eyes_scope(options.scope)
    most = most_pixels(tower.config, ctx.device.type, options.max_positions)
    buffers = EyesBuffers.declare(ctx, tower.config, dtype, most, scope)
    return Eyes(ctx, tower.config, tower.weights, buffers, scope)


def _check_sampling(sampling: Sampling) -> None:
    a_kind(StateError, "sampling", sampling, Sampling, "an llm_engine.Sampling")


def _check_capsule(capsule: Capsule) -> None:
    a_kind(StateError, "capsule", capsule, Capsule, "a capsule, as snapshot gives it,")


def _needs_head(folds: Sequence[Fold], index: int) -> bool:
    """Whether logits are wanted after fold `index`: at the end, or where a decoded token or boundary follows."""
    return index + 1 == len(folds) or folds[index + 1].kind == "steps"


def _end_of_turn(path: Path) -> int | None:
    """The id of <|im_end|>: from the tokenizer, else the first end token of generation_config.json, else None."""
    tokenizer = _json(path / "tokenizer.json")
    for token in tokenizer.get("added_tokens", []):
        if token.get("content") == "<|im_end|>":
            return int(token["id"])
    ends = _json(path / "generation_config.json").get("eos_token_id")
    first = ends[0] if isinstance(ends, list) and ends else ends
    return first if isinstance(first, int) else None


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    read = json.loads(path.read_text("utf-8"))
    return read if isinstance(read, dict) else {}
