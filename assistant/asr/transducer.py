"""A streaming transducer from a folder, through sherpa-onnx (Apache-2): icefall's zipformers and the like, or NeMo's.

Sound goes in chunk by chunk, and every chunk is read once, so interim words cost as much as final ones. Decoding is
greedy: a token is never revised, and a word is stable once the next has begun. One recogniser serves all talks; each
stream follows one utterance.

The last pass needs silence after the sound. That ends a stream, and a stream cannot be copied. If the user goes on
after a pause, the piece is therefore heard again from its beginning, on a new stream: every word is as it would be
without that pause. Beyond `AGAIN_S` that would cost too much; then the piece is closed and its words stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from assistant.asr.agreement import Agreement, bare, begin_alike
from assistant.asr.graph_facts import graph_facts
from assistant.asr.grown import splice
from assistant.asr.local import LocalASR
from assistant.asr.paced import Paced
from assistant.asr.sense import sensible
from assistant.base.errors import SettingError
from assistant.base.extras import adding
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import AsrFacts, HeardWord, Partial, Transcript

GRAPHS = ("encoder", "decoder", "joiner")
TOKENS = "tokens.txt"
PIECES = "bpe.vocab"
"""Splits words into tokens; words can be expected only if this file exists."""
NEEDS = f"{TOKENS}, {', '.join(f'{name}*.onnx' for name in GRAPHS)}"
ICEFALL = ("conformer", "ebranchformer", "lstm", "zipformer", "zipformer2")
AGAIN_S = 10.0
"""The most sound to hear again when somebody goes on after a pause."""
TAIL_S = 0.2
"""Silence added beyond the model's own window: a transducer writes a word some frames after it ended."""
TOKEN_MS = 40.0
"""Shortest duration of a token, which has only a start time. One frame of icefall's encoders."""
STEP = HEARING_RATE // 100
LONGEST_WINDOW_S = 10.0
LEAST_CADENCE_MS = 100.0
MARKS_OF_TERMS = "'-"


@dataclass(frozen=True, slots=True)
class Transducer:
    """The part that all talks share.

    tail        silence that pushes the last sound through the network
    alphabet    characters that its tokens consist of
    lower       it knows only capitals, so its text is converted to lower case
    """

    recogniser: Any
    facts: AsrFacts
    tail: Pcm
    alphabet: frozenset[str]
    lower: bool

    def stream(self, terms: Sequence[str]) -> Any:
        known = [term for term in map(self._spelled, terms) if term] if self.facts.bias else []
        # a slash separates terms; with no terms, pass no argument, because "" would be one empty term
        return self.recogniser.create_stream("/".join(known)) if known else self.recogniser.create_stream()

    def _spelled(self, term: str) -> str:
        """The term as the tokens spell it, or nothing: the library treats signs in it as commands (`:2` is a boost)."""
        plain = " ".join(term.split())
        if not self.facts.cased:
            plain = plain.upper() if self.lower else plain.lower()
        letters = plain.replace(" ", "")
        clean = all(c.isalnum() or c in MARKS_OF_TERMS for c in letters)
        return plain if clean and self.alphabet.issuperset(letters) else ""

    def words(self, stream: Any) -> tuple[HeardWord, ...]:
        """All words of a stream so far, with times from its first sample."""
        result = self.recogniser.get_result_all(stream)
        times = [float(round(second * 1000)) for second in result.timestamps]
        chances = np.exp(np.minimum(result.ys_probs, 0.0)).tolist()
        if len(chances) != len(result.tokens):
            chances = [None] * len(result.tokens)
        found: list[_Word] = []
        for token, time, chance in zip(result.tokens, times, chances, strict=True):
            piece = _bytes(token)
            if not found or piece.startswith(b" "):
                found.append(_Word(b"", time, time, []))
            word = found[-1]
            word.text, word.last_ms = word.text + piece, time
            if chance is not None:
                word.chances.append(chance)
        return tuple(self._written(found))

    def _written(self, found: Sequence[_Word]) -> list[HeardWord]:
        words: list[HeardWord] = []
        for one in found:
            text = one.text.decode("utf-8", "ignore").strip()
            text = text.lower() if self.lower else text
            if bare(text):
                chance = sum(one.chances) / len(one.chances) if one.chances else None
                words.append(HeardWord(text, one.first_ms, one.last_ms + TOKEN_MS, chance))
            elif words:
                words[-1] = replace(words[-1], text=words[-1].text + text)  # a mark on its own
        return words


@dataclass(slots=True)
class _Word:
    text: bytes
    first_ms: float
    last_ms: float
    chances: list[float]


def _bytes(token: str) -> bytes:
    """A token's text. `<0xE2>` is a single byte of a character that has no token."""
    if len(token) == 6 and token.startswith("<0x"):
        return bytes([int(token[3:5], 16)])
    return token.replace("▁", " ").encode()


