"""Moonshine v1's two graphs: a few seconds of sound in, tokens out. No streaming, no clock, no state between calls.

The makers' package runs these files too, but decodes every token anew in every pass, on all cores, and does not report
its confidence. Here a pass gets the previous text as a *draft*: the decoder reads it in one step and writes token by
token only where it disagrees. The result is that of greedy decoding, apart from eight-bit rounding, for a third of the
work. The same step can *hold* the beginning of the draft, so words once called stable stay. It uses one thread, and
Python can run during the call.

If greedy decoding was unsure, `rivals` returns what else the sound may have said: other texts, each with its
probability according to the network. A caller who knows more can choose among them.
"""

from __future__ import annotations

import heapq
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from assistant.asr.level import gain
from assistant.asr.naming import LIKELY, Kept, Named, Naming, Step
from assistant.asr.tokens import BEGIN, END, Tokens
from assistant.base.sound import HEARING_RATE, Pcm

BEHIND_S = 0.5
"""Silence added after the sound; none is added before it. The network learnt from whole clips and invents a word if the
last one is cut off tightly, the more so with more silence in front. As the hearing stage uses it, 11.6 % of the words
were wrong instead of 20.1 % (with 0.1 s on both sides) for 116 utterances of a word or two in four synthetic voices,
and 1.8 % instead of 2.7 % for 40 sentences."""
TOKENS_PER_S = 6.5
"""The makers' limit; fast speech reaches five."""
FEWEST_TOKENS = 8

RIVALS = 8
"""The most other texts to decode. If the network is sure there are none; half of 200 requests have fewer."""
UNSURE = -1.0
"""Log probability of the greedy text below which the sound is also heard by somebody else."""
UNLIKELY = 3.0
"""A text is decoded to its end only if its log probability is at most this far below the greedy text's."""
CHOICES = 3
"""Tokens considered at each place."""

Bias = Callable[[Sequence[int], np.ndarray], np.ndarray]
"""(tokens so far, logits [V] float32) -> logits, with expected terms lifted."""
Others = Callable[[Sequence["Decoded"]], Iterable[Sequence[int]]]
"""The texts found so far, greedy first -> further texts, including the part held before them."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Tokens without begin and end, and the probability of each. `score`: the log probability of the whole text,
    including its end and the lift of expected terms."""

    tokens: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()
    score: float = 0.0


@dataclass(slots=True)
class _Path:
    """A text in progress. For each token it has the row of logits that it was taken from, raw and lifted, and its log
    probability there. `past`: the decoder's cache of begin and all tokens but the last; never changed, only cut, so
    paths share it."""

    past: Kept | None = None
    tokens: list[int] = field(default_factory=list)
    rows: list[np.ndarray] = field(default_factory=list)
    lifted: list[np.ndarray] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def take(self, token: int, row: np.ndarray, lifted: np.ndarray) -> None:
        self.tokens.append(token)
        self.rows.append(row)
        self.lifted.append(lifted)
        self.scores.append(-math.log(float(np.exp(lifted - lifted[token]).sum())))

    def parting(self, at: int, token: int) -> _Path:
        """The same path up to a place, then another token."""
        path = _Path(self.read(at), self.tokens[:at], self.rows[:at], self.lifted[:at], self.scores[:at])
        path.take(token, self.rows[at], self.lifted[at])
        return path

    def read(self, count: int) -> Kept:
        """`past` as it was after begin and `count` tokens."""
        assert self.past is not None
        return {name: a[:, :, : count + 1] if ".decoder." in name else a for name, a in self.past.items()}

    def decoded(self) -> Decoded:
        count = len(self.tokens) - (self.tokens[-1] == END)
        taken = list(zip(self.rows, self.tokens, strict=True))[:count]
        chances = tuple(float(1.0 / np.exp(row - row[token]).sum()) for row, token in taken)
        return Decoded(tuple(self.tokens[:count]), chances, sum(self.scores))


