"""The local voice on a random miniature: its memory after a cut is that of a voice that only ever said so much."""

import asyncio
import json
import time
from contextlib import aclosing
from itertools import groupby

import numpy as np
import pytest
import torch

from assistant.contracts import Uttered
from assistant.device.thread import Cohost
from assistant.tts.local import FRAME_SAMPLES, LocalSpeaker, load_voices
from capsules import ExecContext
from capsules.registry import Budgets, Registry
from tests.tts_engine.miniature import write_miniature
from tts_engine.engine import HiggsTTS

FIRST, SECOND = "Good morning to you all.", "And a good night too."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = write_miniature(tmp_path_factory.mktemp("tts"))
    codes = torch.randint(0, 1024, (8, 12), generator=torch.Generator().manual_seed(3)).tolist()
    (path / "voices.json").write_text(json.dumps({"own": None, "other": codes}))
    return path


@pytest.fixture(scope="module")
def tts(folder):
    return HiggsTTS.load(folder, ExecContext("cpu"), max_positions=512)


class House:
    def __init__(self, tts, folder, disk=None, now=time.monotonic):
        self.tts = tts
        self.cohost = Cohost(now)
        budgets = Budgets(host_bytes=1 << 28, disk_bytes=1 << 28 if disk else 0)
        self.registry = Registry.standard(tts._ctx, budgets, lambda: 0.0, disk)
        self.voices = load_voices(tts, folder, self.registry)
        self.speaker = LocalSpeaker(
            self.cohost, tts, self.voices, self.registry, "mini", spoken=lambda text: text, now=now
        )

    def run(self, play, *args):
        async def inside():
            self.cohost.start()
            try:
                return await asyncio.wait_for(play(self.speaker, *args), 120)
            finally:
                self.cohost.stop()
                await asyncio.to_thread(self.cohost.join)

        return asyncio.run(inside())


async def say(speaker, talk, piece_id, text, voice="own", stop_after=None):
    parts, marks = [], []
    async with aclosing(speaker.speak(talk, voice, piece_id, text)) as sounds:
        async for sound in sounds:
            parts.append(sound.pcm)
            marks += sound.marks
            if stop_after is not None and sum(part.size for part in parts) >= stop_after:
                break
    return np.concatenate(parts) if parts else np.zeros(0, np.float32), marks


def state_of(tts):
    capsule = tts.snapshot()
    return capsule.position, {name: tensor.clone() for name, tensor in capsule.tensors.items()}


def assert_same_state(one, two):
    assert one[0] == two[0]
    for name, tensor in one[1].items():
        assert torch.equal(tensor.view(torch.uint8), two[1][name].view(torch.uint8)), name


def only_so_much(tts, voice, frames):
    """Straight on the engine: rows until so many frames are complete, then the end."""
    tts.open(voice)
    tts.begin(FIRST, "exact")
    while tts.frames < frames:
        tts.step()
    tts.cut(frames)
    return state_of(tts)


@pytest.mark.parametrize(("frames", "voice"), [(1, "own"), (8, "own"), (3, "other"), (11, "other")])
def test_memory_after_a_cut_is_that_of_a_voice_that_said_so_much(tts, folder, frames, voice):
    house = House(tts, folder)
    samples = frames * FRAME_SAMPLES + 500

    async def interrupted(speaker):
        whole, _ = await say(speaker, "a", "p0", FIRST, voice)
        assert whole.size > samples
        settled = await speaker.settle("a", [Uttered("p0", FIRST, samples)])
        assert settled.what == "rollback"
        state = state_of(tts)
        again, _ = await say(speaker, "a", "p1", SECOND, voice)
        return whole, state, again

    async def stopped(speaker):
        part, _ = await say(speaker, "b", "p0", FIRST, voice, stop_after=samples)
        await speaker.settle("b", [Uttered("p0", FIRST, samples)])
        state = state_of(tts)
        again, _ = await say(speaker, "b", "p1", SECOND, voice)
        return part, state, again

    whole, state, again = house.run(interrupted)
    part, state_b, again_b = House(tts, folder).run(stopped)
    assert_same_state(state, state_b)
    assert_same_state(state, only_so_much(tts, house.voices[voice], frames))
    # chunk sizes follow the clock and a convolution over another length rounds otherwise; the codes are the same
    assert np.allclose(whole[: part.size], part, atol=1e-5) and np.allclose(again, again_b, atol=1e-5)


def test_an_undone_piece_never_happened(tts, folder):
    async def play(speaker, undo):
        await say(speaker, "a", "p0", FIRST)
        if undo:
            await say(speaker, "a", "p1", SECOND)
            [said, _] = speaker._talks["a"].said
            await speaker.settle("a", [Uttered("p0", FIRST, said.frames * FRAME_SAMPLES)])
        return state_of(tts)

    assert_same_state(House(tts, folder).run(play, True), House(tts, folder).run(play, False))


def test_two_talks_share_the_engine_without_hearing_each_other(tts, folder):
    async def alone(speaker, talk, voice):
        first, _ = await say(speaker, talk, "p0", FIRST, voice)
        second, _ = await say(speaker, talk, "p1", SECOND, voice)
        return first, second

    async def mixed(speaker):
        a0, _ = await say(speaker, "a", "p0", FIRST, "own")
        b0, _ = await say(speaker, "b", "p0", FIRST, "other")
        a1, _ = await say(speaker, "a", "p1", SECOND, "own")
        b1, _ = await say(speaker, "b", "p1", SECOND, "other")
        return (a0, a1), (b0, b1)

    a, b = House(tts, folder).run(mixed)
    for have, want in zip((*a, *b), (*House(tts, folder).run(alone, "a", "own"),
                                     *House(tts, folder).run(alone, "b", "other")), strict=True):  # fmt: skip
        assert have.shape == want.shape and np.allclose(have, want, atol=1e-5)


