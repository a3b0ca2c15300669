"""A whole small engine with every switch on, its kernels in Triton's interpreter: the laws bit for bit, and parity.

Run as its own process with TRITON_INTERPRET=1. The operators get their launchers as processor kernels, so the engine
captures and replays them as on a card. Prints one JSON line: 0 where a law holds, an error ratio for parity.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor

from capsules import ExecContext
from capsules.exec.switches import ALL, PROVEN, switched
from capsules.nn.kernels import angles, attention, chunk_attention, draw, gemv, heads, norm, residual
from llm_engine import HybridLLM, Sampling, delta_kernel, delta_row, delta_rows
from llm_engine.config import FULL, LINEAR, LLMConfig
from llm_engine.model import init_params
from llm_engine.weights import save_checkpoint
from tests.capsules.interpreted_kernels import ratio

CONFIG = LLMConfig(
    vocab_size=96, hidden_size=48, intermediate_size=40, layer_types=(LINEAR, FULL), num_attention_heads=2,
    num_key_value_heads=1, head_dim=32, linear_num_key_heads=1, linear_num_value_heads=2, linear_key_head_dim=16,
    linear_value_head_dim=16, tie_word_embeddings=True,
)  # fmt: skip
OPERATORS = [
    (angles.angles, angles.launch_angles), (attention.decode_attention, attention.launch_decode_attention),
    (chunk_attention.chunk_attention, chunk_attention.launch_chunk_attention), (draw.draw, draw.launch_draw),
    (draw.penalise, draw.launch_penalise), (gemv.gemv, gemv.launch_gemv), (heads.heads, heads.launch_heads),
    (norm.rms_norm, norm.launch_rms_norm), (norm.norm_rotate, norm.launch_norm_rotate),
    (norm.swiglu, norm.launch_swiglu), (residual.add_norm, residual.launch_add_norm),
    (delta_kernel.delta_step_op, delta_kernel.launch_delta_step), (delta_row.delta_row, delta_row.launch_delta_row),
    (delta_rows.delta_rows, delta_rows.launch_delta_rows),
]  # fmt: skip
IDS = torch.randint(0, 96, (150,), generator=torch.Generator().manual_seed(3)).tolist()
WARM = Sampling(temperature=0.9, top_k=40, top_p=0.95, min_p=0.01, presence_penalty=1.0, repetition_penalty=1.1, seed=7)


@contextmanager
def interpreted_card() -> Iterator[ExecContext]:
    """A processor that takes every kernel that a card with all switches on takes, its matrices as they lie there."""
    with (
        mock.patch("capsules.nn.kernels.fits", lambda x: True),
        mock.patch("capsules.exec.context.switched", lambda on: switched(ALL)),
        mock.patch("llm_engine.weights.empty_matrix", lambda o, i, dtype, device: torch.empty(o, i, dtype=dtype)),
    ):
        ctx = ExecContext("cpu")
        ctx.switches = ALL
        yield ctx


def load(folder: Path, ctx: ExecContext) -> HybridLLM:
    return HybridLLM.load(folder, ctx, max_positions=256, checkpoint_every=4)


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> float:
    return float(any(not torch.equal(left[name], right[name]) for name in left))


def state(llm: HybridLLM) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in llm.snapshot().tensors.items()}


def laws(llm: HybridLLM, cold: dict[str, Tensor], found: dict[str, float]) -> None:
    """`cold`: the state after 70 tokens from nothing."""
    llm.append(IDS[:20])
    llm.decode(2, WARM)
    kept = llm.snapshot("here")
    said, after = llm.decode(2), state(llm)
    llm.reset()
    llm.append(IDS[80:85])
    llm.restore(kept)
    found["restore goes on as if never left"] = float(llm.decode(2) != said) + same(state(llm), after)
    llm.rollback(21)
    back = state(llm)
    llm.reset()
    llm.append(IDS[:20])
    llm.follow(kept.tokens[20:21])
    found["rollback is never having gone on"] = same(state(llm), back)
    llm.reset()
    llm.append(IDS[:64])
    cell = llm.snapshot("a cell")
    llm.append(IDS[90:95])
    llm.restore(cell)
    llm.append(IDS[64:70])
    found["restore and append is a cold run"] = same(state(llm), cold)


def main() -> None:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        params = init_params(CONFIG, torch.Generator().manual_seed(0), deviation=0.15)
        save_checkpoint(folder, CONFIG, params, dtype=torch.float32)
        assert not PROVEN
        plain = load(Path(folder), ExecContext("cpu"))
        with interpreted_card() as ctx:
            for operator, launcher in OPERATORS:
                operator.register_kernel("cpu", launcher)
            ours = load(Path(folder), ctx)
            found["graphs"] = float(-ours.graphs.captured)
            found["logits after 70"] = ratio(ours.append(IDS[:70]), plain.append(IDS[:70]))
            cold = state(ours)
            found["logits after 3 more"] = ratio(ours.append(IDS[70:73]), plain.append(IDS[70:73]))
            for engine in (plain, ours):
                engine.follow(IDS[73:75])
            found["logits of a step"] = ratio(ours.logits, plain.logits)
            found["greedy words"] = float(ours.decode(2, Sampling.greedy()) != plain.decode(2, Sampling.greedy()))
            found["drawn words"] = float(ours.decode(3, WARM) != plain.decode(3, WARM))
            ours.reset()
            laws(ours, cold, found)
    print(json.dumps(found))


if __name__ == "__main__":
    with torch.no_grad():
        main()
