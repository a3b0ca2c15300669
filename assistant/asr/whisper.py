"""Whisper of any size, for its hundred languages: a CTranslate2 folder, through faster-whisper (MIT).

Whisper reads 30 s at a time however little was said, so a pass costs the same in the first second as in the 28th.
Therefore utterances are cut late, and every pass runs the encoder once. All talks share one copy of the weights and run
one pass at a time. Nothing is ever fetched: the folder must be complete.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

import numpy as np

from assistant.asr.agreement import bare
from assistant.asr.cutting import cut_point
from assistant.asr.grown import Grown, joined
from assistant.asr.local import LocalASR
from assistant.asr.paced import Paced
from assistant.asr.sense import sensible
from assistant.base.errors import SettingError
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.base.tongues import base_of
from assistant.contracts import AsrFacts, HeardWord, Partial, Transcript

FILES = ("model.bin", "config.json", "tokenizer.json")
CADENCE_MS = 500.0
EARLY_S, LONGEST_S = 20.0, 28.0
"""Seconds after which an utterance is cut: a window is 30 s, and sound that spans two is read twice."""
LEAST_S = 0.1
SURE_S = 3.0
"""Sound needed before a detected language is fixed for the utterance: detecting it costs as much as reading."""
NO_SPEECH, UNLIKELY = 0.6, -1.0
"""Whisper's own rule: there is no speech if it says so and doubts all of its words (Radford et al. 2022, 4.5)."""
TOKENS_A_SECOND, MOST_TOKENS = 25, 200
"""Nobody says more; a loop would. Half of the context belongs to the prompt."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of one pass."""

    words: tuple[HeardWord, ...] = ()
    tokens: tuple[int, ...] = ()
    chance: float = 0.0
    language: str | None = None

    @property
    def sensible(self) -> bool:
        languages = () if self.language is None else (self.language,)
        return sensible(joined(self.words), self.tokens, self.chance, languages)


class Whisper:
    """The shared weights. `model`: faster-whisper's `WhisperModel`, or an object that behaves like it."""

    def __init__(self, model: Any, name: str) -> None:
        self._model = model
        self._one_at_a_time = threading.Lock()
        english = not model.model.is_multilingual
        self.language = "en" if english else None
        """The only language of these weights, or None."""
        self.languages = frozenset(() if english else model.supported_languages)
        """The codes that these weights can be told to write in."""
        self.facts = AsrFacts(name, ("en",) if english else (), True, CADENCE_MS, bias=True, word_times=True)

    def write(self, sound: Pcm, language: str | None, terms: str | None) -> Reading:
        """Transcribe up to 30 s, in one window. `language` None: detect it."""
        seconds = sound.size / HEARING_RATE
        with self._one_at_a_time:
            segments, info = self._model.transcribe(
                sound,
                language=language,
                task="transcribe",
                beam_size=1,
                temperature=0.0,  # a list would sample in case of doubt, and then a pause and the end could differ
                condition_on_previous_text=False,
                without_timestamps=True,  # one segment of text, the words have their own times
                word_timestamps=True,
                vad_filter=False,
                no_speech_threshold=NO_SPEECH,
                log_prob_threshold=UNLIKELY,
                hotwords=terms,
                max_new_tokens=min(MOST_TOKENS, 10 + int(seconds * TOKENS_A_SECOND)),
            )
            segment = next(iter(segments), None)  # lazy: asking for more would read the sound after the last word again
        if segment is None or segment.seek:
            return Reading(language=info.language)
        words = tuple(_words(segment.words or (), segment.text, seconds))
        return Reading(words, tuple(segment.tokens), exp(min(0.0, segment.avg_logprob)), info.language)


