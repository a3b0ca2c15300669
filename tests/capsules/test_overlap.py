"""Kernels that begin while the one before them ends: what they read before they wait, by their code."""

import re
from collections.abc import Callable

import pytest

from capsules.exec.switches import Switch, switched
from tests.capsules.kernel_tools import Launch, launched

pytest.importorskip("triton", reason="Triton is not installed; install the dev extra on Linux to un-skip")

from capsules.nn.kernels import overlap
from tests.capsules.test_joined import LAUNCHES
from tests.capsules.test_kernels import given, wide
from tests.capsules.test_packed_row import launch as packed_launch

WEIGHTS = {"gemv_kernel": {1}, "add_norm_kernel": {2}}
"""By kernel, which of its arguments nobody writes: only these may be read before the wait. None of the others."""


def row_of_the_delta_rule() -> None:
    from llm_engine.delta_row import launch_delta_row

    launch_delta_row(
        given(1, 2560), given(1, 8192), given(1, 4096), given(64, 2560), given(3, 8192), wide(4, 8192), wide(32),
        wide(32), wide(128), wide(32, 128, 128), 1e-6,
    )  # fmt: skip


STEP: dict[str, Callable[[], None]] = {
    "attention": LAUNCHES["a token of the 4B"], "residual": LAUNCHES["residual of 2560"],
    "gate and head": LAUNCHES["gate and head"], "delta rule": row_of_the_delta_rule,
}  # fmt: skip


@pytest.fixture(autouse=True)
def a_new_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "can_overlap", lambda device: True)


def early_reads(ptx: str) -> list[set[int]]:
    """Of each read from memory that stands before the wait, the arguments that its address is made of."""
    body, waits, _ = ptx.partition("griddepcontrol.wait")
    assert waits and "griddepcontrol.launch_dependents" in body
    made: dict[str, set[int]] = {}
    reads = []
    for line in body.splitlines() * 2:  # twice: an address may be carried around a loop
        registers = re.findall(r"%[a-z]+\d+", line)
        given_as = re.search(r"ld\.param\.\S+\s+(%\w+), \[\w+_param_(\d+)\]", line)
        if given_as:
            made[given_as[1]] = {int(given_as[2])}
        elif "ld.global" in line or "cp.async" in line:
            address = re.findall(r"%[a-z]+\d+", line[line.index("[") :])
            reads.append(set().union(*(made.get(one, set()) for one in address)))
        elif registers:
            sources = [made.get(one, set()) for one in registers[1:]]
            made[registers[0]] = made.get(registers[0], set()).union(*sources)
    return reads


def check(launch: Launch, architecture: int) -> None:
    assert launch.options["launch_pdl"] is True
    code = launch.compiled(architecture)
    pointers = {at for at, one in enumerate(launch.arguments) if hasattr(one, "data_ptr")}
    early, allowed = [read & pointers for read in early_reads(code.ptx)], WEIGHTS.get(launch.name, set())
    assert all(read <= allowed for read in early), launch.name
    assert not allowed or allowed in early, "the first of them are on their way before the row is there"
    assert "PREEXIT" in code.order[: code.order.index("ACQBULK")]
    if launch.name not in WEIGHTS:
        assert not [one for one in code.order[: code.order.index("ACQBULK")] if one.startswith("LDG")], launch.name
    assert code.lacks == [], launch.name


@pytest.mark.slow
@pytest.mark.parametrize("step", STEP)
def test_a_step_waits_before_it_reads_what_another_may_have_written(step: str) -> None:
    with switched(frozenset({Switch.PDL})):
        launches = launched(STEP[step])
    for launch in launches:
        check(launch, 90)


@pytest.mark.slow
def test_a_packed_row_waits_on_a_newer_card() -> None:
    with switched(frozenset({Switch.PDL})):
        check(packed_launch("int4"), 120)


def test_other_cards_and_open_switches_launch_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    [plain] = launched(STEP["residual"])
    monkeypatch.setattr(overlap, "can_overlap", lambda device: False)
    with switched(frozenset({Switch.PDL})):
        [old] = launched(STEP["residual"])
    for launch in (plain, old):
        assert "launch_pdl" not in launch.options