class TransducerFollower:
    """See `Follower`."""

    def __init__(self, model: Transducer) -> None:
        self._model = model
        self._terms: tuple[str, ...] = ()
        self.drop()

    @property
    def facts(self) -> AsrFacts:
        return self._model.facts

    def drop(self) -> None:
        self._new: list[Pcm] = []
        self._closed: tuple[HeardWord, ...] = ()
        self._before_ms = 0.0  # sound of the closed pieces
        self._stable: tuple[HeardWord, ...] = ()  # of the open piece, and so are the next fields
        self._words: tuple[HeardWord, ...] = ()
        self._begin_piece()

    def _begin_piece(self) -> None:
        self._stream: Any = None
        self._spent = False
        self._samples = 0
        self._again: list[Pcm] = []  # the open piece, as long as it can be heard again
        self._agreement = Agreement()

    def forget(self) -> None:
        """Does nothing: it learns nothing about a speaker."""

    def expect(self, terms: Sequence[str]) -> None:
        """Takes effect with the next stream: the terms of a running one are fixed."""
        self._terms = tuple(terms)

    def hear(self, pcm: Pcm) -> None:
        self._new.append(pcm)

    def read(self, whole: bool) -> Partial:
        if self._new:
            if self._spent:
                self._go_on()
            self._take(np.concatenate(self._new))
            self._new = []
        if self._stream is not None and not self._spent:
            self._settle(self._model.words(self._stream))
            if whole:
                self._stream.accept_waveform(HEARING_RATE, self._model.tail)
                self._stream.input_finished()
                self._spent = True
                self._decode()
                self._show(self._model.words(self._stream))
        begin, text = _text((*self._closed, *self._stable)), _text((*self._closed, *self._words))
        return Partial(begin, text[len(begin) :])

    def _take(self, sound: Pcm) -> None:
        if self._stream is None:
            self._stream = self._model.stream(self._terms)
        self._samples += sound.size
        if self._short:
            self._again.append(sound)
        else:
            self._again = []
        self._stream.accept_waveform(HEARING_RATE, sound)
        self._decode()

    def _decode(self) -> None:
        while self._model.recogniser.is_ready(self._stream):
            self._model.recogniser.decode_stream(self._stream)

    @property
    def _short(self) -> bool:
        return self._samples <= AGAIN_S * HEARING_RATE

    def _go_on(self) -> None:
        """Continue after a last pass."""
        if self._short:
            self._stream, self._spent, self._samples = None, False, 0
            again, self._again = self._again, []
            self._take(np.concatenate(again))
        else:
            self._closed += self._in_utterance(self._words)
            self._before_ms += self._samples * 1000 / HEARING_RATE
            self._stable = self._words = ()
            self._begin_piece()

    def _settle(self, heard: tuple[HeardWord, ...]) -> None:
        """The text of the stream without a tail, and how much of it will not change."""
        self._show(heard)
        if self._model.facts.bias:
            # a beam may still switch to another path, so agreement over time decides what is stable
            agreed = self._agreement.add(self._samples * 1000 / HEARING_RATE, [word.text for word in heard])
        else:
            agreed = len(heard)
        agreed = min(agreed, len(heard) - 1)  # the last one may be half a word
        if agreed > len(self._stable):
            self._stable = self._words[:agreed]

    def _show(self, heard: tuple[HeardWord, ...]) -> None:
        stable, texts = [word.text for word in self._stable], [word.text for word in heard]
        if begin_alike(stable, texts) == len(stable) and texts[: len(stable)] == stable:
            self._words = heard
        else:
            self._words = (*self._stable, *heard[splice(stable, texts) :])

    def _in_utterance(self, words: Sequence[HeardWord]) -> tuple[HeardWord, ...]:
        """Times relative to the utterance's first sample, none past the sound: the tail is not part of it."""
        end = self._before_ms + self._samples * 1000 / HEARING_RATE
        return tuple(
            replace(
                word,
                start_ms=min(end, self._before_ms + (word.start_ms or 0.0)),
                end_ms=min(end, self._before_ms + (word.end_ms or 0.0)),
            )
            for word in words
        )

    def end(self) -> Transcript:
        words = (*self._closed, *self._in_utterance(self._words))
        self.drop()
        text = _text(words)
        chances = [word.probability for word in words if word.probability is not None]
        confidence = sum(chances) / len(chances) if chances else None
        # the library softens its probabilities and they are not calibrated, so only repetition is judged
        speech = sensible(text, [hash(word.text) for word in words], 1.0, self.facts.languages)
        return Transcript(text, words, confidence, speech)


def _text(words: Sequence[HeardWord]) -> str:
    return " ".join(word.text for word in words)


