"""Train the codec's decoder alone: the codes stay as they are, so a voice trained on them stays valid.

Run:  python -m assistant.recipes.codec_decoder --work .training/speech --steps 3000 --seconds 540  (again, until done)

Besides the spectral losses, the phase of every bin must turn as fast as the teacher's from one STFT frame to the next.
The codes hold no phase, so its value is free; its advance is the frequency of the harmonic in the bin, and without
that loss harmonics blur into each other. After Ai & Ling 2023 (APNet, instantaneous angular frequency loss).
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from assistant.recipes.codec import CodecRun, Plan, load_clips, load_codec
from tts_engine.istft_codec import IstftCodec

PHASE_SHARE = 0.5


class PhaseAdvance(nn.Module):
    """1 - cos of the error in phase advance, weighted by the teacher's log energy above a floor."""

    window: Tensor
    SIZE, HOP, FLOOR = 1024, 120, 3e-3

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(self.SIZE))

    def turn(self, wave: Tensor) -> tuple[Tensor, Tensor]:
        """[B, N] -> real and imaginary part of each bin times the conjugate of the bin a hop before."""
        bins = torch.view_as_real(torch.stft(wave, self.SIZE, self.HOP, window=self.window, return_complex=True))
        x, y = bins.unbind(-1)
        return x[..., 1:] * x[..., :-1] + y[..., 1:] * y[..., :-1], y[..., 1:] * x[..., :-1] - x[..., 1:] * y[..., :-1]

    def forward(self, made: Tensor, real: Tensor) -> Tensor:
        (a, b), (c, d) = self.turn(made), self.turn(real)
        energy = torch.sqrt(c * c + d * d)
        weight = torch.log1p(energy * (2 / math.sqrt(self.SIZE) / self.FLOOR) ** 2)
        cosine = (a * c + b * d) / (torch.sqrt(a * a + b * b + 1e-12) * energy + 1e-9)
        return (weight * (1 - cosine)).sum() / weight.sum()


class DecoderRun(CodecRun):
    """Train the decoder on codes that stay as they are."""

    SKIP = 2  # frames at a crop's start, whose left context the crop cut off

    def __init__(self, plan: Plan, start: IstftCodec, clips: list[np.ndarray]) -> None:
        super().__init__(plan, start.shape, clips)
        self.codec.load_state_dict(start.state_dict())
        self.codec.encoder.requires_grad_(False)
        self.phase = PhaseAdvance()
        learnt = [*self.codec.decoder.parameters(), *self.codec.quantiser.project_out.parameters()]
        self.optimiser = torch.optim.AdamW(learnt, plan.rate, betas=(0.8, 0.99), weight_decay=1e-3)

    def step(self) -> float:
        """One step; returns the spectral loss."""
        plan, done = self.plan, self.step_index / self.plan.steps
        for group in self.optimiser.param_groups:
            group["lr"] = plan.rate * min(1, (self.step_index + 1) / 50) * (0.5 * (1 + math.cos(math.pi * done)) + 0.02)
        real = self.batch()
        with torch.no_grad():
            codes = self.codec.encode(real)
        start = self.SKIP * self.codec.shape.hop
        made, real = self.codec.decode(codes)[:, start:], real[:, start:]
        loss, turn = self.loss(made, real), self.phase(made, real)
        self.optimiser.zero_grad(set_to_none=True)
        (loss + PHASE_SHARE * turn).backward()
        nn.utils.clip_grad_norm_(self.codec.decoder.parameters(), 1.0)
        self.optimiser.step()
        self.step_index += 1
        self.turn = float(turn.detach())
        return float(loss.detach())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path(".training/speech"))
    parser.add_argument("--steps", type=int, default=Plan.steps)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--shards", type=int, default=24, help="how many teacher shards to train on")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    start, path = load_codec(args.work / "codec.pt"), args.work / "decoder.pt"
    plan = Plan(steps=args.steps, batch=8, samples=24_000, rate=6e-4, seed=1)
    run = DecoderRun(plan, start, load_clips(args.work, args.shards))
    if path.exists():
        run.load(path)
    began = saved = time.monotonic()
    average = torch.zeros(2)
    while run.step_index < args.steps and time.monotonic() - began < args.seconds:
        now = torch.tensor([run.step(), run.turn])
        average = now if not average.any() else average.lerp(now, 0.03)
        if run.step_index % 50 == 0:
            spectral, turn = average.tolist()
            print(
                f"step {run.step_index}/{args.steps} spectral {spectral:.4f} phase {turn:.4f} "
                f"{time.monotonic() - began:.0f} s, cpu {time.process_time():.0f} s",
                flush=True,
            )
        if time.monotonic() - saved > 120:
            run.save(path)
            saved = time.monotonic()
    run.save(path)
    print("done" if run.step_index >= args.steps else "paused; run again to go on")


if __name__ == "__main__":
    main()
