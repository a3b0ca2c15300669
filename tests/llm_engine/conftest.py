"""Random small checkpoints in the published layout, written by transformers, and the oracle that wrote them."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

SHAPES: dict[str, dict[str, Any]] = {
    # value heads per key head 1, 2, 3; tied and untied; sizes that are no power of two
    "one": {"linear_num_key_heads": 2, "linear_num_value_heads": 2, "tie_word_embeddings": True},
    "two": {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "tie_word_embeddings": False},
    "three": {"linear_num_key_heads": 1, "linear_num_value_heads": 3, "linear_value_head_dim": 24, "vocab_size": 131},
    "wide": {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "hidden_size": 64, "intermediate_size": 96},
}
BASE: dict[str, Any] = {
    "vocab_size": 160,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "tie_word_embeddings": True,
}
PLAIN: dict[str, dict[str, Any]] = {
    # plain decoders: stretched frequencies, normalised heads, a head apart, sizes that are no power of two
    "llama": {
        "rope_parameters": {
            "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
    "qwen3": {"tie_word_embeddings": False, "head_dim": 24},
    "mistral": {"num_key_value_heads": 6, "sliding_window": None, "head_dim": 8, "vocab_size": 131},
}  # fmt: skip
MIXTURES: dict[str, dict[str, Any]] = {
    # experts of odd and of panels' sizes, a shared one of another size, two or three of them asked
    "mixed": {
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "tie_word_embeddings": False, "num_experts": 5,
        "num_experts_per_tok": 2, "moe_intermediate_size": 24, "shared_expert_intermediate_size": 40,
    },
    "crowd": {
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "hidden_size": 64, "num_experts": 16,
        "num_experts_per_tok": 3, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
    },
}  # fmt: skip
EYES: dict[str, dict[str, Any]] = {
    # head sizes 12, 24 and 32, tables of 6 x 6, 5 x 5 and the published 48 x 48, feed-forwards that are no power of two
    "eyes 12": {"depth": 2, "hidden_size": 48, "num_heads": 4, "num_position_embeddings": 36, "intermediate_size": 72},
    "eyes 24": {"depth": 3, "hidden_size": 72, "num_heads": 3, "num_position_embeddings": 25, "intermediate_size": 100},
    "eyes 32": {
        "depth": 2, "hidden_size": 96, "num_heads": 3, "num_position_embeddings": 2304, "intermediate_size": 100,
    },
}  # fmt: skip
PAD = 151
"""The id of an image's place, of which a prompt of the oracle has one per row."""


@dataclass(frozen=True)
class Oracle:
    """A checkpoint directory and transformers' float32 model with the same weights; those of EYES have a tower."""

    path: Path
    model: Any


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Matrices this small only lose by sharing."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Oracle]:
    """Oracle by the name of its shape; made once."""
    made: dict[str, Oracle] = {}

    def make(shape: str) -> Oracle:
        if shape not in made:
            model = _seeing(shape) if shape in EYES else _reading(shape)
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    if parameter.dim() > 1:
                        parameter.normal_(0, 0.15)
                    elif not name.endswith("A_log"):
                        parameter.add_(torch.randn_like(parameter) * 0.3)
                if shape in EYES:
                    model.lm_head.weight[PAD] = 0  # never the likeliest: the oracle would take it for a picture
            path = tmp_path_factory.mktemp(shape.replace(" ", "-"))
            model.save_pretrained(path)
            made[shape] = Oracle(path, model)
        return made[shape]

    return make


def _reading(shape: str) -> Any:
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        Qwen3_5ForCausalLM,
        Qwen3_5MoeForCausalLM,
        Qwen3_5MoeTextConfig,
        Qwen3_5TextConfig,
    )

    torch.manual_seed(len(shape))
    if shape in PLAIN:
        keys = {key: value for key, value in BASE.items() if not key.startswith("linear_")}
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(shape, **(keys | PLAIN[shape]))).eval()
    if shape in MIXTURES:
        keys = {key: value for key, value in BASE.items() if key != "intermediate_size"}
        return Qwen3_5MoeForCausalLM(Qwen3_5MoeTextConfig(**(keys | MIXTURES[shape]))).eval()
    return Qwen3_5ForCausalLM(Qwen3_5TextConfig(**(BASE | SHAPES[shape]))).eval()


def _seeing(shape: str) -> Any:
    from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

    torch.manual_seed(int(shape[-2:]))
    rope = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1],
            "mrope_interleaved": True}  # fmt: skip
    config = Qwen3_5Config(
        text_config=BASE | SHAPES["two"] | {"rope_parameters": rope},
        vision_config=EYES[shape] | {"out_hidden_size": BASE["hidden_size"]},
        image_token_id=PAD,
        vision_start_token_id=152,
        vision_end_token_id=153,
        tie_word_embeddings=False,
    )
    return Qwen3_5ForConditionalGeneration(config).eval()


@pytest.fixture(scope="session", params=["torch", "kernels", pytest.param("cuda", marks=pytest.mark.gpu)])
def engine(request: pytest.FixtureRequest, oracle: Callable[[str], Oracle], kernel_folder: Path) -> Callable[..., Any]:
    """A warmed-up engine by shape and dtype, made once and handed out empty: on torch alone, on our C++ kernels, and
    on a GPU where there is one."""
    if request.param == "kernels" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        pytest.skip("needs a C++ compiler; `apt install g++` brings one")
    folder = kernel_folder if request.param == "kernels" else None
    from capsules import ExecContext
    from llm_engine import HybridLLM, Sampling

    made: dict[tuple[str, str, int], Any] = {}

    def make(shape: str = "two", dtype: str = "float32", max_positions: int = 500) -> Any:
        if (request.param, dtype) in {("cuda", "int8"), ("kernels", "float8")}:
            pytest.skip(f"{dtype} is for a {'processor' if dtype == 'int8' else 'GPU'}, whose kernels read it")
        key = (shape, dtype, max_positions)
        if key not in made:
            ctx = ExecContext("cuda") if request.param == "cuda" else ExecContext("cpu", folder)
            made[key] = HybridLLM.load(oracle(shape).path, ctx, dtype, max_positions)
        made[key].reset()
        made[key].set_sampling(Sampling.greedy())
        return made[key]

    return make
