"""Compiled kernels where they were measured and can be built, and a GPU that is not there."""

import shutil

import pytest

from assistant.base.errors import AssistantError
from assistant.device import execution
from assistant.device.execution import open_context
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
