"""The losses of the codec's training: spectra at four resolutions, and how fast the phase of every bin turns.

The codes hold no phase, so its value is free; its advance from one STFT frame to the next is the frequency of the
harmonic in that bin, and without a loss on it harmonics blur into each other. After Ai & Ling 2023 (APNet).
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tts_engine.istft_codec import mel_filters


class SpectralLoss(nn.Module):
    """Log-magnitude, magnitude and log-mel L1 at four resolutions."""

    SIZES = ((2048, 480, 100), (1024, 240, 80), (512, 120, 60), (256, 60, 30))
    MEL_WEIGHT = 3.0  # recognisers use log-mel; two thirds of the bins lie above 4 kHz

    def __init__(self) -> None:
        super().__init__()
        for size, _, mels in self.SIZES:
            self.register_buffer(f"window{size}", torch.hann_window(size))
            self.register_buffer(f"mel{size}", mel_filters(size, mels, 24_000))

    def forward(self, made: Tensor, real: Tensor) -> Tensor:
        loss = made.new_zeros(())
        for size, hop, _ in self.SIZES:
            window, mel = self.get_buffer(f"window{size}"), self.get_buffer(f"mel{size}")
            scale = 2 / math.sqrt(size)
            a, b = (
                torch.stft(x, size, hop, window=window, return_complex=True).abs().clamp(min=1e-5) * scale
                for x in (made, real)
            )
            loss = loss + F.l1_loss(torch.log(a + 1e-3), torch.log(b + 1e-3)) + 2 * F.l1_loss(a, b)
            loss = loss + self.MEL_WEIGHT * F.l1_loss(torch.log(mel @ a + 1e-3), torch.log(mel @ b + 1e-3))
        return loss / len(self.SIZES)


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
