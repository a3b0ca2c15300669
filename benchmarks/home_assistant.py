"""Home Assistant's own integration and pipeline over a running `assistant wyoming`: it hears a question, its own agent
answers, and our voice says the answer. Two satellites at once, one of them woken by its name, and one that goes away.

    python3.11 -m venv ha
    ha/bin/pip install homeassistant==2024.3.3 wyoming==1.5.3 hassil==1.6.1 home-assistant-intents==2024.3.12 \\
        webrtc-noise-gain==1.2.3 mutagen==1.47.0 ha-ffmpeg==3.1.0 zeroconf==0.131.0 aiohttp_cors==0.7.0 \\
        aiohttp-fast-url-dispatcher==0.3.0 aiohttp-zlib-ng==0.3.1 PyTurboJPEG==1.7.1 numpy==1.26.0
    assistant wyoming &
    ha/bin/python benchmarks/home_assistant.py question.wav answer.wav [wake.wav "Hey Jarvis"]

The recordings are 16 kHz, 16 bit, mono: "what time is it", and a wake word. 2024.3.3 is the last version for Python
3.11. It runs here without its web page, whose packages speech does not need, and needs ffmpeg.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
import wave
from collections.abc import AsyncIterator
from pathlib import Path

from homeassistant import auth, bootstrap, config_entries, core, loader
from homeassistant.components import assist_pipeline, stt, tts, wake_word
from homeassistant.components.assist_pipeline.pipeline import AudioSettings, PipelineStage, WakeWordSettings
from homeassistant.setup import async_setup_component

PORT = 10400
SENTENCES = """language: "en"
intents:
  TellTheTime:
    data:
      - sentences:
          - "what time is it [now]"
"""
ANSWER = {"TellTheTime": {"speech": {"text": "It is twenty past five."}}}
CHUNK_S = 0.02


async def started(folder: str) -> core.HomeAssistant:
    """Home Assistant with its speech, and our service added as a person does it."""
    sentences = Path(folder, "custom_sentences", "en")
    sentences.mkdir(parents=True)
    (sentences / "time.yaml").write_text(SENTENCES)
    hass = core.HomeAssistant(folder)
    hass.config.skip_pip = True
    hass.config_entries = config_entries.ConfigEntries(hass, {})
    loader.async_setup(hass)
    await bootstrap.async_load_base_functionality(hass)
    hass.auth = await auth.auth_manager_from_config(hass, [], [])
    for name in ("homeassistant", "media_source", "intent_script", "conversation", "assist_pipeline"):
        assert await async_setup_component(hass, name, {name: ANSWER if name == "intent_script" else {}}), name
    flow = await hass.config_entries.flow.async_init("wyoming", context={"source": "user"})
    made = await hass.config_entries.flow.async_configure(flow["flow_id"], {"host": "127.0.0.1", "port": PORT})
    assert made["type"] == "create_entry", made
    await hass.async_block_till_done()
    return hass


async def microphone(sounds: list[bytes], tail_s: float) -> AsyncIterator[bytes]:
    """Sound in real time, with a second of silence in front and some behind it."""
    size = int(CHUNK_S * 16_000) * 2
    data = bytes(32_000) + b"".join(sound + bytes(12_800) for sound in sounds) + bytes(int(tail_s * 32_000))
    due = time.monotonic()
    for at in range(0, len(data) - size, size):
        yield data[at : at + size]
        due += CHUNK_S
        await asyncio.sleep(max(0.0, due - time.monotonic()))


def sound_of(path: str) -> bytes:
    with wave.open(path) as file:
        assert (file.getframerate(), file.getsampwidth(), file.getnchannels()) == (16_000, 2, 1), path
        return file.readframes(file.getnframes())


async def satellite(
    hass: core.HomeAssistant, sounds: list[bytes], *, wake: bool, quit_at: str | None = None
) -> dict[str, object]:
    """One run of Home Assistant's pipeline; returns the data of its events. `quit_at`: cancel at this event."""
    got: dict[str, object] = {}
    times: dict[str, float] = {}
    reached = asyncio.Event()

    def event(one: object) -> None:
        got[str(one.type)] = one.data  # type: ignore[attr-defined]
        times[str(one.type)] = time.monotonic()  # type: ignore[attr-defined]
        if str(one.type) == quit_at:  # type: ignore[attr-defined]
            reached.set()

    running = asyncio.ensure_future(assist_pipeline.async_pipeline_from_audio_stream(
        hass, context=core.Context(), event_callback=event,
        stt_metadata=stt.SpeechMetadata(
            "en", stt.AudioFormats.WAV, stt.AudioCodecs.PCM, stt.AudioBitRates.BITRATE_16,
            stt.AudioSampleRates.SAMPLERATE_16000, stt.AudioChannels.CHANNEL_MONO,
        ),
        stt_stream=microphone(sounds, 3.0), tts_audio_output="wav",
        start_stage=PipelineStage.WAKE_WORD if wake else PipelineStage.STT,
        wake_word_settings=WakeWordSettings(timeout=10) if wake else None,
        audio_settings=AudioSettings(),
    ))  # fmt: skip
    if quit_at is not None:
        await reached.wait()
        running.cancel()
        await asyncio.wait([running])
    else:
        await running
    if "tts-end" in got:
        media = got["tts-end"]["tts_output"]["media_id"]  # type: ignore[index]
        begun = time.monotonic()
        got["sound"] = (await tts.async_get_media_source_audio(hass, media))[1]
        got["tts_s"] = round(time.monotonic() - begun, 3)
        got["stt_after_end_s"] = round(times["stt-end"] - times.get("stt-vad-end", times["stt-start"]), 3)
    return got


async def main(question: str, out: str, wake: str | None, name: str | None) -> None:
    asked = sound_of(question)
    with tempfile.TemporaryDirectory() as folder:
        hass = await started(folder)
        pipeline = await assist_pipeline.async_create_default_pipeline(hass, "stt.assistant", "tts.assistant", "ours")
        assert pipeline is not None, hass.states.async_entity_ids()
        entity = next(iter(hass.states.async_entity_ids("wake_word")), None)
        await assist_pipeline.async_update_pipeline(hass, pipeline, wake_word_entity=entity, wake_word_id=name)
        hass.data["assist_pipeline"].pipeline_store.async_set_preferred_item(pipeline.id)
        print("entities", sorted(one for one in hass.states.async_entity_ids() if one.endswith("assistant")))
        if entity is not None:
            known = await wake_word.async_get_wake_word_detection_entity(hass, entity).get_supported_wake_words()
            print("wake words", [one.id for one in known])
        runs = [satellite(hass, [asked], wake=False)]
        if wake is not None:
            runs.append(satellite(hass, [sound_of(wake), asked], wake=True))
        for got in await asyncio.gather(*runs):
            if "wake_word-end" in got:
                print("woken by", got["wake_word-end"])
            print("heard   ", got.get("stt-end"), got.get("error"))
            print("answered", got["intent-end"]["intent_output"]["response"]["speech"]["plain"]["speech"])  # type: ignore[index]
            print("spoken  ", len(got["sound"]), "bytes;", "text", got["stt_after_end_s"], "s after the end,",  # type: ignore[arg-type]
                  "sound in", got["tts_s"], "s")  # fmt: skip
        Path(out).write_bytes(got["sound"])  # type: ignore[arg-type]
        await satellite(hass, [asked], wake=False, quit_at="stt-vad-start")
        print("cancelled in the middle of the question")
        await hass.async_stop(force=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3], *(sys.argv[3:5] or (None, None))))