class Network:
    """One network for all talks: calls are independent, and at most half the cores decode at a time."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting would burn a core

        def load(name: str) -> Any:
            return onnxruntime.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])

        self._encoder, self._decoder = load("encoder_model.ort"), load("decoder_model_merged.ort")
        kept = [each for each in self._decoder.get_inputs() if each.name.startswith("past_key_values.")]
        self._names = [each.name for each in kept]
        self._empty = {each.name: np.zeros((1, each.shape[1], 0, each.shape[3]), np.float32) for each in kept}
        self._seats = threading.BoundedSemaphore(max(1, (os.cpu_count() or 1) // (2 * threads)))
        self.tokens = Tokens.load(folder / "tokenizer.bin")

    def write(self, sound: Pcm, draft: Sequence[int] = (), held: int = 0, bias: Bias | None = None) -> Decoded:
        """[n] samples -> what they say. `draft`: how it may begin; the first `held` tokens of it are fixed."""
        return self.read(sound, draft, held, bias).written

    def read(self, sound: Pcm, draft: Sequence[int] = (), held: int = 0, bias: Bias | None = None) -> ReadSound:
        """As `write`, for callers who may ask for rivals of the text."""
        with self._seats:
            hearing = self._hear(sound, bias)
            return ReadSound(hearing, hearing.greedy(draft, held), self._seats)

    def named(self, sound: Pcm, names: Sequence[str], least: float = LIKELY) -> tuple[Named, str] | None:
        """The name that [n] samples begin with, or have behind their first word, and the text behind it."""
        with self._seats:
            hearing = self._hear(sound, None)
            found = Naming(hearing.step, self.tokens).likeliest(names, least)
            if found is None:
                return None
            held = len(found.tokens)
            written = hearing.greedy(found.tokens, held).decoded().tokens
        return found, self.tokens.text(written[held:])

    def _hear(self, sound: Pcm, bias: Bias | None) -> _Hearing:
        louder = np.pad(sound * np.float32(gain(sound)), (0, int(BEHIND_S * HEARING_RATE)))
        mask = np.ones((1, louder.size), np.int64)
        states = self._encoder.run(None, {"input_values": louder[None], "attention_mask": mask})[0]
        fixed = {"encoder_attention_mask": mask, "encoder_hidden_states": states}

        def step(ids: Sequence[int], past: Kept | None) -> tuple[np.ndarray, Kept]:
            fed = {"input_ids": np.array([ids], np.int64), "use_cache_branch": np.array([past is not None])}
            logits, *new = self._decoder.run(None, fixed | fed | (self._empty if past is None else past))
            found = dict(zip(self._names, new, strict=True))
            if past is not None:  # the encoder's output never changes
                found = past | {name: a for name, a in found.items() if ".decoder." in name}
            return logits[0], found  # [S, V]

        return _Hearing(step, bias, int(louder.size / HEARING_RATE * TOKENS_PER_S) + 1)


class _Hearing:
    """One sound, and the texts being decoded from it. `limit`: the most tokens."""

    def __init__(self, step: Step, bias: Bias | None, limit: int) -> None:
        self.step, self._bias, self._limit = step, bias, limit

    def greedy(self, draft: Sequence[int], held: int) -> _Path:
        return self._go_on(_Path(), draft, held)

    def rivals(self, greedy: _Path, held: int) -> list[_Path]:
        """Texts that branch off from a known one where it was unsure, the likeliest branch first."""
        found = [greedy]
        least = sum(greedy.scores) - UNLIKELY
        parts = list(_partings(0, greedy, held, least))
        heapq.heapify(parts)
        for _ in range(RIVALS):
            if not parts:
                break
            _, number, at, token = heapq.heappop(parts)
            known = found[number]
            # after a different word most texts continue alike
            path = self._go_on(known.parting(at, token), known.tokens[at + 1 : -1], least=least)
            for part in _partings(len(found), path, at + 1, least):
                heapq.heappush(parts, part)
            found.append(path)
        return [path for path in found if sum(path.scores) >= least]

    def _go_on(self, path: _Path, draft: Sequence[int] = (), held: int = 0, least: float = -math.inf) -> _Path:
        """Decode to the end, or until less likely than `least`. The first `held` tokens are the draft's."""
        limit = max(FEWEST_TOKENS, held, self._limit)
        tokens = path.tokens
        while not tokens or (tokens[-1] != END and len(tokens) < limit and sum(path.scores) >= least):
            rows, path.past = self.step([tokens[-1] if tokens else BEGIN, *draft], path.past)
            for row, written in zip(rows, (*draft, None), strict=True):
                self._take(path, row, written if len(tokens) < held else None)  # a row predicts the next token
                if tokens[-1] != written:
                    break
            path.past, draft = path.read(len(tokens) - 1), ()  # begin and the part of the draft that agrees
        return path

    def _take(self, path: _Path, row: np.ndarray, token: int | None = None) -> None:
        lifted = row if self._bias is None else self._bias(path.tokens, row)
        path.take(int(lifted.argmax()) if token is None else token, row, lifted)


class ReadSound:
    """A sound that was read: its text, and what else it may have said."""

    def __init__(self, hearing: _Hearing, greedy: _Path, seats: threading.BoundedSemaphore) -> None:
        self._hearing, self._greedy, self._seats = hearing, greedy, seats
        self.written = greedy.decoded()

    def rivals(self, held: int = 0, others: Others = lambda found: ()) -> Sequence[Decoded]:
        """The text, and other texts after its first `held` tokens. `others`: called for more texts where the first is
        unsure; it may read another sound."""
        with self._seats:
            found = [path.decoded() for path in self._hearing.rivals(self._greedy, held)]
        if sum(self._greedy.scores) >= UNSURE or not (more := list(others(found))):
            return found
        with self._seats:
            return found + [self._hearing.greedy(tokens, len(tokens)).decoded() for tokens in more]


def _partings(number: int, path: _Path, begin: int, least: float) -> Iterator[tuple[float, int, int, int]]:
    """Places where a path might have gone otherwise: minus the log probability of that, the path, place, token."""
    so_far = sum(path.scores[:begin])
    for at in range(begin, len(path.tokens)):
        row, here = path.lifted[at], path.scores[at]
        taken = path.tokens[at]
        for token in np.argpartition(-row, CHOICES)[:CHOICES]:
            score = so_far + here + float(row[token] - row[taken])
            if token != taken and score > least:
                yield -score, number, at, int(token)
        so_far += here
