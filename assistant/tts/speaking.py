"""The work that a talk asks of the voice, step by step on the engines' thread: one row per step, and another talk may
speak between two rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assistant.base.sound import REPLY_RATE
from assistant.contracts import Cost, Mark, SpeechChunk, Synced, Uttered
from assistant.device.guess import Guess
from assistant.device.thread import Work
from assistant.tts.frozen import Said, SpokenState
from assistant.tts.guessed import VoiceBefore, check_way_back
from assistant.tts.sessions import SpokenSessions
from tts_engine.errors import TextRefused
from tts_engine.reading.alignment import Aloud

FRAME_SAMPLES = 960
PLAYING_S = 0.4
"""With less sound than this still to be played, somebody waits for more: the first chunk is short again."""


class SpeechWork:
    """`first_chunk`: the engine's policy for a reply's first piece."""

    def __init__(self, sessions: SpokenSessions, first_chunk: str) -> None:
        self._sessions, self._first_chunk = sessions, first_chunk
        self._tts, self._lease, self._now = sessions.tts, sessions.lease, sessions.now

    def speak_piece(
        self, talk: str, voice: str, piece_id: str, words: Aloud, guess: Guess[VoiceBefore] | None
    ) -> Work[SpeechChunk]:
        """The sound of one piece as it is made. However this ends, the session holds exactly the returned sound."""
        begin = self._now()
        if guess is not None:
            check_way_back(self._sessions, talk, voice, words.text)
        known = talk in self._lease
        state = self._sessions.own(talk, voice)
        yield from self._sessions.catch_up(talk, state)
        if guess is not None and guess.before is None:
            guess.before = VoiceBefore(known, self._tts.frames, len(state.said), state.plays_until)
        costs = [Cost("tts_restore", _ms(begin, self._now()))]
        first = self._tts.frames
        waited_for = state.plays_until < begin + PLAYING_S
        try:
            self._tts.begin(words.text, self._first_chunk if waited_for else "steady")
        except TextRefused:
            return
        said = Said(piece_id, first, 0)
        state.said.append(said)
        try:
            yield from self._rows(talk, state, said, words, costs)
        finally:
            self._sessions.own_again(talk)
            if self._tts.busy:
                self._tts.cancel()
            if self._tts.frames > first + said.frames:
                self._tts.cut(first + said.frames)
            if not said.frames:
                state.said.remove(said)
            self._sessions.note(talk, state)

    def _rows(self, talk: str, state: SpokenState, said: Said, words: Aloud, costs: list[Cost]) -> Work[SpeechChunk]:
        rows = 0
        told = 0
        rows_ms = 0.0
        while True:
            begin = self._now()
            self._sessions.own_again(talk)
            stepped = self._tts.step()
            spent = _ms(begin, self._now())
            if stepped.kind == "prefill":
                costs.append(Cost("tts_prefill", spent))
            else:
                rows += stepped.kind == "row"
                rows_ms += spent
            made = False
            while True:
                begin = self._now()
                chunk = self._tts.take_audio()
                if chunk is None:
                    break
                made = True
                costs += [Cost("tts_rows", rows_ms), Cost("codec", _ms(begin, self._now()))]
                known = self._tts.pieces[-1].words
                marks = tuple(Mark(frame * FRAME_SAMPLES, words.raw(char)) for char, _, frame in known[told:])
                told = len(known)
                said.frames += chunk.frames
                state.plays_until = max(state.plays_until, self._now()) + chunk.frames * FRAME_SAMPLES / REPLY_RATE
                pcm = np.ascontiguousarray(chunk.pcm.numpy(), np.float32)
                self._sessions.note(talk, state, midway=True)  # before it can be heard
                yield SpeechChunk(pcm, marks, rows, tuple(costs))
                self._sessions.own_again(talk)
                costs, rows, rows_ms = [], 0, 0.0
            if stepped.kind == "idle":
                return
            if not made:
                yield None

    def settle_heard(self, talk: str, uttered: Sequence[Uttered]) -> Work[Synced]:
        """Cut behind the first piece that no longer counts as said in full."""
        state = self._lease.find(talk)
        if state is None:
            return
        begin = self._now()
        frames = {piece.piece_id: piece.samples // FRAME_SAMPLES for piece in uttered}
        keep = 0
        while keep < len(state.said) and frames.get(state.said[keep].piece_id) == state.said[keep].frames:
            keep += 1
        if keep == len(state.said):
            yield Synced(None, self._tts.frames, 0.0)
            return
        self._lease.own(talk)
        yield from self._sessions.catch_up(talk, state)
        if keep >= len(state.said):  # it could not be made again
            yield Synced("rebuild", 0, _ms(begin, self._now()))
            return
        state.plays_until = begin
        cut = state.said[keep]
        cut.frames = min(cut.frames, frames.get(cut.piece_id, 0))
        end = cut.first_frame + cut.frames
        held = self._tts.pieces[0].first_frame if self._tts.pieces else 0
        if end < held:
            self._sessions.begin_anew(talk, state)
            yield Synced("rebuild", 0, _ms(begin, self._now()))
            return
        self._tts.cut(end)
        state.said = state.said[: keep + (1 if cut.frames else 0)]
        self._sessions.note(talk, state)
        yield Synced("rollback", end, _ms(begin, self._now()))


def _ms(begin: float, end: float) -> float:
    return (end - begin) * 1000
