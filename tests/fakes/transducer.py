"""A streaming transducer of a few kilobytes, written where it is wanted: icefall's LSTM layout, weights made up.

Loud frames become tokens, quiet ones none, so silence is silent and words follow the sound. Which token it is depends
on random weights over the sound, the state carried from chunk to chunk, and the tokens before.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WINDOW, CHUNK = 9, 4
"""Feature frames of 10 ms that a step sees, and those it is done with: one step of 40 ms, 50 ms of look-ahead."""
MELS, WIDTH = 80, 24
WORDS = ("the", "of", "and", "to", "in", "was", "it", "age", "best", "worst", "time", "wise", "fool", "light", "dark")
ENDS = ("s", "ing", "ed", "er", "ly", "'s", "n", "o")
TOKENS = ("<blk>", "<sos/eos>", "<unk>", *(f"▁{word}" for word in WORDS), *ENDS)
LOUD = -9.0
"""Mean of the log mel energies above which a frame is speech; silence has -15.9."""


def write_transducer(folder: Path, large: bool = False, terms: bool = False, seed: int = 0) -> Path:
    """large: in capitals; terms: with `bpe.vocab`, so that words can be expected."""
    tokens = [token.upper() if large and not token.startswith("<") else token for token in TOKENS]
    folder.mkdir(parents=True, exist_ok=True)
    lines = (f"{token} {number}\n" for number, token in enumerate(tokens))
    (folder / "tokens.txt").write_text("".join(lines), encoding="utf-8")
    if terms:
        letters = sorted({c for token in tokens[3:] for c in token})
        pieces = "".join(f"{piece}\t{-number}\n" for number, piece in enumerate((*tokens, *letters)))
        (folder / "bpe.vocab").write_text(pieces, encoding="utf-8")
    rng = np.random.default_rng(seed)
    _encoder(folder, rng)
    _decoder(folder, rng)
    _joiner(folder, rng)
    return folder


def _encoder(folder: Path, rng: np.random.Generator) -> None:
    """x [N, T, 80], h and c [1, N, W] -> [N, 1, W + 1], the last column how loud it is, and the next h and c."""
    weights = {
        "look": rng.normal(0, 0.3, (MELS, WIDTH)),
        "keep": rng.normal(0, 0.3, (WIDTH, WIDTH)),
        "quiet": np.array(-LOUD),
        "time": np.array([1], np.int64),
        "mels": np.array([2], np.int64),
    }
    nodes = [
        helper.make_node("ReduceMean", ["x", "time"], ["mean"], keepdims=1),
        helper.make_node("ReduceMean", ["mean", "mels"], ["level"], keepdims=1),
        helper.make_node("Sub", ["mean", "level"], ["shape"]),
        helper.make_node("MatMul", ["shape", "look"], ["looked"]),
        helper.make_node("Transpose", ["h"], ["state"], perm=[1, 0, 2]),
        helper.make_node("MatMul", ["state", "keep"], ["kept"]),
        helper.make_node("Add", ["looked", "kept"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["heard"]),
        helper.make_node("Add", ["level", "quiet"], ["loud"]),
        helper.make_node("Concat", ["heard", "loud"], ["encoder_out"], axis=2),
        helper.make_node("Transpose", ["heard"], ["next_h"], perm=[1, 0, 2]),
        helper.make_node("Identity", ["c"], ["next_c"]),
    ]
    state = [1, "N", WIDTH]
    _save(
        folder / "encoder.onnx",
        nodes,
        {"x": ["N", WINDOW, MELS], "h": state, "c": state},
        {"encoder_out": ["N", 1, WIDTH + 1], "next_h": state, "next_c": state},
        weights,
        model_type="lstm",
        version="1",
        num_encoder_layers="1",
        T=str(WINDOW),
        decode_chunk_len=str(CHUNK),
        rnn_hidden_size=str(WIDTH),
        d_model=str(WIDTH),
    )


def _decoder(folder: Path, rng: np.random.Generator) -> None:
    """y [N, 2] tokens -> [N, W + 1]."""
    table = np.pad(rng.normal(0, 0.5, (len(TOKENS), WIDTH)), ((0, 0), (0, 1)))
    weights = {"table": table, "tokens": np.array([1], np.int64)}
    nodes = [
        helper.make_node("Gather", ["table", "y"], ["found"]),
        helper.make_node("ReduceMean", ["found", "tokens"], ["decoder_out"], keepdims=0),
    ]
    shapes = {"vocab_size": str(len(TOKENS)), "context_size": "2"}
    outputs = {"decoder_out": ["N", WIDTH + 1]}
    _save(folder / "decoder.onnx", nodes, {"y": ["N", 2]}, outputs, weights, whole=("y",), **shapes)


def _joiner(folder: Path, rng: np.random.Generator) -> None:
    """Both [N, W + 1] -> logits [N, V]; loudness counts against the blank."""
    out = rng.normal(0, 1.0, (WIDTH + 1, len(TOKENS)))
    out[-1] = 0.0
    out[-1, 0] = -3.0
    bias = np.zeros(len(TOKENS))
    bias[1:3] = -1e4
    nodes = [
        helper.make_node("Add", ["encoder_out", "decoder_out"], ["sum"]),
        helper.make_node("MatMul", ["sum", "out"], ["joined"]),
        helper.make_node("Add", ["joined", "bias"], ["logit"]),
    ]
    both = ["N", WIDTH + 1]
    inputs = {"encoder_out": both, "decoder_out": both}
    weights = {"out": out, "bias": bias}
    _save(folder / "joiner.onnx", nodes, inputs, {"logit": ["N", len(TOKENS)]}, weights, joiner_dim=str(WIDTH + 1))


def _save(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[int | str]],
    outputs: dict[str, list[int | str]],
    weights: dict[str, np.ndarray],
    whole: tuple[str, ...] = (),
    **facts: str,
) -> None:
    """whole: inputs that are whole numbers; facts: what the library wants to be told."""
    graph = helper.make_graph(
        nodes,
        path.stem,
        [
            helper.make_tensor_value_info(name, TensorProto.INT64 if name in whole else TensorProto.FLOAT, shape)
            for name, shape in inputs.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [
            numpy_helper.from_array(np.asarray(w, np.int64 if w.dtype == np.int64 else np.float32), name)
            for name, w in weights.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    helper.set_model_props(model, facts)
    onnx.checker.check_model(model)
    onnx.save(model, path)
