"""The local language model on a random hybrid one: the state after a cut is that of a talk that only said that much."""

import asyncio
import random
import re
import threading
from contextlib import aclosing

import pytest
import torch

from assistant.base.errors import EngineFailed
from assistant.contracts import CallPiece, Line, Prompt, PromptReady, ReplyEnd, ReplyOptions, TextPiece
from assistant.device import schedule
from assistant.device.deployment import Deployment
from assistant.device.lease import RETURNING
from assistant.device.schedule import EngineKind
from assistant.device.sleep import Sleep
from assistant.device.thread import EngineThread
from assistant.llm.local import LocalLLM
from capsules import ExecContext
from capsules.exec import away
from capsules.journal import Journals
from capsules.registry import Budgets, Registry
from llm_engine import HybridLLM, Sampling
from llm_engine.sequence import FoldedSequence
from tests.fakes.engines import language, write_llm, write_plain_llm

SYSTEM = "You are Ada. " * 6


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_llm(tmp_path_factory.mktemp("llm"))


@pytest.fixture(scope="module")
def engine(checkpoint):
    return HybridLLM.load(checkpoint, ExecContext("cpu"), max_positions=500)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return HybridLLM.load(write_plain_llm(tmp_path_factory.mktemp("plain")), ExecContext("cpu"), max_positions=500)


class LLMBench:
    """An engine, its thread and a language model, for as long as a test lasts."""

    def __init__(self, engine, calls=False, folder=None, host_bytes=1 << 28, disk_bytes=0):
        self.engine = engine
        engine.reset()
        self.engine_thread, self.sleep = EngineThread(), None
        self.registry = Registry.standard(
            engine._ctx, Budgets(host_bytes=host_bytes, disk_bytes=disk_bytes), lambda: 0.0, folder
        )
        self.journals = Journals(folder)
        for talk in ("a", "conv_1"):
            self.journals.open(talk)
        deployment = Deployment(engine._ctx, self.engine_thread, self.registry, self.journals)
        self.llm = LocalLLM(deployment, engine, language(calls), "toy", Sampling.greedy())

    def run(self, coroutine):
        async def inside():
            self.engine_thread.start(self.sleep)
            try:
                return await asyncio.wait_for(coroutine, 600)
            finally:
                self.engine_thread.stop()
                await asyncio.to_thread(self.engine_thread.join)

        return asyncio.run(inside())


def prompt(*lines, system=SYSTEM):
    return Prompt(system, (), tuple(lines))


def user(text):
    return Line("user", text)


def said(text, reply_id):
    return Line("assistant", text, (), reply_id)


