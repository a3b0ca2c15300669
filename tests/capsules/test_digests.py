"""The digest of weights: every byte counts, it is taken once, and what was kept is believed only of untouched files."""

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from capsules import digests
from capsules.digests import NOTE, digest, known_digest, recheck
from capsules.safefile import read_header


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))


def in_shards(folder: Path, shards: dict[str, dict[str, torch.Tensor]]) -> None:
    for shard, tensors in shards.items():
        save_file(tensors, folder / shard)
    where = {name: shard for shard, tensors in shards.items() for name in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))


def flip(path: Path, at: int) -> None:
    """Change one byte in place."""
    with path.open("r+b") as file:
        file.seek(at)
        old = file.read(1)[0]
        file.seek(at)
        file.write(bytes([old ^ 1]))


@pytest.fixture
def counted(monkeypatch) -> list[int]:
    """How often every byte was read; files of any size and age count as large and settled."""
    reads: list[int] = []

    def read(source, skip=()):
        reads.append(1)
        return digest(source, skip)

    monkeypatch.setattr(digests, "digest", read)
    monkeypatch.setattr(digests, "SMALL_BYTES", 0)
    monkeypatch.setattr(digests, "SETTLED_S", -1.0)
    return reads


def test_it_sees_names_shapes_types_and_bytes_but_not_the_files(tmp_path):
    tensors = {"a": random(700, 1000), "b": random(3)}
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    save_file(tensors, one / "model.safetensors")
    in_shards(two, {"x.safetensors": {"b": tensors["b"]}, "y.safetensors": {"a": tensors["a"]}})
    assert digest(one) == digest(two)
    changes = [
        {**tensors, "c": random(1)},
        {"a": tensors["a"], "c": tensors["b"]},
        {**tensors, "b": random(3, 1)},
        {**tensors, "b": tensors["b"].view(torch.int32)},
        {**tensors, "b": tensors["b"] + 1e-6},
    ]
    seen = {digest(one)}
    for change in changes:
        save_file(change, one / "model.safetensors")
        seen.add(digest(one))
    assert len(seen) == len(changes) + 1


def test_tensors_that_nobody_loads_may_be_left_out(tmp_path, counted):
    """A digest that was kept with other tensors left out is not believed."""
    tensors = {"a": random(7), "b": random(3)}
    save_file(tensors, tmp_path / "model.safetensors")
    plain, whole = known_digest(tmp_path, skip=("draft.*",)), known_digest(tmp_path)
    assert plain == whole == known_digest(tmp_path) and len(counted) == 2
    save_file(tensors | {"draft.c": random(5)}, tmp_path / "model.safetensors")
    assert known_digest(tmp_path, skip=("draft.*",)) == plain == known_digest(tmp_path, skip=("draft.*",))
    assert recheck(tmp_path).kept == plain and not recheck(tmp_path).changed
    assert known_digest(tmp_path) not in ("", plain)


def test_one_changed_byte_anywhere_is_noticed(tmp_path, monkeypatch):
    """Each byte of each tensor in turn, with pieces so small that there are many."""
    monkeypatch.setattr(digests, "PIECE", 100)
    path = tmp_path / "model.safetensors"
    save_file({"a": random(17, 10), "b": random(7).to(torch.bfloat16), "c": torch.arange(50, dtype=torch.uint8)}, path)
    header = read_header(path)
    first = header.size - sum(entry.nbytes for entry in header.entries.values())
    whole, seen = digest(tmp_path), set()
    for at in range(first, header.size):
        flip(path, at)
        seen.add(digest(tmp_path))
        flip(path, at)
    assert len(seen) == header.size - first and whole not in seen and digest(tmp_path) == whole


def test_it_is_taken_once_and_again_after_any_write(tmp_path, counted):
    path = tmp_path / "model.safetensors"
    save_file({"a": random(1000)}, path)
    whole = known_digest(tmp_path)
    assert known_digest(tmp_path) == whole == digest(tmp_path) and len(counted) == 1
    flip(path, path.stat().st_size - 3)
    os.utime(path, (1, 1))
    changed = known_digest(tmp_path)
    assert changed == digest(tmp_path) != whole and len(counted) == 2
    os.utime(path, (1, 1))  # the bytes are the same; that they are has to be read
    assert known_digest(tmp_path) == changed and len(counted) == 3
    (tmp_path / NOTE).write_text("{}")
    assert known_digest(tmp_path) == changed and len(counted) == 4


def test_beside_weights_that_cannot_be_written_it_is_kept_elsewhere(tmp_path, counted, monkeypatch):
    models = [tmp_path / "one", tmp_path / "two"]
    for n, folder in enumerate(models):
        folder.mkdir()
        save_file({"a": random(1000) + n}, folder / "model.safetensors")
    real = digests.write_json

    def write(path, value, indent=None):
        if path.parent in models:
            raise PermissionError(13, "Permission denied")
        real(path, value, indent)

    monkeypatch.setattr(digests, "write_json", write)
    assert known_digest(models[0]) == known_digest(models[0]) and len(counted) == 2
    aside = tmp_path / "home" / "digests"
    found = [known_digest(folder, aside) for folder in models]
    assert [known_digest(folder, aside) for folder in models] == found and len(counted) == 4
    assert len(set(found)) == 2 and len(list(aside.iterdir())) == 2 and not (models[0] / NOTE).exists()


def test_what_was_written_a_moment_ago_is_not_believed_yet(tmp_path, counted, monkeypatch):
    monkeypatch.setattr(digests, "SETTLED_S", 60.0)
    save_file({"a": random(1000)}, tmp_path / "model.safetensors")
    known_digest(tmp_path)
    assert not (tmp_path / NOTE).exists()


def test_a_small_checkpoint_is_always_read_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"a": random(1000)}, path)
    whole = known_digest(tmp_path)
    flip(path, path.stat().st_size - 1)
    assert known_digest(tmp_path) != whole and [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_recheck_reads_every_byte_whatever_was_kept(tmp_path, counted):
    path = tmp_path / "model.safetensors"
    save_file({"a": random(1000)}, path)
    assert not recheck(tmp_path).changed and recheck(tmp_path).kept == ""
    whole = known_digest(tmp_path)
    assert recheck(tmp_path).kept == recheck(tmp_path).digest == whole and not recheck(tmp_path).changed
    note = json.loads((tmp_path / NOTE).read_text())
    flip(path, path.stat().st_size - 500)
    note["files"] = digests.stamps([read_header(path)])  # as if no time had changed
    (tmp_path / NOTE).write_text(json.dumps(note))
    assert known_digest(tmp_path) == whole
    found = recheck(tmp_path)
    assert found.changed and found.kept == whole and found.nbytes == path.stat().st_size
