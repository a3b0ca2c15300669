"""Work that may be taken back: whose state is whose, and who waits for that."""

import asyncio

from assistant.device.guess import Guesses
from assistant.device.schedule import EngineKind
from assistant.device.thread import EngineThread


class Lease:
    def hide(self, talk): ...

    def show(self, talk): ...

    def note(self, talk): ...


def with_guesses(play):
    async def inside():
        engine_thread = EngineThread()
        engine_thread.start()
        try:
            return await asyncio.wait_for(play(Guesses(engine_thread, EngineKind.LLM, Lease())), 30)
        finally:
            engine_thread.stop()
            await asyncio.to_thread(engine_thread.join)

    return asyncio.run(inside())


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


def test_who_asks_about_a_talk_waits_for_its_own_guess_alone():
    async def play(guesses):
        await guesses.over("a")
        guesses.begin("b")
        await guesses.over("a")
        waiting = asyncio.ensure_future(guesses.over("b"))
        await settled()
        assert not waiting.done()
        guesses.confirm("b")
        await waiting

    with_guesses(play)


def test_what_is_asked_behind_a_guess_finds_it_taken_back():
    async def play(guesses):
        log = []

        async def ask():
            await guesses.over("a")
            await guesses._engine_thread.call(EngineKind.LLM, lambda: log.append("asked"), talk="a")

        guesses.begin("a")
        asking = asyncio.ensure_future(ask())
        await settled()
        await guesses.take_back("a", lambda guess: log.append("taken back"))
        await asking
        assert log == ["taken back", "asked"]

    with_guesses(play)


def test_who_waits_for_one_guess_waits_for_the_next_that_began_at_once():
    async def play(guesses):
        guesses.begin("a")
        waiting = asyncio.ensure_future(guesses.over("a"))
        await settled()
        guesses.confirm("a")
        guesses.begin("a")
        await settled()
        assert not waiting.done()
        guesses.confirm("a")
        await waiting

    with_guesses(play)
