"""Pictures on the wire: every shape is read, wrong ones have a code, none is sent back to who did not ask."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest

from assistant import events as talk
from assistant.base.picture import Picture
from assistant.events import Message, PicturePart, Response, TextPart, Usage
from assistant.realtime.protocol import Protocol, WireSession
from assistant.realtime.settings import Character, Facts

FACTS = Facts("tiny", lambda: ("ada",), {"ada": Character("Be kind.", "ada")}.get)
ONE = Picture.of(np.full((48, 64, 3), 9, np.uint8))
TEXT = {"type": "input_text", "text": "what is this"}
IMAGE = {"type": "input_image", "image_url": ONE.data_url}


def connection(*extensions: str) -> Protocol:
    return Protocol(WireSession("sess_1", "conv_1"), FACTS, extensions=frozenset(extensions))


def create(*content: dict, role: str = "user", **more: object):
    item = {"type": "message", "role": role, "content": list(content), **more}
    return connection().receive(json.dumps({"type": "conversation.item.create", "event_id": "mine", "item": item}))


def read(*content: dict) -> tuple:
    step = create(*content)
    assert step.replies == ()
    [command] = step.commands
    assert command.unread is None
    return command.item.content


@pytest.mark.parametrize("part", [
    IMAGE,
    {"type": "input_image", "image_url": {"url": ONE.data_url}},
    {"type": "image_url", "image_url": {"url": ONE.data_url, "detail": "auto"}},
    {"type": "image_url", "image_url": ONE.data_url},
    {**IMAGE, "file_id": None, "detail": None},
], ids=["session", "session, object", "chat", "chat, string", "nulls"])  # fmt: skip
def test_every_shape_is_read(part):
    assert read(TEXT, part) == (TextPart("what is this"), PicturePart(ONE))
    assert read(part) == (PicturePart(ONE),)


@pytest.mark.parametrize(("given", "taken"), [
    ("low", "low"), ("high", "high"), ("original", "original"), ("ultra", "auto"), (7, "auto"),
])  # fmt: skip
def test_detail(given, taken):
    assert read({**IMAGE, "detail": given})[0].picture.detail == taken
    assert read({"type": "image_url", "image_url": {"url": ONE.data_url, "detail": given}})[0].picture.detail == taken


def test_what_agents_livekit_and_pipecat_send():
    """Agents SDK in Python: words and picture in one item. TypeScript: a picture alone. LiveKit: a frame, its event not
    awaited. Pipecat: a frame with `detail`."""
    data = base64.b64encode(ONE.encoded).decode()
    both = [{"type": "input_text", "text": "look"}, {**IMAGE, "detail": "high"}]
    assert [type(part) for part in read(*both)] == [TextPart, PicturePart]
    for event in (
        {"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [IMAGE]}},
        {"type": "conversation.item.create", "event_id": "video_0123456789ab", "item": {
            "id": "item_12", "type": "message", "role": "user", "object": "realtime.item",
            "content": [{"type": "input_image", "image_url": f"data:image/jpeg;base64,{data}"}]}},
        {"type": "conversation.item.create", "event_id": "e", "item": {
            "id": "i", "type": "message", "role": "user", "status": None,
            "content": [{"type": "input_image", "image_url": f"data:image/jpeg;base64,{data}", "detail": "auto"}]}},
    ):  # fmt: skip
        step = connection().receive(json.dumps(event))
        assert step.replies == () and step.commands[0].item.content == (PicturePart(ONE),)


WRONG = {
    "an address": ({"image_url": "https://example.com/a.png"}, "invalid_image_url", "image_url"),
    "an address in an object": ({"image_url": {"url": "http://10.0.0.1/a"}}, "invalid_image_url", "image_url.url"),
    "a file of theirs": ({"file_id": "file-1"}, "image_file_not_found", "file_id"),
    "nothing": ({}, "missing_required_parameter", "image_url"),
    "a number": ({"image_url": 7}, "invalid_type", "image_url"),
    "no base64": ({"image_url": "data:image/png;base64,@"}, "invalid_base64_image", "image_url"),
    "no bytes": ({"image_url": "data:image/png;base64,"}, "empty_image_file", "image_url"),
    "no picture": ({"image_url": "data:image/png;base64,aGVsbG8="}, "unsupported_image_media_type", "image_url"),
    "too long": ({"image_url": "data:image/png;base64," + "A" * (30 << 20)}, "image_file_too_large", "image_url"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_picture_with_words_is_one_error_that_names_it(name):
    fields, code, param = WRONG[name]
    step = create(TEXT, {"type": "input_image", **fields})
    assert step.commands == ()
    [frame] = step.replies
    error = frame["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", code) and error["event_id"] == "mine"
    assert error["param"] == f"item.content[1].{param}" and len(error["message"]) < 300


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_picture_alone_is_acknowledged_and_counted(name):
    """Pipecat ends the call at an error, and sends a frame a second."""
    fields, code, _ = WRONG[name]
    step = create({"type": "input_image", **fields}, id="frame_1")
    assert step.replies == ()
    assert step.commands[0].item == Message("frame_1", "user") and step.commands[0].unread == code


def test_too_many_are_refused():
    assert create(TEXT, *[IMAGE] * 4).replies == ()
    assert create(TEXT, *[IMAGE] * 5).replies[0]["error"]["code"] == "invalid_value"
    given = [{"type": "message", "role": "user", "content": [TEXT, *[IMAGE] * 4]}] * 5
    step = connection().receive(json.dumps({"type": "response.create", "response": {"input": given}}))
    assert step.replies[0]["error"]["param"] == "response.input"
    assert connection().receive(json.dumps({"type": "response.create", "response": {"input": given[:4]}})).commands


def test_other_roles_show_nothing():
    for role in ("assistant", "system"):
        assert create(IMAGE, role=role).replies[0]["error"]["param"] == "item.content[0].type"


def test_a_large_picture_is_no_large_event_and_a_large_text_still_is():
    noise = Picture.of(np.random.default_rng(1).integers(0, 255, (700, 700, 3)).astype(np.uint8))
    assert len(noise.data_url) > 1_000_000 and create(TEXT, {**IMAGE, "image_url": noise.data_url}).commands
    smuggled = {"type": "input_text", "text": noise.data_url}
    assert create(smuggled).replies[0]["error"]["code"] == "invalid_event"


ITEM = Message("u", "user", (PicturePart(ONE), TextPart("what is this")))
EVENTS = [talk.ItemAdded(ITEM, None), talk.ItemDone(ITEM, None), talk.ItemRetrieved(ITEM)]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_pictures_are_not_sent_back(event):
    [frame] = connection().emit(event)
    assert frame["item"]["content"] == [TEXT] and "pictures" not in frame["item"]
    [frame] = connection().emit(replace(event, item=Message("p", "user", (PicturePart(ONE),))))
    assert frame["item"]["content"] == []


def test_who_asks_for_the_extension_is_told_of_them_and_may_fetch_them():
    protocol = connection("pictures")
    told = {"digest": ONE.digest, "width": 64, "height": 48, "frame": False}
    for event in EVENTS[:2]:
        [frame] = protocol.emit(event)
        assert frame["item"]["pictures"] == [told] and frame["item"]["content"] == [TEXT]
    [frame] = protocol.emit(EVENTS[2])
    assert frame["item"]["pictures"] == [told | {"image_url": ONE.data_url}]
    opening = connection("pictures").opening([ITEM])
    assert [frame["item"]["pictures"] for frame in opening if "item" in frame] == [[told], [told]]


def test_usage_tells_pictures_apart():
    usage = Usage(input_text_tokens=10, input_image_tokens=66, cached_tokens=70, cached_image_tokens=66)
    protocol = connection()
    response = Response("resp_1", "in_progress", "text")
    protocol.emit(talk.ResponseCreated(response))
    done = protocol.emit(talk.ResponseDone(Response("resp_1", "completed", "text", usage=usage)))[0]
    told = done["response"]["usage"]
    assert told["input_tokens"] == 76 and told["input_token_details"] == {
        "text_tokens": 10, "audio_tokens": 0, "image_tokens": 66, "cached_tokens": 70,
        "cached_tokens_details": {"text_tokens": 4, "audio_tokens": 0, "image_tokens": 66},
    }  # fmt: skip
