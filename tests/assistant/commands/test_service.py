"""`assistant service`: the file that starts it is right, and nothing half done stays behind."""

import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from assistant import cli
from assistant.base.errors import AssistantError
from assistant.commands import service
from assistant.commands._unit import Service, program_of

ODD = Service(
    ("/opt/a b/assistant", "serve", "--llm", '/models/50% "$HOME"\\x'), Path("/home/ann o'dea"), "/usr/bin:/a%b"
)


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> service.Manager:
    """Its commands note that they were called. A start copies the unit to `runs`, and a stop removes that; the start
    fails for the words in the file `broken`."""
    unit, runs = tmp_path / "units" / "assistant.service", tmp_path / "runs"
    said = f"""echo $0 >> {tmp_path}/said
case $0 in
  start) if grep -sq -f {tmp_path}/broken {unit}; then echo no bus; exit 1; fi; cp {unit} {runs} ;;
  stop) rm -f {runs} ;;
esac"""
    start, stop, status = (("sh", "-c", said, word) for word in ("start", "stop", "status"))
    one = service.Manager(unit, (start,), (stop,), status, "journalctl", "Linger.")
    monkeypatch.setattr(service, "find_manager", lambda platform: one)
    monkeypatch.setattr(service, "_program", lambda: Path(shutil.which("true") or "true"))
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    return one


def test_installed_seen_and_removed(manager: service.Manager, tmp_path: Path, capsys) -> None:
    assert cli.main(["service", "print", "--", "--port", "9000"]) == 0
    printed = capsys.readouterr().out
    assert not manager.file.exists() and not (tmp_path / "said").exists() and not (tmp_path / "home").exists()
    assert cli.main(["service", "install", "--", "--port", "9000"]) == 0
    text = manager.file.read_text("utf-8")
    assert text in printed and f"ASSISTANT_HOME={tmp_path / 'home'}" in text and "Restart=on-failure" in text
    assert program_of(text)[1:] == ["serve", "--no-browser", "--port", "9000"]
    assert cli.main(["service", "status"]) == 0
    assert "http://127.0.0.1:9000" in capsys.readouterr().out
    assert cli.main(["service", "rm"]) == 0 and not manager.file.exists()
    assert (tmp_path / "said").read_text().split() == ["start", "status", "stop"]
    assert cli.main(["service", "rm"]) == 0
    assert cli.main(["service", "status"]) == 1
    assert "not installed" in capsys.readouterr().out


def test_a_start_that_fails_leaves_what_was_there(manager: service.Manager, tmp_path: Path, capsys) -> None:
    (tmp_path / "broken").write_text("ExecStart\n")
    assert cli.main(["service", "install"]) == 1
    told = capsys.readouterr().err
    assert "no bus" in told and "old service" not in told and not manager.file.exists()
    assert (tmp_path / "said").read_text().split() == ["start", "stop"], "what the start had linked is unlinked"


def test_an_install_that_fails_has_the_service_before_it_run_on(
    manager: service.Manager, tmp_path: Path, capsys, monkeypatch
) -> None:
    runs, broken = tmp_path / "runs", tmp_path / "broken"
    assert cli.main(["service", "install", "--", "--port", "9000"]) == 0
    before = manager.file.read_bytes()
    broken.write_text("9001\n")
    assert cli.main(["service", "install", "--", "--port", "9001"]) == 1
    assert "no bus" in (told := capsys.readouterr().err) and "the old service runs on" in told
    assert manager.file.read_bytes() == runs.read_bytes() == before
    broken.write_text("ExecStart\n")
    assert cli.main(["service", "install", "--", "--port", "9001"]) == 1
    assert "the old service stands still" in capsys.readouterr().err and manager.file.read_bytes() == before
    broken.unlink()
    assert cli.main(["service", "install", "--", "--port", "9000"]) == 0 and runs.exists()

    def no_room(path: Path, data: bytes) -> None:
        raise AssistantError("no room")

    monkeypatch.setattr(service, "save", no_room)
    assert cli.main(["service", "install", "--", "--port", "9002"]) == 1
    assert runs.read_bytes() == before, "nothing is stopped before the new file stands"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--token", "long enough"], "config.toml"),
        (["--port", "x"], "--port"),
        (["--llm", "here"], "write here as /"),
    ],
)
def test_options_that_would_fail_later_are_refused_now(
    manager: service.Manager, tmp_path: Path, capsys, monkeypatch, options: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert cli.main(["service", "install", "--", *options]) == 1
    assert told in capsys.readouterr().err and not manager.file.exists()


def test_where_nothing_can_start_services_a_sentence_names_the_command(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    monkeypatch.setattr(service, "_program", lambda: Path("/opt/assistant"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("sys.platform", "linux")
    assert cli.main(["service", "install", "--", "--port", "9000"]) == 1
    told = capsys.readouterr().err
    assert "neither systemd nor launchd" in told and "/opt/assistant serve --no-browser --port 9000" in told


def test_launchd_reads_the_same_facts() -> None:
    agent = plistlib.loads(ODD.agent().encode())
    assert agent["ProgramArguments"] == list(ODD.program) == program_of(ODD.agent())
    assert agent["EnvironmentVariables"]["ASSISTANT_HOME"] == str(ODD.home)
    assert agent["RunAtLoad"] is True and agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["StandardErrorPath"].startswith(str(ODD.home))


def test_a_unit_keeps_odd_names() -> None:
    assert program_of(ODD.unit()) == list(ODD.program)
    assert "50%% " in ODD.unit() and "$$HOME" in ODD.unit()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here; apt install systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    odd = tmp_path / "a b%c"
    odd.mkdir()
    program = odd / "assistant"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    unit = tmp_path / "assistant.service"
    unit.write_text(Service((str(program), *ODD.program[1:]), ODD.home, ODD.search).unit(), "utf-8")
    found = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(unit)], capture_output=True, text=True, check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (0, "")
