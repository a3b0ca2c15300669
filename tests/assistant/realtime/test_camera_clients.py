"""What LiveKit and Pipecat really send of a camera, made by their own packages; its shapes are held in test_pictures.

They pull in half a gigabyte, so they are not among what the tests install. In an environment with both:

    pip install livekit-agents 'pipecat-ai[openai]' pytest numpy pillow samplerate soundfile
    python -m pytest --noconftest -W ignore tests/assistant/realtime/test_camera_clients.py
"""

import base64
import json

import numpy as np
import pytest

from assistant.base.picture import Picture
from assistant.events import PicturePart
from assistant.realtime.protocol import Protocol, WireSession
from assistant.realtime.settings import Character, Facts

FACTS = Facts("tiny", ("ada",), {"ada": Character("Be kind.", "ada")}.get)


def frame_of(event: dict) -> Picture:
    """The one picture that the wire makes of a client's event, without an error."""
    step = Protocol(WireSession("sess_1", "conv_1"), FACTS).receive(json.dumps(event))
    assert step.replies == ()
    [command] = step.commands
    assert command.item.role == "user" and command.after is None and command.unread is None
    [part] = command.item.content
    assert isinstance(part, PicturePart) and part.frame is None
    return part.picture


def test_livekits_frames_are_read():
    pytest.importorskip("livekit.agents", reason="no livekit-agents here; pip install livekit-agents to un-skip")
    import livekit.agents.llm._realtime.openai as realtime
    from livekit import rtc
    from livekit.agents import llm
    from openai.types.realtime import ConversationItemCreateEvent

    frame = rtc.VideoFrame(64, 48, rtc.VideoBufferType.RGBA, bytes(64 * 48 * 4))
    message = llm.ChatMessage(role="user", content=[llm.ImageContent(image=frame)])
    item = realtime.livekit_item_to_openai_item(message)
    event = ConversationItemCreateEvent(type="conversation.item.create", item=item, event_id="video_1")
    picture = frame_of(event.model_dump(by_alias=True, exclude_unset=True, exclude_defaults=False))
    assert (picture.width, picture.height, picture.media_type) == (64, 48, "image/jpeg")


def test_pipecats_frames_are_read():
    pytest.importorskip("pipecat", reason="no pipecat here; pip install 'pipecat-ai[openai]' to un-skip")
    from pipecat.services.openai.realtime import events

    sent = Picture.of(np.zeros((48, 64, 3), np.uint8))
    url = f"data:image/png;base64,{base64.b64encode(sent.encoded).decode()}"
    part = events.ItemContent(type="input_image", image_url=url, detail="auto")
    item = events.ConversationItem(type="message", role="user", content=[part])
    assert frame_of(events.ConversationItemCreateEvent(item=item).model_dump(exclude_none=True)) == sent
