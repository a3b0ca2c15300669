"""What existing clients need of the wire, point by point, over a real websocket. The numbers are those of the coverage
table in assistant/realtime/README.md."""

import asyncio
import json
from dataclasses import replace

import aiohttp
import numpy as np
import pytest
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from assistant.base.ids import random_ids
from assistant.contracts import Prompt
from assistant.server.security import Gate
from assistant.text.written import as_written
from tests.fakes.talk import World
from tests.fakes.web import LISTEN_16K, RATE, SPOKEN_ORDER, Site, Wire, run

UNION: TypeAdapter = TypeAdapter(RealtimeServerEvent)
COUNT = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
STANDARD = set(json.dumps(UNION.json_schema()).split('"'))
"""Every word of the SDK's schema; a type that is not among them is none that it knows."""

SPOKEN_TURN = [
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
    *SPOKEN_ORDER,
]


def counting(prompt: Prompt):
    """Counts when asked to, else repeats what it remembers having said."""
    if "count" in prompt.lines[-1].text:
        return [COUNT]
    return ["/".join(line.text for line in prompt.lines if line.role == "assistant") or "nothing"]


def counter() -> World:
    return World(counting, speed=20.0)


def slow() -> World:
    """Speaks in real time, so that a reply is still running when something happens."""
    return World(counting, speed=2.0)


def without(types: list[str], *parts: str) -> list[str]:
    return [kind for kind in types if not any(part in kind for part in parts)]


def once(types: list[str]) -> list[str]:
    """Each type at its first place, per run: interleaved deltas count as one of each."""
    out: list[str] = []
    for kind in types:
        if kind.endswith(".delta") and kind in out[-2:]:
            continue
        out.append(kind)
    return out


async def counted(wire: Wire, deltas: int = 5) -> dict:
    """Ask for a count and wait until some of it was sent; returns its latest audio delta."""
    await wire.say("count please")
    await wire.send("response.create")
    for _ in range(deltas):
        frame = await wire.until("response.output_audio.delta")
    return frame


def test_01_session_created_first_and_updates_answered_in_full():
    async def story(site: Site) -> None:
        async with site.wire("?model=gpt-realtime") as wire:
            assert wire.frames[0]["type"] == "session.created"
            updated = await wire.update(instructions="Be brief.")
            assert set(updated) == set(wire.session) and updated["instructions"] == "Be brief."
            assert updated["id"] == wire.session["id"]

    run(story)


@pytest.mark.parametrize("path", ["", "/", "?model=x", "/?model=x"])
def test_01_any_model_and_a_trailing_slash(path):
    async def story(site: Site) -> None:
        async with site.wire(path) as wire:
            assert wire.session["model"] == "local"

    run(story)


def test_02_subprotocol_realtime_is_selected_only_when_offered():
    async def story(site: Site) -> None:
        offers = ("openai-insecure-api-key.sk-x", "realtime", "openai-agents-sdk.1.0")
        async with site.client.ws_connect(site.ws, protocols=offers) as ws:
            assert ws.protocol == "realtime"
            assert (await ws.receive_json())["type"] == "session.created"
        async with site.client.ws_connect(site.ws) as ws:
            assert ws.protocol is None
            assert (await ws.receive_json())["type"] == "session.created"
        headers = {"OpenAI-Beta": "realtime=v1", "Authorization": "Bearer anything"}
        async with site.client.ws_connect(site.ws, headers=headers) as ws:
            assert (await ws.receive_json())["type"] == "session.created"

    run(story)


def test_03_order_of_a_spoken_turn():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.listen_16k()
            del wire.frames[:]
            await wire.speak("hello there friend")
            await wire.until("response.done")
            assert once(without(wire.types(), "transcription")) == SPOKEN_TURN
            place = wire.types().index("conversation.item.input_audio_transcription.completed")
            assert place > wire.types().index("conversation.item.done")
            started = wire.of("input_audio_buffer.speech_started")[0]
            user = wire.of("conversation.item.added")[0]["item"]
            assert started["item_id"] == user["id"] == wire.of("input_audio_buffer.committed")[0]["item_id"]
            assert user["content"] == [{"type": "input_audio"}]
            assert wire.of("conversation.item.added")[1]["previous_item_id"] == user["id"]

    run(story)


