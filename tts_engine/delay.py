"""The delay pattern: codebook q lags by q rows, begin codes fill the opening triangle, end codes the closing one.

Q codebooks, T frames (one column of codes, 40 ms), R = T + Q - 1 rows (one generation step).
Source: Copet et al. 2023, section 2.2; special codes as in the published checkpoint.
"""

import torch
from torch import Tensor

from tts_engine.config import AudioConfig
from tts_engine.errors import DelayError


def delay(codes: Tensor, audio: AudioConfig) -> Tensor:
    """Stagger frames into the rows that the backbone is fed.

    codes    [Q, T] int64, real codes only
    returns  [T + Q - 1, Q] int64; row[r][q] is BOC for r < q and EOC for r - q >= T
    Raises DelayError for a wrong number of codebooks or a code that is not real.
    """
    if codes.dim() != 2 or codes.shape[0] != audio.codebooks:
        raise DelayError(f"codes are {list(codes.shape)}; expected [{audio.codebooks}, frames]")
    if codes.numel() and (int(codes.min()) < 0 or int(codes.max()) >= audio.size):
        raise DelayError(
            f"codes reach from {int(codes.min())} to {int(codes.max())}; real codes are 0..{audio.size - 1}"
        )
    frames = codes.shape[1]
    rows = torch.full((frames + audio.delay, audio.codebooks), audio.eoc, dtype=torch.int64)
    for q in range(audio.codebooks):
        rows[:q, q] = audio.boc
        rows[q : q + frames, q] = codes[q]
    return rows


def closing(codes: Tensor, audio: AudioConfig) -> Tensor:
    """The last Q - 1 rows of `delay(codes)`: what follows once codebook 0 has no more frames.

    They mix the last frames' lagging codebooks with end codes, so they depend only on the last Q - 1 frames.
    """
    return delay(codes, audio)[codes.shape[1] :]


def undelay(rows: Tensor, audio: AudioConfig) -> Tensor:
    """Line the codebooks up again, so that one column is one 40 ms frame.

    rows     [R, Q] int64 as sampled
    returns  [Q, R - Q + 1] int64, a copy; special codes become 0 (clamping them to the last code is audible)
    Raises DelayError for fewer than Q rows, which hold no complete frame.
    """
    if rows.dim() != 2 or rows.shape[1] != audio.codebooks:
        raise DelayError(f"rows are {list(rows.shape)}; expected [rows, {audio.codebooks}]")
    frames = rows.shape[0] - audio.delay
    if frames < 1:
        raise DelayError(f"{rows.shape[0]} rows hold no complete frame; {audio.codebooks} are needed for the first")
    codes = torch.stack([rows[q : q + frames, q] for q in range(audio.codebooks)])
    return torch.where(codes < audio.size, codes, 0)


def partial_frames(rows: Tensor, audio: AudioConfig) -> Tensor:
    """The frames that have begun but are not complete, with `audio.size` where a codebook is not known yet.

    rows     [R, Q] int64, at least one
    returns  [Q, min(R, Q - 1)] int64: column i is frame R - min(R, Q - 1) + i
    """
    count = min(rows.shape[0], audio.delay)
    first = rows.shape[0] - count
    codes = torch.full((audio.codebooks, count), audio.size, dtype=torch.int64)
    for column in range(count):
        for q in range(audio.codebooks):
            row = first + column + q
            if row < rows.shape[0] and int(rows[row, q]) < audio.size:
                codes[q, column] = rows[row, q]
    return codes
