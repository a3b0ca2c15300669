"""The command line: help that teaches and is fast, and errors in one line."""

import argparse
import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from assistant import cli
from assistant.app.removed import REMOVED
from assistant.base.errors import AssistantError
from capsules.errors import CapsuleDamaged
from tests.house import parsers

HEAVY = {"torch", "aiohttp", "scipy", "transformers", "huggingface_hub", "rich"}


def test_bare_command_explains_itself_and_starts_nothing(capsys):
    assert cli.main([]) == 0
    told = capsys.readouterr().out
    assert "assistant serve" in told and "assistant doctor" in told and "ASSISTANT_HOME" in told


ACTIONS = [["voice", action] for action in ("list", "add", "rm", "try")]
COMMANDS = [*([module.NAME] for module in cli.command_modules()), *ACTIONS]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_says_what_a_command_does_and_what_each_argument_is(command, capsys):
    texts = []
    for asked in ([*command, "--help"], ["help", *command]):
        with pytest.raises(SystemExit) as end:
            cli.main(asked)
        assert end.value.code == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    usage, empty, first, *_ = texts[0].splitlines()
    assert usage.startswith(f"usage: assistant {' '.join(command)} ") and not empty and first.endswith((".", ":"))
    models = texts[0].find("\nmodels:")
    own = [place for head in ("\npositional arguments:", "\noptions:") if (place := texts[0].find(head)) >= 0]
    assert models < 0 or max(own) < models, "a command's own arguments come first"


def test_every_argument_of_every_command_has_a_help_text_and_a_name():
    for parser in parsers(cli.build_parser()):
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                continue
            assert action.help, (parser.prog, action.dest)
            assert action.metavar or action.nargs == 0 or action.choices, (parser.prog, action.dest)


@pytest.mark.parametrize("asked", [["--version"], ["version"]], ids=" ".join)
def test_the_version_is_printed(asked, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(asked)
    assert end.value.code == 0 and capsys.readouterr().out == f"assistant {version('voice-assistant')}\n"


def test_help_alone_is_the_help_of_all(capsys):
    for asked in (["help"], ["--help"]):
        with pytest.raises(SystemExit):
            cli.main(asked)
    told = capsys.readouterr().out
    assert told.count("first steps:") == 2 and all(f"    {module.NAME} " in told for module in cli.command_modules())


@pytest.mark.parametrize(
    ("command", "usage", "refusal"),
    [
        (["serv"], "assistant COMMAND", "assistant: there is no command 'serv'; did you mean serve?"),
        (["xyzzy"], "assistant COMMAND", "assistant: there is no command 'xyzzy'; choose from serve, talk, ask"),
        (["--prot"], "assistant COMMAND", "assistant: there is no option --prot; `assistant --help` lists them"),
        (["serve", "--prot", "9000"], "assistant serve", "serve: there is no option --prot; did you mean --port?"),
        (["serve", "--prot=9000"], "assistant serve", "serve: there is no option --prot; did you mean --port?"),
        (["sleep", "--xyzzy"], "assistant sleep", "there is no option --xyzzy; `assistant sleep --help` lists them"),
        (["doctor", "now"], "assistant doctor", "'now' is one argument too many; `assistant doctor --help`"),
        (["voice", "lst"], "assistant voice", "assistant voice: there is no action 'lst'; did you mean list?"),
        (["voice", "add", "n", "f", "--replce"], "assistant voice add", "no option --replce; did you mean --replace?"),
        (["transcribe", "x", "--format", "str"], "assistant transcribe", "--format cannot be 'str'; did you mean srt?"),
        (["help", "tlak"], "assistant COMMAND", "assistant: there is no command 'tlak'; did you mean talk?"),
        (["serve", "--no-vision"], "assistant serve", "--no-vision was removed; use --without vision"),
        (["bench", "--candidates", "off"], "assistant bench", "--candidates was removed; use without instead"),
        (["pull", "ears", "--size", "tiny"], "assistant pull", "--size was removed; name the size: `assistant pull"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_a_mistyped_command_or_option_gets_the_right_usage_and_a_suggestion(command, usage, refusal, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(command)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert end.value.code == 2 and first.startswith(f"usage: {usage} ") and refusal in last


@pytest.mark.parametrize("flag", [name for name in REMOVED if name.startswith("--")])
def test_a_removed_option_is_not_understood_any_more(flag):
    assert all(flag not in parser._option_string_actions for parser in parsers(cli.build_parser()))


def test_voice_list_is_voice_ls():
    parser = cli.build_parser()
    assert parser.parse_args(["voice", "list"]).run is parser.parse_args(["voice", "ls"]).run


def test_help_loads_nothing_heavy():
    code = f"import sys; from assistant import cli; cli.build_parser();print(sorted({HEAVY!r} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_had_enough_is_no_error(unbuffered):
    """As `head`."""
    for command in ([], ["--help"], ["mcp", "--help"]):
        with subprocess.Popen(
            [sys.executable, "-m", "assistant", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        ) as process:  # fmt: skip
            process.stdout.close()
            assert process.stderr.read() == b"" and process.wait() in (0, 1)


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
        (["ask"], "nothing to ask; name a sound file"),
        (["ask", "--say", " "], "--say: there are no words; type a question"),
        (["ask", "nowhere.wav"], "there is no file nowhere.wav"),
        (["ask", "what time is it"], 'there is no file "what time is it"; to type a question, put --say before it'),
        (["ask", "."], "(it is a folder); name a WAV, FLAC, OGG or MP3 file"),
        (["ask", "text.wav"], "text.wav cannot be read as sound"),
        (["ask", "--image", "text.wav"], "text.wav cannot be shown (this is not a picture in a supported"),
        (["ask", "--image", "nowhere.png"], "there is no file nowhere.png; name a PNG"),
        (["ask", "--say", "hello", "--out", "no/such/reply.wav"], "there is no folder no/such; make it, or"),
        (["ask", "--say", "hello", "--out", "."], ". is a folder; name a file in it"),
        (["bench", "--turns", "-3"], "--turns must be 1 or more, not -3"),
        (["bench", "--interrupt-every", "-1"], "--interrupt-every must be 0 or more, not -1"),
        (["bench", "--beside", "-1"], "--beside must be 0 or more, not -1"),
        (["bench", "--json", "."], ". is a folder; name a file in it"),
        (["serve", "--port", "99999"], "--port must be a whole number from 0 to 65535, not '99999'"),
        (["serve", "--dtype", "fp16"], "--dtype must be one of float32, bfloat16, float8, int8, int4, or two of them"),
        (["serve", "--asr", "http://ears:port"], "has no valid port"),
        (["pull", "nothing"], "choose from laptop, laptop-2b, laptop-4b, laptop-35b, desk-8, desk-12,"),
        (["transcribe", "a.wav", "b.wav", "--format", "vtt"], "vtt takes one recording; run the command once for each"),
        (["sleep", "--url", "http://127.0.0.1:9"], "no server at http://127.0.0.1:9 (nothing listens there)"),
        (["wake", "--url", "127.0.0.1"], "127.0.0.1 is not an assistant's address; it looks like http://127.0.0.1:8765"),
        (["capsule", "rm"], "name the capsules to remove, or pass --all"),
        (["capsule", "show", "abc"], "there is no capsule 'abc'; `assistant capsule list` prints every key"),
    ],
)
def test_a_refusal_is_one_line_before_anything_loads(command, told, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.wav").write_text("not a sound")
    assert cli.main(command) == 1
    [line] = [one for one in capsys.readouterr().err.splitlines() if not one.startswith("·")]
    assert line.startswith("assistant: ") and told in line
