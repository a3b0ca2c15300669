"""Open-vocabulary ears on any processor: Moonshine tiny v1 (MIT, 27 M parameters, English), re-read as the sound grows.

The weights come inside the makers' wheel, so nothing is fetched. The network has no memory: every pass reads the open
piece of the utterance again, with the text of the pass before as a draft. Words on which passes agree are held; a piece
closes at a pause before it gets long, and its words are settled.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from assistant.asr.agreement import SETTLED_MS, Agreement
from assistant.asr.bias import Lift
from assistant.asr.cutting import cut_point
from assistant.asr.local import LocalASR
from assistant.asr.naming import LIKELY_A_LETTER, Named
from assistant.asr.network import Decoded, Network, ReadSound
from assistant.asr.paced import Paced
from assistant.asr.sense import sensible
from assistant.base.errors import SettingError
from assistant.base.extras import adding
from assistant.base.pcm import resample
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.contracts import AsrFacts, CalledName, HeardWord, Partial, Rescorer, Transcript
from assistant.text.called import rest_of

if TYPE_CHECKING:
    from assistant.asr.likely import Likely

LATER_MS = 800.0
"""Words are held later where there is somebody to choose at the end: what is held can no longer be chosen."""
QUICKER = (12, 11)
"""Rates that a sound is played from one to the other: a twelfth shorter and higher. The network then is unsure of other
words. With this second reading 309 of 372 requests in accented voices are right, 299 without."""
NOTHING = np.zeros(0, np.float32)
FACTS = AsrFacts("moonshine tiny", ("en",), cased=True, cadence_ms=250.0, bias=True, word_times=False)


def shipped_weights() -> Path:
    """The folder of tiny v1 inside the installed wheel. Raises SettingError."""
    spec = importlib.util.find_spec("moonshine_voice")  # not imported: it would load two libraries nobody calls here
    for root in (spec.submodule_search_locations if spec is not None else None) or ():
        folder = Path(root) / "assets" / "tiny-en"
        if (folder / "encoder_model.ort").is_file():
            return folder
    raise SettingError(
        "the speech model Moonshine tiny was not found; it comes inside moonshine-voice 0.1.0 (later versions have no "
        f"weights inside). Run: {adding('ears')}"
    )


def load_moonshine(folder: Path | None = None) -> Network:
    """The shared network, warm: the first pass of a process takes three times as long as the next."""
    network = Network(folder or shipped_weights())
    network.write(np.zeros(HEARING_RATE, np.float32))
    return network


def moonshine(network: Network, likely: Likely | None = None) -> Paced:
    """A transcriber for one talk; next to nothing of its own, so make as many as there are talks."""
    return Paced(MoonshineFollower(network, likely))


@dataclass(slots=True)
class _Piece:
    """The open end of an utterance."""

    sound: Pcm
    agreement: Agreement
    written: Decoded = field(default_factory=Decoded)
    held: int = 0
    """Tokens of `written` that are stable …"""
    settled_ms: float = 0.0
    """… and were all said within this much of the sound."""
    read: tuple[int, ReadSound] | None = None
    """The latest pass, over so many samples of it."""
    name: int = 0
    """Tokens of the name that it begins with, which are held and left out of the text."""


class MoonshineFollower:
    """Reads an utterance piece by piece. See `Follower`."""

    def __init__(self, network: Network, likely: Likely | None = None) -> None:
        self._network, self._tokens, self._likely = network, network.tokens, likely
        self._lift: Lift | None = None
        self._named: Named | None = None
        """The name that was found last."""
        self.drop()

    @property
    def facts(self) -> AsrFacts:
        return FACTS

    def drop(self) -> None:
        self._leads: tuple[int, ...] = ()
        """Tokens of the name that the next piece begins with."""
        self._new: list[Pcm] = []
        self._piece = self._opened()
        self._closed: list[HeardWord] = []

    def _opened(self, sound: Pcm = NOTHING) -> _Piece:
        return _Piece(sound, Agreement(SETTLED_MS if self._likely is None else LATER_MS))

    def forget(self) -> None:
        self._named = None

    def expect(self, terms: Sequence[str]) -> None:
        self._lift = Lift(self._tokens, terms) if terms else None

    def named(self, sound: Pcm, names: Sequence[str]) -> CalledName | None:
        if (found := self._network.named(sound, names)) is None:
            return None
        self._named = found[0]
        return CalledName(self._named.name, rest_of(found[1]))

    def leave_out(self, name: str) -> bool:
        # The sound is not asked again: the first pass behind a call has all that was said since to read.
        if self._named is None or self._named.name != name:
            return False
        self._leads = self._named.tokens
        return True

    def may_hold(self, sound: Pcm, phrase: str) -> bool:
        return self._network.named(sound, (phrase,), least=LIKELY_A_LETTER * len(phrase)) is not None

    def hear(self, pcm: Pcm) -> None:
        self._new.append(pcm)

    def read(self, whole: bool) -> Partial:
        piece = self._piece
        if self._new:
            piece.sound = np.concatenate([piece.sound, *self._new])
            self._new = []
        while (cut := cut_point(piece.sound, piece.settled_ms / 1000)) is not None:
            rest = piece.sound[cut:]
            self._write(piece, piece.sound[:cut], last=True)
            self._closed += self._words(piece)
            piece = self._piece = self._opened(rest)
        if piece.sound.size:
            self._write(piece, piece.sound, last=whole)
            self._settle(piece)
        return self._partial()

    def end(self) -> Transcript:
        words = tuple(self._closed + self._words(self._piece))
        self.drop()
        chances = [word.probability for word in words if word.probability is not None]
        confidence = float(np.mean(chances)) if chances else 0.0
        return Transcript(_text(words), words, confidence, speech=bool(words))

    def _write(self, piece: _Piece, sound: Pcm, last: bool) -> None:
        """The last pass over a piece chooses among all that it may have said; it may be over the sound of the pass
        before, which is not heard again."""
        if self._leads:
            tokens, self._leads = self._leads, ()
            piece.written, piece.held, piece.name = Decoded(tokens), len(tokens), len(tokens)
        if piece.read is None or piece.read[0] != sound.size:
            reading = self._network.read(sound, piece.written.tokens, piece.held, self._lift)
            piece.read, piece.written = (sound.size, reading), reading.written
        if last and (likely := self._likely) is not None:
            rivals = piece.read[1].rivals(piece.held, lambda found: self._requests(likely, piece, sound, found))
            piece.written = self._likeliest(likely, piece, rivals)

    def _likeliest(self, likely: Likely, piece: _Piece, rivals: Sequence[Decoded], quickly: bool = False) -> Decoded:
        """The likeliest of the greedy text and its rivals, by the sound and by the habits of people together."""
        texts = [self._text_of(piece, one.tokens) for one in rivals]
        whole = [pair for pair in zip(rivals, texts, strict=True) if not likely.breaks_off(pair[1], texts[0])]
        return whole[likely.choose([text for _, text in whole], [one.score for one, _ in whole], quickly)][0]

    def _requests(self, likely: Likely, piece: _Piece, sound: Pcm, found: Sequence[Decoded]) -> list[tuple[int, ...]]:
        """More readings of a piece after its held words: the decoder's, if people ask such things, and one of the sound
        played quicker. Each takes as long as all the rest, so they are made only if the text found is not a usual
        request."""
        if likely.usual(self._text_of(piece, self._likeliest(likely, piece, found, quickly=True).tokens)):
            return []
        held = piece.written.tokens[: piece.held]
        asked = [(*held, *self._tokens.of(text)) for text in likely.hears(sound, self._tokens.text(held))]
        quicker = self._network.read(resample(sound, *QUICKER), piece.written.tokens, piece.held, self._lift)
        read = (one.tokens for one in quicker.rivals(piece.held))
        return [tokens for tokens in dict.fromkeys([*asked, *read]) if all(tokens != one.tokens for one in found)]

    def _settle(self, piece: _Piece) -> None:
        """Hold the words that passes agree on."""
        words = self._tokens.words(piece.written.tokens)
        stable = piece.agreement.add(piece.sound.size * 1000 / HEARING_RATE, [word for word, _ in words])
        if not stable or not self._sensible(piece):
            return
        held = self._tokens.without_marks(piece.written.tokens[: words[stable - 1][1]])
        if held > piece.held:
            piece.held, piece.settled_ms = held, piece.agreement.since_ms

    def _sensible(self, piece: _Piece) -> bool:
        """Whether what stands behind the name makes sense; it was decided elsewhere that the name was said."""
        written, first = piece.written, self._behind_name(piece, piece.written.tokens)
        tokens, chances = written.tokens[first:], written.probabilities[first:]
        text = self._text_of(piece, written.tokens)
        # It knows English alone; for a laugh it writes other scripts.
        english = any(character.isascii() and character.isalnum() for character in text)
        return english and sensible(text, tokens, float(np.mean(chances)), FACTS.languages)

    def _words(self, piece: _Piece) -> list[HeardWord]:
        """The words of a piece: only the held ones, if the rest makes no sense."""
        written = piece.written
        tokens = written.tokens if self._sensible(piece) else written.tokens[: piece.held]
        found, start = [], self._behind_name(piece, tokens)
        for word, end in self._said(piece, tokens):
            found.append(HeardWord(word, probability=float(np.mean(written.probabilities[start:end]))))
            start = end
        return found

    def _said(self, piece: _Piece, tokens: Sequence[int]) -> list[tuple[str, int]]:
        """Every word behind the name, and the number of tokens up to its end. The first begins the sentence."""
        first = self._behind_name(piece, tokens)
        words = [(word, first + end) for word, end in self._tokens.words(tokens[first:])]
        if first and words:
            words[0] = words[0][0][:1].upper() + words[0][0][1:], words[0][1]
        return words

    def _behind_name(self, piece: _Piece, tokens: Sequence[int]) -> int:
        """How many of these tokens are the name and the mark behind it."""
        at = piece.name
        while at and at < len(tokens) and not self._tokens.begins_word(tokens[at]):
            at += 1
        return min(at, len(tokens))

    def _text_of(self, piece: _Piece, tokens: Sequence[int]) -> str:
        return " ".join(word for word, _ in self._said(piece, tokens)) if piece.name else self._tokens.text(tokens)

    def _partial(self) -> Partial:
        piece = self._piece
        words = self._said(piece, piece.written.tokens[: piece.held])
        held = _text([*self._closed, *(HeardWord(word) for word, _ in words)])
        text = _text(self._closed + self._words(piece))
        assert text.startswith(held), (held, text)
        return Partial(held, text[len(held) :])


def _text(words: Sequence[HeardWord]) -> str:
    return " ".join(word.text for word in words)


def open_asr(rescorer: Rescorer | None = None) -> LocalASR:
    """Ears over one network, shared by all talks and warm. Raises SettingError, ImportError."""
    return _ears_over(load_moonshine(), rescorer)


def _ears_over(network: Network, rescorer: Rescorer | None) -> LocalASR:
    likely = None
    if rescorer is not None:
        from assistant.asr.likely import Likely  # loads the voice's reading of numbers: only where it is wanted

        likely = Likely(rescorer)
    return LocalASR(FACTS, lambda: moonshine(network, likely), partial(_ears_over, network))
