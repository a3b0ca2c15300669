"""The loader: every byte arrives, nothing is held twice, and whatever does not fit is refused by name."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save, save_file
from torch import Tensor

from capsules.errors import CapsuleDamaged
from capsules.feed import FeedPiece, HostFeed, StagedFeed, split
from capsules.safefile import MAX_HEADER_BYTES, parse_header, read_header
from capsules.weights import Progress, Target, WeightsError, catalogue, load

CPU = torch.device("cpu")
FEEDS = {
    "host": lambda: HostFeed(readers=3, piece_bytes=1000),
    "staged": lambda: StagedFeed(CPU, readers=3, block_bytes=4096, piece_bytes=1024),
    "default": lambda: None,
}


@pytest.fixture(params=FEEDS)
def feed(request):
    return FEEDS[request.param]()


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape) + 1)).to(dtype)


def indexed(folder: Path, shards: dict[str, dict[str, Tensor]]) -> Path:
    for shard, tensors in shards.items():
        save_file(tensors, folder / shard)
    where = {name: shard for shard, tensors in shards.items() for name in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    return folder


@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("wanted", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (63, 65), (1000, 7), (3, 1, 5, 4)], ids=str)
def test_floats_are_converted_piece_by_piece(tmp_path, feed, stored, wanted, shape):
    tensor = random(*shape, dtype=stored)
    save_file({"w": tensor}, tmp_path / "model.safetensors")
    dest = torch.empty(shape, dtype=wanted)
    load(tmp_path, {"w": Target(dest)}, feed=feed)
    assert torch.equal(dest, tensor.to(wanted))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int64, torch.bool, torch.float8_e4m3fn], ids=str)
def test_other_types_travel_as_they_are(tmp_path, feed, dtype):
    tensor = torch.arange(5000).remainder(120).to(dtype).reshape(50, 100)
    save_file({"w": tensor}, tmp_path / "model.safetensors")
    dest = torch.zeros(50, 100, dtype=dtype)
    load(tmp_path, {"w": Target(dest)}, feed=feed)
    assert torch.equal(dest.view(torch.uint8), tensor.view(torch.uint8))


def test_shards_fuse_into_slices_and_one_tensor_splits_into_several(tmp_path, feed):
    gate, up, qkv = random(64, 33), random(64, 33, dtype=torch.bfloat16), random(96, 40)
    indexed(tmp_path, {"a.safetensors": {"gate": gate, "qkv": qkv}, "b.safetensors": {"up": up}})
    fused, columns = torch.empty(128, 33), torch.empty(40, 200)
    q, kv = torch.empty(64, 40), torch.empty(31, 40)
    plan = {
        "gate": Target(fused[:64]),
        "up": Target(fused[64:]),
        "qkv": (
            Target(q, rows=slice(0, 64)),
            Target(kv, rows=slice(65, 96)),
            Target(columns[:, 100:196].t()),
        ),
    }
    loaded = load(tmp_path, plan, feed=feed)
    assert torch.equal(fused, torch.cat([gate, up.float()]))
    assert torch.equal(q, qkv[:64]) and torch.equal(kv, qkv[65:])
    assert torch.equal(columns[:, 100:196], qkv.t())
    assert columns[:, :100].isnan().all() and columns[:, 196:].isnan().all()
    assert loaded.tensors == 3
    assert loaded.nbytes == gate.nbytes + up.nbytes + qkv.nbytes + q.nbytes + kv.nbytes


def test_a_row_wider_than_a_piece_of_a_strided_destination(tmp_path, feed):
    tensor = random(2, 1, 3000)
    save_file({"w": tensor}, tmp_path / "model.safetensors")
    wide = torch.empty(2, 4, 6000)
    load(tmp_path, {"w": Target(wide[:, 1:2, ::2])}, feed=feed)
    assert torch.equal(wide[:, 1:2, ::2], tensor)


def test_stored_shape_and_transform(tmp_path):
    conv, decay = random(24, 1, 4), random(16)
    save_file({"conv": conv, "decay": decay}, tmp_path / "model.safetensors")
    a, b = torch.empty(24, 4), torch.empty(16)
    load(tmp_path, {"conv": Target(a, shape=(24, 1, 4)), "decay": Target(b, transform=lambda x: -x.exp())})
    assert torch.equal(a, conv[:, 0]) and torch.equal(b, -decay.exp())


def test_patterns_are_skipped_and_reported(tmp_path):
    save_file({"w": random(3), "visual.a": random(4), "visual.b": random(5)}, tmp_path / "x.safetensors")
    loaded = load(tmp_path, {"w": Target(torch.empty(3))}, skip=["visual.*"])
    assert set(loaded.skipped) == {"visual.a", "visual.b"}
    assert loaded.nbytes == 12


def test_empty_tensor(tmp_path, feed):
    save_file({"w": torch.zeros(0, 4)}, tmp_path / "model.safetensors")
    assert load(tmp_path, {"w": Target(torch.empty(0, 4))}, feed=feed).nbytes == 0


def test_progress_ends_at_the_total_and_may_stop_the_load(tmp_path, feed):
    save_file({"a": random(100, 100), "b": random(7)}, tmp_path / "model.safetensors")
    seen: list[Progress] = []
    plan = {"a": Target(torch.empty(100, 100)), "b": Target(torch.empty(7))}
    load(tmp_path, plan, progress=seen.append, feed=feed)
    assert [p.done_bytes for p in seen] == sorted(p.done_bytes for p in seen)
    assert seen[-1] == Progress(40028, 40028)
    assert str(seen[-1]) == "100% of 0.00 GB"

    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(tmp_path, plan, progress=stop, feed=feed)


REFUSED = {
    "unknown": ({}, r"nothing in this model takes w"),
    "missing": ({"w": (3, 4), "norm": (4,)}, r"lacks norm"),
    "shape": ({"w": (4, 3)}, r"w: shape \[3, 4\] in the checkpoint, \[4, 3\] expected"),
    "size": ({"w": (3, 5)}, r"w: shape"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_misfits_are_refused_by_name_before_anything_is_written(tmp_path, case):
    wanted, message = REFUSED[case]
    save_file({"w": random(3, 4)}, tmp_path / "model.safetensors")
    plan = {name: Target(torch.full(shape, 7.0)) for name, shape in wanted.items()}
    with pytest.raises(WeightsError, match=message):
        load(tmp_path, plan)
    assert all((target.tensor == 7.0).all() for target in plan.values())


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Target(torch.zeros(4, 4, dtype=torch.int32)), "w: dtype F32"),
        (Target(torch.zeros(4, 4), accept=(torch.bfloat16,)), "w: dtype F32 in the checkpoint; bfloat16"),
        (Target(torch.zeros(4, 4), transform=lambda x: x, accept=(torch.bfloat16,)), "w: dtype F32"),
        (Target(torch.zeros(16), shape=(2, 8)), r"w: shape \[4, 4\]"),
        (Target(torch.zeros(15), shape=(4, 4)), r"w: shape \[4, 4\]"),
        (Target(torch.zeros(4, 4).t()[:, ::2], shape=(4, 4)), "w: shape"),
        (Target(torch.zeros(32)[::2], shape=(4, 4)), "w: a target that changes the shape"),
        (Target(torch.zeros(2, 4), rows=slice(3, 5)), r"w: rows 3\.\.5 are not inside"),
        (Target(torch.zeros(2, 4), rows=slice(0, 4, 2)), "w: rows"),
        (Target(torch.zeros(2, 4), rows=slice(1, 4)), r"w: shape \[3, 4\]"),
        (Target(torch.zeros(2, 4), transform=lambda x: x[:3]), "w: its transform made"),
    ],
)
def test_a_target_that_does_not_fit(tmp_path, target, message):
    save_file({"w": random(4, 4)}, tmp_path / "model.safetensors")
    with pytest.raises(WeightsError, match=message):
        load(tmp_path, {"w": target})


def test_fp8_is_upcast_only_on_request(tmp_path, feed):
    tensor = random(40, 40).to(torch.float8_e4m3fn)
    save_file({"w": tensor}, tmp_path / "model.safetensors")
    dest = torch.zeros(40, 40)
    with pytest.raises(WeightsError, match="F8_E4M3"):
        load(tmp_path, {"w": Target(dest)})
    load(tmp_path, {"w": Target(dest, accept=(torch.float8_e4m3fn,))}, feed=feed)
    assert torch.equal(dest, tensor.float())


def test_two_tensors_in_one_place(tmp_path):
    save_file({"a": random(4), "b": random(4)}, tmp_path / "model.safetensors")
    both = torch.zeros(6)
    with pytest.raises(WeightsError, match="a and b are mapped to the same memory"):
        load(tmp_path, {"a": Target(both[:4]), "b": Target(both[2:])})


def test_layouts_that_are_not_understood(tmp_path):
    with pytest.raises(WeightsError, match="no such file"):
        catalogue(tmp_path / "absent")
    with pytest.raises(WeightsError, match="found none"):
        catalogue(tmp_path)
    for name in "ab":
        save_file({"w": random(2)}, tmp_path / f"{name}.safetensors")
    with pytest.raises(WeightsError, match=r"found a\.safetensors, b\.safetensors"):
        catalogue(tmp_path)
    with pytest.raises(WeightsError, match=r"'w' is in a\.safetensors and in b\.safetensors"):
        catalogue([tmp_path / "a.safetensors", tmp_path / "b.safetensors"])
    assert set(catalogue(str(tmp_path / "a.safetensors"))) == {"w"}


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("[" * 100_000, "not an index"),
        ("{}", "not an index"),
        ('{"weight_map": [1]}', "not an index"),
        ('{"weight_map": {"w": "../a.safetensors"}}', "not a file name"),
        ('{"weight_map": {"w": "/etc/passwd"}}', "not a file name"),
        ('{"weight_map": {"w": ""}}', "not a file name"),
        ('{"weight_map": {"w": "c.safetensors"}}', r"lists c\.safetensors, not there"),
        ('{"weight_map": {"v": "a.safetensors"}}', "v not in the shard"),
    ],
)
def test_a_bad_index(tmp_path, index, message):
    save_file({"w": random(2)}, tmp_path / "a.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(WeightsError, match=message):
        catalogue(tmp_path)


def test_a_file_cut_while_it_is_read(tmp_path, feed, monkeypatch):
    path = tmp_path / "model.safetensors"
    save_file({"w": random(100, 100)}, path)
    read = os.preadv

    def cut(file: int, buffers: list[memoryview], offset: int) -> int:
        if offset > 10_000:  # in the midst of the load, whatever reader comes first
            os.truncate(path, 20_000)
        return read(file, [buffers[0][:1000]], offset)  # a read may be short

    monkeypatch.setattr(os, "preadv", cut)
    plan = {"w": Target(torch.empty(100, 100))}
    with pytest.raises(CapsuleDamaged, match="ended at byte 20000 while"):
        load(path, plan, feed=feed)


def test_split_covers_every_byte_once():
    dest = torch.arange(6 * 5 * 7).reshape(6, 5, 7).to(torch.int16)
    for view in (dest, dest.transpose(0, 2), dest[:, ::2], dest[:1, :1, ::3], dest[0, 0, 0]):
        whole = FeedPiece(0, 10, view.numel() * 2, torch.int16, view)
        parts = list(split(whole, 8))
        assert all(p.nbytes <= 8 and p.nbytes == p.dest.numel() * 2 for p in parts)
        assert [p.offset for p in parts] == [10 + sum(q.nbytes for q in parts[:i]) for i in range(len(parts))]
        assert torch.equal(torch.cat([p.dest.reshape(-1) for p in parts]), view.reshape(-1))


@pytest.mark.slow
def test_peak_memory_is_the_weights_and_one_scratch_block(tmp_path):
    """A second copy of the 96 MB would show: the child prints by how much its peak grew while loading."""
    save_file({f"w{i}": torch.zeros(4 << 20, dtype=torch.bfloat16) for i in range(12)}, tmp_path / "model.safetensors")
    code = """
