"""The container: what the package `gguf` writes is read back, and no damage passes unseen or ends in another error."""

import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_engine.errors import CheckpointError
from llm_engine.gguf.container import is_gguf, open_gguf


def claim(columns: int, kind: int) -> bytes:
    """What the file says of one of its tensors."""
    return b"packed" + struct.pack("<IQQI", 2, columns, 4, kind)


CLAIM = claim(64, 8)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 3)
    writer.add_float32("llama.eps", 0.5)
    writer.add_bool("tokenizer.ggml.add_bos_token", True)
    writer.add_int64("long", -(1 << 40))
    writer.add_array("tokenizer.ggml.tokens", ["a", "Ġb", "é"])
    writer.add_array("tokenizer.ggml.scores", [0.5, -1.0])
    writer.add_array("tokenizer.ggml.token_type", [1, 3, 1])
    random = np.random.default_rng(3)
    writer.add_tensor("plain", random.standard_normal((3, 5)).astype(np.float32))
    wide = random.standard_normal((4, 64)).astype(np.float32)
    q8 = gguf.quantize(wide, gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("packed", q8, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_metadata_and_tensors_come_back(written: Path) -> None:
    file = open_gguf(written)
    theirs = gguf.GGUFReader(written)
    for name, field in theirs.fields.items():
        if not name.startswith("GGUF."):
            assert file.metadata[name] == field.contents()
    assert set(file.tensors) == {"plain", "packed"}
    assert file.tensors["packed"].shape == (4, 64)
    for tensor in theirs.tensors:
        assert torch.equal(
            file.raw_bytes(tensor.name).flatten(), torch.from_numpy(np.array(tensor.data).view(np.uint8)).flatten()
        )
    expected = torch.from_numpy(gguf.dequantize(np.array(theirs.tensors[1].data), gguf.GGMLQuantizationType.Q8_0))
    assert torch.equal(file.rows("packed"), expected)
    assert torch.equal(file.rows("packed", slice(1, 3)), expected[1:3])
    assert torch.equal(file.rows("packed", torch.tensor([3, 0])), expected[[3, 0]])


def test_a_file_cut_at_any_byte_is_refused(written: Path, tmp_path: Path) -> None:
    whole = written.read_bytes()
    cut = tmp_path / "cut.gguf"
    for length in range(len(whole) - 32):  # the writer pads the last tensor
        cut.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"cut\.gguf"):
            open_gguf(cut)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_changed_bytes_raise_nothing_else(
    written: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(written.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    damaged = tmp_path_factory.mktemp("damaged") / "damaged.gguf"
    damaged.write_bytes(whole)
    try:
        file = open_gguf(damaged)
    except CheckpointError as error:
        assert "damaged.gguf" in str(error)
    else:
        for name in file.tensors:
            file.rows(name)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: b"GGML" + b[4:], "does not begin with GGUF"),
        (lambda b: b[:4] + struct.pack("<I", 1) + b[8:], "version 1; versions 2 and 3"),
        (lambda b: b[:4] + struct.pack(">I", 3) + b[8:], "big-endian"),
        (lambda b: b[:8] + struct.pack("<Q", 1 << 60) + b[16:], "claims 1152921504606846976 tensors"),
        (lambda b: b[:16] + struct.pack("<Q", 1 << 60) + b[24:], "claims 1152921504606846976 metadata entries"),
        (lambda b: b.replace(CLAIM, claim(64, 11)),
         "'packed' is stored as Q3_K, which is not read"),
        (lambda b: b.replace(CLAIM, claim(64, 99)),
         "stored as type 99"),
        (lambda b: b.replace(CLAIM, claim(40, 8)),
         "cannot be cut into blocks of 32"),
        (lambda b: b.replace(struct.pack("<Q", 6) + b"packed", struct.pack("<Q", 5) + b"plain"), "damaged"),
        (lambda b: b[:10], "too few"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(written: Path, tmp_path: Path, change: Callable[[bytes], bytes], said: str) -> None:
    path = tmp_path / "wrong.gguf"
    path.write_bytes(change(written.read_bytes()))
    with pytest.raises(CheckpointError, match=said):
        open_gguf(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        open_gguf(tmp_path / "absent.gguf")
    assert not is_gguf(tmp_path)
    (tmp_path / "sha256-00").write_bytes(b"GGUF....")
    assert is_gguf(tmp_path / "sha256-00")
