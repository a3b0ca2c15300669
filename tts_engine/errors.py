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
    """Nothing speakable, or more text than one piece may hold."""


class ReferenceRefused(TTSError):
    """A recording, or codes, that cannot become a voice or sound."""


class EngineMisuse(TTSError):
    """A call that means nothing here: an argument of another kind, or none that fits the state the engine is in."""


class ContextFull(TTSError):
    """The talk no longer fits into the positions the engine was given."""


class RetraceFailed(TTSError):
    """A session that was to be made again came out otherwise; it is not this model's, or not this machine's."""
