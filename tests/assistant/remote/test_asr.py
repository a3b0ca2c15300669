"""Ears on another server: what is sent when, and what becomes of a server that is slow, wrong or gone."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from assistant.app.config import Config
from assistant.app.ears import open_ears
from assistant.app.places import check_models
from assistant.asr.local import LocalASR
from assistant.asr.paced import Paced
from assistant.base.errors import EngineFailed, SettingError
from assistant.events import Event, TranscriptCompleted, TranscriptFailed
from assistant.remote import RemoteFollower, TranscriptionServer, read_address
from assistant.remote.asr import ANSWER_SECONDS, LOADING_SECONDS, QUICK_SECONDS
from assistant.talk import Session
from tests.fakes.models import FakeDetector, FakeEars
from tests.fakes.talk import World
from tests.fakes.transformers_server import lacking, serving_whisper
from tests.fakes.web import serving_aside

RATE = 16_000
HALF = np.full(RATE // 2, 0.1, np.float32)


class Quick(TranscriptionServer):
    """A server that answers what the test says, after as long as it says."""

    def __init__(self, answer_s: float = 0.1) -> None:
        super().__init__(read_address("http://ears/v1#fast"), clock=lambda: self.now)
        self.now, self.answer_s = 0.0, answer_s
        self.asked: list[tuple[int, float]] = []
        self.gone = False

    def _ask(self, method: str, path: str, patience_s: float, body: bytes = b"", kind: str = "") -> object:
        assert b'name="model"\r\n\r\nfast\r\n' in body and kind.startswith("multipart/form-data")
        self.asked.append(((len(body) - body.index(b"RIFF")) // 2 * 1000 // RATE, patience_s))
        self.now += self.answer_s
        if self.gone:
            raise EngineFailed("http://ears/v1/audio/transcriptions cannot be used")
        return {"text": f" word\n{len(self.asked)} "}


def spoken(transcriber: Paced, halves: int) -> None:
    for _ in range(halves):
        transcriber.push(HALF)
        transcriber.partial()


def test_a_quick_server_is_asked_again_as_the_utterance_grows() -> None:
    server = Quick()
    server.rehearse()
    transcriber = Paced(RemoteFollower(server), clock=lambda: server.now)
    spoken(transcriber, 5)
    assert [ms // 100 for ms, _ in server.asked[1:]] == [10, 20] and server.asked[1][1] == QUICK_SECONDS
    assert transcriber.pause().text == "word 4"
    assert transcriber.final().text == "word 4" and len(server.asked) == 4, "nothing came since the pause"
    assert transcriber.final().text == "" and len(server.asked) == 4, "no sound, no question"


@pytest.mark.parametrize("gone", [False, True])
def test_a_slow_or_failing_server_is_asked_once_for_all(gone: bool) -> None:
    server = Quick(0.1 if gone else 0.7)
    server.rehearse()
    server.gone = gone
    transcriber = Paced(RemoteFollower(server), clock=lambda: server.now)
    spoken(transcriber, 9)
    assert len(server.asked) == 2, "a failure in between is not told, and not repeated; slow is who is so twice"
    server.gone = False
    assert transcriber.final().text.startswith("word")
    assert server.asked[-1][0] // 100 == 45


def test_a_server_that_is_gone_costs_the_utterance_only() -> None:
    server = Quick()
    transcriber = Paced(RemoteFollower(server), clock=lambda: server.now)
    server.gone = True
    transcriber.push(HALF)
    for ask in (transcriber.pause, transcriber.final):
        with pytest.raises(EngineFailed, match="http://ears/v1"):
            ask()
    server.gone = False
    transcriber.push(HALF)
    assert transcriber.final().text == "word 3" and server.asked[-1][0] // 100 == 5, "the lost sound is not sent again"


@pytest.fixture
def served() -> Iterator[tuple[str, FakeEars]]:
    """A server that hears by fake ears."""
    worlds = []

    def world() -> World:
        worlds.append(World())
        return worlds[0]

    with serving_aside(world) as url:
        yield url, worlds[0].asr


def test_a_server_is_opened_by_its_address_and_hears(served, tmp_path) -> None:
    url, ears = served
    told: list[str] = []
    asr = open_ears(Config(tmp_path, asr=url), told.append)
    assert asr.name == "local" and asr.facts.languages == () and url in told[0]
    transcriber = asr.transcriber()
    transcriber.push(ears.spoken("hello there", 1.0))
    assert transcriber.final().text == "hello there"


class Ears(LocalASR):
    """Takes any sound for speech, as the fake world's microphone needs."""

    def detector(self) -> FakeDetector:
        return FakeDetector()


