"""Errors of the assistant. `PeerError` is the other side's mistake: we answer with an event and the talk goes on."""

from __future__ import annotations


class AssistantError(Exception):
    """Base of everything this package raises on purpose."""


class PeerError(AssistantError):
    """A client asked for something that cannot be done. `code` and `param` are the protocol's names for it."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


class SettingError(AssistantError):
    """A setting is unknown, has the wrong type or is out of range; the message names where it came from."""


class TalksFull(AssistantError):
    """All places are taken; the message says how many there are."""


class UnknownTalk(AssistantError):
    """The talk to resume is not known here."""


class TalkElsewhere(AssistantError):
    """Another process has the talk open."""


class EngineFailed(AssistantError):
    """A model, local or remote, failed in the middle of its work; the talk goes on."""


class ContextExceeded(EngineFailed):
    """A message is longer than the model's whole context; the talk goes on."""


class ChannelClosed(AssistantError):
    """The channel is closed, so nothing more can be sent into it."""


class DeviceError(AssistantError):
    """No usable microphone or loudspeaker was found; the message says what was tried."""


class ToolError(AssistantError):
    """A tool cannot be declared or called this way."""
