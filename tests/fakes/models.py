"""Models with behaviour and exact times, behind `assistant.contracts`.

They keep state as real ones do: a thinker what it folded, a voice what it said, each per talk. So a test can compare
the state after a barge-in with the state of a talk that only ever said the heard part.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from assistant.base.errors import EngineFailed
from assistant.contracts import (
    AsrFacts,
    CalledName,
    CallPiece,
    Cost,
    HeardWord,
    Mark,
    Partial,
    PlayedSound,
    Prompt,
    PromptReady,
    ReplyEnd,
    ReplyOptions,
    ReplyPiece,
    SpeechBlock,
    SpeechChunk,
    Synced,
    TextPiece,
    Transcript,
    Uttered,
)
from assistant.text.called import called_name, sounds_like
from llm_engine.textcut import StopStrings

RATE = 24_000
WORD_S = 0.3
"""Every word of the fake voice lasts this long."""
Answer = str | tuple[str, dict[str, str]]


class Guessing:
    """What a model of any kind does with guesses. `_state`: what it holds of each talk."""

    def __init__(self, state: dict[str, list[Any]]) -> None:
        self._state = state
        self.running = 0
        self.busy: Counter[str] = Counter()
        self._guesses: dict[str, tuple[list[Any] | None, float]] = {}
        self._worked_s = 0.0

    def guess(self, talk: str) -> None:
        assert talk not in self._guesses and not self.busy[talk]
        before = self._state.get(talk)
        self._guesses[talk] = (None if before is None else list(before)), self._worked_s

    def confirm(self, talk: str) -> None:
        del self._guesses[talk]

    async def fork(self, talk: str, branch: str) -> None:
        assert talk not in self._guesses and not self.busy[talk] and branch not in self._state
        if talk in self._state:
            self._state[branch] = list(self._state[talk])

    async def take_back(self, talk: str) -> float:
        assert not self.busy[talk], "the guess is still at work"
        before, worked_s = self._guesses.pop(talk)
        self._state.pop(talk, None)
        if before is not None:
            self._state[talk] = before
        return (self._worked_s - worked_s) * 1000


class FakeLLM(Guessing):
    """Answers with what `answers` says to a prompt: words, or a tool call. One token is one word, or one picture."""

    name = "fake"

    def __init__(
        self, answers: Callable[[Prompt], Sequence[Answer]], *, token_s: float = 0.01, prefill_s: float = 0.02,
        sees: bool = False,
    ) -> None:  # fmt: skip
        self.answers, self.sees = answers, sees
        self.token_s, self.prefill_s = token_s, prefill_s
        self.folded: dict[str, list[str]] = {}
        self.said: dict[str, str] = {}
        self.fail_after: int | None = None
        self.prepared: list[tuple[str, int]] = []
        self.complete: float | None = None
        self.heard: list[str] = []
        super().__init__(self.folded)
        self.state: FakeLLM | None = self
        self.looked: list[tuple[str, ...]] = []
        """The pictures of each line that was heard so far."""

    def wanted(self, prompt: Prompt) -> list[str]:
        """What a state that stands for this prompt has folded."""
        tokens = [f"system:{prompt.system}", *(f"tool:{tool.name}" for tool in prompt.tools)]
        for line in prompt.lines:
            tokens.append(f"<{line.role}>")
            assert self.sees or not line.pictures, "it was told that it sees"
            tokens += [f"picture:{placed.picture.digest}" for placed in line.pictures]
            tokens += re.findall(r"\S+", line.text)
            tokens += [f"call:{call.name}{call.arguments}" for call in line.calls]
        return tokens

    def _bring(self, talk: str, prompt: Prompt) -> tuple[Synced, int, int]:
        state = self.folded.setdefault(talk, [])
        wanted = self.wanted(prompt)
        same = 0
        for have, want in zip(state, wanted, strict=False):
            if have != want:
                break
            same += 1
        cut = same < len(state)
        self.folded[talk] = wanted
        return Synced("rollback" if cut else None, same, 1.0 if cut else 0.0), same, len(wanted)

    async def reply(self, talk: str, prompt: Prompt, options: ReplyOptions) -> AsyncGenerator[ReplyPiece, None]:
        self.running += 1
        self.busy[talk] += 1
        try:
            _, same, total = self._bring(talk, prompt)
            images = [token.startswith("picture:") for token in self.folded[talk]]
            await asyncio.sleep(self.prefill_s)
            self._worked_s += self.prefill_s
            costs = (Cost("prefill", self.prefill_s * 1000),)
            asked = next((line for line in reversed(prompt.lines) if line.role == "user"), None)
            shown = len(asked.pictures) if asked is not None else 0
            yield PromptReady(total, same, costs, sum(images), sum(images[:same]), shown)
            state = self.folded[talk]
            state.append("<assistant>")
            ends = StopStrings(options.stop)
            tokens = 0
            reason = "stop"
            for answer in self.answers(prompt):
                if isinstance(answer, tuple):
                    await asyncio.sleep(self.token_s)
                    tokens += 1
                    arguments = json.dumps(answer[1])
                    state.append(f"call:{answer[0]}{arguments}")
                    yield CallPiece(f"call_{options.reply_id}", answer[0], arguments, True)
                    reason = "tool_calls"
                    continue
                for word in re.findall(r"\s*\S+", answer):
                    await asyncio.sleep(self.token_s)
                    self._worked_s += self.token_s
                    tokens += 1
                    if self.fail_after is not None and tokens > self.fail_after:
                        raise EngineFailed("the fake model fell over")
                    if options.max_tokens is not None and tokens > options.max_tokens:
                        yield ReplyEnd("length", tokens - 1)
                        return
                    state.append(word.strip())
                    if fresh := ends.push(word):
                        yield TextPiece(fresh)
                    if ends.stopped:
                        yield ReplyEnd("stop", tokens)
                        return
            if held := ends.finish():
                yield TextPiece(held)
            yield ReplyEnd(reason, tokens)  # type: ignore[arg-type]
        finally:
            self.running -= 1
            self.busy[talk] -= 1

    async def sync(self, talk: str, prompt: Prompt) -> Synced:
        assert talk not in self._guesses, "a guess is dropped or kept before the talk changes"
        return self._bring(talk, prompt)[0]

    async def fold_heard(self, talk: str, prompt: Prompt) -> None:
        self.heard.append(prompt.lines[-1].text)
        self.looked.append(tuple(placed.picture.digest for placed in prompt.lines[-1].pictures))

    async def prepare(self, talk: str, prompt: Prompt) -> None:
        self.prepared.append((talk, len(prompt.lines)))

    async def turn_end_probability(self, talk: str, prompt: Prompt) -> float | None:
        return self.complete

    async def warm(self, listed: Mapping[str, Prompt], *, idle_work: bool = False) -> Mapping[str, Synced]:
        return dict.fromkeys(listed, Synced(None, 0, 0.0))

    async def park(self, talk: str) -> None:
        return None

    async def publish_prefix(self, talk: str, prompt: Prompt) -> str | None:
        await self.forget_talk(talk)
        return None

    async def forget_talk(self, talk: str) -> None:
        self.folded.pop(talk, None)


class FakeTTS(Guessing):
    """Speaks 100 ms at a time, a word every WORD_S, at `speed` times real time, after `prefill_s`."""

    name = "fake"
    voices = ("ada", "ben")
    paces = False
    languages: tuple[str, ...] = ()

    def __init__(self, *, prefill_s: float = 0.03, speed: float = 10.0, marks: bool = True) -> None:
        self.prefill_s, self.speed, self.marks = prefill_s, speed, marks
        self.said: dict[str, list[tuple[str, int]]] = {}
        self.spoken: list[tuple[str, str | None]] = []
        """Each piece, with the language that it was asked for in."""
        self.fail_on: str | None = None
        super().__init__(self.said)
        self.state: FakeTTS | None = self

    async def speak(
        self, talk: str, voice: str | None, piece_id: str, text: str, *, speed: float = 1.0,
        language: str | None = None,
    ) -> AsyncGenerator[SpeechChunk, None]:  # fmt: skip
        self.spoken.append((text, language))
        self.running += 1
        self.busy[talk] += 1
        try:
            await asyncio.sleep(self.prefill_s)
            if self.fail_on is not None and self.fail_on in text:
                raise EngineFailed("the fake voice lost its voice")
            words = [match.start() for match in re.finditer(r"\S+", text)]
            word_samples = int(WORD_S * RATE)
            total = word_samples * len(words)
            marks = [Mark(i * word_samples, char) for i, char in enumerate(words)]
            history = self.said.setdefault(talk, [])
            history.append((piece_id, 0))
            cost: tuple[Cost, ...] = (Cost("tts_prefill", self.prefill_s * 1000),)
            for start in range(0, total, RATE // 10):
                n = min(RATE // 10, total - start)
                await asyncio.sleep(n / RATE / self.speed)
                self._worked_s += n / RATE / self.speed
                history[-1] = (piece_id, start + n)
                told = tuple(mark for mark in marks if start <= mark.sample < start + n) if self.marks else ()
                yield SpeechChunk(np.full(n, 0.1, np.float32), told, n // 960, cost)
                cost = ()
        finally:
            self.running -= 1
            self.busy[talk] -= 1

    async def sync(self, talk: str, uttered: Sequence[Uttered]) -> Synced:
        assert talk not in self._guesses, "a guess is dropped or kept before the talk changes"
        wanted = [(piece.piece_id, piece.samples) for piece in uttered]
        have = self.said.get(talk, [])
        position = sum(samples for _, samples in wanted)
        if have == wanted:
            return Synced(None, position, 0.0)
        self.said[talk] = wanted
        return Synced("rollback", position, 1.0)

    async def prepare(self, talk: str) -> None:
        return None

    async def warm(self, voice: str | None) -> Synced:
        return Synced("restore", 0, 1.0)

    async def park(self, talk: str) -> None:
        return None

    async def forget_talk(self, talk: str) -> None:
        self.said.pop(talk, None)


FAKE_EARS = AsrFacts("fake", ("en",), cased=False, cadence_ms=0.0, bias=False, word_times=False)


class FakeEars:
    """Hears sound made by `spoken`: the level names the utterance, its words come evenly over its length."""

    name = "fake"

    def __init__(self) -> None:
        self.facts = FAKE_EARS
        self.utterances: list[tuple[str, int]] = []
        self.listened_in: list[str | None] = []
        """The languages that transcribers were told of, in order."""
        self.broken = False

    def spoken(self, text: str, seconds: float) -> np.ndarray:
        """16 kHz sound that these ears hear as these words."""
        samples = int(seconds * 16_000)
        self.utterances.append((text, samples))
        return np.full(samples, 0.2 + len(self.utterances) * 0.001, np.float32)

    def detector(self) -> FakeDetector:
        return FakeDetector()

    def transcriber(self) -> FakeTranscriber:
        return FakeTranscriber(self)

    def release(self, transcriber: FakeTranscriber) -> None:
        return None

    def release_detector(self, detector: FakeDetector) -> None:
        return None


class FakeDetector:
    """Sound is speech."""

    def __init__(self) -> None:
        self._waiting = np.zeros(0, np.float32)
        self._position = 0

    def push(self, pcm: np.ndarray, played: PlayedSound | None = None, raised: bool = False) -> list[SpeechBlock]:
        self._waiting = np.concatenate([self._waiting, pcm])
        blocks = []
        while self._waiting.size >= 512:
            loud = float(np.mean(np.abs(self._waiting[:512]) > 0.1))
            blocks.append(SpeechBlock(self._position, 512, loud, self._waiting[:512]))
            self._position += 512
            self._waiting = self._waiting[512:]
        return blocks

    def reset(self) -> None:
        self._waiting = np.zeros(0, np.float32)
        self._position = 0


class FakeTranscriber:
    def __init__(self, asr: FakeEars) -> None:
        self._asr, self.facts = asr, asr.facts
        self.reset()

    def push(self, pcm: np.ndarray) -> None:
        loud = pcm[np.abs(pcm) > 0.1]
        for level, n in zip(*np.unique(np.round((loud - 0.2) * 1000).astype(int), return_counts=True), strict=True):
            if 0 < level <= len(self._asr.utterances):
                self._heard[int(level) - 1] = self._heard.get(int(level) - 1, 0) + int(n)

    def partial(self, now: bool = False) -> Partial:
        parts = []
        for index, samples in self._heard.items():
            text, whole = self._asr.utterances[index]
            words = text.split()
            parts += words[: round(len(words) * min(1.0, samples / whole) + 0.05)]
        return Partial("", " ".join(parts))

    def pause(self) -> Partial:
        return self.partial()

    def final(self) -> Transcript:
        if self._asr.broken:
            raise RuntimeError("the fake ears are broken")
        text = self.partial().text
        self.reset()
        words: tuple[HeardWord, ...] = ()
        if self.facts.word_times:
            words = tuple(HeardWord(word, 100.0 * n, 100.0 * n + 90) for n, word in enumerate(text.split()))
        return Transcript(text, words, 0.9 if text else 0.0, bool(text))

    def called(self, sound: np.ndarray, names: Sequence[str]) -> CalledName | None:
        found = called_name(self._text_of(sound), names)
        return None if found is None else CalledName(*found)

    def leave_out(self, name: str) -> bool:
        return False

    def confirms(self, sound: np.ndarray, phrase: str) -> bool:
        return sounds_like(self._text_of(sound), phrase)

    def _text_of(self, sound: np.ndarray) -> str:
        self.push(sound)
        text = self.pause().text
        self.reset()
        return text

    def expect(self, terms: Sequence[str]) -> None:
        """Its words are what they are."""

    def listen_in(self, language: str | None) -> None:
        self._asr.listened_in.append(language)

    def reset(self) -> None:
        self._heard: dict[int, int] = {}

    def forget(self) -> None:
        self.reset()


def counting_ids() -> Callable[[str], str]:
    """item_1, item_2, resp_1 …"""
    counters: dict[str, itertools.count[int]] = {}

    def next_id(prefix: str) -> str:
        return f"{prefix}_{next(counters.setdefault(prefix, itertools.count(1)))}"

    return next_id