def test_a_turn_whose_server_is_gone_is_told_and_the_talk_goes_on() -> None:
    server = Quick()
    world = World(asr=Ears(server.facts, lambda: Paced(RemoteFollower(server))))

    def repair(session: Session, event: Event) -> tuple[()]:
        server.gone = server.gone and not isinstance(event, TranscriptFailed)
        return ()

    server.gone, world.on_event = True, repair
    world.play((0.2, ("hello there", 0.8)), (4.0, ("and again", 0.8)), until=8)
    [failed], [heard] = world.of(TranscriptFailed), world.of(TranscriptCompleted)
    assert "http://ears/v1" in failed.message and heard.transcript.startswith("word")


def test_a_server_that_loads_at_the_first_question_is_waited_for_and_asked_again() -> None:
    server = Quick(60.0)
    ask = server._ask

    def loaded(*args: Any) -> object:
        answer = ask(*args)
        server.answer_s = 0.1
        return answer

    server._ask = loaded  # type: ignore[method-assign]
    server.rehearse()
    assert [patience_s for _, patience_s in server.asked] == [LOADING_SECONDS, ANSWER_SECONDS] and server.quick


@pytest.mark.parametrize(
    ("listed", "told"), [(None, "models answered 500.*name the one"), ("llm", "asked for llm, the first.*name the one")]
)
def test_who_names_no_model_is_told_to_when_the_server_refuses(listed: str | None, told: str) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(200 if listed else 500, json.dumps({"data": [{"id": listed}]}))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(500, "Internal Server Error")

        def answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as site:
        thread = threading.Thread(target=site.serve_forever, args=(0.01,))
        thread.start()
        try:
            with pytest.raises(EngineFailed, match=told):
                TranscriptionServer(read_address(f"http://127.0.0.1:{site.server_port}/v1")).rehearse()
        finally:
            site.shutdown()
            thread.join()


@pytest.mark.slow
def test_the_server_of_another_project_hears(tmp_path) -> None:
    if packages := lacking():
        pytest.skip(f"`transformers serve` is not whole here; pip install {' '.join(packages)}")
    with serving_whisper(tmp_path) as url:
        server = TranscriptionServer(read_address(url))
        server.rehearse()
        first = server.transcribe(HALF)
        assert first.split() and server.transcribe(HALF) == first
        with pytest.raises(EngineFailed, match=r"models answered 500.*name the one that hears"):
            TranscriptionServer(read_address(url.partition("#")[0])).rehearse()
        with pytest.raises(EngineFailed, match="transcriptions answered 500"):
            TranscriptionServer(read_address(f"{url}-no")).rehearse()
        assert server.transcribe(HALF) == first, "what it refuses another costs nobody else"


def test_what_is_no_server_is_told(tmp_path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with pytest.raises(EngineFailed, match=rf"127\.0\.0\.1:{port}/v1/models cannot be used .nothing listens there"):
            open_ears(Config(tmp_path, asr=f"http://127.0.0.1:{port}/v1"))
    with pytest.raises(SettingError, match="no valid port"):
        check_models(Config(tmp_path, asr="http://ears:port/v1"))


def test_what_a_server_refuses_is_told_in_its_words(served, tmp_path) -> None:
    url, ears = served
    ears.broken = True
    ears.utterances.append(("x", RATE))
    server = TranscriptionServer(read_address(url))
    with pytest.raises(EngineFailed, match=f"{url}/audio/transcriptions answered 500"):
        server.transcribe(np.full(RATE, 0.201, np.float32))
    with pytest.raises(EngineFailed, match="answered 404: there is nothing at /v1/no/audio"):
        TranscriptionServer(read_address(f"{url}/no#m")).rehearse()
