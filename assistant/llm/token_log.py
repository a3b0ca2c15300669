"""The tokens folded into a model's state, how they were folded, and the shortest way to the state that a talk wants.

A log is a row of steps: ids that were appended in one call, or tokens that the model wrote one by one. The difference
matters: sums in a matrix product depend on how many rows go through it, so a state that is to be bit-equal must be
folded alike. So a kept part ends where a call ended, where a continued call would begin its next chunk, or behind any
written token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from assistant.base.picture import Picture
from assistant.contracts import Line, Prompt
from assistant.llm.chat_layout import Layout
from llm_engine.grid import Fold, chunks

Encode = Callable[[str | Picture], Sequence[int]]
"""Text to tokens. A picture becomes its virtual id, once per row."""


@dataclass(frozen=True, slots=True)
class FoldStep:
    """`written`: tokens of the model's own, folded one by one; otherwise ids of one append."""

    ids: tuple[int, ...]
    written: bool = False


TURN = 4
"""Steps of a turn with one tool: the user's words, the call, the tool's answer, the reply."""
HIDDEN = 1 << 40
"""In place of a text position: the token shows nothing (part of a call, or of an incomplete character)."""


@dataclass(slots=True)
class Written:
    """A reply as the model wrote it: its tokens, and the length of visible text after each."""

    tokens: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    text: str = ""
    calls: int = 0

    def add(self, token: int, shown: str) -> None:
        """Add a token, and the text that became visible with it; text that completes earlier tokens counts there."""
        self.tokens.append(token)
        self.ends.append(HIDDEN)
        if shown:
            self.text += shown
            for at in range(len(self.ends) - 1, -1, -1):
                if self.ends[at] != HIDDEN:
                    break
                self.ends[at] = len(self.text)

    def upto(self, line: Line) -> tuple[int, ...] | None:
        """The tokens of the line's text; None if the line says something else.

        The line may be a beginning of the reply: it was cut there.
        """
        lead = len(self.text) - len(self.text.lstrip())
        said, whole = line.text.strip(), self.text.strip()
        if not whole.startswith(said):
            return None
        if said == whole and len(line.calls) == self.calls:
            return tuple(self.tokens)
        if line.calls:
            return None
        count = 0
        while count < len(self.ends) and self.ends[count] <= lead + len(said):
            count += 1
        return tuple(self.tokens[:count])

    def to_json(self) -> list[Any]:
        return [list(self.tokens), list(self.ends), self.text, self.calls]

    @classmethod
    def from_json(cls, row: Sequence[Any]) -> Written:
        return cls([int(i) for i in row[0]], [int(i) for i in row[1]], str(row[2]), int(row[3]))


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """Keep the first `keep` ids of the log, then do `steps`. `goes_on`: the first of these is the rest of the log's
    last step."""

    keep: int
    steps: tuple[FoldStep, ...]
    goes_on: bool = False


class TokenLog:
    """The steps folded so far."""

    def __init__(self, steps: Sequence[FoldStep] = ()) -> None:
        self.steps: list[FoldStep] = list(steps)

    @property
    def position(self) -> int:
        return sum(len(step.ids) for step in self.steps)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(token for step in self.steps for token in step.ids)

    def reentries(self) -> set[int]:
        """Positions where the talk may soon be cut: the start of the last reply, and of a turn or two before."""
        last = max((place for place, step in enumerate(self.steps) if step.written), default=0)
        places = (last, len(self.steps) - TURN, len(self.steps) - 2 * TURN)
        return {sum(len(step.ids) for step in self.steps[:place]) for place in places if place > 0}

    def appended(self, ids: Sequence[int], *, goes_on: bool = False) -> None:
        """Note one more step, or more ids of the last one."""
        before = self.steps.pop() if goes_on else FoldStep(())
        self.steps.append(FoldStep((*before.ids, *ids), before.written))

    def wrote(self, token: int) -> None:
        if self.steps and self.steps[-1].written:
            self.steps[-1] = FoldStep((*self.steps[-1].ids, token), True)
        else:
            self.steps.append(FoldStep((token,), True))

    def truncate(self, position: int) -> None:
        """Drop everything behind a position."""
        kept: list[FoldStep] = []
        for step in self.steps:
            room = position - sum(len(one.ids) for one in kept)
            if room <= 0:
                break
            kept.append(step if len(step.ids) <= room else FoldStep(step.ids[:room], step.written))
        self.steps = kept

    def folds(self, start: int = 0) -> list[Fold]:
        """The calls that fold the log from a boundary on: chunks of appends, runs of written tokens."""
        found: list[Fold] = []
        at = 0
        for step in self.steps:
            calls = [c.count for c in chunks(at, len(step.ids))] if not step.written else [len(step.ids)]
            for count in calls:
                at += count
                if at > start:
                    found.append(Fold("steps" if step.written else "chunk", min(count, at - start)))
        return found

    def common(self, ids: Sequence[int], folds: Sequence[Fold]) -> int:
        """The number of tokens that another state shares with this one, folded alike: up to a boundary of both."""
        same, shared = alike(self.ids, ids), 0
        for one, other in zip(_calls(self.folds()), _calls(folds), strict=False):
            if one != other or shared + one.count > same:
                break
            shared += one.count
        return shared

    def plan(self, wanted: Sequence[FoldStep]) -> FoldPlan:
        """The way from this log to the wanted steps."""
        keep = 0
        for place, want in enumerate(wanted):
            have = self.steps[place] if place < len(self.steps) else None
            if have is not None and have.ids == want.ids:  # written once, or folded again from the written tokens
                keep += len(want.ids)
                continue
            if have is not None and have.written and want.written:
                same = alike(have.ids, want.ids)
                return _going_on(keep, want, same, wanted[place + 1 :])
            if have is not None and have.ids == want.ids[: len(have.ids)] and _ends_chunk(keep, want, len(have.ids)):
                return _going_on(keep, want, len(have.ids), wanted[place + 1 :])
            return FoldPlan(keep, tuple(wanted[place:]))
        return FoldPlan(keep, ())


