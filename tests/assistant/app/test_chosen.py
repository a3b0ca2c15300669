"""A choice outlives its process, unless the settings name another model or its file is gone."""

import json
from pathlib import Path

import pytest

from assistant.app.chooser import LanguageModels
from assistant.app.chosen import FILE, SwitchState, kept_choice
from assistant.app.config import PROFILES, Config, load_config
from assistant.app.switching import Choices


def settings(home: Path, **flags: str) -> Config:
    return load_config(flags, {"ASSISTANT_HOME": str(home)})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A model that was chosen in a process that is over."""
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF")
    running = settings(tmp_path, llm=str(file), profile="tiny")
    for phase in ("failed", "none", "done"):
        assert not (tmp_path / FILE).exists(), "only a model that answers is kept"
        state = SwitchState(phase, "mine.gguf")  # type: ignore[arg-type]
        LanguageModels(settings(tmp_path), Choices(state)).runs(running, PROFILES["tiny"])
    return file


def test_the_next_process_begins_with_it(file: Path) -> None:
    config, state = kept_choice(settings(file.parent))
    assert (config.llm, config.profile, state.phase, state.model) == (str(file), "tiny", "switching", str(file))
    assert kept_choice(settings(file.parent, dtype="int4"))[0].dtype == "int4"


@pytest.mark.parametrize("flags", [{"llm": "http://localhost:1/v1"}, {"profile": "auto"}])
def test_what_the_command_line_names_wins(file: Path, flags: dict[str, str]) -> None:
    asked = settings(file.parent, **flags)
    assert kept_choice(asked) == (asked, SwitchState())


def test_a_file_that_is_gone_is_told(file: Path) -> None:
    file.unlink()
    config, state = kept_choice(settings(file.parent))
    assert (config.llm, state.phase, state.model) == ("", "failed", str(file))
    assert state.told.startswith(f"the model chosen in the page: there is no folder {file}")


@pytest.mark.parametrize("change", [{"profile": "vast"}, {"dtype": "int3"}, {"llm": 7}, None])
def test_a_file_that_is_not_ours_changes_nothing(file: Path, change: dict[str, object] | None) -> None:
    kept = file.parent / FILE
    kept.write_text("{" if change is None else json.dumps(json.loads(kept.read_text()) | change))
    assert kept_choice(settings(file.parent))[1] == SwitchState()
