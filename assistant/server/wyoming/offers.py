"""The abilities of this assistant, in the protocol's words. Asked for again each time: voices come and go."""

from __future__ import annotations

from wyoming.info import (
    AsrModel,
    AsrProgram,
    Attribution,
    HandleModel,
    HandleProgram,
    Info,
    TtsProgram,
    TtsVoice,
    WakeModel,
    WakeProgram,
)

from assistant.server.backend import ServerContext

PROGRAM = "assistant"
US = Attribution("voice-assistant", "")
ENGLISH = ("en",)
"""For ears that report no language, and for voices, which report none: the models that ship with the code speak and
hear English, and a house offers nothing that has no language at all."""


def offers(context: ServerContext) -> Info:
    engines, persona = context.talks.engines, context.talks.defaults.persona
    heard, spoken = list(engines.asr.facts.languages or ENGLISH), list(ENGLISH)
    asr = AsrModel(engines.asr.name, US, True, None, None, heard)
    voices = [TtsVoice(voice, US, True, voice, None, spoken) for voice in engines.tts.voices]
    handle = HandleModel(engines.llm.name, US, True, f"answers as {persona}", None, spoken)
    words = context.talks.wake_words
    wake = [WakeModel(word, US, True, word, None, spoken, word) for word in (words.words if words else ())]
    return Info(
        asr=[AsrProgram(PROGRAM, US, True, None, None, [asr], supports_transcript_streaming=True)],
        tts=[TtsProgram(PROGRAM, US, True, None, None, voices, supports_synthesize_streaming=True)],
        handle=[HandleProgram(PROGRAM, US, True, None, None, [handle], supports_handled_streaming=True)],
        wake=[WakeProgram(PROGRAM, US, True, None, None, wake)] if wake else [],
    )
