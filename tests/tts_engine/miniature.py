"""Writes random checkpoints in the published layout: same names, structure and special tokens, small sizes.

Every relation that catches a bug is kept: head_dim is not hidden / heads, grouped heads, spare vocabulary rows, tied
copies in the file but not in its index, all five strides, eight codebooks of 1,026, special tokens by name at other
ids, a codebook average that differs from the codebook. Stored as bfloat16.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from torch import Tensor

CODEC = "tied.embedding.modality_embeddings.0.model."
STRIDES = (8, 5, 4, 2, 3)
QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
EMOTIONS = (
    "elation", "amusement", "enthusiasm", "determination", "pride", "contentment", "affection", "relief",
    "contemplation", "confusion", "surprise", "awe", "longing", "arousal", "anger", "fear", "disgust", "bitterness",
    "sadness", "shame", "helplessness",
)  # fmt: skip
ADDED = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>",
    "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|asr|>", "<|streaming_asr|>", "<|tts|>",
    "<|streaming_tts|>", "<|audio_cont_txt|>", "<|audio|>", "<|audio_end|>", "<|text|>", "<|text_end|>", "<|eoc|>",
    "<|user|>", "<|assistant|>", "<|system|>", "<|await_audio|>", "<|ref_audio|>", "<|ref_text|>",
    *(f"<|emotion:{name}|>" for name in EMOTIONS), "<|env:music|>", "<|env:noise|>",
    *(f"<|style:{name}|>" for name in ("singing", "shouting", "whispering")),
    *(
        f"<|sfx:{name}|>"
        for name in ("cough", "laughter", "crying", "screaming", "burping", "humming", "sigh", "sniff", "sneeze")
    ),
    *(f"<|prosody:speed_{name}|>" for name in ("very_slow", "slow", "fast", "very_fast")),
    "<|prosody:pitch_low|>", "<|prosody:pitch_high|>", "<|prosody:pause|>", "<|prosody:long_pause|>", "<|chatml|>",
    "<|prosody:expressive_high|>", "<|prosody:expressive_low|>",
]  # fmt: skip


@dataclass(frozen=True)
class Size:
    """Extents of a miniature; the defaults are those of the tests."""

    hidden: int = 64
    layers: int = 3
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    intermediate: int = 160
    text_vocab: int = 384
    max_positions: int = 2048
    encoder_width: int = 4
    decoder_width: int = 64
    latent: int = 16
    codebook_dim: int = 8
    hubert: int = 32
    hubert_layers: int = 2
    hubert_heads: int = 2
    hubert_inner: int = 64
    hubert_conv: int = 16
    position_groups: int = 4
    embedding_gain: float = 0.3  # small beside what layers add, else a tied random model repeats its input for ever
    end_scale: float = 2.2  # of the row of (codebook 0, end of codes): greedy runs end after a few dozen rows


PUBLISHED = Size(  # but for its layers: 36 of the backbone, 12 of HuBERT
    hidden=2560, layers=2, heads=32, kv_heads=8, head_dim=128, intermediate=9728, text_vocab=151936,
    max_positions=32768, encoder_width=64, decoder_width=1024, latent=256, codebook_dim=64, hubert=768,
    hubert_heads=12, hubert_inner=3072, hubert_conv=512, position_groups=16,
)  # fmt: skip


def write_miniature(folder: Path, size: Size = Size(), seed: int = 0, drawn: torch.dtype = torch.float32) -> Path:
    """A whole checkpoint directory. Returns the folder. Drawn in bfloat16, a large one takes a third of the memory."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: t.to(torch.bfloat16).contiguous() for name, t in miniature_tensors(size, seed, drawn).items()}
    save_file(tensors, folder / "model.safetensors")
    index = {name: "model.safetensors" for name in tensors if not name.startswith("tied.head.")}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    (folder / "config.json").write_text(json.dumps(config_json(size)))
    (folder / "codec_config.json").write_text(
        json.dumps({"codec_type": "higgs_audio_v2", "semantic_heads": size.hubert_heads})
    )
    tokenizer(size).save(str(folder / "tokenizer.json"))
    return folder


def config_json(size: Size) -> dict[str, object]:
    return {
        "architectures": ["HiggsMultimodalQwen3ForConditionalGeneration"],
        "model_type": "higgs_multimodal_qwen3",
        "_hidden_size": size.hidden,
        "_vocab_size": size.text_vocab,
        "audio_token_id": -100,
        "ignore_index": -100,
        "transformers_version": "5.5.0",
        "audio_encoder_config": {
            "model_type": "higgs_audio_encoder", "encoder_type": "discrete", "num_codebooks": 8, "vocab_size": 1026,
            "out_dim": size.hidden, "tie_word_embeddings": True, "use_delay_pattern": True, "max_chunk_size": 50,
            "mel_per_sample": 8, "qwen3_aut_config": None, "whisper_config": None, "dtype": None,
        },
        "text_config": {
            "model_type": "qwen3", "num_hidden_layers": size.layers, "hidden_size": size.hidden,
            "num_attention_heads": size.heads, "num_key_value_heads": size.kv_heads, "head_dim": size.head_dim,
            "intermediate_size": size.intermediate, "hidden_act": "silu", "attention_bias": False,
            "rms_norm_eps": 1e-6, "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
            "max_position_embeddings": size.max_positions, "vocab_size": size.text_vocab,
            "tie_word_embeddings": True, "bos_token_id": 280, "eos_token_id": 280, "pad_token_id": None,
            "sliding_window": None, "layer_types": ["full_attention"] * size.layers, "dtype": "bfloat16",
        },
    }  # fmt: skip


