"""One call by LiveKit's or Pipecat's realtime client with a camera on: frames, words aloud, an answer; twice.

python camera_client.py livekit|pipecat http://HOST:PORT SOUND FRAMES

SOUND: two turns of equal length, PCM16 at 24 kHz. FRAMES: one a second before each turn, each lighter than the last.
Prints JSON: errors, and of each reply its words and samples. Imports nothing of ours: it runs in another environment.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

SIZE = 64, 48
RATE = 24_000
APART_S = 1.05
BLOCK = RATE // 50 * 2
PATIENCE_S = 20.0
Shows = Callable[[int], Awaitable[None]]
Says = Callable[[bytes], Awaitable[None]]


class Told:
    """What came back."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.replies: list[dict[str, object]] = []
        self.reply = asyncio.Event()

    def add(self, words: str, samples: int) -> None:
        self.replies.append({"words": words, "samples": samples})
        self.reply.set()


async def call(told: Told, sound: bytes, frames: int, show: Shows, say: Says) -> None:
    """`show`: a frame of this grey. `say`: 20 ms of sound."""
    half = len(sound) // 4 * 2
    for turn in range(2):
        told.reply.clear()
        for number in range(turn * frames + 1, (turn + 1) * frames + 1):
            await show(20 * number)
            await asyncio.sleep(APART_S)
        for at in range(turn * half, (turn + 1) * half, BLOCK):
            await say(sound[at : at + BLOCK])
            await asyncio.sleep(0.02)
        await asyncio.wait_for(told.reply.wait(), PATIENCE_S)


async def livekit(url: str, sound: bytes, frames: int, told: Told) -> None:
    import aiohttp
    from livekit import rtc
    from livekit.agents.llm import GenerationCreatedEvent
    from livekit.plugins.openai.realtime import RealtimeModel

    reading: list[asyncio.Task[None]] = []

    async def read(generation: GenerationCreatedEvent) -> None:
        async for message in generation.message_stream:
            samples = sum([frame.samples_per_channel async for frame in message.audio_stream])
            told.add("".join([str(piece) async for piece in message.text_stream]), samples)

    async def show(grey: int) -> None:
        pixels = bytes([grey, grey, grey, 255]) * (SIZE[0] * SIZE[1])
        session.push_video(rtc.VideoFrame(*SIZE, rtc.VideoBufferType.RGBA, pixels))

    async def say(block: bytes) -> None:
        session.push_audio(rtc.AudioFrame(block, RATE, 1, len(block) // 2))

    async with aiohttp.ClientSession() as http:
        session = RealtimeModel(base_url=f"{url}/v1", api_key="any", http_session=http).session()
        session.on("error", lambda error: told.errors.append(str(error)))
        session.on("generation_created", lambda event: reading.append(asyncio.create_task(read(event))))
        await call(told, sound, frames, show, say)
        await asyncio.gather(*reading)
        await session.aclose()


async def pipecat(url: str, sound: bytes, frames: int, told: Told) -> None:
    from pipecat.frames import frames as kinds
    from pipecat.observers.base_observer import BaseObserver, FramePushed
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.worker import PipelineWorker
    from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
    from pipecat.workers.runner import WorkerRunner

    ready = asyncio.Event()
    words: list[str] = []
    samples: list[int] = []

    class Watch(BaseObserver):
        async def on_push_frame(self, data: FramePushed) -> None:
            frame = data.frame
            if isinstance(frame, kinds.ErrorFrame):
                told.errors.append(frame.error)
            if data.source is not service:
                return
            if isinstance(frame, kinds.TTSTextFrame):
                words.append(frame.text)
            elif isinstance(frame, kinds.TTSAudioRawFrame):
                samples.append(len(frame.audio) // 2)
            elif isinstance(frame, kinds.LLMFullResponseEndFrame):
                told.add("".join(words), sum(samples))
                words.clear()
                samples.clear()

    service = OpenAIRealtimeLLMService(api_key="any", base_url=f"{url.replace('http', 'ws', 1)}/v1/realtime")
    worker = PipelineWorker(Pipeline([service]), observers=[Watch()], cancel_on_idle_timeout=False)
    worker.add_event_handler("on_pipeline_started", lambda *_: ready.set())

    async def show(grey: int) -> None:
        await worker.queue_frame(kinds.InputImageRawFrame(bytes([grey]) * (SIZE[0] * SIZE[1] * 3), SIZE, "RGB"))

    async def say(block: bytes) -> None:
        await worker.queue_frame(kinds.InputAudioRawFrame(block, RATE, 1))

    async def talk() -> None:
        await asyncio.wait_for(ready.wait(), PATIENCE_S)
        await asyncio.sleep(1)  # frames that come before the service has its connection are dropped
        await call(told, sound, frames, show, say)
        await worker.queue_frame(kinds.EndFrame())

    runner = WorkerRunner()
    await runner.add_workers(worker)
    await asyncio.gather(runner.run(), talk())


async def main(kind: str, url: str, sound: str, frames: str) -> None:
    told = Told()
    data = Path(sound).read_bytes()
    await {"livekit": livekit, "pipecat": pipecat}[kind](url, data, int(frames), told)
    print(json.dumps({"errors": told.errors, "replies": told.replies}))


asyncio.run(main(*sys.argv[1:]))
