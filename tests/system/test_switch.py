"""The language model is switched in mid-talk: the talk goes on with its words, the former model is freed, and voice and
ears stay loaded. The rest of the talk equals that after a fresh start."""

import asyncio
import gc
import weakref
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from aiohttp.test_utils import TestServer

from assistant.app.chooser import LanguageModels
from assistant.app.config import load_config
from assistant.app.standing import Standing
from assistant.app.start import App, open_talks
from assistant.app.switching import Choices, run_switching
from assistant.asr.recording import words_in
from assistant.base.sound import REPLY_RATE
from assistant.commands.serve import context_of
from assistant.contracts import Line, Prompt, ReplyOptions, ReplyPiece, TextPiece
from assistant.device.execution import give_back_memory
from assistant.server.app import make_app, pause_talks
from assistant.server.security import Gate
from assistant.server.starting import Starting
from benchmarks.switch import FIGURES, Row, medians
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


PROMPT = Prompt("You are Ada.", lines=(Line("user", "What is seven plus five?"),))


async def sample(app: App) -> tuple[list[ReplyPiece], np.ndarray, str]:
    """The answer of each part to something it was never asked before."""
    engines, sounds = app.talks.engines, list[np.ndarray]()
    async with aclosing(engines.llm.reply("sample", PROMPT, ReplyOptions("sample.0", 24, seed=7))) as reply:
        pieces = [piece async for piece in reply if isinstance(piece, TextPiece)]
    async with aclosing(engines.tts.speak("sample", "ben", "sample.0", "It is a quarter past three.")) as spoken:
        async for chunk in spoken:
            sounds.append(chunk.pcm)
    for engine in engines.stateful:
        await engine.forget_talk("sample")
    sound = np.concatenate(sounds)
    return pieces, sound, await asyncio.to_thread(words_in, engines.asr, sound, REPLY_RATE)


def check_same(one: tuple[list[ReplyPiece], np.ndarray, str], other: tuple[list[ReplyPiece], np.ndarray, str]) -> None:
    assert one[0] == other[0] and np.array_equal(one[1], other[1]) and one[1].size and one[2] == other[2]


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
    apps: list[weakref.ref[App]] = []

    async def story() -> None:
        choices, starting = Choices(), Starting()
        models = LanguageModels(config, choices)

        def ready(app: App) -> None:
            engines.append(weakref.ref(app.models.llm.engine))
            apps.append(weakref.ref(app))
            models.runs(app.config, app.models.profile)
            context = context_of(app)
            context.models = models
            starting.ready(context)

        web_app = make_app(starting, Gate("127.0.0.1"))
        server = TestServer(web_app, host="127.0.0.1")
        await server.start_server()
        opened = partial(open_talks, standing=models.standing)
        keeping = asyncio.create_task(
            run_switching(config, choices, opened, ready, partial(pause_talks, web_app), give_back_memory)
        )
        site = Site(server, None, None)
        try:
            await in_the_talk(site, choices, models.standing)
        finally:
            await site.client.close()
            keeping.cancel()
            await asyncio.wait([keeping])
            await server.close()

    def running() -> App:
        app = apps[-1]()
        assert app is not None
        return app

    async def in_the_talk(site: Site, choices: Choices, standing: Standing) -> None:
        overview = await told(site, "?extensions=all", 200)
        assert overview["answers"]["name"] == "shipped"
        here = {one["name"]: one for one in overview["here"]}
        assert here["random/random.gguf"]["runs"] and not here["random/half.gguf"]["runs"]
        async with site.wire() as wire:
            await asked(wire, "my name is Ruth")
            talk = wire.conversation
            first, voice = await sample(running()), standing.voice.part
            assert voice is not None and running().models.tts.engine is voice.engine
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
        assert standing.voice.part is voice and running().models.tts.engine is voice.engine, "it was loaded again"
        chosen, by_random = running().config, await sample(running())
        choices.choose("gone", replace(chosen, llm=str(home / "gone")))
        while choices.state.phase == "switching" or apps[-1]() is None:
            await asyncio.sleep(0.05)
        assert choices.state.phase == "failed" and "gone" in choices.state.told
        check_same(await sample(running()), by_random)
        assert standing.voice.part is voice
        overview = await told(site, "?extensions=all", 200)
        assert overview["answers"]["name"] == "random/random.gguf"
        assert overview["answers"]["told"].startswith("this file loads but does not speak sense")
        async with site.wire(f"?conversation_id={talk}") as wire:
            assert wire.conversation == talk
        async with site.wire() as wire:  # a talk of its own: what random weights say would confuse the next model
            assert wire.conversation != talk and await asked(wire, "and who are you") is not None
        assert (await switched(site, "shipped"))["phase"] == "done"
        assert standing.voice.part is voice
        check_same(await sample(running()), first)
        async with site.wire(f"?conversation_id={talk}") as wire:
            assert "Ruth" in await asked(wire, "what is my name")
        path = home / "models" / "random" / "random.gguf"
        async with open_talks(replace(chosen, home=tmp_path / "fresh", llm=str(path))) as app:
            check_same(await sample(app), by_random)

    asyncio.run(asyncio.wait_for(story(), 580))


@pytest.mark.parametrize("switches", [0, 1, 2, 3, 4])
def test_any_number_of_measured_switches_has_medians(switches: int) -> None:
    """A model that was switched to once has no other switch to go by."""
    rows: list[Row] = [{"to": "ab"[n % 2], **dict.fromkeys(FIGURES, float(n))} for n in range(switches)]
    found = {to: (count, told["s"]) for to, (count, told) in medians(rows).items()}
    expected = [{}, {"a": (1, 0.0)}, {"a": (1, 0.0), "b": (1, 1.0)}, {"a": (1, 2.0), "b": (1, 1.0)},
                {"a": (1, 2.0), "b": (1, 3.0)}]  # fmt: skip
    assert found == expected[switches]
