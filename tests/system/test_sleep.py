"""The shipped models sleep fifty times at random moments of a talk: every token, sample and state byte is that of a
talk that never slept, and nothing grows."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from capsules import ExecContext, Role
from capsules.exec.away import Away
from llm_engine import HybridLLM, Sampling
from tts_engine.engine import HiggsTTS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CYCLES = 50
MIB = 1 << 20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class Talk:
    """Both engines in one context. `steps` are those of a talk: words folded, tokens drawn, cut and drawn again; rows
    of sound made, taken, and cut."""

    def __init__(self, recordings: Path) -> None:
        self.ctx = ExecContext("cpu", recordings=recordings)
        self.llm = HybridLLM.load(ROOT / "llm_engine/tiny", self.ctx, max_positions=1024)
        self.tts = HiggsTTS.load(ROOT / "tts_engine/tiny", self.ctx, max_positions=1024)
        self.told: list[int] = []
        self.sound: list[Tensor] = []

    def steps(self) -> Iterator[None]:
        llm, tts = self.llm, self.tts
        llm.set_sampling(Sampling(temperature=0.8, top_k=20, seed=5))
        for turn in range(3):
            llm.append(list(range(30 + turn, 90 + turn)))
            yield
            for _ in range(10):
                self.told.append(llm.step())
                yield
            llm.rollback(llm.position - 4)
            yield
            tts.begin("Good morning, it is ten.")
            while tts.step().kind != "idle" and len(self.sound) < 40:
                while (made := tts.take_audio()) is not None:
                    self.sound.append(made.pcm)
                yield
            tts.cut(tts.frames - 2)
            yield

    def state(self) -> dict[str, Tensor]:
        return {buffer.name: buffer.tensor.clone() for buffer in self.ctx.buffers(role=Role.STATE)}


def test_fifty_sleeps_change_nothing_and_leave_nothing(tmp_path: Path) -> None:
    awake = Talk(tmp_path / "recordings")
    count = sum(1 for _ in awake.steps())
    talk = Talk(tmp_path / "recordings")
    gone = Away(talk.ctx.buffers(), tmp_path / "asleep")
    chance = random.Random(1)
    moments = chance.sample(range(count), min(CYCLES, count))
    assert len(moments) == CYCLES
    held: list[int] = []
    freed: list[float] = []
    for number, _ in enumerate(talk.steps()):
        if number not in moments:
            continue
        before = resident()
        for _ in gone.let_go():
            pass
        freed.append((before - resident()) / gone.nbytes)
        gone.bring_back()
        held.append(resident())
    assert min(freed[1:]) > 0.8  # before the first there may be pages that nobody ever touched
    assert talk.told == awake.told
    assert torch.equal(torch.cat(talk.sound), torch.cat(awake.sound))
    expected = awake.state()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in talk.state().items())
    assert max(held[-10:]) - max(held[5:15]) < 8 * MIB
    gone.discard()
