"""The language model is switched in mid-talk: the talk goes on with its words, and the former model is freed."""

import asyncio
import gc
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from assistant.app.chooser import LanguageModels
from assistant.app.config import load_config
from assistant.app.start import App, open_talks
from assistant.app.switching import Choices, run_switching
from assistant.commands.serve import context_of
from assistant.device.execution import give_back_memory
from assistant.server.app import make_app, pause_talks
from assistant.server.security import Gate
from assistant.server.starting import Starting
from tests.fakes.gguf_files import write_decoder
from tests.fakes.web import Site, Wire

pytestmark = pytest.mark.slow


async def asked(wire: Wire, words: str) -> str:
    await wire.say(words)
    await wire.send("response.create", response={"output_modalities": ["text"], "max_output_tokens": 40})
    done = (await wire.until("response.done"))["response"]
    assert done["status"] in {"completed", "incomplete"}, done
    return "".join(part["text"] for item in done["output"] for part in item["content"])


async def read_to_the_end(wire: Wire) -> None:
    while not wire.ws.closed:
        await wire.ws.receive()


async def told(site: Site, path: str, status: int, **body: Any) -> Any:
    method = "POST" if body else "GET"
    async with site.client.request(method, f"{site.http}/v1/models{path}", json=body or None) as answer:
        assert answer.status == status, await answer.text()
        return await answer.json()


async def switched(site: Site, name: str) -> dict[str, Any]:
    await told(site, "/switch", 202, model=name)
    while (now := await told(site, "?extensions=progress", 200))["switch"]["phase"] == "switching":
        await asyncio.sleep(0.05)
    return now["switch"]


def test_a_talk_goes_on_with_another_model_and_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "models" / "random").mkdir(parents=True)
    write_decoder(home / "models" / "random" / "random.gguf")
    (home / "models" / "random" / "half.gguf").write_bytes(b"GGUF and nothing more")
    config = load_config({"profile": "tiny", "threads": "1", "max_positions": "1024"}, {"ASSISTANT_HOME": str(home)})
    engines: list[weakref.ref[Any]] = []

    async def story() -> None:
        choices, starting = Choices(), Starting()
        models = LanguageModels(config, choices)

        def ready(app: App) -> None:
            engines.append(weakref.ref(app.models.llm.engine))
            models.runs(app.config, app.models.profile)
            context = context_of(app)
            context.models = models
            starting.ready(context)

        web_app = make_app(starting, Gate("127.0.0.1"))
        server = TestServer(web_app, host="127.0.0.1")
        await server.start_server()
        keeping = asyncio.create_task(
            run_switching(config, choices, open_talks, ready, partial(pause_talks, web_app), give_back_memory)
        )
        site = Site(server, None, None)
        try:
            await in_the_talk(site)
        finally:
            await site.client.close()
            keeping.cancel()
            await asyncio.wait([keeping])
            await server.close()

    async def in_the_talk(site: Site) -> None:
        overview = await told(site, "?extensions=all", 200)
        assert overview["answers"]["name"] == "shipped"
        here = {one["name"]: one for one in overview["here"]}
        assert here["random/random.gguf"]["runs"] and not here["random/half.gguf"]["runs"]
        async with site.wire() as wire:
            await asked(wire, "my name is Ruth")
            talk = wire.conversation
            refused = await told(site, "/switch", 409, model="random/half.gguf")
            assert "does not run" in refused["error"]["message"]
            assert (await told(site, "/switch", 404, model="nobody"))["error"]["code"] == "model_not_found"
            assert (await told(site, "/switch", 409, model="shipped"))["error"]["code"] == "model_answers"
            assert "4" in await asked(wire, "what is two plus two"), "a refusal changes nothing"
            reading = asyncio.create_task(read_to_the_end(wire))
            assert (await switched(site, "random/random.gguf"))["phase"] == "done"
            await reading
            assert wire.ws.close_code == aiohttp.WSCloseCode.SERVICE_RESTART
        gc.collect()
        assert engines[0]() is None, "the former model is still in memory"
        overview = await told(site, "?extensions=all", 200)
        assert overview["answers"]["name"] == "random/random.gguf"
        assert overview["answers"]["told"].startswith("this file loads but does not speak sense")
        async with site.wire(f"?conversation_id={talk}") as wire:
            assert wire.conversation == talk
        async with site.wire() as wire:  # a talk of its own: what random weights say would confuse the next model
            assert wire.conversation != talk and await asked(wire, "and who are you") is not None
        assert (await switched(site, "shipped"))["phase"] == "done"
        async with site.wire(f"?conversation_id={talk}") as wire:
            assert "Ruth" in await asked(wire, "what is my name")

    asyncio.run(asyncio.wait_for(story(), 580))
