"""Spectrogram critics for the codec's decoder: least-squares adversarial loss and feature matching, on a CPU.

One critic per resolution looks at log magnitudes, with four 2-d convolutions. After Jang et al. 2021 (UnivNet) and
Mao et al. 2017 (least-squares GAN).
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SIZES = ((2048, 480), (1024, 240), (512, 120))
CHANNELS = (8, 16, 16)


class Critic(nn.Module):
    """Audio [B, N] -> the activations of each layer; the last [B, 1, f, t] says how real each patch is."""

    window: Tensor

    def __init__(self, size: int, hop: int) -> None:
        super().__init__()
        self.size, self.hop = size, hop
        self.register_buffer("window", torch.hann_window(size))
        widths = (1, *CHANNELS)
        self.layers = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv2d(a, b, (7, 3), (2, 1 + (b > 8)), (3, 1)))
            for a, b in pairwise(widths)
        )
        self.out = nn.Conv2d(CHANNELS[-1], 1, (3, 3), padding=1)

    def forward(self, audio: Tensor) -> list[Tensor]:
        bins = torch.view_as_real(torch.stft(audio, self.size, self.hop, window=self.window, return_complex=True))
        energy = bins.square().sum(-1) * (4 / self.size)
        x, seen = torch.log(energy + 1e-6)[:, None] / 4, []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.1)
            seen.append(x)
        return [*seen, self.out(x)]


class Adversary:
    """The critics with their optimiser."""

    def __init__(self, rate: float, seed: int) -> None:
        torch.manual_seed(seed)
        self.critics = nn.ModuleList(Critic(size, hop) for size, hop in SIZES)
        self.optimiser = torch.optim.AdamW(self.critics.parameters(), rate, betas=(0.8, 0.99))

    def learn(self, made: Tensor, real: Tensor) -> float:
        """One step of the critics on audio [B, N] of both kinds; returns their loss (0.5 when they know nothing)."""
        loss = made.new_zeros(())
        for critic in self.critics:
            loss = loss + (critic(real)[-1] - 1).square().mean() + critic(made.detach())[-1].square().mean()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return float(loss.detach()) / len(self.critics)

    def judge(self, made: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """How far the critics are from taking `made` for real, and the distance between the features they saw."""
        self.critics.requires_grad_(False)
        verdict, matching = made.new_zeros(()), made.new_zeros(())
        for critic in self.critics:
            with torch.no_grad():
                wanted = critic(real)
            *seen, out = critic(made)
            verdict = verdict + (out - 1).square().mean()
            matching = matching + sum(F.l1_loss(a, b) for a, b in zip(seen, wanted, strict=False)) / len(seen)
        self.critics.requires_grad_(True)
        return verdict / len(self.critics), matching / len(self.critics)

    def state(self) -> dict[str, Any]:
        return {"critics": self.critics.state_dict(), "optimiser": self.optimiser.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        self.critics.load_state_dict(state["critics"])
        self.optimiser.load_state_dict(state["optimiser"])
