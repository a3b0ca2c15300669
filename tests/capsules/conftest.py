"""One context per backend; every test that takes `ctx` is part of the contract suite."""

import pytest

from capsules import ExecContext
from tests.capsules.toy import BACKENDS


@pytest.fixture(params=BACKENDS)
def ctx(request: pytest.FixtureRequest) -> ExecContext:
    return ExecContext(request.param)
