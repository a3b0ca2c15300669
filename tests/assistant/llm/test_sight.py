"""Pictures in the talks of a local model: seen once, folded ahead or with the words to the same bits, taken back."""

import asyncio

import numpy as np
import pytest

from assistant.base.errors import EngineFailed
from assistant.base.picture import Picture
from assistant.contracts import Line, PlacedPicture
from assistant.llm.sight import image_tokens
from assistant.llm.talk_state import LetGo, TalkState
from capsules import ExecContext
from llm_engine import HybridLLM
from llm_engine.eyes import Eyes
from llm_engine.rowstore import PictureStore
from tests.assistant.llm.test_local import LLMBench, assert_same_state, prompt, reply, said, state_of, user
from tests.fakes.engines import write_llm, write_seeing_llm

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    return HybridLLM.load(write_seeing_llm(tmp_path_factory.mktemp("eyes")), ExecContext("cpu"), max_positions=700)


@pytest.fixture
def engine(loaded):
    """With nothing seen yet."""
    loaded._sequence.pictures = PictureStore(loaded.config.hidden_size)
    return loaded


def drawn(seed, height=96, width=160):
    return Picture.of(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


CAT, DOG, TALL = drawn(1), drawn(2), drawn(3, 320, 64)


def showing(text, *pictures, at=0):
    return Line("user", text, pictures=tuple(PlacedPicture(at, picture) for picture in pictures))


@pytest.fixture
def looks(monkeypatch):
    """The size of every picture that goes through the tower."""
    found = []
    embed = Eyes._encode_step

    def run(eyes, grid, step):
        if step == 0:
            found.append((grid.rows, grid.columns))
        embed(eyes, grid, step)

    monkeypatch.setattr(Eyes, "_encode_step", run)
    return found


def run(engine, play, **options):
    return LLMBench(engine, **options).run_(play)


def test_a_model_sees_where_it_has_a_tower(engine, tmp_path):
    assert LLMBench(engine).llm.sees
    blind = HybridLLM.load(write_llm(tmp_path), ExecContext("cpu"), max_positions=300, capture=False)
    assert not LLMBench(blind).llm.sees


def test_what_stands_in_the_prompt_is_the_formats(engine):
    async def play(llm):
        _, _, ready = await reply(llm, "a", prompt(showing("what is this ", CAT), system=""), "r1", n=1)
        return ready, state_of(engine)[1]

    ready, tokens = run(engine, play)
    rows = [i for i in tokens if i < 0]
    assert len(rows) == 15 and len(set(rows)) == 1
    text = "".join(chr(i) if 0 <= i < 128 else f"[{i}]" if i >= 0 else "*" for i in tokens[: ready.input_tokens])
    assert text.startswith("[130]user\n[134]" + "*" * 15 + "[136]what is this[131]\n[130]assistant")
    assert ready.image_tokens == image_tokens(tokens) == 17 and ready.cached_image_tokens == 0
    assert ready.picture_ms >= 0 and {cost.name for cost in ready.costs} >= {"picture", "prefill"}


@pytest.mark.parametrize("ahead", ["hear", "prepare", "both"])
def test_folded_ahead_or_with_the_words_is_the_same(engine, looks, ahead):
    before = (user("hello"), said("", "r0"))
    whole = prompt(*before, showing("what is this then, and who made it", CAT))

    async def at_once(llm):
        await reply(llm, "a", prompt(*before[:1]), "r0", n=5)
        return await reply(llm, "a", whole, "r1"), state_of(engine)

    async def early(llm):
        await reply(llm, "a", prompt(*before[:1]), "r0", n=5)
        shown = prompt(*before, showing("", CAT))
        if ahead != "hear":
            await llm.prepare("a", shown)
        if ahead != "prepare":
            await llm.fold_heard("a", prompt(*before, showing("what is this", CAT)))
        assert len(looks) == 2
        return await reply(llm, "a", whole, "r1"), state_of(engine)

    (text, _, _), expected = run(engine, at_once)
    engine._sequence.pictures = PictureStore(engine.config.hidden_size)
    (again, _, ready), state = run(engine, early)
    assert again == text and len(looks) == 2
    assert_same_state(state, expected)
    assert ready.cached_image_tokens == ready.image_tokens == 17
    assert "picture" not in {cost.name for cost in ready.costs}


def test_the_same_picture_is_seen_once_by_all(engine, looks):
    async def play(llm):
        await reply(llm, "a", prompt(showing("one", CAT)), "r1", n=3)
        await reply(llm, "a", prompt(showing("one", CAT), said("", "r1"), showing("again", CAT, DOG)), "r2", n=3)
        await reply(llm, "conv_1", prompt(showing("other words", CAT, TALL)), "r1", n=3)

    run(engine, play)
    assert len(looks) == 3


def test_an_undo_takes_a_picture_back_and_another_stands_in_its_place(engine):
    async def shown(llm):
        lines = user("hi"), said("", "r0"), showing("and this", TALL)
        return await reply(llm, "a", prompt(*lines), "r2"), state_of(engine)

    async def changed(llm):
        await reply(llm, "a", prompt(user("hi")), "r0", n=1)
        base = user("hi"), said("", "r0")
        await reply(llm, "a", prompt(*base, showing("look", CAT)), "r1", n=9)
        assert (await llm.sync("a", prompt(*base))).what == "rollback"
        await reply(llm, "a", prompt(*base, showing("look", DOG)), "r1b", n=9)
        await llm.sync("a", prompt(*base))
        return await shown(llm)

    async def plain(llm):
        await reply(llm, "a", prompt(user("hi")), "r0", n=1)
        return await shown(llm)

    (text, _, _), expected = run(engine, plain)
    (again, _, _), state = run(engine, changed)
    assert again == text
    assert_same_state(state, expected)


def test_two_pictures_of_one_size_share_what_stands_before(engine):
    async def play(llm):
        one = await reply(llm, "a", prompt(showing("what", CAT)), "r1")
        other = await reply(llm, "conv_1", prompt(showing("what", DOG)), "r1")
        return one, other

    (one, _, _), (other, _, ready) = run(engine, play)
    assert one != other and ready.cached_image_tokens == 0


def test_a_guess_with_a_picture_that_is_dropped_never_was(engine):
    async def play(llm, guessed):
        await reply(llm, "a", prompt(showing("look", CAT)), "r0", n=4)
        base = showing("look", CAT), said("", "r0")
        if guessed:
            llm.guess("a")
            await reply(llm, "a", prompt(*base, showing("is it", DOG)), "r1", n=9)
            await llm.take_back("a")
        return await reply(llm, "a", prompt(*base, showing("is it so", TALL)), "r2"), state_of(engine)

    (text, _, _), expected = run(engine, lambda llm: play(llm, guessed=False))
    (again, _, _), state = run(engine, lambda llm: play(llm, guessed=True))
    assert again == text
    assert_same_state(state, expected)


def test_what_seeing_took_is_told_to_the_turn_that_shows_it_first(engine):
    async def play(llm):
        look, more = showing("look", CAT), showing("and", CAT, DOG)
        first, again = prompt(look), prompt(look, said("", "r0"), more)
        llm.guess("a")
        guessed = await reply(llm, "a", first, "g0", n=3)
        await llm.take_back("a")
        found = [guessed, await reply(llm, "a", first, "r0", n=3), await reply(llm, "a", again, "r1", n=3)]
        found.append(await reply(llm, "a", prompt(*again.lines, said("", "r1"), user("well")), "r2", n=3))
        return [ready for _, _, ready in found]

    one, two, three, none = run(engine, play)
    assert one.picture_ms == two.picture_ms > 0 and one.shown_tokens == two.shown_tokens == 17
    assert three.shown_tokens == 34 and three.picture_ms not in (0, one.picture_ms)
    assert (none.shown_tokens, none.picture_ms) == (0, 0)


def test_whether_a_turn_is_over_is_asked_behind_a_picture_that_is_folded(engine):
    async def play(llm):
        base = showing("hello", CAT), said("", "r0")
        await reply(llm, "a", prompt(*base[:1]), "r0", n=2)
        asked = prompt(*base, showing("is that so", DOG))
        unknown = await llm.turn_end_probability("a", asked)
        await llm.prepare("a", prompt(*base, showing("", DOG)))
        before = state_of(engine)
        known = await llm.turn_end_probability("a", asked)
        assert_same_state(state_of(engine), before)
        return unknown, known

    unknown, known = run(engine, play)
    assert unknown is None and 0 < known < 1


@pytest.mark.parametrize("kept", [True, False], ids=["capsule", "journal"])
def test_a_talk_with_a_picture_goes_on_after_a_restart(engine, looks, tmp_path, kept):
    base = showing("look", CAT), said("", "r0")
    asked = prompt(*base, user("and what is it"))

    async def begin(llm):
        await reply(llm, "a", prompt(*base[:1]), "r0", n=7)

    async def through(llm):
        await begin(llm)
        return await reply(llm, "a", asked, "r1"), state_of(engine)

    async def end(llm):
        await begin(llm)
        await (llm.park("a") if kept else llm.prepare("a", prompt(*base)))

    async def again(llm):
        engine._sequence.pictures = PictureStore(engine.config.hidden_size)
        looks.clear()
        return await reply(llm, "a", asked, "r1"), state_of(engine)

    (text, _, _), expected = run(engine, through)
    run(engine, end, folder=tmp_path, disk_bytes=1 << 28 if kept else 0)
    (after, _, _), state = run(engine, again, folder=tmp_path, disk_bytes=1 << 28 if kept else 0)
    assert after == text
    assert_same_state(state, expected)
    assert len(looks) == (0 if kept else 1)  # its effect is in the capsule; else its rows are folded again


def test_two_talks_that_look_at_once_say_what_they_would_alone(engine):
    async def alone(llm):
        return [await reply(llm, talk, prompt(showing("what", *shown)), "r1")
                for talk, shown in (("a", (CAT, TALL)), ("conv_1", (DOG, CAT)))]  # fmt: skip

    async def together(llm):
        return await asyncio.gather(
            reply(llm, "a", prompt(showing("what", CAT, TALL)), "r1"),
            reply(llm, "conv_1", prompt(showing("what", DOG, CAT)), "r1"),
        )

    expected = [one[0] for one in run(engine, alone)]
    engine._sequence.pictures = PictureStore(engine.config.hidden_size)
    assert [one[0] for one in run(engine, together)] == expected


def test_what_a_talk_shows_is_held_until_it_is_forgotten(engine, looks):
    engine.pictures.budget = 0

    async def play(llm):
        await reply(llm, "a", prompt(showing("what", CAT, TALL)), "r1", n=2)
        held = len(engine.pictures)
        await llm.forget_talk("a")
        await reply(llm, "a", prompt(showing("what", DOG)), "r2", n=2)
        return held, len(engine.pictures)

    assert run(engine, play) == (2, 1)
    assert len(looks) == 3


def test_rows_that_are_kept_are_in_the_registrys_account(engine):
    bench = LLMBench(engine)

    async def play(llm):
        await reply(llm, "a", prompt(showing("what", CAT)), "r1", n=1)

    before = bench.registry.counters.total("charged")
    bench.run_(play)
    assert bench.registry.counters.total("charged") - before == engine.pictures.nbytes == 15 * 48 * 4


def test_words_around_pictures_keep_their_places(engine):
    line = Line("user", " look here and there ", pictures=(PlacedPicture(6, CAT), PlacedPicture(15, DOG)))

    async def play(llm):
        await reply(llm, "a", prompt(line, system=""), "r1", n=1)
        return state_of(engine)[1]

    text = "".join(chr(i) if 0 <= i < 128 else f"[{i}]" if i >= 0 else "" for i in run(engine, play))
    assert text.startswith("[130]user\nlook [134][136]here and [134][136]there[131]\n")


# ------------------------------------------------------------------------------------------- a full context


FRAMES = [drawn(seed, 256, 256) for seed in range(10, 34)]
"""Of 64 rows each, beside which stand two marks."""


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    return HybridLLM.load(write_seeing_llm(tmp_path_factory.mktemp("wide")), ExecContext("cpu"), max_positions=1200)


@pytest.fixture
def roomy(wide):
    """With nothing seen yet."""
    wide._sequence.pictures = PictureStore(wide.config.hidden_size)
    return wide


class Shows:
    """A talk that shows a picture with every turn. `told`: how many tokens of pictures stood in each."""

    def __init__(self, llm):
        self.llm, self.lines, self.told = llm, (), []

    async def turn(self, prepare=False):
        if prepare:
            await self.llm.prepare("a", prompt(*self.lines, system=""))
        number = len(self.told)
        self.lines = (*self.lines, showing("look", FRAMES[number]))
        text, _, ready = await reply(self.llm, "a", prompt(*self.lines, system=""), f"r{number}", n=3)
        self.told.append(ready.image_tokens)
        self.lines = (*self.lines, said(text, f"r{number}"))
        return text

    @property
    def written(self):
        return dict(self.state.written) if self.lines else {}

    @property
    def state(self):
        return self.llm._lease.find("a")


def test_old_pictures_leave_before_old_turns(roomy):
    async def play(llm):
        talk = Shows(llm)
        while talk.told == sorted(talk.told):
            await talk.turn()
        return talk, talk.state.let_go, state_of(roomy)[1]

    talk, gone, tokens = run(roomy, play)
    turns = len(talk.told)
    assert talk.told[:-1] == [66 * turn for turn in range(1, turns)] and gone.lines == 0
    left = talk.told[-1] // 66
    assert 3 <= left == turns - (gone.pictured + 1) // 2 and len({i for i in tokens if i < 0}) == left
    text = "".join(chr(i) for i in tokens if 0 <= i < 128)
    assert text.count("[picture] look") == turns - left and text.count("user") == turns


def test_where_pictures_are_not_enough_turns_go_too_but_no_picture_of_the_last_two_answers(roomy):
    async def play(llm):
        talk = Shows(llm)
        for turn in range(24):
            await talk.turn(prepare=True)
            assert talk.told[-1] >= min(turn + 1, 3) * 66
        return talk.state.let_go, len(talk.lines)

    gone, count = run(roomy, play)
    assert gone.lines > 0 and gone.pictured <= count - 4


@pytest.mark.parametrize("ahead", [False, True], ids=["when due", "ahead"])
def test_a_talk_without_its_old_pictures_is_one_that_never_showed_them(roomy, ahead):
    """Bit for bit, words and state, as soon as they are gone."""

    async def shown(llm):
        talk = Shows(llm)
        while talk.told == sorted(talk.told):
            written = talk.written
            text = await talk.turn(prepare=ahead)
        return text, state_of(roomy), talk.lines[:-1], talk.state.let_go.pictured, written

    async def never(llm):
        words = (*(line.in_words for line in asked[:pictured]), *asked[pictured:])
        llm._lease.begin("a", TalkState).written = written
        text, _, _ = await reply(llm, "a", prompt(*words, system=""), f"r{len(asked) // 2}", n=3)
        return text, state_of(roomy)

    text, state, asked, pictured, written = run(roomy, shown)
    again, expected = run(roomy, never)
    assert pictured > 0 and again == text
    assert_same_state(state, expected)


def test_whoever_goes_back_sees_what_comes_next(roomy):
    async def play(llm):
        talk = Shows(llm)
        while talk.told == sorted(talk.told):
            await talk.turn()
        talk.lines, talk.told = talk.lines[:2], talk.told[:1]
        await llm.sync("a", prompt(*talk.lines, system=""))
        await talk.turn()
        return talk.told[-1], talk.state.let_go.pictured

    assert run(roomy, play) == (66, 2)


def test_what_a_guess_would_have_to_let_go_stays(roomy):
    async def play(llm):
        talk = Shows(llm)
        while not llm._folding.window.crowded(talk.state or TalkState(), prompt(*talk.lines, system="")):
            await talk.turn()
        llm.guess("a")
        long = prompt(*talk.lines, showing("y" * 200, CAT), system="")
        with pytest.raises(EngineFailed, match="no room for a guess"):
            await reply(llm, "a", long, "r99")
        await llm.take_back("a")
        before = talk.state.let_go
        await reply(llm, "a", long, "r100")
        return before, talk.state.let_go

    before, after = run(roomy, play)
    assert before == LetGo() and after.pictured > 0


def test_let_go_outlives_the_process(roomy, tmp_path):
    async def begin(llm):
        talk = Shows(llm)
        while talk.told == sorted(talk.told):
            await talk.turn()
        return talk.lines, talk.state.let_go

    async def again(llm):
        _, _, ready = await reply(llm, "a", prompt(*lines, user("so"), system=""), "r99", n=3)
        return llm._lease.find("a").let_go, ready.image_tokens

    lines, gone = run(roomy, begin, folder=tmp_path)
    shown = sum(bool(line.pictures) for line in lines[gone.pictured :])
    assert run(roomy, again, folder=tmp_path) == (gone, 66 * shown)


def test_pictures_that_are_gone_are_kept_no_longer_nor_seen_again(roomy, looks):
    roomy.pictures.budget = 0

    async def play(llm):
        talk = Shows(llm)
        while talk.told == sorted(talk.told):
            await talk.turn()
        await talk.turn()
        return talk, len(roomy.pictures)

    talk, kept = run(roomy, play)
    assert kept == talk.told[-1] // 66 and len(looks) == len(talk.told)
