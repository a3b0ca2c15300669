"""The replies of a talk as one client sees them: those begun and not done, the format of each one's sound, and the
resulting `assistant.state`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from assistant import events as talk
from assistant.events import Event
from assistant.realtime.settings import AudioFormat
from assistant.realtime.sound import SoundOut

State = Literal["idle", "listening", "thinking", "speaking"]


@dataclass(slots=True)
class _OpenReply:
    """`outlets`: by item and content part."""

    form: AudioFormat
    in_conversation: bool
    outlets: dict[tuple[str, int], SoundOut] = field(default_factory=dict)


class WireReplies:
    """`form`: the sound format of a talk that has not set another."""

    def __init__(self, form: AudioFormat) -> None:
        self._open: dict[str, _OpenReply] = {}
        self._asked: dict[str, AudioFormat] = {}
        self._answers_form = form
        self._user_speaks = False
        self._reply_state: State = "idle"

    def __contains__(self, response_id: str) -> bool:
        return response_id in self._open

    def asked_for(self, cause: str, form: AudioFormat) -> None:
        """Note that the latest `response.create` wants this format. Only one: the talk refuses a second reply at a
        time."""
        self._asked = {cause: form}

    def refused(self, cause: str) -> None:
        self._asked.pop(cause, None)

    def begun(self, response: talk.Response, form: AudioFormat) -> None:
        """`form`: the format if the request asked for none."""
        if self._asked:
            form = self._asked.popitem()[1]
        if response.answer is not None:  # one request made them all
            form = self._answers_form = self._answers_form if response.answer else form
        self._open[response.id] = _OpenReply(form, response.in_conversation)

    def finished(self, response_id: str) -> None:
        del self._open[response_id]

    def form(self, response_id: str) -> AudioFormat:
        return self._open[response_id].form

    def sound(self, event: talk.AudioDelta | talk.AudioDone) -> SoundOut:
        """The outlet on which the sound of this part of a reply continues."""
        reply = self._open[event.response_id]
        return reply.outlets.setdefault((event.item_id, event.content_index), SoundOut(reply.form))

    # ------------------------------------------------------------------------------------ state

    def follow(self, event: Event) -> None:
        """Apply the event to `assistant.state`; side branches do not change it."""
        match event:
            case talk.SpeechStarted():
                self._user_speaks = True
            case talk.SpeechStopped() | talk.AudioCommitted() | talk.AudioCleared():
                self._user_speaks = False
            case talk.ResponseCreated() if event.response.in_conversation:
                self._reply_state = "thinking"
            case talk.AudioDelta() | talk.TextDelta() if self._is_main(event.response_id):
                self._reply_state = "speaking"
            case talk.ResponseDone() if not any(reply.in_conversation for reply in self._open.values()):
                self._reply_state = "idle"

    def _is_main(self, response_id: str) -> bool:
        reply = self._open.get(response_id)
        return reply is not None and reply.in_conversation

    @property
    def state(self) -> State:
        return "listening" if self._user_speaks else self._reply_state
