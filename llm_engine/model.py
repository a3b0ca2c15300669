"""The network from embedding to logits, as pure arithmetic over given weights and state.

Three walks over the same blocks: `forward_chunk` (T rows with state, for prefill), `forward_step` (one row with state
in place, for decoding) and `forward_train` (whole sequences [B, T] without state, differentiable).

To train a model for this engine, keep its parameters under the published names and pass them in at every step:

    config = LLMConfig(vocab_size=2048, hidden_size=256, ...)
    params = init_params(config, torch.Generator().manual_seed(0))        # {"model.layers.0.mlp.up_proj.weight": ...}
    optimiser = torch.optim.AdamW([p.requires_grad_() for p in params.values()])
    logits = forward_train(config, params, ids)                           # [B, T, V]; dtype of the parameters
    save_checkpoint(directory, config, params, dtype=torch.bfloat16)      # from llm_engine.weights

The saved directory loads here and in transformers (with a tokenizer beside it). `torch.autocast` works around
`forward_train`; the delta rule stays in float32 even then.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from capsules.nn import (
    Cache,
    Span,
    Weight,
    add_norm,
    embed,
    gated_mlp,
    linear,
    rms_norm,
    rope_row,
    rope_table,
    wide_linear,
)
from llm_engine.config import FULL, LINEAR, PLAIN, LLMConfig
from llm_engine.experts import ExpertWeights, add_experts
from llm_engine.layers import (
    FullWeights,
    LinearWeights,
    PlainWeights,
    angles_of,
    attention,
    attention_whole,
    delta_chunk,
    delta_mixer,
    delta_step,
)
from llm_engine.names import Kind, parts, prepare, published_shapes, text_only

_MIXERS: Mapping[str, Any] = {LINEAR: LinearWeights, FULL: FullWeights, PLAIN: PlainWeights}


@dataclass(frozen=True)
class LayerWeights:
    """One block: norm, mixer, norm, feed-forward."""

    norm_in: Tensor  # [h] float32, ready to multiply with
    mixer: LinearWeights | FullWeights | PlainWeights
    norm_post: Tensor  # [h] float32
    gate_up: Weight  # [2 I, h]; in a mixture those of the shared expert
    down: Weight  # [h, I]
    experts: ExpertWeights | None = None


@dataclass(frozen=True)
class ModelWeights:
    """The whole network."""

    embed: Weight  # [V, h]
    layers: tuple[LayerWeights, ...]
    norm: Tensor  # [h] float32, 1 + w
    head: Weight  # [V, h]; the embedding itself if tied
    stretch: Tensor | None = None  # [rotary_dim / 2] float32, divisors of the rotary frequencies

    @classmethod
    def gather(cls, config: LLMConfig, get: Callable[[str], Tensor]) -> "ModelWeights":
        """From tensors by the names of `llm_engine.names.parts`, and "stretch" where the config has one."""

        def layer(index: int, kind: str) -> LayerWeights:
            name = f"layers.{index}"
            made = _MIXERS[kind]
            fields = set(made.__dataclass_fields__) - (set() if config.head_norms else {"q_norm", "k_norm"})
            mixer = made(**{field: get(f"{name}.mixer.{field}") for field in fields})
            norms = get(f"{name}.norm_in"), get(f"{name}.norm_post")
            dense = get(f"{name}.gate_up"), get(f"{name}.down")
            if not config.num_experts:
                return LayerWeights(norms[0], mixer, norms[1], *dense)
            each = {field: get(f"{name}.experts.{field}") for field in ExpertWeights.__dataclass_fields__}
            return LayerWeights(norms[0], mixer, norms[1], *dense, ExpertWeights(**each))

        embed = get("embed")
        layers = tuple(layer(index, kind) for index, kind in enumerate(config.layer_types))
        head = embed if config.tie_word_embeddings else get("head")
        return cls(embed, layers, get("norm"), head, get("stretch") if config.rope_stretch else None)


@dataclass(frozen=True)
class LayerState:
    """The result of one sequence's steps, as views of the engine's buffers.

    Linear layers have `window` [taps - 1, C] and `memory` [Hv, K, N] float32; full ones `keys`, `values` [S, G, D].
    """

    window: Tensor | None = None
    memory: Tensor | None = None
    keys: Tensor | None = None
    values: Tensor | None = None

    def cache(self, bucket: int) -> Cache:
        """The cache of a full layer."""
        assert self.keys is not None and self.values is not None
        return Cache(self.keys, self.values, bucket)


State = tuple[LayerState, ...]


@dataclass(frozen=True)
class ChunkRows:
    """The T rows of a prefill: tokens, or rows of pictures in their place."""

    ids: Tensor  # [T] int64, valid also at pictures
    axes: Tensor  # [3, T] int64, rotary positions: time, height, width
    pictured: Tensor  # [T] bool
    pictures: Tensor  # [T, h] in the embedding's type, read if `pictured`


def forward_chunk(
    weights: ModelWeights, config: LLMConfig, state: State, chunk: ChunkRows, start: Tensor, count: Tensor, bucket: int
) -> Tensor:
    """Fold a chunk into the state, in place.

    chunk    T rows, padded with anything valid
    start    [1] int64, index of the first row; T rows from there must lie inside the cache
    count    [1] int64, how many rows are real
    bucket   how many rows of the cache are read; at least start + T
    returns  [T, h], the residual stream after the last layer, before the final norm. Rows beyond count are meaningless.
    """
    span, y = Span(start, chunk.ids.shape[0]), None
    cos, sin = angles_of(chunk.axes, config, weights.stretch)
    x = torch.where(chunk.pictured[:, None], chunk.pictures, embed(chunk.ids, weights.embed))
    for layer, held in zip(weights.layers, state, strict=True):
        x, normed = add_norm(x, y, layer.norm_in, config.rms_norm_eps)
        if isinstance(layer.mixer, LinearWeights):
            assert held.window is not None and held.memory is not None
            y = delta_chunk(normed, layer.mixer, config, held.window, held.memory, count)
        else:
            y = attention(normed, layer.mixer, config, cos, sin, span, held.cache(bucket))
        x, y = _feed(x, y, layer, config)
    return x if y is None else x + y


def forward_step(
    weights: ModelWeights, config: LLMConfig, state: State, token: Tensor, position: Tensor, delta: Tensor, bucket: int
) -> Tensor:
    """Fold one token [1] at index `position` [1] into the state, in place; its rotary position is `delta` [1] more.

    Returns [1, h] before the final norm.
    """
    cos, sin = rope_row(position, delta, config.rotary_dim, config.rope_theta, weights.stretch)
    x, y, span = embed(token, weights.embed), None, Span(position, 1)
    for layer, held in zip(weights.layers, state, strict=True):
        x, normed = add_norm(x, y, layer.norm_in, config.rms_norm_eps)
        if isinstance(layer.mixer, LinearWeights):
            assert held.window is not None and held.memory is not None
            y = delta_step(normed, layer.mixer, config, held.window, held.memory)
        else:
            y = attention(normed, layer.mixer, config, cos, sin, span, held.cache(bucket))
        x, y = _feed(x, y, layer, config)
    return x if y is None else x + y


def logits_of(weights: ModelWeights, config: LLMConfig, x: Tensor) -> Tensor:
    """Final norm and head: [..., h] to [..., V] float32."""
    return wide_linear(rms_norm(x, weights.norm, config.rms_norm_eps), weights.head)


def forward_train(config: LLMConfig, params: Mapping[str, Tensor], ids: Tensor, wanted: Tensor | None = None) -> Tensor:
    """Logits [B, T, V] for ids [B, T], every sequence from position 0; differentiable in `params`.

    params  by published name, as from `init_params`. Logits come in the parameters' type (or autocast's).
    wanted  [B, T] bool: only the logits of these rows, [n, V] in their order
    """
    return forward_whole(assemble(config, params), config, ids, wanted)


def forward_whole(weights: ModelWeights, config: LLMConfig, ids: Tensor, wanted: Tensor | None = None) -> Tensor:
    """As `forward_train`, for tensors that are already joined."""
    lanes, rows = ids.shape
    positions = torch.arange(rows, device=ids.device).expand(lanes, rows)
    cos, sin = rope_table(positions, config.rotary_dim, config.rope_theta, weights.stretch)
    x = embed(ids, weights.embed)
    window = x.new_zeros(lanes, config.linear_conv_kernel_dim - 1, config.conv_dim)
    memory = torch.zeros(
        lanes, config.linear_num_value_heads, config.linear_key_head_dim, config.linear_value_head_dim, device=x.device
    )
    for layer in weights.layers:
        normed = rms_norm(x, layer.norm_in, config.rms_norm_eps)
        if isinstance(layer.mixer, LinearWeights):
            y, _, _ = delta_mixer(normed, layer.mixer, config, window, memory)
        else:
            y = attention_whole(normed, layer.mixer, config, positions, cos, sin)
        x = torch.add(*_feed(x, y, layer, config))
    if wanted is not None:
        x = x[wanted]
    return linear(rms_norm(x, weights.norm, config.rms_norm_eps), weights.head)


def assemble(config: LLMConfig, params: Mapping[str, Tensor]) -> ModelWeights:
    """The network's tensors from published ones, differentiably: joined matrices, 1 + w, -exp(A_log)."""
    joined = {
        part.name: prepare(part.kind, torch.cat([params[text_only(name)] for name, _ in part.sources]))
        for part in parts(config)
    }
    if config.rope_stretch:
        joined["stretch"] = torch.tensor(config.rope_stretch, device=joined["norm"].device)
    return ModelWeights.gather(config, joined.__getitem__)


