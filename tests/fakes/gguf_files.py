"""Random plain decoders as GGUF files, in the layout that llama.cpp's converter writes."""

from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

from tests.fakes.llama_server import add_tokenizer

WIDTH, INNER, LAYERS, HEADS, GROUPS = 256, 512, 2, 8, 2
"""Rows of the K types are cut into blocks of 256 values."""
PLACES = {"Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
"""Where float16 scales stand in a block of a type that the package cannot write."""


def write_decoder(
    path: Path, architecture: str = "llama", kind: str = "F32", pre: str = "qwen2", size: int = 32,
    stretch: np.ndarray | None = None, finer: dict[str, str] | None = None,
) -> None:  # fmt: skip
    """Matrices of one type, norms in F32; `size` of a head. `finer`: other types, by the last part of a name."""
    random = np.random.default_rng(len(architecture) + len(kind))
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(5e4)
    writer.add_layer_norm_rms_eps(1e-5)
    vocabulary = len(add_tokenizer(writer, pre))
    if stretch is not None:
        writer.add_tensor("rope_freqs.weight", stretch.astype(np.float32))
    matrices = {"token_embd": (vocabulary, WIDTH), "output": (vocabulary, WIDTH)}
    norms = {"output_norm": WIDTH}
    for block in (f"blk.{layer}." for layer in range(LAYERS)):
        matrices |= {
            f"{block}attn_q": (HEADS * size, WIDTH), f"{block}attn_k": (GROUPS * size, WIDTH),
            f"{block}attn_v": (GROUPS * size, WIDTH), f"{block}attn_output": (WIDTH, HEADS * size),
            f"{block}ffn_gate": (INNER, WIDTH), f"{block}ffn_up": (INNER, WIDTH), f"{block}ffn_down": (WIDTH, INNER),
        }  # fmt: skip
        norms |= {f"{block}attn_norm": WIDTH, f"{block}ffn_norm": WIDTH}
        if architecture == "qwen3":
            norms |= {f"{block}attn_q_norm": size, f"{block}attn_k_norm": size}
    for name, shape in matrices.items():
        held = Type[(finer or {}).get(name.rpartition(".")[2], kind)]
        writer.add_tensor(f"{name}.weight", random_matrix(random, shape, held), raw_dtype=held)
    for name, length in norms.items():
        writer.add_tensor(f"{name}.weight", random.normal(1, 0.2, length).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def random_matrix(random: np.random.Generator, shape: tuple[int, int], kind: Type) -> np.ndarray:
    """As stored. Values are some 0.08 wide, as the package writes them, or of random bits with scales that fit."""
    if kind.name not in PLACES:
        return gguf.quantize(random.normal(0, 0.08, shape).astype(np.float32), kind)
    values, nbytes = gguf.GGML_QUANT_SIZES[kind]
    made = random.integers(0, 256, (shape[0], shape[1] // values, nbytes), dtype=np.uint8)
    scales = {"Q4_K": (3e-4, 2.25e-3), "Q5_K": (1.5e-4, 2.3e-3), "Q6_K": (4e-5,)}[kind.name]  # around zero
    for at, scale in zip(PLACES[kind.name], scales, strict=True):
        made[..., at : at + 2] = np.full((*made.shape[:2], 1), scale, np.float16).view(np.uint8)
    return made.reshape(shape[0], -1)


SMALL = np.ones((4, 4), np.float32)


def rewritten(
    path: Path, target: Path, metadata: dict[str, object], names: dict[str, str], more: dict[str, np.ndarray]
) -> None:
    """A file with other metadata, other names ("" leaves a tensor out) and further tensors."""
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(str(target), reader.fields["general.architecture"].contents())
    fields = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    for name, value in (fields | metadata).items():
        if name == "general.architecture":
            continue
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, list):
            writer.add_array(name, value)
        else:
            add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)]
            add(name, value)
    for tensor in reader.tensors:
        if new := names.get(tensor.name, tensor.name):
            writer.add_tensor(new, np.array(tensor.data), raw_dtype=tensor.tensor_type)
    for name, values in more.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
