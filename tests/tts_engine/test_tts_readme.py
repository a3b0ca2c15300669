"""What the package's README shows runs as it stands."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "tts_engine" / "README.md").read_text("utf-8"), re.M | re.S)


@pytest.mark.slow
@pytest.mark.parametrize("code", BLOCKS)
def test_examples_run(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(code, names)
    assert getattr(names["capsule"], "label", "") == "after five frames"
