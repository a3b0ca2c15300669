"""The reference implementations: transformers' Qwen3 and its Higgs audio tokenizer, loaded from a miniature.

transformers refuses its Higgs tokenizer without torchaudio, of which it uses one function: `resample`. That function
stands here once more, written sample by sample from its definition, and is put in torchaudio's place.
"""

import json
import math
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

CODEC = "tied.embedding.modality_embeddings.0.model."


def slow_resample(wave: Tensor, old: int, new: int) -> Tensor:
    """Windowed sinc (Hann), 6 zero crossings, roll-off 0.99: each output sample from its definition.

    wave [..., samples] -> [..., ceil(new * samples / old)]
    """
    divisor = math.gcd(old, new)
    old, new = old // divisor, new // divisor
    base = min(old, new) * 0.99
    samples = wave.shape[-1]
    centre = torch.arange(math.ceil(new * samples / old), dtype=torch.float64) * old / new
    reach = math.ceil(6 * old / base)
    taps = centre.floor().long()[:, None] + torch.arange(-reach, reach + 2)
    t = ((taps - centre[:, None]) / old * base).clamp(-6, 6)
    kernel = torch.sinc(t) * torch.cos(t * math.pi / 12).square() * base / old
    inside = (taps >= 0) & (taps < samples)
    return (wave.double()[..., taps.clamp(0, samples - 1)] * kernel * inside).sum(-1).float()


@contextmanager
def _torchaudio() -> Iterator[None]:
    import transformers.utils.import_utils  # noqa: F401  looks for the real torchaudio once, before the stub stands

    stub = types.ModuleType("torchaudio")
    stub.functional = types.SimpleNamespace(resample=slow_resample)  # type: ignore[attr-defined]
    sys.modules["torchaudio"] = stub
    try:
        yield
    finally:
        del sys.modules["torchaudio"]


def codec_oracle(folder: Path, size: Any) -> Any:
    """HiggsAudioV2TokenizerModel in float32 with every codec tensor of the file loaded; none missing, none left."""
    with _torchaudio():
        from transformers import DacConfig, HubertConfig

        at = "transformers.models.higgs_audio_v2_tokenizer"  # by path: the package itself would serve a dummy
        configuration = import_module(f"{at}.configuration_higgs_audio_v2_tokenizer")
        modeling = import_module(f"{at}.modeling_higgs_audio_v2_tokenizer")
        acoustic = DacConfig(
            encoder_hidden_size=size.encoder_width,
            decoder_hidden_size=size.decoder_width,
            hidden_size=size.latent,
            downsampling_ratios=[8, 5, 4, 2, 3],
            upsampling_ratios=[8, 5, 4, 2, 3],
        )
        semantic = HubertConfig(
            hidden_size=size.hubert,
            num_hidden_layers=size.hubert_layers,
            num_attention_heads=size.hubert_heads,
            intermediate_size=size.hubert_inner,
            conv_dim=[size.hubert_conv] * 7,
            num_conv_pos_embedding_groups=size.position_groups,
            mask_time_prob=0.0,
        )
        config = configuration.HiggsAudioV2TokenizerConfig(
            target_bandwidths=[0.5, 1, 1.5, 2],
            codebook_dim=size.codebook_dim,
            acoustic_model_config=acoustic,
            semantic_model_config=semantic,
        )
        model = modeling.HiggsAudioV2TokenizerModel(config).eval()
    stored = load_file(folder / "model.safetensors")
    tensors = {n.removeprefix(CODEC): t.float() for n, t in stored.items() if n.startswith(CODEC)}
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    assert not missing and unexpected in ([], ["semantic_model.masked_spec_embed"]), (missing, unexpected)
    return model


def qwen_oracle(folder: Path) -> tuple[Any, Tensor]:
    """Qwen3Model in float32, and the fused audio matrix [Q·V, h]."""
    from transformers import Qwen3Config, Qwen3Model

    raw = json.loads((folder / "config.json").read_text())["text_config"]
    model = Qwen3Model(Qwen3Config(**{**raw, "dtype": "float32"})).eval()
    stored = load_file(folder / "model.safetensors")
    body = {n.removeprefix("body."): t.float() for n, t in stored.items() if n.startswith("body.")}
    body["embed_tokens.weight"] = stored["tied.embedding.text_embedding.weight"].float()
    model.load_state_dict(body, strict=True)
    return model, stored["tied.embedding.modality_embeddings.0.embedding.weight"].float()