import resource, sys, torch
from capsules.weights import Target, load
plan = {f"w{i}": Target(torch.full((4 << 20,), 1.0, dtype=torch.bfloat16)) for i in range(12)}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
load(sys.argv[1], plan)
assert not any(t.tensor.any() for t in plan.values())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    ran = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 30 << 10  # KiB


def corrupt(data: bytes, edits: list[tuple[int, int]], cut: int) -> bytes:
    copy = bytearray(data[: len(data) - cut])
    for at, value in edits:
        if copy:
            copy[at % len(copy)] = value
    return bytes(copy)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    edits=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6),
    cut=st.sampled_from([0, 0, 0, 1, 8, 40]),
)
def test_fuzzed_headers_are_read_or_refused(tmp_path_factory, edits, cut):
    data = corrupt(save({"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(5)}), edits, cut)
    path = tmp_path_factory.getbasetemp() / "fuzzed.safetensors"
    path.write_bytes(data)
    try:
        file = read_header(path)
    except CapsuleDamaged:
        return
    assert sum(entry.nbytes for entry in file.entries.values()) <= len(data)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    header=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("F32"),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["dtype", "shape", "data_offsets", "__metadata__", "w"]), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_headers_of_any_json_are_read_or_refused(tmp_path_factory, header):
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    raw = json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(24))
    try:
        assert not read_header(path).entries
    except CapsuleDamaged:
        return


class Claims:
    """A file of a given size that fails the test if anybody reads more than its header may hold."""

    def __init__(self, head: bytes, size: int) -> None:
        self._head, self._size, self._at = head, size, 0

    def seek(self, to: int, whence: int = 0) -> int:
        self._at = self._size if whence else to
        return self._at

    def read(self, count: int) -> bytes:
        assert count <= MAX_HEADER_BYTES
        part = self._head[self._at : self._at + count]
        self._at += len(part)
        return part


@pytest.mark.parametrize("length", [MAX_HEADER_BYTES + 1, 1 << 40, (1 << 64) - 1])
def test_a_huge_header_length_allocates_nothing(length):
    with pytest.raises(CapsuleDamaged, match="claims a header"):
        parse_header(Claims(length.to_bytes(8, "little"), 1 << 62), Path("huge.safetensors"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ('{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{}}', "occurs twice"),
        ('{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}}', "do not lie inside"),
        ('{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}}', "needs 4 bytes"),
        ('{"w":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,8]}}', "shape is not"),
        ('{"w":{"dtype":"F32","shape":[%s],"data_offsets":[0,8]}}' % ("9" * 5000), "not JSON"),
        ('{"w":{"dtype":"F32","shape":[true,2],"data_offsets":[0,8]}}', "shape is not"),
        ('{"w":{"dtype":"F4","shape":[2],"data_offsets":[0,8]}}', "dtype 'F4'"),
        ('{"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', "begins at byte"),
        ('{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', "the file at"),
        ('{"__metadata__":{"a":1}}', "not a table of strings"),
        ("[" * 200_000, "not JSON"),
        ("\\ud800", "not JSON"),
    ],
)
def test_headers_that_contradict_themselves(tmp_path, header, message):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(8))
    with pytest.raises(CapsuleDamaged, match=message):
        read_header(path)


@pytest.mark.gpu
def test_a_device_receives_what_the_host_would(tmp_path):
    tensors = {f"w{i}": random(257, 300 + i, dtype=torch.bfloat16) for i in range(40)}
    save_file(tensors, tmp_path / "model.safetensors")
    plan = {name: Target(torch.zeros(t.shape, device="cuda")) for name, t in tensors.items()}
    load(tmp_path, plan, feed=StagedFeed(torch.device("cuda"), block_bytes=1 << 20, piece_bytes=1 << 16))
    assert all(torch.equal(target.tensor.cpu(), tensors[name].float()) for name, target in plan.items())