def test_03_order_of_a_text_turn():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            del wire.frames[:]
            await wire.say("hello")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            await wire.until("response.done")
            assert wire.types() == [
                "conversation.item.added",
                "conversation.item.done",
                "response.created",
                "response.output_item.added",
                "conversation.item.added",
                "response.content_part.added",
                "response.output_text.delta",
                "response.output_text.done",
                "response.content_part.done",
                "conversation.item.done",
                "response.output_item.done",
                "response.done",
            ]

    run(story)


def test_04_ids_agree_across_a_reply_and_events_have_their_own():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.listen_16k()
            await wire.speak("hello there friend")
            done = await wire.until("response.done")
            assert {f["response_id"] for f in wire.frames if "response_id" in f} == {done["response"]["id"]}
            item_ids = {f["item_id"] for f in wire.frames if "response_id" in f and "item_id" in f}
            assert item_ids == {done["response"]["output"][0]["id"]}
            assert len({f["event_id"] for f in wire.frames}) == len(wire.frames)
            for frame in wire.frames:
                if frame["type"] != "session.updated":  # 16 kHz is an extension: no schema has it
                    UNION.validate_python(frame)

    run(story)


def test_05_no_sound_after_done_when_speech_interrupts():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.listen_16k()
            delta = await counted(wire)
            await wire.speak("stop it now")
            done = await wire.until("response.done")
            assert done["response"]["id"] == delta["response_id"]
            assert done["response"]["status"] == "cancelled"
            assert done["response"]["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
            assert done["response"]["output"][0]["status"] == "incomplete"
            types = wire.types()
            started = types.index("input_audio_buffer.speech_started")
            tail = without(types[started + 1 : types.index("response.done") + 1], "transcription", ".delta")
            assert tail[-6:] == [
                "response.output_audio.done",
                "response.output_audio_transcript.done",
                "response.content_part.done",
                "conversation.item.done",
                "response.output_item.done",
                "response.done",
            ]
            at = len(wire.frames)
            await wire.until("response.done")
            assert not [f for f in wire.frames[at:] if f.get("response_id") == delta["response_id"]]

    run(story, world=slow())


@pytest.mark.parametrize("named", [True, False])
def test_05_no_sound_after_done_when_the_client_cancels(named):
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            delta = await counted(wire)
            await wire.send("response.cancel", **({"response_id": delta["response_id"]} if named else {}))
            done = await wire.until("response.done")
            assert done["response"]["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
            assert await wire.round_trip() == []

    run(story, world=slow())


def test_06_truncate_clamps_acknowledges_and_retrieve_gives_the_heard_words():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            delta = await counted(wire)
            await wire.until("response.done")
            item = delta["item_id"]
            for asked, answered in [(10**12, 4800), (950, 950), (3000, 950), (700.5, 700)]:
                await wire.send("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=asked)
                assert (await wire.until("conversation.item.truncated"))["audio_end_ms"] == answered
            await wire.send("conversation.item.retrieve", item_id=item)
            content = (await wire.until("conversation.item.retrieved"))["item"]["content"]
            assert content[0]["transcript"].split() == ["one", "two"]
            await wire.send("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=0)
            assert (await wire.until("conversation.item.truncated"))["transcript"] == ""
            for item_id in ("nobody", (await typed_item(wire))):
                await wire.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=5)
                await wire.until("error")

    run(story, world=counter())


async def typed_item(wire: Wire) -> str:
    await wire.say("typed words")
    return (await wire.until("conversation.item.done"))["item"]["id"]


def test_06_truncate_before_the_reply_is_done():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            delta = await counted(wire)
            await wire.send("conversation.item.truncate", item_id=delta["item_id"], content_index=0, audio_end_ms=300)
            done = await wire.until("response.done")
            assert done["response"]["status"] == "cancelled"
            assert (await wire.until("conversation.item.truncated"))["transcript"].split() == ["one"]

    run(story, world=slow())


def test_07_the_model_remembers_heard_words_only():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            delta = await counted(wire)
            await wire.until("response.done")
            await wire.send(
                "conversation.item.truncate", item_id=delta["item_id"], content_index=0, audio_end_ms=1800
            )
            await wire.say("what did you say")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            assert (await wire.until("response.output_text.done"))["text"] == "one two three four five six"

    run(story, world=counter())


def test_08_metadata_and_turn_detection_are_given_back():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            vad = {"type": "server_vad", "interrupt_response": False, "create_response": False}
            session = await wire.listen_16k(turn_detection=vad)
            got = session["audio"]["input"]["turn_detection"]
            assert got["interrupt_response"] is False and got["create_response"] is False
            await wire.say("hi")
            await wire.send("response.create", response={"metadata": {"client_event_id": "e1"}})
            for kind in ("response.created", "response.done"):
                assert (await wire.until(kind))["response"]["metadata"] == {"client_event_id": "e1"}
            del wire.frames[:]
            await wire.speak("hello there friend")
            await wire.until("conversation.item.input_audio_transcription.completed")
            await wire.round_trip()
            assert "response.created" not in wire.types()

    run(story)


BAD = {
    "broken JSON": ("{", None),
    "no object": ("[]", None),
    "no type": ('{"event_id": "e"}', "e"),
    "unknown type": ('{"type": "x", "event_id": "e"}', "e"),
    "bad base64": ('{"type": "input_audio_buffer.append", "event_id": "e", "audio": "*"}', "e"),
    "unknown item": ('{"type": "conversation.item.retrieve", "event_id": "e", "item_id": "zz"}', "e"),
    "deep nesting": ('{"type": "x", "a": ' + "[" * 50_000 + "]" * 50_000 + "}", None),
    "cancel of nothing": ('{"type": "response.cancel", "event_id": "e"}', "e"),
    "deletion of nothing": ('{"type": "conversation.item.delete", "event_id": "e", "item_id": "zz"}', "e"),
    "binary frame": (b"\x00\x01", None),
}
CODES = {
    "unknown item": "item_retrieve_invalid_item_id",
    "cancel of nothing": "response_cancel_not_active",
}


@pytest.mark.parametrize("name", BAD)
def test_09_each_mistake_is_one_error_and_the_connection_lives_on(name):
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            frame, event_id = BAD[name]
            await (wire.ws.send_bytes(frame) if isinstance(frame, bytes) else wire.ws.send_str(frame))
            error = (await wire.until("error"))["error"]
            assert error.get("event_id") == event_id
            assert error["code"] == CODES.get(name, error["code"]) and error["message"]
            if name == "cancel of nothing":
                assert error["message"] == "Cancellation failed: no active response found"
            await wire.say("hi")
            await wire.send("response.create")
            assert (await wire.until("response.done"))["response"]["status"] == "completed"

    run(story)


def test_09_a_mistake_does_not_stop_a_running_reply():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await counted(wire)
            await wire.ws.send_bytes(b"x")
            await wire.ws.send_str('{"type": 5}')
            assert (await wire.until("response.done"))["response"]["status"] == "completed"
            assert len(wire.of("error")) == 2

    run(story, world=counter())


def test_09_odd_bytes_are_carried():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.update(audio={"input": {"turn_detection": None}})
            for audio in ("AAAA", "AAA=", "AA=="):
                await wire.send("input_audio_buffer.append", audio=audio)
            assert await wire.round_trip() == []

    run(story)


def test_10_absent_not_null():
    allowed = {"status_details", "usage", "metadata", "conversation_id", "noise_reduction", "turn_detection"}

    def nulls(value, name=""):
        if isinstance(value, dict):
            for key, below in value.items():
                yield from nulls(below, key)
        elif isinstance(value, list):
            for below in value:
                yield from nulls(below, name)
        elif value is None:
            yield name

    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.listen_16k(turn_detection=None)
            await wire.append(site.world.asr.spoken("hello there", 0.5))
            await wire.send("input_audio_buffer.commit")
            await wire.send("response.create")
            await wire.until("response.done")
            assert set(nulls(wire.frames[2:])) <= allowed

    run(story)


def test_11_frames_stay_below_256_kib():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.say("count please")
            await wire.send("response.create", response={"instructions": "x" * 100_000})
            await wire.until("response.done")
            await wire.send(
                "conversation.item.retrieve", item_id=wire.of("conversation.item.added")[-1]["item"]["id"]
            )
            await wire.until("conversation.item.retrieved")
            await wire.say("ü" * 70_000)
            await wire.until("conversation.item.done")
            sizes = [len(json.dumps(frame, ensure_ascii=False).encode()) for frame in wire.frames]
            assert max(sizes) <= 256 * 1024

    run(story, world=counter())


def test_12_nothing_that_was_not_asked_for():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.listen_16k()
            await counted(wire)
            await wire.speak("stop that thing")
            await wire.until("response.done")
            await wire.until("response.done")
            assert {f["type"] for f in wire.frames} <= STANDARD
            assert not [f for f in wire.frames if f["type"].startswith("assistant.")]

    run(story, world=slow())


def test_13_manual_mode():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.listen_16k(turn_detection=None)
            await wire.send("input_audio_buffer.commit", event_id="c")
            error = (await wire.until("error"))["error"]
            assert (error["code"], error["event_id"]) == ("input_audio_buffer_commit_empty", "c")
            del wire.frames[:]
            await wire.append(site.world.asr.spoken("hello there friend", 0.6))
            await wire.send("input_audio_buffer.clear")
            await wire.until("input_audio_buffer.cleared")
            await wire.append(site.world.asr.spoken("good day", 0.6))
            await wire.send("input_audio_buffer.commit")
            completed = await wire.until("conversation.item.input_audio_transcription.completed")
            assert completed["transcript"] == "good day"
            await wire.round_trip()
            assert without(wire.types(), "transcription", "error") == [
                "input_audio_buffer.cleared",
                "input_audio_buffer.committed",
                "conversation.item.added",
                "conversation.item.done",
            ]
            await wire.send("response.create")
            done = await wire.until("response.done")
            assert done["response"]["output"][0]["content"][0]["transcript"] == "You said good day."

    run(story)


def test_13_a_client_that_interrupts_by_itself_whether_or_not_a_reply_runs():
    """Clear, sound from before the key press, cancel, truncate: what Pipecat sends at every local interruption."""

    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.listen_16k(turn_detection=None)
            delta = await counted(wire)
            for _ in range(2):
                await wire.send("input_audio_buffer.clear")
                await wire.append(np.zeros(RATE // 5, np.float32))
                await wire.send("response.cancel")
                await wire.send(
                    "conversation.item.truncate", item_id=delta["item_id"], content_index=0, audio_end_ms=10**9
                )
                await wire.until("conversation.item.truncated")
            assert [error["error"]["code"] for error in wire.of("error")] == ["response_cancel_not_active"]

    run(story, world=slow())


@pytest.mark.slow
def test_14_one_reply_at_a_time_but_side_branches_are_allowed():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await counted(wire)
            await wire.send("response.create", event_id="second")
            error = (await wire.until("error"))["error"]
            assert error["code"] == "conversation_already_has_active_response" and error["event_id"] == "second"
            aside = {
                "conversation": "none",
                "output_modalities": ["text"],
                "metadata": {"topic": "aside"},
                "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}],
            }
            await wire.send("response.create", response=aside)
            done = await wire.until("response.done", lambda f: f["response"]["metadata"] is not None)
            assert done["response"]["conversation_id"] is None
            assert done["response"]["output"][0]["content"][0]["text"] == "nothing"
            main = await wire.until("response.done")
            assert main["response"]["status"] == "completed"
            assert main["response"]["conversation_id"] == wire.conversation
            aside_item = done["response"]["output"][0]["id"]
            assert aside_item not in {f["item"]["id"] for f in wire.of("conversation.item.added")}

    run(story, world=World(counting, speed=5.0))


def test_15_tool_round_trip_and_tool_output_alone_starts_nothing():
    def mind(prompt: Prompt):
        return ["Done."] if prompt.lines[-1].role == "tool" else ["Let me see. ", ("look", {"x": "1"})]

    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.update(tools=[{"type": "function", "name": "look", "parameters": {"type": "object"}}])
            del wire.frames[:]
            await wire.say("look")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            done = await wire.until("response.done")
            call = done["response"]["output"][1]
            assert (call["type"], call["status"], call["arguments"]) == ("function_call", "completed", '{"x": "1"}')
            types = wire.types()
            assert types[types.index("response.output_item.done") + 1 :] == [
                "response.output_item.added",
                "conversation.item.added",
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
                "conversation.item.done",
                "response.output_item.done",
                "response.done",
            ]
            finished = wire.of("response.function_call_arguments.done")[0]
            assert finished["name"] == "look" and finished["output_index"] == 1
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "found"}
            await wire.send("conversation.item.create", item=output)
            await wire.until("conversation.item.done")
            assert await wire.round_trip() == []
            await wire.send("response.create", response={"output_modalities": ["text"]})
            assert (await wire.until("response.output_text.done"))["text"] == "Done."

    run(story, world=World(mind))


@pytest.mark.slow
def test_16_a_client_that_vanishes_in_mid_reply_frees_everything():
    async def story(site: Site) -> None:
        for _ in range(3):
            async with site.wire() as wire:
                await counted(wire, 2)
        async with site.wire() as wire:
            await wire.say("hello")
            await wire.send("response.create")
            await wire.until("response.done")

    run(story, world=World(counting, speed=2.0, limit=1))


def test_17_two_connections_do_not_see_each_other():
    async def story(site: Site) -> None:
        async with site.wire() as one, site.wire() as two:
            await one.say("zebra zebra", "item_one")
            await two.say("walrus walrus", "item_two")
            for wire in (one, two):
                await wire.send("response.create")
            await asyncio.gather(one.until("response.done"), two.until("response.done"))
            assert "walrus" not in json.dumps(one.frames) and "zebra" not in json.dumps(two.frames)
            await one.send("conversation.item.retrieve", item_id="item_two")
            await one.until("error")

    run(story)


def test_18_input_times_count_all_sound_that_was_ever_appended():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.listen_16k()
            await wire.append(np.zeros(RATE, np.float32))
            await wire.send("input_audio_buffer.clear")
            await wire.append(np.zeros(RATE, np.float32))
            await wire.speak("hello there friend", 0.8)
            await wire.until("response.done")
            start = wire.of("input_audio_buffer.speech_started")[0]["audio_start_ms"]
            end = wire.of("input_audio_buffer.speech_stopped")[0]["audio_end_ms"]
            assert abs(start - (2000 - 300)) <= 40 and abs(end - 2800) <= 70

    run(story)


# -------------------------------------------------------------------------- rows of what real clients need


def test_row_wrong_order_of_items_is_impossible_for_client_made_ids():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            for text, item_id in (("a", "m1"), ("c", "m3")):
                await wire.say(text, item_id)
            item = {"id": "m2", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "b"}]}
            await wire.send("conversation.item.create", item=item, previous_item_id="m1")
            added = await wire.until("conversation.item.added", lambda f: f["item"]["id"] == "m2")
            assert added["previous_item_id"] == "m1"
            await wire.send("conversation.item.create", item=item | {"id": "m4"}, previous_item_id="nobody")
            await wire.until("error")
            await wire.send("conversation.item.delete", item_id="m2")
            assert (await wire.until("conversation.item.deleted"))["item_id"] == "m2"

    run(story)


def test_row_a_reconnecting_client_replays_its_items():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.say("earlier", "item_own")
            history = {"type": "message", "role": "assistant", "content": [{"type": "input_text", "text": "yes"}]}
            await wire.send("conversation.item.create", item=history)
            added = await wire.until("conversation.item.done", lambda f: f["item"]["role"] == "assistant")
            assert added["item"]["content"] == [{"type": "output_text", "text": "yes"}]
            await wire.say("what did you say")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            assert (await wire.until("response.output_text.done"))["text"] == "yes"

    run(story, world=counter())


def test_row_a_reply_that_fails_is_done_and_not_an_error():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            site.world.tts.fail_on = "hello"
            await wire.say("hello")
            await wire.send("response.create")
            done = (await wire.until("response.done"))["response"]
            assert done["status"] == "failed" and done["status_details"]["error"]["code"]
            assert wire.of("error") == []
            site.world.tts.fail_on = None
            await wire.send("response.create")
            assert (await wire.until("response.done"))["response"]["status"] == "completed"

    run(story)


def test_row_transcription_only():
    async def story(site: Site) -> None:
        async with site.wire("?intent=transcription") as wire:
            assert wire.session["type"] == "transcription"
            await wire.send(
                "session.update", session={"type": "transcription", "audio": {"input": {"format": LISTEN_16K}}}
            )
            await wire.until("session.updated")
            await wire.speak("hello there friend")
            done = await wire.until("conversation.item.input_audio_transcription.completed")
            assert done["transcript"] == "hello there friend" and done["usage"]["type"] == "duration"
            await wire.round_trip()
            assert "response.created" not in wire.types()

    run(story)


def test_a_transcript_carries_the_engines_own_writing():
    async def story(site: Site) -> None:
        ears = site.world.asr
        plain = "call anna in five minutes"
        for cased, said, written in (
            (True, "Is it 7:30, Ms. O'Hara?", "Is it 7:30, Ms. O'Hara?"),
            (False, plain, as_written(plain)),
        ):
            ears.facts = replace(ears.facts, cased=cased)
            async with site.wire("?intent=transcription") as wire:
                session = {"type": "transcription", "audio": {"input": {"format": LISTEN_16K}}}
                await wire.send("session.update", session=session)
                await wire.until("session.updated")
                await wire.speak(said)
                done = await wire.until("conversation.item.input_audio_transcription.completed")
                assert done["transcript"] == written
                deltas = wire.of("conversation.item.input_audio_transcription.delta")
                assert "".join(frame["delta"] for frame in deltas) in ("", written)

    run(story)


# --------------------------------------------------------------------------------------- beyond the standard


def test_resume_after_a_drop():
    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.say("my name is Ada", "item_own")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            await wire.until("response.done")
        async with site.wire(f"?conversation_id={wire.conversation}") as again:
            assert again.conversation == wire.conversation
            frames = [await again.next() for _ in range(4)]
            assert [f["type"].rsplit(".", 1)[1] for f in frames] == ["added", "done"] * 2
            assert frames[0]["item"]["id"] == "item_own"
            assert frames[2]["item"]["content"][0]["text"] == "You said my name is Ada."
            await again.send("conversation.item.retrieve", item_id="item_own")
            await again.until("conversation.item.retrieved")

    run(story)


def test_resume_after_a_restart(tmp_path):
    """Another process, as far as anything in memory is concerned; the talk's words are on disk."""
    known: list[str] = []

    async def before(site: Site) -> None:
        async with site.wire() as wire:
            known.append(wire.conversation)
            await wire.say("my name is Ada", "item_own")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            await wire.until("response.done")

    async def after(site: Site) -> None:
        async with site.wire(f"?conversation_id={known[0]}") as wire:
            assert wire.conversation == known[0]
            frames = [await wire.next() for _ in range(4)]
            assert [f["item"]["role"] for f in frames] == ["user", "user", "assistant", "assistant"]
            await wire.say("what did you say")
            await wire.send("response.create", response={"output_modalities": ["text"]})
            assert (await wire.until("response.output_text.done"))["text"] == "You said my name is Ada."

    run(before, world=World(folder=tmp_path))
    world = World(counting, folder=tmp_path)
    world.talks._services = replace(world.talks._services, ids=random_ids)
    run(after, world=world)


def test_resume_of_an_unknown_talk_says_so_and_begins_anew():
    async def story(site: Site) -> None:
        async with site.wire("?conversation_id=conv_nobody") as wire:
            error = (await wire.until("error"))["error"]
            assert error["code"] == "conversation_not_found" and wire.conversation != "conv_nobody"

    run(story)


def test_limit_is_told_before_the_close():
    async def story(site: Site) -> None:
        async with site.wire(), site.client.ws_connect(site.ws) as ws:
            refusal = await ws.receive_json()
            assert refusal["error"]["code"] == "session_limit_reached" and "1" in refusal["error"]["message"]
            UNION.validate_python(refusal)
            assert (await ws.receive()).type == aiohttp.WSMsgType.CLOSE and ws.close_code == 1013
        async with site.wire() as wire:
            await wire.round_trip()

    run(story, world=World(limit=1))


def test_extensions_over_the_wire():
    async def story(site: Site) -> None:
        async with site.wire("?extensions=all") as wire:
            assert wire.session["assistant"]["conversation_id"] == wire.conversation
            await wire.listen_16k()
            await wire.send("assistant.ping", client_ms=12.5)
            pong = await wire.until("assistant.pong")
            assert pong["client_ms"] == 12.5 and pong["server_ms"] > 0
            await wire.send("assistant.personas")
            personas = await wire.until("assistant.personas")
            assert personas["current"] == "ada" and personas["voices"] == ["ada", "ben"]
            await wire.send("assistant.capsules")
            assert (await wire.until("assistant.capsules"))["capsules"] == []
            await wire.send("assistant.persona", name="ben")
            assert (await wire.until("assistant.persona"))["name"] == "ben"
            assert (await wire.update())["instructions"] == "You are Ben."
            await wire.speak("hello there friend")
            timeline = await wire.until("assistant.timeline")
            assert sum(p["ms"] for p in timeline["parts"]) == pytest.approx(timeline["total_ms"], abs=0.01)
            await wire.until("response.done")
            states = [f["state"] for f in wire.of("assistant.state")]
            assert [s for i, s in enumerate(states) if s not in states[:i]] == [
                "idle", "listening", "thinking", "speaking",
            ]  # fmt: skip
            await wire.send("assistant.undo")
            await wire.until("conversation.item.deleted")
            await wire.until("conversation.item.deleted")

    run(story)


def test_extensions_of_state_are_not_for_pages_from_elsewhere():
    async def story(site: Site) -> None:
        for origin, allowed in (("https://friend.example", False), (site.http, True)):
            async with site.wire("?extensions=capsules,answers,clock", headers={"Origin": origin}) as wire:
                asked = wire.session["assistant"]["extensions"]
                assert asked == (["answers", "capsules", "clock"] if allowed else ["clock"])
                if not allowed:
                    error = (await wire.until("error"))["error"]
                    assert (error["code"], error["param"]) == ("origin_refused", "extensions")
                await wire.send("assistant.capsules")
                await wire.until("assistant.capsules" if allowed else "error")

    run(story, gate=Gate("127.0.0.1", origins=frozenset({"https://friend.example"})))


def test_duck_extension_lowers_first_and_stops_after_the_verdict():
    async def story(site: Site) -> None:
        async with site.wire("?extensions=duck,heard") as wire:
            await wire.listen_16k()
            delta = await counted(wire)
            await wire.send("assistant.heard", item_id=delta["item_id"], audio_ms=300)
            await wire.speak("no wait stop it please", 1.2)
            ducked = await wire.until("assistant.duck")
            stopped = await wire.until("assistant.stop")
            assert ducked["item_id"] == stopped["item_id"] == delta["item_id"]
            await wire.until("response.done")
            types = wire.types()
            assert types.index("assistant.duck") < types.index("input_audio_buffer.speech_started")

    run(story, world=slow())
