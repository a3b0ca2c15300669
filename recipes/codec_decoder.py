"""Train the codec's decoder alone: the codes do not change, so a voice trained on them stays valid.

Run:  python -m recipes.codec_decoder --work .training/speech --steps 3000 --seconds 540  (again, until done)
"""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recipes.adversary import Adversary
from recipes.codec import CodecPlan, CodecRun, load_clips, load_codec, train
from tts_engine.istft_codec import IstftCodec


class DecoderRun(CodecRun):
    """Train the decoder on fixed codes, against critics if there is an adversary."""

    SKIP = 2  # frames at a crop's start, whose left context the crop cut off
    MATCHING = 2.0  # weight of the critics' features against the spectral loss
    VERDICT = 0.1  # weight of their verdict
    CRITICS_EVERY = 3  # steps: asking and teaching them costs more than everything else together

    def __init__(
        self, plan: CodecPlan, start: IstftCodec, clips: list[np.ndarray], adversary: Adversary | None
    ) -> None:
        super().__init__(plan, start.shape, clips)
        self.codec.load_state_dict(start.state_dict())
        self.codec.encoder.requires_grad_(False)
        self.adversary = adversary
        learnt = [*self.codec.decoder.parameters(), *self.codec.quantiser.project_out.parameters()]
        self.optimiser = self.optimiser_of(learnt)

    def state(self) -> dict[str, Any]:
        return super().state() | ({"adversary": self.adversary.state()} if self.adversary else {})

    def load(self, path: Path) -> dict[str, Any]:
        state = super().load(path)
        if self.adversary:
            self.adversary.load(state["adversary"])
        return state

    def step(self) -> float:
        """One step; returns the spectral loss."""
        plan, done = self.plan, self.step_index / self.plan.steps
        factor = min(1, (self.step_index + 1) / 50) * (0.5 * (1 + math.cos(math.pi * done)) + 0.02)
        real = self.batch()
        with torch.no_grad():
            codes = self.codec.to_codes(real)
        start = self.SKIP * self.codec.shape.hop
        made, real = self.codec.to_sound(codes)[:, start:], real[:, start:]
        loss = self.loss(made, real)
        total = loss + plan.phase * self.turn(made, real)
        adversary = self.adversary if self.step_index % self.CRITICS_EVERY == 0 else None
        if adversary:
            verdict, matching = adversary.judge(made, real)
            total = total + self.VERDICT * verdict + self.MATCHING * matching
        total.backward()
        self.optimiser.step(factor)
        if adversary:
            adversary.learn(made, real)
        self.step_index += 1
        return float(loss.detach())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path(".training/speech"))
    parser.add_argument("--steps", type=int, default=CodecPlan.steps)
    parser.add_argument("--rate", type=float, default=6e-4, help="AdamW's")
    parser.add_argument("--matrix-rate", type=float, default=CodecPlan.matrix_rate, help="Muon's")
    parser.add_argument("--start", default="codec.pt", help="the codec to begin with, in the work folder")
    parser.add_argument("--out", default="decoder.pt", help="the file to write, in the work folder")
    parser.add_argument("--adversary", action="store_true", help="train against critics as well")
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--shards", type=int, default=24, help="how many teacher shards to train on")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    plan = CodecPlan(args.steps, batch=8, samples=24_000, rate=args.rate, matrix_rate=args.matrix_rate, seed=1)
    adversary = Adversary(plan.rate, plan.seed) if args.adversary else None
    run = DecoderRun(plan, load_codec(args.work / args.start), load_clips(args.work, args.shards), adversary)
    train(run, args.work / args.out, args.seconds)


if __name__ == "__main__":
    main()
