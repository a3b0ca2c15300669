"""Routes: the page with its policy and nothing beside it, bodies that cannot be read, health and metrics."""

from collections.abc import AsyncGenerator

import aiohttp
import numpy as np
import pytest

from assistant.base.errors import AssistantError
from assistant.base.pcm import wav_bytes
from assistant.base.sound_file import read_sound
from assistant.contracts import SpeechChunk
from tests.fakes.web import Site, run


def test_the_page_is_served_with_a_policy_and_nothing_beside_it(tmp_path):
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui" / "index.html").write_text("<!doctype html><title>x</title>")
    (tmp_path / "ui" / "main.js").write_text("export {}")
    (tmp_path / "secret").write_text("no")

    async def story(site: Site) -> None:
        async with site.client.get(f"{site.http}/") as answer:
            assert answer.status == 200 and answer.content_type == "text/html"
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        async with site.client.get(f"{site.http}/main.js") as answer:
            assert answer.content_type in {"text/javascript", "application/javascript"}
        for path in ("/../secret", "/%2e%2e/secret", "/nothing"):
            async with site.client.get(site.http + path) as answer:
                assert answer.status in {403, 404}
        for method, path, status in (
            ("GET", "/v1/nothing", 404),
            ("POST", "/v1/nothing", 404),
            ("GET", "/v1/chat/completions", 405),
        ):
            async with site.client.request(method, site.http + path) as answer:
                assert answer.status == status and path in (await answer.json())["error"]["message"]

    run(story, ui=tmp_path / "ui")


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("chat/completions", {"Content-Type": "application/json", "Content-Encoding": "gzip"}, b"no gzip"),
        ("audio/transcriptions", {"Content-Type": "multipart/form-data; boundary=q"}, b"--q\r\nno header"),
        ("audio/transcriptions", {"Content-Type": "multipart/form-data; boundary=q"}, b"--z\r\n\r\n--z--"),
    ],
)
def test_a_body_that_is_damaged_is_the_clients_mistake(path, kind, body):
    async def story(site: Site) -> None:
        async with site.client.post(f"{site.http}/v1/{path}", data=body, headers=kind) as answer:
            error = (await answer.json())["error"]
        assert answer.status == 400 and error["code"] == "invalid_event" and "damaged" in error["message"]

    run(story)


@pytest.mark.parametrize("wanted", [{}, {"response_format": "pcm"}, {"response_format": "wav"},
                                    {"response_format": "pcm", "stream_format": "sse"}])  # fmt: skip
@pytest.mark.parametrize("text", [" ", "?!"])
def test_a_text_of_which_nothing_is_spoken_is_refused(text, wanted):
    async def nothing(*asked: object, **options: object) -> AsyncGenerator[SpeechChunk, None]:
        yield SpeechChunk(np.zeros(0, np.float32), (), 0, ())

    async def story(site: Site) -> None:
        site.world.tts.speak = nothing  # type: ignore[method-assign, assignment]
        async with site.client.post(f"{site.http}/v1/audio/speech", json={"input": text} | wanted) as answer:
            error = (await answer.json())["error"]
        assert answer.status == 400 and error["param"] == "input" and "no words" in error["message"]

    run(story)


def test_a_file_of_sound_has_no_words_about_a_screen():
    given: list[str] = []

    async def story(site: Site) -> None:
        speak = site.world.tts.speak
        site.world.tts.speak = lambda *asked, **more: (given.append(asked[3]), speak(*asked, **more))[1]  # type: ignore
        body = {"input": "Look:\n```\nx = 1\n```\n**Done.**", "response_format": "pcm"}
        async with site.client.post(f"{site.http}/v1/audio/speech", json=body) as answer:
            assert answer.status == 200 and await answer.read()

    run(story)
    assert [text.strip() for text in given] == ["Look:", "Done."]


@pytest.mark.parametrize("rate", [1, 900, 2_000_000_000])
def test_a_recording_at_a_rate_that_none_has_is_refused_in_words(rate, tmp_path):
    path = tmp_path / "odd.wav"
    path.write_bytes(wav_bytes(np.zeros(3200, np.float32), rate))
    with pytest.raises(AssistantError, match=f"{rate} samples a second"):
        read_sound(path)

    async def story(site: Site) -> None:
        form = aiohttp.FormData()
        form.add_field("file", path.read_bytes(), filename="odd.wav")
        async with site.client.post(f"{site.http}/v1/audio/transcriptions", data=form) as answer:
            error = (await answer.json())["error"]
        assert answer.status == 400 and error["param"] == "file" and f"{rate} samples a second" in error["message"]

    run(story)


def test_health_and_metrics():
    async def story(site: Site) -> None:
        async with site.client.get(f"{site.http}/healthz") as answer:
            health = await answer.json()
        assert health["status"] == "ok" and health["sessions"] == {"open": 0, "limit": 4}
        async with site.wire(), site.client.get(f"{site.http}/metrics") as answer:
            assert "assistant_sessions_open 1.0" in await answer.text()
        for path, status in (("/v1/realtime", 426), ("/v1/realtime/calls", 405), ("/v1/nothing", 404)):
            async with site.client.get(site.http + path) as answer:
                assert answer.status == status and "error" in await answer.json()

    run(story)
