"""The connection's state table: frames in, commands out; events in, frames out; promises kept whatever comes."""

import base64
import json
import re
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from assistant import events as talk
from assistant.base.errors import PeerError
from assistant.events import AudioPart, Message, Response, SemanticVad, TextPart, Usage
from assistant.realtime.events import EXTENSION_NAMES, EXTENSION_WRITERS, WRITERS
from assistant.realtime.protocol import Protocol, WireSession, read_extensions
from assistant.realtime.settings import Character, Facts
from tests.fakes.web import SPOKEN_ORDER

CHARACTERS = {"ada": Character("Be kind.", "ada"), "bo": Character("Be brief.", "bo")}
FACTS = Facts(model="tiny", voices=lambda: ("ada", "bo"), characters=CHARACTERS.get)
PAGE = Path(__file__).parents[3] / "assistant/realtime/README.md"
UNION: TypeAdapter = TypeAdapter(RealtimeServerEvent)


def connection(*extensions: str) -> Protocol:
    wire = WireSession("sess_1", "conv_1", True, False, False, 5.0, 1000)
    return Protocol(wire, FACTS, extensions=frozenset(extensions))


def send(protocol: Protocol, **event: object):
    return protocol.receive(json.dumps(event))


def types(frames) -> list[str]:
    return [frame["type"] for frame in frames]


def item(item_id="item_a", status="in_progress", *parts) -> Message:
    return Message(item_id, "assistant", parts, status)


def reply(status="in_progress", modality="audio", **more) -> Response:
    return Response("resp_1", status, modality, **more)


def spoken_reply(sound: np.ndarray) -> list[talk.Event]:
    """One spoken reply in the protocol's order."""
    place = ("resp_1", "item_a", 0, 0)
    done = item("item_a", "completed", AudioPart("Hello."))
    return [
        talk.ResponseCreated(reply(metadata={"client_event_id": "x"})),
        talk.OutputItemAdded("resp_1", 0, item()),
        talk.ItemAdded(item(), "item_u"),
        talk.PartAdded(*place, AudioPart("")),
        talk.SpokenText(*place, "Hello.", 0.0),
        talk.AudioDelta(*place, 0, sound),
        talk.AudioDone(*place),
        talk.SpokenTextDone(*place, "Hello."),
        talk.PartDone(*place, AudioPart("Hello.")),
        talk.ItemDone(done, "item_u"),
        talk.OutputItemDone("resp_1", 0, done),
        talk.ResponseDone(
            reply("completed", output=(done,), metadata={"client_event_id": "x"}, usage=Usage(3, 1, 2, 4, 5))
        ),
    ]


def play(protocol: Protocol, events) -> list[dict]:
    return [frame for event in events for frame in protocol.emit(event)]


def test_session_created_comes_first_and_is_complete():
    created, conversation = connection().opening()
    session = created["session"]
    assert created["type"] == "session.created" and conversation["type"] == "conversation.created"
    assert session["object"] == "realtime.session" and session["type"] == "realtime"
    assert session["model"] == "tiny" and session["instructions"] == "Be kind."
    assert session["audio"]["input"]["format"] == {"type": "audio/pcm", "rate": 24000}
    assert session["audio"]["output"] == {
        "format": {"type": "audio/pcm", "rate": 24000},
        "voice": "ada",
        "speed": 1.0,
    }
    detection = session["audio"]["input"]["turn_detection"]
    assert detection["create_response"] is True and detection["interrupt_response"] is True
    assert session["expires_at"] == 1000 + 86400
    assert conversation["conversation"]["id"] == "conv_1"
    assert "assistant" not in session


def test_a_resumed_conversation_is_told_oldest_first():
    old = [Message("a", "user", (TextPart("hi"),)), Message("b", "assistant", (TextPart("ho"),))]
    frames = connection().opening(old)[2:]
    assert [(f["type"].rsplit(".", 1)[1], f["item"]["id"], f.get("previous_item_id")) for f in frames] == [
        ("added", "a", None), ("done", "a", None), ("added", "b", "a"), ("done", "b", "a"),
    ]  # fmt: skip