def test_the_first_reply_after_a_sleep_says_what_waking_took(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(away, "SMALLEST", 1)
    bench = LLMBench(engine)
    bench.sleep = Sleep([engine._ctx], tmp_path)

    async def story():
        told = []
        for number, slept in enumerate((False, True, False)):
            assert not slept or await bench.engine_thread.fall_asleep() > 0
            _, _, ready = await reply(bench.llm, "a", prompt(user("how are you?")), f"r{number}", 3)
            told.append({cost.name: cost.ms for cost in ready.costs}["wake"] > 0)
        return told

    assert bench.run(story()) == [False, True, False]
    bench.sleep.discard()


async def reply(llm, talk, asked, reply_id, n=30, **sampling):
    text, end, ready = "", None, None
    async for piece in llm.reply(talk, asked, ReplyOptions(reply_id, n, **sampling)):
        match piece:
            case TextPiece():
                text += piece.text
            case ReplyEnd():
                end = piece
            case PromptReady():
                ready = piece
    return text, end, ready


def test_the_ends_of_what_may_be_asked_of_a_draw_are_taken(engine):
    """`top_p` 0 is the likeliest token alone, and more tokens than ever take part in a draw are all."""

    bench = LLMBench(engine)

    async def both():
        drawn = {"temperature": 1.9, "top_p": 0.0, "top_k": 1_000_000, "seed": 3}
        asked = (("a", {"temperature": 0.0}), ("b", drawn))
        return [await reply(bench.llm, talk, prompt(user("count")), f"{talk}.0", **how) for talk, how in asked]

    likeliest, drawn = bench.run(both())
    assert likeliest[0] == drawn[0] != ""


def state_of(engine):
    capsule = engine.snapshot()
    return capsule.position, capsule.tokens, {name: tensor.clone() for name, tensor in capsule.tensors.items()}


def assert_same_state(one, two):
    assert one[0] == two[0] and one[1] == two[1]
    assert one[2].keys() == two[2].keys()
    for name, tensor in one[2].items():
        assert torch.equal(tensor.view(torch.uint8), two[2][name].view(torch.uint8)), name


@pytest.mark.parametrize("cut", [1, 7, 16, 17, 29])
def test_state_after_a_cut_is_that_of_a_talk_that_only_said_so_much(engine, cut):
    async def interrupted(llm):
        text, _, _ = await reply(llm, "a", prompt(user("count")), "r1.0")
        heard = text[:cut]
        settled = await llm.sync("a", prompt(user("count"), said(heard, "r1.0")))
        assert settled.what == "rollback"
        state = state_of(engine)
        again = await reply(llm, "a", prompt(user("count"), said(heard, "r1.0"), user("go on")), "r2.0")
        return text, state, again[0], state_of(engine)

    async def only_so_much(llm):
        text, end, _ = await reply(llm, "b", prompt(user("count")), "r1.0", n=cut)
        assert end.reason == "length"
        state = state_of(engine)
        again = await reply(llm, "b", prompt(user("count"), said(text, "r1.0"), user("go on")), "r2.0")
        return text, state, again[0], state_of(engine)

    whole, state, answer, after = LLMBench(engine).run_(interrupted)
    part, wanted, expected, expected_after = LLMBench(engine).run_(only_so_much)
    assert whole[:cut] == part and answer == expected
    assert_same_state(state, wanted)
    assert_same_state(after, expected_after)


def test_a_cut_after_another_talk_had_the_engine_refolds_only_the_reply(engine, monkeypatch):
    bases = []
    refold = FoldedSequence._refold

    def counted(self, tokens, base):
        bases.append(base)
        refold(self, tokens, base)

    monkeypatch.setattr(FoldedSequence, "_refold", counted)

    async def play(llm, between):
        text, _, ready = await reply(llm, "a", prompt(user("count")), "r1.0")
        if between:
            await reply(llm, "b", prompt(user("and you")), "r1.0")
        bases.clear()
        settled = await llm.sync("a", prompt(user("count"), said(text[:5], "r1.0")))
        assert settled.what == "rollback"
        return ready.input_tokens, state_of(engine)

    _, alone = (app := LLMBench(engine)).run(play(app.llm, False))
    begins, swapped = (app := LLMBench(engine)).run(play(app.llm, True))
    assert bases == [begins]
    assert_same_state(alone, swapped)


def test_cutting_without_settling_ends_in_the_same_state(engine):
    async def play(llm, sync):
        text, _, _ = await reply(llm, "a", prompt(user("hello")), "r1.0")
        cut = prompt(user("hello"), said(text[:9], "r1.0"))
        if sync:
            await llm.sync("a", cut)
        await reply(llm, "a", Prompt(SYSTEM, (), (*cut.lines, user("yes"))), "r2.0")
        return state_of(engine)

    assert_same_state(LLMBench(engine).run_(play, True), LLMBench(engine).run_(play, False))


def test_stopping_in_mid_reply_then_cutting_is_the_same_too(engine):
    async def stopped(llm):
        text = ""
        async with aclosing(llm.reply("a", prompt(user("hello")), ReplyOptions("r1.0", 30))) as pieces:
            async for piece in pieces:
                text += piece.text if isinstance(piece, TextPiece) else ""
                if len(text) >= 12:
                    break
        await llm.sync("a", prompt(user("hello"), said(text[:5], "r1.0")))
        return state_of(engine)

    async def only(llm):
        await reply(llm, "a", prompt(user("hello")), "r1.0", n=5)
        return state_of(engine)

    assert_same_state(LLMBench(engine).run_(stopped), LLMBench(engine).run_(only))


def test_undo_gives_the_state_of_before(engine):
    async def play(llm, undo):
        first, _, _ = await reply(llm, "a", prompt(user("one")), "r1.0")
        lines = (user("one"), said(first, "r1.0"))
        if undo:
            second, _, _ = await reply(llm, "a", prompt(*lines, user("two")), "r2.0")
            assert second
            await llm.sync("a", prompt(*lines))
        return state_of(engine)

    assert_same_state(LLMBench(engine).run_(play, True), LLMBench(engine).run_(play, False))


def test_later_turns_append_only_what_is_new(engine):
    async def play(llm):
        lines, cached = (), []
        for turn in range(4):
            lines = (*lines, user(f"turn {turn}"))
            text, _, ready = await reply(llm, "a", prompt(*lines), f"r{turn}.0", n=8)
            cached.append((ready.cached_tokens, ready.input_tokens))
            lines = (*lines, said(text, f"r{turn}.0"))
        return cached

    cached = LLMBench(engine).run_(play)
    for (have, total), (_, before) in zip(cached[1:], cached, strict=False):
        assert have == before + 8 and total > have


@pytest.mark.slow
def test_two_talks_take_turns_and_do_not_see_each_other(engine, monkeypatch):
    async def alone(llm, talk):
        first, _, _ = await reply(llm, talk, prompt(user(talk)), "r1.0")
        second, _, _ = await reply(llm, talk, prompt(user(talk), said(first, "r1.0"), user("more")), "r2.0")
        return first, second

    async def mixed(llm):
        a1, _, _ = await reply(llm, "a", prompt(user("a")), "r1.0")
        b1, _, _ = await reply(llm, "b", prompt(user("b")), "r1.0")
        a2, _, ready = await reply(llm, "a", prompt(user("a"), said(a1, "r1.0"), user("more")), "r2.0")
        assert ready.cached_tokens > 30
        b2, _, _ = await reply(llm, "b", prompt(user("b"), said(b1, "r1.0"), user("more")), "r2.0")
        return (a1, a2), (b1, b2)

    expected = LLMBench(engine).run_(alone, "a"), LLMBench(engine).run_(alone, "b")
    assert LLMBench(engine).run_(mixed) == expected
    assert LLMBench(engine, host_bytes=0).run_(mixed_without_room) == expected

    def none_left(count):
        raise RuntimeError(f"[enforce fail] DefaultCPUAllocator: can't allocate memory: {count} bytes")

    monkeypatch.setattr(engine._ctx, "bytes", none_left)
    app = LLMBench(engine)
    assert app.run_(mixed_without_room) == expected and not app.registry.listing()


def test_a_parked_talk_is_held_while_its_front_may_come_back(engine, tmp_path):
    bench = LLMBench(engine, folder=tmp_path, disk_bytes=1 << 28)

    async def play(llm):
        await reply(llm, "a", prompt(user("hello")), "r1.0", n=3)
        await llm.park("a")

    bench.run_(play)
    (parked,) = [one for one in bench.registry.listing() if one.name == "talk/a/llm"]
    assert parked.pinned and parked.homes.keys() == {"host", "disk"}
    assert bench.registry.counters.total("charged") == engine.checkpoint_bytes > 0


def test_memory_holds_the_last_talks_that_ended_and_the_disk_all(engine, tmp_path):
    """After 20 talks memory holds as many bytes of them as after ten."""
    bench = LLMBench(engine, folder=tmp_path, disk_bytes=1 << 28)
    talks = [f"t{n}" for n in range(20)]
    used: list[int] = []

    async def play(llm):
        for talk in talks:
            bench.journals.open(talk)
            await reply(llm, talk, prompt(user("hello")), "r1.0", n=3)
            await llm.park(talk)
            used.append(bench.registry.store.used_bytes("host"))
        first = prompt(user("hello"), said("x", "r1.0"), user("more"))
        _, _, ready = await reply(llm, talks[0], first, "r2.0", n=3)
        return ready

    ready = bench.run_(play)
    homes = {one.name: one.homes.keys() for one in bench.registry.listing()}
    assert all("disk" in homes[f"talk/{talk}/llm"] for talk in talks)
    in_memory = [talk for talk in talks if "host" in homes[f"talk/{talk}/llm"]]
    assert in_memory == [talks[0], *talks[-RETURNING:]]
    assert used[-1] == used[RETURNING - 1] == used[RETURNING] > 0
    assert ready.cached_tokens > 0, "a talk that rests on disk comes back"


async def wandering(llm, engine, seed, evicted):
    """A talk of turns, cuts and undos; another one takes the engine where `evicted`. States after each step."""
    rng, lines, states = random.Random(seed), (), []
    for turn in range(4):
        lines = (*lines, user(f"turn {turn} " + "and so on " * rng.randrange(12)))
        text, _, _ = await reply(llm, "a", prompt(*lines), f"r{turn}.0", n=rng.randrange(3, 40))
        lines = (*lines, said(text, f"r{turn}.0"))
        what, other = rng.choice(("cut", "undo", "nothing")), rng.random() < 0.7
        if evicted and other:
            await reply(llm, "b", prompt(user(str(turn))), f"b{turn}.0", n=3)
        if what == "cut":
            lines = (*lines[:-1], said(text[: rng.randrange(len(text))].strip(), f"r{turn}.0"))
        elif what == "undo":
            lines = lines[: -2 * rng.randrange(1, len(lines) // 2 + 1)]
        await llm.sync("a", prompt(*lines))
        await llm.prepare("a", prompt(*lines))
        if llm._lease.owner == "a" and engine.position:
            states.append((len(states), state_of(engine)))
        else:
            states.append((len(states), None))
    return states


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 25))])
def test_a_state_that_was_evicted_is_built_again_bit_for_bit(engine, seed):
    """Without room for any capsule every change of talk loses the state; what was folded by which calls is known."""
    evicting = LLMBench(engine, host_bytes=0)
    found = evicting.run_(wandering, engine, seed, True)
    kept = LLMBench(engine).run_(wandering, engine, seed, False)
    for (step, one), (_, other) in zip(found, kept, strict=True):
        assert (one is None) == (other is None), step
        if one is not None:
            assert_same_state(one, other)


