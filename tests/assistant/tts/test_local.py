"""The local voice on a random miniature: its memory after a cut is that of a voice that only ever said so much."""

import asyncio
import json
import time
from contextlib import aclosing
from itertools import groupby
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from assistant.base.errors import EngineFailed
from assistant.contracts import Uttered
from assistant.device import schedule
from assistant.device.deployment import Deployment
from assistant.device.schedule import EngineKind
from assistant.device.thread import EngineThread
from assistant.tts.local import LocalTTS, VoiceOptions
from assistant.tts.speaking import FRAME_SAMPLES
from assistant.tts.voices import load_voices
from capsules import ExecContext
from capsules.journal import Journals
from capsules.registry import Budgets, Registry
from tests.tts_engine.miniature import write_miniature
from tts_engine.engine import HiggsTTS
from tts_engine.sampling import VoiceSampling

FIRST, SECOND = "Good morning to you all.", "And a good night too."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = write_miniature(tmp_path_factory.mktemp("tts"))
    codes = torch.randint(0, 1024, (8, 12), generator=torch.Generator().manual_seed(3)).tolist()
    (path / "voices.json").write_text(json.dumps({"own": None, "other": codes}))
    return path


@pytest.fixture(scope="module")
def higgs(folder):
    return HiggsTTS.load(folder, ExecContext("cpu"), max_positions=512)


class TTSBench:
    def __init__(self, higgs, folder, disk=None, now=time.monotonic, sampling=None, history=None):
        self.higgs = higgs
        self.engine_thread = EngineThread(now)
        budgets = Budgets(host_bytes=1 << 28, disk_bytes=1 << 28 if disk else 0)
        self.registry = Registry.standard(higgs._ctx, budgets, lambda: 0.0, disk)
        self.voices = load_voices(higgs, folder, self.registry)
        journals = Journals(disk)
        for talk in ("a", "b"):
            journals.open(talk)
        deployment = Deployment(higgs._ctx, self.engine_thread, self.registry, journals, now)
        options = VoiceOptions(sampling=sampling, spoken=lambda text: text, history=history)
        self.tts = LocalTTS(deployment, higgs, self.voices, "mini", options)

    def run(self, play, *args):
        async def inside():
            self.engine_thread.start()
            try:
                return await asyncio.wait_for(play(self.tts, *args), 120)
            finally:
                self.engine_thread.stop()
                await asyncio.to_thread(self.engine_thread.join)

        return asyncio.run(inside())


async def say(tts, talk, piece_id, text, voice="own", stop_after=None):
    parts, marks = [], []
    async with aclosing(tts.speak(talk, voice, piece_id, text)) as sounds:
        async for sound in sounds:
            parts.append(sound.pcm)
            marks += sound.marks
            if stop_after is not None and sum(part.size for part in parts) >= stop_after:
                break
    return np.concatenate(parts) if parts else np.zeros(0, np.float32), marks


def state_of(higgs):
    capsule = higgs.snapshot()
    return capsule.position, {name: tensor.clone() for name, tensor in capsule.tensors.items()}


def assert_same_state(one, two):
    assert one[0] == two[0]
    for name, tensor in one[1].items():
        assert torch.equal(tensor.view(torch.uint8), two[1][name].view(torch.uint8)), name


def only_so_much(higgs, voice, frames):
    """Straight on the engine: rows until so many frames are complete, then the end."""
    higgs.open(voice)
    higgs.begin(FIRST, "exact")
    while higgs.frames < frames:
        higgs.step()
    higgs.cut(frames)
    return state_of(higgs)


@pytest.mark.slow
@pytest.mark.parametrize(("frames", "voice"), [(1, "own"), (8, "own"), (3, "other"), (11, "other")])
def test_memory_after_a_cut_is_that_of_a_voice_that_said_so_much(higgs, folder, frames, voice):
    app = TTSBench(higgs, folder)
    samples = frames * FRAME_SAMPLES + 500

    async def interrupted(tts):
        whole, _ = await say(tts, "a", "p0", FIRST, voice)
        assert whole.size > samples
        settled = await tts.sync("a", [Uttered("p0", FIRST, samples)])
        assert settled.what == "rollback"
        state = state_of(higgs)
        again, _ = await say(tts, "a", "p1", SECOND, voice)
        return whole, state, again

    async def stopped(tts):
        part, _ = await say(tts, "b", "p0", FIRST, voice, stop_after=samples)
        await tts.sync("b", [Uttered("p0", FIRST, samples)])
        state = state_of(higgs)
        again, _ = await say(tts, "b", "p1", SECOND, voice)
        return part, state, again

    whole, state, again = app.run(interrupted)
    part, state_b, again_b = TTSBench(higgs, folder).run(stopped)
    assert_same_state(state, state_b)
    assert_same_state(state, only_so_much(higgs, app.voices[voice], frames))
    # chunk sizes follow the clock and a convolution over another length rounds otherwise; the codes are the same
    assert np.allclose(whole[: part.size], part, atol=1e-5) and np.allclose(again, again_b, atol=1e-5)