def test_what_a_resumed_conversation_added_to_the_memory_stands_where_it_did():
    added = talk.MemoryChanged("resp_1", ("I like tea",))
    old = [Message("a", "user", (TextPart("hi"),)), added, Message("b", "assistant", (TextPart("ho"),))]
    frames = connection("memory").opening(old)[2:]
    assert [frame.get("added") or frame["item"]["id"] for frame in frames] == ["a", "a", ["I like tea"], "b", "b"]
    assert frames[-1]["previous_item_id"] == "a" and "assistant.remembered" not in types(connection().opening(old))


def test_spoken_reply_keeps_the_order_and_validates_against_the_sdk():
    protocol = connection()
    frames = protocol.opening() + play(protocol, spoken_reply(np.zeros(2400, np.float32)))
    assert types(frames)[2:] == SPOKEN_ORDER
    assert len({frame["event_id"] for frame in frames}) == len(frames)
    for frame in frames:
        UNION.validate_python(frame)
    done = frames[-1]["response"]
    assert done["metadata"] == {"client_event_id": "x"}
    assert done["usage"]["total_tokens"] == 13 and done["usage"]["input_token_details"]["cached_tokens"] == 2
    assert done["output"][0]["content"] == [{"type": "output_audio", "transcript": "Hello."}]


def test_every_event_of_a_talk_has_a_writer():
    special = {talk.SettingsUpdated, talk.Error, talk.ResponseCreated, talk.ResponseDone, talk.AudioDelta}
    special.add(talk.ToolsListed)
    assert set(talk.Event.__args__) == special | set(WRITERS) | set(EXTENSION_WRITERS)


def test_nothing_of_a_reply_after_its_done_or_before_its_created():
    protocol = connection()
    events = spoken_reply(np.ones(2400, np.float32))
    assert play(protocol, events[5:6]) == []
    play(protocol, events)
    assert play(protocol, [events[5], events[6], events[11]]) == []


@pytest.mark.parametrize("wanted", ["audio/pcm", "audio/pcmu", "audio/pcma"])
def test_output_formats(wanted):
    protocol = connection()
    step = send(
        protocol,
        type="session.update",
        session={"type": "realtime", "audio": {"output": {"format": {"type": wanted}}}},
    )
    protocol.emit(talk.SettingsUpdated(step.commands[0].settings))
    tone = 0.5 * np.sin(np.arange(24000) * 2 * np.pi * 440 / 24000).astype(np.float32)
    frames = play(protocol, spoken_reply(tone))
    deltas = [base64.b64decode(f["delta"]) for f in frames if f["type"] == "response.output_audio.delta"]
    total = sum(map(len, deltas))
    assert max(map(len, deltas)) <= 4800
    assert total == (48000 if wanted == "audio/pcm" else 8000)
    assert frames[0]["response"]["audio"]["output"]["format"]["type"] == wanted


def test_pcm_at_another_stated_rate_is_used_and_echoed():
    protocol = connection()
    form = {"type": "audio/pcm", "rate": 16000}
    step = send(
        protocol, type="session.update", session={"audio": {"input": {"format": form}, "output": {"format": form}}}
    )
    (updated,) = protocol.emit(talk.SettingsUpdated(step.commands[0].settings))
    assert updated["session"]["audio"]["input"]["format"] == form
    step = send(protocol, type="input_audio_buffer.append", audio=base64.b64encode(bytes(640)).decode())
    assert step.commands[0].rate == 16000 and len(step.commands[0].pcm) == 320
    frames = play(protocol, spoken_reply(np.zeros(24000, np.float32)))
    assert sum(len(base64.b64decode(f.get("delta", ""))) for f in frames if "audio.delta" in f["type"]) == 32000


