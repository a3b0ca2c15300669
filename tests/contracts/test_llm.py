"""What `assistant.contracts.llm` promises, of every language model that keeps to it: local, remote, fake."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import pytest

from assistant.base.errors import EngineFailed
from assistant.contracts import (
    LLM,
    BadCall,
    CallPiece,
    Line,
    Prompt,
    PromptReady,
    ReplyEnd,
    ReplyOptions,
    ReplyPiece,
    TextPiece,
    ToolCall,
)
from assistant.personas import load_personas
from assistant.tools.builtin import BuiltinTools, builtin_tools
from assistant.tools.kept import Kept
from tests.contracts.subjects import LLMS, Subject

SYSTEM = load_personas()["ada"].instructions
TOOLS = builtin_tools(BuiltinTools(Kept(), lambda: None, {}, lambda: "ada")).specs  # nothing is called
COUNT, TIMER, HELLO = (Line("user", text) for text in ("count from 1 to 10", "set a timer for 5 minutes", "hello"))
Story = Callable[[Subject[LLM]], Coroutine[None, None, None]]


@pytest.fixture(params=[pytest.param(name, marks=() if name == "fake" else pytest.mark.slow) for name in LLMS])
def play(request: pytest.FixtureRequest) -> Callable[[Story], None]:
    """Runs a story with one implementation."""

    def play(story: Story) -> None:
        async def whole() -> None:
            async with asyncio.timeout(120), LLMS[request.param]() as subject:
                await story(subject)

        asyncio.run(whole())

    return play


@dataclass(frozen=True)
class Made:
    """A reply, read to its end."""

    pieces: Sequence[ReplyPiece]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, TextPiece))

    @property
    def calls(self) -> list[CallPiece]:
        return [piece for piece in self.pieces if isinstance(piece, CallPiece)]

    @property
    def ready(self) -> PromptReady:
        return [piece for piece in self.pieces if isinstance(piece, PromptReady)][-1]

    @property
    def end(self) -> ReplyEnd:
        end = self.pieces[-1]
        assert isinstance(end, ReplyEnd)
        return end


def asking(*lines: Line) -> Prompt:
    return Prompt(SYSTEM, TOOLS, lines)


async def reply(llm: LLM, talk: str, prompt: Prompt, reply_id: str = "r1.0", **options: object) -> Made:
    async with aclosing(llm.reply(talk, prompt, ReplyOptions(reply_id, **options))) as pieces:
        return Made([piece async for piece in pieces])


async def first_words(llm: LLM, talk: str, prompt: Prompt) -> str:
    """Begin a reply and leave it after its first text."""
    async with aclosing(llm.reply(talk, prompt, ReplyOptions("r1.0"))) as pieces:
        async for piece in pieces:
            if isinstance(piece, TextPiece) and piece.text:
                return piece.text
    raise AssertionError("no words came")


def test_it_says_what_it_is(play):
    async def story(subject: Subject[LLM]) -> None:
        llm = subject.engine
        assert set(await llm.warm({"persona/ada": asking()})) == {"persona/ada"}
        assert llm.name and isinstance(llm.name, str)
        assert isinstance(llm.capsules, bool)

    play(story)


def test_a_reply_begins_with_its_prompt_and_ends_with_its_end(play):
    async def story(subject: Subject[LLM]) -> None:
        made = await reply(subject.engine, "a", asking(COUNT))
        kinds = [type(piece) for piece in made.pieces]
        assert kinds[0] is PromptReady and kinds[-1] is ReplyEnd and kinds.count(ReplyEnd) == 1
        assert set(kinds[1:-1]) <= {PromptReady, TextPiece, CallPiece, BadCall} and kinds.count(PromptReady) <= 2
        assert "5" in made.text and made.end.reason == "stop" and made.end.output_tokens > 5
        assert 0 <= made.ready.cached_tokens <= made.ready.input_tokens and made.ready.input_tokens > 5
        costs = [*made.ready.costs, *made.end.costs]
        assert all(cost.name and cost.ms >= 0 for cost in costs)
        if kinds.count(PromptReady) == 2:
            assert made.pieces[0] == PromptReady(0, 0)

    play(story)


@pytest.mark.parametrize("most", [1, 7])
def test_a_reply_is_no_longer_than_was_asked_for(play, most):
    async def story(subject: Subject[LLM]) -> None:
        whole = await reply(subject.engine, "a", asking(COUNT))
        made = await reply(subject.engine, "b", asking(COUNT), max_tokens=most)
        assert (made.end.reason, made.end.output_tokens) == ("length", most)
        assert whole.text.startswith(made.text) and len(made.text) < len(whole.text)

    play(story)


@pytest.mark.parametrize("length", [1, 5])
def test_a_reply_ends_before_a_stop_string_wherever_its_pieces_end(play, length):
    async def story(subject: Subject[LLM]) -> None:
        whole = (await reply(subject.engine, "a", asking(COUNT))).text
        half = len(whole) // 2
        for start in range(half, half + 3):
            stop = whole[start : start + length]
            made = await reply(subject.engine, f"b{start}", asking(COUNT), stop=("never said", stop))
            assert made.text == whole[: whole.index(stop)] and made.end.reason == "stop"

    play(story)


def test_closing_stops_the_engine_before_its_next_step(play):
    async def story(subject: Subject[LLM]) -> None:
        whole = await reply(subject.engine, "a", asking(COUNT))
        begun = await first_words(subject.engine, "b", asking(COUNT))
        await subject.rest()
        assert whole.text.startswith(begun)
        assert (await reply(subject.engine, "b", asking(COUNT), "r2.0")).text == whole.text

    play(story)


def test_a_reader_that_is_cancelled_stops_the_engine_too(play):
    async def story(subject: Subject[LLM]) -> None:
        whole = await reply(subject.engine, "a", asking(COUNT))
        begun = asyncio.Event()

        async def read() -> None:
            async with aclosing(subject.engine.reply("b", asking(COUNT), ReplyOptions("r1.0"))) as pieces:
                async for piece in pieces:
                    if isinstance(piece, TextPiece):
                        begun.set()

        reader = asyncio.create_task(read())
        await begun.wait()
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        await subject.rest()
        assert (await reply(subject.engine, "b", asking(COUNT), "r2.0")).text == whole.text

    play(story)


def test_whatever_breaks_is_an_engine_that_failed_and_the_next_reply_is_whole(play):
    async def story(subject: Subject[LLM]) -> None:
        whole = await reply(subject.engine, "a", asking(COUNT))
        with subject.failing(), pytest.raises(EngineFailed):
            await reply(subject.engine, "b", asking(COUNT))
        await subject.rest()
        assert (await reply(subject.engine, "b", asking(COUNT), "r2.0")).text == whole.text

    play(story)


@pytest.mark.parametrize("most", [1, 5, 8])
def test_after_a_cut_a_talk_goes_on_like_one_that_never_said_more(play, most):
    async def story(subject: Subject[LLM]) -> None:
        llm = subject.engine
        said = await reply(llm, "short", asking(COUNT), max_tokens=most)
        whole = await reply(llm, "long", asking(COUNT))
        heard = Line("assistant", said.text, (), "r1.0")
        assert whole.text != heard.text
        synced = await llm.sync("long", asking(COUNT, heard))
        assert (synced.what is not None) == llm.capsules and synced.ms >= 0
        again = await llm.sync("long", asking(COUNT, heard))
        assert again.what is None and again.position == synced.position
        went_on = await reply(llm, "long", asking(COUNT, heard, HELLO), "r2.0")
        expected = await reply(llm, "short", asking(COUNT, heard, HELLO), "r2.0")
        assert went_on.text == expected.text and went_on.end.output_tokens == expected.end.output_tokens
        assert went_on.ready.input_tokens == expected.ready.input_tokens
        if llm.capsules:
            assert went_on.ready.cached_tokens > most

    play(story)


def test_a_cut_behind_a_space_leaves_what_was_said_with_the_space(play, request):
    """The line ends as the shortened reply does; the small model makes the space before a digit a token of its own."""
    if "local" in request.node.callspec.params.values():
        reason = "`Written.upto` strips the line: the state of a reply that was cut behind a space lacks its last token"
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))

    async def story(subject: Subject[LLM]) -> None:
        llm = subject.engine
        said = await reply(llm, "short", asking(COUNT), max_tokens=9)
        await reply(llm, "long", asking(COUNT))
        heard = Line("assistant", said.text, (), "r1.0")
        await llm.sync("long", asking(COUNT, heard))
        went_on = await reply(llm, "long", asking(COUNT, heard, HELLO), "r2.0")
        expected = await reply(llm, "short", asking(COUNT, heard, HELLO), "r2.0")
        assert went_on.ready.input_tokens == expected.ready.input_tokens

    play(story)


def test_a_turn_that_is_taken_back_never_was(play):
    async def story(subject: Subject[LLM]) -> None:
        llm = subject.engine
        expected = await reply(llm, "once", asking(COUNT))
        first = await reply(llm, "a", asking(HELLO), "r0.0")
        lines = (HELLO, Line("assistant", first.text, (), "r0.0"))
        await reply(llm, "a", asking(*lines, TIMER), "r1.0")
        await llm.sync("a", asking())
        assert (await reply(llm, "a", asking(COUNT), "r2.0")).text == expected.text

    play(story)


@pytest.mark.parametrize("order", list(itertools.permutations(["warm", "park", "forget"])), ids="-".join)
def test_warm_park_and_forget_harm_nothing_in_any_order(play, order):
    async def story(subject: Subject[LLM]) -> None:
        llm = subject.engine
        first = await reply(llm, "a", asking(HELLO), "r0.0")
        lines = (HELLO, Line("assistant", first.text, (), "r0.0"), COUNT)
        expected = await reply(llm, "b", asking(*lines), "r1.0")
        for name in order:
            for talk in ("a", "a", "nobody"):  # again, and of a talk that never was
                await (llm.warm({"ada": asking()}) if name == "warm" else getattr(llm, name)(talk))
        assert (await reply(llm, "a", asking(*lines), "r1.0")).text == expected.text
        assert (await reply(llm, "nobody", asking(*lines), "r1.0")).text == expected.text

    play(story)


def test_a_talk_that_nobody_knows_is_no_error(play):
    async def story(subject: Subject[LLM]) -> None:
        llm = subject.engine
        heard = Line("assistant", "Hello.", (), "r0.0")
        assert (await llm.sync("nobody", asking(HELLO, heard))).what is None
        await llm.prepare("no one", asking(HELLO, heard))
        probability = await llm.turn_end_probability("no one at all", asking(HELLO))
        assert probability is None or 0 <= probability <= 1
        for talk in ("nobody", "no one", "no one at all"):
            await llm.park(talk)
            await llm.forget(talk)
            assert (await reply(llm, talk, asking(COUNT))).end.reason == "stop"

    play(story)


def test_two_talks_do_not_see_each_other(play):
    async def story(subject: Subject[LLM]) -> None:
        llm = subject.engine
        alone = [await reply(llm, f"alone {n}", asking(line)) for n, line in enumerate((COUNT, HELLO))]
        counted, greeted = await asyncio.gather(reply(llm, "a", asking(COUNT)), reply(llm, "b", asking(HELLO)))
        assert [counted.text, greeted.text] == [made.text for made in alone]
        await llm.forget("a")
        lines = (HELLO, Line("assistant", greeted.text, (), "r1.0"), COUNT)
        expected = await reply(llm, "alone 1", asking(*lines), "r2.0")
        assert (await reply(llm, "b", asking(*lines), "r2.0")).text == expected.text

    play(story)


def test_looking_ahead_changes_no_reply(play):
    async def story(subject: Subject[LLM]) -> None:
        llm = subject.engine
        first = await reply(llm, "a", asking(HELLO), "r0.0")
        await reply(llm, "b", asking(HELLO), "r0.0")
        lines = (HELLO, Line("assistant", first.text, (), "r0.0"))
        expected = await reply(llm, "a", asking(*lines, COUNT))
        await llm.prepare("b", asking(*lines))
        for text in ("count from", COUNT.text):
            probability = await llm.turn_end_probability("b", asking(*lines, Line("user", text)))
            assert probability is None or 0 <= probability <= 1
        assert (await reply(llm, "b", asking(*lines, COUNT))).text == expected.text

    play(story)


def test_a_call_comes_whole_and_its_result_is_understood(play):
    async def story(subject: Subject[LLM]) -> None:
        llm = subject.engine
        asked = await reply(llm, "a", asking(TIMER))
        assert asked.end.reason == "tool_calls" and asked.calls[0].name == "set_timer"
        assert asked.calls[-1].done and len({call.call_id for call in asked.calls}) == 1
        arguments = "".join(call.arguments for call in asked.calls)
        assert json.loads(arguments) == {"duration": "5 minutes"}
        call = ToolCall(asked.calls[0].call_id, "set_timer", arguments)
        lines = (
            TIMER, Line("assistant", asked.text, (call,), "r1.0"), Line("tool", "5 minutes", call_id=call.call_id)
        )  # fmt: skip
        told = await reply(llm, "a", asking(*lines), "r1.1")
        assert told.end.reason == "stop" and "5" in told.text and not told.calls
        fresh = await reply(llm, "b", asking(*lines), "r1.1")
        assert fresh.text == told.text
        other = await reply(llm, "c", asking(TIMER), "r2.0")
        assert other.calls[0].call_id != call.call_id, "two replies' calls have one name"

    play(story)
