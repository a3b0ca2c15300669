"""Published checkpoints in and out: prefixes, fusions, quantised matrices; anything else is refused by name."""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from capsules import ExecContext, Role
from capsules.digests import stamps
from capsules.errors import WeightsError
from capsules.nn import Weight, empty_matrix
from capsules.nn.fp8 import Fp8Weight
from capsules.nn.groups import GROUP
from capsules.nn.int4 import Int4Weight
from capsules.nn.panels import PANEL, PanelWeight
from capsules.prepared import PreparedWeights, Tell, maps
from capsules.weights import Progress, Target, packing
from llm_engine.config import LLMConfig
from llm_engine.errors import CheckpointError
from llm_engine.model import ModelWeights
from llm_engine.names import (
    DRAFT,
    FP8_BLOCK,
    KEPT,
    Kind,
    Part,
    Stored,
    kept_in,
    made_as,
    packed_form,
    parts,
    prepare,
    published_shapes,
    text_only,
)  # fmt: skip
from llm_engine.published import Published, open_published
from llm_engine.quantised import FP8, INT4, PLAIN, QuantisedMatrices, blocks
from llm_engine.tower import TowerWeights
from llm_engine.vision_config import VisionConfig
from llm_engine.vision_weights import PREFIXES as TOWERS
from llm_engine.vision_weights import TowerPart, check_tower, place_tower, tower_prefix

PREFIXES = ("model.language_model.", "model.", "language_model.model.", "language_model.")
VISION = tuple(f"{prefix}*" for prefix in TOWERS)
_FLOAT32 = ("A_log", "linear_attn.norm.weight")  # float32 in the published files of the first generation
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_LAYOUT = "2"  # raised whenever the same files would give different bytes


@dataclass(frozen=True)
class LoadedWeights:
    """The contents of a checkpoint: the network, and the names of the tensors that were left out.

    digest  covers every tensor but the draft block's
    """

    config: LLMConfig  # with tying as in the files
    model: ModelWeights
    digest: str
    skipped: tuple[str, ...]
    tower: "LoadedTower | None" = None


@dataclass(frozen=True)
class LoadedTower:
    """The vision tower of a checkpoint."""

    config: VisionConfig
    weights: TowerWeights


def load_weights(
    path: str | Path,
    ctx: ExecContext,
    dtype: torch.dtype,
    *,
    scope: str = "llm",
    packed: bool = False,
    bits: int | None = None,
    made: str | None = None,
    eyes: bool = False,
    progress: Callable[[Progress], None] | None = None,
    aside: Path | None = None,
    tell: Tell | None = None,
) -> LoadedWeights:
    """Stream a checkpoint directory or a GGUF file into WEIGHT buffers of the context, or map the file that
    `prepare_weights` stored.

    dtype    of the large matrices; norms, decays and convolutions are widened to float32, which keeps every bit
    packed   keep quantised matrices in their few bits and unpack at every use (saves memory, costs time without a
             kernel for it) instead of unpacking them once, here
    bits     pack matrices to 8 or 4 bits for a processor, whatever they are stored as
    made     "fp8" or "int4": convert matrices that do not stay packed to the form that a GPU's kernels read
    eyes     read the vision tower too, if there is one
    aside    folder for the weights' digest if it cannot be stored beside them
    tell     gets a line if a stored file is stale, and on whether it could be made again
    Raises ConfigError, or CheckpointError with the name of the tensor that is unknown, missing or misshapen.
    """
    form = _Form(dtype, packed, bits, eyes, made)
    try:
        return _Loader(Path(path), ctx, scope, form).load_all(progress, aside, tell or (lambda line: None))
    except WeightsError as error:
        raise CheckpointError(f"{path}: {error}") from error


