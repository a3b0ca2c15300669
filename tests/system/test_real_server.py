"""`assistant serve` as a process with the shipped models: a stock client talks with it aloud, then Ctrl-C ends it."""

import asyncio
import base64
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

pytestmark = pytest.mark.slow

PATIENCE = 120.0
"""Seconds for anything at all: the machine may be busy with other work."""
STEP = 4800
"""Bytes of 100 ms of 24 kHz sound."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What a running server printed; at the end it is interrupted and has to leave cleanly."""
    log: Path = tmp_path_factory.mktemp("home") / "log"
    environment = os.environ | {"ASSISTANT_HOME": str(log.parent), "OMP_NUM_THREADS": "2", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "assistant", "serve", "--port", "0", "--no-browser", "--profile", "tiny"]
    command += ["--uri", "tcp://127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("Ctrl-C"):
            break
    yield "".join(lines)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and rest.strip().splitlines()[-1].startswith("stopped"), rest


@pytest.fixture(scope="module")
def address(told: str) -> str:
    found = re.search(r"^OpenAI +(\S+)$", told, re.MULTILINE)
    assert found, f"the server did not start:\n{told}"
    return found[1]


def test_home_assistant_is_served_beside_it(told):
    from wyoming.asr import Transcript
    from wyoming.client import AsyncClient

    async def story() -> None:
        found = re.search(r"^wyoming +(tcp://\S+)$", told, re.MULTILINE)
        assert found, told
        async with asyncio.timeout(PATIENCE), AsyncClient.from_uri(found[1]) as client:
            await client.write_event(Transcript("what is two plus two").event())
            while (event := await client.read_event()) is not None and event.type != "handled":
                """Its pieces."""
            assert event is not None and "4" in event.data["text"]

    asyncio.run(story())


async def pcm_of(client: openai.AsyncOpenAI, text: str) -> bytes:
    answer = await client.audio.speech.create(model="tts", voice="ben", input=text, response_format="pcm")
    return answer.read()


async def say(connection, pcm: bytes, quiet_s: float) -> None:
    """In real time, as a microphone would."""
    data = bytes(STEP * 3) + pcm[: len(pcm) // 2 * 2] + bytes(int(quiet_s * 10) * STEP)
    for start in range(0, len(data), STEP):
        audio = base64.b64encode(data[start : start + STEP]).decode()
        await connection.input_audio_buffer.append(audio=audio)
        await asyncio.sleep(0.1)


async def events_until(connection, last: str) -> list:
    events = []
    async with asyncio.timeout(PATIENCE):
        async for event in connection:
            events.append(event)
            if event.type == last:
                return events
    raise AssertionError(f"the connection ended before {last}")


def test_a_stock_client_asks_aloud_interrupts_and_types(address):
    async def story() -> None:
        async with openai.AsyncOpenAI(base_url=address, api_key="any", timeout=PATIENCE, max_retries=0) as client:
            question = await pcm_of(client, "what time is it")
            heard = await client.audio.transcriptions.create(model="stt", file=("q.wav", wav(question)))
            assert "time" in heard.text
            async with client.realtime.connect(model="gpt-realtime") as connection:
                transcription = {"model": "whisper-1"}
                session = {"type": "realtime", "audio": {"input": {"transcription": transcription}}}
                await connection.session.update(session=session)
                speaking = asyncio.create_task(say(connection, question, 2.0))
                events = await events_until(connection, "response.output_audio.delta")
                await speaking
                understood = next(e for e in events if e.type.endswith("input_audio_transcription.completed"))
                assert "time" in understood.transcript and understood.usage.seconds > 0.5
                events += await events_until(connection, "response.done")
                done = events[-1].response
                assert done.status in {"completed", "cancelled"} and done.output
                item = done.output[-1]
                assert item.content[0].transcript.strip()

                await connection.conversation.item.truncate(item_id=item.id, content_index=0, audio_end_ms=400)
                await connection.conversation.item.retrieve(item_id=item.id)
                cut = (await events_until(connection, "conversation.item.retrieved"))[-1].item.content[0].transcript
                assert item.content[0].transcript.startswith(cut) and len(cut) < len(item.content[0].transcript)

                await connection.conversation.item.create(item=typed_item("hello"))
                await connection.response.create(response={"output_modalities": ["text"]})
                done = (await events_until(connection, "response.done"))[-1].response
                assert done.status == "completed" and done.output[0].content[0].text.strip()
                assert done.usage.input_token_details.cached_tokens > 0

    asyncio.run(story())


def typed_item(text: str) -> dict:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


async def heard_by_interrupting(connection, question: bytes) -> tuple[str, str]:
    """Speak into the reply that is sounding and cut it to half a second, as a stock client does: its words as they
    were made, and as they stand in the talk afterwards."""
    item = (await events_until(connection, "response.output_audio.delta"))[-1].item_id
    await say(connection, b"", 1.2)  # sooner the server cannot know that its first reply does not come back
    speaking = asyncio.create_task(say(connection, question, 2.0))
    events = await events_until(connection, "input_audio_buffer.speech_started")
    await connection.conversation.item.truncate(item_id=item, content_index=0, audio_end_ms=500)
    events += await events_until(connection, "conversation.item.truncated")
    assert events[-1].audio_end_ms == 500
    await connection.conversation.item.retrieve(item_id=item)
    cut = (await events_until(connection, "conversation.item.retrieved"))[-1].item.content[0].transcript
    await speaking
    made = next(e for e in events if e.type == "response.done" and e.response.output[-1].id == item).response
    assert (made.status, made.status_details.reason) == ("cancelled", "turn_detected")
    return made.output[-1].content[0].transcript, cut


def test_a_stock_client_interrupts_aloud_and_answers_a_call(address):
    """The question is the one spoken into a story; then the client's own clock answers the same question, typed."""
    clock = {"type": "function", "name": "get_time", "description": "The time", "parameters": {"type": "object"}}

    async def story() -> None:
        async with openai.AsyncOpenAI(base_url=address, api_key="any", timeout=PATIENCE, max_retries=0) as client:
            question = await pcm_of(client, "what is the time")
            async with client.realtime.connect(model="gpt-realtime") as connection:
                await connection.session.update(session={"type": "realtime", "tools": [clock]})
                await connection.conversation.item.create(item=typed_item("tell me a story about a dragon"))
                await connection.response.create()
                made, cut = await heard_by_interrupting(connection, question)
                assert made.startswith(cut) and len(cut) < len(made)

                called = (await events_until(connection, "response.done"))[-1].response
                assert called.status == "completed" and called.output[-1].name == "get_time"
                answer = {"type": "function_call_output", "call_id": called.output[-1].call_id, "output": "9:41 am"}
                await connection.conversation.item.create(item=answer)
                await connection.response.create(response={"output_modalities": ["text"]})
                done = (await events_until(connection, "response.done"))[-1].response
                assert done.status == "completed" and "9:41" in done.output[-1].content[0].text

    asyncio.run(story())


def test_memory_does_not_grow_with_talks_that_ended(address):
    """After 35 short talks, each over and closed, the server comes down to a tenth more than after ten at most."""

    def memory() -> dict:
        with urllib.request.urlopen(address.replace("/v1", "/healthz"), timeout=PATIENCE) as answer:
            return json.load(answer)["memory"]

    async def story() -> None:
        async with openai.AsyncOpenAI(base_url=address, api_key="any", timeout=PATIENCE, max_retries=0) as client:
            held = {}
            for count in range(1, 36):
                async with client.realtime.connect(model="gpt-realtime") as connection:
                    await connection.conversation.item.create(item=typed_item(f"what is {count} plus {count % 7}"))
                    await connection.response.create()
                    assert (await events_until(connection, "response.done"))[-1].response.status == "completed"
                if count in {10, 35}:
                    held[count] = await asyncio.to_thread(memory)
            for _ in range(60):  # on a busy machine the last talks are still being put away
                if held[35]["capsules_bytes"] < 1.1 * held[10]["capsules_bytes"]:
                    break
                await asyncio.sleep(0.5)
                held[35] = await asyncio.to_thread(memory)
            assert held[35]["resident_bytes"] < 1.1 * held[10]["resident_bytes"], held
            assert 0 < held[35]["capsules_bytes"] < 1.1 * held[10]["capsules_bytes"], held
            parts = held[35]["models_bytes"] + held[35]["capsules_bytes"]
            assert parts < held[35]["resident_bytes"] and held[35]["models_bytes"] > 50_000_000

    asyncio.run(story())


def wav(pcm: bytes) -> bytes:
    import io
    import wave

    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(24_000)
        out.writeframes(pcm[: len(pcm) // 2 * 2])
    return file.getvalue()