def test_after_a_cut_somebody_waits_for_the_first_sound_again(higgs, folder):
    """What was cut does not play any more, so the next chunk is as short as a first one is."""

    async def play(tts):
        first = await say(tts, "a", "p0", FIRST, stop_after=1)
        await say(tts, "a", "p1", SECOND)
        steady = await say(tts, "a", "p2", FIRST, stop_after=1)
        await tts.sync("a", [Uttered("p0", FIRST, FRAME_SAMPLES)])
        cut = await say(tts, "a", "p3", FIRST, stop_after=1)
        return [sound.size for sound, _ in (first, steady, cut)]

    first, steady, cut = TTSBench(higgs, folder, now=lambda: 0.0).run(play)
    assert first == cut < steady


def test_a_long_session_begins_anew_once_it_was_heard(higgs, folder):
    """Not before: it may still be cut, or taken back with a guess. What is then said is what a fresh voice says."""
    clock = SimpleNamespace(now=0.0)
    app = TTSBench(higgs, folder, now=lambda: clock.now, history=60)

    async def play(tts):
        await say(tts, "a", "p0", FIRST)
        positions = [higgs.position]
        await tts.prepare("a")  # it still plays
        positions.append(higgs.position)
        clock.now = 60.0
        tts.guess("a")
        await tts.prepare("a")
        positions.append(higgs.position)
        await tts.take_back("a")
        await tts.prepare("a")
        positions.append(higgs.position)
        later, _ = await say(tts, "a", "p1", SECOND)
        assert (await tts.sync("a", [Uttered("p0", FIRST, 0), Uttered("p1", SECOND, later.size)])).what is None
        fresh, _ = await say(tts, "b", "p1", SECOND)
        return positions, later, fresh

    positions, later, fresh = app.run(play)
    assert positions[0] > 60 and positions[:3] == [positions[0]] * 3 and positions[3] < 10
    assert np.array_equal(later, fresh)


@pytest.mark.parametrize("between", [False, True], ids=["owner", "waiting"])
def test_a_branch_goes_on_in_the_tone_of_the_talk(higgs, folder, between):
    async def alone(tts, text):
        await say(tts, "a", "p0", "One two.", "other")
        await say(tts, "a", "p1", text, "other")
        return state_of(higgs)

    async def both(tts):
        await say(tts, "a", "p0", "One two.", "other")
        if between:
            await say(tts, "b", "q0", "Hm.", "own")
        await tts.fork("a", "a/1")
        found = []
        for talk, text in (("a/1", "Yes."), ("a", "No, no.")):
            await say(tts, talk, "p1", text, "other")
            found.append(state_of(higgs))
        return found

    found = TTSBench(higgs, folder).run(both)
    assert_same_state(found[0], TTSBench(higgs, folder).run(alone, "Yes."))
    assert_same_state(found[1], TTSBench(higgs, folder).run(alone, "No, no."))


@pytest.mark.slow
def test_an_undone_piece_never_happened(higgs, folder):
    async def play(tts, undo):
        await say(tts, "a", "p0", FIRST)
        if undo:
            await say(tts, "a", "p1", SECOND)
            [said, _] = tts._lease.find("a").said
            await tts.sync("a", [Uttered("p0", FIRST, said.frames * FRAME_SAMPLES)])
        return state_of(higgs)

    assert_same_state(TTSBench(higgs, folder).run(play, True), TTSBench(higgs, folder).run(play, False))


@pytest.mark.slow
def test_two_talks_share_the_engine_without_hearing_each_other(higgs, folder):
    async def alone(tts, talk, voice):
        first, _ = await say(tts, talk, "p0", FIRST, voice)
        second, _ = await say(tts, talk, "p1", SECOND, voice)
        return first, second

    async def mixed(tts):
        a0, _ = await say(tts, "a", "p0", FIRST, "own")
        b0, _ = await say(tts, "b", "p0", FIRST, "other")
        a1, _ = await say(tts, "a", "p1", SECOND, "own")
        b1, _ = await say(tts, "b", "p1", SECOND, "other")
        return (a0, a1), (b0, b1)

    a, b = TTSBench(higgs, folder).run(mixed)
    for have, want in zip((*a, *b), (*TTSBench(higgs, folder).run(alone, "a", "own"),
                                     *TTSBench(higgs, folder).run(alone, "b", "other")), strict=True):  # fmt: skip
        assert have.shape == want.shape and np.allclose(have, want, atol=1e-5)


