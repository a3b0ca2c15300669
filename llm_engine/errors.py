"""Every error this package raises."""


class LLMError(Exception):
    """Base of all errors of the package."""


class ConfigError(LLMError):
    """A config.json describes something that this engine does not do, or not clearly enough."""


class CheckpointError(LLMError):
    """The weights do not fit the config, or are stored in a way that this engine does not read."""


class StateError(LLMError):
    """The call means nothing here: an argument of another kind, or none that fits position, capacity or history."""


class TextError(LLMError):
    """A tokenizer, chat template or message list that cannot be used."""


class Cancelled(LLMError):
    """The caller asked to stop. What was done up to then is kept, and the message says how much."""


class PictureError(LLMError):
    """Pixels that cannot be seen: of another type, or far longer than wide."""
