"""The product with a model that sees, from a client's bytes to the last sample: a random one, so words mean nothing."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from aiohttp.test_utils import TestServer

from assistant.app.config import load_config
from assistant.app.start import App, open_talks
from assistant.base.picture import Picture
from assistant.commands.serve import context_of
from assistant.contracts import PICTURE
from assistant.server.app import make_app
from assistant.server.security import Gate
from assistant.server.starting import Starting
from assistant.talk.tool_loop import NO_ANSWER
from tests.assistant.llm.test_local import assert_same_state, state_of
from tests.fakes import web
from tests.fakes.seeing import write_published_llm

pytestmark = pytest.mark.slow

ROWS = 8, 8
MARKS = 2


def drawn(seed: int) -> Picture:
    """Whose rows are 8 by 8."""
    return Picture.of(np.random.default_rng(seed).integers(0, 256, (ROWS[0] * 32, ROWS[1] * 32, 3), np.uint8))


CAT, DOG = drawn(1), drawn(2)
SEEN = ROWS[0] * ROWS[1] + MARKS


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_published_llm(tmp_path_factory.mktemp("seeing"))


class Site(web.Site):
    """The product as `assistant serve` puts it together. `looks`: the pictures that went through the tower."""

    def __init__(self, server: TestServer, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(server, None, None)
        self.engine = app.models.llm.engine
        self.looks = 0
        embed = self.engine.eyes._encode_step

        def run(grid: Any, step: int) -> None:
            self.looks += step == 0
            embed(grid, step)

        monkeypatch.setattr(self.engine.eyes, "_encode_step", run)


@asynccontextmanager
async def serving(home: Path, llm: Path) -> AsyncIterator[Site]:
    flags = {"profile": "tiny", "llm": str(llm), "max_positions": "1024", "threads": "1"}
    with pytest.MonkeyPatch.context() as patching:
        async with open_talks(load_config(flags, {"ASSISTANT_HOME": str(home)})) as app:
            server = TestServer(make_app(Starting(context_of(app)), Gate("127.0.0.1")), host="127.0.0.1")
            await server.start_server()
            site = Site(server, app, patching)
            try:
                yield site
            finally:
                await site.client.close()
                await server.close()


@pytest.fixture
def run(tmp_path: Path, checkpoint: Path) -> Callable[..., Any]:
    """Plays stories one after another, each in a process of its own as far as the home folder knows."""

    def play(*stories: Callable[[Site], Any]) -> None:
        async def whole() -> None:
            for story in stories:
                async with serving(tmp_path / "home", checkpoint) as site, asyncio.timeout(120):
                    await story(site)

        asyncio.run(whole())

    return play


async def asked(wire: web.Wire, words: str, *pictures: Picture, most: int = 8) -> tuple[str, bytes, dict[str, Any]]:
    """Typed, answered aloud: the words, every sample, and the response as it was told."""
    shown = [{"type": "input_image", "image_url": picture.data_url} for picture in pictures]
    content = [*shown, {"type": "input_text", "text": words}]
    await wire.send("conversation.item.create", item={"type": "message", "role": "user", "content": content})
    await wire.send("response.create", response={"max_output_tokens": most})
    done = (await wire.until("response.done"))["response"]
    assert done["status"] in {"completed", "incomplete"}, done
    return done["output"][0]["content"][0]["transcript"], wire.sound(done["id"]), done


def test_a_picture_is_asked_about_and_answered_to_the_last_sample(run):
    async def story(site: Site) -> None:
        async with site.wire("?extensions=timeline") as wire:
            words, sound, done = await asked(wire, "what is this", CAT)
            usage, [told] = done["usage"], wire.of("assistant.timeline")[-1:]
            assert usage["input_token_details"]["image_tokens"] == SEEN == told["figures"]["image_tokens"]
            assert told["figures"]["picture_ms"] > 0
            parts = {part["name"]: part["ms"] for part in told["parts"]}
            assert parts["picture"] > 0
            [silent] = wire.of("conversation.item.added")[:1]
            assert [part["type"] for part in silent["item"]["content"]] == ["input_text"]
            _, _, done = await asked(wire, "and this", CAT)
            assert site.looks == 1
            assert done["usage"]["input_token_details"]["cached_tokens_details"]["image_tokens"] == SEEN
        async with site.wire() as wire:
            assert (await asked(wire, "what is this", CAT))[:2] == (words, sound)
            assert site.looks == 1
        async with site.wire() as wire:
            assert (await asked(wire, "what is this", DOG))[0] != words
        async with site.wire() as wire:
            assert (await asked(wire, "what is this"))[0] != words

    run(story)


def test_the_sound_is_the_voices_own_of_these_words(run):
    async def story(site: Site) -> None:
        async with site.wire() as wire, stock(site) as client:
            words, sound, _ = await asked(wire, "what is this", CAT)
            speech = await client.audio.speech.create(model="tts", voice="ada", input=words, response_format="pcm")
            assert sound == speech.read()

    run(story)


def test_an_undo_takes_a_picture_back_as_if_it_had_never_been_shown(run):
    async def talk(site: Site, *shown: Picture) -> tuple[Any, Any]:
        async with site.wire("?extensions=all") as wire:
            await asked(wire, "hello")
            for picture in shown:
                await asked(wire, "look at this", picture)
                await wire.send("assistant.undo", turns=1)
                await wire.until("conversation.item.deleted")
                await wire.until("conversation.item.deleted")
            found = await asked(wire, "what is that", DOG)
            assert found[0] != NO_ANSWER, "a sentence of ours: take another question"
            return found[:2], state_of(site.engine)

    async def story(site: Site) -> None:
        said, state = await talk(site)
        again, other = await talk(site, CAT, DOG, CAT)
        assert again == said and site.looks == 2
        assert_same_state(other, state)

    run(story)


def stock(site: Site) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{site.http}/v1", api_key="any", max_retries=0)


def test_a_stock_client_shows_pictures_in_a_chat(run):
    async def story(site: Site) -> None:
        async def ask(*pictures: Picture):
            parts = [{"type": "image_url", "image_url": {"url": picture.data_url}} for picture in pictures]
            content = [{"type": "text", "text": "what is this"}, *parts]
            messages = [{"role": "user", "content": content}]
            answer = await client.chat.completions.create(model="m", messages=messages, max_tokens=8)
            return answer.choices[0].message.content, answer.usage

        async with stock(site) as client:
            words, usage = await ask(CAT)
            assert usage.prompt_tokens_details.image_tokens == SEEN
            again, usage = await ask(CAT)
            assert again == words and usage.prompt_tokens_details.cached_tokens > SEEN
            both, usage = await ask(CAT, DOG)
            assert both != words and usage.prompt_tokens_details.image_tokens == 2 * SEEN
            assert site.looks == 2

    run(story)


@pytest.mark.parametrize(
    ("lost", "looks"), [((), 0), (("capsules",), 1), (("pictures",), 0), (("pictures", "capsules"), 0)]
)
def test_a_talk_with_a_picture_goes_on_in_another_process(run, tmp_path, lost, looks):
    """From its capsule; from journal and picture as it was sent; without that with words where the picture stood."""
    found: list[Any] = []

    async def through(site: Site) -> None:
        async with site.wire() as wire:
            await asked(wire, "what is this", CAT)
            found.append((await asked(wire, "and what is it for"))[:2])

    async def begin(site: Site) -> None:
        async with site.wire() as wire:
            await asked(wire, "what is this", CAT)
            found.append(wire.conversation)

    async def again(site: Site) -> None:
        async with site.wire(f"?conversation_id={found[1]}&extensions=all") as wire:
            words, sound, done = await asked(wire, "and what is it for")
            first = wire.of("conversation.item.added")[0]["item"]["content"][0]["text"]
            gone = "pictures" in lost
            assert ((words, sound) == found[0]) is not gone and site.looks == looks
            assert first == (PICTURE if gone else "what is this")
            assert done["usage"]["input_token_details"]["image_tokens"] == (0 if gone else SEEN)

    run(through, begin)
    for folder in lost:
        shutil.rmtree(tmp_path / "home" / folder)
    run(again)
