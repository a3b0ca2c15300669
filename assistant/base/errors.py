"""Errors of the assistant. `PeerError` is the other side's mistake: answered by an event, the talk goes on."""

from __future__ import annotations


class AssistantError(Exception):
    """Base of everything this package raises on purpose."""


class PeerError(AssistantError):
    """A client asked for what cannot be done. `code` and `param` are what the protocol calls them."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


class SettingError(AssistantError):
    """A setting is unknown, has the wrong type or is out of range; the message names where it came from."""


class TalksFull(AssistantError):
    """All places are taken; the message says how many there are."""


class UnknownTalk(AssistantError):
    """A talk was to be resumed that nobody remembers."""


class EngineFailed(AssistantError):
    """A model, local or remote, failed in the middle of its work; the talk lives on."""


class ContextExceeded(EngineFailed):
    """A message is longer than all that the model can hold; the talk lives on."""


class ChannelClosed(AssistantError):
    """Sent into a channel that takes nothing more."""


class DeviceError(AssistantError):
    """No microphone or loudspeaker that can be used; the message says what was tried."""


class ToolError(AssistantError):
    """A tool cannot be declared or called like this."""
