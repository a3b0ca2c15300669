"""What a person set wrongly is told before anything is taken or loaded, whatever else runs on this machine."""

import socket
from pathlib import Path

import pytest

from assistant import cli


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--llm", "."], "--llm: . does not contain a model; name a folder with a config.json"),
        (["--tts", "."], "--tts: . does not contain a model; name a folder with a config.json"),
        (["--llm", "gpt-4"], "there is no folder gpt-4; name the folder of a model, a GGUF file, a name of"),
        (["--llm", "notes.txt"], "--llm: notes.txt is not a GGUF file; name one, or the folder of a model"),
        (["--llm", "models"], "name a folder with a config.json, or the file models/small.gguf"),
        (["--llm", "localhost:11434"], "which begins with http:// or https://"),
        (["--profile", "desk"], "the models of desk are not on this machine; fetch them with `assistant pull desk`"),
        (["--asr", "whisper"], "--asr: there are no ears 'whisper'; choose from auto, "),
        (["--persona", "nobody"], "--persona: there is no persona 'nobody'; choose from ada, ben, or write one in"),
        (["--profile", "tiny", "--voice", "nobody"], "--voice: there is no voice 'nobody'; choose from ada, ben"),
        (["--port", "abc"], "assistant: --port must be a whole number from 0 to 65535, not 'abc'"),
    ],
)
def test_a_wrong_setting_is_refused_before_the_port_is_opened(
    flags: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "small.gguf").write_text("GGUF")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert cli.main(["serve", "--port", str(taken.getsockname()[1]), "--no-browser", *flags]) == 1
    printed = capsys.readouterr()
    [line] = printed.err.splitlines()
    assert line.startswith("assistant: ") and told in line and printed.out == "", "nor is an address printed"


def test_an_unknown_voice_is_told_before_the_models_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("assistant.app.start.open_talks", None)
    assert cli.main(["voice", "try", "bruno", "--profile", "tiny", "--out", str(tmp_path / "try.wav")]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line == "assistant: there is no voice 'bruno'; choose from ada, ben"
    assert not (tmp_path / "try.wav").exists()
