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


def offers(context: ServerContext) -> Info:
    engines, defaults, personas = context.talks.engines, context.talks.defaults, context.talks.personas
    persona = defaults.persona
    own = personas[persona].language if persona in personas else None
    talked = [defaults.language or own or "en"]  # a house offers nothing that has no language at all
    heard, spoken = list(engines.asr.facts.languages or talked), list(engines.tts.languages or talked)
    asr = AsrModel(engines.asr.name, US, True, None, None, heard)
    voices = [TtsVoice(voice, US, True, voice, None, spoken) for voice in engines.tts.voices]
    handle = HandleModel(engines.llm.name, US, True, f"answers as {persona}", None, talked)
    words = context.talks.wake_words
    wake = [WakeModel(word, US, True, word, None, talked, word) for word in (words.words if words else ())]
    return Info(
        asr=[AsrProgram(PROGRAM, US, True, None, None, [asr], supports_transcript_streaming=True)],
        tts=[TtsProgram(PROGRAM, US, True, None, None, voices, supports_synthesize_streaming=True)],
        handle=[HandleProgram(PROGRAM, US, True, None, None, [handle], supports_handled_streaming=True)],
        wake=[WakeProgram(PROGRAM, US, True, None, None, wake)] if wake else [],
    )