def test_the_chunked_state_differs_so_that_the_law_says_something(engine):
    """The same tokens folded as a prompt and decoded one by one are two states."""

    async def play(llm):
        await reply(llm, "a", prompt(user("count")), "r1.0")
        return state_of(engine)

    decoded = LLMBench(engine).run_(play)
    engine.reset()
    engine.append(decoded[1])
    assert any(not torch.equal(tensor, decoded[2][name]) for name, tensor in state_of(engine)[2].items())


@pytest.mark.parametrize("lost_at", [1, 13, 29])
def test_a_reply_that_loses_its_state_in_the_middle_goes_on_bit_for_bit(engine, lost_at):
    async def play(llm, lose):
        made = 0
        options = ReplyOptions("r1.0", 30, temperature=1.2, seed=3)
        async with aclosing(llm.reply("a", prompt(user("count")), options)) as pieces:
            async for piece in pieces:
                made += isinstance(piece, TextPiece)
                if lose and made == lost_at:
                    await llm.warm({"x": prompt(system="Somebody else. " * 9)})
        await llm._call("a", lambda: back(llm))  # the reply may have been over before the other came
        return state_of(engine)

    def back(llm):
        state = llm._folding.own("a")
        for _ in llm._folding.refold_lost(state, state.log.position):
            pass

    assert_same_state(LLMBench(engine).run_(play, False), LLMBench(engine, host_bytes=0).run_(play, True))