def test_sentences_of_two_talks_take_turns_and_sound_as_if_alone(tts, folder, monkeypatch):
    """Time stands still here, so that each talk's lead is what it made."""
    monkeypatch.setattr("assistant.device.schedule.TARGET_LEAD_MS", 80.0)
    order = []

    async def told(speaker, talk, voice):
        parts = []
        async with aclosing(speaker.speak(talk, voice, "p0", FIRST)) as sounds:
            async for sound in sounds:
                order.append(talk)
                parts.append(sound.pcm)
        return np.concatenate(parts)

    async def together(speaker):
        return await asyncio.gather(told(speaker, "a", "own"), told(speaker, "b", "other"))

    mixed = House(tts, folder, now=lambda: 0.0).run(together)
    taken, order[:] = order[:], []
    alone = [
        House(tts, folder, now=lambda: 0.0).run(told, "a", "own"),
        House(tts, folder, now=lambda: 0.0).run(told, "b", "other"),
    ]
    assert "".join(talk for talk, _ in groupby(taken)).startswith("aba"), f"nobody gave way: {taken}"
    for one, other in zip(mixed, alone, strict=True):
        assert np.array_equal(one, other)


def test_without_memory_for_its_session_a_talk_speaks_on_afresh(tts, folder, monkeypatch):
    async def play(speaker):
        await say(speaker, "a", "p0", FIRST)
        monkeypatch.setattr(tts._ctx, "bytes", lambda count: (_ for _ in ()).throw(MemoryError("none left")))
        sounds = [(await say(speaker, talk, "p1", SECOND))[0] for talk in ("b", "a")]
        return sounds, list(speaker._talks)

    (b, a), kept = House(tts, folder).run(play)
    assert np.array_equal(a, b) and kept == ["a"]


def test_what_cannot_be_spoken_makes_no_sound(tts, folder):
    async def play(speaker):
        return [(await say(speaker, "a", f"p{i}", text))[0].size for i, text in enumerate(["", "  ", FIRST])]

    assert [size > 0 for size in House(tts, folder).run(play)] == [False, False, True]


def test_sound_is_marked_with_the_words_it_speaks(tts, folder):
    async def play(speaker):
        return await say(speaker, "a", "p0", FIRST)

    _, marks = House(tts, folder).run(play)
    assert [FIRST[mark.char :].split(maxsplit=1)[0] for mark in marks] == FIRST.split()
    assert [mark.sample for mark in marks] == sorted(mark.sample for mark in marks)


@pytest.mark.parametrize("restart", [True, False], ids=["restarted", "reconnected"])
def test_a_parked_voice_goes_on_as_if_nobody_had_left(tts, folder, tmp_path, restart):
    """Other talks, and another process, had the engine in between; what was cut meanwhile is cut."""

    async def first(speaker):
        await say(speaker, "a", "p0", FIRST)
        await say(speaker, "a", "p1", SECOND)
        [said, _] = speaker._talks["a"].said
        await speaker.park("a")
        assert "a" not in speaker._talks
        await say(speaker, "b", "p0", SECOND, "other")
        return said.frames * FRAME_SAMPLES

    async def then(speaker, heard):
        settled = await speaker.settle("a", [Uttered("p0", FIRST, heard)])
        assert settled.what == "rollback"
        await say(speaker, "a", "p1", SECOND)
        return state_of(tts)

    async def both(speaker):
        return await then(speaker, await first(speaker))

    async def stayed(speaker):
        await say(speaker, "a", "p0", FIRST)
        await say(speaker, "a", "p1", SECOND)
        return state_of(tts)

    house = House(tts, folder, tmp_path)
    if restart:
        heard = house.run(first)
        house.registry.close()
        tts.open()
        state = House(tts, folder, tmp_path).run(then, heard)
    else:
        state = house.run(both)
    assert_same_state(state, House(tts, folder).run(stayed))


def test_a_forgotten_voice_is_gone_from_disk_too(tts, folder, tmp_path):
    async def play(speaker):
        await say(speaker, "a", "p0", FIRST)
        await speaker.park("a")
        kept = len(speaker._registry.listing())
        await speaker.forget("a")
        return kept - len(speaker._registry.listing())

    assert House(tts, folder, tmp_path).run(play) == 1


def test_voices_are_restored_from_disk_the_second_time(tts, folder, tmp_path):
    first = House(tts, folder, tmp_path)
    first.registry.close()
    again = House(tts, folder, tmp_path)
    assert again.registry.counters.total("hits", way="name") == 2
    assert set(again.voices) == {"own", "other"}


def test_leaving_early_leaves_no_work_behind(tts, folder):
    async def play(speaker):
        part, _ = await say(speaker, "a", "p0", FIRST, stop_after=1)
        assert speaker._cohost.waiting == 0 and not tts.busy
        said = speaker._talks["a"].said
        assert [one.frames * FRAME_SAMPLES for one in said] == [part.size] and tts.frames == said[0].frames
        await speaker.forget("a")
        return speaker._talks

    assert House(tts, folder).run(play) == {}
