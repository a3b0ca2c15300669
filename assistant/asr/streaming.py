"""Moonshine's published streaming sizes (MIT, English), from a folder, through the makers' package.

Their encoder reads a sliding window and caches what it has read, so a pass costs the same in the tenth second as in the
first. The makers' `Transcriber` holds the state of a running utterance together with the weights, so each talk has its
own. It uses all cores, so these sizes suit machines with cores to spare.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from assistant.asr.grown import Grown, joined
from assistant.asr.local import LocalASR
from assistant.asr.paced import Paced
from assistant.asr.sense import sensible
from assistant.base.errors import SettingError
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import AsrFacts, HeardWord, Partial, Transcript

Size = Literal["tiny", "small", "medium"]
CADENCE_MS: dict[Size, float] = {"tiny": 250.0, "small": 320.0, "medium": 500.0}
GRAPHS = ("frontend", "encoder", "adapter", "cross_kv", "decoder_kv")
FILES = (*(f"{name}.ort" for name in GRAPHS), "streaming_config.json", "tokenizer.bin")
WORD_TIMES = "decoder_kv_with_attention.ort"
BOOST = 2.0
"""Boost of expected terms: a quarter fewer errors on them, 0.3 points more elsewhere; above 4 it breaks (the
makers)."""
LEAST_S = 0.1
"""Sound shorter than this is not worth a pass, and the library may refuse it."""
NEVER_S = 1e9
"""Disables the library's periodic decoding; we decide when."""


def streaming(folder: Path, size: Size) -> Paced:
    """A transcriber for one talk over a folder in the published layout; loads the weights. Raises SettingError."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise SettingError(
            f"{folder} is not a Moonshine streaming model: {', '.join(missing)} missing; "
            f"the folder must contain {', '.join(FILES)}. Run: assistant pull ears"
        )
    return Paced(StreamingFollower(folder, size))


class StreamingFollower:
    """One stream of the makers' library, with its own speech detector switched off. See `Follower`."""

    def __init__(self, folder: Path, size: Size) -> None:
        import moonshine_voice as makers  # loads 60 MB of libraries, so only when needed

        arch = getattr(makers.ModelArch, f"{size.upper()}_STREAMING")
        timed = (folder / WORD_TIMES).is_file()
        options = {
            "vad_threshold": "0",  # its detector costs 1.5 to 2 points on clips that are already cut
            "vad_max_segment_duration": "1000",
            "return_audio_data": "false",
            "word_timestamps": str(timed).lower(),
        }
        try:
            self._model: Any = makers.Transcriber(folder, arch, options=options)
        except makers.MoonshineError as error:
            told = f"{folder} cannot be loaded as Moonshine {size} ({error}); remove it and run: assistant pull ears"
            raise SettingError(told) from error
        self._set_terms = getattr(self._model, "set_keyterms", None)  # since 0.1.2
        cadence = CADENCE_MS[size]
        self._facts = AsrFacts(name_of(size), ("en",), True, cadence, self._set_terms is not None, timed)
        self._stream: Any = None
        self.drop()

    @property
    def facts(self) -> AsrFacts:
        return self._facts

    def drop(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = self._model.create_stream(update_interval=NEVER_S)
        self._stream.start()
        self._new: list[Pcm] = []
        self._samples = 0
        self._grown = Grown()

    def forget(self) -> None:
        """Does nothing: it learns nothing about a speaker."""

    def expect(self, terms: Sequence[str]) -> None:
        if self._set_terms is not None:
            self._set_terms(list(terms))

    def hear(self, pcm: Pcm) -> None:
        self._new.append(pcm)

    def read(self, whole: bool) -> Partial:
        for pcm in self._new:
            self._samples += pcm.size
            self._stream.add_audio(pcm.tolist(), HEARING_RATE)
        self._new = []
        if self._samples < LEAST_S * HEARING_RATE:
            return Partial()
        self._grown.add(self._samples * 1000 / HEARING_RATE, self._heard())
        return self._grown.partial()

    def _heard(self) -> tuple[HeardWord, ...]:
        """All lines of the stream; there is normally one."""
        lines = self._stream.update_transcription(0).lines
        timed = [word for line in lines for word in line.words or ()]
        if timed:
            return tuple(HeardWord(w.word.strip(), w.start * 1000, w.end * 1000, w.confidence) for w in timed)
        return tuple(HeardWord(word) for line in lines for word in line.text.split())

    def end(self) -> Transcript:
        words = self._grown.words
        self.drop()
        chances = [word.probability for word in words if word.probability is not None]
        confidence = sum(chances) / len(chances) if chances else None
        text = joined(words)
        chance = 1.0 if confidence is None else confidence
        speech = sensible(text, [hash(word.text) for word in words], chance, self.facts.languages)
        return Transcript(text, words, confidence, speech)


def open_asr(folder: Path) -> LocalASR:
    """Ears over a folder in the published layout, with one transcriber loaded. Raises SettingError."""
    size = size_of(folder)
    first = streaming(folder, size)
    asr = LocalASR(first.facts, lambda: streaming(folder, size))
    asr.release(first)
    return asr


def name_of(size: Size) -> str:
    return f"moonshine {size} streaming"


def size_of(folder: Path) -> Size:
    """The size, from the folder's name or its parent's (`small-streaming-en`); the layout does not state it."""
    path = folder.resolve()
    words = re.split(r"\W|_", f"{path.parent.name}-{path.name}")
    named = [size for size in CADENCE_MS if size in words]
    return named[-1] if named else "small"