async def mixed_without_room(llm):
    """No memory for any capsule: each talk is folded again, bit for bit, so answers are the same."""
    a1, _, _ = await reply(llm, "a", prompt(user("a")), "r1.0")
    b1, _, _ = await reply(llm, "b", prompt(user("b")), "r1.0")
    a2, _, _ = await reply(llm, "a", prompt(user("a"), said(a1, "r1.0"), user("more")), "r2.0")
    b2, _, _ = await reply(llm, "b", prompt(user("b"), said(b1, "r1.0"), user("more")), "r2.0")
    return (a1, a2), (b1, b2)


def test_a_talk_survives_the_process(engine, tmp_path):
    async def before(llm):
        text, _, _ = await reply(llm, "conv_1", prompt(user("hello")), "r1.0")
        state = state_of(engine)
        await llm.park("conv_1")
        return text, state

    async def after(llm, text):
        asked = prompt(user("hello"), said(text, "r1.0"))
        await llm.sync("conv_1", asked)
        answer = await reply(llm, "conv_1", Prompt(SYSTEM, (), (*asked.lines, user("more"))), "r2.0")
        return answer

    app = LLMBench(engine, folder=tmp_path, disk_bytes=1 << 28)
    text, state = app.run_(before)
    app.registry.flush()
    again = LLMBench(engine, folder=tmp_path, disk_bytes=1 << 28)
    _, _, ready = again.run_(after, text)
    assert ready.cached_tokens == state[0]


@pytest.mark.slow
@pytest.mark.parametrize("undone", [1, 2])
def test_an_undo_right_after_a_restart_folds_no_more_than_the_turns_it_takes_back(roomy, tmp_path, undone, monkeypatch):
    refolded = []
    refold = FoldedSequence._refold

    def counted(self, tokens, base):
        refolded.append(len(tokens) - base)
        refold(self, tokens, base)

    async def before(llm, parked):
        lines, _ = await hold(llm, 8, prepare=False)
        if parked:
            await llm.park("a")
        else:
            await llm.sync("a", prompt(*lines[: -2 * undone]))
        return lines, state_of(roomy)

    _, expected = LLMBench(roomy).run_(before, False)
    app = LLMBench(roomy, folder=tmp_path, disk_bytes=1 << 28)
    lines, _ = app.run_(before, True)
    app.registry.flush()
    monkeypatch.setattr(FoldedSequence, "_refold", counted)

    async def after(llm):
        settled = await llm.sync("a", prompt(*lines[: -2 * undone]))
        assert settled.what == "rollback"
        return state_of(roomy)

    assert_same_state(expected, LLMBench(roomy, folder=tmp_path, disk_bytes=1 << 28).run_(after))
    assert len(refolded) == 1 and refolded[0] <= 60 * undone


def test_a_persona_is_restored_from_disk_the_second_time(engine, tmp_path):
    async def warm(llm):
        return (await llm.warm({"ada": prompt()}))["ada"]

    assert LLMBench(engine, folder=tmp_path, disk_bytes=1 << 28).run_(warm).what == "rebuild"
    again = LLMBench(engine, folder=tmp_path, disk_bytes=1 << 28)

    async def twice(llm):
        return [(await warm(llm)).what for _ in range(2)]

    assert again.run_(twice) == ["restore", "restore"]
    assert [again.registry.pins(one.key) for one in again.registry.listing()] == [1]


