"""A small realtime server with a script instead of models, for driving the page in a real browser.

It speaks the wire as assistant/realtime/README.md says, hears speech by loudness alone, and answers with tones:
one burst per word, so that what was rendered can be told from the sound.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import WSMsgType, web

UI = Path(__file__).parents[2] / "ui"
RATE = 24_000
WORD_MS = 320
CHUNK = 1920
LOUD = 0.02
SILENCE_MS = 400
POLICY = "default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' data: blob:; base-uri 'none'"
PERSONAS = [
    {"name": "ada", "title": "Ada", "description": "Warm and brief. Likes numbers.", "voice": "ada"},
    {"name": "bruno", "title": "Bruno", "description": "Takes his time and tells stories.", "voice": "bruno"},
]
CAPSULES = (
    ("ada", "llm", 192, 4_300_000, "host", True, 840),
    ("ada", "tts", 64, 1_150_000, "host", True, 840),
    ("bruno", "llm", 205, 4_420_000, "disk", True, 90_000),
)


@dataclass
class Script:
    """What is understood of each spoken turn, in order, and what is answered to which words."""

    heard: list[str] = field(default_factory=list)
    replies: dict[str, str] = field(default_factory=dict)
    tools: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """words of the user -> name, arguments, output of a tool that is called first"""
    kept: dict[str, str] = field(default_factory=dict)
    """words of the user -> a sentence that the memory gets"""
    asks: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """words of the user -> name, server, arguments of a call that the user must allow"""
    think_ms: int = 140
    otherwise: str = "I did not catch that."

    def answer(self, words: str) -> str:
        return self.replies.get(words, self.otherwise)


def tone(word: int) -> np.ndarray:
    """One word: a harmonic burst, its pitch by the word's number."""
    t = np.arange(RATE * WORD_MS // 1000) / RATE
    pitch = 150 * 2 ** ((word * 5 % 12) / 24)
    wave = sum(np.sin(2 * np.pi * pitch * h * t) / h for h in range(1, 6))
    envelope = np.clip(np.minimum(t / 0.03, (t[-1] - t) / 0.08), 0, 1) * (
        0.75 + 0.25 * np.sin(2 * np.pi * 4 * t + word)
    )
    return (0.22 * wave * envelope).astype(np.float32)


@dataclass
class FakeReply:
    id: str
    item: str
    words: list[str]
    sent_words: int = 0
    done: bool = False
    heard_ms: float = 0.0

    @property
    def text(self) -> str:
        return " ".join(self.words[: self.sent_words])

    @property
    def audible(self) -> bool:
        """Still to be heard, though perhaps long since sent."""
        return not self.done or self.heard_ms < self.sent_words * WORD_MS - 1


class FakeConnection:
    """One client: its conversation, its ears, its running reply."""

    def __init__(self, server: FakeServer, ws: web.WebSocketResponse, conversation: str) -> None:
        self.server, self.ws, self.conversation = server, ws, conversation
        self.items = server.conversations[conversation]
        self.extensions: list[str] = []
        self.detection: dict[str, Any] | None = {"type": "server_vad"}
        self.persona, self.voice = "ada", "ada"
        self.modality = "audio"
        self.reply: FakeReply | None = None
        self.task: asyncio.Task[None] | None = None
        self.samples = self.loud_at = 0
        self.speaking: str | None = None
        self.speech_from = 0
        self.interrupting = False
        self.held = 0
        self.next_words = ""

    async def send(self, type_: str, **fields: Any) -> None:
        if not self.ws.closed:
            await self.ws.send_str(json.dumps({"type": type_, "event_id": self.server.id("event"), **fields}))

    def session(self) -> dict[str, Any]:
        return {
            "id": "sess_1", "type": "realtime", "object": "realtime.session", "model": "tiny-talker",
            "output_modalities": ["audio"],
            "audio": {"input": {"turn_detection": self.detection}, "output": {"voice": self.voice}},
            "assistant": {
                "extensions": self.extensions, "conversation_id": self.conversation, "persona": self.persona,
                "server_ms": self.server.now_ms(), "capsules": True,
            },
        }  # fmt: skip

    async def add_item(self, item: dict[str, Any], done: bool = True) -> None:
        previous = self.items[-1]["id"] if self.items else None
        self.items.append(item)
        await self.send("conversation.item.added", item=item, previous_item_id=previous)
        if done:
            await self.send("conversation.item.done", item=item, previous_item_id=previous)

    # ------------------------------------------------------------------------------------ hearing

    async def hear(self, pcm: np.ndarray) -> None:
        self.samples += pcm.size
        if self.detection is None:
            self.held += pcm.size
            return
        loud = float(np.sqrt(np.mean(pcm**2))) > LOUD if pcm.size else False
        if loud:
            self.loud_at = self.samples
        if loud and self.speaking is None:
            await self.speech_began()
        if self.speaking is None:
            return
        spoke_ms = (self.samples - self.speech_from) * 1000 / RATE
        quiet_ms = (self.samples - self.loud_at) * 1000 / RATE
        if self.interrupting and spoke_ms > 240:
            await self.interrupt()
        words = self.server.script.heard[0].split() if self.server.script.heard else []
        await self.send(
            "assistant.transcript", item_id=self.speaking, text=" ".join(words[: int(spoke_ms // 220)])
        )
        if quiet_ms > SILENCE_MS:
            await self.speech_ended(self.loud_at)

    async def speech_began(self) -> None:
        self.speaking = self.server.id("item")
        self.speech_from = self.samples
        start_ms = self.samples * 1000 // RATE
        await self.send("input_audio_buffer.speech_started", item_id=self.speaking, audio_start_ms=start_ms)
        if self.reply is not None and self.reply.audible:
            self.interrupting = True
            await self.send("assistant.duck", response_id=self.reply.id, item_id=self.reply.item)

    async def interrupt(self) -> None:
        reply = self.reply
        self.interrupting = False
        if reply is None:
            return
        await self.send("assistant.stop", response_id=reply.id, item_id=reply.item)
        await self.end_reply("cancelled", "turn_detected")
        await self.send("assistant.memory", what="rollback", engine="llm", position=212, ms=0.4)

    async def speech_ended(self, end: int) -> None:
        item_id, self.speaking = self.speaking, None
        words = self.server.script.heard.pop(0) if self.server.script.heard else ""
        await self.send("input_audio_buffer.speech_stopped", item_id=item_id, audio_end_ms=end * 1000 // RATE)
        late_ms = (self.samples - end) * 1000 / RATE
        await self.commit(item_id, words, self.server.now_ms() - late_ms, late_ms)

    async def commit(self, item_id: str | None, words: str, ended_ms: float, waited_ms: float) -> None:
        await self.send("input_audio_buffer.committed", item_id=item_id)
        item = {"id": item_id, "type": "message", "role": "user", "status": "completed",
                "content": [{"type": "input_audio", "transcript": words}]}  # fmt: skip
        await self.add_item(item)
        await self.send("conversation.item.input_audio_transcription.completed", item_id=item_id, content_index=0,
                        transcript=words, usage={"type": "duration", "seconds": 1.0})  # fmt: skip
        if self.detection is not None:
            self.task = asyncio.create_task(self.answer(words, ended_ms, waited_ms))

    # ----------------------------------------------------------------------------------- speaking

    async def answer(self, words: str, started_ms: float | None = None, waited_ms: float = 0.0) -> None:
        script = self.server.script
        committed = self.server.now_ms()
        reply = FakeReply(self.server.id("resp"), self.server.id("item"), script.answer(words).split())
        self.reply = reply
        await self.send("assistant.state", state="thinking")
        await self.send("response.created", response={"id": reply.id, "object": "realtime.response",
                        "status": "in_progress", "output": []})  # fmt: skip
        if words in script.tools:
            await self.call_tool(reply, *script.tools[words])
        if fact := script.kept.get(words):
            self.server.memory.append(fact)
            await self.send("assistant.remembered", response_id=reply.id, added=[fact], removed=[])
        if words in script.asks:
            name, server, arguments = script.asks[words]
            await self.send("assistant.tool_asked", response_id=reply.id, name=name, server=server,
                            approval_request_id=self.server.id("mcpr"), arguments=arguments)  # fmt: skip
        await asyncio.sleep(script.think_ms / 1000)
        item = {
            "id": reply.item,
            "type": "message",
            "role": "assistant",
            "status": "in_progress",
            "content": [],
        }
        at = {"response_id": reply.id, "item_id": reply.item, "output_index": 0, "content_index": 0}
        await self.send("response.output_item.added", response_id=reply.id, output_index=0, item=item)
        await self.add_item(item, done=False)
        await self.send("assistant.state", state="speaking")
        if self.modality == "text":
            await self.send("response.output_text.delta", **at, delta=" ".join(reply.words))
            reply.sent_words = len(reply.words)
            return await self.end_reply("completed", None)
        for n, word in enumerate(reply.words):
            await self.send("response.output_audio_transcript.delta", **at,
                            delta=(" " if n else "") + word, start_time=n * WORD_MS / 1000)  # fmt: skip
            reply.sent_words = n + 1
            wave = tone(n)
            for start in range(0, wave.size, CHUNK):
                pcm = (wave[start : start + CHUNK] * 32767).astype("<i2").tobytes()
                await self.send("response.output_audio.delta", **at, delta=base64.b64encode(pcm).decode())
                if n == 0 and start == 0:
                    await self.tell_time(reply, started_ms, waited_ms, committed)
            await asyncio.sleep(WORD_MS / 2000)
        await self.end_reply("completed", None)

    async def call_tool(self, reply: FakeReply, name: str, arguments: str, output: str) -> None:
        call = {"id": self.server.id("item"), "type": "function_call", "call_id": self.server.id("call"), "name": name,
                "arguments": "", "status": "in_progress"}  # fmt: skip
        await self.send("response.output_item.added", response_id=reply.id, output_index=0, item=call)
        await self.add_item(call, done=False)
        for piece in (arguments[:8], arguments[8:]):
            await self.send("response.function_call_arguments.delta", response_id=reply.id, item_id=call["id"],
                            output_index=0, call_id=call["call_id"], delta=piece)  # fmt: skip
        call |= {"arguments": arguments, "status": "completed"}
        await self.send("response.function_call_arguments.done", response_id=reply.id, item_id=call["id"],
                        output_index=0, call_id=call["call_id"], name=name, arguments=arguments)  # fmt: skip
        await self.send("conversation.item.done", item=call)
        answer = {
            "id": self.server.id("item"),
            "type": "function_call_output",
            "call_id": call["call_id"],
            "output": output,
        }
        await self.add_item(answer)

    async def tell_time(
        self, reply: FakeReply, started_ms: float | None, waited_ms: float, committed: float
    ) -> None:
        now = self.server.now_ms()
        spent = now - committed
        shares = {"prefill": 0.16, "llm": 0.23, "tts_prefill": 0.1, "tts_rows": 0.38, "codec": 0.0}
        parts = [("turn_wait", waited_ms)] if started_ms is not None else []
        parts += [("restore", 0.6), *((name, spent * share) for name, share in shares.items())]
        start = now - spent - waited_ms if started_ms is not None else committed
        total = now - start
        parts[-1] = ("codec", total - sum(ms for _, ms in parts))
        self.server.ttfa_ms.append(spent)
        at = 0.0
        rows = []
        for name, ms in parts:
            rows.append({"name": name, "start_ms": at, "ms": ms})
            at += ms
        figures = {"ttfa_ms": spent, "restore_ms": 0.6}
        await self.send("assistant.timeline", response_id=reply.id, turn=1, started_ms=start, total_ms=total,
                        parts=rows, figures=figures)  # fmt: skip

    async def end_reply(self, status: str, reason: str | None) -> None:
        reply = self.reply
        if reply is None or reply.done:
            return
        reply.done = True
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()
        at = {"response_id": reply.id, "item_id": reply.item, "output_index": 0, "content_index": 0}
        item = next((one for one in self.items if one["id"] == reply.item), None)
        kind = "output_audio" if self.modality == "audio" else "output_text"
        words = "transcript" if self.modality == "audio" else "text"
        if self.modality == "audio":
            await self.send("response.output_audio.done", **at)
            await self.send("response.output_audio_transcript.done", **at, transcript=reply.text)
        if item is not None:
            item["status"] = "completed" if status == "completed" else "incomplete"
            item["content"] = [{"type": kind, words: reply.text}]
            await self.send("conversation.item.done", item=item)
            await self.send("response.output_item.done", response_id=reply.id, output_index=0, item=item)
        details = {"type": status, "reason": reason} if reason else None
        await self.send("response.done", response={"id": reply.id, "status": status, "status_details": details,
                        "output": [item] if item else []})  # fmt: skip
        await self.send("assistant.state", state="idle")

    # ----------------------------------------------------------------------------- client events

    async def on_session_update(self, event: dict[str, Any]) -> None:
        self.modality = event["session"].get("output_modalities", [self.modality])[0]
        audio = event["session"].get("audio", {})
        self.detection = audio.get("input", {}).get("turn_detection", self.detection)
        self.voice = audio.get("output", {}).get("voice", self.voice)
        await self.send("session.updated", session=self.session())

    async def on_input_audio_buffer_append(self, event: dict[str, Any]) -> None:
        pcm = np.frombuffer(base64.b64decode(event["audio"]), "<i2").astype(np.float32) / 32768
        await self.hear(pcm)

    async def on_input_audio_buffer_clear(self, event: dict[str, Any]) -> None:
        self.speaking, self.held = None, 0
        await self.send("input_audio_buffer.cleared")

    async def on_input_audio_buffer_commit(self, event: dict[str, Any]) -> None:
        words = self.server.script.heard.pop(0) if self.server.script.heard else ""
        self.server.held_ms.append(self.held * 1000 / RATE)
        await self.commit(self.server.id("item"), words, self.server.now_ms(), 0.0)

    async def on_conversation_item_create(self, event: dict[str, Any]) -> None:
        if event["item"]["type"] == "mcp_approval_response":
            self.server.answered.append(event["item"])
            self.next_words = "allowed" if event["item"]["approve"] else "not allowed"
            return
        await self.add_item({"id": self.server.id("item"), "status": "completed", **event["item"]})

    async def on_response_create(self, event: dict[str, Any]) -> None:
        asked = [item for item in self.items if item.get("role") == "user"]
        part = asked[-1]["content"][0] if asked else {}
        words = part.get("text", part.get("transcript", ""))
        words, self.next_words = self.next_words or words, ""
        self.task = asyncio.create_task(self.answer(words))

    async def on_response_cancel(self, event: dict[str, Any]) -> None:
        await self.end_reply("cancelled", "client_cancelled")

    async def on_conversation_item_truncate(self, event: dict[str, Any]) -> None:
        self.server.truncated.append(event)
        item = next((one for one in self.items if one["id"] == event["item_id"]), None)
        words = item["content"][0]["transcript"].split() if item and item["content"] else []
        heard = " ".join(words[: -(-int(event["audio_end_ms"]) // WORD_MS)])
        if item is not None:
            item |= {"status": "incomplete", "content": [{"type": "output_audio", "transcript": heard}]}
        await self.send("conversation.item.truncated", item_id=event["item_id"], content_index=0,
                        audio_end_ms=event["audio_end_ms"], transcript=heard)  # fmt: skip

    async def delete_from(self, index: int) -> None:
        for item in reversed(self.items[index:]):
            await self.send("conversation.item.deleted", item_id=item["id"])
        del self.items[index:]

    async def on_assistant_undo(self, event: dict[str, Any]) -> None:
        users = [i for i, item in enumerate(self.items) if item.get("role") == "user"]
        await self.delete_from(users[-1] if users else 0)
        await self.send("assistant.memory", what="rollback", engine="llm", position=180, ms=0.5)

    async def on_assistant_rewind(self, event: dict[str, Any]) -> None:
        await self.delete_from(
            next(i for i, item in enumerate(self.items) if item["id"] == event["item_id"]) + 1
        )

    async def on_assistant_persona(self, event: dict[str, Any]) -> None:
        self.persona = self.voice = event["name"]
        await self.send("assistant.persona", name=event["name"], voice=event["name"], ms=3.4)

    async def on_assistant_personas(self, event: dict[str, Any]) -> None:
        await self.send(
            "assistant.personas", current=self.persona, personas=PERSONAS, voices=["ada", "bruno"]
        )

    async def on_assistant_capsules(self, event: dict[str, Any]) -> None:
        fields = ("name", "engine", "position", "bytes", "tier", "pinned", "age_s")
        own = 192 + 20 * len(self.items)
        rows = [dict(zip(fields, row, strict=True)) for row in (*CAPSULES,
                (self.conversation, "llm", own, 5_020_000, "host", False, 4))]  # fmt: skip
        tiers = {"host": {"used_bytes": 10_470_000, "budget_bytes": 2_000_000_000},
                 "disk": {"used_bytes": 4_420_000, "budget_bytes": 8_000_000_000}}  # fmt: skip
        await self.send("assistant.capsules", capsules=rows, tiers=tiers)

    async def on_assistant_ping(self, event: dict[str, Any]) -> None:
        await self.send("assistant.pong", client_ms=event["client_ms"], server_ms=self.server.now_ms())

    async def on_assistant_heard(self, event: dict[str, Any]) -> None:
        self.server.heard.append((event["item_id"], event["audio_ms"]))
        if self.reply is not None and self.reply.item == event["item_id"]:
            self.reply.heard_ms = event["audio_ms"]


class FakeServer:
    """Runs in its own thread; `stop` and `start` again on the same port play a restart."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or Script()
        self.conversations: dict[str, list[dict[str, Any]]] = {}
        self.truncated: list[dict[str, Any]] = []
        self.heard: list[tuple[str, float]] = []
        self.ttfa_ms: list[float] = []
        self.held_ms: list[float] = []
        self.received: list[str] = []
        self.answered: list[dict[str, Any]] = []
        self.memory: list[str] = []
        self.unknown: list[str] = []
        self.loads = ""
        """What is being loaded before anything is served."""
        self.port = 0
        self._ids = itertools.count(1)
        self._offset_ms = -time.monotonic() * 1000 + 5000.0
        self._sockets: set[web.WebSocketResponse] = set()

    def id(self, kind: str) -> str:
        return f"{kind}_{next(self._ids)}"

    def now_ms(self) -> float:
        return time.monotonic() * 1000 + self._offset_ms

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> FakeServer:
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started.set,), daemon=True)
        self._thread.start()
        assert started.wait(10), "the fake server did not start"
        return self

    def _run(self, ready: Callable[[], None]) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(ready))
        self._loop.close()

    async def _serve(self, ready: Callable[[], None]) -> None:
        self._over = asyncio.Event()
        app = web.Application()
        app.router.add_get("/v1/realtime", self._realtime)
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/household", self._household)
        app.router.add_route("*", "/v1/memory", self._memory)
        app.router.add_get("/", self._page)
        app.router.add_static("/", UI)
        app.on_response_prepare.append(self._headers)
        runner = web.AppRunner(app, shutdown_timeout=0.2)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = runner.addresses[0][1]
        ready()
        await self._over.wait()
        for socket in list(self._sockets):
            await socket.close(code=1001)
        await runner.cleanup()

    async def _headers(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["Cache-Control"] = "no-cache"

    async def _page(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse(UI / "index.html")

    async def _health(self, request: web.Request) -> web.Response:
        if self.loads:
            return web.json_response({"status": "starting", "doing": self.loads, "uptime_s": 1.5})
        models = {"llm": "tiny-llm", "tts": "tiny-voice", "hearing": "tiny-ears"}
        return web.json_response(
            {"status": "ok", "profile": "tiny", "device": "CPU, 2 threads", "models": models}
        )

    async def _models(self, request: web.Request) -> web.Response:
        """As a server whose models cannot be changed while it runs."""
        return web.json_response({"object": "list", "data": []})

    async def _household(self, request: web.Request) -> web.Response:
        """As a home in which nothing runs and nothing is kept."""
        return web.json_response({"object": "household", "removed": [], "rings": [], "lists": []})

    async def _memory(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            body = await request.json()
            self.memory = [text for text in self.memory if text not in body.values()]
            self.memory += [body["add"]] if "add" in body else []
        data = [{"text": text, "comment": "2026-11-28 09:30", "talk": None, "turn": None} for text in self.memory]
        return web.json_response({"object": "memory", "data": data, "file": "memory.toml"})

    async def _realtime(self, request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse(protocols=("realtime",))
        await ws.prepare(request)
        if self.loads:
            await ws.send_json({"type": "error", "error": {"code": "server_starting", "message": "connect again"}})
            await ws.close(code=1012)
            return ws
        self._sockets.add(ws)
        wanted = request.query.get("conversation_id")
        known = wanted if wanted in self.conversations else self.id("conv")
        self.conversations.setdefault(known, [])
        talk = FakeConnection(self, ws, known)
        talk.extensions = [
            "heard",
            "duck",
            "partials",
            "state",
            "timeline",
            "capsules",
            "personas",
            "undo",
            "clock",
            "memory",
        ]
        await talk.send("session.created", session=talk.session())
        await talk.send("conversation.created", conversation={"id": known, "object": "realtime.conversation"})
        for item in list(talk.items):
            await talk.send("conversation.item.added", item=item)
            await talk.send("conversation.item.done", item=item)
        async for message in ws:
            if message.type != WSMsgType.TEXT:
                continue
            event = json.loads(message.data)
            self.received.append(event["type"])
            handler = getattr(talk, "on_" + event["type"].replace(".", "_"), None)
            if handler is None:
                self.unknown.append(event["type"])
            else:
                await handler(event)
        if talk.task is not None:
            talk.task.cancel()
        self._sockets.discard(ws)
        return ws

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)
