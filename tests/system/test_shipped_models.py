"""The shipped models in a whole talk: spoken questions answered, and interruptions exact to the token and the frame."""

import asyncio
import random
import re
from contextlib import aclosing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import llm_engine
import tts_engine
from assistant.app.start import _own_tools
from assistant.asr.pocketsphinx import open_asr
from assistant.base.clock import LoopClock
from assistant.contracts import Prompt, ReplyOptions
from assistant.device.deployment import Deployment
from assistant.device.thread import EngineThread
from assistant.events import (
    AppendAudio,
    AudioDelta,
    CommitAudio,
    CreateItem,
    CreateResponse,
    ItemRetrieved,
    ItemTruncated,
    Message,
    ResponseDone,
    ResponseParams,
    RetrieveItem,
    Settings,
    TextPart,
    ToolUsed,
    TranscriptCompleted,
    TruncateItem,
    Undo,
)
from assistant.llm.local import LocalLLM
from assistant.llm.small import LOST, SmallMind
from assistant.personas import load_personas
from assistant.talk import Engines, Services
from assistant.talk.conversation import item_text
from assistant.talk.talks import Talks
from assistant.tools.builtin import TRAINED_TOOLS
from assistant.tools.home import HomeRows
from assistant.tts.local import LocalTTS
from assistant.tts.speaking import FRAME_SAMPLES
from assistant.tts.voices import load_voices
from capsules import ExecContext
from capsules.registry import Budgets, Registry
from llm_engine import HybridLLM, Sampling
from tts_engine.engine import HiggsTTS
from tts_engine.text import speech_text

pytestmark = pytest.mark.slow

LLM, TTS = Path(llm_engine.__file__).parent / "tiny", Path(tts_engine.__file__).parent / "tiny"


@pytest.fixture(scope="module")
def engines():
    torch.set_num_threads(1)
    ctx = ExecContext("cpu")
    return ctx, HybridLLM.load(LLM, ctx, max_positions=1024), HiggsTTS.load(TTS, ctx, max_positions=1024)


class ShippedTalk:
    """The shipped models behind talks, as `assistant ask` has them."""

    def __init__(self, engines):
        ctx, self.hybrid, self.higgs = engines
        self.hybrid.reset()
        self.engine_thread = EngineThread()
        registry = Registry.standard(ctx, Budgets(host_bytes=1 << 28), lambda: 0.0)
        self.voices = load_voices(self.higgs, TTS, registry)
        deployment = Deployment(ctx, self.engine_thread, registry)
        self.llm = LocalLLM(deployment, self.hybrid, SmallMind(LLM).language(), "tiny", Sampling.greedy())
        self.tts = LocalTTS(deployment, self.higgs, self.voices, "tiny")
        personas, home = load_personas(), HomeRows()
        services = Services(
            Engines(self.llm, self.tts, open_asr()), LoopClock(), personas, asyncio.to_thread,
            tools=lambda session: _own_tools(personas, session, home, names=TRAINED_TOOLS), lost=LOST,
        )  # fmt: skip
        self.talks = Talks(services, settings=Settings(persona="ada", turn_detection=None, paced=False))

    def run(self, play):
        async def inside():
            self.engine_thread.start()
            session = self.talks.open()
            try:
                async with asyncio.timeout(900), asyncio.TaskGroup() as group:
                    group.create_task(session.run())
                    result = await play(self, session)
                    session.close()
                self.items = session.items
                return result
            finally:
                session.close()
                self.engine_thread.stop()
                await asyncio.to_thread(self.engine_thread.join)

        return asyncio.run(inside())


async def until(session, kind):
    """Events up to and with the first of this kind."""
    events = []
    while True:
        event = await session.events.receive()
        events.append(event)
        if isinstance(event, kind):
            return events


async def typed(session, text, modality="text"):
    """A typed turn; returns its events."""
    await session.send(CreateItem(Message(f"typed {random.random()}", "user", (TextPart(text),))))
    await session.send(CreateResponse(ResponseParams(modality=modality)))
    return await until(session, ResponseDone)


async def at_rest(session, item_id):
    """All that was asked before is done, and the engines have followed."""
    await session.send(RetrieveItem(item_id))
    await until(session, ItemRetrieved)
    await session._state_sync.wait()


def words_of(events):
    return " ".join(item_text(item) for item in events[-1].response.output)


def test_typed_number_words_are_read_as_digits_and_shown_as_typed(engines):
    async def play(app, session):
        return await typed(session, "set a timer for five minutes")

    app = ShippedTalk(engines)
    used = [event for event in app.run(play) if isinstance(event, ToolUsed)]
    assert [(event.name, event.output) for event in used] == [("set_timer", "5 minutes")]
    assert [item_text(item) for item in app.items if item.role == "user"] == ["set a timer for five minutes"]


def test_a_long_talk_is_answered_rightly_to_its_end(engines):
    """It holds more of a talk than it understands: forty sums with all those before them it gets wrong."""
    ctx, _, higgs = engines
    roomy = HybridLLM.load(LLM, ExecContext("cpu"))
    assert roomy.max_positions > 3000

    async def play(app, session):
        told = []
        for first in range(11, 51):
            answer = words_of(await typed(session, f"what is {first} plus 14"))
            told.append(str(first + 14) in re.findall(r"\d+", answer))
        return told

    told = ShippedTalk((ctx, roomy, higgs)).run(play)
    assert all(told), [turn for turn, right in enumerate(told) if not right]


