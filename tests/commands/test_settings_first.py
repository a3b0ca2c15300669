"""What a person set wrongly is told before anything is taken or loaded, whatever else runs on this machine."""

import socket
from pathlib import Path

import pytest

from assistant import cli


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--llm", "."], "there is no model in .; name another directory"),
        (["--tts", "."], "there is no model in .; name another directory"),
        (["--profile", "desk"], "`assistant pull Qwen/Qwen3.5-4B` fetches it"),
    ],
)
def test_a_setting_without_a_model_is_told_before_the_port_is_looked_at(
    flags: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert cli.main(["serve", "--port", str(taken.getsockname()[1]), "--no-browser", *flags]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("assistant: ") and told in line


def test_an_unknown_voice_is_told_before_the_models_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("assistant.app.start.open_talks", None)
    assert cli.main(["voice", "try", "bruno", "--profile", "tiny", "--out", str(tmp_path / "try.wav")]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line == "assistant: there is no voice 'bruno'; there is ada, ben"
    assert not (tmp_path / "try.wav").exists()
