"""The work that a talk asks of the language model, step by step on the engines' thread: one generator or function for
each call of the contract. Another talk may have the engine between two steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from assistant.contracts import Cost, Prompt, PromptReady, ReplyEnd, ReplyOptions, ReplyPiece, Synced, TextPiece
from assistant.device.thread import Work
from assistant.llm.decoding import Writing
from assistant.llm.language import Language
from assistant.llm.prefixes import LISTED, Gathered, cold_ends
from assistant.llm.sight import image_tokens
from assistant.llm.talk_state import TalkState
from assistant.llm.token_log import FoldStep
from assistant.llm.way import TalkFolding
from assistant.llm.window import come_back
from capsules.reentry import Way
from llm_engine import Sampling
from llm_engine.sampling import CANDIDATES

CLAUSE_ENDS = frozenset(".,;:!?…–—\n")
"""Text up to one of these can be spoken soon: it is noted, so that after a kill the talk goes on from the tokens that
were heard, and not from their text folded anew."""
LEAST_TOP_P = 1e-6
"""A `top_p` of 0 is allowed, but would leave nothing to draw from: it means the likeliest token alone."""
REPORTED: Mapping[Way | None, Literal["rollback", "restore"]] = {Way.ROLLBACK: "rollback", Way.RESTORE: "restore"}
"""The names of ways in `Synced`; any other way is a rebuild."""


class TalkWork:
    """`sampling` applies to replies that request nothing else. `waking_ms`: how long the models took to wake for a
    request at a given moment."""

    def __init__(
        self, folding: TalkFolding, language: Language, sampling: Sampling, waking_ms: Callable[[float], float]
    ) -> None:
        self.gathered: dict[str, Gathered] = {}
        """By talk: the checkpoints for `publish`, taken while its prompt was folded."""
        self._folding, self._language, self._sampling, self._waking_ms = folding, language, sampling, waking_ms
        self._llm, self._lease, self._prefixes = folding.llm, folding.lease, folding.prefixes
        self._sight, self._window, self._now = folding.sight, folding.window, folding.now

    def reply(self, talk: str, prompt: Prompt, options: ReplyOptions, asked: float) -> Work[ReplyPiece]:
        """Fold the new part and decode. `asked`: when the reply was requested, seconds."""
        folding, begin = self._folding, self._now()
        wanted = folding.fitting(talk, prompt)
        state = folding.own(talk)
        owned = self._now()
        again = yield from folding.refold_lost(state, state.log.plan(wanted).keep)
        if options.reusable and talk not in self.gathered:
            self.gathered[talk] = self._prefixes.gather(wanted)
        gathered = self.gathered.get(talk)
        kept, way = folding.go_back(state, wanted, prompt.realm, gathered)
        rolled = self._now()
        if gathered is None:
            yield from folding.fold_instructions(state, wanted, prompt.realm)
        pictured_s = yield from folding.fold(state, state.log.plan(wanted), gathered)
        ids, known = state.log.ids, max(0, kept - again)
        costs: tuple[Cost, ...] = (
            Cost("wake", self._waking_ms(asked)),
            Cost("restore", (owned - begin) * 1000),
            Cost("rollback" if way is Way.ROLLBACK else "plan", (rolled - owned) * 1000),
            Cost("prefill", (self._now() - rolled - pictured_s) * 1000),
        )
        if pictured_s:
            costs = (*costs, Cost("picture", pictured_s * 1000))
        seen = image_tokens(ids), image_tokens(ids[:known])
        yield PromptReady(len(ids), known, costs, *seen, *self._sight.last_seen(talk, prompt))
        yield from self._decode(talk, state, prompt, options)

    def _decode(self, talk: str, state: TalkState, prompt: Prompt, options: ReplyOptions) -> Work[ReplyPiece]:
        begin = self._now()
        self._llm.set_sampling(self._sampling_for(options))
        writing = Writing(self._llm, self._language, state, prompt, options)
        try:
            for piece in writing.steps():
                if isinstance(piece, TextPiece) and not CLAUSE_ENDS.isdisjoint(piece.text):
                    self._lease.note(talk, midway=True)  # before it can be said
                yield piece
        finally:
            self._lease.note(talk)
        cost = Cost("decode", (self._now() - begin) * 1000)
        yield ReplyEnd(writing.reason, writing.tokens, (cost,))

    def _sampling_for(self, options: ReplyOptions) -> Sampling:
        asked = {
            name: value
            for name in ("temperature", "top_k", "top_p", "seed")
            if (value := getattr(options, name)) is not None
        }
        if "top_p" in asked:
            asked["top_p"] = max(asked["top_p"], LEAST_TOP_P)
        if "top_k" in asked:
            asked["top_k"] = min(asked["top_k"], CANDIDATES)
        return replace(self._sampling, **asked)

    def fold_open_line(self, talk: str, prompt: Prompt) -> Work[None]:
        """Fold the calls that the whole turn will make however it goes on, so that its state is the same bit for bit:
        all but the last call, which the coming words would make longer."""
        state = self._folding.known(talk, prompt)
        wanted = self._window.heard_steps(state, prompt)
        if not self._window.holds(wanted):
            return
        self._folding.own(talk)
        yield from self._folding.refold_lost(state, state.log.plan(wanted).keep)
        self._folding.go_back(state, wanted, prompt.realm)
        yield from self._folding.fold(state, state.log.plan(wanted))

    def settle(self, talk: str, prompt: Prompt) -> Synced:
        """Roll back what no longer holds. Nothing is appended: one append per turn keeps the folding the same."""
        state = self._lease.find(talk)
        if state is None:
            return Synced(None, 0, 0.0)
        begin = self._now()
        come_back(state, prompt)
        wanted = self._window.steps(state, prompt, open_reply=False)
        plan = state.log.plan(wanted)
        if plan.keep >= state.log.position:
            return Synced(None, plan.keep, 0.0)
        self._folding.own(talk)
        if self._folding.behind(state):  # in words now; nobody waits for the rest, and `prepare` comes soon
            self._folding.cut(state, plan.keep)
            kept, way = plan.keep, None
        else:
            kept, way = self._folding.go_back(state, wanted, prompt.realm)
        self._lease.note(talk)
        return Synced(REPORTED.get(way, "rebuild"), kept, (self._now() - begin) * 1000)

    def turn_end_probability_now(self, talk: str, prompt: Prompt) -> float | None:
        """Judge only from a state that is there already: this must cost less than it saves."""
        if self._lease.owner not in (None, talk):
            return None
        folding = self._folding
        state = folding.own(talk)
        wanted, ids = self._window.open_steps(state, prompt)
        plan = state.log.plan(wanted)
        if plan.keep < state.log.position or len(plan.steps) > 1 or any(step.written for step in plan.steps):
            return None
        if folding.behind(state) or any(i < 0 and i not in self._llm.pictures for step in plan.steps for i in step.ids):
            return None
        folding.go_back(state, wanted, prompt.realm)
        folding.fold_now(state, state.log.plan(wanted))
        if not state.log.position:
            return None
        if self._llm.position + len(ids) >= self._llm.max_positions:
            return None
        return self._llm.turn_end_probability(ids)

    # --------------------------------------------------------------------- beginnings of other prompts

    def publish(self, talk: str, prompt: Prompt) -> Work[str]:
        """Fold the reply as a run from nothing would, instead of token by token, and store the state behind it."""
        folding = self._folding
        state, gathered = self._lease.find(talk), self.gathered.pop(talk, None)
        if state is not None and gathered is not None and not folding.behind(folding.own(talk)):
            for point in gathered.points.values():
                self._llm.hold(point)
            said = cold_ends(state.log.steps)[-1:]
            if said and said[0] < state.log.position:
                folding.cut(state, said[0])
            wanted = self._window.steps(state, prompt, open_reply=prompt.lines[-1].role != "assistant")
            plan = state.log.plan(wanted)
            if plan.keep == state.log.position > 0 and self._window.holds(wanted):
                gathered.at |= set(cold_ends(wanted))
                yield from folding.fold(state, plan, gathered)
                yield self._prefixes.store(prompt.realm, wanted, gathered)
        self._lease.discard(talk)

    def list_beginning(self, name: str, prompt: Prompt) -> Work[Synced]:
        """A listed beginning's capsule: from the registry (disk included), otherwise folded now."""
        begin = self._now()
        steps = self._window.steps(TalkState(), replace(prompt, lines=()), open_reply=False)
        position = sum(len(step.ids) for step in steps)
        if not steps:
            yield Synced(None, 0, 0.0)
        elif self._prefixes.hold_listed(name, steps):
            yield Synced("restore", position, (self._now() - begin) * 1000)
        else:
            yield from self._folding.guarded(name, self._fold_listed(name, steps))
            yield Synced("rebuild", position, (self._now() - begin) * 1000)

    def _fold_listed(self, name: str, steps: Sequence[FoldStep]) -> Work[Synced]:
        try:
            state, gathered = self._folding.own(name), self._prefixes.gather(steps)
            self._folding.go_back(state, steps, LISTED, gathered)
            yield from self._folding.fold(state, state.log.plan(steps), gathered)
            self._prefixes.store(LISTED, steps, gathered, name)
        finally:
            self._lease.discard(name)
