"""The container: what its files promise. Podman has built and run the processor's variant, by hand; none runs here."""

import json
import re
import shutil
import ssl
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from tests.house import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


def variant(name: str, shown: str) -> str:
    """The words of a shell's step that is given a variant."""
    step = ["sh", "-c", shown]
    return subprocess.run(step, env={"VARIANT": name}, stdout=subprocess.PIPE, text=True, check=False).stdout


def test_the_container_installs_the_torch_of_the_checkout_for_both_variants() -> None:
    wanted = re.search(r"^TORCH +:= (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    text = (ROOT / "Containerfile").read_text("utf-8")
    assert wanted and re.findall(r"torch==\S+", text) == [wanted[1]]
    (step,) = re.findall(r"^RUN (case .*?\besac); pip install torch", text, re.MULTILINE | re.DOTALL)
    shown = step.replace("\\\n", "") + '; echo "$from"'
    assert "/whl/cpu" in variant("cpu", shown) and variant("cuda", shown) == "\n"
    assert "VARIANT is cpu or cuda" in variant("gpu", shown)
    assert "${VARIANT}" not in text and "VARIANT=cpu" in text, "older Podmans find no stage by an argument"


def test_the_container_is_no_root_keeps_its_state_and_says_how_it_is() -> None:
    steps = (ROOT / "Containerfile").read_text("utf-8").partition("AS assistant")[2]
    assert re.search(r"^USER assistant$", steps, re.MULTILINE) and "HEALTHCHECK" in steps
    assert json.loads(re.findall(r"^VOLUME (.*)$", steps, re.MULTILINE)[0]) == ["/data", "/data/models"]
    extras = re.findall(r"\.whl\)\[([\w,]+)\]", steps)[0].split(",")
    assert set(extras) <= set(EXTRAS)


def test_the_container_is_published_on_loopback_alone_and_never_without_a_token() -> None:
    files = [ROOT / "container" / f"compose{kind}.yaml" for kind in ("", ".gpu")]
    plain, gpu = (yaml.safe_load(file.read_text("utf-8"))["services"]["assistant"] for file in files)
    assert plain["ports"] == ["127.0.0.1:8765:8765"] and "ports" not in gpu
    assert [volume.partition(":")[2] for volume in plain["volumes"]] == ["/data", "/data/models"]
    assert gpu["build"]["args"] == {"VARIANT": "cuda"}
    (device,) = gpu["deploy"]["resources"]["reservations"]["devices"]
    assert device["driver"] == "nvidia" and device["capabilities"] == ["gpu"]


def test_the_entry_makes_a_token_once_and_keeps_settings(tmp_path: Path) -> None:
    (tmp_path / "assistant").write_text('#!/bin/sh\necho "$*" "${ASSISTANT_TOKEN-unset}"\n')
    (tmp_path / "assistant").chmod(0o700)
    config = tmp_path / "config.toml"
    config.write_text("port = 9000\n")

    def start(token: str = "", *command: str) -> str:
        env = {"PATH": f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin", "ASSISTANT_HOME": str(tmp_path)}
        env["ASSISTANT_TOKEN"] = token
        entry = ["sh", str(ROOT / "container" / "entry"), *(command or ("serve",))]
        return subprocess.run(entry, env=env, capture_output=True, text=True, check=True).stdout

    assert start("given by hand").endswith("serve given by hand\n") and config.read_text() == "port = 9000\n"
    assert start("", "pull").endswith("pull unset\n") and config.read_text() == "port = 9000\n"
    first = start()
    kept = config.read_text()
    settings = tomllib.loads(kept)
    assert settings["port"] == 9000 and len(settings["token"]) == 32 and settings["token"] not in first
    assert config.stat().st_mode & 0o077 == 0
    assert "made" not in start() and config.read_text() == kept


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here, which makes a certificate")
def test_the_health_check_asks_a_server_with_a_certificate_too(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    request += ["-subj", "/CN=home.local", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(request, capture_output=True, check=True)
    said = {"status": "starting"}

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/healthz" else 404)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *words: object) -> None:
            """Nothing on the terminal."""

    def asked(port: int) -> int:
        env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "ASSISTANT_HOME": str(tmp_path)}
        entry = ["sh", str(ROOT / "container" / "entry"), "healthy"]
        return subprocess.run(entry, env=env | {"ASSISTANT_PORT": str(port)}, check=False).returncode

    for secure in (False, True):
        said["status"] = "starting"
        with HTTPServer(("127.0.0.1", 0), Health) as server:
            server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a plain word to one that wants TLS
            if secure:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(cert, key)
                server.socket = context.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            assert asked(server.server_port) == 1
            said["status"] = "ok"
            assert asked(server.server_port) == 0
            server.shutdown()
    assert asked(server.server_port) == 1
