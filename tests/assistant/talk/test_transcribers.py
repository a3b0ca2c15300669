"""One transcriber is enough for talks that follow each other: whoever takes one gives it back, however it ends."""

import asyncio
import threading

import numpy as np
import pytest

from assistant.asr import local
from assistant.asr.local import LocalASR
from assistant.events import AppendAudio, CommitAudio, CreateItem, Message, Settings, TextPart, TranscriptCompleted
from assistant.server.listen import write_down
from tests.fakes.loop import run
from tests.fakes.models import FAKE_EARS, FakeDetector, FakeEars, FakeTranscriber
from tests.fakes.talk import World, inline

BY_HAND = Settings(persona="ada", turn_detection=None)


class CountedScribe(FakeTranscriber):
    """Knows whether somebody works with it, and what became of it."""

    def __init__(self, ears):
        super().__init__(ears)
        self.busy = False
        self.forgot = 0

    def forget(self):
        assert not self.busy
        self.forgot += 1
        self.reset()


class Ears(LocalASR):
    """The local ears' keeping of transcribers over fake ones; `made` are all that were ever loaded."""

    def __init__(self):
        self.fake, self.made = FakeEars(), []
        super().__init__(FAKE_EARS, self.load)

    def load(self):
        self.made.append(CountedScribe(self.fake))
        return self.made[-1]

    def detector(self):
        return self.fake.detector()

    @property
    def spare(self):
        return len(self._spare)


def world_of(ears, **kinds):
    """Its microphone speaks what these ears hear."""
    world = World(asr=ears, **kinds)
    world.asr = ears.fake
    return world


def test_talks_one_after_the_other_share_a_detector(monkeypatch):
    """Each holds memory that only the collector of cycles would find, some day."""
    made = []
    monkeypatch.setattr(local, "SileroDetector", lambda: made.append(FakeDetector()) or made[-1])

    class Kept(Ears):
        def detector(self):
            return LocalASR.detector(self)

    ears = Kept()
    for _ in range(3):
        world = world_of(ears)
        world.play((0.5, ("hello", 1.0)), until=6)
    assert len(made) == 1


def test_two_talks_and_a_transcription_load_one():
    ears = Ears()
    ears.warm()
    for _ in range(2):
        world = world_of(ears)
        world.play((0.2, ("hello there", 0.8)), until=4)
        assert world.of(TranscriptCompleted)[0].transcript == "hello there"
    sound = np.concatenate([np.zeros(16_000, np.float32), ears.fake.spoken("and again", 1.0)])
    assert [segment.text for segment in write_down(ears, sound)] == ["and again"]
    assert len(ears.made) == ears.spare == 1 and ears.made[0].forgot == 3


def test_talks_at_once_have_one_each_and_the_next_two_none_new():
    ears = Ears()

    async def both():
        world = world_of(ears)
        await asyncio.gather(*(world.talk((0.1, ("one", 0.5)), until=2) for _ in range(2)))

    run(both())
    run(both())
    assert len(ears.made) == ears.spare == 2


async def takes_a_second(function):
    await asyncio.sleep(1)
    return function()


@pytest.mark.parametrize("end", ["close", "cancel", "break"])
@pytest.mark.parametrize("at", [0.0, 0.5, 1.2, 3.5], ids=["begun", "loading", "idle", "at work"])
def test_it_comes_back_however_a_session_ends(end, at):
    ears = Ears()
    world = world_of(ears, settings=BY_HAND, offload=takes_a_second)

    async def talk():
        session = world.talks.open()
        running = asyncio.ensure_future(session.run())
        await asyncio.sleep(at)
        if at > 3:  # half a second into the second slice
            await session.send(AppendAudio(np.full(3200, 0.3, np.float32), 16_000))
            await asyncio.sleep(1.5)
        if end == "close":
            session.close()
        elif end == "cancel":
            running.cancel()
        else:
            session._context.inbox.offer(object())  # a mistake of our own: the group ends with it
        await asyncio.wait([running])
        if end == "break":
            assert running.exception() is not None
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(talk())
    assert len(ears.made) == ears.spare == 1


def test_it_does_not_come_back_before_its_thread_is_done_with_it():
    """A cancelled wait does not stop a thread; the next talk must not meet it at work."""
    ears = Ears()
    go_on, begun = threading.Event(), threading.Event()

    class Held(CountedScribe):
        def push(self, pcm):
            self.busy = True
            begun.set()
            go_on.wait(10)
            self.busy = False
            return ""

    ears._make = lambda: Held(ears.fake)
    world = world_of(ears, settings=BY_HAND, offload=asyncio.to_thread)

    async def talk():
        session = world.talks.open()
        running = asyncio.ensure_future(session.run())
        await session.send(AppendAudio(np.full(1600, 0.3, np.float32), 16_000))
        await asyncio.to_thread(begun.wait, 10)
        session.close()
        await asyncio.sleep(0)
        assert not ears.spare
        go_on.set()
        await running
        assert ears.spare == 1

    asyncio.run(talk())


def test_a_request_that_breaks_gives_it_back():
    ears = Ears()

    class Broken(CountedScribe):
        def push(self, pcm):
            raise RuntimeError("out of words")

    ears._make = lambda: Broken(ears.fake)
    with pytest.raises(RuntimeError):
        write_down(ears, ears.fake.spoken("hello", 1.0))
    assert ears.spare == 1


def test_a_talk_goes_on_while_its_transcriber_is_written_to():
    """The shape of a whole turn is what it was: sound, commit, words."""
    ears = Ears()
    world = world_of(ears, settings=BY_HAND, offload=inline)
    world.play((0.1, ("good day", 0.5)), (0.8, CommitAudio()),
               (0.9, CreateItem(Message("t", "user", (TextPart("x"),)))), until=2)  # fmt: skip
    assert world.of(TranscriptCompleted)[0].transcript == "good day"
