"""The engine's API: append, decode, snapshot, restore, rollback, over one sequence at a time.

Position counts tokens: those appended and those decoded. A decoded token is folded into the state no later than the
next call that needs it, so that the caller has it at once; `catch_up` folds it when there is time. `sequence.py` turns
tokens into state; this file defines the calls and checks their arguments.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from numbers import Integral
from pathlib import Path

import torch
from torch import Tensor

from capsules import Capsule, Checkpoint, ExecContext, Fingerprint, earlier, restore, snapshot
from capsules.arguments import a_function, a_kind, shown, token_ids, whole
from capsules.weights import Progress
from llm_engine.checkpoints import SequenceCheckpoints
from llm_engine.config import LLMConfig
from llm_engine.endings import end_of_turn
from llm_engine.errors import ConfigError, StateError
from llm_engine.eyes import Eyes, EyesBuffers, most_pixels
from llm_engine.graphs import EngineGraphs
from llm_engine.grid import ROWS, FoldLog, capacity
from llm_engine.options import PACKED, LLMOptions
from llm_engine.pictures import PlacedPictures
from llm_engine.rowstore import PictureStore
from llm_engine.sampling import Sampling
from llm_engine.sequence import FoldedSequence
from llm_engine.state import EngineState
from llm_engine.weights import LoadedTower, LoadedWeights, Tell, eyes_scope, load_weights

CODE = "llm_engine/3"  # raised whenever the same bytes would mean something else

Cancel = Callable[[], bool]


class HybridLLM:
    """One language model, one sequence, all state in declared buffers. Call it from one thread at a time."""

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
        schedule = f"grid 64, rows {ROWS}"
        self.fingerprint = Fingerprint.of(ctx, scope, weights=loaded.digest, code=CODE, dtype=form, schedule=schedule)
        points = SequenceCheckpoints(ctx, scope, options.checkpoints, options.checkpoint_every)
        self._sequence = FoldedSequence(loaded.config, self.state, self.graphs, points, options.max_positions)
        self.eyes = _open_eyes(ctx, loaded.tower, dtype, options)
        """None without a tower."""
        self._sampling = Sampling.greedy()
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
        """Load from a directory in the published layout or a GGUF file.

        dtype             "float32" or "bfloat16", of the matrices and the KV cache; the recurrent state is float32.
                          "float8", "int8" (on a processor) and "int4" are bfloat16 with matrices packed while they
                          are loaded
        max_positions     longest sequence; its KV cache is allocated now
        packed            keep FP8 or int4 matrices packed (see `load_weights`)
        checkpoints       how many recurrent checkpoints may be held for rollbacks; each is a copy of the fixed state
        checkpoint_every  decoded tokens between two candidates for a checkpoint
        capture           False leaves the capture to `warm`
        eyes              "auto": with the vision tower, if the checkpoint has one; "off": without
        aside             folder for the weights' digest if it cannot be stored beside them
        tell              gets a line about weights that `prepare_weights` stored, if there is anything to report
        Raises ConfigError, CheckpointError; StateError for a meaningless argument.
        """
        options = LLMOptions(dtype, max_positions, checkpoints, checkpoint_every, scope, eyes)
        a_kind(ConfigError, "path", path, str | Path, "a checkpoint directory or a GGUF file")
        a_kind(StateError, "ctx", ctx, ExecContext, "an ExecContext")
        a_function(StateError, "progress", progress)
        a_function(StateError, "tell", tell)
        bits, made = options.forms_on(ctx.device)
        loaded = load_weights(
            path, ctx, options.tensor_dtype, scope=scope, packed=packed, bits=bits, made=made, eyes=eyes != "off",
            progress=progress, aside=aside, tell=tell,
        )  # fmt: skip
        engine = cls(ctx, loaded, options, end_of_turn(Path(path)))
        if capture:
            engine.warm()
        return engine

    # ------------------------------------------------------------------------------------ position

    @property
    def position(self) -> int:
        """Tokens in the sequence."""
        return len(self._sequence.tokens)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The sequence itself."""
        return tuple(self._sequence.tokens)

    @property
    def logits(self) -> Tensor:
        """[V] float32 after the last token, a copy. Raises StateError if nothing was folded."""
        self.catch_up()
        self._sequence.need_logits()
        return self.state.logits.clone()

    @property
    def pictures(self) -> PictureStore:
        """The encoded pictures, by ids below zero: `append` accepts the ones in here."""
        return self._sequence.pictures

    @property
    def checkpoint_bytes(self) -> int:
        """The size of all checkpoints that may be held for rollbacks."""
        return self._sequence.points.most_bytes

    def checkpoint_before(self, position: int) -> Checkpoint | None:
        """The last checkpoint at or before a position, from which a rollback to there would start."""
        whole(StateError, "position", position)
        return self._sequence.points.last_before(position)

    def hold(self, point: Checkpoint | None) -> None:
        """Let rollbacks start from a checkpoint of this very sequence, taken before another sequence had the engine."""
        a_kind(StateError, "point", point, Checkpoint | None, "a checkpoint, as checkpoint_before gives it, or None")
        if point is not None and point.position <= self.position:
            self._sequence.points.add_point(point)

    def warm(self) -> None:
        """Capture every variant, so that nothing is captured later. Only at position 0."""
        if self.position:
            raise StateError(f"warm at position {self.position}; reset first, or warm up right after loading")
        self.state.ids.zero_()
        self.state.count.fill_(1)
        self.graphs.capture_all()

    def reset(self) -> None:
        """Return to an empty sequence. Sampling parameters stay."""
        self._sequence.reset()

    # ------------------------------------------------------------------------------------- forward

    def append(self, ids: Sequence[int], cancel: Cancel | None = None) -> Tensor:
        """Fold `ids` and return the logits after the last of them, float32 [V].

        ids      tokens; a picture is its id from `pictures`, once for each of its rows
        cancel   called between chunks; True leaves the sequence at the last whole chunk and raises Cancelled
        Raises StateError, with nothing changed, for an empty list, an unknown id or a full cache.
        """
        self._sequence.check_ids(ids)
        a_function(StateError, "cancel", cancel)
        self._sequence.fold(ids, cancel)
        return self.state.logits.clone()

    def follow(self, ids: Sequence[int]) -> None:
        """Fold tokens one by one, as `step` did when it decoded them: the state is as if it had decoded them now.

        Raises StateError, with nothing changed, for ids that `append` refuses.
        """
        self._sequence.check_ids(ids)
        self._sequence.check_text(ids)
        self._sequence.fold_singly(ids)

    @property
    def sampling(self) -> Sampling:
        """The sampling of the next tokens."""
        return self._sampling

    def set_sampling(self, sampling: Sampling) -> None:
        """Set the sampling of the tokens from here on."""
        _check_sampling(sampling)
        if sampling != self._sampling:
            self._sampling = sampling
            self.state.set_sampling(sampling)

    def step(self, among: Sequence[int] = ()) -> int:
        """Decode one token with the current sampling, and return it. Other engines may run between two steps.

        among   the tokens that may come; empty: any
        Raises StateError if the cache is full or nothing was appended, or for an unknown id.
        """
        if among:
            token_ids(StateError, "among", among, self.config.vocab_size)
        self.catch_up()
        self._sequence.need_room_to_decode()
        if among:
            self.state.barred.fill_(True)[torch.tensor([*among])] = False
        self.graphs.sample(self._sampling.is_plain_greedy)
        token = int(self.state.token.item())
        if among:
            self.state.barred.zero_()
        self._sequence.add_decoded(token)
        return token

    def catch_up(self) -> None:
        """Fold the last decoded token if that is still to be done. Worth calling when the device is idle."""
        self._sequence.catch_up()

    def decode(
        self, n: int, sampling: Sampling | None = None, stop: Collection[int] = (), cancel: Cancel | None = None
    ) -> list[int]:
        """Up to n tokens from the current position.

        sampling  None keeps the current sampling
        stop      ids that end the reply; the one that does is the last of the list
        cancel    called before every token; True ends the list early
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
        """The probability that `token` comes next, before any is barred, and at temperature 1.

        Raises StateError if nothing was appended, or for an unknown id.
        """
        token_ids(StateError, "token", [token], self.config.vocab_size)
        self.catch_up()
        self._sequence.need_logits()
        return self.state.probability(token)

    def turn_end_probability(self, ids: Sequence[int]) -> float:
        """The probability that the user's turn is complete after `ids`: P(<|im_end|> next).

        ids   the user's words so far that are not appended yet; may be empty
        The state is left as it was. Raises StateError if the checkpoint names no end-of-turn token.
        """
        if self.end_of_turn is None:
            raise StateError("the checkpoint names no end-of-turn token (no tokenizer.json or generation_config.json)")
        self._sequence.check_text(ids)
        if not ids:
            return self.probability(self.end_of_turn)
        self.catch_up()
        self._sequence.check_room(ids)
        with self._sequence.folded_ahead(ids):
            return self.state.probability(self.end_of_turn)

    # --------------------------------------------------------------------------------------- state

    def snapshot(self, name: str = "") -> Capsule:
        """Everything, at this boundary."""
        a_kind(StateError, "name", name, str, "text")
        self.catch_up()
        tokens, host = self._sequence.tokens, {**self._sequence.capsule_facts(), "sampling": vars(self._sampling)}
        capsule = snapshot(
            self._ctx, self._scope, self.position, self.fingerprint, tokens=tokens, label=name, host=host
        )
        self._sequence.mark()
        return capsule

    def restore(self, capsule: Capsule, point: Checkpoint | None = None) -> None:
        """Continue from a capsule of this engine. Raises CapsuleMismatch, with nothing changed, for any other.

        point   a checkpoint of the capsule's own sequence: continue from there, as if nothing after it had happened
        """
        _check_capsule(capsule)
        a_kind(StateError, "point", point, Checkpoint | None, "a checkpoint, as checkpoint_before gives it, or None")
        ready = bool(capsule.host["ready"]) or point is not None  # a point is only taken where there are logits
        if point is not None:
            capsule = earlier(self._ctx, capsule, point)
        placed = PlacedPictures.from_json(capsule.host.get("pictures", ()), capsule.tokens)
        restore(self._ctx, capsule, self.fingerprint)
        self._sequence.continue_from(capsule.tokens, placed, FoldLog.from_json(capsule.host["folds"]), ready)
        self._sampling = Sampling(**capsule.host["sampling"])
        self.state.set_sampling(self._sampling)
        self._sequence.mark()

    def fork(self, capsule: Capsule, branches: int) -> Iterator[int]:
        """Yield each branch number with the state back at the capsule; freeze the states to keep with `snapshot`."""
        _check_capsule(capsule)
        whole(StateError, "branches", branches)
        return self._fork(capsule, branches)

    def _fork(self, capsule: Capsule, branches: int) -> Iterator[int]:
        for branch in range(branches):
            self.restore(capsule)
            yield branch

    def needed(self, position: int) -> list[int]:
        """The pictures that a rollback to this position folds again."""
        whole(StateError, "position", position)
        return self._sequence.needed(position)

    def rollback(self, position: int) -> None:
        """Return to an earlier position of this sequence, as if nothing after it had happened.

        The recurrent state comes from the nearest checkpoint at or before it; the tokens from there are folded again
        the way they were first folded. A position inside a chunk becomes that chunk's end.
        Raises StateError, with nothing changed, if a picture that must be folded again is no longer in `pictures`.
        """
        a_kind(StateError, "position", position, Integral, "an integer")
        position = int(position)
        if not 0 <= position <= self.position:
            raise StateError(f"rollback to {position}; the sequence holds 0 to {self.position}")
        if position < self.position and self._sequence.rollback(position):
            self.state.set_sampling(self._sampling)


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