def test_odd_bytes_wait_for_the_next_append():
    protocol = connection()
    sound = np.arange(-50, 50, dtype="<i2").tobytes()
    heard = []
    for part in (sound[:33], sound[33:34], sound[34:101], sound[101:]):
        step = send(protocol, type="input_audio_buffer.append", audio=base64.b64encode(part).decode())
        assert step.replies == ()
        heard += [command.pcm for command in step.commands]
    assert np.array_equal(np.round(np.concatenate(heard) * 32768), np.arange(-50, 50))


def test_long_append_comes_in_pieces_and_too_long_is_refused():
    protocol = connection()
    audio = base64.b64encode(bytes(2 * 60_000)).decode()
    step = send(protocol, type="input_audio_buffer.append", audio=audio)
    assert [len(command.pcm) for command in step.commands] == [24000, 24000, 12000]
    step = send(protocol, type="input_audio_buffer.append", audio="A" * (15 * 1024 * 1024 + 4), event_id="big")
    assert step.commands == () and step.replies[0]["error"]["code"] == "invalid_value"
    assert step.replies[0]["error"]["event_id"] == "big"


def update(protocol, **session):
    step = send(protocol, type="session.update", event_id="u1", session=session)
    if step.replies:
        return step.replies[0]
    (frame,) = protocol.emit(talk.SettingsUpdated(step.commands[0].settings))
    return frame


def test_update_merges_absent_keeps_null_and_empty_clear():
    protocol = connection()
    tool = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}
    update(protocol, type="realtime", instructions="A", tools=[tool], max_output_tokens=50)
    session = update(protocol, audio={"output": {"speed": 1.25}})["session"]
    assert session["instructions"] == "A" and session["tools"] == [tool] and session["max_output_tokens"] == 50
    assert session["audio"]["output"]["speed"] == 1.25
    session = update(
        protocol, instructions="", tools=[], max_output_tokens="inf", audio={"input": {"turn_detection": None}}
    )["session"]
    assert session["instructions"] == "" and session["tools"] == [] and session["max_output_tokens"] == "inf"
    assert session["audio"]["input"]["turn_detection"] is None
    assert update(protocol, instructions=None)["session"]["instructions"] == "Be kind."


