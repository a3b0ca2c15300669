"""Writes for the captured steps: prompts, the text of a piece, the row loop's place, and sampling."""

from collections.abc import Sequence

import torch
from torch import Tensor

from capsules.nn import embed
from tts_engine.errors import TextRefused
from tts_engine.frontend import Encoded, Frontend
from tts_engine.graphs import Graphs
from tts_engine.prompt import ROW, SpeechPrompt
from tts_engine.sampling import SamplingLike, check_sampling
from tts_engine.state import MAX_PIECE
from tts_engine.steps import Steps


class Inputs:
    """The only place that writes to state and io buffers between replays."""

    def __init__(self, steps: Steps, graphs: Graphs, text_id: int) -> None:
        self._config, self._state, self._graphs = steps.config, steps.state, graphs
        self._text_id, self._audio_id, self._words = text_id, steps.audio_id, steps.weights.text

    def write_sampling(self, sampling: SamplingLike) -> None:
        """Set how all rows from now on are drawn. Raises EngineMisuse."""
        check_sampling(sampling)
        s, cursor, q = self._state, self._config.cursor, self._config.audio.codebooks
        for book, part in enumerate(self._config.temperatures):
            s.temperature[book].fill_(part * sampling.temperature)
        s.top_k[:q].fill_(sampling.top_k)
        s.temperature[q:].fill_(cursor.temperature if cursor and sampling.temperature > 0 else 0.0)
        s.top_k[q:].zero_()
        s.top_p.fill_(sampling.top_p)
        s.min_p.zero_()
        s.seed.fill_((sampling.seed + 2**63) % 2**64 - 2**63)  # any integer, as 64 bits

    def prefill(self, position: int, prompt: SpeechPrompt, track: Tensor | None = None) -> int:
        """Fold a prompt in chunks from a position on; return the position behind it.

        track  [T, 3] of the cursor, or None if no cursor counts
        """
        s, done = self._state, 0
        for real, chunk in self._graphs.shapes.parts(len(prompt)):
            ids = torch.zeros(chunk, dtype=torch.int64)
            rows = torch.zeros(chunk, self._config.audio.codebooks, dtype=torch.int64)
            cursor = torch.zeros(chunk, 3, dtype=torch.int64)
            ids[:real], rows[:real] = prompt.ids[done : done + real], prompt.rows[done : done + real]
            if track is not None:
                cursor[:real] = track[done : done + real]
            s.ids[:chunk].copy_(ids)
            s.words[:chunk].copy_(embed(ids.clamp(min=0), self._words))
            s.feed[:chunk].copy_(rows)
            s.feed_track[:chunk].copy_(cursor)
            s.filled.fill_(real)
            self._graphs.prefill(position + done, chunk)
            done += real
        return position + done

    def set_position(self, position: int, row: Sequence[int], count: int, total: int, cursor: Sequence[int]) -> None:
        """Write everything that is live as a whole and belongs to the row loop."""
        s = self._state
        s.position.fill_(position)
        s.row.copy_(torch.tensor(row, dtype=torch.int64))
        s.count.fill_(count)
        s.total.fill_(total)
        s.cursor.copy_(torch.tensor(cursor, dtype=torch.int64))

    def set_text(self, ids: Sequence[int]) -> None:
        """Write the text ids of the piece under way, which the cursor moves over."""
        text = torch.full((1, MAX_PIECE + 2), self._audio_id, dtype=torch.int64)
        text[0, 0] = self._text_id
        text[0, 1 : 1 + len(ids)] = torch.tensor(ids, dtype=torch.int64)
        self._state.text.copy_(text)
        self._state.length.fill_(len(ids))


def encode_piece(frontend: Frontend, text: str) -> Encoded:
    """The ids of one piece. Raises TextRefused if there is nothing to say, or too much at once."""
    encoded = frontend.text_ids(text)
    if not encoded.ids:
        raise TextRefused(f"nothing to say in {text[:40]!r}")
    if len(encoded.ids) > MAX_PIECE:
        raise TextRefused(f"{len(encoded.ids)} text ids in one piece; at most {MAX_PIECE}. Split it into sentences.")
    if ROW in encoded.ids:
        raise TextRefused("the front end made an id that is reserved for rows")
    return encoded