class WhisperFollower:
    """Reads an utterance in pieces of at most half a minute. See `Follower`."""

    def __init__(self, whisper: Whisper) -> None:
        self._whisper = whisper
        self._terms: str | None = None
        self._told: str | None = None
        self.drop()

    @property
    def facts(self) -> AsrFacts:
        return self._whisper.facts

    def drop(self) -> None:
        self._new: list[Pcm] = []
        self._language = self._told or self._whisper.language
        self._closed: list[HeardWord] = []
        self._closed_samples = 0
        self._believed = False
        self._begin()

    def _begin(self, sound: Pcm | None = None) -> None:
        self._sound = np.zeros(0, np.float32) if sound is None else sound
        self._grown = Grown()
        self._written = Reading()

    def forget(self) -> None:
        """Does nothing: it learns nothing about a speaker."""

    def expect(self, terms: Sequence[str]) -> None:
        said = (" ".join(term.replace("\0", " ").split()) for term in terms)
        self._terms = ", ".join(term for term in said if term) or None

    def listen_in(self, language: str | None) -> None:
        code = "" if language is None else base_of(language)
        self._told = code if code in self._whisper.languages else None
        self._language = self._told or self._whisper.language

    def hear(self, pcm: Pcm) -> None:
        self._new.append(pcm)

    def read(self, whole: bool) -> Partial:
        if self._new:
            self._sound = np.concatenate([self._sound, *self._new])
            self._new = []
        while (cut := cut_point(self._sound, self._grown.settled_ms / 1000, EARLY_S, LONGEST_S)) is not None:
            rest = self._sound[cut:]
            self._write(self._sound[:cut])
            self._close(cut)
            self._begin(rest)
        if self._sound.size >= LEAST_S * HEARING_RATE:
            self._write(self._sound)
        begin = joined((*self._closed, *self._grown.stable))
        text = joined((*self._closed, *self._open_words()))
        return Partial(begin, text[len(begin) :])

    def end(self) -> Transcript:
        self._close(self._sound.size)
        words, believed = tuple(self._closed), self._believed
        self.drop()
        chances = [word.probability for word in words if word.probability is not None]
        return Transcript(joined(words), words, float(np.mean(chances)) if chances else 0.0, believed)

    def _write(self, sound: Pcm) -> None:
        self._written = written = self._whisper.write(sound, self._language, self._terms)
        if sound.size >= SURE_S * HEARING_RATE:
            self._language = written.language
        self._grown.add(sound.size * 1000 / HEARING_RATE, written.words, written.sensible)

    def _open_words(self) -> tuple[HeardWord, ...]:
        """Words of the open piece: only the stable ones if the rest makes no sense; all of a lone piece, for the
        log."""
        lone = not self._closed_samples
        return self._grown.words if lone or self._written.sensible else self._grown.stable

    def _close(self, samples: int) -> None:
        """Close the piece: its words are final, with times relative to the utterance's beginning."""
        begin_ms = self._closed_samples * 1000 / HEARING_RATE
        for word in self._open_words():
            times = (begin_ms + (word.start_ms or 0.0), begin_ms + (word.end_ms or 0.0))
            self._closed.append(HeardWord(word.text, *times, word.probability))
        self._believed = self._believed or self._written.sensible or bool(self._grown.stable)
        self._closed_samples += samples


def _words(timed: Iterable[Any], text: str, seconds: float) -> Iterable[HeardWord]:
    """Words as they are written: text without a leading space belongs to the previous word (half a word, a mark; a
    whole sentence in Chinese). `text` stands for them if nothing could be timed."""
    parts: list[tuple[str, float, float, float | None]]
    parts = [(word.word, float(word.start), float(word.end), float(word.probability)) for word in timed]
    groups: list[list[tuple[str, float, float, float | None]]] = []
    for part in parts or [(text, 0.0, seconds, None)]:
        if groups and (not part[0].startswith(" ") or not bare(part[0].strip())):
            groups[-1].append(part)
        else:
            groups.append([part])
    for group in groups:
        written = "".join(part[0].strip() if at else part[0].lstrip() for at, part in enumerate(group))
        chances = [part[3] for part in group if part[3] is not None]
        chance = min(1.0, max(0.0, sum(chances) / len(chances))) if chances else None
        if bare(spelled := "".join(written.split())):
            yield HeardWord(spelled, group[0][1] * 1000, group[-1][2] * 1000, chance)


def open_whisper(folder: Path) -> Whisper:
    """Open the weights of a folder, on one thread. Raises SettingError, ImportError."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise SettingError(
            f"{folder} is not a Whisper model for CTranslate2: {', '.join(missing)} missing; "
            f"the folder must contain {', '.join(FILES)}"
        )
    from faster_whisper import WhisperModel  # it brings 250 MB of libraries, so only when needed

    try:
        model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True)
    except (RuntimeError, ValueError, OSError) as error:
        raise SettingError(f"{folder} cannot be loaded as Whisper ({error}); convert or download it again") from error
    return Whisper(model, f"whisper {folder.resolve().name}")


def open_asr(folder: Path) -> LocalASR:
    """Ears over a CTranslate2 folder, shared by all talks and warmed up. Raises SettingError, ImportError."""
    whisper = open_whisper(folder)
    whisper.write(np.zeros(HEARING_RATE, np.float32), whisper.language, None)
    return LocalASR(whisper.facts, lambda: Paced(WhisperFollower(whisper)))
