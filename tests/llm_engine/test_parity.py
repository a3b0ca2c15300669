"""The engine against transformers: logits after prefill, every greedy token, and bfloat16 teacher-forced."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from llm_engine import Sampling

pytestmark = pytest.mark.slow


def prompt(rows: int, vocabulary: int) -> list[int]:
    return torch.randint(0, vocabulary, (rows,), generator=torch.Generator().manual_seed(rows)).tolist()


@pytest.mark.parametrize(
    ("shape", "rows"),
    [(shape, rows) for shape in ("one", "two", "three") for rows in (1, 3, 63, 64, 65, 127, 193, 1000)]
    + [(shape, rows) for shape in ("llama", "qwen3", "mistral") for rows in (1, 65, 193, 1000)]
    + [(shape, rows) for shape in ("mixed", "crowd") for rows in (1, 65, 193)],
)
def test_prefill_and_32_greedy_tokens(
    oracle: Callable[[str], Any], engine: Callable[..., Any], shape: str, rows: int
) -> None:
    reference, llm = oracle(shape).model, engine(shape, max_positions=1100 if rows == 1000 else 500)
    ids = prompt(rows, llm.config.vocab_size)
    logits = llm.append(ids)
    reply = llm.decode(32, Sampling.greedy())
    with torch.no_grad():
        expected = reference(torch.tensor([ids + reply])).logits[0, rows - 1 :]
    assert float((logits.cpu() - expected[0]).abs().max()) < 1e-3
    assert reply == expected[:-1].argmax(-1).tolist()
    assert float((llm.logits.cpu() - expected[-1]).abs().max()) < 1e-3
    assert llm.position == rows + 32


def test_decoding_agrees_step_by_step_with_the_cached_oracle(
    oracle: Callable[[str], Any], engine: Callable[..., Any]
) -> None:
    reference, llm = oracle("two").model, engine("two")
    ids = prompt(70, 160)
    with torch.no_grad():
        expected = reference.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, 70), max_new_tokens=32, do_sample=False, pad_token_id=0
        )[0, 70:].tolist()
    llm.append(ids)
    assert llm.decode(32, Sampling.greedy()) == expected


def test_bfloat16_is_as_close_to_float32_as_the_oracle_is(
    oracle: Callable[[str], Any], engine: Callable[..., Any]
) -> None:
    reference, llm = oracle("two").model, engine("two", "bfloat16")
    ids = prompt(140, 160)
    with torch.no_grad():
        exact = reference(torch.tensor([ids])).logits[0, 95:-1]
        rounded = copy.deepcopy(reference).bfloat16()(torch.tensor([ids])).logits[0, 95:-1].float()
    llm.append(ids[:96])
    rows = [llm.logits]
    for token in ids[96:]:
        rows.append(llm.append([token]))
    ours = torch.stack(rows[:-1]).cpu()

    def error(logits: torch.Tensor) -> float:
        return float((logits - exact).square().mean().sqrt() / exact.square().mean().sqrt())

    assert error(ours) < 1.1 * error(rounded)
    print(f"rms error to float32: ours {error(ours):.4f}, transformers {error(rounded):.4f}")
    same = (ours.argmax(-1) == exact.argmax(-1)).float().mean()
    theirs = (rounded.argmax(-1) == exact.argmax(-1)).float().mean()
    print(f"same choice as float32, teacher-forced: ours {same:.3f}, transformers {theirs:.3f}, n = {len(ours)}")
    assert same > 0.7
