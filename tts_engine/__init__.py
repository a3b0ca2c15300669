"""The voice engine over static buffers: Higgs Audio v3 from its published checkpoint, and a small voice in `tiny/`."""

from tts_engine.engine import HiggsTTS, PieceFacts, Sound
from tts_engine.errors import (
    CheckpointRefused,
    ConfigRefused,
    ContextFull,
    DelayError,
    EngineMisuse,
    ReferenceRefused,
    TextRefused,
    TTSError,
)
from tts_engine.sampling import Sampling
from tts_engine.voices import Voice

__all__ = [
    "CheckpointRefused", "ConfigRefused", "ContextFull", "DelayError", "EngineMisuse", "HiggsTTS", "PieceFacts",
    "ReferenceRefused", "Sampling", "Sound", "TTSError", "TextRefused", "Voice",
]  # fmt: skip
