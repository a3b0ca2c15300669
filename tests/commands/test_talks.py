"""`assistant talks`: what is kept is listed, shown, and deleted with its capsules' words."""

import pytest

from assistant.app.config import load_config
from assistant.cli import main
from capsules.journal import Journals


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    journals = Journals(tmp_path / "talks")
    for talk, said in (("conv_1a", "where is the bicycle"), ("conv_2b", "good morning")):
        items = [("user", said, "completed"), ("assistant", "One,", "incomplete")]
        rows = [{"role": role, "content": [{"text": text}], "status": status} for role, text, status in items]
        journals.open(talk).put("words", {str(n): {"type": "message"} | row for n, row in enumerate(rows)})
        journals.close(talk)
    return tmp_path


def test_talks_are_listed_shown_and_removed(home, capsys):
    assert main(["talks", "ls"]) == 0
    listed = capsys.readouterr().out
    assert "where is the bicycle" in listed and "good morning" in listed and "2 talks" in listed
    assert main(["talks", "show", "1a"]) == 0
    assert capsys.readouterr().out.split() == ["you", "where", "is", "the", "bicycle", "assistant", "One,", "—"]
    assert main(["talks", "rm", "1a"]) == 0
    assert [path.stem for path in (load_config().home / "talks").glob("*.journal")] == ["conv_2b"]
    assert main(["talks", "rm", "all"]) == 0
    assert not [*(home / "talks").glob("*.journal")]


def test_what_is_not_there_or_open_elsewhere_is_refused_in_words(home, capsys):
    assert main(["talks", "rm", "9z"]) != 0
    assert "there is no talk '9z'" in capsys.readouterr().err
