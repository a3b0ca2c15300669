"""Every live buffer of the engine, declared once: nothing outside this file survives a step.

The token and the draw's parameters are IO: they belong to the caller, who may change the parameters between two tokens
and knows every token; a capsule stores both as host facts. The draw's only other input, the position, is state.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from capsules import ExecContext, Prefix, Role
from capsules.nn import SamplerBuffers
from llm_engine.config import LLMConfig
from llm_engine.grid import GRID
from llm_engine.model import LayerState, State
from llm_engine.sampling import Sampling


@dataclass(frozen=True)
class EngineState:
    """The closure (STATE), and the host's input (IO)."""

    layers: State
    recurrent: Tensor | None  # [linear layers, Hv, K, N] float32
    position: Tensor  # [1] int64, tokens and rows of pictures folded
    rope_delta: Tensor  # [1] int64, rotary position of the next token minus `position`
    logits: Tensor  # [V] float32, after the last folded token
    generated: Tensor  # [V] int32, how often the reply used each token since the last append
    seen: Tensor  # [V] bool, whether a token occurs at all
    token: Tensor  # [1] int64, the one to fold or the one just drawn; IO, like all below
    sampler: SamplerBuffers
    presence: Tensor  # [1] float32
    repetition: Tensor  # [1] float32
    seed: Tensor  # [1] int64
    barred: Tensor  # [V] bool, tokens that the next draw leaves out
    ids: Tensor  # [64] int64
    count: Tensor  # [1] int64, how many of the ids are real
    axes: Tensor  # [3, 64] int64, their rotary positions
    pictured: Tensor  # [64] bool, which of them are rows of pictures
    pictures: Tensor  # [64, h], these rows
    delta_after: Tensor  # [1] int64, `rope_delta` after them

    @classmethod
    def declare(
        cls, ctx: ExecContext, config: LLMConfig, dtype: torch.dtype, rows: int, scope: str = "llm"
    ) -> "EngineState":
        """rows: capacity of the KV buffer."""

        def state(name: str, shape: list[int], kind: torch.dtype, live: Prefix | None = None) -> Tensor:
            return ctx.buffer(f"{scope}.{name}", shape, kind, role=Role.STATE, live=live).tensor

        def io(name: str, kind: torch.dtype, *shape: int) -> Tensor:
            return ctx.buffer(f"{scope}.{name}", shape or (1,), kind, role=Role.IO).tensor

        linear, full = len(config.linear_layers), len(config.full_layers)
        recurrent = window = kv = None
        if linear:
            heads, key, value = config.linear_num_value_heads, config.linear_key_head_dim, config.linear_value_head_dim
            recurrent = state("recurrent", [linear, heads, key, value], torch.float32)
            window = state("window", [linear, config.linear_conv_kernel_dim - 1, config.conv_dim], dtype)
        if full:
            kv = state("kv", [full, 2, rows, config.num_key_value_heads, config.head_dim], dtype, Prefix(axis=2))
        return cls(
            layers=_by_layer(config, window, recurrent, kv),
            recurrent=recurrent,
            position=state("position", [1], torch.int64),
            rope_delta=state("rope_delta", [1], torch.int64),
            logits=state("logits", [config.vocab_size], torch.float32),
            token=io("token", torch.int64),
            generated=state("generated", [config.vocab_size], torch.int32),
            seen=state("seen", [config.vocab_size], torch.bool),
            sampler=SamplerBuffers(
                temperature=io("temperature", torch.float32),
                top_k=io("top_k", torch.int64),
                top_p=io("top_p", torch.float32),
                min_p=io("min_p", torch.float32),
            ),
            presence=io("presence", torch.float32),
            repetition=io("repetition", torch.float32),
            seed=io("seed", torch.int64),
            barred=io("barred", torch.bool, config.vocab_size),
            ids=io("ids", torch.int64, GRID),
            count=io("count", torch.int64),
            axes=io("axes", torch.int64, 3, GRID),
            pictured=io("pictured", torch.bool, GRID),
            pictures=io("pictures", dtype, GRID, config.hidden_size),
            delta_after=io("delta_after", torch.int64),
        )

    def probability(self, token: int) -> float:
        """The probability of `token` by the logits, at temperature 1."""
        return float(self.logits.softmax(-1)[token].item())

    def set_sampling(self, sampling: Sampling) -> None:
        """Write the parameters; the next draw reads them, and bars no token."""
        self.barred.zero_()
        self.sampler.temperature.fill_(sampling.temperature)
        self.sampler.top_k.fill_(sampling.top_k)
        self.sampler.top_p.fill_(sampling.top_p)
        self.sampler.min_p.fill_(sampling.min_p)
        self.presence.fill_(sampling.presence_penalty)
        self.repetition.fill_(sampling.repetition_penalty)
        self.seed.fill_((sampling.seed + 2**63) % 2**64 - 2**63)  # any integer, as 64 bits


def _by_layer(config: LLMConfig, window: Tensor | None, recurrent: Tensor | None, kv: Tensor | None) -> State:
    """Each layer's views, in the order of the network."""
    layers = []
    for index in range(len(config.layer_types)):
        if index in config.linear_layers:
            assert window is not None and recurrent is not None
            at = config.linear_layers.index(index)
            layers.append(LayerState(window=window[at], memory=recurrent[at]))
        else:
            assert kv is not None
            at = config.full_layers.index(index)
            layers.append(LayerState(keys=kv[at, 0], values=kv[at, 1]))
    return tuple(layers)
