"""Train the small codec on teacher speech: spectral losses, quantiser off at first, then k-means and moving averages.

Run:  python -m recipes.codec --work .training/speech --steps 2400 --seconds 540     (again, until done)
"""

import argparse
import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from recipes.muon import Muon
from recipes.spectral import PhaseAdvance, SpectralLoss
from recipes.teacher import load_shard
from tts_engine.istft_codec import CodecShape, IstftCodec


@dataclass(frozen=True)
class CodecPlan:
    """One run; `warm`: the share of steps without quantiser, `phase`: the weight of the loss on the phase's advance.

    `matrix_rate` is Muon's, for the linear layers; `rate` is AdamW's, for everything else.
    """

    steps: int = 2400
    batch: int = 10
    samples: int = 19_200
    rate: float = 8e-4
    matrix_rate: float = 0.01
    phase: float = 0.5
    warm: float = 0.2
    seed: int = 0


class QuantiserTrainer:
    """The moving averages behind a `Quantiser`'s codebooks: k-means start, EMA, restart of dead codes."""

    DECAY = 0.99
    DEAD = 0.03

    def __init__(self, codec: IstftCodec) -> None:
        self.quantiser = codec.quantiser
        books = self.quantiser.codebook
        self.count = torch.ones(books.shape[:2])
        self.total = books.clone()
        self.on = False

    @torch.no_grad()
    def start(self, reduced: Tensor, rng: torch.Generator, known: int = 0) -> None:
        """Residual k-means over [M, D], eight rounds per codebook; the first `known` stay unchanged."""
        rest = reduced.clone()
        for book in self.quantiser.codebook[:known]:
            rest = rest - book[torch.cdist(rest, book).argmin(1)]
        for book in self.quantiser.codebook[known:]:
            size = len(book)
            centres = rest[torch.randperm(len(rest), generator=rng)[:size]].clone()
            for _ in range(8):
                nearest = torch.cdist(rest, centres).argmin(1)
                count = torch.bincount(nearest, minlength=size)[:, None].float()
                total = torch.zeros_like(centres).index_add_(0, nearest, rest)
                spare = rest[torch.randint(len(rest), (size,), generator=rng)]
                centres = torch.where(count > 0, total / count.clamp(min=1), spare)
            book.copy_(centres)
            rest = rest - centres[torch.cdist(rest, centres).argmin(1)]
        self.total.copy_(self.quantiser.codebook)
        self.on = True

    def __call__(self, reduced: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """reduced [B, T, D] -> its quantised value with a straight-through gradient, and the commitment loss."""
        if not self.on:
            return reduced, reduced.new_zeros(())
        rest = reduced.detach().flatten(0, 1)
        total, loss = torch.zeros_like(rest), reduced.new_zeros(())
        for q, book in enumerate(self.quantiser.codebook):
            code = (book.square().sum(1) - 2 * rest @ book.T).argmin(1)
            self._follow(q, rest, code, rng)
            entry = F.embedding(code, book)
            total, rest = total + entry, rest - entry
            loss = loss + F.mse_loss(reduced.flatten(0, 1), total)
        total = total.view_as(reduced)
        return reduced + (total - reduced).detach(), loss / len(self.quantiser.codebook)

    @torch.no_grad()
    def _follow(self, q: int, rest: Tensor, code: Tensor, rng: torch.Generator) -> None:
        size = self.count.shape[1]
        count = torch.bincount(code, minlength=size).float()
        total = torch.zeros_like(self.total[q]).index_add_(0, code, rest)
        self.count[q].lerp_(count, 1 - self.DECAY)
        self.total[q].lerp_(total, 1 - self.DECAY)
        dead = (self.count[q] < self.DEAD).nonzero()[:, 0]
        if len(dead) and torch.rand((), generator=rng) < 0.05:
            fresh = rest[torch.randint(len(rest), (len(dead),), generator=rng)]
            self.count[q, dead], self.total[q, dead] = 0.3, fresh * 0.3
        self.quantiser.codebook[q] = self.total[q] / (self.count[q, :, None] + 1e-5)

    def state(self) -> dict[str, object]:
        return {"count": self.count, "total": self.total, "on": self.on}

    def load(self, state: dict[str, object]) -> None:
        assert isinstance(state["count"], Tensor) and isinstance(state["total"], Tensor)
        self.count.copy_(state["count"])
        self.total.copy_(state["total"])
        self.on = bool(state["on"])


class CodecRun:
    """A resumable training run over a list of int16 clips."""

    def __init__(self, plan: CodecPlan, shape: CodecShape, clips: list[np.ndarray]) -> None:
        torch.manual_seed(plan.seed)
        self.plan = plan
        self.clips = [c for c in clips if len(c) > plan.samples]
        self.codec = IstftCodec(shape)
        self.trainer = QuantiserTrainer(self.codec)
        self.loss, self.turn = SpectralLoss(), PhaseAdvance()
        self.optimiser = self.optimiser_of(self.codec.parameters())
        self.rng = torch.Generator().manual_seed(plan.seed)
        self.step_index = 0
        self.recent: list[Tensor] = []

    def optimiser_of(self, learnt: Iterable[Tensor]) -> Muon:
        """Muon for the linear layers among these."""
        tensors = list(learnt)
        matrices, others = [p for p in tensors if p.dim() == 2], [p for p in tensors if p.dim() != 2]
        return Muon(matrices, others, self.plan.matrix_rate, self.plan.rate, weight_decay=0.002)

    def batch(self) -> Tensor:
        """[B, N] float32 at random places."""
        parts = []
        for _ in range(self.plan.batch):
            clip = self.clips[int(torch.randint(len(self.clips), (), generator=self.rng))]
            start = int(torch.randint(len(clip) - self.plan.samples, (), generator=self.rng))
            parts.append(torch.from_numpy(clip[start : start + self.plan.samples].astype(np.float32) / 32767))
        return torch.stack(parts)

    def step(self) -> float:
        """One step; returns the spectral loss."""
        plan, done = self.plan, self.step_index / self.plan.steps
        factor = min(1, (self.step_index + 1) / 100) * (0.97 * 0.5 * (1 + math.cos(math.pi * done)) + 0.03)
        if done >= plan.warm and not self.trainer.on and self.recent:
            self.trainer.start(torch.cat(self.recent), self.rng)
            self.recent = []
        real = self.batch()
        reduced = self.codec.quantiser.reduce(self.codec.encoder(real))
        if not self.trainer.on:
            self.recent = [*self.recent, reduced.detach().flatten(0, 1)][-60:]
        quantised, commitment = self.trainer(reduced, self.rng)
        made = self.codec.decoder(self.codec.quantiser.project_out(quantised))
        hop = self.codec.shape.hop
        made, real = made[:, hop:], real[:, hop:]
        loss = self.loss(made, real)
        (loss + plan.phase * self.turn(made, real) + 0.25 * commitment).backward()
        self.optimiser.step(factor)
        self.step_index += 1
        return float(loss.detach())

    def state(self) -> dict[str, Any]:
        """Everything needed to continue."""
        return {
            "plan": asdict(self.plan),
            "shape": self.codec.shape.to_json(),
            "codec": self.codec.state_dict(),
            "trainer": self.trainer.state(),
            "optimiser": self.optimiser.state(),
            "rng": self.rng.get_state(),
            "step": self.step_index,
            "recent": self.recent,
        }

    def save(self, path: Path) -> None:
        """The state, written aside, then renamed."""
        torch.save(self.state(), path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)

    def load(self, path: Path) -> dict[str, Any]:
        """Continue from a saved state; returns it."""
        state: dict[str, Any] = torch.load(path, weights_only=True)
        self.codec.load_state_dict(state["codec"])
        self.trainer.load(state["trainer"])
        self.optimiser.load(state["optimiser"])
        self.rng.set_state(state["rng"])
        self.step_index, self.recent = state["step"], state["recent"]
        return state


def load_clips(work: Path, shards: int) -> list[np.ndarray]:
    """int16 audio of the first shards, sentence by sentence."""
    paths = sorted(work.glob("shard[0-9]*[0-9].npz"))[:shards]
    return [clip for path in paths for clip in load_shard(path)[0]]


def load_codec(path: Path) -> IstftCodec:
    """The codec of a checkpoint written by `CodecRun.save`, ready to encode and decode."""
    state = torch.load(path, weights_only=True)
    codec = IstftCodec(CodecShape.parse(state["shape"]))
    codec.load_state_dict(state["codec"])
    return codec.requires_grad_(False).eval()


def train(run: CodecRun, path: Path, seconds: float) -> None:
    """Continue from `path` if it exists, until the plan's steps are done or the time is up."""
    if path.exists():
        run.load(path)
    began, average, saved = time.monotonic(), 0.0, time.monotonic()
    while run.step_index < run.plan.steps and time.monotonic() - began < seconds:
        loss = run.step()
        average = loss if not average else 0.97 * average + 0.03 * loss
        if run.step_index % 50 == 0:
            used = [int((c > 0.02).sum()) for c in run.trainer.count]
            print(
                f"step {run.step_index}/{run.plan.steps} loss {average:.4f} codes {used} "
                f"{time.monotonic() - began:.0f} s, cpu {time.process_time():.0f} s",
                flush=True,
            )
        if time.monotonic() - saved > 120:
            run.save(path)
            saved = time.monotonic()
    run.save(path)
    print("done" if run.step_index >= run.plan.steps else "paused; run again to continue")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path(".training/speech"))
    parser.add_argument("--steps", type=int, default=CodecPlan.steps)
    parser.add_argument("--rate", type=float, default=CodecPlan.rate, help="AdamW's")
    parser.add_argument("--matrix-rate", type=float, default=CodecPlan.matrix_rate, help="Muon's")
    parser.add_argument("--batch", type=int, default=CodecPlan.batch)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--shards", type=int, default=24, help="how many teacher shards to train on")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    plan = CodecPlan(steps=args.steps, batch=args.batch, rate=args.rate, matrix_rate=args.matrix_rate)
    train(CodecRun(plan, CodecShape(), load_clips(args.work, args.shards)), args.work / "codec.pt", args.seconds)


if __name__ == "__main__":
    main()
