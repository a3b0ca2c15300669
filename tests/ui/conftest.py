"""Browser tests skip with the reason where there is no browser."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def playwright() -> Iterator[object]:
    from browser import EXECUTABLE

    if EXECUTABLE is None:
        pytest.skip("no Chromium here; install the chromium package to run the browser tests")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        yield running
