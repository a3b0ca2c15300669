"""A talk with files: what is kept where a reply never ends."""

import json
from pathlib import Path

import pytest
import soundfile

from assistant import cli
from assistant.commands import ask


@pytest.mark.slow
def test_a_reply_without_an_end_is_told_in_one_line_and_what_was_said_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(ask, "PATIENCE_S", 0.0)
    command = ["ask", "--profile", "tiny", "--asr", "pocketsphinx", "--quiet", "--say", "tell me a story"]
    assert cli.main([*command, "--out", str(tmp_path / "reply.wav"), "--json", str(tmp_path / "turns.json")]) == 1
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and "did not end within 0 s" in told[0] and "--profile tiny" in told[0]
    assert soundfile.info(tmp_path / "reply.wav").samplerate == 24_000
    assert json.loads((tmp_path / "turns.json").read_text("utf-8"))["facts"]
