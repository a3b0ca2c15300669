"""Wyoming over a real socket, with the package's own client: offers, requests, cancels, damaged input."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest

from assistant.base.channel import Channel
from assistant.base.clock import LoopClock
from assistant.base.pcm import to_pcm16
from assistant.contracts import Partial, Prompt
from assistant.events import Settings, ToolSpec
from assistant.tools.registry import Tool, ToolRegistry
from tests.fakes.models import FAKE_EARS, WORD_S, Answer, FakeEars, FakeTranscriber
from tests.fakes.talk import World
from tests.fakes.web import PATIENCE, context_of

pytest.importorskip("wyoming", reason="no wyoming here; `make test` installs it")

from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.event import Event, Eventable, async_read_event
from wyoming.info import Describe, Info
from wyoming.ping import Ping
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeVoice
from wyoming.wake import Detect

from assistant.server.wyoming import caller
from assistant.server.wyoming.caller import IN_FLIGHT, WyomingCaller
from assistant.server.wyoming.frames import StreamedSound
from assistant.server.wyoming.houses import Houses, HouseTalk
from assistant.server.wyoming.service import wyoming_service

RATE = 16_000
SILENCE = np.zeros(RATE, np.float32)


class Client:
    """A satellite: sends, and keeps what it got."""

    def __init__(self, wire: AsyncTcpClient) -> None:
        self.wire = wire
        self.got: list[Event] = []

    async def send(self, *said: Eventable) -> None:
        for one in said:
            await self.wire.write_event(one.event())

    async def until(self, kind: str) -> Event:
        """Read on to the next event of this kind."""
        while True:
            event = await asyncio.wait_for(self.wire.read_event(), PATIENCE)
            assert event is not None, f"the connection ended before {kind}"
            self.got.append(event)
            if event.type == kind:
                return event

    async def ended(self) -> bool:
        return await asyncio.wait_for(self.wire.read_event(), PATIENCE) is None

    def kinds(self) -> list[str]:
        """The kinds of events in order, runs folded."""
        kinds = [event.type for event in self.got]
        return [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]

    async def hear(self, pcm: np.ndarray, rate: int = RATE) -> None:
        """Sound as a satellite sends it, 30 ms at a time."""
        await self.send(AudioStart(rate, 2, 1))
        for at in range(0, len(pcm), rate * 3 // 100):
            await self.send(AudioChunk(rate, 2, 1, to_pcm16(pcm[at : at + rate * 3 // 100])))


class Place:
    """A running service over fake models."""

    def __init__(self, world: World, port: int) -> None:
        self.world, self.port = world, port
        self.left = contextlib.AsyncExitStack()
        """Clients that stay when the service stops."""

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with AsyncTcpClient("127.0.0.1", self.port) as wire:
            yield Client(wire)

    async def at_rest(self) -> None:
        """Wait until nothing of any request is at work."""
        async with asyncio.timeout(PATIENCE):
            while self.world.tts.running or self.world.llm.running or self.world.talks.active:
                await asyncio.sleep(0.005)


def run(story: Callable[[Place], Awaitable[None]], world: World | None = None) -> None:
    """Run a story against a service of its own; at the end nothing of it may be left."""

    async def whole() -> None:
        made = world or World(speed=100.0)
        with socket.create_server(("127.0.0.1", 0)) as sock:
            before = asyncio.all_tasks()
            place = Place(made, sock.getsockname()[1])
            async with place.left, wyoming_service(context_of(made), sock):
                assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)  # its connections inherit it
                await asyncio.wait_for(story(place), 60.0)
            assert made.talks.active == 0 and made.llm.running == 0 and made.tts.running == 0
            left = asyncio.all_tasks() - before
            assert not left or not (await asyncio.wait(left, timeout=PATIENCE))[1], "a task is left over"

    asyncio.run(whole())


def test_it_tells_what_it_can_and_that_it_is_there():
    async def story(place: Place) -> None:
        async with place.client() as client:
            await client.send(Describe(), Ping("you"))
            info = Info.from_event(await client.until("info"))
            assert (await client.until("pong")).data["text"] == "you"
        assert info.asr[0].supports_transcript_streaming and info.asr[0].models[0].languages == ["en"]
        assert [voice.name for voice in info.tts[0].voices] == ["ada", "ben"]
        assert info.tts[0].supports_synthesize_streaming and info.handle[0].supports_handled_streaming

    run(story)


@pytest.mark.parametrize(("hears", "offered"), [(("en",), ["en"]), ((), ["de"])])
def test_models_of_unknown_languages_are_offered_in_that_of_the_talks(hears, offered):
    async def story(place: Place) -> None:
        async with place.client() as client:
            await client.send(Describe())
            info = Info.from_event(await client.until("info"))
        assert info.asr[0].models[0].languages == offered
        assert info.tts[0].voices[0].languages == info.handle[0].models[0].languages == ["de"]

    world = World(settings=Settings(persona="ada", language="de"), asr=(ears := FakeEars()))
    ears.facts = replace(FAKE_EARS, languages=hears)
    run(story, world)


def test_a_satellite_names_the_language_that_it_is_heard_in():
    class AnyEars(FakeEars):
        def __init__(self):
            super().__init__()
            self.facts = replace(FAKE_EARS, languages=(), cased=True)

    async def story(place: Place) -> None:
        for request in ((Transcribe(language="de"),), ()):
            async with place.client() as client:
                await client.send(*request)
                await client.hear(np.concatenate([SILENCE, place.world.asr.spoken("guten tag", 1.0), SILENCE]))
                await client.send(AudioStop())
                assert (await client.until("transcript")).data["text"] == "guten tag"
        assert place.world.asr.listened_in == ["de", None]

    world = World(speed=100.0, asr=(ears := AnyEars()))
    world.asr = ears
    run(story, world)


def test_two_satellites_are_understood_at_once():
    async def story(place: Place) -> None:
        async def one(text: str, *request: Eventable) -> None:
            async with place.client() as client:
                await client.send(*request)  # it may be left out
                await client.hear(np.concatenate([SILENCE, place.world.asr.spoken(text, 1.0), SILENCE]))
                await client.send(AudioStop())
                told = await client.until("transcript")
                await client.until("transcript-stop")
                pieces = [event.data["text"] for event in client.got if event.type == "transcript-chunk"]
                assert told.data["text"] == text == "".join(pieces)
                assert client.kinds()[0] == "transcript-start"

        await asyncio.gather(one("turn on the light", Transcribe(language="en")), one("and what time is it"))

    run(story)


def test_certain_words_come_while_somebody_speaks():
    class Sure(FakeEars):
        """Is sure of every word at once."""

        facts = replace(FAKE_EARS, cased=True)

        def __init__(self) -> None:
            super().__init__()
            self.facts = Sure.facts

        def transcriber(self) -> FakeTranscriber:
            made = super().transcriber()
            tentative = made.partial
            made.partial = lambda now=False: Partial(tentative().text)  # type: ignore[method-assign]
            return made

    async def story(place: Place) -> None:
        spoken = ears.spoken("turn on the light in the hall", 2.0)
        async with place.client() as client:
            await client.hear(np.concatenate([SILENCE, spoken[:RATE]]))
            assert "turn on".startswith((await client.until("transcript-chunk")).data["text"])
            await client.hear(np.concatenate([spoken[RATE:], SILENCE]))  # a second start changes nothing
            await client.send(AudioStop())
            told = await client.until("transcript")
            pieces = [event.data["text"] for event in client.got if event.type == "transcript-chunk"]
            assert "".join(pieces) == told.data["text"] == "turn on the light in the hall" and len(pieces) > 1

    ears = Sure()
    run(story, World(asr=ears))


class Words:
    """Each wake word is sound of one level."""

    words = ("Hey Jarvis", "Okay Nabu")

    def spotter(self) -> Words:
        return self

    def spot(self, sound: np.ndarray) -> str | None:
        return next((word for n, word in enumerate(self.words) if np.any(np.round(sound, 1) == 0.3 + 0.2 * n)), None)

    def start_over(self) -> None:
        """It remembers nothing."""


def test_a_name_wakes_only_who_waits_for_it():
    async def story(place: Place) -> None:
        async with place.client() as client:
            await client.send(Describe())
            assert not Info.from_event(await client.until("info")).wake
            await client.send(Detect())
            assert "`wake`" in (await client.until("error")).data["text"]
        place.world.talks.wake_words = Words()
        jarvis, nabu = (np.full(RATE // 2, level, np.float32) for level in (0.3, 0.5))
        async with place.client() as client:
            await client.send(Describe(), Detect(["Okay Nabu"]))
            info = Info.from_event(await client.until("info"))
            assert [model.name for model in info.wake[0].models] == list(Words.words)
            await client.hear(np.concatenate([SILENCE, jarvis, nabu]))
            called = await client.until("detection")
            assert called.data["name"] == "Okay Nabu" and 1500 <= called.data["timestamp"] <= 1700
        async with place.client() as client:
            await client.send(Detect())
            await client.hear(SILENCE)
            await client.send(AudioStop())
            await client.until("not-detected")
            await client.hear(jarvis)  # the request holds for the next stream
            assert (await client.until("detection")).data["name"] == "Hey Jarvis"
            await client.send(Detect(["Hal"]))
            while (event := await client.wire.read_event()) is not None and event.type == "detection":
                """The rest of the sound."""
            assert event is not None and "no wake word 'Hal'" in event.data["text"]

    run(story)


def words(client: Client) -> float:
    """Words of the fake voice in the sound since its last start."""
    kinds = [event.type for event in client.got]
    begin = len(kinds) - kinds[::-1].index("audio-start")
    sound = [event for event in client.got[begin:] if event.type == "audio-chunk"]
    assert all((event.data["rate"], event.data["width"], event.data["channels"]) == (24_000, 2, 1) for event in sound)
    return sum(len(event.payload or b"") for event in sound) / 2 / 24_000 / WORD_S


def test_a_text_is_spoken_and_one_in_pieces_before_it_is_complete():
    async def story(place: Place) -> None:
        async with place.client() as client:
            await client.send(Synthesize("It is five o'clock.", SynthesizeVoice("ben")))
            await client.until("audio-stop")
            assert client.kinds() == ["audio-start", "audio-chunk", "audio-stop"] and words(client) == 4
            await client.send(Synthesize(" "))
            await client.until("audio-stop")
            assert client.kinds()[-2:] == ["audio-start", "audio-stop"]
        async with place.client() as client:
            await client.send(SynthesizeStart(), SynthesizeChunk("It is five. And th"))
            await client.until("audio-chunk")
            whole = Synthesize("It is five. And this is the rest.")
            await client.send(SynthesizeChunk("is is the rest."), whole, SynthesizeStop())
            await client.until("synthesize-stopped")
            assert client.kinds() == ["audio-start", "audio-chunk", "audio-stop", "synthesize-stopped"]
            assert words(client) == 8

    run(story)


LONG = "one two three four five six seven eight nine ten. " * 20


@pytest.mark.parametrize("request_", [Synthesize(LONG), SynthesizeStart()], ids=["whole", "pieces"])
def test_a_client_that_goes_in_mid_sentence_stops_the_voice(request_):
    async def story(place: Place) -> None:
        async with place.client() as client:
            await client.send(request_, SynthesizeChunk(LONG))
            await client.until("audio-chunk")
            assert place.world.tts.running == 1
        await place.at_rest()
        assert not place.world.tts.said, "the talk is forgotten"

    run(story, World(speed=5.0))


def test_a_new_request_stops_the_one_before():
    async def story(place: Place) -> None:
        async with place.client() as client:
            await client.send(Synthesize(LONG))
            await client.until("audio-chunk")
            await client.send(Synthesize("It is five."))
            await client.until("audio-start")
            assert place.world.tts.running <= 1
            await client.until("audio-stop")
            assert words(client) == 3, "nothing of the first"
            await client.send(Transcript("hello"))
            await client.until("handled-stop")

    run(story, World(speed=5.0))


def counting(prompt: Prompt) -> list[str]:
    return [f"Line {len(prompt.lines)}, after {prompt.lines[0].text}."]


def test_a_conversation_goes_on_over_connections_and_two_stay_apart():
    async def story(place: Place) -> None:
        async def say(text: str, name: str | None) -> str:
            async with place.client() as client:
                await client.send(Transcript(text, context={"conversation_id": name} if name else None))
                answer = await client.until("handled")
                await client.until("handled-stop")
                pieces = [event.data["text"] for event in client.got if event.type == "handled-chunk"]
                assert "".join(pieces) == answer.data["text"] and client.kinds()[0] == "handled-start"
                assert name is None or answer.data["context"] == {"conversation_id": name}
                return str(answer.data["text"])

        assert await say("kitchen", "a") == "Line 1, after kitchen."
        assert await asyncio.gather(say("more", "a"), say("hall", "b")) == [
            "Line 3, after kitchen.", "Line 1, after hall."
        ]  # fmt: skip
        assert await say("nobody", None) == "Line 1, after nobody."
        async with place.client() as client:  # one connection is a conversation too
            for text, lines in (("attic", 1), ("more", 3)):
                await client.send(Transcript(text))
                assert (await client.until("handled")).data["text"] == f"Line {lines}, after attic."

    run(story, World(counting))


def test_a_turn_uses_the_assistants_own_tools():
    async def story(place: Place) -> None:
        async with place.client() as client:
            await client.send(Transcript("what time is it"))
            assert (await client.until("handled")).data["text"] == "It is noon."

    async def clock() -> str:
        return "noon"

    def answers(prompt: Prompt) -> list[Answer]:
        last = prompt.lines[-1]
        return [f"It is {last.text}."] if last.role == "tool" else [("clock", {})]

    tool = Tool(ToolSpec("clock", "The time."), clock)
    run(story, World(answers, tools=lambda: ToolRegistry([tool])))


class Late:
    """A clock that a test moves."""

    time = 0.0

    def now(self) -> float:
        return self.time


@pytest.mark.parametrize(
    ("second", "name", "late_s", "then", "at_last"),
    [("Yes, please.", "a", 100, 1, 1), ("yes", "a", 130, 0, 0), ("yes", "b", 0, 0, 1), ("no", "a", 0, 0, 0)],
)
def test_a_yes_on_the_next_connection_runs_what_was_asked_about(second, name, late_s, then, at_last, monkeypatch):
    done: list[str] = []
    clock = Late()

    async def write(text: str) -> str:
        done.append(text)
        return "written"

    def answers(prompt: Prompt) -> list[Answer]:
        last = prompt.lines[-1]
        return [("write_file", {"text": "milk"})] if last.text == "write milk" else ["Fine."]

    async def story(place: Place) -> None:
        async def say(text: str, name: str) -> str:
            async with place.client() as client:
                await client.send(Transcript(text, context={"conversation_id": name}))
                return str((await client.until("handled")).data["text"])

        assert await say("write milk", "a") == "Shall I use files: write file, with milk?"
        clock.time += late_s
        assert await say(second, name) == "Fine." and done == ["milk"] * then
        assert await say("yes", "a") == "Fine." and done == ["milk"] * at_last

    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tool = Tool(ToolSpec("write_file", "Write.", schema), write, server="files", there="write_file", ask=True)
    monkeypatch.setattr(LoopClock, "now", lambda self: clock.now())
    run(story, World(answers, tools=lambda: ToolRegistry([tool])))


def test_a_conversation_is_known_again_after_all_places_were_taken():
    async def story(place: Place) -> None:
        async with place.client() as client:
            for text, held in (("kitchen", 0), ("more", 4), ("again", 0)):
                sessions = [place.world.talks.open() for _ in range(held)]
                await client.send(Transcript(text, context={"conversation_id": "a"}))
                told = await client.until("not-handled" if held else "handled")
                await client.send(Ping())
                await client.until("pong")
                for session in sessions:
                    session.close()
                    await session.run()
        assert told.data["text"] == "Line 3, after kitchen."

    run(story, World(counting))


def test_a_socket_serves_again_and_who_came_meanwhile_waited_and_goes_on():
    async def say(wire: AsyncTcpClient, text: str) -> None:
        await Client(wire).send(Transcript(text, context={"conversation_id": "a"}))

    async def story(place: Place) -> None:
        known: dict[str, HouseTalk] = {}
        with socket.create_server(("127.0.0.1", 0)) as sock:
            async with wyoming_service(context_of(place.world), sock.dup(), known):  # a switched model ends it
                async with AsyncTcpClient("127.0.0.1", sock.getsockname()[1]) as wire:
                    await say(wire, "kitchen")
                    await Client(wire).until("handled-stop")
                await place.at_rest()
            async with AsyncTcpClient("127.0.0.1", sock.getsockname()[1]) as wire:
                await say(wire, "more")
                async with wyoming_service(context_of(place.world), sock.dup(), known):
                    told = await Client(wire).until("handled")
                    assert told.data["text"] == "Line 3, after kitchen."

    run(story, World(counting))


def test_what_cannot_be_answered_is_said():
    async def story(place: Place) -> None:
        async with place.client() as client:
            held = [place.world.talks.open() for _ in range(4)]
            await client.send(Transcript("hello"))
            assert "places are taken" in (await client.until("not-handled")).data["text"]
            for session in held:
                session.close()
                await session.run()
            place.world.llm.fail_after = 0
            await client.send(Transcript("hello"))
            assert (await client.until("not-handled")).data["text"]

    run(story)


def frame(kind: str, payload: bytes = b"", **data: object) -> bytes:
    head = {"type": kind, "data": data} | ({"payload_length": len(payload)} if payload else {})
    return json.dumps(head).encode() + b"\n" + payload


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not valid JSON"),
        (b"[1]\n", "JSON object"),
        (b"\xff\n", "UTF-8"),
        (b"[" * 50_000 + b"\n", "deep"),
        (b"x" * 100_000, "65536 bytes"),
        (b'{"data": {}}\n', "type is required"),
        (b'{"type": "describe", "data": 5}\n', "data must be an object"),
        (b'{"type": "audio-chunk", "payload_length": 99999999999}\n', "payload_length is 99999999999"),
        (b'{"type": "audio-chunk", "payload_length": 1048577}\n', "payload_length is 1048577"),
        (b'{"type": "synthesize", "data_length": 200000}\n', "data_length is 200000"),
        (b'{"type": "synthesize", "data_length": 3}\n{.}', "not valid JSON"),
        (frame("synthesize"), "synthesize.text is required"),
        (frame("synthesize", text=[1]), "must be a string"),
        (frame("synthesize", text="hi", voice={"name": "eve"}), "no voice 'eve'"),
        (frame("synthesize-start", text_format="ssml"), "SSML"),
        (frame("transcribe", language="de"), "does not know the language 'de'"),
        (frame("audio-start") + frame("audio-chunk", b"ab", rate=16000, width=1, channels=1), "must be 16-bit"),
        (frame("audio-start") + frame("audio-chunk", b"ab", rate=3, width=2, channels=1), "rate is 3"),
        (frame("audio-start") + frame("audio-chunk", b"abc", rate=16000, width=2, channels=1), "whole number"),
        (frame("transcript", text="hi", context={"conversation_id": ""}), "is empty"),
    ],
)
def test_damaged_input_is_one_error_and_others_go_on(sent, told):
    async def story(place: Place) -> None:
        async with place.client() as other:
            await other.send(SynthesizeStart(), SynthesizeChunk("Before this. And "))
            await other.until("audio-chunk")
            async with place.client() as client:
                reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
                writer.write(sent)
                error = await asyncio.wait_for(async_read_event(reader), PATIENCE)
                assert error is not None and error.type == "error" and told in error.data["text"], error
                with contextlib.suppress(ConnectionError):  # a peer that still sends is cut off
                    assert await asyncio.wait_for(reader.read(), PATIENCE) == b"", "one error, and the end"
                writer.close()
                await client.send(Describe())
                await client.until("info")
            await other.send(SynthesizeChunk("after it."), SynthesizeStop())
            await other.until("synthesize-stopped")
            assert words(other) == 5

    run(story)


FLOOD = [AudioChunk(8000, 2, 1, bytes(1 << 20)), SynthesizeChunk("word " * 32_000)]


@pytest.mark.parametrize("said", FLOOD, ids=["sound", "text"])
def test_what_waits_for_slow_work_is_bounded_and_others_go_on(said, monkeypatch):
    waiting: list[Channel] = []
    held: list[int] = []
    measured = asyncio.Event()

    async def stuck(*given: object, **more: object) -> None:
        waiting.append(next(one for one in given if isinstance(one, Channel)))
        await measured.wait()

    async def story(place: Place) -> None:
        async with place.client() as client:
            await client.send(SynthesizeStart() if isinstance(said, SynthesizeChunk) else AudioStart(8000, 2, 1))
            sending = asyncio.create_task(client.send(*[said] * 12))
            async with asyncio.timeout(PATIENCE):
                while not waiting or (len(waiting[-1]) < IN_FLIGHT and not sending.done()):
                    await asyncio.sleep(0.005)
            async with place.client() as other:
                await other.send(Transcript("hello"))
                await other.until("handled")
            pieces = [await waiting[-1].receive() for _ in range(len(waiting[-1]))]
            held.append(sum(one.nbytes if isinstance(one, np.ndarray) else len(one) * 4 for one in pieces))
            measured.set()
            sending.cancel()
        assert 0 < held[0] <= 1.1 * (1 << 20)

    monkeypatch.setattr(caller, "hear", stuck)
    monkeypatch.setattr(caller, "speak_to", stuck)
    run(story)


def test_engines_that_fail_are_an_error_and_the_next_request_is_served():
    async def story(place: Place) -> None:
        place.world.tts.fail_on, place.world.asr.broken = "broken", True
        async with place.client() as client:
            await client.send(Ping(), Synthesize("This is broken."))
            assert "lost its voice" in (await client.until("error")).data["text"] and await client.ended()
        async with place.client() as client:
            await client.hear(np.concatenate([place.world.asr.spoken("hello", 1.0), SILENCE]))
            await client.send(AudioStop())
            assert "ask again" in (await client.until("error")).data["text"] and await client.ended()
        async with place.client() as client:
            await client.send(Synthesize("All is well."))
            await client.until("audio-stop")

    run(story)


def test_the_service_stops_in_the_middle_of_everything():
    async def story(place: Place) -> None:
        clients = [await place.left.enter_async_context(place.client()) for _ in range(3)]
        await clients[0].send(Synthesize(LONG))
        await clients[1].hear(SILENCE)
        await clients[2].send(Transcript("hello"))
        await clients[0].until("audio-chunk")

    run(story, World(speed=5.0))


@pytest.mark.parametrize("channels", [1, 2])
def test_sound_of_any_rate_is_heard_at_ours(channels):
    tone = np.repeat(np.sin(np.arange(48_000) / 48_000 * 2 * np.pi * 440).astype(np.float32), channels)
    ear, heard = StreamedSound(), []
    for at in range(0, len(tone), 960 * channels):
        data = {"rate": 48_000, "width": 2, "channels": channels}
        heard += ear.pieces(Event("audio-chunk", data, to_pcm16(tone[at : at + 960 * channels])))
    sound = np.concatenate(heard)
    assert abs(sound.size - RATE) < 400
    assert np.argmax(np.abs(np.fft.rfft(sound))) / sound.size * RATE == pytest.approx(440, abs=2)


def test_a_connection_that_the_system_gives_up_ends_without_an_error():
    async def story(place: Place) -> None:
        gone = asyncio.StreamReader()
        gone.set_exception(TimeoutError(110, "Connection timed out"))
        _, writer = await asyncio.open_connection("127.0.0.1", place.port)
        await WyomingCaller(gone, writer, context_of(place.world), Houses(place.world.talks, LoopClock(), {})).serve()
        assert writer.is_closing()

    run(story)
