"""The published tensors that make up each tensor of the network, with shapes: one table for loading and training.

Neighbouring projections of the same input are joined into one matrix by rows, so that a decode step reads its input
once. Published names are given as in a text-only save, without its prefix `model.`; the head and the draft block have
no prefix in any layout.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from capsules.nn.groups import GROUP
from capsules.nn.panels import FORMS, PANEL, PanelForm
from llm_engine.config import FULL, LINEAR, LLMConfig

DRAFT = "mtp.*"
"""The block that drafts tokens ahead. No step runs it: it is not loaded, not planned for and not in the digest."""


class Kind(StrEnum):
    """The conversion of a tensor at load time."""

    MATRIX = "matrix"  # as stored, in the model's type; may be quantised
    CENTRED = "centred"  # norm weight stored around zero: 1 + w in float32
    PLAIN = "plain"  # float32
    DECAY = "decay"  # A_log: -exp(w) in float32
    CONV = "conv"  # [C, 1, taps] to [taps, C] float32


@dataclass(frozen=True)
class Part:
    """One tensor of the network; its sources follow each other along axis 0.

    stack  how many matrices of equal size it holds, one below the other: the experts of a layer
    """

    name: str
    kind: Kind
    sources: tuple[tuple[str, tuple[int, ...]], ...]
    stack: int = 1

    @property
    def exact(self) -> bool:
        """Whether it is never packed: small, and it decides how much is forgotten or which experts are asked."""
        return self.kind is not Kind.MATRIX or self.name.endswith((".ba", ".router"))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as the network holds it."""
        rows = sum(shape[0] for _, shape in self.sources)
        first = self.sources[0][1]
        return (first[-1], rows) if self.kind is Kind.CONV else (rows, *first[1:])


@dataclass(frozen=True)
class Stored:
    """The precision in which a file holds a matrix.

    grouped  groups of 32 inputs have one scale, so that a packed form of as many bits can hold the very values
    shifted  they have a minimum or a zero point, too
    """

    bits: int = 16
    grouped: bool = False
    shifted: bool = False


def packed_form(part: Part, bits: int | None, stored: Sequence[Stored] = ()) -> PanelForm | None:
    """The form of a tensor after packing to `bits` for a processor; None if it stays as it is.

    Embedding and head keep eight: packing them costs agreement before anything else does. Parts of a joined matrix
    that do not end at a panel's edge cannot be filled one after the other.

    stored  of the sources. Published values of four bits stay as they are, and those of five to eight keep eight where
            eight are wanted. Those of five and six do even in four: a file of four bits holds with them what needs them
    """
    fits = all(shape[0] % PANEL == 0 for _, shape in part.sources[:-1])
    if bits is None or part.exact or not fits:
        return None
    wanted, most = 8 if part.name in ("embed", "head") else bits, max((s.bits for s in stored), default=16)
    held = 4 if most == 4 or (wanted == 4 and most > 6) else 8
    known = [s for s in stored if kept_in(s, held)]
    return PanelForm(held, GROUP, any(s.shifted for s in known)) if known else FORMS[held]


def kept_in(stored: Stored, bits: int) -> bool:
    """Whether a packed form of so many bits holds the very values."""
    return stored.grouped and stored.bits <= bits


FP8_BLOCK = (32, 128)
"""Block size of matrices made this way; published files have their own."""


KEPT = "kept"
"""Only published values of four bits stay packed."""


def made_as(part: Part, form: str | None, stored: Sequence[Stored] = ()) -> str | None:
    """The form of a matrix on a GPU when matrices are made "fp8", "int4" or KEPT at load time; None: unchanged.
    Embedding and head keep twice the bits of the others, and exact parts all, as in `packed_form`.

    stored  of the sources. Published values of four bits stay as they are, and those of five and six become FP8
    """
    if form is None or part.exact:
        return None
    if part.name in ("embed", "head"):
        return "fp8" if form == "int4" else None
    if stored and all(kept_in(s, 4) for s in stored):
        return "int4"
    if form == KEPT:
        return None
    finer = any(4 < s.bits <= 6 for s in stored)
    if form == "int4" and part.shape[1] % GROUP == 0 and not finer:
        return form
    return "fp8" if all(shape[0] % FP8_BLOCK[0] == 0 for _, shape in part.sources[:-1]) else None


def prepare(kind: Kind, stored: Tensor) -> Tensor:
    """The form that the arithmetic needs, differentiably. Widening to float32 keeps every stored bit."""
    if kind is Kind.MATRIX:
        return stored
    if kind is Kind.CENTRED:
        return 1.0 + stored.float()
    if kind is Kind.DECAY:
        return -torch.exp(stored.float())
    if kind is Kind.CONV:
        return stored.float().squeeze(1).t().contiguous()
    return stored.float()


