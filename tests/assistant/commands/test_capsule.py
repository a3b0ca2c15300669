"""`assistant capsule`: listed, shown, removed, exported after a check."""

import asyncio
import json

import pytest
import torch

from assistant import cli
from capsules import Capsule, ExecContext, Fingerprint, Role, Whole, snapshot
from capsules.disk import CapsuleFolder
from tests.assistant.server.test_kept import Caller
from tests.contracts.subjects import local_llm
from tests.fakes.talk import World
from tests.fakes.web import serving


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
    assert cli.main(["capsule", "rm"]) == 1
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


@pytest.mark.slow
def test_capsules_of_a_running_server(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    told = []

    def run(*args):
        code = cli.main(["capsule", *args])
        told.append(capsys.readouterr())
        return code

    async def story():
        async with local_llm() as behind, serving(World(llm=behind.engine)) as site:
            made = await Caller(site, "mine")("POST", "capsules", {"messages": [{"role": "user", "content": "hello"}]})
            where = ["--url", site.http, "--key", "mine"]
            for args in (["name", made["id"], "greeting"], ["running"]):
                assert await asyncio.to_thread(run, *args, *where) == 0
            named = told[0].out.split()[0]
            for args in (["pin", named], ["fork", named, "again"], ["unpin", named], ["drop", named], ["running"]):
                assert await asyncio.to_thread(run, *args, *where) == 0
            assert await asyncio.to_thread(run, "pin", named, *where) == 1
        assert await asyncio.to_thread(run, "running", "--url", site.http) == 1

    asyncio.run(story())
    assert "greeting" in told[1].out and "1 capsules" in told[1].out and "pinned" in told[2].out
    assert "again" in told[-3].out and "greeting" not in told[-3].out
    assert "no capsule" in told[-2].err and "nothing listens there" in told[-1].err
