"""Pictures through the stock `openai` client and a bare websocket; hostile ones, while another talk goes on."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import zlib
from collections import Counter
from struct import pack

import numpy as np
import openai
import pytest

from assistant.base.picture import Picture
from assistant.contracts import CANNOT_SEE, Prompt
from assistant.remote import Address, RemoteLLM
from tests.fakes.talk import World
from tests.fakes.web import Site, run, serving

ONE = Picture.of(np.full((48, 64, 3), 9, np.uint8))
TWO = Picture.of(np.full((48, 64, 3), 200, np.uint8))
LOOK = {"type": "input_text", "text": "what is this"}


def image(picture: Picture) -> dict:
    return {"type": "input_image", "image_url": picture.data_url}


def tells(prompt: Prompt) -> list[str]:
    """Says how many pictures it was shown with the last words."""
    last = next(line for line in reversed(prompt.lines) if line.role == "user")
    return [f"{len(last.pictures)} at {' '.join(str(placed.at) for placed in last.pictures)}."]


def seeing() -> World:
    return World(tells, sees=True, speed=100.0)


def stock(site: Site) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{site.http}/v1", api_key="any", max_retries=0)


async def ask(client: openai.AsyncOpenAI, *content: dict, **options):
    messages = [{"role": "user", "content": list(content)}]
    return await client.chat.completions.create(model="m", messages=messages, **options)


def chat_image(url: str) -> dict:
    return {"type": "image_url", "image_url": {"url": url, "detail": "low"}}


def test_a_chat_completion_is_shown_pictures():
    async def story(site: Site) -> None:
        async with stock(site) as client:
            text = {"type": "text", "text": "and "}
            answer = await ask(client, chat_image(ONE.data_url), text, chat_image(TWO.data_url))
            assert answer.choices[0].message.content == "2 at 0 4."
            assert answer.usage.prompt_tokens_details.image_tokens == 2
            stream = await ask(client, chat_image(ONE.data_url), stream=True)
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
            assert text == "1 at 0."

    run(story, world=seeing())


def test_a_session_is_shown_pictures_and_sends_none_back():
    async def story(site: Site) -> None:
        async with stock(site) as client, client.realtime.connect(model="m") as wire:
            item = {"type": "message", "role": "user", "content": [image(ONE), LOOK]}
            await wire.conversation.item.create(item=item)
            await wire.response.create(response={"output_modalities": ["text"]})
            events = []
            async with asyncio.timeout(20):
                async for event in wire:
                    events.append(event)
                    if event.type == "response.done":
                        break
            assert events[-1].response.output[0].content[0].text == "1 at 0."
            assert events[-1].response.usage.input_token_details.image_tokens == 1
            added = next(event for event in events if event.type == "conversation.item.added")
            assert [part.type for part in added.item.content] == ["input_text"]
            assert not [event for event in events if event.type == "error"]

    run(story, world=seeing())


def test_a_model_without_eyes_answers_in_words_at_every_door():
    async def story(site: Site) -> None:
        asked = []
        site.world.llm.answers = lambda prompt: asked.append(prompt) or ["A cat."]
        async with stock(site) as client:
            answer = await ask(client, {"type": "text", "text": "what is this"}, chat_image(ONE.data_url))
            assert answer.choices[0].message.content == CANNOT_SEE and answer.choices[0].finish_reason == "stop"
            history = [
                {"role": "user", "content": [{"type": "text", "text": "look"}, chat_image(ONE.data_url)]},
                {"role": "assistant", "content": CANNOT_SEE}, {"role": "user", "content": "it is a cat"},
            ]  # fmt: skip
            await client.chat.completions.create(model="m", messages=history)
        [prompt] = asked
        assert [line.text for line in prompt.lines] == ["look [picture]", CANNOT_SEE, "it is a cat"]
        async with site.wire() as wire:
            item = {"type": "message", "role": "user", "content": [image(ONE)]}
            await wire.send("conversation.item.create", item=item)
            await wire.send("response.create")
            done = (await wire.until("response.done"))["response"]
            assert done["status"] == "completed" and done["output"][0]["content"][0]["transcript"] == CANNOT_SEE
            assert wire.of("response.output_audio.delta") and not wire.of("error")

    run(story)


def test_a_remote_model_is_handed_pictures():
    async def story() -> None:
        async with serving(seeing()) as behind:
            llm = RemoteLLM(Address(f"{behind.http}/v1"))
            async with serving(World(llm=llm)) as front, front.wire() as wire:
                item = {"type": "message", "role": "user", "content": [LOOK, image(ONE), image(TWO)]}
                await wire.send("conversation.item.create", item=item)
                await wire.send("response.create", response={"output_modalities": ["text"]})
                done = (await wire.until("response.done"))["response"]
                assert done["output"][0]["content"][0]["text"] == "2 at 12 12."
                await llm.close()

    asyncio.run(asyncio.wait_for(story(), 60))


# --------------------------------------------------------------------------------------------- hostile


def url(data: bytes, media: str = "image/png") -> str:
    return f"data:{media};base64,{base64.b64encode(data).decode()}"


def png(width: int, height: int, rows: bytes) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return pack(">I", len(body)) + name + body + pack(">I", zlib.crc32(name + body))

    head = chunk(b"IHDR", pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


HOSTILE = {
    "a bomb": (url(png(30_000, 30_000, bytes(3_000_000))), "image_too_large"),
    "1 x 100000": (url(png(1, 100_000, bytes(400_000))), "image_too_large"),
    "truncated": (url(ONE.encoded[:-40]), "image_parse_error"),
    "wrong type": (url(b"%PDF-1.7 hello", "application/pdf"), "unsupported_image_media_type"),
    "wrong type, well named": (url(b"%PDF-1.7 hello"), "unsupported_image_media_type"),
    "30 MiB": (url(bytes(30 << 20)), "image_file_too_large"),
    "an address": ("http://127.0.0.1:9/secret", "invalid_image_url"),
}


@pytest.mark.slow
def test_each_hostile_picture_is_one_clear_error_and_nothing_else_is_disturbed():
    """At both doors, while another talk speaks; the same connection answers a good picture afterwards."""

    async def story(site: Site) -> None:
        async with site.wire() as other, site.wire() as wire, stock(site) as client:
            item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on " * 40}]}
            await other.send("conversation.item.create", item=item)
            await other.send("response.create")
            await other.until("response.created")
            for address, code in HOSTILE.values():
                content = [LOOK, {"type": "input_image", "image_url": address}]
                both = {"type": "message", "role": "user", "content": content}
                await wire.send("conversation.item.create", item=both)
                error = (await wire.until("error"))["error"]
                assert error["code"] == code and error["param"] == "item.content[1].image_url"
                frame = {"type": "message", "role": "user", "content": content[1:]}
                await wire.send("conversation.item.create", item=frame)
                await wire.until("conversation.item.done")
                with pytest.raises(openai.BadRequestError) as refused:
                    await ask(client, {"type": "text", "text": "what is this"}, chat_image(address))
                assert refused.value.code == code
            good = {"type": "message", "role": "user", "content": [LOOK, image(ONE)]}
            await wire.send("conversation.item.create", item=good)
            await wire.send("response.create", response={"output_modalities": ["text"]})
            done = (await wire.until("response.done"))["response"]
            assert done["output"][0]["content"][0]["text"] == "1 at 12."
            assert len(wire.of("error")) == len(HOSTILE)
            assert (await other.until("response.done"))["response"]["status"] == "completed"
            assert not other.of("error")

    run(story, world=World(lambda prompt: [*tells(prompt), *["more"] * (len(prompt.lines[-1].text) // 50)], sees=True))


def test_a_camera_for_ten_minutes_leaves_one_picture_and_no_error():
    """As Pipecat and LiveKit send it: an item a second, no answer awaited."""

    async def story(site: Site) -> None:
        async with site.wire() as wire:
            for n in range(600):
                shade = Picture.of(np.full((48, 64, 3), n % 250, np.uint8))
                item = {"id": f"f{n}", "type": "message", "role": "user", "content": [image(shade)]}
                await wire.send("conversation.item.create", item=item)
            await wire.send("conversation.item.create", item={"type": "message", "role": "user", "content": [LOOK]})
            await wire.send("response.create", response={"output_modalities": ["text"]})
            done = (await wire.until("response.done"))["response"]
            assert done["output"][0]["content"][0]["text"] == "1 at 0."
            kinds = Counter(wire.types())
            assert not kinds["error"] and not kinds["conversation.item.deleted"]
            assert len([frame for frame in wire.frames if frame["type"] == "conversation.item.done"]) == 602
            await wire.send("conversation.item.delete", item_id="f3")  # long gone from the talk
            assert (await wire.until("conversation.item.deleted"))["item_id"] == "f3"

    run(story, world=seeing())


def test_a_talk_that_goes_on_tells_of_its_pictures(tmp_path):
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            item = {"id": "p", "type": "message", "role": "user", "content": [LOOK, image(ONE)]}
            await wire.send("conversation.item.create", item=item)
            await wire.until("conversation.item.done")
            talk = wire.conversation
        async with site.wire(f"?conversation_id={talk}&extensions=pictures") as wire:
            told = (await wire.until("conversation.item.done"))["item"]["pictures"]
            assert told == [{"digest": ONE.digest, "width": 64, "height": 48, "frame": False}]
            await wire.send("conversation.item.retrieve", item_id="p")
            found = (await wire.until("conversation.item.retrieved"))["item"]
            assert found["pictures"][0]["image_url"] == ONE.data_url

    run(story, world=World(tells, sees=True, folder=tmp_path))


@pytest.mark.slow
def test_the_shipped_model_is_shown_a_picture_from_the_command_line(tmp_path):
    """It says that it cannot see, aloud, with words about the picture and without, and then answers as ever."""
    (tmp_path / "cat.png").write_bytes(ONE.encoded)
    command = [sys.executable, "-m", "assistant", "ask", "--profile", "tiny", "--image", str(tmp_path / "cat.png"),
               "--say", "what is this", "--say", "what is two plus two", "--image", str(tmp_path / "cat.png"),
               "--out", str(tmp_path / "reply.wav"), "--json", str(tmp_path / "talk.json")]  # fmt: skip
    env = {**os.environ, "ASSISTANT_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    turns = json.loads((tmp_path / "talk.json").read_text())["turns"]
    assert [turn["said"] for turn in turns][::2] == [CANNOT_SEE, CANNOT_SEE] and "4" in turns[1]["said"]
    assert all(turn["seconds"] > 0.5 for turn in turns)
