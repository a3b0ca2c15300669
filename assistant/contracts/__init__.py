"""The contracts between a talk and its models. Local engines, remote servers and test fakes all keep to them.

A talk names its state by a string; a side branch is a talk of its own. The contracts do not mention tokens or codec
frames: a talk says which words and which samples should count as said, and the engine finds the way from its current
state to that one. So an undo, an interruption and a rewind are one operation.

llm     prompts, pieces of a reply, `LLM`; one that keeps the state of talks, `StatefulLLM`
tts     sound and the marks in it, `TTS`, `StatefulTTS`; voices that are kept, `VoiceKeeper`
asr     blocks of sound, words, transcripts, `SpeechDetector`, `Transcriber`, `ASR`; a second opinion, `Rescorer`;
        phrases that call, `WakeWords`
keeper  for programs and hands: `CapsuleKeeper`, `ModelKeeper` (language models), `HouseholdKeeper` (timers, lists),
        `MemoryKeeper`
work    an engine's work, its cost and effects; states that are forked, taken back, parked and forgotten, `Stateful`
"""

from assistant.contracts.asr import (
    ASR,
    MOST_TERMS,
    AsrFacts,
    CalledName,
    HeardWord,
    NameSpotter,
    Partial,
    PlayedSound,
    Rescorer,
    SpeechBlock,
    SpeechDetector,
    Transcriber,
    Transcript,
    WakeWords,
)
from assistant.contracts.keeper import CapsuleKeeper, HouseholdKeeper, KeptCapsule, MemoryKeeper, ModelKeeper, Removed
from assistant.contracts.llm import (
    CANNOT_SEE,
    LLM,
    PICTURE,
    BadCall,
    CallPiece,
    Line,
    PlacedPicture,
    Prompt,
    PromptReady,
    ReplyEnd,
    ReplyOptions,
    ReplyPiece,
    StatefulLLM,
    TextPiece,
    ToolCall,
)
from assistant.contracts.tts import TTS, KeptVoice, Mark, SpeechChunk, StatefulTTS, Uttered, VoiceKeeper
from assistant.contracts.work import Cost, Stateful, Synced

__all__ = [
    "ASR", "CANNOT_SEE", "LLM", "MOST_TERMS", "PICTURE", "TTS", "AsrFacts", "BadCall", "CallPiece", "CalledName",
    "CapsuleKeeper", "Cost", "HeardWord", "HouseholdKeeper", "KeptCapsule", "KeptVoice", "Line", "Mark", "MemoryKeeper",
    "ModelKeeper", "NameSpotter", "Partial", "PlacedPicture", "PlayedSound", "Prompt", "PromptReady", "Removed",
    "ReplyEnd", "ReplyOptions", "ReplyPiece", "Rescorer", "SpeechBlock", "SpeechChunk", "SpeechDetector", "Stateful",
    "StatefulLLM", "StatefulTTS", "Synced", "TextPiece", "ToolCall", "Transcriber", "Transcript", "Uttered",
    "VoiceKeeper", "WakeWords",
]  # fmt: skip
