"""`assistant pull`: profiles and repositories fetched, a restricting licence only with consent."""

import pytest

from assistant.app.hub import is_present, model_folder
from assistant.base.errors import AssistantError
from assistant.cli import main
from assistant.commands import pull
from tests.fakes.hubserver import FILES, REPO, Hub, running


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100_000)
    with running(Hub({REPO: dict(FILES)}, {"license": "apache-2.0"})) as hub:
        yield hub


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    monkeypatch.setattr("assistant.app.hub.SPARE_BYTES", 0)
    return tmp_path


def test_command_fetches_and_says_so(hub, home, capsys):
    assert main(["pull", REPO, "--endpoint", hub.url]) == 0
    out = capsys.readouterr().out
    assert "apache-2.0" in out and "0.00 GB" in out
    assert is_present(model_folder(home / "models", REPO))
    assert main(["pull", REPO, "--endpoint", hub.url]) == 0
    assert "here already" in capsys.readouterr().out


def test_a_restricting_licence_needs_consent(hub, home, capsys, monkeypatch):
    hub.card.update({"license": "other", "license_name": "research-only"})
    assert main(["pull", REPO, "--endpoint", hub.url]) == 1
    told = capsys.readouterr()
    assert "research-only" in told.out and "--accept-licences" in told.err and hub.ranges == []
    assert main(["pull", REPO, "--endpoint", hub.url, "--accept-licences"]) == 0
    assert pull.ask_consent([REPO], lambda question: "y") and not pull.ask_consent([REPO], lambda question: "")


def test_profiles_are_names_of_repositories(home, capsys):
    assert pull.repos_of(["desk", "maker/model", "desk"])[-1] == "maker/model"
    assert pull.repos_of(["desk"])[0] == "Qwen/Qwen3.5-4B"
    with pytest.raises(AssistantError, match="desk-9b"):
        pull.repos_of(["dsk"])
    with pytest.raises(AssistantError, match="nothing to fetch"):
        pull.repos_of(["tiny"])
    assert main(["pull"]) == 0
    assert "desk" in capsys.readouterr().out
