"""Compiled kernels where they were measured and can be built, refused where they were asked for and cannot."""

import shutil

import pytest

from assistant.base.errors import AssistantError
from assistant.device.execution import open_context


@pytest.mark.parametrize("kernels", ["auto", "torch", "compiled"])
def test_without_a_compiler_only_who_asks_for_kernels_is_refused(kernels, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    if kernels == "compiled":
        with pytest.raises(AssistantError, match=r"--kernels compiled: no C\+\+ compiler.*apt install"):
            open_context("cpu", 0, kernels, tmp_path)
    else:
        assert " kernels " not in open_context("cpu", 0, kernels, tmp_path).describe()


@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler here; install g++ to un-skip")
def test_kernels_are_used_where_they_were_measured_and_can_be_built(monkeypatch, tmp_path):
    for machine, used in [("x86_64", True), ("riscv64", False)]:
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        monkeypatch.setattr("platform.system", lambda: "Linux")
        assert (" kernels " in open_context("cpu", 0, "auto", tmp_path).describe()) is used
    assert " kernels " not in open_context("cpu", 0, "torch", tmp_path).describe()