@pytest.mark.slow
def test_sentences_of_two_talks_take_turns_and_sound_as_if_alone(higgs, folder, monkeypatch):
    """Time stands still here, so that each talk's lead is what it made."""
    monkeypatch.setattr("assistant.device.schedule.TARGET_LEAD_MS", 80.0)
    order = []

    async def told(tts, talk, voice):
        parts = []
        async with aclosing(tts.speak(talk, voice, "p0", FIRST)) as sounds:
            async for sound in sounds:
                order.append(talk)
                parts.append(sound.pcm)
        return np.concatenate(parts)

    async def together(tts):
        return await asyncio.gather(told(tts, "a", "own"), told(tts, "b", "other"))

    mixed = TTSBench(higgs, folder, now=lambda: 0.0).run(together)
    taken, order[:] = order[:], []
    alone = [
        TTSBench(higgs, folder, now=lambda: 0.0).run(told, "a", "own"),
        TTSBench(higgs, folder, now=lambda: 0.0).run(told, "b", "other"),
    ]
    assert "".join(talk for talk, _ in groupby(taken)).startswith("aba"), f"nobody gave way: {taken}"
    for one, other in zip(mixed, alone, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.slow
def test_without_memory_for_its_session_a_talk_speaks_on_as_if_it_had_had_it(higgs, folder, monkeypatch):
    """Its session is made again, row by row: sound and state are those of a talk that was alone."""

    async def play(tts, others):
        await say(tts, "a", "p0", FIRST)
        if others:
            monkeypatch.setattr(higgs._ctx, "bytes", lambda count: (_ for _ in ()).throw(MemoryError("none left")))
            await say(tts, "b", "p1", SECOND)
        sound, _ = await say(tts, "a", "p1", SECOND)
        monkeypatch.undo()
        return sound, state_of(higgs)

    alone, state = TTSBench(higgs, folder).run(play, False)
    crowded, same = TTSBench(higgs, folder).run(play, True)
    assert np.array_equal(alone, crowded)
    assert_same_state(state, same)


@pytest.mark.slow
def test_a_voice_that_comes_out_otherwise_begins_anew_and_says_so(higgs, folder, caplog):
    async def play(tts):
        await say(tts, "a", "p0", FIRST)
        await tts._call(tts._lease.release)
        state = tts._lease.find("a")
        state.session.session["pieces"][0]["rows"][3][0] ^= 1
        tts._lease._registry.remove(tts._lease._keys["a"])
        sound, _ = await say(tts, "a", "p1", SECOND)
        return sound

    async def fresh(tts):
        return (await say(tts, "a", "p1", SECOND))[0]

    assert np.array_equal(TTSBench(higgs, folder).run(play), TTSBench(higgs, folder).run(fresh))
    assert "begins anew" in caplog.text


@pytest.mark.slow
def test_what_cannot_be_spoken_makes_no_sound(higgs, folder):
    async def play(tts):
        return [(await say(tts, "a", f"p{i}", text))[0].size for i, text in enumerate(["", "  ", FIRST])]

    assert [size > 0 for size in TTSBench(higgs, folder).run(play)] == [False, False, True]


@pytest.mark.slow
def test_sound_is_marked_with_the_words_it_speaks(higgs, folder):
    async def play(tts):
        return await say(tts, "a", "p0", FIRST)

    _, marks = TTSBench(higgs, folder).run(play)
    assert [FIRST[mark.char :].split(maxsplit=1)[0] for mark in marks] == FIRST.split()
    assert [mark.sample for mark in marks] == sorted(mark.sample for mark in marks)


@pytest.mark.slow
@pytest.mark.parametrize("restart", [True, False], ids=["restarted", "reconnected"])
def test_a_parked_voice_goes_on_as_if_nobody_had_left(higgs, folder, tmp_path, restart):
    """Other talks, and another process, had the engine in between; what was cut meanwhile is cut."""

    async def first(tts):
        await say(tts, "a", "p0", FIRST)
        await say(tts, "a", "p1", SECOND)
        [said, _] = tts._lease.find("a").said
        await tts.park("a")
        assert "a" not in tts._lease
        await say(tts, "b", "p0", SECOND, "other")
        return said.frames * FRAME_SAMPLES

    async def then(tts, heard):
        settled = await tts.sync("a", [Uttered("p0", FIRST, heard)])
        assert settled.what == "rollback"
        await say(tts, "a", "p1", SECOND)
        return state_of(higgs)

    async def both(tts):
        return await then(tts, await first(tts))

    async def stayed(tts):
        await say(tts, "a", "p0", FIRST)
        await say(tts, "a", "p1", SECOND)
        return state_of(higgs)

    app = TTSBench(higgs, folder, tmp_path)
    if restart:
        heard = app.run(first)
        app.registry.flush()
        higgs.open()
        state = TTSBench(higgs, folder, tmp_path).run(then, heard)
    else:
        state = app.run(both)
    assert_same_state(state, TTSBench(higgs, folder).run(stayed))


@pytest.mark.slow
def test_a_forgotten_voice_is_gone_from_disk_too(higgs, folder, tmp_path):
    async def play(tts):
        await say(tts, "a", "p0", FIRST)
        await tts.park("a")
        kept = len(tts._lease._registry.listing())
        await tts.forget_talk("a")
        return kept - len(tts._lease._registry.listing())

    assert TTSBench(higgs, folder, tmp_path).run(play) == 1


def test_voices_are_restored_from_disk_the_second_time(higgs, folder, tmp_path):
    first = TTSBench(higgs, folder, tmp_path)
    first.registry.flush()
    again = TTSBench(higgs, folder, tmp_path)
    assert again.registry.counters.total("hits", way="name") == 2
    assert set(again.voices) == {"own", "other"}


def test_leaving_early_leaves_no_work_behind(higgs, folder):
    async def play(tts):
        part, _ = await say(tts, "a", "p0", FIRST, stop_after=1)
        assert tts._engine_thread.waiting == 0 and not higgs.busy
        [said] = tts._lease.find("a").said
        assert said.frames * FRAME_SAMPLES >= part.size  # the engine may be ahead of who hears it
        assert higgs.frames == said.frames
        await tts.forget_talk("a")
        return "a" in tts._lease

    assert TTSBench(higgs, folder).run(play) is False


# ---------------------------------------------------------------------------------------------- guesses


async def known(bench, talk):
    """All that is known of a talk's session, and the engine's state; a talk that never spoke has neither."""

    def look():
        state = bench.tts._lease.find(talk)
        if state is None:
            return None
        bench.tts._lease.own(talk)
        host = bench.higgs.snapshot().host
        return bench.tts._lease._lessee.to_rows(state), state.plays_until, host, state_of(bench.higgs)

    return await bench.engine_thread.call(EngineKind.TTS, look, talk=talk)


def assert_never_was(before, after):
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert before[:-1] == after[:-1]
        assert_same_state(before[-1], after[-1])


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [None, VoiceSampling(temperature=1.0, top_k=40, seed=5)], ids=["own", "sampled"])
@pytest.mark.parametrize("spoken", [0, 1, 2])
@pytest.mark.parametrize("other", [False, True], ids=["alone", "another-talk-between"])
def test_a_dropped_guess_was_never_said(higgs, folder, monkeypatch, spoken, sampling, other):
    """Law L8, after every row that a guess can make; what is said next is sampled as if it had been said at once."""

    async def play(tts, bench, steps):
        for n in range(spoken):
            await say(tts, "a", f"p{n}", (FIRST, SECOND)[n])
        if spoken == 2:  # cut, as after an interruption
            said = tts._lease.find("a").said
            await tts.sync("a", [Uttered(one.piece_id, "", one.frames * FRAME_SAMPLES) for one in said[:1]]
                           + [Uttered("p1", SECOND, 3 * FRAME_SAMPLES)])  # fmt: skip
        before = await known(bench, "a")
        if steps is not None:
            monkeypatch.setattr(schedule, "GUESS_STEPS", steps)
            tts.guess("a")
            made = asyncio.ensure_future(say(tts, "a", "g0", "This was never said."))
            await asyncio.sleep(0)
            while steps and not made.done() and tts._guesses.find("a").jobs[0].steps < steps:
                await asyncio.sleep(0.001)
            if other:
                await say(tts, "b", "p0", "Me too.", "other")
            made.cancel()
            await asyncio.wait([made])
            monkeypatch.undo()
            assert await tts.take_back("a") > 0 or not steps
            assert_never_was(before, await known(bench, "a"))
        await say(tts, "a", "p9", SECOND)
        return (await known(bench, "a"))[-1]

    def held(steps):
        bench = TTSBench(higgs, folder, sampling=sampling)
        return bench.run(play, bench, steps)

    expected = held(None)
    for steps in [0, 2, 9, 40] if other else [0, 1, 2, 5, 9, 14, 40]:
        assert_same_state(held(steps), expected)


@pytest.mark.slow
def test_a_guess_changes_no_voice_and_forgets_no_piece(higgs, folder):
    async def play(tts):
        await say(tts, "a", "p0", FIRST)
        tts.guess("a")
        with pytest.raises(EngineFailed, match="cannot change the voice from own to other"):
            await say(tts, "a", "g0", SECOND, "other")
        await tts.take_back("a")
        for n in range(1, 9):
            await say(tts, "a", f"p{n}", FIRST)
        tts.guess("a")
        with pytest.raises(EngineFailed, match="no room for a guess"):
            for n in range(9):
                await say(tts, "a", f"g{n}", FIRST)
        await tts.take_back("a")

    TTSBench(higgs, folder).run(play)