def tokenizer(size: Size) -> Tokenizer:
    """Byte-level BPE with 24 merges, then the 84 added tokens from id 280 on."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [
        ("t", "h"), ("th", "e"), ("i", "n"), ("e", "r"), ("a", "n"), ("Ġ", "the"), ("o", "n"), ("r", "e"),
        ("Ġ", "a"), ("o", "u"), ("i", "s"), ("an", "d"), ("Ġ", "t"), ("e", "n"), ("Ġ", "s"), ("o", "r"),
        ("in", "g"), ("l", "l"), ("Ġ", "o"), ("h", "e"), ("ou", "r"), ("e", "s"), ("Ġ", "w"), ("a", "t"),
    ]  # fmt: skip
    vocab = {letter: i for i, letter in enumerate(letters)}
    for left, right in merges:
        vocab[left + right] = len(vocab)
    assert len(vocab) == 280 and len(ADDED) == 84 and 280 + len(ADDED) <= size.text_vocab
    made = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN_SPLIT), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(ADDED)
    return made


def miniature_tensors(size: Size, seed: int, drawn: torch.dtype = torch.float32) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int, fan: int | None = None, gain: float = 1.0) -> Tensor:
        return (torch.randn(*shape, generator=g) * (gain / math.sqrt(fan or shape[-1]))).to(drawn)

    def near_one(*shape: int) -> Tensor:
        return 1 + 0.1 * torch.randn(*shape, generator=g)

    t = _language(size, normal, near_one)
    codec = _quantiser(size, normal) | _decoder(size, normal, near_one) | _encoder(size, normal, near_one)
    codec |= _semantic(size, normal, near_one)
    return t | {CODEC + name: value for name, value in codec.items()}


def _language(size: Size, normal, near_one) -> dict[str, Tensor]:
    h, d = size.hidden, size.head_dim
    audio = normal(8 * 1026, h, gain=size.embedding_gain)
    audio[1025] *= size.end_scale
    text = normal(size.text_vocab, h, gain=size.embedding_gain)
    t = {
        "tied.embedding.text_embedding.weight": text,
        "tied.embedding.modality_embeddings.0.embedding.weight": audio,
        "tied.head.text_head.weight": text.clone(),
        "tied.head.modality_heads.0.weight": audio.clone(),
        "body.norm.weight": near_one(h),
    }
    for i in range(size.layers):
        at = f"body.layers.{i}"
        t |= {
            f"{at}.input_layernorm.weight": near_one(h),
            f"{at}.post_attention_layernorm.weight": near_one(h),
            f"{at}.self_attn.q_proj.weight": normal(size.heads * d, h),
            f"{at}.self_attn.k_proj.weight": normal(size.kv_heads * d, h),
            f"{at}.self_attn.v_proj.weight": normal(size.kv_heads * d, h),
            f"{at}.self_attn.o_proj.weight": normal(h, size.heads * d),
            f"{at}.self_attn.q_norm.weight": near_one(d),
            f"{at}.self_attn.k_norm.weight": near_one(d),
            f"{at}.mlp.gate_proj.weight": normal(size.intermediate, h),
            f"{at}.mlp.up_proj.weight": normal(size.intermediate, h),
            f"{at}.mlp.down_proj.weight": normal(h, size.intermediate),
        }
    return t


def _quantiser(size: Size, normal) -> dict[str, Tensor]:
    width, dim = size.latent + size.hubert, size.codebook_dim
    t = {}
    for q in range(8):
        at = f"quantizer.quantizers.{q}"
        t |= {
            f"{at}.codebook.embed": normal(1024, dim, fan=1),
            f"{at}.codebook.embed_avg": normal(1024, dim, fan=1),
            f"{at}.codebook.cluster_size": torch.ones(1024),
            f"{at}.codebook.inited": torch.ones(1),
            f"{at}.project_in.weight": normal(dim, width),
            f"{at}.project_in.bias": normal(dim, fan=2500),
            f"{at}.project_out.weight": normal(width, dim, gain=0.6**q),
            f"{at}.project_out.bias": normal(width, fan=2500),
        }
    for name, rows in (("fc", width), ("fc1", size.hubert), ("fc2", size.latent)):
        t |= {f"{name}.weight": normal(rows, width), f"{name}.bias": normal(rows, fan=2500)}
    return t


def _conv(t: dict[str, Tensor], name: str, normal, cout: int, cin: int, kernel: int, gain: float = 1.0) -> None:
    t[f"{name}.weight"] = normal(cout, cin, kernel, fan=cin * kernel, gain=gain)
    t[f"{name}.bias"] = normal(cout, fan=2500)


def _units(t: dict[str, Tensor], at: str, normal, near_one, width: int) -> None:
    for unit in ("res_unit1", "res_unit2", "res_unit3"):
        for snake in ("snake1", "snake2"):
            t[f"{at}.{unit}.{snake}.alpha"] = near_one(1, width, 1)
        _conv(t, f"{at}.{unit}.conv1", normal, width, width, 7, gain=0.7)
        _conv(t, f"{at}.{unit}.conv2", normal, width, width, 1, gain=0.7)


def _decoder(size: Size, normal, near_one) -> dict[str, Tensor]:
    t: dict[str, Tensor] = {}
    width = size.decoder_width
    _conv(t, "acoustic_decoder.conv1", normal, width, size.latent, 7)
    for i, stride in enumerate(STRIDES):
        at = f"acoustic_decoder.block.{i}"
        t[f"{at}.snake1.alpha"] = near_one(1, width, 1)
        t[f"{at}.conv_t1.weight"] = normal(width, width // 2, 2 * stride, fan=2 * width, gain=0.7)
        t[f"{at}.conv_t1.bias"] = normal(width // 2, fan=2500)
        width //= 2
        _units(t, at, normal, near_one, width)
    t["acoustic_decoder.snake1.alpha"] = near_one(1, width, 1)
    _conv(t, "acoustic_decoder.conv2", normal, 1, width, 7, gain=0.01)
    return t


def _encoder(size: Size, normal, near_one) -> dict[str, Tensor]:
    t: dict[str, Tensor] = {}
    width = size.encoder_width
    _conv(t, "acoustic_encoder.conv1", normal, width, 1, 7)
    for i, stride in enumerate(STRIDES):
        at = f"acoustic_encoder.block.{i}"
        _units(t, at, normal, near_one, width)
        t[f"{at}.snake1.alpha"] = near_one(1, width, 1)
        _conv(t, f"{at}.conv1", normal, 2 * width, width, 2 * stride, gain=0.7)
        width *= 2
    t["acoustic_encoder.snake1.alpha"] = near_one(1, width, 1)
    _conv(t, "acoustic_encoder.conv2", normal, size.latent, width, 3, gain=0.1)
    return t


def _semantic(size: Size, normal, near_one) -> dict[str, Tensor]:
    h, c = size.hubert, size.hubert_conv
    t: dict[str, Tensor] = {"semantic_model.masked_spec_embed": normal(h)}
    at = "semantic_model.feature_extractor.conv_layers"
    for i, kernel in enumerate((10, 3, 3, 3, 3, 2, 2)):
        cin = 1 if i == 0 else c
        t[f"{at}.{i}.conv.weight"] = normal(c, cin, kernel, fan=cin * kernel, gain=1.5)

    def norm(name: str, width: int) -> None:
        t[f"semantic_model.{name}.weight"], t[f"semantic_model.{name}.bias"] = near_one(width), normal(width, fan=100)

    def linear(name: str, rows: int, columns: int) -> None:
        t[f"semantic_model.{name}.weight"] = normal(rows, columns)
        t[f"semantic_model.{name}.bias"] = normal(rows, fan=2500)

    norm("feature_extractor.conv_layers.0.layer_norm", c)
    norm("feature_projection.layer_norm", c)
    linear("feature_projection.projection", h, c)
    at = "semantic_model.encoder.pos_conv_embed.conv"
    t[f"{at}.bias"] = normal(h, fan=2500)
    t[f"{at}.parametrizations.weight.original0"] = near_one(1, 1, 128)
    t[f"{at}.parametrizations.weight.original1"] = normal(h, h // size.position_groups, 128, fan=h)
    norm("encoder.layer_norm", h)
    for i in range(size.hubert_layers):
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            linear(f"encoder.layers.{i}.attention.{name}", h, h)
        norm(f"encoder.layers.{i}.layer_norm", h)
        linear(f"encoder.layers.{i}.feed_forward.intermediate_dense", size.hubert_inner, h)
        linear(f"encoder.layers.{i}.feed_forward.output_dense", h, size.hubert_inner)
        norm(f"encoder.layers.{i}.final_layer_norm", h)
    for side in ("encoder_semantic", "decoder_semantic"):
        first = "conv" if side == "encoder_semantic" else "conv1"
        t[f"{side}.{first}.weight"] = normal(h, h, 3, fan=3 * h)
        if side == "decoder_semantic":
            t[f"{side}.conv2.weight"] = normal(h, h, 3, fan=3 * h)
        for block in range(2):
            for unit in range(2):
                t[f"{side}.conv_blocks.{block}.res_units.{unit}.conv1.weight"] = normal(h, h, 3, fan=3 * h)
                t[f"{side}.conv_blocks.{block}.res_units.{unit}.conv2.weight"] = normal(h, h, 1, fan=h)
            _conv(t, f"{side}.conv_blocks.{block}.conv", normal, h, h, 3)
    return t