def prepare_weights(
    path: str | Path, dtype: torch.dtype, bits: int | None, eyes: bool, aside: Path | None, tell: Tell,
    made: str | None = None,
) -> bool:  # fmt: skip
    """Store the weights in the form of a processor's engine, or where `made` names one of a GPU's, beside the model;
    `tell` gets a line on the outcome.

    Returns whether such a file exists now, or would not be worth it. Raises as `load_weights` does.
    """
    form = _Form(dtype, made is not None, bits, eyes, made)
    loader = _Loader(Path(path), ExecContext("cpu"), "llm", form)
    if not loader.prepared(tell).worth_it:
        return True
    try:
        loader.load_all(None, aside, tell, keep=True)
    except WeightsError as error:
        raise CheckpointError(f"{path}: {error}") from error
    return loader.prepared(tell).path.exists()


def save_checkpoint(
    directory: str | Path, config: LLMConfig, params: Mapping[str, Tensor], dtype: torch.dtype = torch.bfloat16
) -> None:
    """Write config.json and model.safetensors in the text-only published layout.

    params  by published name, all of them and no others; A_log and gated norms are stored as float32
    Raises CheckpointError for names or shapes that the config does not have.
    """
    shapes = published_shapes(config, draft=any(name.startswith("mtp.") for name in params))
    wrong = sorted(shapes.keys() ^ params.keys())
    wrong += [name for name in shapes.keys() & params.keys() if tuple(params[name].shape) != shapes[name]]
    if wrong:
        raise CheckpointError(f"parameters do not fit the config: {', '.join(wrong[:5])}")
    stored = {
        name: value.detach().to("cpu", torch.float32 if name.endswith(_FLOAT32) else dtype).contiguous()
        for name, value in params.items()
    }
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config.to_json(), indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class _Form:
    """The form in which matrices are held."""

    dtype: torch.dtype
    packed: bool
    bits: int | None
    eyes: bool
    made: str | None = None

    def __str__(self) -> str:
        """The form as it appears in the name of a stored file."""
        held = f"int{self.bits}" if self.bits else str(self.dtype).removeprefix("torch.")
        held = f"gpu-{self.made}" if self.made else held
        return f"{held}-eyes" if self.eyes else held


