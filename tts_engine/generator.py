"""One session of speech: pieces of text in, rows out, and the ways back. Knows state and steps, not sound.

A session is a voice prefix and then pieces. Each piece is grounded on all before it: their text and rows stay in the
KV cache. `cut` goes back to the state in which a piece ended where it was heard to end. Frames are counted through the
whole session.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from capsules.nn import embed
from tts_engine.delay import delay
from tts_engine.errors import ContextFull, EngineMisuse, RetraceFailed, TextRefused
from tts_engine.frontend import Encoded, Frontend
from tts_engine.graphs import Graphs
from tts_engine.guards import SAME_ROWS, is_stuck, row_budget
from tts_engine.piece import Piece, SpeechSession
from tts_engine.prompt import ROW, SpeechPrompt, join, row_prompt, text_prompt, voice_prompt
from tts_engine.sampling import SamplingLike, check_sampling
from tts_engine.state import ENDLESS, MAX_PIECE
from tts_engine.steps import Steps

HISTORY = 4  # pieces kept when the context is full
ROWS_AT_ONCE = 8  # of a piece that is made again
SHORTEST_BUDGET = 64  # rows; with less room than this a piece is refused


@dataclass(frozen=True)
class SessionFacts:
    """A session, and what the row loop held of it: enough to make its state again. All of it is JSON."""

    session: dict[str, Any]
    text: list[int]
    row: list[int]
    count: int
    total: int
    cursor: list[int]


@dataclass(frozen=True)
class Stepped:
    """What one step did. `ended` is "" or why the piece ended with this row (see Piece)."""

    kind: Literal["prefill", "row", "idle"]
    ended: str = ""


class Generator:
    """Synchronous; one thread at a time."""

    def __init__(self, frontend: Frontend, steps: Steps, graphs: Graphs, max_positions: int) -> None:
        self._config, self._frontend, self._state, self._graphs = steps.config, frontend, steps.state, graphs
        self._look_ahead = steps.codec.right_frames  # frames after a frame that its sound depends on
        self._audio, self._words = steps.config.audio, steps.weights.text
        self._audio_id = frontend.specials["<|audio|>"]
        self._text_id = frontend.specials["<|text|>"]
        self._max_positions = max_positions
        self.session = SpeechSession({"codes": None, "transcript": None, "name": ""})

    # -------------------------------------------------------------------------------- beginning

    def open(self, codes: Tensor | None, transcript: str | None, name: str = "") -> None:
        """A fresh session of a voice. codes [Q, T] int64 of its reference, or None for whatever voice comes."""
        prompt = voice_prompt(self._frontend, self._audio, codes, transcript)
        self._check_room(0, len(prompt) + SHORTEST_BUDGET, "the reference")
        facts = {"codes": None if codes is None else codes.tolist(), "transcript": transcript, "name": name}
        self.session = SpeechSession(facts)
        self._set_position(0, [0] * self._audio.codebooks, 0, ENDLESS, [0, 0])
        self._set_text(())
        self._feed(prompt)
        self.session.prefix = self.session.position

    def set_sampling(self, sampling: SamplingLike) -> None:
        """Of all rows from now on. Raises EngineMisuse."""
        check_sampling(sampling)
        s, cursor, q = self._state, self._config.cursor, self._audio.codebooks
        for book, part in enumerate(self._config.temperatures):
            s.temperature[book].fill_(part * sampling.temperature)
        s.top_k[:q].fill_(sampling.top_k)
        s.temperature[q:].fill_(cursor.temperature if cursor and sampling.temperature > 0 else 0.0)
        s.top_k[q:].zero_()
        s.top_p.fill_(sampling.top_p)
        s.min_p.zero_()
        s.seed.fill_((sampling.seed + 2**63) % 2**64 - 2**63)  # any integer, as 64 bits

    def begin(self, text: str, policy: str, max_rows: int | None = None) -> None:
        """Say this after all that is under way. Raises TextRefused if there is nothing to say or far too much."""
        count = len(self._encode(text).ids)
        budget = max_rows or row_budget(text, self._audio.delay)
        if count + SHORTEST_BUDGET + self.session.prefix > self._max_positions:
            raise TextRefused(f"{count} text ids do not fit into {self._max_positions} positions; split the text")
        self.session.queue.append([text, policy, budget])

    def roomy(self, text: str) -> bool:
        """Whether `begin` of this, while nothing is under way, would leave all pieces in the context."""
        need = self._need(len(self._encode(text).ids)) + min(row_budget(text, self._audio.delay), 4 * SHORTEST_BUDGET)
        return self.session.position + need <= self._max_positions

    def _need(self, ids: int) -> int:
        """Positions of a piece of so many text ids, its rows left out."""
        return len(self.session.pending) + ids + 2 + self._audio.codebooks

    @property
    def piece(self) -> Piece | None:
        """The piece that is being spoken."""
        last = self.session.pieces[-1] if self.session.pieces else None
        return last if last is not None and not last.ended else None

    @property
    def busy(self) -> bool:
        """Whether a step would do anything."""
        return self.piece is not None or bool(self.session.queue)

    # -------------------------------------------------------------------------------- going on

    def step(self) -> Stepped:
        """One unit of work: the prefill of the next piece, or one row."""
        piece = self.piece
        if piece is not None:
            return Stepped("row", self._row(piece))
        if not self.session.queue:
            return Stepped("idle")
        text, policy, budget = self.session.queue.pop(0)
        self._begin_piece(text, policy, budget)
        return Stepped("prefill")

    def _begin_piece(self, text: str, policy: str, budget: int) -> None:
        encoded = self._encode(text)
        session = self.session
        need = self._need(len(encoded.ids))
        if session.position + need + min(budget, 4 * SHORTEST_BUDGET) > self._max_positions:
            self._compact(need + min(budget, 4 * SHORTEST_BUDGET))
        budget = min(budget, self._max_positions - session.position - need)
        start, lead_in = session.position, session.pending
        self._open_piece(encoded.ids, lead_in)
        words = [[w.char_start, w.char_end, w.first, w.end] for w in encoded.words]
        session.pieces.append(Piece(text, list(encoded.ids), words, policy, budget, start, session.position, lead_in))

    def _open_piece(self, ids: Sequence[int], lead_in: list[list[int]]) -> None:
        """Feed what closes the piece before and the text of the next, up to its first row."""
        self._set_text(ids)
        rows = torch.tensor(lead_in, dtype=torch.int64).view(-1, self._audio.codebooks)
        self._feed(join(row_prompt(rows), text_prompt([self._text_id, *ids], self._audio)))
        self.session.pending = []
        self._set_position(self.session.position, [0] * self._audio.codebooks, 0, ENDLESS, [0, 0])

    def _row(self, piece: Piece) -> str:
        self._graphs.decode(self.session.position)
        self.session.position += 1
        q = self._audio.codebooks
        out = self._state.out.tolist()
        total, cursor, finite = out[2 * q + 1], out[2 * q + 2 : 2 * q + 4], out[2 * q + 4]
        piece.rows.append(out[:q])
        piece.track.append(cursor)
        if total < ENDLESS:
            piece.total = total
            if len(piece.rows) == total + self._audio.delay:
                piece.ended = "end"
                self.session.pending = [piece.rows[-1]]
        elif not finite:
            self._close(len(self.session.pieces) - 1, piece.complete(self._audio), "numbers")
        elif is_stuck(piece.rows):
            self.end_early(piece, piece.complete(self._audio) - SAME_ROWS + self._audio.codebooks, "repeat")
        elif len(piece.rows) >= piece.budget:
            self._close(len(self.session.pieces) - 1, piece.complete(self._audio), "budget")
        return piece.ended

    # -------------------------------------------------------------------------------- going back

    @property
    def frames(self) -> int:
        """Complete frames of the session so far."""
        return self.session.dropped + sum(p.complete(self._audio) for p in self.session.pieces)

    def locate(self, frame: int) -> tuple[int, int]:
        """(piece, frames of it) such that `frame` frames lie before; 0 frames in only at the very start.

        Raises EngineMisuse for a frame that is not there, or no longer.
        """
        if not self.session.dropped <= frame <= self.frames:
            raise EngineMisuse(f"frame {frame} is not held; frames {self.session.dropped} to {self.frames} are")
        left = frame - self.session.dropped
        for i, piece in enumerate(self.session.pieces):
            if left <= piece.complete(self._audio):
                return i, left
            left -= piece.complete(self._audio)
        return 0, 0

    def cut(self, frame: int, text: str | None = None) -> None:
        """What came after `frame` was never said: the piece ends there, and the next one may begin.

        text  what the listener heard of the piece, to stand in the context in place of all of it (fed anew);
              None leaves the text and closes the rows where they are (nothing is fed until the next piece)
        """
        at, frames = self.locate(frame)
        self.session.queue = []
        if not self.session.pieces:
            return
        piece = self.session.pieces[at]
        if text is None and frames == piece.total and piece.ended:
            del self.session.pieces[at + 1 :]
            self._rest_after(piece)
        elif text is None or frames == 0:
            self._close(at, frames, "cut")
        else:
            self._close(at, frames, "cut")
            encoded = self._encode(text)
            self.session.pieces.pop()
            self._set_position(piece.start, [0] * self._audio.codebooks, 0, ENDLESS, [0, 0])
            self.session.pending = piece.lead_in
            self._refeed(piece, text, encoded)

    def cancel(self) -> None:
        """Stop after the row that was just made; everything made so far stays."""
        self.session.queue = []
        if self.piece is not None:
            self._close(len(self.session.pieces) - 1, self.piece.complete(self._audio), "cut")

    def end_early(self, piece: Piece, frames: int, reason: str) -> None:
        """End the piece under way at a frame, or later: what was given out keeps the frames that it was decoded with.

        So all sound of a piece that a guard ended is still that of its codes, decoded in one shot.
        """
        assert piece is self.piece
        seen = min(piece.emitted + self._look_ahead, piece.complete(self._audio)) if piece.emitted else 0
        self._close(len(self.session.pieces) - 1, max(frames, seen), reason)

    def _close(self, at: int, frames: int, reason: str) -> None:
        """Piece `at` has ended after `frames` frames; what was fed of them stays, the closing rows wait to be fed."""
        session, audio = self.session, self._audio
        piece = session.pieces[at]
        del session.pieces[at + (1 if frames else 0) :]
        if not frames:
            session.pending = piece.lead_in
            self._set_text(())
            self._set_position(piece.start, [0] * audio.codebooks, 0, ENDLESS, [0, 0])
            return
        piece.rows = delay(piece.codes(audio, 0, frames), audio).tolist()
        del piece.track[frames + 1 :]
        piece.total, piece.ended, piece.emitted = frames, reason, min(piece.emitted, frames)
        self._rest_after(piece)

    def _rest_after(self, piece: Piece) -> None:
        """The state between pieces, after one that has ended."""
        assert piece.total is not None
        fed = len(piece.rows) - 1 if piece.ended == "end" else piece.total
        self.session.pending = piece.rows[fed:]
        self._set_text(piece.ids)
        self._set_position(piece.audio + 1 + fed, piece.rows[-1], len(piece.rows), piece.total, piece.track[-1])

    # -------------------------------------------------------------------------------- moving state

    def adopt(self, facts: dict[str, Any]) -> None:
        """Host facts of a capsule whose bytes have been put back."""
        self.session = SpeechSession.from_json(facts)

    def rebuild(self, facts: dict[str, Any]) -> None:
        """Feed a whole session anew, where its bytes do not fit this engine. A piece under way is closed."""
        old = SpeechSession.from_json(facts)
        codes = old.voice["codes"]
        self.open(None if codes is None else torch.tensor(codes), old.voice["transcript"], old.voice["name"])
        self.session.dropped = old.dropped
        for piece in old.pieces:
            self._refeed(piece, piece.text, self._encode(piece.text))

    def facts(self) -> SessionFacts:
        """What `retrace` needs."""
        s, length = self._state, int(self._state.length.item())
        at = (s.row.tolist(), int(s.count.item()), int(s.total.item()), s.cursor.tolist())
        return SessionFacts(self.session.to_json(), s.text[0, 1 : 1 + length].tolist(), *at)

    def retrace(self, facts: SessionFacts) -> Iterator[None]:
        """Make the state of these facts again, bit for bit: every piece by the calls that made it, row by row. It may
        be a session that goes on from the present one; some rows are made between two yields.

        Raises RetraceFailed where a row comes out otherwise than it did: another model, another machine.
        """
        old = SpeechSession.from_json(facts.session)
        begun, old.voice = len(self.session.pieces), self.session.voice
        if self.session.prefix != old.prefix or self.session.pieces != old.pieces[:begun]:
            raise RetraceFailed("the voice that is open is not the one of the session")
        self.session.dropped = old.dropped
        for piece in old.pieces[begun:]:
            self.session.pending = piece.lead_in
            if piece.refed:
                self._set_position(piece.start, [0] * self._audio.codebooks, 0, ENDLESS, [0, 0])
                self._refeed(piece, piece.text, self._encode(piece.text))
            else:
                yield from self._respeak(piece)
        self.session = old
        self._set_text(facts.text)
        self._set_position(old.position, facts.row, facts.count, facts.total, facts.cursor)

    def _respeak(self, piece: Piece) -> Iterator[None]:
        """The calls that made a piece: its text at once, then every row that was fed, and drawn, one by one."""
        self._set_position(piece.start, [0] * self._audio.codebooks, 0, ENDLESS, [0, 0])
        self._open_piece(piece.ids, piece.lead_in)
        fed = len(piece.rows) if piece.ended in ("", "end") or piece.total is None else piece.total + 1
        known = len(piece.rows) if piece.ended in ("", "end") else fed - 1  # behind a cut stand rows that close it
        for at in range(fed):
            self._graphs.decode(self.session.position)
            self.session.position += 1
            if at < known and self._state.row.tolist() != piece.rows[at]:
                raise RetraceFailed(f"row {at} of {piece.text[:40]!r} came out otherwise")
            if at % ROWS_AT_ONCE == ROWS_AT_ONCE - 1:
                yield
        self.session.pieces.append(piece)

    def _compact(self, need: int) -> None:
        """Make room by keeping the voice and the last pieces only. Raises ContextFull if that is not enough."""
        pieces = self.session.pieces
        for keep in range(min(HISTORY, len(pieces)), -1, -1):
            kept = pieces[len(pieces) - keep :]
            length = sum(len(p.ids) + 2 + len(p.rows) for p in kept)
            if self.session.prefix + length + need <= self._max_positions:
                break
        else:
            raise ContextFull(
                f"{need} positions are needed beside the voice's {self.session.prefix}, of {self._max_positions}"
            )
        self.session.dropped += sum(p.complete(self._audio) for p in pieces[: len(pieces) - keep])
        self.session.pieces, self.session.pending = [], []
        self._set_position(self.session.prefix, [0] * self._audio.codebooks, 0, ENDLESS, [0, 0])
        for piece in kept:
            self._refeed(piece, piece.text, self._encode(piece.text))

    def _refeed(self, piece: Piece, text: str, encoded: Encoded) -> None:
        """Feed an ended (or stopped) piece at the present position: text and all rows, closing ones included."""
        session, audio = self.session, self._audio
        frames = piece.complete(audio)
        if not frames:
            return
        rows = delay(piece.codes(audio, 0, frames), audio)
        start, lead_in = session.position, session.pending
        self._set_text(encoded.ids)
        lead = row_prompt(torch.tensor(lead_in, dtype=torch.int64).view(-1, audio.codebooks))
        opening = text_prompt([self._text_id, *encoded.ids, self._audio_id], audio)
        self._feed(join(lead, opening, row_prompt(rows)), self._spoken_track(piece, len(encoded.ids), len(lead)))
        words = [[w.char_start, w.char_end, w.first, w.end] for w in encoded.words]
        at = start + len(lead) + len(opening) - 1
        made = Piece(text, list(encoded.ids), words, piece.policy, piece.budget, start, at, lead_in)
        made.rows, made.track, made.total = rows.tolist(), piece.track[: frames + 1], frames
        made.ended, made.emitted, made.refed = piece.ended or "cut", min(piece.emitted, frames), True
        session.pieces.append(made)
        session.pending = []
        self._set_position(session.position, made.rows[-1], len(made.rows), frames, made.track[-1])

    def _spoken_track(self, piece: Piece, length: int, lead: int) -> Tensor:
        """[T, 3] cursor inputs of a piece that is fed again: rows after the last frame find the cursor at the end."""
        frames = piece.complete(self._audio)
        spoken = [[min(index, length), spent, 1] for index, spent in piece.track[:frames]]
        after = [[length, i, 1] for i in range(self._audio.delay)]
        opening = [[0, 0, 0]] * (lead + 1 + length)
        return torch.tensor([*opening, *spoken, *after, [0, 0, 0]], dtype=torch.int64)

    def _feed(self, prompt: SpeechPrompt, track: Tensor | None = None) -> None:
        """Prefill at the present position. track [T, 3], or None where no cursor counts."""
        s, done = self._state, 0
        self._check_room(self.session.position, len(prompt), "the prompt")
        for real, chunk in self._graphs.shapes.parts(len(prompt)):
            ids = torch.zeros(chunk, dtype=torch.int64)
            rows = torch.zeros(chunk, self._audio.codebooks, dtype=torch.int64)
            cursor = torch.zeros(chunk, 3, dtype=torch.int64)
            ids[:real], rows[:real] = prompt.ids[done : done + real], prompt.rows[done : done + real]
            if track is not None:
                cursor[:real] = track[done : done + real]
            s.ids[:chunk].copy_(ids)
            s.words[:chunk].copy_(embed(ids.clamp(min=0), self._words))
            s.feed[:chunk].copy_(rows)
            s.feed_track[:chunk].copy_(cursor)
            s.filled.fill_(real)
            self._graphs.prefill(self.session.position, chunk)
            self.session.position += real
            done += real

    def _check_room(self, start: int, length: int, what: str) -> None:
        if start + length > self._max_positions:
            raise ContextFull(
                f"{what} needs {length} positions from {start} on; the engine has "
                f"{self._max_positions}. Use a shorter reference or text, or load with more max_positions."
            )

    def _set_position(self, position: int, row: Sequence[int], count: int, total: int, cursor: Sequence[int]) -> None:
        """Write everything that is live as a whole and belongs to the row loop."""
        s = self._state
        self.session.position = position
        s.position.fill_(position)
        s.row.copy_(torch.tensor(row, dtype=torch.int64))
        s.count.fill_(count)
        s.total.fill_(total)
        s.cursor.copy_(torch.tensor(cursor, dtype=torch.int64))

    def _set_text(self, ids: Sequence[int]) -> None:
        text = torch.full((1, MAX_PIECE + 2), self._audio_id, dtype=torch.int64)
        text[0, 0] = self._text_id
        text[0, 1 : 1 + len(ids)] = torch.tensor(ids, dtype=torch.int64)
        self._state.text.copy_(text)
        self._state.length.fill_(len(ids))

    def _encode(self, text: str) -> Encoded:
        encoded = self._frontend.encode(text)
        if not encoded.ids:
            raise TextRefused(f"nothing to say in {text[:40]!r}")
        if len(encoded.ids) > MAX_PIECE:
            raise TextRefused(
                f"{len(encoded.ids)} text ids in one piece; at most {MAX_PIECE}. Split it into sentences."
            )
        if ROW in encoded.ids:
            raise TextRefused("the front end made an id that is reserved for rows")
        return encoded
