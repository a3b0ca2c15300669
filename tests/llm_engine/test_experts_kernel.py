"""The experts' kernels: near float64 in the interpreter, code that fits every card, five launches a layer."""

import pytest
import torch

from capsules.nn.fp8 import Fp8Weight
from capsules.nn.int4 import Int4Weight
from llm_engine.experts import ExpertWeights, add_experts
from tests.capsules.kernel_tools import ARCHITECTURES, interpreted, launched
from tests.capsules.test_kernels import given, wide
from tests.fakes.cuda import fake_cuda
from tests.fakes.launches import count

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")

EXPERTS, TOP, HIDDEN, INNER = 256, 8, 2048, 512
"""35B-A3B."""


@pytest.mark.slow
def test_answers_are_near_float64_and_a_row_is_the_same_alone() -> None:
    found = interpreted("tests.llm_engine.interpreted_experts")
    assert len(found) == 17
    wrong = {case: error for case, error in found.items() if error > 1e-6}
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "stored"), list(zip(ARCHITECTURES, ["plain", "fp8", "int4"] * 2, strict=False))
)
def test_they_fit_every_card(architecture: int, stored: str) -> None:
    from llm_engine.experts_kernel import launch_asked, launch_choose, launch_join

    ids = given(64, TOP, dtype=torch.int64)
    opening = {
        "plain": (given(EXPERTS * 2 * INNER, HIDDEN), given(EXPERTS * 2 * INNER, HIDDEN), None, 1, 1),
        "fp8": (given(EXPERTS * 2 * INNER, HIDDEN, dtype=torch.float8_e4m3fn), wide(EXPERTS * 32, 16), None, 32, 128),
        "int4": (
            given(EXPERTS * 2 * INNER, HIDDEN // 8, dtype=torch.int32), given(EXPERTS * 2 * INNER, 64),
            given(EXPERTS * 2 * INNER, 64), 1, 32,
        ),
    }[stored]

    def all_of_them() -> None:
        launch_asked(given(64, HIDDEN), *opening, ids, TOP, EXPERTS, True)
        launch_choose(wide(64, EXPERTS + 1), TOP)
        launch_join(given(64, HIDDEN), wide(64 * TOP, HIDDEN), wide(64, TOP + 1))

    found = launched(all_of_them)
    assert found[0].grid == (2 * INNER // (2 if stored == "plain" else 4), 64 * TOP), "the same whoever is asked"
    for launch in found:
        assert launch.compiled(architecture).lacks == []


@pytest.mark.parametrize("rows", [1, 64])
@pytest.mark.parametrize("stored", ["plain", "fp8", "int4"])
def test_a_layer_is_five_launches_beside_the_shared_expert(stored: str, rows: int) -> None:
    with fake_cuda() as ctx:

        def empty(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
            return torch.empty(shape, dtype=dtype, device=ctx.device)

        def stack(outputs: int, inputs: int) -> torch.Tensor | Fp8Weight | Int4Weight:
            if stored == "fp8":
                scale = empty(outputs // 32, inputs // 128, dtype=torch.float32)
                return Fp8Weight(empty(outputs, inputs, dtype=torch.float8_e4m3fn), scale, (32, 128))
            if stored == "int4":
                return Int4Weight(empty(outputs, inputs // 8, dtype=torch.int32), empty(outputs, inputs // 32))
            return empty(outputs, inputs)

        w = ExpertWeights(empty(17, 256), stack(16 * 256, 256), stack(16 * 256, 128))
        found = count(lambda: add_experts(empty(rows, 256), empty(rows, 256), w, 2))
    assert found == {"llm_engine::asked": 3, "llm_engine::choose": 1, "llm_engine::join": 1}
