"""Gives a trained codec and voice more codebooks: their knowledge stays, the new codebooks start from the rest."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from recipes.codec import CodecPlan, CodecRun, load_clips, load_codec
from recipes.speech_training import VoicePlan, VoiceRun, published_config
from tts_engine.config import parse_config

CLIPS_EVERY = 9
"""Use one clip in this many: of nine hours one, which k-means handles in half a minute."""


def grow(work: Path) -> None:
    """codec.pt and voice.pt of a work folder with as many codebooks as `published_config` has, at step 0.

    A decoder.pt becomes part of codec.pt. Codes made before are removed, so `encode` makes them anew.
    """
    config = parse_config(published_config())
    voice = torch.load(work / "voice.pt", weights_only=True)
    decoder = work / "decoder.pt"
    start = decoder if decoder.exists() else work / "codec.pt"
    grown_codec(start, config.audio.codebooks, load_clips(work, 10_000)[::CLIPS_EVERY]).save(work / "codec.pt")
    decoder.unlink(missing_ok=True)
    run = VoiceRun(VoicePlan(), config, [])
    run.averaged = with_new_rows(voice["averaged"], run.tensors)
    run.use(run.averaged)
    run.save(work / "voice.pt")
    for codes in (*work.glob("shard*.codes.pt"), *work.glob("shard*.late.pt")):
        codes.unlink()


def grown_codec(path: Path, codebooks: int, clips: Sequence[NDArray[np.int16]]) -> CodecRun:
    """The codec of a checkpoint, extended by residual k-means over `clips` after its own codebooks, as a run at step
    0."""
    codec = load_codec(path)
    run = CodecRun(CodecPlan(), replace(codec.shape, codebooks=codebooks), [])
    state = dict(codec.state_dict())
    state["quantiser.codebook"] = with_new_rows([codec.quantiser.codebook], [run.codec.quantiser.codebook])[0]
    run.codec.load_state_dict(state)
    waves = (torch.from_numpy(clip.astype(np.float32) / 32767)[None] for clip in clips)
    with torch.no_grad():
        seen = [codec.quantiser.reduce(codec.encoder(F.pad(w, (0, -w.shape[1] % codec.shape.hop))))[0] for w in waves]
    run.trainer.start(torch.cat(seen), run.rng, known=codec.shape.codebooks)
    return run


def with_new_rows(known: Sequence[Tensor], fresh: Sequence[Tensor]) -> list[Tensor]:
    """The known tensors, each extended by the rest of today's where those are longer."""
    return [torch.cat([a, b.detach()[len(a) :]]) for a, b in zip(known, fresh, strict=True)]