@pytest.mark.parametrize("between", [False, True], ids=["owner", "waiting"])
def test_a_branch_goes_on_as_the_talk_would_have(engine, between):
    async def begun(llm):
        text, _, _ = await reply(llm, "a", prompt(user("hello")), "r1.0", n=9, temperature=0.9, seed=3)
        return (user("hello"), said(text[:5], "r1.0"), user("and now"))

    async def alone(llm, seed):
        lines = await begun(llm)
        await llm.sync("a", prompt(*lines[:-1]))
        text, _, _ = await reply(llm, "a", prompt(*lines), "r2.0", temperature=0.9, seed=seed)
        return text, state_of(engine)

    async def both(llm):
        lines = await begun(llm)
        await llm.sync("a", prompt(*lines[:-1]))
        if between:
            await reply(llm, "other", prompt(user("somebody else")), "r9.0", n=5)
        await llm.fork("a", "a/1")
        found = {}
        for talk, seed in (("a", 5), ("a/1", 6)):
            text, _, _ = await reply(llm, talk, prompt(*lines), f"{talk} r2.0", temperature=0.9, seed=seed)
            found[seed] = text, state_of(engine)
        await llm.forget_talk("a/1")
        return found

    found = LLMBench(engine).run_(both)
    for seed in (5, 6):
        text, state = LLMBench(engine).run_(alone, seed)
        assert found[seed][0] == text
        assert_same_state(found[seed][1], state)
    assert found[5][0] != found[6][0]


def test_a_branch_of_nothing_is_a_new_talk_and_one_that_is_there_begins_anew(engine):
    async def play(llm):
        await llm.fork("a", "b")
        await reply(llm, "b", prompt(user("hello")), "r1.0", n=5)
        await llm.fork("a", "b")
        return (await reply(llm, "b", prompt(user("hello")), "r1.0", n=5))[2]

    assert LLMBench(engine).run_(play).cached_tokens == 0


def test_a_parked_talk_is_kept_as_what_follows_its_persona_and_goes_on_from_the_very_state(engine, tmp_path):
    persona = "You are Ada, and this is said of you at some length. " * 3

    async def play(llm, listed):
        if listed:
            await llm.warm({"ada": prompt(system=persona)})
        text, _, _ = await reply(llm, "a", prompt(user("hello"), system=persona), "r1.0", n=12)
        await llm.sync("a", prompt(user("hello"), said(text, "r1.0"), system=persona))
        before = state_of(engine)
        await llm.park("a")
        return before

    async def resume(llm):
        await llm.sync("a", prompt(user("hello"), system=persona))
        return state_of(engine)

    benches = {listed: LLMBench(engine, folder=tmp_path / str(listed), disk_bytes=1 << 28) for listed in (True, False)}
    before = {listed: bench.run_(play, listed) for listed, bench in benches.items()}
    parked = {
        listed: next(one for one in bench.registry.listing() if one.name == "talk/a/llm")
        for listed, bench in benches.items()
    }
    assert_same_state(before[True], before[False])
    assert all(one.pinned for one in parked.values()), "its front may come back"
    assert parked[False].base is None and parked[True].base is not None
    assert parked[False].homes["host"] - parked[True].homes["host"] == parked[True].base.nbytes > 0
    assert parked[False].homes["disk"] - parked[True].homes["disk"] > 0.9 * parked[True].base.nbytes
    again = LLMBench(engine, folder=tmp_path / "True", disk_bytes=1 << 28)
    alone = LLMBench(engine, folder=tmp_path / "False", disk_bytes=1 << 28)
    assert_same_state(again.run_(resume), alone.run_(resume))


@pytest.mark.slow
def test_a_long_talk_drops_its_oldest_turns_many_at_a_time(engine):
    async def play(llm):
        lines, kept, fresh = (), [], []
        for turn in range(24):
            lines = (*lines, user(f"this is what is said in turn {turn} of a long talk"))
            text, _, ready = await reply(llm, "a", prompt(*lines), f"r{turn}.0", n=2)
            kept.append(ready.cached_tokens)
            fresh.append(ready.input_tokens - ready.cached_tokens)
            lines = (*lines, said(text, f"r{turn}.0"))
        return kept, fresh

    kept, fresh = LLMBench(engine).run_(play)
    shrunk = [turn for turn in range(2, 24) if kept[turn] < kept[turn - 1]]
    assert 2 <= len(shrunk) <= 12 and len({kept[turn] for turn in shrunk}) == 1  # back to the persona's part
    one_turn = max(fresh[1 : shrunk[0]])
    assert all(fresh[turn] <= one_turn + 2 for turn in range(1, 24) if turn not in shrunk)


@pytest.fixture(scope="module")
def roomy(checkpoint):
    return HybridLLM.load(checkpoint, ExecContext("cpu"), max_positions=1200)


