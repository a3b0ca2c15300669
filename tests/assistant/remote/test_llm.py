"""Engines on another server: held against our own endpoints, a scripted server, and servers that die."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from assistant.base.errors import EngineFailed
from assistant.base.picture import Picture, read_picture
from assistant.contracts import (
    CANNOT_SEE,
    BadCall,
    CallPiece,
    Line,
    PlacedPicture,
    Prompt,
    PromptReady,
    ReplyEnd,
    ReplyOptions,
    TextPiece,
    ToolCall,
)
from assistant.events import ToolSpec
from assistant.remote import Address, RemoteLLM, RemoteTTS
from assistant.remote.llm import chat_body
from tests.fakes.talk import World
from tests.fakes.web import Site, run, serving

OPTIONS = ReplyOptions("resp_1.0")


def asked(text: str) -> Prompt:
    return Prompt("", (), (Line("user", text),))


async def pieces_of(llm: RemoteLLM, prompt: Prompt, options: ReplyOptions = OPTIONS) -> list:
    try:
        async with aclosing(llm.reply("talk", prompt, options)) as pieces:
            return [piece async for piece in pieces]
    finally:
        await llm.close()


def test_request_carries_the_whole_talk():
    lines = (
        Line("user", "weather?"),
        Line("assistant", "", (ToolCall("c1", "weather", "{}"),)),
        Line("tool", "sunny", call_id="c1"),
    )
    prompt = Prompt("Be kind.", (ToolSpec("weather", "d", {"type": "object"}),), lines)
    body = chat_body("m", prompt, ReplyOptions("r", max_tokens=5, seed=3, tool_choice="weather"))
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert body["messages"][2]["tool_calls"][0]["function"]["name"] == "weather"
    assert body["messages"][3]["tool_call_id"] == "c1" and "temperature" not in body
    assert body["tool_choice"]["function"]["name"] == "weather" and (body["max_tokens"], body["seed"]) == (5, 3)


def test_pictures_are_passed_on_where_they_stand():
    picture = Picture.of(np.full((8, 16, 3), 9, np.uint8), "original")
    line = Line("user", "this and this?", pictures=(PlacedPicture(5, picture), PlacedPicture(5, picture)))
    parts = chat_body("m", Prompt("", (), (line,)), OPTIONS)["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "image_url", "text"]
    assert (parts[0]["text"], parts[3]["text"]) == ("this ", "and this?")
    assert parts[1]["image_url"]["detail"] == "high"
    assert read_picture(parts[1]["image_url"]["url"]).digest == picture.digest
    alone = chat_body("m", Prompt("", (), (Line("user", "", pictures=(PlacedPicture(0, picture),)),)), OPTIONS)
    assert [part["type"] for part in alone["messages"][0]["content"]] == ["image_url"]


def test_thinking_and_speaking_against_our_own_endpoints():
    async def story(site: Site) -> None:
        pieces = await pieces_of(RemoteLLM(Address(f"{site.http}/v1")), asked("good day"))
        assert isinstance(pieces[0], PromptReady) and pieces[-1] == ReplyEnd("stop", 4)
        assert "".join(p.text for p in pieces if isinstance(p, TextPiece)) == "You said good day."
        tts = RemoteTTS(Address(f"{site.http}/v1"), ("ada",))
        async with aclosing(tts.speak("talk", None, "p", "one two three.")) as sounds:
            pcm = np.concatenate([sound.pcm async for sound in sounds])
        await tts.close()
        assert len(pcm) == 3 * 7200 and abs(float(pcm.mean()) - 0.1) < 1e-3

    run(story)


def test_a_talk_over_remote_engines_says_that_capsules_are_off():
    async def story(site: Site) -> None:
        llm, tts = RemoteLLM(Address(f"{site.http}/v1")), RemoteTTS(Address(f"{site.http}/v1"))
        async with serving(World(llm=llm, tts=tts)) as front:
            async with front.wire("?extensions=state") as wire:
                assert wire.session["assistant"]["capsules"] is False
                await wire.say("hello")
                await wire.send("response.create")
                done = await wire.until("response.done")
                assert done["response"]["output"][0]["content"][0]["transcript"] == "You said hello."
            async with front.client.get(f"{front.http}/healthz") as answer:
                assert (await answer.json())["capsules"] == {"llm": False, "tts": False}
            await llm.close()
            await tts.close()

    run(story)


async def scripted(chunks: list[bytes], status: int = 200, cut: bool = False) -> TestServer:
    """A server that answers every POST with these bytes; `cut`: and breaks the line."""

    async def post(request: web.Request) -> web.StreamResponse:
        if status != 200:
            return web.Response(status=status, body=b"".join(chunks))
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0)
        if cut:
            request.transport.abort()
        else:
            await response.write_eof()
        return response

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "first"}, {"id": "second"}]})

    app = web.Application()
    app.router.add_post("/{path:.*}", post)
    app.router.add_get("/v1/models", models)
    server = TestServer(app)
    await server.start_server()
    return server


def test_a_voice_is_told_a_language_by_its_name_or_not_at_all():
    told = []

    async def post(request: web.Request) -> web.Response:
        told.append((await request.json()).get("language"))
        return web.Response(body=b"\0\0")

    async def story() -> None:
        app = web.Application()
        app.router.add_post("/audio/speech", post)
        async with TestServer(app) as server:
            tts = RemoteTTS(Address(f"http://{server.host}:{server.port}", model="voice"))
            for language in (None, "en-GB", "de-AT", "th"):
                async with aclosing(tts.speak("talk", None, "p", "so", language=language)) as sounds:
                    _ = [sound async for sound in sounds]
            await tts.close()

    asyncio.run(story())
    assert told == [None, None, "German", None]


def data(**event: object) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: object) -> bytes:
    return data(choices=[{"index": 0, "delta": fields, "finish_reason": finish}])


def ask_scripted(chunks: list[bytes], **kinds) -> list:
    async def story() -> list:
        server = await scripted(chunks, **kinds)
        try:
            return await pieces_of(RemoteLLM(Address(f"http://{server.host}:{server.port}/v1")), asked("x"))
        finally:
            await server.close()

    return asyncio.run(story())


def test_calls_in_pieces_comments_and_split_lines():
    call = {"index": 0, "id": "c9", "type": "function", "function": {"name": "look", "arguments": ""}}
    stream = [
        b": keep-alive\n\n",
        delta(role="assistant", content="", reasoning_content="hm"),
        delta(tool_calls=[call]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"x"'}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
        delta(tool_calls=[{"index": 1, "function": {"name": "bad", "arguments": "{"}}]),
        delta("tool_calls"),
        data(choices=[], usage={"completion_tokens": 9, "prompt_tokens": 3}),
        b"data: [DONE]\n\n",
    ]
    whole = b"".join(stream)
    pieces = ask_scripted([whole[i : i + 7] for i in range(0, len(whole), 7)])
    assert CallPiece("c9", "look", '{"x": 1}', True) in pieces
    assert any(isinstance(piece, BadCall) for piece in pieces)
    assert pieces[-1] == ReplyEnd("tool_calls", 9)


@pytest.mark.parametrize(
    ("chunks", "kinds", "told"),
    [
        ([delta(content="half")], {"cut": True}, "cannot be used|broke off"),
        ([delta(content="half")], {}, "broke off"),
        ([b"data: {nonsense\n\n"], {}, "not JSON"),
        ([data(error={"message": "out of memory"})], {}, "out of memory"),
        ([b'{"error": {"message": "no such model"}}'], {"status": 404}, "404: no such model"),
        ([b"<html>"], {"status": 500}, "500: <html>"),
        ([b"data: 5\n\n"], {}, "not an event: 5"),
        ([data(choices=[5])], {}, "invalid chat completion"),
        ([delta(content=5)], {}, "invalid chat completion"),
        ([delta(tool_calls=[{"index": "x"}])], {}, "invalid chat completion"),
    ],
)
def test_servers_that_fail(chunks, kinds, told):
    with pytest.raises(EngineFailed, match=told):
        ask_scripted(chunks, **kinds)


NO_EYES = [  # as Ollama, llama.cpp, vLLM, a strict reader of JSON and a router say it
    (400, "this model does not support image input"),
    (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    (400, "facebook/opt-125m is not a multimodal model None"),
    (422, "messages[0]: unknown variant `image_url`, expected `text`"),
    (404, "No endpoints found that support image input"),
]


def blind(status: int, message: str, asked: list[dict]) -> web.Application:
    """A server that refuses pictures, and answers words."""

    async def answer(request: web.Request) -> web.Response:
        asked.append(await request.json())
        if "image_url" in json.dumps(asked[-1]["messages"]):
            return web.json_response({"error": {"message": message}}, status=status)
        return web.Response(body=delta(content="Well.") + b"data: [DONE]\n\n", content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    return app


def ask_blind(
    status: int, message: str, *prompts: Prompt, options: ReplyOptions = OPTIONS
) -> tuple[list[str], list[dict], RemoteLLM]:
    async def story():
        asked: list[dict] = []
        server = TestServer(blind(status, message, asked))
        await server.start_server()
        llm = RemoteLLM(Address(f"http://{server.host}:{server.port}/v1", model="m"))
        try:
            found = [await pieces_of(llm, prompt, options) for prompt in prompts]
            return ["".join(p.text for p in one if isinstance(p, TextPiece)) for one in found], asked, llm
        finally:
            await server.close()

    return asyncio.run(story())


CAT = PlacedPicture(5, Picture.of(np.full((8, 16, 3), 9, np.uint8)))
LOOK = Line("user", "look at this", pictures=(CAT,))
GOES_ON = Prompt("", (), (LOOK, Line("assistant", CANNOT_SEE), Line("user", "well then")))


@pytest.mark.parametrize(("status", "message"), NO_EYES)
def test_a_server_without_eyes_is_asked_once_and_its_talks_go_on(status, message):
    said, asked, llm = ask_blind(status, message, Prompt("", (), (LOOK,)), Prompt("", (), (LOOK,)), GOES_ON)
    assert said == [CANNOT_SEE, CANNOT_SEE, "Well."] and not llm.sees
    assert len(asked) == 2 and asked[1]["messages"][0]["content"] == "look  [picture] at this"


def test_a_server_without_eyes_answers_what_is_not_about_the_picture():
    time = Line("user", "what time is it", pictures=(replace(CAT, at=0),))
    said, asked, _ = ask_blind(400, NO_EYES[0][1], Prompt("", (), (time,)), Prompt("", (), (time,)))
    assert said == ["Well.", "Well."] and asked[-1]["messages"][0]["content"] == "[picture] what time is it"


@pytest.mark.parametrize(("words", "said"), [("Ich sehe nichts.", "Ich sehe nichts."), ("", "Well.")])
def test_a_server_without_eyes_says_nothing_in_english_in_another_language(words, said):
    german = Prompt("", (), (Line("user", "was ist das", pictures=(replace(CAT, at=0),)),))
    options = replace(OPTIONS, english=False, cannot_see=words)
    assert ask_blind(400, NO_EYES[0][1], german, german, options=options)[0] == [said, said]


def test_pictures_of_before_are_told_in_words_without_an_error():
    said, asked, llm = ask_blind(400, NO_EYES[0][1], GOES_ON)
    assert said == ["Well."] and len(asked) == 2 and not llm.sees


@pytest.mark.parametrize(
    "message", ["out of memory", "could not decode image", "unsupported image format", "image is too large",
                "we do not support image type webp", "cannot process image of 9 MB"],
)  # fmt: skip
def test_a_server_that_fails_with_a_picture_may_still_see(message):
    with pytest.raises(EngineFailed, match=message):
        ask_blind(400, message, Prompt("", (), (LOOK,)))


def test_a_server_that_is_not_there():
    with pytest.raises(EngineFailed, match="check that the server runs"):
        asyncio.run(pieces_of(RemoteLLM(Address("http://127.0.0.1:9/v1")), asked("x")))


def test_a_dead_engine_fails_the_reply_and_the_talk_lives_on():
    async def story() -> None:
        llm = RemoteLLM(Address("http://127.0.0.1:9/v1", model="m"))
        async with serving(World(speed=100.0, llm=llm)) as site, site.wire() as wire:
            for _ in range(2):
                await wire.say("hello")
                await wire.send("response.create")
                response = (await wire.until("response.done"))["response"]
                assert response["status"] == "failed"
                assert "check that the server runs" in response["status_details"]["error"]["message"]
        await llm.close()

    asyncio.run(story())


@pytest.mark.parametrize("closes", [1, 2])
def test_a_connection_that_was_closed_while_it_rested(closes):
    """A server closes it just as the next request comes: that request is sent once more, and no further."""
    seen = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        while (head := await reader.readuntil(b"\r\n\r\n")) is not None:
            seen += 1
            if 2 <= seen < 2 + closes:
                break
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]) if b"POST" in head else 0
            await reader.readexactly(length)
            delta = json.dumps({"choices": [{"delta": {"content": "well"}, "finish_reason": "stop"}]})
            body = f"data: {delta}\n\ndata: [DONE]\n\n".encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    async def story() -> list[object]:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            llm = RemoteLLM(Address(f"http://127.0.0.1:{port}/v1", model="m"))
            said: list[object] = []
            for _ in range(2):
                try:
                    async for piece in llm.reply("talk", asked("hello"), OPTIONS):
                        said += [piece.text] if isinstance(piece, TextPiece) else []
                except EngineFailed as error:
                    said.append("cannot be used" in str(error))
            await llm.close()
            return said

    assert asyncio.run(story()) == ["well", "well" if closes == 1 else True]
    assert seen == 3
