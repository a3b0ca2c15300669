"""One miniature checkpoint and one engine over it for all tests of the package; every test opens its own session."""

from pathlib import Path

import pytest
import torch

from capsules import ExecContext
from tests.capsules.toy import BACKENDS
from tests.tts_engine.miniature import Size, write_miniature
from tts_engine.engine import HiggsTTS

POSITIONS = 512
torch.set_num_threads(1)  # miniatures are too small to share out


@pytest.fixture(scope="session")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_miniature(tmp_path_factory.mktemp("higgs"), Size(), seed=0)


@pytest.fixture(scope="session", params=BACKENDS)
def engine(request: pytest.FixtureRequest, miniature: Path) -> HiggsTTS:
    return HiggsTTS.load(miniature, ExecContext(request.param), max_positions=POSITIONS)


@pytest.fixture
def tts(engine: HiggsTTS) -> HiggsTTS:
    engine.open()
    return engine


@pytest.fixture(scope="session")
def reference_codes() -> torch.Tensor:
    """[8, 19]: an odd length, so that its rows fill no chunk."""
    return torch.randint(0, 1024, (8, 19), generator=torch.Generator().manual_seed(5))
