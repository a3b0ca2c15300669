"""Tensor names of the published layout, and the way from a checkpoint directory to weights on the device and back.

q, k, v and gate, up are stored apart and fused while loading, each read straight into its rows of the fused matrix.
The tied copies of both embeddings are skipped. Codec tensors lie in the same file below one prefix. The layers'
matrices may be packed on the way: into FP8, into four bits, or for a processor into eight. Beside eight or four on a
processor the embeddings (one is also the head) use eight bits, otherwise the type of activations, as norms and cursor
always do. Beside a GPU the embedding of text stays on the host, where a few of its rows are read per sentence, and so
does the part that encodes a voice.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import torch
from torch import Tensor

from capsules.digests import known_digest, stamps
from capsules.errors import CapsuleError
from capsules.exec.fixed import FixedMemory
from capsules.nn import empty_matrix
from capsules.nn.fp8 import Fp8Weight, empty_fp8
from capsules.nn.int4 import empty_int4
from capsules.nn.panels import BITS, FORMS, PANEL, empty_panels
from capsules.prepared import PreparedWeights, Tell
from capsules.shards import open_files
from capsules.weights import CASTABLE, Progress, Target, catalogue, load, packing
from capsules.weights import DTYPES as STORED
from tts_engine.backbone import BackboneLayer, BackboneWeights, CursorWeights, Matrix, Table
from tts_engine.config import BackboneConfig, TTSConfig, load_config
from tts_engine.dac_encode import ENCODER
from tts_engine.errors import CheckpointRefused, ConfigRefused

CODEC_PREFIX = "tied.embedding.modality_embeddings.0.model."
FP8_BLOCK = (32, 128)
FLOAT8 = "float8"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16} | dict.fromkeys((FLOAT8, *BITS), torch.bfloat16)
"""Types of activations and cache, and of everything that is not packed."""
_LAYOUT = "1"  # raised whenever the same files would give different bytes
TEXT = "tied.embedding.text_embedding.weight"
_AUDIO = "tied.embedding.modality_embeddings.0.embedding.weight"
_SKIPPED = (
    "tied.head.*",  # copies of both embeddings
    f"{CODEC_PREFIX}decoder_semantic.*",  # used for training the codec, not for speaking
    f"{CODEC_PREFIX}fc1.*",
    f"{CODEC_PREFIX}semantic_model.masked_spec_embed",
    f"{CODEC_PREFIX}quantizer.quantizers.*.codebook.embed_avg",  # training state, not the codebook
    f"{CODEC_PREFIX}quantizer.quantizers.*.codebook.cluster_size",
    f"{CODEC_PREFIX}quantizer.quantizers.*.codebook.inited",
)


@dataclass(frozen=True, eq=False)
class CheckpointFiles:
    """The contents of a directory, on the device."""

    backbone: BackboneWeights
    codec: Mapping[str, Tensor]  # names below the codec prefix, dtypes as stored
    digest: str


def load_checkpoint(
    folder: Path,
    config: TTSConfig,
    device: torch.device,
    dtype: str = "float32",
    progress: Callable[[Progress], None] | None = None,
    aside: Path | None = None,
    tell: Tell = lambda line: None,
    keep: bool = False,
    kind: str = "",
    fixed: FixedMemory | None = None,
) -> CheckpointFiles:
    """Load a checkpoint directory, or map the file that `prepare_weights` stored for it.

    dtype  one of DTYPES
    aside  folder for the weights' digest if it cannot be stored beside them
    tell   gets a line if a stored file is stale, and on whether it could be made again
    keep   store the loaded weights even if no older file asks for it
    kind   of the device whose form they get; default: this one's
    fixed  the device memory where they lie, if they are to be let go

    Raises CheckpointRefused with the first tensor that is missing, unknown or misshapen; ConfigRefused.
    """
    kind = kind or device.type
    try:
        with nullcontext() if fixed is None else fixed.placing():
            backbone, codec = empty_weights(config, device, dtype, kind), _empty_codec(folder, device)
        before, prepared = stamps(open_files(folder)), _prepared(folder, config, dtype, tell, kind)
        packs = kind == "cpu" or dtype in (FLOAT8, *BITS)  # others are streamed to a GPU at the disk's speed already
        keep = packs and (keep or prepared.path.exists())
        digest = known_digest(folder, aside) if keep else None
        held = fused(backbone, config) | codec
        straight = {name: t if t.is_contiguous() else t.t() for name, t in held.items()}
        if digest is not None and (kept := prepared.open_kept(digest, straight)) is not None:
            prepared.take_over(kept, straight, fixed)
            for name, tensor in held.items():
                if not tensor.is_contiguous():
                    tensor.data = straight[name].t()
        else:
            plan: dict[str, Target | list[Target]] = {name: _target(matrix) for name, matrix in named(backbone, config)}
            plan |= {name: Target(tensor) for name, tensor in codec.items()}
            load(folder, plan, skip=_SKIPPED, progress=progress)
            if digest is not None:
                prepared.write_file(digest, before, straight)
        decoder = {name.removeprefix(CODEC_PREFIX): tensor for name, tensor in codec.items()}
        return CheckpointFiles(backbone, decoder, digest or known_digest(folder, aside))
    except CapsuleError as error:
        raise CheckpointRefused(f"{folder}: {error}") from error


def prepare_weights(folder: Path, dtype: str, aside: Path | None, tell: Tell, device: str = "cpu") -> bool:
    """Store the weights in the form of an engine's on that device, beside the voice; `tell` gets a line on the outcome.

    Returns whether such a file exists now, or would not be worth it. Raises as `load_checkpoint` does.
    """
    config = load_config(folder)
    prepared = _prepared(folder, config, dtype, tell, device)
    try:
        if not prepared.worth_it:
            return True
    except CapsuleError as error:
        raise CheckpointRefused(f"{folder}: {error}") from error
    load_checkpoint(folder, config, torch.device("cpu"), dtype, None, aside, tell, keep=True, kind=device)
    return prepared.path.exists()


def _prepared(folder: Path, config: TTSConfig, dtype: str, tell: Tell, kind: str) -> PreparedWeights:
    form = dtype if kind == "cpu" else f"gpu-{dtype}"
    return PreparedWeights(folder, form, _LAYOUT, repr(config), tell)


def load_codec_tensors(folder: Path, parts: tuple[str, ...] = ("",)) -> dict[str, Tensor]:
    """Tensors of the codec on the host, under their names below its prefix: those that begin with one of `parts`.

    Raises CheckpointRefused.
    """
    try:
        codec = _empty_codec(folder, torch.device("cpu"), parts)
        load(folder, {name: Target(tensor) for name, tensor in codec.items()}, skip=set(catalogue(folder)) - set(codec))
    except CapsuleError as error:
        raise CheckpointRefused(f"{folder}: {error}") from error
    return {name.removeprefix(CODEC_PREFIX): tensor for name, tensor in codec.items()}


def _empty_codec(folder: Path, device: torch.device, parts: tuple[str, ...] = ("",)) -> dict[str, Tensor]:
    """Uninitialised tensors under their full names, dtypes as stored; the encoding ones on the host."""
    wanted, encoding = (tuple(CODEC_PREFIX + part for part in some) for some in (parts, ENCODER))
    return {
        name: torch.empty(entry.shape, dtype=STORED[entry.dtype], device="cpu" if name.startswith(encoding) else device)
        for name, entry in catalogue(folder).items()
        if name.startswith(wanted) and not _is_skipped(name)
    }


def _target(matrix: Matrix) -> Target | list[Target]:
    if isinstance(matrix, Tensor):
        return Target(matrix)
    edge = matrix.block[0] if isinstance(matrix, Fp8Weight) else PANEL
    return packing(matrix, tuple(matrix.shape), edge, tuple(CASTABLE))


def named(w: BackboneWeights, config: TTSConfig) -> Iterator[tuple[str, Matrix]]:
    """Every backbone tensor under its published name, as a view of the (fused) weight that holds it."""
    b = config.backbone
    q, kv, inner = b.heads * b.head_dim, b.kv_heads * b.head_dim, b.intermediate
    yield TEXT, w.text
    yield _AUDIO, w.audio
    yield "body.norm.weight", w.norm
    for i, layer in enumerate(w.layers):
        at = f"body.layers.{i}"
        yield f"{at}.input_layernorm.weight", layer.input_norm
        yield f"{at}.post_attention_layernorm.weight", layer.post_norm
        yield f"{at}.self_attn.q_proj.weight", layer.qkv[:q]
        yield f"{at}.self_attn.k_proj.weight", layer.qkv[q : q + kv]
        yield f"{at}.self_attn.v_proj.weight", layer.qkv[q + kv :]
        yield f"{at}.self_attn.o_proj.weight", layer.o
        yield f"{at}.self_attn.q_norm.weight", layer.q_norm
        yield f"{at}.self_attn.k_norm.weight", layer.k_norm
        yield f"{at}.mlp.gate_proj.weight", layer.gate_up[:inner]
        yield f"{at}.mlp.up_proj.weight", layer.gate_up[inner:]
        yield f"{at}.mlp.down_proj.weight", layer.down
    if w.cursor is not None:
        yield "cursor.phone_embedding.weight", w.cursor.phones
        yield "cursor.rows_embedding.weight", w.cursor.rows
        yield "cursor.advance_head.weight", w.cursor.advance


def fused(w: BackboneWeights, config: TTSConfig) -> dict[str, Tensor]:
    """Every fused weight once, under the first published name inside it; scales beside their values."""
    first: dict[int, str] = {}
    for name, view in named(w, config):
        first.setdefault((view if isinstance(view, Tensor) else view.values).data_ptr(), name)
    cursor = () if w.cursor is None else vars(w.cursor).values()
    found: dict[str, Tensor] = {}
    for matrix in (w.text, w.audio, *(m for layer in w.layers for m in vars(layer).values()), w.norm, *cursor):
        if isinstance(matrix, Tensor):
            found[first[matrix.data_ptr()]] = matrix
        else:
            name = first[matrix.values.data_ptr()]
            found |= {name: matrix.values, f"{name}.scale": matrix.scale}
    return found


def to_checkpoint(w: BackboneWeights, config: TTSConfig, codec: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors for `save_file` from these (plain) weights; `codec` holds names below the codec prefix."""
    tensors = {name: view.detach().contiguous() for name, view in named(w, config) if isinstance(view, Tensor)}
    return tensors | {CODEC_PREFIX + name: tensor.detach().contiguous() for name, tensor in codec.items()}


