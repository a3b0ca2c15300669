"""SmolLM2-135M from its published file: as near to the dequantised weights as llama.cpp, and the laws hold on it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from torch import Tensor

from capsules import ExecContext
from capsules.errors import CapsuleMismatch
from llm_engine import HybridLLM, Sampling
from llm_engine.chat import Chat
from llm_engine.firstlook import look_at
from tests.fakes.llama_cpp import LlamaCpp
from tests.fakes.smollm import smollm
from tests.house import ROOT
from tests.llm_engine.test_laws import scramble

pytestmark = pytest.mark.slow

PASSAGES, LENGTH = 3, 64
GREEDY = Sampling.greedy()
WARM = Sampling(temperature=0.8, top_k=40, top_p=0.95, presence_penalty=0.5, repetition_penalty=1.1, seed=11)


@pytest.fixture(scope="module")
def passages() -> Tensor:
    """[3, 64] ids of English text that does not change."""
    ids = Chat.load(smollm()).tokenizer.encode((ROOT / "LICENSE").read_text("utf-8"))
    return torch.tensor(ids[: PASSAGES * LENGTH]).view(PASSAGES, LENGTH)


@pytest.fixture(scope="module")
def reference(passages: Tensor) -> Tensor:
    """[3, 64, V] float32: transformers on the weights as the package `gguf` dequantises them."""
    model = in_transformers(smollm())
    with torch.no_grad():
        return model(passages).logits


def in_transformers(path: Path) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 1e5},
        tie_word_embeddings=True,
    )  # fmt: skip
    names = {
        "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    }  # fmt: skip
    state = {}
    for tensor in gguf.GGUFReader(path).tensors:
        wide = torch.from_numpy(gguf.dequantize(np.array(tensor.data), tensor.tensor_type).astype(np.float32))
        _, _, rest = tensor.name.partition(".")
        block, _, inner = rest.partition(".")
        kind = inner.removesuffix(".weight")
        if kind in ("attn_q", "attn_k"):  # pairs of neighbours to halves, head by head
            wide = torch.cat([torch.cat((head[0::2], head[1::2])) for head in wide.split(64)])
        name = f"model.layers.{block}.{names[kind]}.weight" if kind in names else None
        state[name or {"token_embd.weight": "model.embed_tokens.weight"}.get(tensor.name, "model.norm.weight")] = wide
    model = LlamaForCausalLM(config).eval()
    left = model.load_state_dict(state, strict=False)
    assert left.missing_keys == ["lm_head.weight"] and not left.unexpected_keys
    return model


@pytest.fixture(scope="module", params=["torch", "kernels"])
def engine(request: pytest.FixtureRequest, kernel_folder: Path) -> Callable[[str], HybridLLM]:
    """By the name of its form, made once and handed out empty."""
    if request.param == "kernels" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        pytest.skip("needs a C++ compiler; `apt install g++` brings one")
    made: dict[str, HybridLLM] = {}

    def make(dtype: str = "float32") -> HybridLLM:
        if dtype not in made:
            ctx = ExecContext("cpu", kernel_folder if request.param == "kernels" else None)
            made[dtype] = HybridLLM.load(smollm(), ctx, dtype, 200)
        made[dtype].reset()
        made[dtype].set_sampling(GREEDY)
        return made[dtype]

    return make


def forced(llm: HybridLLM, rows: Tensor) -> Tensor:
    """The logits after each token of each row: a chunk, then token by token as in decoding."""
    found = []
    for ids in rows.tolist():
        llm.reset()
        after = [llm.append(ids[:1])]
        for token in ids[1:]:
            llm.follow([token])
            after.append(llm.logits)
        found.append(torch.stack(after))
    return torch.stack(found)


def error(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).pow(2).mean().sqrt())


@pytest.mark.parametrize("engine", ["kernels"], indirect=True)
def test_it_is_nearer_to_the_dequantised_weights_than_llama_cpp(
    engine: Callable[[str], HybridLLM], passages: Tensor, reference: Tensor
) -> None:
    ours = forced(engine("float32"), passages)
    peer = LlamaCpp(smollm())
    theirs = torch.stack([peer.logits(ids) for ids in passages.tolist()])
    peer.close()
    assert error(ours, reference) <= error(theirs, reference)
    assert float((ours - reference).abs().max()) < 1e-2
    best = reference.topk(2).values
    differs = ours.argmax(-1) != reference.argmax(-1)
    furthest = float((ours - reference).abs().max())
    assert bool(((best[..., 0] - best[..., 1])[differs] <= 2 * furthest).all())


def test_a_whole_chunk_gives_the_same_logits(
    engine: Callable[[str], HybridLLM], passages: Tensor, reference: Tensor
) -> None:
    llm = engine("float32")
    for ids, expected in zip(passages.tolist(), reference, strict=True):
        llm.reset()
        assert float((llm.append(ids) - expected[-1]).abs().max()) < 1e-2


def test_it_answers_and_stops_by_itself(engine: Callable[[str], HybridLLM]) -> None:
    chat, llm = Chat.load(smollm()), engine("float32")
    said = chat.template.render([{"role": "user", "content": "What is the capital of France?"}])
    llm.append(chat.tokenizer.encode(said))
    reply = llm.decode(40, GREEDY, chat.tokenizer.stops())
    assert "Paris" in chat.tokenizer.decode(reply)
    assert reply[-1] in chat.tokenizer.stops()
    assert llm.end_of_turn == reply[-1]


@pytest.mark.parametrize(
    ("engine", "dtype"),
    [("torch", "float32"), *(("kernels", dtype) for dtype in ("float32", "bfloat16", "int8", "int4"))],
    indirect=["engine"],
)
@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "sampled"])
def test_the_laws_hold(engine: Callable[[str], HybridLLM], passages: Tensor, dtype: str, sampling: Sampling) -> None:
    """Restore, append after a restore, branches, rollback, and that keys and values alone are another state."""
    llm, (one, other) = engine(dtype), passages.view(2, -1)[:, :90].tolist()
    cold = llm.append(one)
    llm.decode(3, sampling)
    capsule = llm.snapshot()
    expected = llm.decode(8)
    after = llm.snapshot().tensors
    llm.reset()
    llm.append(other[:30])
    scramble(llm)
    llm.restore(capsule)
    assert llm.decode(8) == expected
    assert all(torch.equal(tensor, after[name]) for name, tensor in llm.snapshot().tensors.items())
    llm.rollback(capsule.position)
    assert all(torch.equal(tensor, capsule.tensors[name]) for name, tensor in llm.snapshot().tensors.items())
    branches = []
    for branch in llm.fork(capsule, 2):
        llm.append([branch + 20])
        branches.append(llm.decode(4, sampling))
    for branch in (1, 0):
        llm.restore(capsule)
        llm.append([branch + 20])
        assert llm.decode(4, sampling) == branches[branch]
    llm.reset()
    llm.append(one[:64])
    boundary = llm.snapshot()
    llm.append(other[:30])
    llm.restore(boundary)
    assert torch.equal(llm.append(one[64:]), cold)
    for forgotten in ("kv", "logits"):
        stale = llm.state.logits if forgotten == "logits" else llm._ctx["llm.kv"].tensor
        kept = stale.clone()
        llm.restore(capsule)
        stale.copy_(kept)
        assert llm.decode(8) != expected


@pytest.mark.parametrize("engine", ["kernels"], indirect=True)
def test_a_capsule_of_another_form_or_file_is_refused(
    engine: Callable[[str], HybridLLM], passages: Tensor, tmp_path: Path, kernel_folder: Path
) -> None:
    llm = engine("float32")
    llm.append(passages[0].tolist())
    capsule = llm.snapshot()
    with pytest.raises(CapsuleMismatch, match="dtype"):
        engine("int8").restore(capsule)
    changed = bytearray(smollm().read_bytes())
    changed[-1] ^= 1
    (tmp_path / "other.gguf").write_bytes(changed)
    ctx = ExecContext("cpu", kernel_folder)
    other = HybridLLM.load(tmp_path / "other.gguf", ctx, "float32", 200, capture=False)
    with pytest.raises(CapsuleMismatch, match="weights"):
        other.restore(capsule)


def test_a_first_look_finds_that_it_speaks_sense(engine: Callable[[str], HybridLLM]) -> None:
    look = look_at(engine("float32"), Chat.load(smollm()))
    assert look.trouble == "" and look.ended and "Paris" in look.reply
    assert look.text_bits < 1.0 and look.answer_bits < 0.2