def test_why_a_sum_has_no_answer_is_said_and_what_a_timer_was_is_taken_back_aloud(engines):
    async def play(app, session):
        said = []
        for text in ("what is 5 divided by 0", "set a timer for 5 minutes", "undo that"):
            said.append(words_of(await typed(session, text)))
        return said

    failed, _, undone = ShippedTalk(engines).run(play)
    assert failed == "Nothing can be divided by zero."
    assert undone == "Okay, I took that back. The timer of 5 minutes is stopped."


def test_a_spoken_question_is_heard_answered_by_a_tool_and_spoken(engines):
    async def play(app, session):
        parts = []
        async with aclosing(app.tts.speak("asker", "ben", "q", "what is seven plus five")) as sounds:
            async for sound in sounds:
                parts.append(sound.pcm)
        await app.tts.forget_talk("asker")
        await session.send(AppendAudio(np.concatenate(parts), 24_000))
        await session.send(CommitAudio())
        await session.send(CreateResponse())
        return await until(session, ResponseDone)

    events = ShippedTalk(engines).run(play)
    done = events[-1]
    [heard] = [event.transcript for event in events if isinstance(event, TranscriptCompleted)]
    seconds = sum(event.pcm.size for event in events if isinstance(event, AudioDelta)) / 24_000
    assert heard == "what is 7 + 5"
    assert [event.output for event in events if isinstance(event, ToolUsed)] == ["12"]
    assert "12" in words_of(events) and done.response.status == "completed" and seconds > 0.5
    assert done.timeline.total_ms == pytest.approx(sum(part.ms for part in done.timeline.parts))
    assert {"prefill", "llm", "tts_prefill", "tts_rows", "codec"} <= {part.name for part in done.timeline.parts}


def tensors(engine):
    capsule = engine.snapshot()
    return {name: tensor.clone() for name, tensor in capsule.tensors.items()}


def same(one, two):
    return one.keys() == two.keys() and all(
        torch.equal(tensor.view(torch.uint8), two[name].view(torch.uint8)) for name, tensor in one.items()
    )


async def never_said_more(app, prompt, tokens):
    """The language model's state in a talk whose reply ended by itself after so many tokens."""
    if tokens:
        async with aclosing(app.llm.reply("other", prompt, ReplyOptions("other.0", tokens))) as pieces:
            async for _ in pieces:
                pass
    state = await app.cohost_call(lambda: tensors(app.hybrid))
    await app.llm.forget_talk("other")
    return state


def spoken_only(app, pieces):
    """The voice's state after these pieces, the last of them only so far, straight on the engine."""
    app.higgs.open(app.voices["ada"])
    frames = 0
    for place, piece in enumerate(pieces):
        app.higgs.begin(speech_text(piece.text).strip(), "exact")
        frames += piece.samples // FRAME_SAMPLES
        last = place == len(pieces) - 1
        while app.higgs.frames < frames if last else app.higgs.busy:
            app.higgs.step()
    app.higgs.cut(frames)
    return tensors(app.higgs)


def test_interruptions_of_a_count_leave_exactly_what_was_heard(engines):
    """Sixteen cuts of one count, each shorter than the one before: state, words, and what the model says of them."""
    rng = random.Random(30)

    async def play(app, session):
        asked = await typed(session, "count to 20", "audio")
        item = asked[-1].response.output[-1]
        samples = sum(event.pcm.size for event in asked if isinstance(event, AudioDelta))
        told = prompt_of(session, item.id)
        cuts = sorted((rng.randrange(300, samples * 1000 // 24_000 - 100) for _ in range(16)), reverse=True)
        equal_llm = equal_tts = right = expressible = checked_tts = 0
        for index, cut_ms in enumerate(cuts):
            await session.send(TruncateItem(item.id, 0, cut_ms))
            await until(session, ItemTruncated)
            await at_rest(session, item.id)
            heard = item_text(session.conversation.entry(item.id).item)
            pieces = session.conversation.entry(item.id).pieces
            state = await app.cohost_call(lambda: tensors(app.hybrid))
            tokens = app.llm._lease.find(session.talk).log.steps[-1]
            voice = await app.cohost_call(lambda: tensors(app.higgs))
            if index % 5 == 4 and pieces:
                checked_tts += 1
                reference = await app.cohost_call(partial(reference_voice, app, session.talk, pieces))
                equal_tts += same(voice, reference)
            count = len(tokens.ids) if tokens.written else 0
            equal_llm += same(state, await never_said_more(app, told, count))
            numbers = re.findall(r"\d+", heard)
            if numbers:
                expressible += 1
                answer = await typed(session, "what was the last number you said")
                right += numbers[-1] in re.findall(r"\d+", words_of(answer))
                await session.send(Undo(1))
                await at_rest(session, item.id)
        return equal_llm, equal_tts, checked_tts, right, expressible

    equal_llm, equal_tts, checked_tts, right, expressible = ShippedTalk(engines).run(play)
    assert equal_llm == 16 and equal_tts == checked_tts >= 2
    assert expressible >= 11 and right >= 0.9 * expressible, (right, expressible)


def prompt_of(session, item_id) -> Prompt:
    """The prompt that the reply of this item was made from."""
    whole = session._context.view.prompt(session.settings)
    place = next(i for i, line in enumerate(whole.lines) if line.role == "assistant")
    return Prompt(whole.system, whole.tools, whole.lines[:place])


def reference_voice(app, talk, pieces):
    """Take the engine from the talk, make the reference, give the engine back."""
    app.tts._lease.release()
    state = spoken_only(app, pieces)
    app.tts._sessions.own(talk, "ada")
    return state


async def cohost_call(self, work):
    from assistant.device.schedule import EngineKind

    return await self.engine_thread.call(EngineKind.LLM, work)


ShippedTalk.cohost_call = cohost_call
