"""Whatever order a talk's events come in, the wire's promises hold."""

import itertools
import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant import events as talk
from assistant.events import AudioPart, Message, Response
from assistant.realtime.events import EXTENSION_NAMES
from assistant.realtime.protocol import Protocol, WireSession
from assistant.realtime.settings import Facts

REPLIES = ("resp_1", "resp_2")


def of(reply: str) -> list[talk.Event]:
    """Everything that can be said of one reply."""
    place = (reply, f"item_{reply}", 0, 0)
    item = Message(f"item_{reply}", "assistant", (AudioPart("hi"),))
    response = Response(reply, "in_progress", "audio")
    return [
        talk.ResponseCreated(response),
        talk.OutputItemAdded(reply, 0, item),
        talk.PartAdded(*place, AudioPart("")),
        talk.AudioDelta(*place, 0, np.zeros(4800, np.float32)),
        talk.SpokenText(*place, "hi", 0.0),
        talk.AudioDone(*place),
        talk.OutputItemDone(reply, 0, item),
        talk.ResponseDone(response, talk.Timeline(1, reply, 0.0, ())),
    ]


ANY = st.sampled_from(
    [*of("resp_1"), *of("resp_2"), talk.SpeechStarted("u", 0), talk.SpeechStopped("u", 9), talk.AudioCleared(),
     talk.SettingsUpdated(talk.Settings()), talk.Error("x", "y", cause="c1"), talk.PersonaSwitched("bo", None, 1.0),
     talk.ItemDeleted("u"), talk.Duck("resp_1", "i")]
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(ANY, max_size=40), st.booleans())
def test_promises_hold_in_any_order(events, extended):
    extensions = frozenset(EXTENSION_NAMES) if extended else frozenset()
    protocol = Protocol(WireSession("sess_1", "conv_1"), Facts("local"), extensions=extensions)
    frames = [frame for event in events for frame in protocol.emit(event)]
    assert len({frame["event_id"] for frame in frames}) == len(frames)
    running: set[str] = set()
    states = [frame["state"] for frame in frames if frame["type"] == "assistant.state"]
    for frame in frames:
        json.dumps(frame, allow_nan=False)
        assert extended or not frame["type"].startswith("assistant.")
        if frame["type"] == "response.created":
            running.add(frame["response"]["id"])
        elif frame["type"] == "response.done":
            assert frame["response"]["id"] in running
            running.discard(frame["response"]["id"])
        elif frame["type"].startswith("response."):
            assert frame["response_id"] in running
    assert all(a != b for a, b in itertools.pairwise(states))
