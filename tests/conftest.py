"""Shared set-up: uninitialised memory is NaN, there is one thread, a missing device skips with its reason.

Tests in a browser come last, whatever is named first: Playwright leaves a running event loop behind, beside which no
other starts. Two processes that take files in this order, as `make test` has it, keep to that.
"""

import os
from pathlib import Path

import pytest
import torch

torch.utils.deterministic.fill_uninitialized_memory = True
torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())  # a cumsum on a GPU is no error
torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: "playwright" in getattr(item, "fixturenames", ()))  # its loop runs from the first on
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="no CUDA device here; run on a machine with an NVIDIA GPU to un-skip")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Processes under test build their C++ kernels here, once for all of them."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def kernel_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the C++ kernels are built, once for all tests."""
    return tmp_path_factory.mktemp("kernels")
