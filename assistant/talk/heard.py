"""Computes which words of a reply were heard, if its sound stopped at a certain sample.

A reply's sound is a row of pieces, each with its span of the reply's text and with marks (this character starts
at this sample) as far as the voice could tell. Between marks, and in a voice without any, time is shared out in
proportion to the characters. A word counts as heard when more than half of its sound was played. A piece without
sound, such as the lines of a code block, counts with the piece before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from assistant.contracts import Mark, Uttered

SAMPLES_PER_CHAR = 24_000 // 14
"""The length of a character in a piece that is unfinished and has no marks: 14 characters a second."""

_WORD = re.compile(r"\S+\s*")


@dataclass(frozen=True, slots=True)
class SpokenPiece:
    """One piece of a reply's sound. `start` and `end` are its span of the reply's text; samples count at 24 kHz.

    `samples` grows while the piece is being spoken; `complete` means that it has all of its sound.
    """

    piece_id: str
    text: str
    start: int
    end: int
    start_sample: int
    samples: int = 0
    marks: tuple[Mark, ...] = ()
    complete: bool = False


@dataclass(frozen=True, slots=True)
class HeardCut:
    """The first `chars` characters of the reply's text were heard; the voice is to remember `uttered`."""

    chars: int
    samples: int
    uttered: tuple[Uttered, ...]


def heard(pieces: Sequence[SpokenPiece], played_samples: int) -> HeardCut:
    """The heard part of these pieces after `played_samples` of their sound, clamped to their length."""
    total = sum(piece.samples for piece in pieces)
    played = max(0, min(played_samples, total))
    chars = 0
    uttered: list[Uttered] = []
    for piece in pieces:
        inside = min(played - piece.start_sample, piece.samples)
        whole = piece.complete and inside >= piece.samples
        if inside <= 0 and not (whole and played):
            break
        if inside > 0:
            uttered.append(Uttered(piece.piece_id, piece.text, inside))
        count = piece.end - piece.start if whole else chars_heard(piece, inside)
        if count:
            chars = piece.start + count
    return HeardCut(chars, played, tuple(uttered))


def chars_heard(piece: SpokenPiece, samples: int) -> int:
    """How many characters of the piece count as heard after `samples` of it: whole words, without trailing space."""
    end = 0
    for word in _WORD.finditer(piece.text):
        first = sample_of_char(piece, word.start())
        bare_end = word.start() + len(word.group().rstrip())
        last = sample_of_char(piece, word.end())
        if samples * 2 <= first + last:
            break
        end = bare_end
    return end


def sample_of_char(piece: SpokenPiece, char: int) -> int:
    """When this character of the piece begins to sound, in samples of the piece."""
    anchors = _anchors(piece)
    for (c0, s0), (c1, s1) in pairwise(anchors):
        if char <= c1:
            return s0 if c1 == c0 else s0 + (s1 - s0) * (char - c0) // (c1 - c0)
    last_char, last_sample = anchors[-1]
    return last_sample + (char - last_char) * SAMPLES_PER_CHAR


def _anchors(piece: SpokenPiece) -> list[tuple[int, int]]:
    """(char, sample) pairs, both rising, from the start of the piece as far as they are known."""
    anchors = [(0, 0)]
    for mark in piece.marks:
        if mark.char > anchors[-1][0] and mark.sample >= anchors[-1][1]:
            anchors.append((mark.char, mark.sample))
    if piece.complete and len(piece.text) > anchors[-1][0]:
        anchors.append((len(piece.text), max(piece.samples, anchors[-1][1])))
    return anchors


def cut_pieces(pieces: Sequence[SpokenPiece], cut: HeardCut) -> tuple[SpokenPiece, ...]:
    """The pieces after a cut: later ones are gone and the last one is shortened, so that cuts can be repeated."""
    said = {one.piece_id: one.samples for one in cut.uttered}
    kept = []
    for piece in pieces:
        samples = said.get(piece.piece_id, 0)
        if not samples and (piece.samples or piece.end > cut.chars):
            break
        kept.append(piece if samples >= piece.samples else replace(piece, samples=samples, complete=False))
    return tuple(kept)
