"""Plain decoders and mixtures with every switch on, their kernels in Triton's interpreter, against every switch off.

Run as its own process with TRITON_INTERPRET=1, or on a card with the argument "cuda". Prints one JSON line of error
ratios: logits of a chunk, then of a step behind it.
"""

import json
from dataclasses import replace
from unittest import mock

import torch
from torch import Tensor

from capsules import ExecContext
from capsules.exec.switches import ALL, Switch, switched
from capsules.nn import Weight
from capsules.nn.fp8 import Fp8Weight, quantise_fp8
from capsules.nn.int4 import Int4Weight, quantise_int4
from capsules.nn.kernels import gemv, packed_row
from llm_engine import experts_kernel
from llm_engine.config import FULL, LINEAR, PLAIN, LLMConfig
from llm_engine.model import (
    ChunkRows,
    LayerWeights,
    ModelWeights,
    assemble,
    forward_chunk,
    forward_step,
    init_params,
    logits_of,
)
from llm_engine.state import EngineState
from tests.capsules.interpreted_kernels import on_device, ratio
from tests.llm_engine.interpreted_laws import OPERATORS

LLAMA = LLMConfig(
    vocab_size=40, hidden_size=32, intermediate_size=32, layer_types=(PLAIN,), num_attention_heads=4,
    num_key_value_heads=2, head_dim=16, partial_rotary_factor=1.0, rope_theta=1e4, tie_word_embeddings=False,
    centred_norms=False, head_norms=False, rope_stretch=(1.0, 1.0, 1.5, 2.0, 2.0, 4.0, 8.0, 8.0),
)  # fmt: skip
QWEN3 = replace(LLAMA, head_norms=True, tie_word_embeddings=True, rope_stretch=None)
MIXTURE = LLMConfig(
    vocab_size=40, hidden_size=32, intermediate_size=32, layer_types=(LINEAR, FULL), num_attention_heads=2,
    num_key_value_heads=1, head_dim=16, linear_num_key_heads=1, linear_num_value_heads=2, linear_key_head_dim=16,
    linear_value_head_dim=16, tie_word_embeddings=True, num_experts=3, num_experts_per_tok=2, moe_intermediate_size=32,
)  # fmt: skip
WALKS = (("llama", LLAMA, "int4"), ("qwen3", QWEN3, "fp8"), ("mixture", MIXTURE, "plain"))
MORE = [
    (gemv.gemv_fp8, gemv.launch_gemv_fp8), (gemv.gemv_int4, gemv.launch_gemv_int4),
    (packed_row.packed_row, lambda x, w, scale, rows, columns, *rest, **named: packed_row.launch_packed_row(
        x, w, scale, (rows, columns), *rest, **named)), (experts_kernel.asked, experts_kernel.launch_asked),
    (experts_kernel.choose, experts_kernel.launch_choose), (experts_kernel.join, experts_kernel.launch_join),
]  # fmt: skip
IDS = torch.randint(0, 40, (6,), generator=torch.Generator().manual_seed(5))
CHUNK, ROWS = 5, 64


def packed(matrix: Weight, form: str) -> Weight:
    assert isinstance(matrix, Tensor)
    if form == "int4":
        return Int4Weight(*quantise_int4(matrix))
    return Fp8Weight(*quantise_fp8(matrix, (32, 32)), (32, 32)) if form == "fp8" else matrix.contiguous()


def in_form(weights: ModelWeights, form: str) -> ModelWeights:
    def layer(one: LayerWeights) -> LayerWeights:
        mixer = replace(one.mixer, out=packed(one.mixer.out, form))
        experts = one.experts and replace(
            one.experts, gate_up=packed(one.experts.gate_up, form), down=packed(one.experts.down, form)
        )
        return replace(
            one, mixer=mixer, gate_up=packed(one.gate_up, form), down=packed(one.down, form), experts=experts
        )

    return replace(weights, layers=tuple(layer(one) for one in weights.layers))


def walk(weights: ModelWeights, config: LLMConfig, device: str, on: frozenset[Switch]) -> list[Tensor]:
    """Logits after a chunk and after a step behind it."""
    ctx, ids = ExecContext(device), IDS.to(device)
    state = EngineState.declare(ctx, config, torch.float32, ROWS)
    rows = ChunkRows(ids[:CHUNK], torch.arange(CHUNK).expand(3, -1).contiguous(), torch.zeros(CHUNK, dtype=torch.bool),
                     state.pictures[:CHUNK])  # fmt: skip
    place = torch.tensor([CHUNK])
    with switched(on):
        x = forward_chunk(weights, config, state.layers, rows, state.position, place, ROWS)
        y = forward_step(weights, config, state.layers, ids[CHUNK:], place, torch.zeros_like(place), ROWS)
        return [logits_of(weights, config, x[-1:]), logits_of(weights, config, y)]


def main() -> None:
    found: dict[str, float] = {}
    device = torch.get_default_device().type
    for name, config, form in WALKS:
        params = init_params(config, torch.Generator().manual_seed(0), 0.15)
        weights = in_form(assemble(config, {one: tensor.to(device) for one, tensor in params.items()}), form)
        off = walk(weights, config, device, frozenset())
        with mock.patch("capsules.nn.kernels.fits", lambda x: True):
            on = walk(weights, config, device, ALL)
        for case, got, want in zip(("chunk", "step"), on, off, strict=True):
            found[f"{name}, {form}: {case}"] = ratio(got, want)
    print(json.dumps(found))


if __name__ == "__main__":
    with on_device():
        if torch.get_default_device().type == "cpu":
            for operator, launcher in (*OPERATORS, *MORE):
                operator.register_kernel("cpu", launcher)
        main()
