"""What a talk asks of its models, said once: local engines, remote servers and test fakes all keep to it.

A talk names its state by a string; a side branch is a talk of its own. Neither contract knows tokens or codec
frames: a talk says which words and which samples are to count as said, and the engine finds the way from the
state it has to the state that is wanted. That is how an undo, a barge-in and a rewind are one operation.

llm    prompts, pieces of a reply, `Thinker`
tts    sound and the marks in it, `Speaker`
asr    blocks, transcripts, `SpeechDetector`, `Transcriber`, `Ears`
work   what an engine's work cost and did
"""

from assistant.contracts.asr import Block, Ears, SpeechDetector, Transcriber, Transcript
from assistant.contracts.llm import (
    BadCall,
    CallPiece,
    Line,
    Prompt,
    PromptReady,
    ReplyEnd,
    TextPiece,
    Thinker,
    ThinkOptions,
    ThinkPiece,
    ToolCall,
)
from assistant.contracts.tts import Mark, Sound, Speaker, Uttered
from assistant.contracts.work import Cost, Settled

__all__ = [
    "BadCall", "Block", "CallPiece", "Cost", "Ears", "Line", "Mark", "Prompt", "PromptReady", "ReplyEnd", "Settled",
    "Sound", "Speaker", "SpeechDetector", "TextPiece", "ThinkOptions", "ThinkPiece", "Thinker", "ToolCall",
    "Transcriber", "Transcript", "Uttered",
]  # fmt: skip
