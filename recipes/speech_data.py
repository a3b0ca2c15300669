"""The small voice's training data: codes of the teacher's speech under a text cursor, as sequences and batches.

A sequence is the engine's input: `<|tts|>`, usually a second of reference rows, then one to three pieces of
`<|text|>` phones `<|audio|>` rows. The cursor's track comes from the teacher's alignment.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recipes.codec import load_codec
from recipes.teacher import SAMPLE_RATE, load_shard
from tts_engine.backbone import CursorTrack
from tts_engine.config import TTSConfig
from tts_engine.phones import PHONES, SPECIAL_TOKENS

FRAME_S = 0.04
LATE_S = 0.02
"""Every sentence is encoded twice, the second time from here on: other codes of the same sound, so that a small set
is not learnt by heart."""


@dataclass(frozen=True)
class Utterance:
    """ids [N] phone ids; codes [Q, T]; cursor [T]: the phone that sounds in the middle of each frame."""

    voice: str
    ids: NDArray[np.int64]
    codes: NDArray[np.int64]
    cursor: NDArray[np.int64]


def align(phones: Sequence[str], ends: Sequence[float] | NDArray[np.float64], frames: int) -> NDArray[np.int64]:
    """The index of the phone at the centre of each frame; the last phone holds to the end."""
    centres = (np.arange(frames) + 0.5) * FRAME_S
    return np.searchsorted(np.asarray(ends), centres, side="right").clip(0, len(phones) - 1).astype(np.int64)


def encode_shards(work: Path) -> None:
    """Codes of every shard beside it, as shardNNNN.codes.pt and shardNNNN.late.pt: a list of [Q, T] int16."""
    codec = load_codec(work / "codec.pt")
    for path in sorted(work.glob("shard[0-9][0-9][0-9][0-9].npz")):
        for suffix, begin in ((".codes.pt", 0), (".late.pt", round(LATE_S * SAMPLE_RATE))):
            out = path.with_suffix(suffix)
            if out.exists():
                continue
            waves = [torch.from_numpy(a[begin:].astype(np.float32) / 32767) for a in load_shard(path)[0]]
            with torch.no_grad():
                torch.save([codec.to_codes(wave[None])[0].short() for wave in waves], out)
            print(out.name, flush=True)


def load_utterances(work: Path, late: bool = False) -> list[Utterance]:
    """All encoded utterances, in order of the shards; with `late` those of the second encoding."""
    ids = {phone: len(SPECIAL_TOKENS) + i for i, phone in enumerate(PHONES)}
    found = []
    for path in sorted(work.glob("shard*.late.pt" if late else "shard*.codes.pt")):
        codes = torch.load(path, weights_only=True)
        with np.load(path.with_name(path.name.split(".")[0] + ".npz")) as shard:
            facts = json.loads(str(shard["facts"]))
        for code, fact in zip(codes, facts, strict=True):
            ends = np.asarray(fact["ends"]) - late * LATE_S
            track = align(fact["phones"], ends, code.shape[1])
            phones = np.array([ids[p] for p in fact["phones"]])
            found.append(Utterance(fact["voice"], phones, code.numpy().astype(np.int64), track))
    return found


def split_at_pause(u: Utterance, pause: int, first: int) -> list[Utterance]:
    """Cut an utterance after a comma: so training includes talk in pieces, as when text arrives in pieces.

    The last frame of the pause goes to the second piece, as its leading silence `first`.
    """
    places = np.flatnonzero(u.ids[1:-2] == pause) + 1
    if not len(places):
        return [u]
    at = int(places[len(places) // 2])
    frames = np.flatnonzero(u.cursor == at)
    if len(frames) < 2 or len(u.ids) - at < 6:
        return [u]
    cut = int(frames[-1])
    rest = np.concatenate([[0], u.cursor[cut + 1 :] - at])
    return [
        Utterance(u.voice, u.ids[: at + 1], u.codes[:, :cut], u.cursor[:cut]),
        Utterance(u.voice, np.concatenate([[first], u.ids[at + 1 :]]), u.codes[:, cut:], rest),
    ]


@dataclass(frozen=True)
class Batch:
    """One training batch; positions as in `forward_train`. Targets are -1 where nothing is learnt."""

    tokens: Tensor  # [B, T]
    rows: Tensor  # [B, T, Q] as fed
    targets: Tensor  # [B, T, Q] codes of the row that each position predicts
    advance: Tensor  # [B, T]
    track: CursorTrack


class Positions:
    """The positions of one sequence as they are written: the input at each, and the target, if any."""

    def __init__(self, codebooks: int) -> None:
        self._codebooks = codebooks
        self.tokens: list[int] = []
        self.fed: list[NDArray[Any]] = []
        self.targets: list[NDArray[Any]] = []
        self.advance: list[int] = []
        self.index: list[int] = []
        self.spent: list[int] = []
        self.active: list[int] = []

    def add(self, token: int, row: NDArray[np.int64] | None = None) -> None:
        """Add a token, or -1 and a row of codes. It has no target yet."""
        self.tokens.append(token)
        self.fed.append(np.zeros(self._codebooks, np.int64) if row is None else row)
        self.targets.append(np.full(self._codebooks, -1))
        for track, value in ((self.advance, -1), (self.index, 0), (self.spent, 0), (self.active, 0)):
            track.append(value)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "tokens": np.array(self.tokens),
            "rows": np.array(self.fed),
            "targets": np.array(self.targets),
            "advance": np.array(self.advance),
            "index": np.array(self.index),
            "spent": np.array(self.spent),
            "active": np.array(self.active, dtype=bool),
        }


class Builder:
    """Utterances to padded batches."""

    def __init__(self, config: TTSConfig) -> None:
        self.audio = config.audio
        assert config.cursor is not None
        self.ahead = max(config.cursor.offsets)
        self.max_advance = config.cursor.max_advance
        s = config.special_tokens
        self.tts, self.text, self.begin, self.reference = (
            s["<|tts|>"],
            s["<|text|>"],
            s["<|audio|>"],
            s["<|ref_audio|>"],
        )

    def rows(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """[Q, T] -> [T + Q - 1, Q] with BOC and EOC triangles, as `delay` makes them."""
        q, frames = codes.shape
        rows = np.full((frames + q - 1, q), self.audio.eoc)
        for c in range(q):
            rows[:c, c] = self.audio.boc
            rows[c : c + frames, c] = codes[c]
        return rows

    def sequence(self, pieces: Sequence[Utterance], reference: NDArray[np.int64] | None) -> dict[str, NDArray[Any]]:
        """One sequence of parallel arrays over its positions, and the cursor's text."""
        positions = Positions(self.audio.codebooks)
        text: list[int] = []
        positions.add(self.tts)
        if reference is not None:
            positions.add(self.reference)
            for row in self.rows(reference):
                positions.add(-1, row)
        for piece in pieces:
            base = len(text)
            text += [self.text, *piece.ids.tolist(), *[self.begin] * (self.ahead + 1)]
            positions.add(self.text)
            for phone in piece.ids:
                positions.add(int(phone))
            positions.add(self.begin)
            self._teach(positions, piece, base)
        return positions.arrays() | {"text": np.array(text)}

    def _teach(self, to: Positions, piece: Utterance, base: int) -> None:
        """Add a piece's rows, each predicted at the position of the row before, or of <|audio|>. `base`: where its text
        begins in that of the sequence."""
        count, frames = len(piece.ids), piece.codes.shape[1]
        held = 0
        for r, row in enumerate(self.rows(piece.codes)):
            at = len(to.tokens) - 1
            here = int(piece.cursor[r]) if r < frames else count
            held = held + 1 if r and here == to.index[at - 1] - base and to.active[at - 1] else 0
            to.index[at], to.spent[at], to.active[at] = base + here, held, 1
            to.targets[at] = np.where(row < self.audio.size, row, -1)
            if r < frames:
                after = int(piece.cursor[r + 1]) if r + 1 < frames else count
                to.advance[at] = min(after - here, self.max_advance)
            to.add(-1, row)

    def batch(self, sequences: Sequence[dict[str, NDArray[Any]]]) -> Batch:
        """Pad on the right: nothing is learnt there, and causal attention never looks there."""

        def pad(name: str, value: int) -> Tensor:
            size = max(len(s[name]) for s in sequences)
            arrays = [
                np.concatenate([s[name], np.full((size - len(s[name]), *s[name].shape[1:]), value)]) for s in sequences
            ]
            return torch.from_numpy(np.stack(arrays))

        track = CursorTrack(pad("text", self.begin), pad("index", 0), pad("spent", 0), pad("active", 0).bool())
        return Batch(pad("tokens", self.begin), pad("rows", 0), pad("targets", -1), pad("advance", -1), track)
