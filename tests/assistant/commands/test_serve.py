"""`assistant serve` before it loads anything, and the addresses and capsules that it tells."""

import socket
from dataclasses import replace
from types import SimpleNamespace

import pytest

from assistant import cli
from assistant.app.config import PROFILES
from assistant.commands import serve
from assistant.commands._unit import Service
from capsules.registry import Budgets, Listing


def test_serve_refuses_what_is_unsafe_or_impossible_before_it_loads_anything(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    assert cli.main(["serve", "--host", "0.0.0.0"]) == 1
    assert "config.toml" in capsys.readouterr().err
    assert cli.main(["serve", "--tls", "x.pem", "y.pem"]) == 1
    assert "--tls: there is no file x.pem" in capsys.readouterr().err
    for name in ("x.pem", "y.pem"):
        (tmp_path / name).write_text("nothing")
    assert cli.main(["serve", "--tls", str(tmp_path / "x.pem"), str(tmp_path / "y.pem")]) == 1
    assert "are not a certificate and its key" in capsys.readouterr().err
    assert cli.main(["serve", "--profile", "enormous"]) == 1
    assert "enormous" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert cli.main(["serve", "--port", str(taken.getsockname()[1]), "--no-browser"]) == 1
        assert "another --port" in capsys.readouterr().err


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


def test_capsules_are_told_once_each_at_their_fastest_tier():
    row = Listing("k", "n", "", "llm", 3, {"disk": 10, "host": 8}, True, 1.0, "", None)
    kept = [row, replace(row, label="ada", homes={"disk": 5})]
    told = serve.capsules_json(kept, Budgets(disk_bytes=1 << 20))
    assert [(c["name"], c["tier"], c["bytes"]) for c in told["capsules"]] == [("n", "host", 8), ("ada", "disk", 5)]
    assert told["tiers"]["disk"] == {"used_bytes": 15, "budget_bytes": 1 << 20}


@pytest.mark.parametrize(
    ("running", "gpu_gib", "host_gib", "offered"),
    [
        ("tiny", 0, 3, None),
        ("tiny", 0, 4, ("laptop", ["Qwen/Qwen3.5-0.8B"])),
        ("laptop-2b", 0, 4, None),
        ("laptop", 22, 4, ("mind-27b", ["Qwen/Qwen3.8-27B"])),
        ("laptop", 14, 4, ("desk-9b", ["Qwen/Qwen3.5-9B", "bosonai/higgs-audio-v3-tts-4b"])),
        ("desk-27b", 22, 4, None),
    ],
)
def test_the_page_offers_only_what_is_larger_than_what_runs(running, gpu_gib, host_gib, offered, monkeypatch):
    monkeypatch.setattr("assistant.device.execution.gpu_free_bytes", lambda: gpu_gib << 30)
    monkeypatch.setattr("assistant.base.memory.available_bytes", lambda: host_gib << 30)
    app = SimpleNamespace(facts={"profile": running}, models=SimpleNamespace(profile=PROFILES[running]))
    told = serve.about_json(app)
    assert told.pop("profile") == running
    if offered:
        name, models = offered
        size = PROFILES[name].download_gb
        command = f"assistant pull {name}"
        assert told == {"larger": {"profile": name, "models": models, "command": command, "download_gb": size}}
    else:
        assert told == {}


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no systemd here")
@pytest.mark.parametrize("place", ["{folder}/ready", "@{folder}"])
def test_systemd_hears_that_the_port_is_open(place, tmp_path, monkeypatch):
    """Its units wait for that word, or they would wait in vain."""
    address = place.format(folder=tmp_path)
    serve.notify_systemd()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address.replace("@", "\0", 1))
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        serve.notify_systemd()
        assert manager.recv(64) == b"READY=1"
    serve.notify_systemd()
    assert "Type=notify" in Service(("assistant", "serve"), tmp_path, "").unit()
