"""Shared set-up: uninitialised memory is NaN, there is one thread, a missing device skips with its reason.

`make test` takes three processes, also for two cores. The first takes the browsers, one file after the other: their
tests mostly wait for sound in real time. The others compute beside it, give way to it, and begin with whole systems,
whose tests are the longest. Files without a slow test come last: no process ends long after the others.
"""

import os
from pathlib import Path

import pytest
import torch
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

torch.utils.deterministic.fill_uninitialized_memory = True
# `use_deterministic_algorithms` imports the compiler too: two seconds a process. A cumsum on a GPU is no error.
torch.set_deterministic_debug_mode("warn" if torch.cuda.is_available() else "error")
torch.set_num_threads(1)


FIRST = "gw0"
"""The name that the process for browsers has from pytest-xdist."""
if os.environ.get("PYTEST_XDIST_WORKER", FIRST) != FIRST:
    os.nice(5)


class BrowsersApart(LoadFileScheduling):
    """Whole files to each process: browsers to the first as long as there are any, to the others when all else is done.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        wanted = node.gateway.id == FIRST
        fitting = (scope for scope in self.workqueue if scope.startswith("tests/ui/") == wanted)
        if (scope := next(fitting, None)) is not None:
            self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BrowsersApart:
    return BrowsersApart(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Playwright leaves a running event loop behind to the end of its file, beside which no other starts.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (
        "system" not in item.path.parts, item.path not in slow, item.path,
        "playwright" in getattr(item, "fixturenames", ()),
    ))  # fmt: skip
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="no CUDA device here; run on a machine with an NVIDIA GPU to un-skip")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)


def _shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all processes of a run: building kernels takes a core for half a minute."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Processes under test keep their C++ kernels and recorded steps here."""
    os.environ["XDG_CACHE_HOME"] = str(_shared(tmp_path_factory) / "cache")


@pytest.fixture(scope="session")
def kernel_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the C++ kernels are built, once for all tests and the processes under test."""
    return _shared(tmp_path_factory) / "cache" / "assistant" / "kernels"
