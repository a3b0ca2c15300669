"""A small server that speaks the hub's HTTP interface: model info, HEAD with digests, GET with ranges, broken lines."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "a" * 40
REPO = "maker/model"
WEIGHTS = random.Random(0).randbytes(3_000_000)
FILES = {
    "config.json": b'{"hidden_size": 8}',
    "model-00001-of-00002.safetensors": WEIGHTS,
    "model-00002-of-00002.safetensors": WEIGHTS[:5000],
    "tokenizer.json": b"{}" * 500,
    "LICENSE": b"be nice",
    "pytorch_model.bin": b"x" * 100,
    "run_me.py": b"import os",
    "onnx/model.onnx": b"y" * 100,
}


class Hub:
    """Repositories by name: `{repo: {file: bytes}}`. `drops`: how many GETs are cut in the middle."""

    def __init__(self, repos: dict[str, dict[str, bytes]], card: dict[str, Any]) -> None:
        self.repos, self.card = repos, card
        self.drops = 0
        self.corrupt: set[str] = set()
        self.ranges: list[tuple[str, str | None]] = []
        self.gated = False
        self.gate = threading.Event()
        """While the gate is closed, only a beginning of each large file is sent."""
        self.gate.set()
        self.url = ""

    def info(self, repo: str) -> dict[str, Any]:
        siblings = []
        for name, data in self.repos[repo].items():
            entry: dict[str, Any] = {"rfilename": name, "size": len(data)}
            if name.endswith((".safetensors", ".ort")):
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
                entry["blobId"] = "b" * 40
            else:
                entry["blobId"] = hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
            siblings.append(entry)
        return {"id": repo, "modelId": repo, "sha": COMMIT, "private": False, "gated": False, "disabled": False,
                "downloads": 0, "likes": 0, "tags": [], "siblings": siblings, "cardData": self.card}  # fmt: skip


def handler_of(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer(False)

        def do_GET(self) -> None:
            self.answer(True)

        def answer(self, body: bool) -> None:
            path = self.path.split("?")[0].strip("/")
            if path.startswith("api/models/"):
                repo = "/".join(path.split("/")[2:4])
                if repo not in hub.repos:
                    return self.say(404, b"{}", {"X-Error-Code": "RepoNotFound"}, body)
                return self.say(200, json.dumps(hub.info(repo)).encode(), {"Content-Type": "application/json"}, body)
            parts = path.split("/")
            repo, name = "/".join(parts[:2]), "/".join(parts[4:])
            if hub.gated:
                return self.say(403, b"", {"X-Error-Code": "GatedRepo"}, body)
            data = hub.repos[repo][name]
            entry = next(s for s in hub.info(repo)["siblings"] if s["rfilename"] == name)
            digest = entry["lfs"]["sha256"] if "lfs" in entry else entry["blobId"]
            headers = {"ETag": f'"{digest}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
            if not body:
                return self.say(200, data, headers, False)
            wanted = self.headers.get("Range")
            hub.ranges.append((name, wanted))
            if name in hub.corrupt:
                data = data[:-1] + bytes([data[-1] ^ 1])
            start = int(wanted.removeprefix("bytes=").split("-")[0]) if wanted else 0
            if wanted:
                headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            piece = data[start:]
            cut = len(piece) // 2 if hub.drops > 0 and len(piece) > 1000 else None
            hub.drops -= cut is not None
            self.say(206 if wanted else 200, piece, headers, True, cut)

        def say(self, status: int, data: bytes, headers: dict[str, str], body: bool, cut: int | None = None) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if not body:
                return
            with contextlib.suppress(ConnectionError):
                beginning = 0 if hub.gate.is_set() or len(data) < 1_000_000 else 600_000
                self.wfile.write(data[:beginning])
                if beginning:
                    self.wfile.flush()
                    hub.gate.wait()
                self.wfile.write(data[beginning:cut])
                if cut is not None:
                    self.wfile.flush()
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)

    return Handler


@contextmanager
def running(hub: Hub) -> Iterator[Hub]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(hub))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
