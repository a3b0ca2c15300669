"""Law L8 over the shipped models: hundreds of candidates dropped at random moments leave nothing anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
import torch

from assistant.base.clock import LoopClock
from assistant.device.deployment import Deployment
from assistant.device.schedule import EngineKind
from assistant.device.thread import EngineThread
from assistant.events import (
    AudioDelta,
    CreateItem,
    CreateResponse,
    Message,
    ResponseDone,
    Settings,
    SpeechStarted,
    SpokenText,
    TextPart,
    TranscriptPartial,
)
from assistant.llm.local import LocalLLM
from assistant.llm.small import SmallMind
from assistant.talk import Engines, Services, Session
from assistant.talk.messages import UserBegan, UserMayBeDone, UserProgress
from assistant.tools.builtin import TRAINED_TOOLS, BuiltinTools, builtin_tools
from assistant.tools.kept import Kept
from assistant.tts.local import LocalTTS, VoiceOptions
from assistant.tts.voices import load_voices
from capsules.registry import Budgets, Registry
from llm_engine import Sampling
from tests.contracts.subjects import TINY_LLM, TINY_TTS, higgs, hybrid
from tests.fakes.models import FakeEars, counting_ids
from tests.fakes.talk import PERSONAS, inline
from tts_engine.sampling import VoiceSampling

ASKED = (
    "what time is it", "what is on my list", "put milk on my list", "set a timer for 5 minutes", "count to ten",
    "tell me a story", "what is 12 times 8", "undo that", "who are you", "take a note",
)  # fmt: skip
"""Some read, some would change what is kept."""
GREEDY = Sampling.greedy(), VoiceSampling(temperature=0.0)
SAMPLED = Sampling(temperature=0.9, top_p=0.95, seed=3), VoiceSampling(seed=4)


class House:
    """A session over the shipped models, without ears: what hearing would notice is told by hand."""

    def __init__(self, sampling: tuple[Sampling, VoiceSampling]) -> None:
        self.thread = EngineThread()
        llm, tts = hybrid(), higgs()
        llm.reset()
        budgets = Budgets(host_bytes=1 << 28)
        deployments = [
            Deployment(engine._ctx, self.thread, Registry.standard(engine._ctx, budgets, lambda: 0.0))
            for engine in (llm, tts)
        ]
        language = SmallMind(TINY_LLM).language()
        voices = load_voices(tts, TINY_TTS, deployments[1].registry)
        self.llm = LocalLLM(deployments[0], llm, language, "tiny", sampling[0])
        self.tts = LocalTTS(deployments[1], tts, voices, "tiny", VoiceOptions(sampling=sampling[1]))
        self.kept = Kept()
        household = BuiltinTools(self.kept, self.kept.home.now, {}, lambda: "ada", rng=random.Random(1))
        services = Services(
            Engines(self.llm, self.tts, FakeEars()), LoopClock(), PERSONAS, inline,
            tools=lambda host: builtin_tools(household, names=TRAINED_TOOLS), ids=counting_ids(),
        )  # fmt: skip
        self.session = Session("talk", services, Settings(persona="ada", paced=False))
        self.metrics = services.metrics
        self.told: list[object] = []

    async def __aenter__(self) -> House:
        self.thread.start()
        self._group = await contextlib.AsyncExitStack().__aenter__()
        tasks = await self._group.enter_async_context(asyncio.TaskGroup())
        tasks.create_task(self.session.run())
        tasks.create_task(self._read())
        return self

    async def __aexit__(self, *raised: object) -> None:
        self.session.close()
        await self._group.aclose()
        self.thread.stop()
        await asyncio.to_thread(self.thread.join)

    async def _read(self) -> None:
        async for event in self.session.events:
            self.told.append(event)

    async def typed(self, text: str) -> list[object]:
        """A turn, to the end of its reply; returns what was told."""
        begin = len(self.told)
        await self.session.send(CreateItem(Message(f"typed_{begin}", "user", (TextPart(text),))))
        await self.session.send(CreateResponse())
        while not any(isinstance(event, ResponseDone) for event in self.told[begin:]):
            await asyncio.sleep(0.002)
        return self.told[begin:]

    async def guessed(self, n: int, text: str, steps: int) -> None:
        """The user says this and pauses, and goes on when the engines have made so many steps, or all they can."""
        inbox, candidates = self.session._context.inbox, self.session._replies.candidates
        item_id = f"spoken_{n}"
        await inbox.send(UserBegan(item_id, 0, 0.0))
        await inbox.send(UserMayBeDone(item_id, text))
        while candidates._now is None:
            await asyncio.sleep(0.001)
        begin = self.thread.steps
        still, last = 0, -1
        while self.thread.steps - begin < steps and still < 20:
            await asyncio.sleep(0.001)
            still, last = (still + 1 if self.thread.steps == last else 0), self.thread.steps
        candidate = candidates._now
        assert candidate is not None
        await inbox.send(UserProgress(item_id, text, 900.0, 0.0))
        while not candidate.task.done():
            await asyncio.sleep(0.001)
        for _ in range(5):  # until what its end brings about is asked of the models
            await asyncio.sleep(0)
        while candidates._taking_back:
            await asyncio.sleep(0.001)
        self.session._context.turn = type(self.session._context.turn)(play_end=0.0)

    async def state(self) -> tuple[object, dict[str, torch.Tensor]]:
        """Everything that a talk is: what the models know and hold, what was said, what is kept, what is counted."""
        tensors: dict[str, torch.Tensor] = {}
        facts: list[object] = []
        for kind, adapter in ((EngineKind.LLM, self.llm), (EngineKind.TTS, self.tts)):

            def look(adapter: LocalLLM | LocalTTS = adapter, kind: EngineKind = kind) -> None:
                known = adapter._lease.find("talk")
                assert known is not None and adapter._lease.own("talk")
                capsule = adapter.engine.snapshot()
                facts.append((adapter._lease._lessee.to_rows(known), capsule.tokens, capsule.host, capsule.position))
                tensors.update({f"{kind}.{name}": tensor.clone() for name, tensor in capsule.tensors.items()})

            await self.thread.call(kind, look, talk="talk")
        talk = self.session
        told = [event for event in self.told if not isinstance(event, SpeechStarted | TranscriptPartial)]
        facts += [tuple(talk.conversation), [*self.kept.words], talk._replies._turns._count, len(told)]
        return facts, tensors


def assert_nothing_changed(before: tuple[object, dict[str, torch.Tensor]], after: tuple[object, dict]) -> None:
    for one, two in zip(before[0], after[0], strict=True):
        assert one == two
    assert before[1].keys() == after[1].keys()
    for name, tensor in before[1].items():
        assert torch.equal(tensor.view(torch.uint8), after[1][name].view(torch.uint8)), name


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_many_dropped_candidates_leave_nothing(sampling: tuple[Sampling, VoiceSampling]) -> None:
    """Together 96. The next replies of the talk are those of a talk in which nothing was ever guessed, bit for bit."""
    rng = random.Random(8)

    async def talk(guesses: int) -> tuple[list[tuple[str, bytes]], tuple[object, dict[str, torch.Tensor]], int]:
        dropped = 0
        async with House(sampling) as house:
            replies = []
            for turn, text in enumerate(("hello", "put eggs on my list", "what is on my list")):
                replies.append(said(await house.typed(text)))
                before = await house.state()
                for n in range(guesses):
                    await house.guessed(turn * 1000 + n, rng.choice(ASKED), rng.randint(0, 120))
                    if n % 8 == 7:
                        assert_nothing_changed(before, await house.state())
            counted = house.metrics.candidates.labels("dropped")._value.get()
            dropped = int(counted)
            replies.append(said(await house.typed("count to ten")))
            return replies, await house.state(), dropped

    with_guesses = asyncio.run(asyncio.wait_for(talk(16), 900))
    plain = asyncio.run(asyncio.wait_for(talk(0), 120))
    assert with_guesses[2] >= 45
    assert with_guesses[0] == plain[0]
    assert_same_tensors(with_guesses[1][1], plain[1][1])


def said(events: list[object]) -> tuple[str, bytes]:
    """Words and sound of a reply, however they were cut on their way: that hangs on the clock."""
    words = "".join(event.delta for event in events if isinstance(event, SpokenText))
    return words, b"".join(event.pcm.tobytes() for event in events if isinstance(event, AudioDelta))


def assert_same_tensors(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> None:
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor.view(torch.uint8), two[name].view(torch.uint8)), name
