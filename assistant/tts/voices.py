"""The voices of a checkpoint, each with its capsule."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from capsules.errors import CapsuleError
from capsules.prefix import StateKey
from capsules.registry import Registry, named_key
from tts_engine.engine import HiggsTTS
from tts_engine.voices import Voice, checked_codes


def load_voices(tts: HiggsTTS, path: Path, registry: Registry) -> dict[str, Voice]:
    """The voices of a checkpoint, each with its capsule: from the registry (disk included), else made and kept there.

    `voices.json` beside the weights names them: codes [Q][T] of a reference, or null for the model's own voice.
    Without that file there is one voice, the model's own.
    """
    file = path / "voices.json"
    named = json.loads(file.read_text("utf-8")) if file.is_file() else {"own": None}
    state_key = voice_key(tts)
    voices = {}
    for name, codes in named.items():
        voice = Voice(name, None if codes is None else _codes(tts, codes), None)
        called = f"voice/{path.name}/{name}/{voice.key}"
        key = named_key(called, state_key)
        try:
            capsule = registry.get(key, tts.fingerprint)
        except CapsuleError:
            capsule = None
        if capsule is None:
            tts.open(voice)
            capsule = tts.snapshot(name)
            registry.put(capsule, state_key, name=called, pin=True, save=True)
        else:
            registry.pin(key)
        voices[name] = replace(voice, capsule=capsule)
    return voices


def voice_key(tts: HiggsTTS) -> StateKey:
    """The realm of voices: what talks begin with."""
    return StateKey("voices", precision=tts.fingerprint.digest)


def _codes(tts: HiggsTTS, codes: Any) -> Any:
    audio = tts.config.audio
    return checked_codes(codes, audio.codebooks, audio.size)