async def hold(llm, turns, lines=(), prepare=True):
    """A talk of so many turns; returns its lines and how many positions each turn had to fold before its reply."""
    folded = []
    for turn in range(len(lines) // 2, len(lines) // 2 + turns):
        lines = (*lines, user(f"this is turn {turn} of it"))
        text, _, ready = await reply(llm, "a", prompt(*lines), f"r{turn}.0", n=6)
        folded.append(ready.input_tokens - ready.cached_tokens)
        lines = (*lines, said(text, f"r{turn}.0"))
        if prepare:
            await llm.prepare("a", prompt(*lines))
    return lines, folded


@pytest.mark.slow
def test_no_turn_waits_for_a_refold_that_could_be_made_while_nobody_spoke(roomy):
    _, unprepared = LLMBench(roomy).run_(hold, 30, (), False)
    app = LLMBench(roomy)
    _, folded = app.run_(hold, 30)
    one_turn = unprepared[1]
    assert max(unprepared[1:]) > 5 * one_turn
    assert max(folded[1:]) <= one_turn + 2
    assert not app.llm._lease.find("a ahead") and len(app.llm._lease.find("a").written) < 20


def interrupted_after(app, monkeypatch, chunks):
    """Somebody speaks when this many chunks are folded from here on."""
    done = []

    def append(ids, cancel=None):
        done.append(len(ids))
        if len(done) == chunks:
            app.llm._interrupt("a")
        return HybridLLM.append(app.engine, ids, cancel)

    monkeypatch.setattr(app.engine, "append", append)
    return done


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [1, 2, 5, 1000])
def test_what_was_folded_ahead_is_what_would_be_folded_on_demand(roomy, chunks, monkeypatch):
    async def play(llm, app, chunks):
        lines, _ = await hold(llm, 14, prepare=False)
        done = []
        if chunks:
            done = interrupted_after(app, monkeypatch, chunks)
            await llm.prepare("a", prompt(*lines))
            monkeypatch.undo()
            assert len(done) == chunks or chunks == 1000
        long = user("and now something that is so long that the talk with it no longer finds room " * 3)
        text, _, ready = await reply(llm, "a", prompt(*lines, long), "r99.0", n=20)
        assert not done or ready.cached_tokens == sum(done)
        return text, ready.input_tokens, state_of(roomy)

    app = LLMBench(roomy)
    *demanded, state = app.run_(play, app, 0)
    app = LLMBench(roomy)
    *prepared, same = app.run_(play, app, chunks)
    assert prepared == demanded
    assert_same_state(state, same)


@pytest.mark.slow
def test_whoever_speaks_too_early_goes_on_with_the_old_state_and_the_new_one_is_finished_later(roomy, monkeypatch):
    async def play(llm, app):
        lines, _ = await hold(llm, 14, prepare=False)
        before = state_of(roomy)
        interrupted_after(app, monkeypatch, 2)
        await llm.prepare("a", prompt(*lines))
        monkeypatch.undo()
        begun = app.llm._lease.find("a ahead").log.position
        lines, folded = await hold(llm, 1, lines, prepare=False)
        assert folded[0] < 60 and state_of(roomy)[1][: before[0]] == before[1]
        rest = interrupted_after(app, monkeypatch, 1000)
        await llm.prepare("a", prompt(*lines))
        assert begun > 0 and begun + sum(rest) == roomy.position < before[0]

    app = LLMBench(roomy)
    app.run_(play, app)


def test_a_talk_gives_way_to_one_that_waits_for_its_first_words(engine, monkeypatch):
    """The second talk asks while the first is at its 20th token; who thought at each step is noted."""
    steps, asked = [], threading.Event()

    async def play(llm, app, second):
        loop = asyncio.get_running_loop()
        other = loop.create_future()

        def step(among=()):
            steps.append(llm._lease.owner)
            if len(steps) == 20 and second:
                loop.call_soon_threadsafe(other.set_result, None)
                assert asked.wait(30)
            return HybridLLM.step(engine, among)

        async def later():
            await other
            answer = asyncio.ensure_future(reply(llm, "b", prompt(user("and me")), "r1.0", n=40))
            while second and app.engine_thread.waiting < 2:
                await asyncio.sleep(0)
            asked.set()
            return await answer

        monkeypatch.setattr(engine, "step", step)
        waiting = asyncio.ensure_future(later())
        first = await reply(llm, "a", prompt(user("count")), "r1.0", n=100)
        if not second:
            other.set_result(None)
            asked.set()
        return first[0], (await waiting)[0]

    app = LLMBench(engine)
    alone = app.run_(play, app, False)
    steps.clear()
    asked.clear()
    app = LLMBench(engine)
    assert app.run_(play, app, True) == alone
    order = "".join(steps)
    assert sorted(order) == sorted("a" * 100 + "b" * 40)
    assert re.match("a{20}b{10,16}a{1,16}b{10,16}a{16}b", order), order


