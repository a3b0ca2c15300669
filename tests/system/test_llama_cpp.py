"""`--llm URL` against llama.cpp's own server: turns, tools, a cancelled reply, and a server that is killed."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from assistant.remote import Address, RemoteLLM
from tests.fakes.talk import World
from tests.fakes.web import Wire, serving

pytestmark = pytest.mark.slow

for package in ("xllamacpp", "gguf"):
    pytest.importorskip(package, reason="llama.cpp's server is not here: pip install xllamacpp gguf")

ROOT = Path(__file__).parents[2]
TOOL = {
    "type": "function", "name": "look_up", "description": "Find a fact.",
    "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
}  # fmt: skip
SHORT = {"output_modalities": ["text"], "max_output_tokens": 12}


class Llama:
    """The server's process; killed and started again, it is found at the same address."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._folder = folder
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.fakes.llama_server", str(self._folder), str(self.port)]
        quiet = os.environ | {"OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT, env=quiet
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith("http"), "llama.cpp's server did not start"

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    server = Llama(tmp_path_factory.mktemp("llama"))
    yield server
    server.kill()


@asynccontextmanager
async def talking(llama: Llama):
    """A connection to our server, which thinks with that one."""
    llm = RemoteLLM(Address(f"http://127.0.0.1:{llama.port}/v1"))
    async with serving(World(speed=100.0, llm=llm)) as site, site.wire() as wire:
        yield wire
    await llm.close()


async def asked(wire: Wire, text: str, **response: object) -> dict:
    await wire.say(text)
    await wire.send("response.create", response={**SHORT, **response})
    return (await wire.until("response.done"))["response"]


def words(response: dict) -> str:
    return response["output"][0]["content"][0]["text"]


def test_typed_turns_carry_the_talk_and_the_servers_own_counts(llama):
    async def story() -> None:
        async with talking(llama) as wire:
            first, second = await asked(wire, "who are you"), await asked(wire, "go on")
            for response in (first, second):
                assert response["status"] == "incomplete" and words(response).strip()
                assert 0 < response["usage"]["output_tokens"] <= 12
            assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"] > 10

    asyncio.run(story())


def test_a_spoken_turn(llama):
    async def story() -> None:
        async with talking(llama) as wire:
            await wire.listen_16k()
            await wire.update(max_output_tokens=12)
            await wire.speak("good morning")
            response = (await wire.until("response.done"))["response"]
            assert response["output"][0]["content"][0]["transcript"].strip() and wire.sound(response["id"])

    asyncio.run(story())


def test_tools_are_offered_and_their_results_understood(llama):
    async def story() -> None:
        async with talking(llama) as wire:
            plain = await asked(wire, "who wrote it")
            await wire.update(tools=[TOOL])
            offered = await asked(wire, "who wrote it")
            assert offered["usage"]["input_tokens"] > plain["usage"]["input_tokens"] + 30
            call = {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": '{"what": "author"}'}
            result = {"type": "function_call_output", "call_id": "c1", "output": "Ada"}
            for item in (call, result):
                await wire.send("conversation.item.create", item=item)
            await wire.send("response.create", response=SHORT)
            answered = (await wire.until("response.done"))["response"]
            assert answered["status"] != "failed" and words(answered).strip()

    asyncio.run(story())


def test_a_cancelled_reply_frees_the_server(llama):
    """The server has one slot and this reply would fill its context: the next turn is answered only if it stopped."""

    async def story() -> None:
        async with talking(llama) as wire:
            await asked(wire, "hello")  # words of a server's first reply wait until its habits are known
            await wire.say("tell me everything")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            await wire.until("response.output_text.delta")
            await wire.send("response.cancel")
            assert (await wire.until("response.done"))["response"]["status"] == "cancelled"
            assert (await asked(wire, "and now"))["status"] == "incomplete"

    asyncio.run(story())


def test_a_killed_server_fails_the_reply_and_answers_once_it_is_back(llama):
    async def story() -> None:
        async with talking(llama) as wire:
            await wire.say("tell me everything")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            await wire.until("response.output_text.delta")
            llama.kill()
            for expected in ("cannot be used|broke off", "check that the server runs"):
                failed = (await wire.until("response.done"))["response"]
                message = failed["status_details"]["error"]["message"]
                assert failed["status"] == "failed" and any(part in message for part in expected.split("|")), message
                await wire.say("still there?")
                await wire.send("response.create", response=SHORT)
            assert (await wire.until("response.done"))["response"]["status"] == "failed"
            await asyncio.to_thread(llama.start)
            assert (await asked(wire, "welcome back"))["status"] == "incomplete"

    asyncio.run(story())
