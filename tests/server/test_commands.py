"""The command line: help that teaches and is fast, errors in one line, doctor's findings, capsules on disk."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from assistant import cli
from assistant.app.config import Config
from assistant.base.errors import AssistantError
from assistant.commands import doctor, serve
from assistant.commands._run import run_async
from capsules import Capsule, ExecContext, Fingerprint, Role, Whole, snapshot
from capsules.disk import CapsuleFolder
from capsules.errors import CapsuleDamaged
from capsules.registry import Listing

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


SLEEPER = """
import asyncio, sys
from assistant import cli
from assistant.commands._run import run_async
async def work():
    print("ready", flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        print("cleaned", flush=True)
    return 0
class Module:
    NAME, HELP = "x", "x"
    add_arguments = staticmethod(lambda parser: None)
    run = staticmethod(lambda args: run_async(work()))
cli.command_modules = lambda: [Module]
sys.argv = ["assistant", "x"]
cli.run_and_exit()
"""
STUBBORN = SLEEPER.replace('        print("cleaned", flush=True)', "        import time; time.sleep(60)")

BLOCKED = SLEEPER.replace("await asyncio.sleep(60)", "while True: pass")  # as during the import of a large library


@pytest.mark.parametrize(
    ("code", "clean"), [(SLEEPER, True), (STUBBORN, False), (BLOCKED, False)], ids=["clean", "stubborn", "blocked"]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stop_signals_end_the_process_within_two_seconds(code, clean, number):
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    begin = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert time.monotonic() - begin < 4.0 and process.returncode == 130  # 1.8 s, and a busy machine
    assert ("cleaned" in out) == clean and err.startswith("stopped")
    assert len(err.splitlines()) == 1


def test_run_async_gives_the_tasks_result():
    async def seven() -> int:
        await asyncio.sleep(0)
        return 7

    assert run_async(seven()) == 7


# ------------------------------------------------------------------------------------------ doctor


def test_doctor_finds_what_this_machine_has(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    cli.main(["doctor", "--json"])
    findings = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert {"Python", "torch", "GPU", "tiny models", "microphone", "storage", "browser"} <= set(findings)
    assert findings["torch"]["verdict"] == "ok" and torch.__version__ in findings["torch"]["found"]
    assert all(finding["todo"] for finding in findings.values() if finding["verdict"] != "ok")
    doctor.print_findings([doctor.Finding("sound", "limited", "none [here]", "plug one in")])
    assert "none [here]" in (told := capsys.readouterr().out) and "plug one in" in told


def test_doctor_names_a_library_that_does_not_load():
    def load(name: str) -> None:
        if name == "soundfile":
            raise OSError("no libsndfile")

    finding = doctor.libraries(load)
    assert finding.verdict == "broken" and "soundfile (no libsndfile)" in finding.found and finding.todo


def test_doctor_sees_a_folder_that_cannot_be_used(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)
    assert doctor.storage(tmp_path / "none" / "such").verdict == "broken"


def test_doctor_offers_what_a_gpu_could_run(tmp_path):
    finding = doctor.fetched_models(tmp_path, 24 << 30)
    assert finding.todo == "assistant pull desk"
    assert doctor.fetched_models(tmp_path, 0).verdict == "limited"


# ----------------------------------------------------------------------------------------- capsules


def a_capsule(label: str) -> Capsule:
    ctx = ExecContext("cpu")
    ctx.buffer("toy.state", [4], torch.float32, role=Role.STATE, live=Whole()).tensor.fill_(3)
    fingerprint = Fingerprint.of(ctx, "toy", weights="00", code="toy/1")
    return snapshot(ctx, "toy", position=2, fingerprint=fingerprint, tokens=[5, 6], label=label)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Two engines' folders with a capsule each."""
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    for engine, key in (("llm", "name-ada"), ("tts", "voice-ben")):
        CapsuleFolder(tmp_path / "capsules" / engine).save(key, a_capsule(f"label of {key}"))
    return tmp_path / "capsules"


def test_capsule_ls_and_show(kept, capsys):
    assert cli.main(["capsule", "ls"]) == 0
    told = capsys.readouterr().out
    assert "llm/name-ada" in told and "tts/voice-ben" in told and "2 capsules" in told
    assert cli.main(["capsule", "show", "voice-ben"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["label"], shown["position"], shown["tokens"]) == ("label of voice-ben", 2, 2)


def test_capsule_rm(kept, capsys):
    assert cli.main(["capsule", "rm", "llm/name-ada"]) == 0
    assert not list((kept / "llm").glob("*.safetensors")) and list((kept / "tts").glob("*.safetensors"))
    assert cli.main(["capsule", "rm", "nothing"]) == 1
    assert cli.main(["capsule", "rm"]) == 2
    assert cli.main(["capsule", "rm", "--all"]) == 0
    capsys.readouterr()
    cli.main(["capsule", "ls"])
    assert "0 capsules" in capsys.readouterr().out


def test_capsule_export_is_checked(kept, tmp_path, capsys):
    out = tmp_path / "out.safetensors"
    assert cli.main(["capsule", "export", "llm/name-ada", str(out)]) == 0
    assert out.read_bytes() == (kept / "llm" / "name-ada.safetensors").read_bytes()
    assert cli.main(["capsule", "export", "llm/name-ada", str(out)]) == 1
    file = kept / "tts" / "voice-ben.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert cli.main(["capsule", "export", "voice-ben", str(tmp_path / "other")]) == 1
    assert "not exported" in capsys.readouterr().err and not (tmp_path / "other").exists()


# -------------------------------------------------------------------------------------------- serve


def test_serve_refuses_what_is_unsafe_or_impossible_before_it_loads_anything(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    assert cli.main(["serve", "--host", "0.0.0.0"]) == 1
    assert "--token" in capsys.readouterr().err
    assert cli.main(["serve", "--tls-cert", "x.pem"]) == 1
    assert "belong together" in capsys.readouterr().err
    assert cli.main(["serve", "--profile", "enormous"]) == 1
    assert "enormous" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert cli.main(["serve", "--port", str(taken.getsockname()[1]), "--no-browser"]) == 1
        assert "another --port" in capsys.readouterr().err


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
        (["ask", "."], "(is a folder); name a WAV"),
        (["ask", "text.wav"], "text.wav cannot be read as sound"),
        (["ask", "--say", "hello", "--out", "no/such/reply.wav"], "no/such/reply.wav cannot be written"),
        (["bench", "--turns", "-3"], "--turns is 1 or more"),
        (["bench", "--json", "."], "cannot be written; name a file"),
        (["serve", "--port", "99999"], "port must be a whole number, 0 to 65535, not '99999'"),
        (["serve", "--port", "http"], "port must be a whole number"),
        (["serve", "--llm", "."], "there is no model in .; name another directory"),
        (["pull", "nothing"], "profiles to fetch: desk"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line_before_anything_loads(command, told, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.wav").write_text("not a sound")
    assert cli.main(command) == 1
    [line] = [one for one in capsys.readouterr().err.splitlines() if not one.startswith("·")]
    assert line.startswith("assistant: ") and told in line


@pytest.mark.parametrize(
    ("host", "secure", "url"),
    [
        ("127.0.0.1", False, "http://127.0.0.1:5"),
        ("0.0.0.0", True, "https://localhost:5"),
        ("::1", False, "http://[::1]:5"),
    ],
)
def test_serve_prints_an_address_that_can_be_opened(host, secure, url):
    assert serve.address_of(host, 5, secure) == url


def test_capsules_are_told_once_each_at_their_fastest_tier(tmp_path):
    one = Listing("k", "n", "", "llm", 3, {"disk": 10, "host": 8}, pinned=True, idle_s=1.0)
    kept = [one, replace(one, label="ada", homes={"disk": 5})]
    told = serve.capsules_json(kept, Config(tmp_path, capsule_disk_mb=1))
    assert [(c["name"], c["tier"], c["bytes"]) for c in told["capsules"]] == [("n", "host", 8), ("ada", "disk", 5)]
    assert told["tiers"]["disk"] == {"used_bytes": 15, "budget_bytes": 1 << 20}
