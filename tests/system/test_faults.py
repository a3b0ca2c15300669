"""What clients and engines do wrong: vanish, stall, send junk, fail. The talk concerned suffers, nothing else does."""

import asyncio
import base64
import contextlib
import copy
import errno
import json
import os
import random
import socket
from collections.abc import AsyncIterator

import aiohttp
import numpy as np
import pytest

from assistant.base.errors import ContextExceeded
from assistant.contracts import ReplyPiece
from assistant.server.socket import MAX_FRAME
from tests.fakes.talk import World
from tests.fakes.web import Site, Wire, run
from tests.system.test_conformance import counted, counter, slow


async def connected(wire: Wire) -> None:
    return None


async def listening(wire: Wire) -> None:
    await wire.append(wire.world.asr.spoken("hello there", 0.5))
    await wire.until("input_audio_buffer.speech_started")


async def thinking(wire: Wire) -> None:
    await wire.say("count")
    await wire.send("response.create")
    await wire.until("response.created")


async def speaking(wire: Wire) -> None:
    await counted(wire, 2)


async def interrupted(wire: Wire) -> None:
    await counted(wire, 3)
    await wire.append(wire.world.asr.spoken("stop now", 0.5))
    await wire.until("input_audio_buffer.speech_started")


async def switching(wire: Wire) -> None:
    await wire.send("assistant.persona", name="ben")


@pytest.mark.parametrize("manner", ["close", "drop"])
@pytest.mark.parametrize("state", [connected, listening, thinking, speaking, interrupted, switching])
def test_client_vanishes(state, manner):
    """`serving` asserts at its end that no session, engine or task is left."""

    async def story(site: Site) -> None:
        async with site.wire("?extensions=all") as wire:
            await wire.listen_16k()
            await state(wire)
            if manner == "drop":
                wire.ws._response.connection.transport.abort()  # a cable pulled: no close frame
        for _ in range(200):
            if site.world.talks.active == 0:
                break
            await asyncio.sleep(0.01)
        async with site.wire() as wire:
            await wire.say("hello")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            await wire.until("response.done")

    run(story, world=slow())


