"""Every error this package raises."""


class LLMError(Exception):
    """Base of all errors of the package."""


class ConfigError(LLMError):
    """A config.json describes something unsupported, or is not clear enough."""


class CheckpointError(LLMError):
    """The weights do not fit the config, or are stored in a way that this engine cannot read."""


class StateError(LLMError):
    """The call is invalid here: an argument of the wrong kind, or one that does not fit position, capacity or
    history."""


class TextError(LLMError):
    """A tokenizer, chat template or message list that cannot be used."""


class Cancelled(LLMError):
    """The caller asked to stop. The work done until then is kept, and the message says how much."""


class PictureError(LLMError):
    """Unsupported pixels: of another type, or far longer than wide."""
