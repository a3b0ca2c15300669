"""llama.cpp's own server in a process of its own, on a small random model in the tokens of the shipped one.

python -m tests.fakes.llama_server FOLDER PORT     prints its address and serves until it is killed
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

TINY = Path(__file__).parents[2] / "llm_engine" / "tiny"
WIDTH, LAYERS, HEADS, INNER = 64, 2, 4, 128


def write_model(path: Path) -> None:
    """A `llama` of two layers. What it says means nothing, and it goes on until its context is full: one number that
    all tokens share keeps those with a meaning of their own (the end, a call) out of reach."""
    import gguf

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(16384)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    normal = np.array(add_tokenizer(writer))
    vocabulary = len(normal)
    random = np.random.default_rng(1)
    shapes = {"token_embd": (vocabulary, WIDTH), "output": (vocabulary, WIDTH)}
    for layer in range(LAYERS):
        shapes |= {f"blk.{layer}.attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
        shapes |= {f"blk.{layer}.ffn_{name}": (INNER, WIDTH) for name in ("gate", "up")}
        shapes[f"blk.{layer}.ffn_down"] = (WIDTH, INNER)
    tensors = {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    tensors["token_embd"][:, 0] = 1.0
    tensors["output"][:, 0] = np.where(normal, 0.0, -10.0)
    for name, tensor in tensors.items():
        writer.add_tensor(f"{name}.weight", tensor)
    for name in ("output_norm", *(f"blk.{n}.{norm}" for n in range(LAYERS) for norm in ("attn_norm", "ffn_norm"))):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer, pre: str = "qwen2") -> list[bool]:
    """The shipped model's tokens and chat template; returns for each token whether it is one of words."""
    from gguf import TokenType as kinds

    file = json.loads((TINY / "tokenizer.json").read_text("utf-8"))
    ids = {token["content"]: token["id"] for token in file["added_tokens"]}
    words = file["model"]["vocab"] | ids
    tokens = [f"[{i}]" for i in range(max(words.values()) + 1)]
    types = [kinds.UNUSED] * len(tokens)
    for word, index in words.items():
        tokens[index], types[index] = word, kinds.CONTROL if word in ids else kinds.NORMAL
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in file["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(ids["<|im_end|>"])
    writer.add_chat_template((TINY / "chat_template.jinja").read_text("utf-8"))
    return [kind == kinds.NORMAL for kind in types]


def main(folder: Path, port: int) -> None:
    import xllamacpp

    model = folder / "random.gguf"
    if not model.exists():
        write_model(model)
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_ctx, params.n_parallel, params.warmup = 16384, 1, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames, params.port = ["127.0.0.1"], port
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