def test_turn_end_probability_leaves_the_state_alone(engine):
    async def play(llm):
        text, _, _ = await reply(llm, "a", prompt(user("hello")), "r1.0")
        asked = (user("hello"), said(text, "r1.0"))
        before = state_of(engine)
        known = await llm.turn_end_probability("a", prompt(*asked, user("and then")))
        assert_same_state(before, state_of(engine))
        return known, await llm.turn_end_probability("new", prompt(user("what")))

    known, new = LLMBench(engine).run_(play)
    assert 0 <= known <= 1 and new is None


def test_calls_come_out_of_the_stream(engine):
    async def play(llm):
        for seed in range(40):
            options = ReplyOptions(f"r{seed}.0", 60, temperature=1.5, seed=seed)
            async with aclosing(llm.reply("a", prompt(user("look")), options)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, CallPiece):
                        return [piece]
        return []

    calls = LLMBench(engine, calls=True).run_(play)
    assert calls and all(call.name == "look" and call.done for call in calls)


@pytest.mark.slow
def test_random_cuts_in_a_row(engine):
    rng = random.Random(5)

    async def play(llm):
        lines = ()
        for turn in range(6):
            lines = (*lines, user(f"question {turn}"))
            text, _, _ = await reply(llm, "a", prompt(*lines), f"r{turn}.0", n=40)
            lines = (*lines, said(text[: rng.randrange(0, len(text))].strip(), f"r{turn}.0"))
            await llm.sync("a", prompt(*lines))
        return lines, state_of(engine)

    async def only(llm, lines):
        for turn in range(6):
            asked = lines[: 2 * turn + 1]
            n = len(lines[2 * turn + 1].text)
            if n:
                await reply(llm, "a", prompt(*asked), f"r{turn}.0", n=n + 2)
                await llm.sync("a", prompt(*asked, lines[2 * turn + 1]))
            else:
                await reply(llm, "a", prompt(*asked), f"r{turn}.0", n=1)
                await llm.sync("a", prompt(*asked, lines[2 * turn + 1]))
        return state_of(engine)

    lines, state = LLMBench(engine).run_(play)
    assert_same_state(state, LLMBench(engine).run_(only, lines))


def run_(self, play, *args):
    return self.run(play(self.llm, *args))


LLMBench.run_ = run_


def test_no_thread_is_left():
    assert not [thread for thread in threading.enumerate() if thread.name == "replays"]


# ---------------------------------------------------------------------------------------------- guesses

SAMPLED = {"temperature": 1.0, "top_p": 0.9, "seed": 11}


async def known(bench, talk):
    """All that is known of a talk, and the engine's state; a talk that was never begun has neither."""

    def look():
        state = bench.llm._lease.find(talk)
        if state is None:
            return None
        bench.llm._folding.own(talk)
        host = bench.engine.snapshot().host
        return state.to_rows(), host["folds"], host["sampling"], host["ready"], state_of(bench.engine)

    return await bench.engine_thread.call(EngineKind.LLM, look, talk=talk)


def assert_never_was(before, after):
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert before[:-1] == after[:-1]
        assert_same_state(before[-1], after[-1])


async def guessed(bench, talk, asked, steps, monkeypatch, **sampling):
    """A guess that has made so many steps, its generator open, and the task that reads it."""
    monkeypatch.setattr(schedule, "GUESS_STEPS", steps)
    bench.llm.guess(talk)

    async def read():
        async for _ in bench.llm.reply(talk, asked, ReplyOptions("r9.0", 30, **sampling)):
            pass

    reading = asyncio.ensure_future(read())
    await asyncio.sleep(0)
    if steps:
        while not reading.done() and bench.llm._guesses.find(talk).jobs[0].steps < steps:
            await asyncio.sleep(0.001)
    return reading