def wanted_steps(
    prompt: Prompt, layout: Layout, encode: Encode, written: Callable[[str], Written | None], *, open_reply: bool
) -> list[FoldStep]:
    """The steps that lead to a prompt: the system part alone, then for each reply one append, and its tokens or text.

    open_reply  True: up to where a reply begins. False: only the lasting part, without the last append
    """
    steps, waiting = _steps_to(prompt, layout, encode, written)
    if open_reply:
        steps.append(FoldStep((*waiting, *encode(layout.opening))))
    return steps


def heard_steps(
    prompt: Prompt, layout: Layout, encode: Encode, written: Callable[[str], Written | None]
) -> list[FoldStep]:
    """The steps to a prompt whose last line, a user's, still goes on: the lasting part, and those calls of the turn's
    append that are the same whatever follows. More rows in a call would make other sums."""
    steps, ids = open_steps(prompt, layout, encode, written)
    sure = sum(chunk.count for chunk in chunks(sum(len(step.ids) for step in steps), len(ids))[:-1])
    return [*steps, FoldStep(ids[:sure])] if sure else steps


def open_steps(
    prompt: Prompt, layout: Layout, encode: Encode, written: Callable[[str], Written | None]
) -> tuple[list[FoldStep], tuple[int, ...]]:
    """The same: the lasting part, including pictures of the last line, and the ids behind it."""
    steps, waiting = _steps_to(replace(prompt, lines=prompt.lines[:-1]), layout, encode, written)
    line = prompt.lines[-1]
    if not line.pictures:
        return steps, (*waiting, *encode(layout.begun(line)))
    seen, waiting = _shown(line, layout, encode, waiting)
    return [*steps, *seen], waiting


def _shown(
    line: Line, layout: Layout, encode: Encode, waiting: Sequence[int]
) -> tuple[list[FoldStep], tuple[int, ...]]:
    """A user's line with pictures. Each picture ends a step, so that folding while the user speaks makes the same calls
    as folding with the words; the ids behind the last picture are the words."""
    steps: list[FoldStep] = []
    assert layout.marks is not None
    behind = encode(layout.marks[1])
    shown, words = layout.shown(line)
    for text, picture in shown:
        steps.append(FoldStep((*waiting, *encode(text), *encode(picture), *behind)))
        waiting = ()
    return steps, (*waiting, *encode(words))


def _steps_to(
    prompt: Prompt, layout: Layout, encode: Encode, written: Callable[[str], Written | None]
) -> tuple[list[FoldStep], tuple[int, ...]]:
    """The lasting steps, and the ids that the next append begins with."""
    steps: list[FoldStep] = []
    if system := encode(layout.system(prompt.system, prompt.tools)):
        steps.append(FoldStep(tuple(system)))
    waiting: list[int] = []
    for line in prompt.lines:
        if line.pictures:
            seen, words = _shown(line, layout, encode, waiting)
            steps += seen
            waiting = [*words, *encode(layout.user_tail)]
            continue
        if line.role != "assistant":
            waiting += encode(layout.turn(line))
            continue
        known = written(line.reply_id) if line.reply_id is not None else None
        tokens = known.upto(line) if known is not None else None
        steps.append(FoldStep((*waiting, *encode(layout.opening))))
        waiting = [*encode(layout.closing)]
        if tokens is None:  # in separate calls, so that a request finds all up to its end, and to here
            steps.append(FoldStep((*encode(layout.reply(line)), *waiting)))
            waiting = []
        elif tokens:
            steps.append(FoldStep(tokens, True))
    return steps, tuple(waiting)


def _going_on(start: int, want: FoldStep, done: int, later: Sequence[FoldStep]) -> FoldPlan:
    rest = FoldStep(want.ids[done:], want.written)
    return FoldPlan(start + done, (rest, *later) if rest.ids else tuple(later), goes_on=0 < done < len(want.ids))


def _ends_chunk(start: int, want: FoldStep, done: int) -> bool:
    """Whether a chunk ends after `done` ids of `want`, if it is folded at `start`."""
    ends = accumulate(chunk.count for chunk in chunks(start, len(want.ids)))
    return done in ends


def _calls(folds: Sequence[Fold]) -> Iterator[Fold]:
    """Call by call; a run of single steps is split into its steps."""
    for fold in folds:
        yield from [fold] if fold.kind == "chunk" else [Fold("steps", 1)] * fold.count


def alike(one: Sequence[int], two: Sequence[int]) -> int:
    """The number of tokens at the start that two rows share."""
    same = 0
    for a, b in zip(one, two, strict=False):
        if a != b:
            break
        same += 1
    return same
