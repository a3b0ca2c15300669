"""Decodes the next frames to sound: windows of the codec over the pieces of a session."""

from dataclasses import dataclass

import torch
from torch import Tensor

from capsules.arguments import a_kind
from tts_engine.config import FRAME_SAMPLES
from tts_engine.errors import EngineMisuse
from tts_engine.generator import Generator
from tts_engine.graphs import Graphs
from tts_engine.guards import SILENCE_PEAK, SILENT_FRAMES
from tts_engine.piece import Piece
from tts_engine.steps import Steps
from tts_engine.streaming import POLICIES, Costs, Schedule, Window, next_window, schedule_for


@dataclass(frozen=True, eq=False)
class Sound:
    """pcm float32 [960 · frames] on the host: frames [first, first + frames) of piece `piece` of the session."""

    pcm: Tensor
    piece: int
    first: int
    frames: int


class Chunks:
    """The sound of the session that a generator speaks, chunk by chunk."""

    def __init__(self, generator: Generator, steps: Steps, graphs: Graphs) -> None:
        self._generator, self._graphs = generator, graphs
        self._audio, self._codec, self._state = steps.config.audio, steps.codec, steps.state
        self._costs: Costs | None = None
        self._schedules: dict[str, Schedule] = {}

    def fit(self, costs: Costs | None) -> None:
        """Choose the first chunks for a machine of this pace. None: the initial ones."""
        self._costs = costs
        self._schedules.clear()

    def schedule(self, policy: str) -> Schedule:
        """The chunks of a first-chunk policy. Raises EngineMisuse for an unknown one."""
        a_kind(EngineMisuse, "first_chunk", policy, str, f"one of {', '.join(POLICIES)}")
        if policy not in self._schedules:
            left, right = self._codec.left_frames, self._codec.right_frames
            self._schedules[policy] = schedule_for(policy, left, right, self._costs)
        return self._schedules[policy]

    def decode_next(self) -> Sound | None:
        """Decode the next chunk, if everything it needs is known."""
        found = self._next_window()
        if found is None:
            return None
        index, piece, window = found
        s, q = self._state, self._audio.codebooks
        codes = piece.codes(self._audio, window.origin, window.origin + window.size)
        s.codes[: q * window.size].copy_(codes.flatten())
        s.valid.copy_(torch.tensor(window.valid))
        self._graphs.window(window.size)
        first, frames = window.start - window.origin, window.end - window.start
        pcm = s.pcm[FRAME_SAMPLES * first : FRAME_SAMPLES * (first + frames)].to("cpu", copy=True)
        piece.emitted = window.end
        self._guard_silence(piece, pcm, frames)
        return Sound(pcm, index, window.start, frames)

    def _next_window(self) -> tuple[int, Piece, Window] | None:
        for index, piece in enumerate(self._generator.session.pieces):
            if piece.total is not None and piece.emitted >= piece.total:
                continue
            window = next_window(
                self.schedule(piece.policy),
                emitted=piece.emitted,
                complete=piece.complete(self._audio),
                begun=piece.begun(),
                total=piece.total,
                left=self._codec.left_frames,
                right=self._codec.right_frames,
            )
            return None if window is None else (index, piece, window)
        return None

    def _guard_silence(self, piece: Piece, pcm: Tensor, frames: int) -> None:
        piece.silent = piece.silent + frames if float(pcm.abs().max()) < SILENCE_PEAK else 0
        if piece.silent >= SILENT_FRAMES and piece.total is None and piece is self._generator.piece:
            self._generator.end_early(piece, piece.emitted, "silence")