class _Loader:
    """One load: the contents of the files, the needs of the network, and how they meet."""

    def __init__(self, path: Path, ctx: ExecContext, scope: str, form: _Form) -> None:
        self.path, self.ctx, self.scope, self.form = path, ctx, scope, form
        self.published = open_published(path)
        self.names, config = self.published.names, self.published.config
        self.prefix = self._prefix()
        self.head = next((n for n in ("lm_head.weight", "language_model.lm_head.weight") if n in self.names), None)
        tied = self.head is None if config.tie_word_embeddings is None else config.tie_word_embeddings
        self.config = replace(config, tie_word_embeddings=tied)
        self.plan: dict[str, Target | Sequence[Target]] = {}
        self.quantised = QuantisedMatrices(path, self.names, config.quantisation)
        self.kept: Mapping[str, Tensor] | None = None
        self.held: dict[str, Tensor] = {}  # tensors that a file could store, by the engine's names, contiguous

    def load_all(
        self, progress: Callable[[Progress], None] | None, aside: Path | None, tell: Tell, keep: bool = False
    ) -> LoadedWeights:
        """keep  store the loaded weights even if no older file asks for it"""
        wanted = parts(self.config)
        before = stamps(self.published.files)
        prepared = self.prepared(tell)
        keep = self._may_keep() and (keep or prepared.path.exists())
        digest = self.published.digest(aside) if keep else None
        kept = prepared.open_kept(digest, self._like(wanted)) if digest is not None else None
        if maps(self.ctx.device):
            self.kept = kept
        with self.ctx.placing():
            made = {part.name: self._place(part) for part in wanted}
        if self.config.rope_stretch:
            stretch = torch.tensor(self.config.rope_stretch, device=self.ctx.device)
            made["stretch"] = self.ctx.adopt(f"{self.scope}.w.stretch", stretch, role=Role.WEIGHT).tensor
        with self.ctx.placing():
            tower = self._place_tower() if self.form.eyes else None
        if kept is not None:
            prepared.take_over(kept, self.held, self.ctx.fixed)  # none where they are mapped
        else:
            self._read_scales(wanted)
            for part in wanted:
                self._plan(part, made[part.name])
            self.published.fill(self.plan, self._left_out(tower), progress)
        left_out = self._left_out(tower)
        beside = self.quantised.left_out()
        skipped = tuple(n for n in self.names if _is_left_out(n, left_out) and not _is_left_out(n, beside))
        if digest is not None and kept is None:
            prepared.write_file(digest, before, self.held)
        digest = digest or self.published.digest(aside)
        model = ModelWeights.gather(self.config, made.__getitem__)
        return LoadedWeights(self.config, model, digest, skipped, tower)

    def prepared(self, tell: Tell) -> PreparedWeights:
        eyes = VisionConfig.read(self.path) if self.form.eyes and self.published.files else None
        configs = repr((self.config, eyes))
        return PreparedWeights(self.path, str(self.form), _LAYOUT, configs, tell)

    def _left_out(self, tower: "LoadedTower | None") -> list[str]:
        """Names and patterns of tensors that the network does not use."""
        names = [*self.quantised.left_out(), DRAFT, *(VISION if tower is None else ())]
        return names + ([self.head] if self.config.tie_word_embeddings and self.head is not None else [])

    # ------------------------------------------------------------------ stored beside the model

    def _may_keep(self) -> bool:
        """Whether to store a file: what is not packed while loading streams to a GPU at the disk's speed already."""
        plain = not self.form.packed and self.ctx.device.type == "cpu"
        return bool(self.published.files) and (plain or self.form.made is not None)

    def _like(self, wanted: tuple[Part, ...]) -> dict[str, Tensor]:
        """Tensors that a file could store, as memory that is never touched."""
        plain = copy(self)
        plain.ctx, plain.plan, plain.held = ExecContext("cpu"), {}, {}
        for part in wanted:
            plain._place(part)
        if self.form.eyes:
            plain._place_tower()
        return plain.held

    def _memory(self, name: str, like: Tensor) -> Tensor:
        """Memory for one of the engine's tensors: stored memory of the same order, or `like` itself, not filled yet."""
        straight = like.is_contiguous()
        if self.kept is not None:
            return self.kept[name] if straight else self.kept[name].t()
        self.held[name] = like if straight else like.t()
        return like

    # ------------------------------------------------------------------------ the network's tensors

    def _place_tower(self) -> LoadedTower | None:
        config = VisionConfig.read(self.path) if self.published.files else None
        if config is None or tower_prefix(self.names) is None:
            return None
        check_tower(self.path, config, self.config.hidden_size, self.config.image_token)

        def allocate(part: TowerPart) -> Tensor:
            dtype = self.form.dtype if part.matrix else torch.float32
            memory = self._memory(f"eyes.{part.name}", _empty(part.shape, dtype, self.ctx.device, part.matrix))
            return self.ctx.adopt(f"{eyes_scope(self.scope)}.w.{part.name}", memory).tensor

        weights, plan = place_tower(self.path, self.names, config, allocate)
        self.plan |= plan
        return LoadedTower(config, weights)

    def _prefix(self) -> str:
        for prefix in PREFIXES:
            if prefix + "embed_tokens.weight" in self.names:
                return prefix
        raise CheckpointError(
            f"{self.path}: no embed_tokens.weight under any known prefix ({', '.join(PREFIXES)}); "
            f"the files begin with {', '.join(sorted(self.names)[:3])}"
        )

    def _full(self, source: str) -> str:
        if source == "lm_head.weight" and self.head is not None:
            return self.head
        return text_only(source, self.prefix)

    def _read_scales(self, wanted: tuple[Part, ...]) -> None:
        plan: dict[str, Target] = {}
        for part in wanted:
            for source, shape in part.sources if part.kind is Kind.MATRIX else ():
                plan |= self.quantised.plan_scales(self._full(source), shape, self.ctx.device)
        if plan:
            self.published.fill(plan, ("*",), None)

    def _place(self, part: Part) -> Any:
        """Memory for one tensor of the network."""
        held = tuple(self._held(self._full(source)) for source, _ in part.sources)
        form = packed_form(part, self.form.bits, held)
        if form is not None:
            values, scale = form.shapes(part.shape[0], part.shape[1])
            return PanelWeight(
                self._weight(part.name, values, torch.uint8),
                self._weight(f"{part.name}.scale", scale, torch.bfloat16),
                torch.Size(part.shape),
            )
        stored = self._packed_as(part)
        shifted = any(one.shifted for one in held)
        if stored is not None:
            return self._place_packed(part, stored, self.quantised.block(part.shape), shifted)
        made = made_as(part, self.form.made or (KEPT if self.form.packed else None), held)
        if made is not None:
            return self._place_packed(part, made, FP8_BLOCK if made == "fp8" else (1, GROUP), shifted)
        matrix = part.kind is Kind.MATRIX
        dtype = self.form.dtype if matrix else torch.float32
        return self._weight(part.name, part.shape, dtype, matrix and part.stack == 1)  # experts are read one by one

    def _plan(self, part: Part, whole: Weight) -> None:
        """Plan how the files fill it."""
        if isinstance(whole, Fp8Weight | Int4Weight) and self._packed_as(part) is not None:
            self._plan_packed(part, whole)
            return
        row = 0
        for source, shape in part.sources:
            name, rows = self._full(source), slice(row, row + shape[0])
            row += shape[0]
            if isinstance(whole, PanelWeight | Fp8Weight | Int4Weight):
                self._plan_filled(name, whole[rows], shape)
                continue
            assert isinstance(whole, Tensor)
            if part.kind is Kind.MATRIX:
                self._plan_matrix(name, whole[rows], shape)
            else:
                view = whole if part.kind is Kind.CONV else whole[rows]
                self.plan[name] = Target(view, shape=shape, transform=_Prepare(part.kind), accept=_FLOATS)

    def _packed_as(self, part: Part) -> str | None:
        """The published form in which a matrix stays packed, or None. Exact parts are unpacked once, for kernels that
        read them as they are."""
        if not self.form.packed or part.exact:
            return None
        stored = {self.quantised.stored_as(self._full(source)) for source, _ in part.sources}
        if stored in ({FP8}, {INT4}) and self._joinable(part):
            return stored.pop()
        return None

    def _plan_filled(self, name: str, target: "_Filled", shape: tuple[int, ...]) -> None:
        """Plan a matrix packed some rows at a time; one that is stored packed is filled at once."""
        kept = not isinstance(target, Fp8Weight) and kept_in(self._held(name), _bits(target))
        if self.quantised.stored_as(name) == PLAIN:
            edge = max(PANEL, FP8_BLOCK[0]) if isinstance(target, Fp8Weight) else PANEL
            strips = packing(target, shape, edge, _FLOATS)
            if kept:
                assert not isinstance(target, Fp8Weight)
                strips = [replace(one, transform=_Refill(target, self.published, name, one.rows)) for one in strips]
            self.plan[name] = strips
            return
        unpack = self.quantised.unpacking(name)
        fill: Callable[[Tensor], Tensor] = target.fill
        if kept and not isinstance(target, Fp8Weight):
            fill = partial(target.fill, known=self.quantised.known(name))
        key, stored_shape, kind = self.quantised.values(name, shape)
        self.plan[key] = Target(target.values, shape=stored_shape, accept=(kind,), transform=lambda v: fill(unpack(v)))

    def _held(self, name: str) -> Stored:
        """The precision of a matrix in the files."""
        plain = self.quantised.stored_as(name) == PLAIN
        return self.published.stored(name) if plain else self.quantised.held(name)

    def _plan_matrix(self, name: str, view: Tensor, shape: tuple[int, ...]) -> None:
        if self.quantised.stored_as(name) == PLAIN:
            self.plan[name] = Target(view)
            return
        key, stored_shape, kind = self.quantised.values(name, shape)
        self.plan[key] = Target(view, shape=stored_shape, accept=(kind,), transform=self.quantised.unpacking(name))

    def _joinable(self, part: Part) -> bool:
        """Whether the scales of joined matrices line up: all but the last must end at a block's edge."""
        return all(shape[0] % self.quantised.block(shape)[0] == 0 for _, shape in part.sources[:-1])

    def _place_packed(self, part: Part, form: str, block: tuple[int, int], shifted: bool) -> Weight:
        rows, columns = part.shape
        scale = self._weight(f"{part.name}.scale", blocks(part.shape, block), self._scale_type(part, form))
        if form == FP8:
            return Fp8Weight(self._weight(part.name, (rows, columns), torch.float8_e4m3fn), scale, block)
        shift = self._weight(f"{part.name}.shift", tuple(scale.shape), torch.bfloat16) if shifted else None
        return Int4Weight(self._weight(part.name, (rows, columns // 8), torch.int32), scale, shift)

    def _scale_type(self, part: Part, form: str) -> torch.dtype:
        """Published scales of four bits keep their type, if it is one; those made here need no more than bfloat16."""
        if form == FP8:
            return torch.float32
        if self._packed_as(part) is None:
            return torch.bfloat16
        found = {self.quantised.scale_type(self._full(source)) for source, _ in part.sources}
        return found.pop() if len(found) == 1 else torch.float32

    def _plan_packed(self, part: Part, whole: Fp8Weight | Int4Weight) -> None:
        names = [self._full(source) for source, _ in part.sources]
        whole.scale.copy_(torch.cat([self.quantised.scale(name) for name in names]))
        if isinstance(whole, Int4Weight) and whole.shift is not None:
            shifts = [(self.quantised.shift(name), self.quantised.scale(name)) for name in names]
            whole.shift.copy_(torch.cat([torch.zeros_like(like) if one is None else one for one, like in shifts]))
        row = 0
        for name, (_, shape) in zip(names, part.sources, strict=True):
            self.plan[self.quantised.values(name, shape)[0]] = Target(whole.values[row : row + shape[0]])
            row += shape[0]

    def _weight(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, matrix: bool = False) -> Tensor:
        memory = self._memory(name, _empty(shape, dtype, self.ctx.device, matrix))
        return self.ctx.adopt(f"{self.scope}.w.{name}", memory, role=Role.WEIGHT).tensor


_Filled = PanelWeight | Fp8Weight | Int4Weight
"""Matrices made at load time."""


def _bits(target: PanelWeight | Int4Weight) -> int:
    return target.bits if isinstance(target, PanelWeight) else 4


@dataclass(frozen=True)
class _Refill:
    """Rows of a published matrix in so few bits, into a form that keeps its values."""

    target: PanelWeight | Int4Weight
    published: Published
    name: str
    rows: slice | None

    def __call__(self, matrix: Tensor) -> Tensor:
        assert self.rows is not None
        return self.target[self.rows].fill(matrix, self.published.groups(self.name, self.rows))


def eyes_scope(scope: str) -> str:
    """The tower's scope, beside an engine's own."""
    return f"{scope}_eyes"


def _empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, matrix: bool) -> Tensor:
    """Memory to be filled; for a matrix in the order that `linear` reads fastest."""
    return empty_matrix(shape[0], shape[1], dtype, device) if matrix else torch.empty(shape, dtype=dtype, device=device)


def _is_left_out(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True)
class _Prepare:
    kind: Kind

    def __call__(self, stored: Tensor) -> Tensor:
        return prepare(self.kind, stored)
