"""Every error this package raises."""


class TTSError(Exception):
    """Base of all errors of the package."""


class ConfigRefused(TTSError):
    """The configuration names something this engine does not implement."""


class CheckpointRefused(TTSError):
    """A tensor or token is missing, unknown, or of the wrong shape."""


class DelayError(TTSError):
    """Rows of codes that do not follow the delay pattern."""


class TextRefused(TTSError):
    """The text has nothing speakable, or is too long for one piece."""


class ReferenceRefused(TTSError):
    """A recording or codes that cannot become a voice or sound."""


class EngineMisuse(TTSError):
    """A call that is invalid here: an argument of the wrong kind, or one that does not fit the engine's state."""


class ContextFull(TTSError):
    """The talk no longer fits into the positions that the engine was given."""


class RetraceFailed(TTSError):
    """A session that had to be rebuilt came out differently; it does not belong to this model or this machine."""
