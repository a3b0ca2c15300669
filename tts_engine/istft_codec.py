"""A small speech codec: 25 frames a second of residual codes, decoded by a causal ConvNeXt and an inverse STFT.

Axes: B batch, T frames (40 ms), F fine frames (10 ms, four to a frame), Q codebooks, C channels, N samples.

The decoder is causal: frame t's 960 samples depend on codes 0 … t only, and of those on the last
`CodecShape.left_frames`. So a window that starts `left_frames` early gives the samples of the one-shot decode and
needs no look-ahead. The encoder looks both ways; it makes codes and never runs while speaking.
The same modules are trained by the recipes and run by the engine.

Speaking runs every layer frame by frame (`tts_engine.framewise`), so windows of any length equal the one-shot decode
bit for bit; training and encoding run the same layers whole, with equal results up to rounding.

Sources: ConvNeXt + iSTFT head, Siuzdak 2023 (Vocos); residual quantisation with moving averages, Défossez et al. 2022.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tts_engine import framewise
from tts_engine.errors import CheckpointRefused, ConfigRefused

CODEC_TYPE = "causal_istft"
FINE = 4  # fine frames per frame
LOG_FLOOR = 1e-4


@dataclass(frozen=True)
class CodecShape:
    """Sizes of the codec, as stored in codec_config.json. Everything else follows from them."""

    codebooks: int = 6
    codebook_size: int = 512
    code_dim: int = 32
    latent: int = 192
    width: int = 256
    expansion: int = 3
    encoder_blocks: int = 2
    decoder_blocks: int = 4
    kernel: int = 7
    coarse_kernel: int = 3
    mels: int = 80
    sample_rate: int = 24_000
    hop: int = 960

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> "CodecShape":
        """Parse codec_config.json; refuses an unknown key and a value that is not a positive integer."""
        if raw.get("codec_type") != CODEC_TYPE:
            raise ConfigRefused(f"codec_config.json: codec_type is {raw.get('codec_type')!r}, not {CODEC_TYPE!r}")
        known = {f.name for f in fields(cls)}
        facts = {k: v for k, v in raw.items() if k != "codec_type"}
        unknown = sorted(set(facts) - known)
        if unknown:
            raise ConfigRefused(f"codec_config.json: unknown {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        for name, value in facts.items():
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                raise ConfigRefused(f"codec_config.json: {name} is {value!r}; a positive integer is needed")
        shape = cls(**facts)
        if shape.hop % FINE:
            raise ConfigRefused(f"codec_config.json: hop {shape.hop} is not a multiple of {FINE}")
        return shape

    def to_json(self) -> dict[str, Any]:
        """The content of codec_config.json."""
        return {"codec_type": CODEC_TYPE, **asdict(self)}

    @property
    def fine_hop(self) -> int:
        """Samples between fine frames; the inverse STFT window is four of them."""
        return self.hop // FINE

    @property
    def left_frames(self) -> int:
        """How many earlier frames a frame's samples depend on: coarse convs, the upsampler, the trunk, the overlap."""
        coarse = 2 * (self.coarse_kernel - 1) + 1
        fine = self.decoder_blocks * (self.kernel - 1) + 3
        return coarse + -(-fine // FINE)

    @property
    def right_frames(self) -> int:
        """Look-ahead of the decoder: none."""
        return 0


class Linear(nn.Linear):
    """Acts on [B, T, C]. With `per` positions to a frame it runs frame by frame, except in training."""

    def __init__(self, cin: int, cout: int, per: int | None, *, bias: bool = True) -> None:
        super().__init__(cin, cout, bias=bias)
        self.per = per

    def forward(self, x: Tensor) -> Tensor:
        if self.per is None or self.training:
            return super().forward(x)
        bias = self.weight.new_zeros(1) if self.bias is None else self.bias
        return framewise.linear(x, self.weight.t(), bias, self.per)


class Conv(nn.Module):
    """1-d convolution over [B, T, C]; `causal` pads on the left only, else on both sides so that T/stride stays.

    per  positions in a frame; with it the layer runs frame by frame, except in training
    """

    def __init__(
        self,
        cin: int,
        cout: int,
        kernel: int,
        *,
        stride: int = 1,
        causal: bool = True,
        per: int | None = None,
    ) -> None:
        super().__init__()
        self.conv = self.sums(cin, cout, kernel, stride)
        total = kernel - stride
        self.pad = (total, 0) if causal else (total // 2, total - total // 2)
        self.per = per

    def sums(self, cin: int, cout: int, kernel: int, stride: int) -> nn.Conv1d:
        """A convolution over all channels."""
        return nn.Conv1d(cin, cout, kernel, stride)

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.conv.weight, self.conv.bias
        assert bias is not None
        if self.per is None or self.training:
            y: Tensor = self.conv(F.pad(x.transpose(1, 2), self.pad))
            return y.transpose(1, 2)
        if self.conv.groups > 1:
            return framewise.conv_depthwise(x, weight[:, 0], bias, self.pad)
        return framewise.conv_rows(x, framewise.pack_rows(weight), bias, self.per, pad=self.pad)


class DepthwiseConv(Conv):
    """Each channel by itself."""

    def sums(self, cin: int, cout: int, kernel: int, stride: int) -> nn.Conv1d:
        return nn.Conv1d(cin, cout, kernel, stride, groups=cin)


class Block(nn.Module):
    """ConvNeXt block over [B, T, C]: depthwise convolution, layer norm, pointwise MLP with a learnt scale."""

    def __init__(self, width: int, expansion: int, kernel: int, *, causal: bool = True, per: int | None = None) -> None:
        super().__init__()
        self.mix = DepthwiseConv(width, width, kernel, causal=causal, per=per)
        self.norm = nn.LayerNorm(width)
        self.up = Linear(width, width * expansion, per)
        self.down = Linear(width * expansion, width, per)
        self.scale = nn.Parameter(torch.full((width,), 0.1))
        self.per = per

    def forward(self, x: Tensor) -> Tensor:
        wide: Tensor = self.up(self.norm(self.mix(x)))
        y: Tensor = self.down(F.gelu(wide) if self.per is None or self.training else gelu(wide))
        return x + self.scale * y


class Upsample(nn.Module):
    """[B, T, C] -> [B, 4T, C], each fine frame from its frame and the one before (a causal transposed conv)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.now = Linear(width, FINE * width, 1)
        self.before = Linear(width, FINE * width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        y: Tensor = self.now(x) + F.pad(self.before(x), (0, 0, 1, 0))[:, :t]
        return y.reshape(b, t * FINE, c)


class Quantiser(nn.Module):
    """Residual vector quantiser in a small projected space. `codebook` [Q, K, D] is learnt by moving averages."""

    codebook: Tensor

    def __init__(self, shape: CodecShape) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape.latent)
        self.project_in = nn.Linear(shape.latent, shape.code_dim)
        self.project_out = Linear(shape.code_dim, shape.latent, 1)
        self.register_buffer("codebook", torch.zeros(shape.codebooks, shape.codebook_size, shape.code_dim))

    def reduce(self, latent: Tensor) -> Tensor:
        """[B, T, latent] -> [B, T, D], the vectors that the codebooks approximate."""
        reduced: Tensor = self.project_in(self.norm(latent))
        return reduced

    def encode(self, reduced: Tensor) -> Tensor:
        """[..., D] -> codes [..., Q] int64: each codebook picks the entry nearest to the remainder."""
        rest, codes = reduced, []
        for book in self.codebook:
            distance = book.square().sum(1) - 2 * rest @ book.T
            code = distance.argmin(-1)
            codes.append(code)
            rest = rest - F.embedding(code, book)
        return torch.stack(codes, -1)

    def lookup(self, codes: Tensor) -> Tensor:
        """codes [..., Q] -> [..., D], the sum of the entries."""
        total = F.embedding(codes[..., 0], self.codebook[0])
        for q in range(1, codes.shape[-1]):
            total = total + F.embedding(codes[..., q], self.codebook[q])
        return total


class Encoder(nn.Module):
    """24 kHz audio [B, N] -> latents [B, N/hop, latent]; sees about 100 ms to either side."""

    window: Tensor
    filters: Tensor

    def __init__(self, shape: CodecShape) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("window", torch.hann_window(4 * shape.fine_hop + 64), persistent=False)
        self.register_buffer("filters", mel_filters(len(self.window), shape.mels, shape.sample_rate), persistent=False)
        d = shape.latent
        self.enter = Conv(shape.mels, d, 5, causal=False)
        self.fine = nn.Sequential(
            *(Block(d, shape.expansion, shape.kernel, causal=False) for _ in range(shape.encoder_blocks))
        )
        self.pool = Conv(d, d, 2 * FINE, stride=FINE, causal=False)
        self.coarse = Block(d, shape.expansion, shape.kernel, causal=False)

    def log_mel(self, audio: Tensor) -> Tensor:
        """[B, N] -> [B, N/fine_hop, mels], natural logarithm."""
        size, hop = len(self.window), self.shape.fine_hop
        padded = F.pad(audio, ((size - hop) // 2, (size - hop) // 2))
        spectrum = torch.stft(padded, size, hop, window=self.window, center=False, return_complex=True).abs()
        return torch.log((self.filters @ spectrum).clamp(min=LOG_FLOOR)).transpose(1, 2)

    def forward(self, audio: Tensor) -> Tensor:
        latent: Tensor = self.coarse(self.pool(self.fine(self.enter(self.log_mel(audio)))))
        return latent


class Decoder(nn.Module):
    """Latents [B, T, latent] -> audio [B, T*hop], causal.

    `mask` [T], 1 where a frame exists, holds every convolution's input at zero elsewhere: so frames after a true start
    in the middle of a window sound as if the window began there.
    """

    window: Tensor

    def __init__(self, shape: CodecShape) -> None:
        super().__init__()
        self.shape = shape
        self.bins = 2 * shape.fine_hop + 1
        self.enter = Conv(shape.latent, shape.width, shape.coarse_kernel, per=1)
        self.coarse = Block(shape.width, shape.expansion, shape.coarse_kernel, per=1)
        self.upsample = Upsample(shape.width)
        self.trunk = nn.Sequential(
            *(Block(shape.width, shape.expansion, shape.kernel, per=FINE) for _ in range(shape.decoder_blocks))
        )
        self.norm = nn.LayerNorm(shape.width)
        self.head = Linear(shape.width, 2 * self.bins, FINE)
        self.register_buffer("window", torch.hann_window(4 * shape.fine_hop) / 1.5, persistent=False)

    def forward(self, latent: Tensor, mask: Tensor | None = None) -> Tensor:
        coarse_mask = None if mask is None else mask[:, None]
        fine_mask = None if mask is None else mask.repeat_interleave(FINE)[:, None]
        x = keep(self.enter(keep(latent, coarse_mask)), coarse_mask)
        x = keep(self.coarse(x), coarse_mask)
        x = keep(self.upsample(x), fine_mask)
        for block in self.trunk:
            x = keep(block(x), fine_mask)
        return self.synthesise(self.head(self.norm(x)), fine_mask)

    def synthesise(self, spectrum: Tensor, mask: Tensor | None = None) -> Tensor:
        """[B, F, 2*bins] log magnitude and phase -> [B, F*fine_hop]; fine frame f starts at sample f*fine_hop."""
        magnitude, phase = spectrum.split(self.bins, dim=-1)
        magnitude = magnitude.clamp(max=5.0).exp()
        bins = torch.complex(magnitude * phase.cos(), magnitude * phase.sin())
        frames = keep(torch.fft.irfft(bins, 4 * self.shape.fine_hop, dim=-1) * self.window, mask)
        b, f, _ = frames.shape
        parts = frames.reshape(b, f, 4, self.shape.fine_hop)
        audio = parts[:, :, 0]
        for late in range(1, 4):  # the overlap: fine frame f also sounds in the three fine hops after it
            audio = audio + F.pad(parts[:, :, late], (0, 0, late, 0))[:, :f]
        return audio.reshape(b, f * self.shape.fine_hop)


class IstftCodec(nn.Module):
    """The whole codec as a module, for training and the engine. Batched; the engine uses it through `CausalCodec`."""

    def __init__(self, shape: CodecShape) -> None:
        super().__init__()
        self.shape = shape
        self.encoder = Encoder(shape)
        self.quantiser = Quantiser(shape)
        self.decoder = Decoder(shape)

    def to_codes(self, audio: Tensor) -> Tensor:
        """[B, N] -> codes [B, Q, ceil(N/hop)]; the tail is padded with silence to a whole frame."""
        audio = F.pad(audio, (0, -audio.shape[-1] % self.shape.hop))
        return self.quantiser.encode(self.quantiser.reduce(self.encoder(audio))).transpose(1, 2)

    def to_sound(self, codes: Tensor, mask: Tensor | None = None) -> Tensor:
        """codes [B, Q, T] in 0 … codebook_size-1 -> [B, T*hop], not clipped."""
        latent = self.quantiser.project_out(self.quantiser.lookup(codes.transpose(1, 2)))
        audio: Tensor = self.decoder(latent, mask)
        return audio


class CausalCodec:
    """The engine's view of `IstftCodec` (`tts_engine.codec.Codec`): one clip, clipped to ±1, windows with a mask."""

    def __init__(self, shape: CodecShape, state: Mapping[str, Tensor]) -> None:
        """`state` is `IstftCodec.state_dict()` in any float type; everything runs in float32."""
        self._model = IstftCodec(shape)
        wanted = {name: tuple(t.shape) for name, t in self._model.state_dict().items()}
        found = {name: tuple(t.shape) for name, t in state.items()}
        if wanted != found:
            odd = sorted(n for n in wanted.keys() | found.keys() if wanted.get(n) != found.get(n))
            raise CheckpointRefused(
                f"codec tensors do not fit codec_config.json: {', '.join(odd[:5])}"
                + (f" and {len(odd) - 5} more" if len(odd) > 5 else "")
            )
        self._model.load_state_dict({name: t.float() for name, t in state.items()})
        self._model.requires_grad_(False).eval()

    @property
    def codebooks(self) -> int:
        return self._model.shape.codebooks

    @property
    def codebook_size(self) -> int:
        return self._model.shape.codebook_size

    @property
    def left_frames(self) -> int:
        return self._model.shape.left_frames

    @property
    def right_frames(self) -> int:
        return self._model.shape.right_frames

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """The tensors that decoding reads; those of the encoder are not included."""
        everything = {**dict(self._model.named_parameters()), **dict(self._model.named_buffers())}
        return {name: t for name, t in everything.items() if not name.startswith("encoder.")}

    def to(self, device: torch.device | str) -> "CausalCodec":
        """Move all tensors; call this before capture."""
        self._model.to(device)
        return self

    def to_sound(self, codes: Tensor) -> Tensor:
        """codes [Q, T] int64 -> float32 [960·T] in ±1, one-shot."""
        return self._model.to_sound(codes[None])[0].clamp(-1, 1)

    def decode_window(self, codes: Tensor, valid: Tensor) -> Tensor:
        """codes [Q, W], valid [2] int64: columns [valid[0], valid[1]) exist -> float32 [960·W]. Capturable."""
        column = torch.arange(codes.shape[1], device=codes.device)
        mask = ((column >= valid[0]) & (column < valid[1])).float()
        known = codes.clamp(max=self.codebook_size - 1)
        return self._model.to_sound(known[None], mask)[0].clamp(-1, 1)

    def to_codes(self, wave: Tensor) -> Tensor:
        """wave float32 [samples], mono, 24 kHz -> codes [Q, T] int64."""
        return self._model.to_codes(wave[None])[0]


def gelu(x: Tensor) -> Tensor:
    """F.gelu in steps that round every element alike; the library's own computes a tensor's tail differently."""
    return x * (torch.erf(x * 0.5**0.5) * 0.5 + 0.5)


def keep(x: Tensor, mask: Tensor | None) -> Tensor:
    """x where the mask is 1, zero elsewhere; x itself without a mask."""
    return x if mask is None else x * mask


def mel_filters(size: int, mels: int, sample_rate: int) -> Tensor:
    """Triangular filters [mels, size//2+1] evenly spaced on the HTK mel scale up to half the sample rate."""
    top = 2595 * math.log10(1 + sample_rate / 2 / 700)
    edges = 700 * (10 ** (torch.linspace(0, 1, mels + 2, dtype=torch.float64) * top / 2595) - 1)
    hertz = torch.linspace(0, sample_rate / 2, size // 2 + 1, dtype=torch.float64)[None]
    rising = (hertz - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - hertz) / (edges[2:] - edges[1:-1])[:, None]
    return torch.minimum(rising, falling).clamp(min=0).float()