@pytest.mark.slow
def test_slow_client_slows_only_itself():
    """A client that reads nothing: its talk stops making words, another one is served as ever."""

    async def story(site: Site) -> None:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.setblocking(False)
        host, port = site.http.removeprefix("http://").split(":")
        loop = asyncio.get_running_loop()
        await loop.sock_connect(raw, (host, int(port)))
        reader, writer = await asyncio.open_connection(sock=raw, limit=1024)
        key = base64.b64encode(b"0123456789abcdef").decode()
        writer.write(
            f"GET /v1/realtime HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        await reader.readuntil(b"\r\n\r\n")
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
        text = {"output_modalities": ["text"]}
        events = ({"type": "conversation.item.create", "item": item}, {"type": "response.create", "response": text})
        for event in events:
            writer.write(text_frame(json.dumps(event)))
        made = -1
        while made != (made := sum(map(len, site.world.llm.folded.values()))) or made == 0:
            await asyncio.sleep(0.25)
        assert 1000 < made < 90_000, f"{made} words were made for a client that reads nothing"
        async with site.wire() as wire:
            await wire.say("hello")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            assert (await wire.until("response.done"))["response"]["status"] == "completed"
        writer.transport.abort()

    world = World(lambda prompt: ["word " * 100_000] if prompt.lines[-1].text == "go" else ["yes"])
    world.llm.token_s = 0.0
    run(story, world=world)


def text_frame(text: str) -> bytes:
    """A masked websocket text frame; the mask is zero."""
    data = text.encode()
    head = bytes([0x81, 0x80 | (len(data) if len(data) < 126 else 126)])
    return head + (b"" if len(data) < 126 else len(data).to_bytes(2, "big")) + b"\0\0\0\0" + data


@pytest.mark.slow
def test_fifteen_mebibytes_in_one_append():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.listen_16k(turn_detection=None)
            audio = base64.b64encode(np.zeros(15 * 1024 * 1024 // 4 * 3, np.uint8).tobytes()).decode()
            assert len(audio) == 15 * 1024 * 1024
            await wire.send("input_audio_buffer.append", audio=audio)
            await wire.send("input_audio_buffer.append", audio=audio + "AAAA", event_id="too long")
            assert (await wire.until("error"))["error"]["event_id"] == "too long"
            assert await wire.round_trip() == []

    run(story)


def test_a_frame_beyond_the_limit_ends_its_connection_only():
    async def story(site: Site) -> None:
        async with site.wire() as wire, site.wire() as other:
            with contextlib.suppress(ConnectionError):
                await wire.ws.send_str("x" * (MAX_FRAME + 1024))
            while not wire.ws.closed:
                await wire.ws.receive()
            assert wire.ws.close_code in {1009, 1006}  # 1006: the server closed before it had read everything
            await other.round_trip()

    run(story)


GOOD = [
    {"type": "session.update", "session": {"type": "realtime", "instructions": "x"}},
    {"type": "session.update", "session": {"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}}},
    {"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(3200)).decode()},
    {"type": "input_audio_buffer.commit"},
    {"type": "input_audio_buffer.clear"},
    {
        "type": "conversation.item.create",
        "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    },
    {"type": "conversation.item.retrieve", "item_id": "i"},
    {"type": "conversation.item.delete", "item_id": "i"},
    {"type": "conversation.item.truncate", "item_id": "i", "content_index": 0, "audio_end_ms": 100},
    {"type": "response.create", "response": {"conversation": "none", "output_modalities": ["text"]}},
    {"type": "response.create", "response": {"metadata": {"a": "b"}, "tools": []}},
    {"type": "response.cancel"},
    {"type": "assistant.heard", "item_id": "i", "audio_ms": 5},
    {"type": "assistant.undo", "turns": 1},
    {"type": "assistant.rewind", "item_id": "i", "words": 1},
    {"type": "assistant.persona", "name": "ben"},
    {"type": "assistant.ping", "client_ms": 1},
]
JUNK = [
    None, True, -1, 0, 1e308, -1e308, 2**63, 2**4000, "", "\x00", "ü" * 1000, "A" * 5000, [], {}, [[[]]], {"a": {}},
    "item_1", "root", {"type": "message"}, [None], ["audio", "text"], "audio", "../../etc/passwd", "%s%n", "\u202e",
]  # fmt: skip


def mutated(rng: random.Random) -> str | bytes:
    """A good event with something wrong in it: a value, a name, a cut, a byte."""
    event = json.loads(json.dumps(rng.choice(GOOD)))
    for _ in range(rng.randint(1, 3)):
        node = event
        while rng.random() < 0.6:
            below = [v for v in (node.values() if isinstance(node, dict) else node) if isinstance(v, dict | list) and v]
            if not below:
                break
            node = rng.choice(below)
        if isinstance(node, dict):
            key = rng.choice([*node, "extra", "type", "item_id", "session", "audio"])
            node[key] = copy.deepcopy(rng.choice(JUNK))
        elif node:
            node[rng.randrange(len(node))] = copy.deepcopy(rng.choice(JUNK))
    text = json.dumps(event)
    kind = rng.random()
    if kind < 0.1:
        return text[: rng.randrange(len(text))]
    if kind < 0.15:
        return text.replace(rng.choice(text), rng.choice(["NaN", "\ud7ff", '"', "\\ud800", "}", "[" * 500]), 1)
    if kind < 0.2:
        return rng.randbytes(rng.randrange(1, 200))
    return text


@pytest.mark.parametrize("seed", range(4))
def test_hostile_messages(seed):
    """250 a time, 1,000 in all: the connection answers after each lot, another talk goes on beside it."""
    rng = random.Random(seed)

    async def story(site: Site) -> None:
        async with site.wire("?extensions=all") as wire, site.wire() as other:
            for _ in range(5):
                for _ in range(50):
                    frame = mutated(rng)
                    await (wire.ws.send_bytes(frame) if isinstance(frame, bytes) else wire.ws.send_str(frame))
                await wire.round_trip()
            await wire.send("response.cancel")
            await wire.round_trip()
            created = {f["response"]["id"] for f in wire.of("response.created")}
            done = [f["response"]["id"] for f in wire.of("response.done")]
            assert len(done) == len(set(done)) and set(done) <= created
            ended: set[str] = set()
            for frame in wire.frames:
                assert frame.get("response_id") not in ended or frame["type"].startswith("assistant.")
                if frame["type"] == "response.done":
                    ended.add(frame["response"]["id"])
            assert not [f for f in wire.of("error") if f["error"]["type"] == "server_error"]
            await other.say("hello")
            await other.send("response.create", response={"output_modalities": ["text"]})
            assert (await other.until("response.done"))["response"]["status"] == "completed"

    run(story, world=World(speed=1000.0))


def test_engine_failure_in_mid_reply_fails_that_reply_only():
    async def story(site: Site) -> None:
        async with site.wire() as wire, site.wire() as other:
            site.world.llm.fail_after = 3
            await wire.say("count")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            assert (await wire.until("response.done"))["response"]["status"] == "failed"
            site.world.llm.fail_after = None
            for each in (wire, other):
                await each.say("hello")
                await each.send("response.create", response={"output_modalities": ["text"]})
                assert (await each.until("response.done"))["response"]["status"] == "completed"

    run(story, world=counter())


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_that_no_context_holds_is_the_clients_mistake(stream):
    async def story(site: Site) -> None:
        async def too_long(*asked: object) -> AsyncIterator[ReplyPiece]:
            raise ContextExceeded("the last message takes 9,000 tokens")
            yield

        site.world.llm.reply = too_long  # type: ignore[method-assign, assignment]
        body = {"messages": [{"role": "user", "content": "hello"}], "stream": stream}
        async with site.client.post(f"{site.http}/v1/chat/completions", json=body) as answer:
            assert answer.status == 400
            assert (await answer.json())["error"]["code"] == "context_length_exceeded"

    run(story)


def test_a_bug_in_a_session_closes_it_with_1011_and_leaves_the_others():
    async def story(site: Site) -> None:
        async with site.wire() as wire, site.wire() as other:

            async def broken(talk: str, prompt: object) -> None:
                raise ZeroDivisionError("a bug")

            site.world.llm.sync = broken  # type: ignore[method-assign, assignment]
            await wire.update(instructions="something new")
            assert (await wire.until("error"))["error"]["type"] == "server_error"
            assert (await wire.ws.receive()).type == aiohttp.WSMsgType.CLOSE and wire.ws.close_code == 1011
            await other.say("hello")
            await other.send("response.create", response={"output_modalities": ["text"]})
            assert (await other.until("response.done"))["response"]["status"] == "completed"

    run(story)


def test_stopping_the_server_tells_every_talk_and_is_quick():
    async def story(site: Site) -> None:
        async with site.wire() as wire, site.wire():
            await counted(wire, 2)
            begin = asyncio.get_running_loop().time()
            await site.app.shutdown()
            assert asyncio.get_running_loop().time() - begin < 2.0
            while not wire.ws.closed:
                await wire.ws.receive()
            assert wire.ws.close_code == 1001

    run(story, world=slow())


@pytest.mark.parametrize("call", ["open", "write", "fsync"])
def test_a_full_disk_costs_a_talk_its_life_over_a_restart_only(tmp_path, monkeypatch, caplog, call):
    """It is told in the log and to the front, the talk goes on in this process, and nothing half-written stays."""

    def full(*args: object, **kinds: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def turn(wire: Wire) -> None:
        await wire.say("hello")
        await wire.send("response.create", response={"output_modalities": ["text"]})
        assert (await wire.until("response.done"))["response"]["status"] == "completed"

    async def story(site: Site) -> None:
        async with site.wire() as other:
            async with site.wire() as wire:
                await turn(wire)
            while site.world.talks.active > 1:
                await asyncio.sleep(0.01)
            kept = set(tmp_path.iterdir())
            with monkeypatch.context() as patch:
                patch.setattr(os, call, full)
                async with site.wire() as lost:
                    await turn(lost)
                while site.world.talks.active > 1:
                    await asyncio.sleep(0.01)
                await turn(other)
            assert (set(tmp_path.iterdir()) == kept or call == "fsync") and len(kept) == 1
            assert f"{lost.conversation}.journal could not be written: No space left" in caplog.text
            assert lost.of("error")[0]["error"]["code"] == "talk_not_kept" and len(lost.of("error")) == 1
            async with site.wire(f"?conversation_id={lost.conversation}") as again:
                await again.round_trip()
                assert len(again.of("conversation.item.added")) == 2

    run(story, world=World(speed=100.0, folder=tmp_path))


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_client_that_goes_away_stops_the_engine(stream):
    async def story(site: Site) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": "count"}], "stream": stream}
        post = asyncio.create_task(site.client.post(f"{site.http}/v1/chat/completions", json=body))
        while not site.world.llm.running:
            await asyncio.sleep(0.01)
        post.cancel()
        await asyncio.gather(post, return_exceptions=True)
        await site.client.close()
        for _ in range(100):
            if not site.world.llm.running:
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the engine still works for a client that has gone")

    world = World(lambda prompt: ["word " * 100_000])
    run(story, world=world)
