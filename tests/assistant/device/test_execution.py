"""Compiled kernels where they were measured and can be built, and a GPU that is not there."""

import shutil

import pytest
import torch

from assistant.base.errors import AssistantError
from assistant.device import execution
from assistant.device.execution import load_on, open_context
from capsules import ExecContext
from capsules.exec.switches import ALL, PROVEN


@pytest.mark.parametrize("kernels", ["auto", "torch"])
def test_without_a_compiler_torchs_own_operators_do(kernels, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert " kernels " not in open_context("cpu", 0, kernels, tmp_path).describe()


def test_a_machine_without_a_gpu_says_so_instead_of_naming_a_package(monkeypatch, tmp_path):
    monkeypatch.setattr(execution, "unusable", lambda: "this torch is built without CUDA; install another")
    monkeypatch.setattr(execution, "DRIVER_PLACES", (tmp_path / "none",))
    with pytest.raises(AssistantError, match=r"--device cuda: there is no NVIDIA GPU .*--device cpu works"):
        open_context("cuda")
    monkeypatch.setattr(execution, "DRIVER_PLACES", (tmp_path,))
    with pytest.raises(AssistantError, match=r"--device cuda: this torch is built without CUDA; install another"):
        open_context("cuda")


@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler here; install g++ to un-skip")
def test_kernels_are_used_where_they_were_measured_and_can_be_built(monkeypatch, tmp_path):
    for machine, used in [("x86_64", True), ("riscv64", False)]:
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        monkeypatch.setattr("platform.system", lambda: "Linux")
        assert (" kernels " in open_context("cpu", 0, "auto", tmp_path).describe()) is used
    assert " kernels " not in open_context("cpu", 0, "torch", tmp_path).describe()


def test_a_gpu_takes_new_kernels_only_when_asked(monkeypatch):
    monkeypatch.setattr(execution, "unusable", lambda: "")
    monkeypatch.setattr(execution, "ExecContext", lambda device, switches: (device, switches))
    assert open_context("auto") == ("cuda", PROVEN)
    assert open_context("auto", untried=True) == ("cuda", ALL)


def test_a_model_that_does_not_fit_into_memory_is_refused_in_a_sentence():
    with pytest.raises(AssistantError, match=r"the memory is full .*choose a smaller --profile"):
        load_on(ExecContext("cpu"), lambda: torch.empty(1 << 50, dtype=torch.uint8))


def test_the_next_model_does_not_inherit_the_threads_of_the_one_before(monkeypatch):
    monkeypatch.setattr(execution, "DEFAULT_THREADS", 2)  # that of the tests is 1
    before = torch.get_num_threads()
    try:
        for asked, taken in ((1, 1), (0, 2)):
            open_context("cpu", asked)
            assert torch.get_num_threads() == taken
    finally:
        torch.set_num_threads(before)