def test_turn_detection_keeps_what_an_update_does_not_name():
    protocol = connection()
    vad = {"type": "server_vad", "silence_duration_ms": 300, "interrupt_response": False}
    got = update(protocol, audio={"input": {"turn_detection": vad}})["session"]["audio"]["input"]["turn_detection"]
    assert got["silence_duration_ms"] == 300 and got["interrupt_response"] is False and got["create_response"] is True
    vad = {"type": "server_vad", "threshold": 0.7, "idle_timeout_ms": 6000}
    got = update(protocol, audio={"input": {"turn_detection": vad}})["session"]["audio"]["input"]["turn_detection"]
    assert got["silence_duration_ms"] == 300 and got["threshold"] == 0.7 and got["idle_timeout_ms"] == 6000
    got = update(protocol, audio={"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "high"}}})
    got = got["session"]["audio"]["input"]["turn_detection"]
    assert got == {"type": "semantic_vad", "eagerness": "high", "create_response": True, "interrupt_response": True}


def test_flat_fields_of_the_older_shape():
    protocol = connection()
    session = update(
        protocol,
        modalities=["text", "audio"], voice="bo", input_audio_format="g711_ulaw", output_audio_format="pcm16",
        input_audio_transcription={"model": "whisper-1", "extra": 1}, max_response_output_tokens=7, temperature=0.8,
        turn_detection=None,
    )["session"]  # fmt: skip
    assert session["output_modalities"] == ["audio"] and session["audio"]["output"]["voice"] == "bo"
    assert session["audio"]["input"]["format"] == {"type": "audio/pcmu"}
    assert session["audio"]["input"]["transcription"] == {"model": "whisper-1"}
    assert session["audio"]["input"]["turn_detection"] is None and session["max_output_tokens"] == 7


def test_names_of_the_hosted_service_fall_back_to_ours():
    session = update(connection(), model="gpt-realtime", audio={"output": {"voice": "marin"}}, whatever=1)["session"]
    assert session["audio"]["output"]["voice"] == "ada" and session["model"] == "tiny"


def test_update_refused_by_the_talk_changes_nothing():
    protocol = connection()
    step = send(
        protocol,
        type="session.update",
        event_id="bad",
        session={"instructions": "B", "audio": {"input": {"format": {"type": "audio/pcmu"}}}},
    )
    (error,) = protocol.emit(talk.Error("invalid_value", "no", cause=step.commands[0].cause))
    assert error["error"]["event_id"] == "bad"
    session = update(protocol, audio={"output": {"speed": 1.1}})["session"]
    assert session["instructions"] == "Be kind." and session["audio"]["input"]["format"]["type"] == "audio/pcm"


@pytest.mark.parametrize(
    ("session", "param"),
    [
        ({"audio": {"output": {"speed": 2}}}, "session.audio.output.speed"),
        ({"audio": {"input": {"turn_detection": {"type": "psychic"}}}}, "session.audio.input.turn_detection.type"),
        ({"audio": {"input": {"format": {"type": "audio/mp3"}}}}, "session.audio.input.format.type"),
        ({"audio": {"input": {"format": {"type": "audio/pcm", "rate": 12345}}}}, "session.audio.input.format.rate"),
        ({"output_modalities": ["audio", "text"]}, "session.output_modalities"),
        ({"tools": [{"type": "mcp", "server_label": "x"}]}, "session.tools[0].server_label"),
        ({"tools": [{"name": "a"}, {"name": "a"}]}, "session.tools"),
        ({"tools": {}}, "session.tools"),
        ({"tools": [{"name": "a", "parameters": {"required": "x"}}]}, "session.tools[0].parameters.required"),
        ({"tools": [{"name": "a", "parameters": {"required": [["x"]]}}]}, "session.tools[0].parameters.required"),
        ({"instructions": 5}, "session.instructions"),
        ({"max_output_tokens": 0}, "session.max_output_tokens"),
        ({"tool_choice": "maybe"}, "session.tool_choice"),
    ],
)
def test_wrong_updates_name_the_field_and_change_nothing(session, param):
    protocol = connection()
    frame = update(protocol, **session)
    assert frame["error"]["param"] == param and frame["error"]["event_id"] == "u1"
    assert update(protocol)["session"] == protocol.opening()[0]["session"]


BAD_FRAMES = {
    "broken JSON": '{"type": "response.crea',
    "no object": "[1, 2]",
    "a string": '"hello"',
    "empty": "",
    "no type": "{}",
    "type is null": '{"type": null}',
    "type is no string": '{"type": 7}',
    "unknown type": '{"type": "response.dance"}',
    "NaN": '{"type": "conversation.item.truncate", "item_id": "a", "content_index": 0, "audio_end_ms": NaN}',
    "infinite": '{"type": "conversation.item.truncate", "item_id": "a", "content_index": 0, "audio_end_ms": 1e999}',
    "huge integer": '{"type": "session.update", "session": {"max_output_tokens": ' + "9" * 5000 + "}}",
    "bad base64": '{"type": "input_audio_buffer.append", "audio": "@@@"}',
    "no audio": '{"type": "input_audio_buffer.append"}',
    "deep": '{"type": "session.update", "session": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "rather deep": '{"type": "session.update", "session": {"tools": ' + "[" * 90 + "]" * 90 + "}}",
    "many parts": '{"type": "session.update", "x": [' + "0," * 200_000 + "0]}",
    "half a surrogate": '{"type": "session.update", "session": {"instructions": "\\ud83d"}}',
    "session is no object": '{"type": "session.update", "session": 3}',
    "item without type": '{"type": "conversation.item.create", "item": {}}',
    "item of unknown type": '{"type": "conversation.item.create", "item": {"type": "poem"}}',
    "role missing": '{"type": "conversation.item.create", "item": {"type": "message", "content": []}}',
    "image of the assistant": '{"type": "conversation.item.create", "item": {"type": "message", "role": "assistant", '
    '"content": [{"type": "input_image", "image_url": "data:"}]}}',
    "audio of the assistant": '{"type": "conversation.item.create", "item": {"type": "message", "role": "assistant", '
    '"content": [{"type": "input_audio", "audio": "AAAA"}]}}',
    "too much metadata": json.dumps(
        {"type": "response.create", "response": {"metadata": {str(i): "" for i in range(17)}}}
    ),
    "truncate without position": '{"type": "conversation.item.truncate", "item_id": "a", "content_index": 0}',
    "large text": json.dumps({"type": "session.update", "session": {"instructions": "ü" * 100_000}}),
}


@pytest.mark.parametrize("frame", BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
def test_a_bad_frame_is_one_error_and_the_connection_goes_on(frame):
    protocol = connection()
    step = protocol.receive(frame)
    assert step.commands == () and types(step.replies) == ["error"]
    error = step.replies[0]["error"]
    assert error["code"] in {"invalid_event", "invalid_value", "invalid_type", "missing_required_parameter"}
    UNION.validate_python(step.replies[0])
    assert len(send(protocol, type="response.create").commands) == 1


def test_errors_repeat_the_clients_event_id():
    step = send(connection(), type="input_audio_buffer.append", event_id="mine", audio=5)
    assert step.replies[0]["error"]["event_id"] == "mine"
    protocol = connection()
    step = send(protocol, type="conversation.item.retrieve", event_id="rci_1", item_id="nope")
    (frame,) = protocol.emit(
        talk.Error("item_retrieve_invalid_item_id", "no such item", "item_id", step.commands[0].cause)
    )
    assert frame["error"] == {
        "type": "invalid_request_error", "code": "item_retrieve_invalid_item_id", "message": "no such item",
        "param": "item_id", "event_id": "rci_1",
    }  # fmt: skip


def test_one_event_id_used_twice_still_finds_its_error():
    protocol = connection()
    first = send(protocol, type="response.cancel", event_id="same")
    second = send(protocol, type="response.cancel", event_id="same")
    assert first.commands[0].cause != second.commands[0].cause
    (frame,) = protocol.emit(talk.Error("response_cancel_not_active", "no", cause=first.commands[0].cause))
    assert frame["error"]["event_id"] == "same"


def test_response_create_carries_all_it_may_override():
    step = send(
        connection(),
        type="response.create",
        response={
            "conversation": "none", "instructions": "x", "output_modalities": ["text"], "metadata": {"topic": "t"},
            "tool_choice": {"type": "function", "name": "f"}, "max_output_tokens": 12,
            "audio": {"output": {"voice": "bo"}},
            "tools": [{"type": "function", "name": "f", "parameters": {}}],
            "input": [
                {"type": "item_reference", "id": "item_9"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            ],
        },
    )  # fmt: skip
    params = step.commands[0].params
    assert params.conversation == "none" and params.modality == "text" and params.voice == "bo"
    assert params.tool_choice == "f" and params.tools[0].name == "f" and params.max_output_tokens == 12
    assert params.input[0] == "item_9" and params.input[1].content == (TextPart("hi"),)
    assert params.metadata == {"topic": "t"} and params.instructions == "x"


def test_client_items_keep_their_ids_and_history_by_other_names():
    protocol = connection()
    step = send(
        protocol, type="conversation.item.create", previous_item_id="root",
        item={"id": "msg_7", "type": "message", "role": "assistant", "content": [{"type": "input_text", "text": "hi"}]},
    )  # fmt: skip
    command = step.commands[0]
    assert command.item.id == "msg_7" and command.after == "root"
    (frame,) = protocol.emit(talk.ItemAdded(command.item, None))
    assert frame["item"]["content"] == [{"type": "output_text", "text": "hi"}]
    assert "previous_item_id" not in frame


@pytest.mark.parametrize(
    ("sent", "taken"),
    [(1840, 1840), (1840.6, 1840), (-5, 0), (1e300, 1_000_000_000), (10**400, 1_000_000_000)],
)
def test_truncate_positions_are_never_refused(sent, taken):
    step = send(connection(), type="conversation.item.truncate", item_id="a", content_index=0, audio_end_ms=sent)
    assert step.commands[0].audio_end_ms == taken


def test_absent_not_null():
    """null in items and parts fails strict schemas; what a reply has not yet is null by contract."""
    protocol = connection()
    frames = protocol.opening() + play(protocol, spoken_reply(np.zeros(100, np.float32)))
    frames += protocol.emit(talk.ItemAdded(Message("u", "user", (AudioPart(None),)), None))
    allowed = {
        "status_details",
        "usage",
        "metadata",
        "conversation_id",
        "transcription",
        "noise_reduction",
        "turn_detection",
    }

    def nulls(value, name=""):
        if isinstance(value, dict):
            for key, below in value.items():
                yield from nulls(below, key)
        elif isinstance(value, list):
            for below in value:
                yield from nulls(below, name)
        elif value is None:
            yield name

    assert set(nulls(frames)) <= allowed


def test_transcripts_only_when_asked_for_and_with_usage():
    protocol = connection()
    completed = talk.TranscriptCompleted("u", 0, "hello", 1.5)
    assert protocol.emit(completed) == [] and protocol.emit(talk.TranscriptDelta("u", 0, "hel")) == []
    update(protocol, audio={"input": {"transcription": {"model": "whisper-1"}}})
    (frame,) = protocol.emit(completed)
    assert frame["usage"] == {"type": "duration", "seconds": 1.5}
    UNION.validate_python(frame)


def test_frames_stay_small():
    protocol = connection()
    long = Message("a", "assistant", (AudioPart("x" * 1000, np.zeros(24000 * 60, np.float32)),))
    short = Message("b", "assistant", (AudioPart("x", np.zeros(24000, np.float32)),))
    (big,) = protocol.emit(talk.ItemRetrieved(long))
    (small,) = protocol.emit(talk.ItemRetrieved(short))
    assert "audio" not in big["item"]["content"][0] and small["item"]["content"][0]["audio"]
    frames = play(protocol, spoken_reply(np.zeros(24000 * 30, np.float32)))
    assert max(len(json.dumps(frame)) for frame in [big, small, *frames]) <= 256 * 1024
    update(protocol, instructions="x" * 100_000)
    assert update(protocol, tools=[{"name": "f", "description": "y" * 120_000}])["error"]["code"] == "invalid_value"


# ------------------------------------------------------------------------------------------ extensions


def test_extension_names():
    assert read_extensions(["duck", "clock"]) == ({"duck", "clock"}, ())
    assert read_extensions(["all"]) == (set(EXTENSION_NAMES), ())
    assert read_extensions(["", "magic"]) == (frozenset(), ("magic",))
    frames = connection().opening(problems=[PeerError("invalid_value", "no magic", "extensions")])
    assert frames[-1]["error"]["param"] == "extensions"


EXTENSION_EVENTS = [
    talk.TranscriptPartial("u", "hel"),
    talk.Duck("resp_1", "item_a"),
    talk.Resume("resp_1", "item_a"),
    talk.StopPlayback("resp_1", "item_a"),
    talk.Nod("u", "Mm-hm."),
    talk.StateChanged("rollback", "llm", 40, 1.5),
    talk.FrameShown("u", True),
    talk.SightChanged(False),
    talk.TimelineReady(talk.Timeline(1, "resp_1", 2.0, (talk.TimelinePart("hearing", 0.0, 4.0),), {"ttfa_ms": 9.0})),
    talk.ToolUsed("resp_1", "time", "{}", "noon", 2.0),
    talk.MemoryChanged("resp_1", ("I like tea",)),
    talk.ServersStarting(("files",)),
    talk.WordsForgotten(("u",), ("resp_1",), "[forgotten]"),
    talk.LanguageTold("de", ("The voice here speaks English only.",)),
    talk.ToolBegun("resp_1", "write", "files", "{}"),
    talk.ToolAsked("resp_1", "mcpr_1", "write", "files", "{}"),
    talk.PersonaSwitched("bo", "bo", 3.0),
    talk.WakeChanged("called", "Bo"),
]


@pytest.mark.parametrize("event", EXTENSION_EVENTS, ids=lambda e: type(e).__name__)
def test_extension_events_only_for_those_who_asked(event):
    extension, kind, _ = EXTENSION_WRITERS[type(event)]
    assert connection(*set(EXTENSION_NAMES) - {extension}).emit(event) == []
    assert types(connection(extension).emit(event)) == [kind]


def test_extension_events_are_the_protocols_own_list():
    assert {type(event) for event in EXTENSION_EVENTS} == set(talk.EXTENSIONS) == set(EXTENSION_WRITERS)


def test_the_page_of_the_protocol_lists_the_kinds_of_memory_that_are_sent():
    row = next(line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `assistant.memory`"))
    kinds = get_args(get_type_hints(talk.StateChanged)["what"])
    assert tuple(re.findall(r"`(\w+)`", row.partition("what (")[2].partition(")")[0])) == kinds


def test_client_extensions():
    protocol = connection("all", *EXTENSION_NAMES)
    assert send(protocol, type="assistant.heard", item_id="a", audio_ms=10.7).commands[0].played_ms == 10
    assert send(protocol, type="assistant.undo").commands[0].turns == 1
    assert send(protocol, type="assistant.rewind", item_id="a", words=3).commands[0].words == 3
    assert send(protocol, type="assistant.persona", name="bo").commands[0].name == "bo"
    assert send(protocol, type="assistant.capsules").wanted == "capsules"
    pong = protocol.receive(json.dumps({"type": "assistant.ping", "client_ms": 3}), now_ms=77.0).replies[0]
    assert pong["client_ms"] == 3 and pong["server_ms"] == 77.0
    for kind in ("heard", "undo", "rewind", "persona", "capsules", "personas", "ping", "wake", "nonsense"):
        step = send(connection(), type=f"assistant.{kind}", item_id="a", audio_ms=1, name="x", client_ms=1)
        assert types(step.replies) == ["error"]


def test_a_client_asks_to_be_called_by_name_and_keeps_its_other_settings():
    protocol = connection("wake")
    assert not protocol.settings.wake
    update(protocol, instructions="mine")
    command = send(protocol, type="assistant.wake", on=True).commands[0]
    assert command.settings.wake and command.settings.instructions == "mine"
    session = protocol.emit(talk.SettingsUpdated(command.settings))[0]["session"]
    assert session["assistant"]["wake"] and session["instructions"] == "mine"
    assert types(send(protocol, type="assistant.wake").replies) == ["error"]


def test_state_follows_the_talk():
    protocol = connection("state")
    states = [f["state"] for f in protocol.opening() if f["type"] == "assistant.state"]
    script = [talk.SpeechStarted("u", 0), talk.SpeechStopped("u", 900), *spoken_reply(np.zeros(10, np.float32))]
    states += [f["state"] for f in play(protocol, script) if f["type"] == "assistant.state"]
    assert states == ["idle", "listening", "idle", "thinking", "speaking", "idle"]


def test_a_switched_persona_is_echoed_from_then_on():
    protocol = connection()
    update(protocol, instructions="mine")
    assert protocol.emit(talk.PersonaSwitched("bo", "bo", 3.0)) == []
    session = update(protocol)["session"]
    assert session["instructions"] == "Be brief." and session["audio"]["output"]["voice"] == "bo"


def test_settings_of_the_talk_follow_the_extensions():
    assert connection("duck").settings.duck and not connection().settings.duck
    assert connection().settings.built_in_tools
    assert connection().settings.turn_detection == SemanticVad()


def test_transcription_session_never_answers():
    session = update(connection(), type="transcription", audio={"input": {"turn_detection": {"type": "server_vad"}}})[
        "session"
    ]
    assert session["type"] == "transcription"
    assert session["audio"]["input"]["turn_detection"]["create_response"] is False
    assert session["audio"]["input"]["transcription"] == {"model": "local"}