def load_transducer(folder: Path) -> Transducer:
    """The shared model, warmed up. Raises SettingError.

    Errors must be found here: the library ends the process if a graph lacks a fact.
    """
    graphs = {name: _graph(folder, name) for name in GRAPHS}
    tokens = _tokens(folder)
    _check(folder, graph_facts(graphs["decoder"]) | graph_facts(graphs["encoder"]), tokens)
    try:
        import sherpa_onnx
    except ImportError as error:
        raise SettingError(f"a transducer needs sherpa-onnx; run: {adding('transducer')}") from error
    bias = (folder / PIECES).is_file()
    if bias:
        _check_pieces(folder / PIECES)
    options = {"modeling_unit": "bpe", "bpe_vocab": str(folder / PIECES)} if bias else {}
    try:
        recogniser = sherpa_onnx.OnlineRecognizer.from_transducer(
            str(folder / TOKENS),
            *(str(graphs[name]) for name in GRAPHS),
            num_threads=1,
            provider="cpu",
            enable_endpoint_detection=False,
            decoding_method="modified_beam_search" if bias else "greedy_search",
            **options,
        )
        window, shift = _chunk(recogniser, folder)
    except RuntimeError as error:
        raise SettingError(f"{folder} cannot be loaded as a transducer ({error}); download it again") from error
    written = "".join(text for text in tokens.values() if not text.startswith("<"))
    small, large = any(c.islower() for c in written), any(c.isupper() for c in written)
    cadence_ms = max(LEAST_CADENCE_MS, shift * 1000 / HEARING_RATE)
    name = folder.resolve().name
    told_facts = AsrFacts(f"transducer {name}", _languages(name), small and large, cadence_ms, bias, True)
    tail = np.zeros(window + int(TAIL_S * HEARING_RATE), np.float32)
    return Transducer(recogniser, told_facts, tail, frozenset(written) - {"▁"}, large and not small)


def _languages(name: str) -> tuple[str, ...]:
    """English if the folder's name has `en` and no other code of two letters; else not known."""
    codes = {part for part in re.split(r"[-_.]", name.lower()) if len(part) == 2 and part.isalpha()}
    return ("en",) if codes == {"en"} else ()


def _check(folder: Path, told: Mapping[str, str], tokens: Mapping[int, str]) -> None:
    """Check that the graphs state what the library needs, and that every number they may write has a text."""
    if told.get("model_type") in ICEFALL:
        needed = ["T", "decode_chunk_len", "vocab_size", "context_size"]
    else:  # NeMo's; its vocabulary is counted without the blank
        needed = ["window_size", "chunk_shift", "subsampling_factor", "pred_rnn_layers", "pred_hidden", "vocab_size"]
    if lacking := [name for name in needed if not told.get(name, "").isdecimal()]:
        raise SettingError(
            f"{folder}: no streaming transducer that can be run here: its graphs say nothing of {', '.join(lacking)} "
            f"(kind: {told.get('model_type', 'unknown')}); known: {', '.join(ICEFALL)}, and NeMo's, exported to stream"
        )
    if set(range(int(told["vocab_size"]))) - tokens.keys():
        size = told["vocab_size"]
        raise SettingError(f"{folder / TOKENS} has {len(tokens)} tokens, its model {size}; download it again")


def _graph(folder: Path, name: str) -> Path:
    """The graph file; of several, the one with 8-bit weights: a quarter of the size, and fastest on a processor."""
    found = sorted(folder.glob(f"{name}*.onnx"), key=lambda path: (".int8." not in path.name, path.name))
    if not found:
        raise SettingError(f"{folder} is not a streaming transducer: {name}*.onnx is missing; it must contain {NEEDS}")
    return found[0]


def _tokens(folder: Path) -> dict[int, str]:
    """Number → text, from `text number` lines. A line without text is a space."""
    path = folder / TOKENS
    if not path.is_file():
        raise SettingError(f"{folder} is not a streaming transducer: {TOKENS} is missing; it must contain {NEEDS}")
    found: dict[int, str] = {}
    for line in path.read_bytes().splitlines():  # as bytes, because a token may be one of Unicode's spaces
        match line.split():
            case [text, number] if number.isdigit():
                found[int(number)] = text.decode("utf-8", "replace")
            case [number] if number.isdigit():
                found[int(number)] = " "
            case []:
                pass
            case _:
                raise SettingError(f"{path}: the line {line!r} is not a token and its number; download it again")
    return found


def _check_pieces(path: Path) -> None:
    """Check the file: the library ends the process if a line is not a piece and a number."""
    for line in path.read_bytes().splitlines():
        try:
            _, score = line.split()
            float(score)
        except ValueError as error:
            raise SettingError(f"{path}: the line {line!r} is not a piece and its score; remove it") from error


def _chunk(recogniser: Any, folder: Path) -> tuple[int, int]:
    """Samples needed for the first chunk and for each later one. The library does not report it, so silence is fed to
    it."""
    stream, sizes = recogniser.create_stream(), []
    silence = np.zeros(STEP, np.float32)
    for _ in range(2):
        size = 0
        while not recogniser.is_ready(stream):
            stream.accept_waveform(HEARING_RATE, silence)
            size += STEP
            if size > LONGEST_WINDOW_S * HEARING_RATE:
                raise SettingError(
                    f"{folder}: it reads more than {LONGEST_WINDOW_S:g} s at once; is it made to stream?"
                )
        recogniser.decode_stream(stream)
        sizes.append(size)
    return sizes[0], sizes[1]


def open_asr(folder: Path) -> LocalASR:
    """Ears over a folder with a streaming transducer; all talks share its weights. Raises SettingError."""
    model = load_transducer(folder)
    return LocalASR(model.facts, lambda: Paced(TransducerFollower(model)))