def init_params(config: LLMConfig, generator: torch.Generator, deviation: float = 0.02) -> dict[str, Tensor]:
    """Fresh parameters by published name, float32, on the generator's device.

    Matrices are normal with `deviation` (those that write into the residual stream scaled down by sqrt(2 · layers)),
    norms neutral, decay rates spread over half-lives from about 1 to several hundred tokens.
    """
    kinds = {text_only(name): part.kind for part in parts(config) for name, _ in part.sources}
    device, params = generator.device, {}
    for name, shape in published_shapes(config).items():
        kind = kinds[name]
        if kind is Kind.MATRIX:
            narrow = name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight"))
            scale = deviation / math.sqrt(2 * len(config.layer_types)) if narrow else deviation
            value = torch.randn(shape, generator=generator, device=device) * scale
        elif kind is Kind.CONV:
            value = torch.randn(shape, generator=generator, device=device) / math.sqrt(shape[-1])
        elif kind is Kind.DECAY:
            value = torch.empty(shape, device=device).uniform_(1, 16, generator=generator).log()
        elif name.endswith("dt_bias"):
            span = math.log(1e-3), math.log(1e-1)
            step = torch.empty(shape, device=device).uniform_(*span, generator=generator).exp()
            value = step + torch.log(-torch.expm1(-step))  # the inverse of softplus
        elif kind is Kind.PLAIN:
            value = torch.ones(shape, device=device)
        else:
            value = torch.zeros(shape, device=device)
        params[name] = value
    return params


def _feed(x: Tensor, y: Tensor, layer: LayerWeights, config: LLMConfig) -> tuple[Tensor, Tensor]:
    """The residual stream with the mixer's y, and what the feed-forward block adds to it."""
    x, normed = add_norm(x, y, layer.norm_post, config.rms_norm_eps)
    dense = gated_mlp(normed, layer.gate_up, layer.down)
    if layer.experts is None:
        return x, dense
    return x, add_experts(dense, normed, layer.experts, config.num_experts_per_tok)
