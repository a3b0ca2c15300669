"""What `assistant.contracts.tts` promises, of every voice that keeps to it: local, remote, fake."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass

import numpy as np
import pytest

from assistant.base.errors import EngineFailed
from assistant.contracts import TTS, Mark, SpeechChunk, Uttered
from tests.contracts.subjects import TTSS, Subject

FIRST, SECOND = "Good morning to you all.", "It is nine."
Story = Callable[[Subject[TTS]], Coroutine[None, None, None]]


@pytest.fixture(params=[pytest.param(name, marks=() if name == "fake" else pytest.mark.slow) for name in TTSS])
def play(request: pytest.FixtureRequest) -> Callable[[Story], None]:
    """Runs a story with one implementation."""

    def play(story: Story) -> None:
        async def whole() -> None:
            async with asyncio.timeout(240), TTSS[request.param]() as subject:
                await story(subject)

        asyncio.run(whole())

    return play


@dataclass(frozen=True)
class Spoken:
    chunks: list[SpeechChunk]

    @property
    def pcm(self) -> np.ndarray:
        return np.concatenate([chunk.pcm for chunk in self.chunks] or [np.zeros(0, np.float32)])

    @property
    def marks(self) -> list[Mark]:
        return [mark for chunk in self.chunks for mark in chunk.marks]


async def speak(
    tts: TTS, talk: str, text: str, piece_id: str = "p1", voice: str | None = None, least: int | None = None, **kinds
) -> Spoken:
    """`least`: leave as soon as so many samples came."""
    chunks: list[SpeechChunk] = []
    async with aclosing(tts.speak(talk, voice, piece_id, text, **kinds)) as sounds:
        async for sound in sounds:
            chunks.append(sound)
            if least is not None and sum(chunk.pcm.size for chunk in chunks) >= least:
                break
    return Spoken(chunks)


def alike(one: Spoken, other: Spoken) -> bool:
    return np.array_equal(one.pcm, other.pcm) and one.marks == other.marks


def test_it_says_what_it_is(play):
    async def story(subject: Subject[TTS]) -> None:
        tts = subject.engine
        await tts.warm(None)
        assert tts.name and isinstance(tts.name, str) and tts.voices
        assert isinstance(tts.paces, bool) and tts.state in (tts, None)

    play(story)


def test_sound_is_sound_and_marks_rise_and_lie_inside_it(play):
    async def story(subject: Subject[TTS]) -> None:
        for voice in (None, *subject.engine.voices):
            made = await speak(subject.engine, f"talk of {voice}", FIRST, voice=voice)
            assert all(chunk.pcm.dtype == np.float32 and chunk.pcm.ndim == 1 for chunk in made.chunks)
            assert np.abs(made.pcm).max() <= 1.0 and np.abs(made.pcm).max() > 0.01
            assert 0.5 < made.pcm.size / 24_000 < 10 and all(chunk.rows >= 0 for chunk in made.chunks)
            assert all(cost.name and cost.ms >= 0 for chunk in made.chunks for cost in chunk.costs)
            samples, chars = [mark.sample for mark in made.marks], [mark.char for mark in made.marks]
            assert samples == sorted(samples) and chars == sorted(set(chars))
            assert all(0 <= sample < made.pcm.size for sample in samples)
            assert all(0 <= char < len(FIRST) for char in chars)

    play(story)


def test_a_mark_is_known_with_the_sound_that_it_stands_in(play):
    """Whoever cuts at what was heard has the marks of all that was heard."""

    async def story(subject: Subject[TTS]) -> None:
        made = await speak(subject.engine, "a", FIRST)
        known, at = 0, 0
        for chunk in made.chunks:
            known, at = known + len(chunk.marks), at + chunk.pcm.size
            assert all(mark.sample >= at for mark in made.marks[known:])

    play(story)


def test_closing_stops_the_engine_before_its_next_row(play):
    async def story(subject: Subject[TTS]) -> None:
        whole = await speak(subject.engine, "a", FIRST)
        begun = await speak(subject.engine, "b", FIRST, least=1)
        await subject.rest()
        assert 0 < begun.pcm.size < whole.pcm.size
        if subject.engine.state is not None:
            await subject.engine.state.sync("b", [])
        assert (await speak(subject.engine, "b", FIRST, "p2")).pcm.size > 0

    play(story)


def test_whatever_breaks_is_an_engine_that_failed_and_the_next_piece_is_spoken(play):
    async def story(subject: Subject[TTS]) -> None:
        with subject.failing(), pytest.raises(EngineFailed):
            await speak(subject.engine, "a", FIRST)
        await subject.rest()
        assert (await speak(subject.engine, "a", FIRST, "p2")).pcm.size > 0

    play(story)


@pytest.mark.parametrize("least", [1, 12_000])
def test_after_a_cut_a_voice_goes_on_like_one_that_never_said_more(play, least):
    async def story(subject: Subject[TTS]) -> None:
        tts = subject.engine
        short = await speak(tts, "short", FIRST, least=least)
        whole = await speak(tts, "long", FIRST)
        heard = [Uttered("p1", FIRST, short.pcm.size)]
        assert short.pcm.size < whole.pcm.size
        if tts.state is not None:
            synced = await tts.state.sync("long", heard)
            assert synced.what is not None and synced.ms >= 0
            again = await tts.state.sync("long", heard)
            assert again.what is None and again.position == synced.position
            await tts.state.sync("short", heard)  # the engine may have been ahead of the reader that left
            assert (await tts.state.sync("short", heard)).what is None
        went_on, expected = await speak(tts, "long", SECOND, "p2"), await speak(tts, "short", SECOND, "p2")
        assert went_on.pcm.size > 0
        if tts.state is not None:
            assert alike(went_on, expected)

    play(story)


def test_a_piece_that_is_taken_back_never_was(play):
    async def story(subject: Subject[TTS]) -> None:
        tts = subject.engine
        expected = await speak(tts, "once", SECOND)
        await speak(tts, "a", FIRST, "p0")
        if tts.state is not None:
            await tts.state.sync("a", [])
            assert (await tts.state.sync("a", [])).what is None
        made = await speak(tts, "a", SECOND)
        assert alike(made, expected) if tts.state is not None else made.pcm.size > 0

    play(story)


@pytest.mark.parametrize("order", list(itertools.permutations(["warm", "park", "forget_talk"])), ids="-".join)
def test_warm_park_and_forget_harm_nothing_in_any_order(play, order):
    async def story(subject: Subject[TTS]) -> None:
        tts = subject.engine
        await speak(tts, "a", SECOND)
        for name in order:
            for talk in ("a", "a", "nobody"):  # again, and of a talk that never was
                if name == "warm":
                    await tts.warm(None)
                elif tts.state is not None:
                    await getattr(tts.state, name)(talk)
        fresh = await speak(tts, "b", SECOND)
        for talk in ("a", "nobody"):
            made = await speak(tts, talk, SECOND)
            assert alike(made, fresh) if tts.state is not None else made.pcm.size > 0

    play(story)


def test_warm_and_park_leave_what_was_said(play):
    async def story(subject: Subject[TTS]) -> None:
        tts = subject.engine
        await speak(tts, "once", FIRST)
        expected = await speak(tts, "once", SECOND, "p2")
        await speak(tts, "a", FIRST)
        await tts.warm(tts.voices[-1])
        if tts.state is not None:
            await tts.state.park("a")
        made = await speak(tts, "a", SECOND, "p2")
        assert alike(made, expected) if tts.state is not None else made.pcm.size > 0

    play(story)


def test_a_talk_that_nobody_knows_is_no_error(play):
    async def story(subject: Subject[TTS]) -> None:
        tts = subject.engine
        if tts.state is not None:
            await tts.state.sync("nobody", [Uttered("p0", FIRST, 9_600)])
            await tts.state.park("no one")
            await tts.state.forget_talk("no one at all")
        for talk in ("nobody", "no one", "no one at all"):
            assert (await speak(tts, talk, SECOND)).pcm.size > 0

    play(story)


def test_two_talks_do_not_hear_each_other(play):
    async def story(subject: Subject[TTS]) -> None:
        tts = subject.engine
        alone = [await speak(tts, f"alone {n}", text) for n, text in enumerate((FIRST, SECOND))]
        both = await asyncio.gather(speak(tts, "a", FIRST), speak(tts, "b", SECOND))
        if tts.state is not None:
            assert all(alike(made, expected) for made, expected in zip(both, alone, strict=True))
        if tts.state is not None:
            await tts.state.forget_talk("a")
            assert (await tts.state.sync("b", [Uttered("p1", SECOND, both[1].pcm.size)])).what is None
        assert (await speak(tts, "b", FIRST, "p2")).pcm.size > 0

    play(story)


def test_a_voice_that_paces_follows_the_speed_that_it_is_asked_for(play, request):
    if "remote" in request.node.callspec.params.values():
        reason = "RemoteTTS says `paces` of every server; one that speaks at its own pace refuses"
        request.applymarker(pytest.mark.xfail(strict=True, raises=EngineFailed, reason=reason))

    async def story(subject: Subject[TTS]) -> None:
        tts = subject.engine
        usual = (await speak(tts, "a", FIRST)).pcm.size
        if tts.paces:
            assert (await speak(tts, "b", FIRST, speed=2.0)).pcm.size < 0.7 * usual

    play(story)