@pytest.mark.parametrize("sampling", [{}, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("other", [False, True], ids=["alone", "another-talk-between"])
@pytest.mark.parametrize("turns", [0, 1, 2])
@pytest.mark.parametrize("kind", ["engine", "plain"])
def test_a_dropped_guess_never_was(request, monkeypatch, kind, turns, sampling, other):
    """Law L8, after every step that a guess can make; the talk goes on with the same words and the same state."""

    async def play(bench, steps):
        lines = []
        for turn in range(turns):
            lines.append(user("count"))
            text, _, _ = await reply(bench.llm, "a", prompt(*lines), f"r{turn}.0", **sampling)
            lines.append(said(text, f"r{turn}.0"))
        if turns == 2:  # the talk was cut, as after an interruption
            lines[-1] = said(lines[-1].text[:11], "r1.0")
            await bench.llm.sync("a", prompt(*lines))
        before = await known(bench, "a")
        if steps is not None:
            made = await guessed(bench, "a", prompt(*lines, user("wrong")), steps, monkeypatch, **sampling)
            if other:
                await reply(bench.llm, "b", prompt(user("me too")), "r1.0")
            made.cancel()
            await asyncio.wait([made])
            monkeypatch.undo()
            assert await bench.llm.take_back("a") > 0 or not steps
            assert_never_was(before, await known(bench, "a"))
        text, _, _ = await reply(bench.llm, "a", prompt(*lines, user("go on")), "r3.0", **sampling)
        return text, await known(bench, "a")

    engine = request.getfixturevalue(kind)
    bench = LLMBench(engine)
    expected = bench.run(play(bench, None))
    for steps in [0, 3, 18, 40] if other else [0, 1, 2, 3, 4, 9, 18, 40]:
        bench = LLMBench(engine)
        text, after = bench.run(play(bench, steps))
        assert text == expected[0]
        assert_never_was(expected[1], after)


def test_a_guess_that_is_right_is_the_reply(engine, monkeypatch):
    async def play(bench, guess):
        if guess:
            made = await guessed(bench, "a", prompt(user("count")), 6, monkeypatch)
            assert not made.done()
            bench.llm.confirm("a")
            await made
        else:
            await reply(bench.llm, "a", prompt(user("count")), "r9.0")
        return await known(bench, "a")

    states = []
    for guess in (True, False):
        bench = LLMBench(engine)
        states.append(bench.run(play(bench, guess)))
    assert_never_was(*states)


def test_a_guess_stands_in_no_journal_until_it_is_right(engine, monkeypatch, tmp_path):
    """A process that is killed meanwhile comes back without it."""

    async def play(bench):
        text, _, _ = await reply(bench.llm, "a", prompt(user("count")), "r0.0")
        asked = prompt(user("count"), said(text, "r0.0"), user("go on"))
        journal = bench.journals.find("a")
        kept = [dict(journal.table("llm"))]
        for right in (False, True):
            made = await guessed(bench, "a", asked, 6, monkeypatch)
            kept.append(dict(journal.table("llm")))
            if right:
                bench.llm.confirm("a")
                await made
            else:
                made.cancel()
                await asyncio.wait([made])
                await bench.llm.take_back("a")
            await known(bench, "a")
            kept.append(dict(journal.table("llm")))
        return kept

    before, *unsure, after = (bench := LLMBench(engine, folder=tmp_path)).run(play(bench))
    assert before and unsure == [before] * 3
    assert after != before and after["reply r9.0"]


def test_a_guess_does_not_shorten_the_talk(engine):
    async def play(llm):
        lines = [user("x" * 90)]
        text, _, _ = await reply(llm, "a", prompt(*lines), "r1.0")
        llm.guess("a")
        with pytest.raises(EngineFailed, match="no room for a guess"):
            await reply(llm, "a", prompt(*lines, said(text, "r1.0"), user("y" * 60)), "r2.0")
        assert await llm.take_back("a") >= 0

    LLMBench(engine).run_(play)


# ------------------------------------------------------------------------------- folded while it is said

LONG = " ".join(f"and then word {n}" for n in range(14))


@pytest.mark.parametrize("seed", range(6))
def test_what_was_folded_while_it_was_said_changes_no_bit(roomy, seed):
    """Words come a few at a time, some are revised, some turns are dropped; the reply and its state are those of a talk
    that was told each turn at once."""
    rng = random.Random(seed)

    async def play(bench, early):
        lines, folded = [], 0
        for turn, words in enumerate([LONG, "no", LONG[: rng.randint(80, 140)], LONG + " at last"]):
            if early:
                for end in sorted(rng.sample(range(len(words)), min(len(words) - 1, 6))):
                    heard = words[:end] if rng.random() < 0.8 else words[: end // 2] + "somethingelse" * 7
                    await bench.llm.fold_heard("a", prompt(*lines, user(heard)))
                    folded = max(folded, roomy.position)
            lines.append(user(words))
            text, _, _ = await reply(bench.llm, "a", prompt(*lines), f"r{turn}.0", 8)
            lines.append(said(text, f"r{turn}.0"))
        return [line.text for line in lines], await known(bench, "a"), folded

    state = rng.getstate()
    bench = LLMBench(roomy)
    expected = bench.run(play(bench, False))
    rng.setstate(state)
    bench = LLMBench(roomy)
    texts, after, folded = bench.run(play(bench, True))
    assert folded > 0
    assert texts == expected[0]
    assert_never_was(expected[1], after)


def test_of_a_long_turn_only_the_last_call_is_left(roomy):
    async def play(bench):
        words = "w" * 150
        await bench.llm.fold_heard("a", prompt(user(words)))
        at = roomy.position
        _, _, ready = await reply(bench.llm, "a", prompt(user(words + " and the end")), "r1.0")
        return at, ready

    bench = LLMBench(roomy)
    at, ready = bench.run(play(bench))
    assert ready.cached_tokens == at > 150
