"""The command line: help that teaches and is fast, and errors in one line."""

import subprocess
import sys

import pytest

from assistant import cli
from assistant.base.errors import AssistantError
from capsules.errors import CapsuleDamaged

HEAVY = {"torch", "aiohttp", "scipy", "transformers", "huggingface_hub", "rich"}


def test_bare_command_explains_itself_and_starts_nothing(capsys):
    assert cli.main([]) == 0
    told = capsys.readouterr().out
    assert "assistant serve" in told and "assistant doctor" in told and "ASSISTANT_HOME" in told


@pytest.mark.parametrize("name", [module.NAME for module in cli.command_modules()])
def test_each_command_has_help_that_teaches(name, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([name, "--help"])
    told = capsys.readouterr().out
    assert end.value.code == 0 and len(told) > 200


def test_help_loads_nothing_heavy():
    code = f"import sys; from assistant import cli; cli.build_parser();print(sorted({HEAVY!r} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_stop_while_the_commands_are_still_looked_for_is_one_line(capsys, monkeypatch):
    def stopped() -> list[cli.CommandModule]:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "command_modules", stopped)
    assert cli.main(["serve"]) == 130 and capsys.readouterr().err == "stopped.\n"


def test_our_errors_are_one_line(capsys, monkeypatch):
    def fail(args) -> int:
        raise AssistantError("no such thing; try another")

    module = cli.command_modules()[0]
    monkeypatch.setattr(module, "run", fail)
    assert cli.main([module.NAME, *(["x"] if module.NAME == "ask" else [])]) == 1
    assert capsys.readouterr().err == "assistant: no such thing; try another\n"


def test_engines_errors_are_told_and_bugs_are_not(capsys, monkeypatch):
    module = cli.command_modules()[0]

    def fail(args) -> int:
        raise CapsuleDamaged("the file is cut short")

    monkeypatch.setattr(module, "run", fail)
    assert cli.main([module.NAME]) == 1
    assert capsys.readouterr().err == "assistant: the file is cut short\n"
    monkeypatch.setattr(module, "run", lambda args: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        cli.main([module.NAME])


def test_a_home_that_cannot_be_used_is_told_before_anything_loads(capsys, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "file"))
    assert cli.main(["ask", "--say", "hello", "--out", str(tmp_path / "reply.wav")]) == 1
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and "cannot be used" in told[0] and "ASSISTANT_HOME" in told[0]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["ask"], "nothing to ask; give a sound file"),
        (["ask", "--say", " "], "--say needs some words"),
        (["ask", "nowhere.wav"], "nowhere.wav cannot be read as sound (does not exist)"),
        (["ask", "what time is it"], 'there is no file "what time is it"; to type words, put --say before them'),
        (["ask", "."], "(is a folder); name a WAV"),
        (["ask", "text.wav"], "text.wav cannot be read as sound"),
        (["ask", "--image", "text.wav"], "text.wav cannot be shown (the bytes are of no picture"),
        (["ask", "--image", "nowhere.png"], "nowhere.png cannot be shown (No such file"),
        (["ask", "--say", "hello", "--out", "no/such/reply.wav"], "no/such/reply.wav cannot be written"),
        (["bench", "--turns", "-3"], "--turns is 1 or more"),
        (["bench", "--json", "."], "cannot be written; name a file"),
        (["serve", "--port", "99999"], "port must be a whole number, 0 to 65535, not '99999'"),
        (["serve", "--port", "http"], "port must be a whole number"),
        (["serve", "--llm", "."], "there is no model in .; name another directory"),
        (["serve", "--asr", "http://ears:port"], "has no valid port"),
        (["pull", "nothing"], "to fetch: laptop, laptop-2b, desk-8, desk-12, desk-16, desk, desk-9b, desk-27b, ears"),
        (["transcribe", "a.wav", "b.wav", "--format", "vtt"], "vtt is of one recording; call it once for each file"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line_before_anything_loads(command, told, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.wav").write_text("not a sound")
    assert cli.main(command) == 1
    [line] = [one for one in capsys.readouterr().err.splitlines() if not one.startswith("·")]
    assert line.startswith("assistant: ") and told in line