def empty_weights(
    config: TTSConfig, device: torch.device, dtype: str = "float32", kind: str = ""
) -> BackboneWeights:
    """Uninitialised weights in the form that `dtype` names on a device, to be filled through `named`.

    kind   of the device whose form it is; default: this one's. Raises ConfigRefused
    """
    b, wide, kind = config.backbone, DTYPES[dtype], kind or device.type
    panels = dtype in BITS and kind != "cuda"
    _check_heights(b, dtype, panels)

    def new(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=wide, device=device)

    def matrix(rows: int, columns: int) -> Matrix:
        if dtype == FLOAT8:
            return empty_fp8(rows, columns, FP8_BLOCK, device)
        if panels:
            return empty_panels(rows, columns, FORMS[BITS[dtype]], device)
        if dtype in BITS:
            return empty_int4(rows, columns, device)
        return empty_matrix(rows, columns, wide, device)

    layers = tuple(
        BackboneLayer(
            input_norm=new(b.hidden),
            qkv=matrix((b.heads + 2 * b.kv_heads) * b.head_dim, b.hidden),
            q_norm=new(b.head_dim),
            k_norm=new(b.head_dim),
            o=matrix(b.hidden, b.heads * b.head_dim),
            post_norm=new(b.hidden),
            gate_up=matrix(2 * b.intermediate, b.hidden),
            down=matrix(b.hidden, b.intermediate),
        )
        for _ in range(b.layers)
    )
    codes = config.audio.codebooks * config.audio.vocab
    if panels:
        text: Table = empty_panels(b.text_vocab, b.hidden, FORMS[8], device)
        audio: Table = empty_panels(codes, b.hidden, FORMS[8], device)
    else:
        words = torch.device("cpu") if device.type == "cuda" else device
        text = torch.empty(b.text_vocab, b.hidden, dtype=wide, device=words)
        audio = empty_matrix(codes, b.hidden, wide, device)
    return BackboneWeights(text, audio, layers, new(b.hidden), _empty_cursor(config, wide, device))


def _empty_cursor(config: TTSConfig, wide: torch.dtype, device: torch.device) -> CursorWeights | None:
    if (c := config.cursor) is None:
        return None
    hidden = config.backbone.hidden
    return CursorWeights(
        phones=torch.empty(len(c.offsets) * config.backbone.text_vocab, hidden, dtype=wide, device=device),
        rows=torch.empty(c.max_rows, hidden, dtype=wide, device=device),
        advance=empty_matrix(c.max_advance + 1, hidden, wide, device),
    )


def _check_heights(b: BackboneConfig, dtype: str, panels: bool) -> None:
    """Rows of a fused matrix come from two or three tensors: each must end at the edge of a block or a panel."""
    block = FP8_BLOCK[0] if dtype == FLOAT8 else PANEL if panels else 1
    heights = (b.heads * b.head_dim, b.kv_heads * b.head_dim, b.intermediate)
    if any(height % block for height in heights):
        raise ConfigRefused(
            f"q, k and v, and the feed-forward block are {heights} rows high; {dtype} needs multiples of {block}. "
            "Use bfloat16."
        )


def _is_skipped(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _SKIPPED)