def parts(config: LLMConfig, draft: bool = False) -> tuple[Part, ...]:
    """Every tensor of the network in the order of computation; `draft` adds the multi-token-prediction block."""
    vocabulary, hidden = config.vocab_size, config.hidden_size
    found = [Part("embed", Kind.MATRIX, (("embed_tokens.weight", (vocabulary, hidden)),))]
    for index, kind in enumerate(config.layer_types):
        found += _layer(config, f"layers.{index}", f"layers.{index}", kind)
    found.append(Part("norm", _norms(config), (("norm.weight", (hidden,)),)))
    if not config.tie_word_embeddings:
        found.append(Part("head", Kind.MATRIX, (("lm_head.weight", (vocabulary, hidden)),)))
    if draft:
        found.append(Part("mtp.fc", Kind.MATRIX, (("mtp.fc.weight", (hidden, 2 * hidden)),)))
        for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
            found.append(Part(f"mtp.{name}", _norms(config), ((f"mtp.{name}.weight", (hidden,)),)))
        for index in range(config.mtp_layers):
            found += _layer(config, f"mtp.layers.{index}", f"mtp.layers.{index}", FULL)
    return tuple(found)


def published_shapes(config: LLMConfig, draft: bool = False) -> dict[str, tuple[int, ...]]:
    """Name to shape of every tensor of a text-only checkpoint (names with the prefix `model.`)."""
    return {text_only(name): shape for part in parts(config, draft) for name, shape in part.sources}


def text_only(name: str, prefix: str = "model.") -> str:
    """The full name of a source under a prefix."""
    return name if name.startswith(("lm_head.", "mtp.")) else prefix + name


def _norms(config: LLMConfig) -> Kind:
    return Kind.CENTRED if config.centred_norms else Kind.PLAIN


def _layer(config: LLMConfig, name: str, source: str, layer: str) -> list[Part]:
    hidden, norm = config.hidden_size, _norms(config)

    def part(to: str, kind: Kind, *sources: tuple[str, tuple[int, ...]], stack: int = 1) -> Part:
        return Part(f"{name}.{to}", kind, tuple((f"{source}.{tail}", shape) for tail, shape in sources), stack)

    if layer == LINEAR:
        values, heads = config.value_dim, config.linear_num_value_heads
        mixer = [
            part("mixer.qkvz", Kind.MATRIX,
                 ("linear_attn.in_proj_qkv.weight", (config.conv_dim, hidden)),
                 ("linear_attn.in_proj_z.weight", (values, hidden))),
            part("mixer.ba", Kind.MATRIX,
                 ("linear_attn.in_proj_b.weight", (heads, hidden)), ("linear_attn.in_proj_a.weight", (heads, hidden))),
            part("mixer.conv", Kind.CONV,
                 ("linear_attn.conv1d.weight", (config.conv_dim, 1, config.linear_conv_kernel_dim))),
            part("mixer.decay", Kind.DECAY, ("linear_attn.A_log", (heads,))),
            part("mixer.dt_bias", Kind.PLAIN, ("linear_attn.dt_bias", (heads,))),
            part("mixer.norm", Kind.PLAIN, ("linear_attn.norm.weight", (config.linear_value_head_dim,))),
            part("mixer.out", Kind.MATRIX, ("linear_attn.out_proj.weight", (hidden, values))),
        ]  # fmt: skip
    else:
        size = config.head_dim
        q, kv = config.num_attention_heads * size, config.num_key_value_heads * size
        mixer = [
            part("mixer.qkv", Kind.MATRIX, ("self_attn.q_proj.weight", (2 * q if layer == FULL else q, hidden)),
                 ("self_attn.k_proj.weight", (kv, hidden)), ("self_attn.v_proj.weight", (kv, hidden))),
            part("mixer.out", Kind.MATRIX, ("self_attn.o_proj.weight", (hidden, q))),
        ]  # fmt: skip
        if config.head_norms:
            mixer[1:1] = [
                part(f"mixer.{one}_norm", norm, (f"self_attn.{one}_norm.weight", (size,))) for one in ("q", "k")
            ]
    return [
        part("norm_in", norm, ("input_layernorm.weight", (hidden,))),
        *mixer,
        part("norm_post", norm, ("post_attention_layernorm.weight", (hidden,))),
        *_feed(config, part),
    ]


def _feed(config: LLMConfig, part: Callable[..., Part]) -> list[Part]:
    """The dense block; in a mixture the shared expert is one, and experts and their router stand beside it.

    Experts are named apart, as quantised files and GGUF have them; stacked ones are read by the same names
    (`published.py`).
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    dense = "mlp.shared_expert" if config.num_experts else "mlp"
    found = [
        part("gate_up", Kind.MATRIX,
             (f"{dense}.gate_proj.weight", (inner, hidden)), (f"{dense}.up_proj.weight", (inner, hidden))),
        part("down", Kind.MATRIX, (f"{dense}.down_proj.weight", (hidden, inner))),
    ]  # fmt: skip
    if not config.num_experts:
        return found
    size, each = config.moe_intermediate_size, range(config.num_experts)
    opened = [(f"mlp.experts.{e}.{way}_proj.weight", (size, hidden)) for e in each for way in ("gate", "up")]
    closed = [(f"mlp.experts.{e}.down_proj.weight", (hidden, size)) for e in each]
    return [
        *found,
        part("experts.router", Kind.MATRIX,
             ("mlp.gate.weight", (len(each), hidden)), ("mlp.shared_expert_gate.weight", (1, hidden))),
        part("experts.gate_up", Kind.MATRIX, *opened, stack=len(each)),
        part("experts.down", Kind.MATRIX, *closed, stack=len(each)),
    ]  # fmt: skip
