"""The delay pattern: codebook q lags by q rows, begin codes fill the opening triangle, end codes the closing one.

Piece.codes lines the codebooks up again.
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
