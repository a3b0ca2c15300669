"""Capsules on disk: complete or absent whatever happens to the writer, refused with a sentence when anything is off."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from capsules.capsule import Capsule, Fingerprint
from capsules.disk import About, CapsuleFolder, CapsuleNotSaved, saved_bytes
from capsules.durable import sweep, write_durably, write_json, write_text
from capsules.errors import CapsuleDamaged, CapsuleMismatch
from capsules.safefile import read_header

HERE = Fingerprint((("code", "toy/1"), ("layout", "a f32; b i64"), ("weights", "ab12")))


def capsule(seed: int = 0, label: str = "ada: greeting") -> Capsule:
    noise = torch.Generator().manual_seed(seed)
    tensors = {
        "toy.flag": torch.tensor([True, False, True]),
        "toy.kv": torch.randn(2, 33, 5, generator=noise).bfloat16(),
        "toy.memory": torch.randn(7, 9, generator=noise),
        "toy.step": torch.tensor([3], dtype=torch.int64),
        "toy.scalar": torch.tensor(2.5),
        "toy.none": torch.zeros(2, 0, 5),
    }
    return Capsule(label, "toy", 33, HERE, tuple(range(33)), {"mood": "ü", "n": [1, None]}, tensors)


def same(one: Capsule, two: Capsule) -> bool:
    return (
        (one.label, one.scope, one.position, one.fingerprint, one.tokens, one.host)
        == (two.label, two.scope, two.position, two.fingerprint, two.tokens, two.host)
        and set(one.tensors) == set(two.tensors)
        and all(torch.equal(t, two.tensors[n]) and t.dtype == two.tensors[n].dtype for n, t in one.tensors.items())
    )


@pytest.fixture
def folder(tmp_path) -> CapsuleFolder:
    return CapsuleFolder(tmp_path / "capsules")


def test_round_trip(folder):
    assert folder.save("ada", capsule(), {"name": "ada"}) == saved_bytes(capsule(), {"name": "ada"})
    assert (folder.path / "ada.safetensors").stat().st_size == saved_bytes(capsule(), {"name": "ada"})
    assert same(folder.load("ada", HERE), capsule())
    assert folder.keys() == ("ada",) and "ada" in folder and "bea" not in folder
    folder.touch("ada", 1234.5)
    size = saved_bytes(capsule(), {"name": "ada"})
    assert folder.about("ada") == About(
        "ada", "ada: greeting", "toy", 33, HERE, tuple(range(33)), {"mood": "ü", "n": [1, None]}, {"name": "ada"}, size,
        1234.5,
    )  # fmt: skip
    folder.save("ada", capsule(1))
    assert same(folder.load("ada"), capsule(1))
    folder.delete_file("ada")
    folder.delete_file("ada")
    assert folder.keys() == ()


def test_other_readers_can_open_it_and_tensors_lie_aligned(folder):
    folder.save("ada", capsule())
    path = folder.path / "ada.safetensors"
    loaded = load_file(path)
    assert all(torch.equal(loaded[name], tensor) for name, tensor in capsule().tensors.items())
    assert all(e.offset % capsule().tensors[n].element_size() == 0 for n, e in read_header(path).entries.items())


def test_another_fingerprint_is_refused_by_name(folder):
    folder.save("ada", capsule())
    other = Fingerprint((("code", "toy/1"), ("layout", "a f32; b i32"), ("weights", "ab12")))
    with pytest.raises(CapsuleMismatch, match=r"layout is \[b i32\] here and \[b i64\] there.*33 tokens"):
        folder.load("ada", other)


@pytest.mark.slow
def test_every_flipped_bit_is_found(folder):
    folder.save("ada", capsule())
    path = folder.path / "ada.safetensors"
    good = path.read_bytes()
    harmless = 0
    for at in range(0, len(good), 3):
        bad = bytearray(good)
        bad[at] ^= 1 << (at % 8)
        path.write_bytes(bad)
        try:
            assert same(folder.load("ada"), capsule())  # only if nothing that matters has changed
            harmless += 1
        except CapsuleDamaged as error:
            assert "ada.safetensors" in str(error)
    assert harmless < 8  # the padding after the header


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.6, 0.99, 0.9999])
def test_a_truncated_file_is_refused(folder, share):
    folder.save("ada", capsule())
    path = folder.path / "ada.safetensors"
    os.truncate(path, int(path.stat().st_size * share))
    for read in (folder.load, folder.about):
        with pytest.raises(CapsuleDamaged, match=r"ada\.safetensors"):
            read("ada")


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    about=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["format", "label", "scope", "position", "fingerprint", "tokens", "host", "notes"]),
                inner,
            )
        ),
        max_leaves=20,
    )
)
def test_descriptions_of_any_json_are_refused_not_believed(tmp_path_factory, about):
    folder = CapsuleFolder(tmp_path_factory.getbasetemp() / "any")
    if isinstance(about, dict):
        about["format"] = "capsule/1"
    raw = json.dumps({"__metadata__": {"about": json.dumps(about), "checksum": "0" * 64}}).encode()
    (folder.path / "x.safetensors").write_bytes(len(raw).to_bytes(8, "little") + raw)
    with pytest.raises(CapsuleDamaged):
        folder.load("x")


@pytest.mark.parametrize("key", ["", ".", "..", "../x", "a/b", ".hidden", "a" * 101, "a\0"])
def test_keys_that_are_no_file_names(folder, key):
    with pytest.raises(ValueError, match="is no key"):
        folder.save(key, capsule())


def test_a_missing_file(folder):
    with pytest.raises(FileNotFoundError):
        folder.load("absent")


@pytest.mark.parametrize("room", [0, 1, 500, 1000, 1500])
@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_full_disk_changes_nothing(folder, monkeypatch, room, problem):
    folder.save("ada", capsule())
    real, left = os.write, room

    def write(file: int, chunk: memoryview) -> int:
        nonlocal left
        if left == 0:
            raise OSError(problem, os.strerror(problem))
        count = real(file, chunk[:left])
        left -= count
        return count

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        for key in ("ada", "bea"):
            with pytest.raises(CapsuleNotSaved, match=f"was not saved in .*{os.strerror(problem)}"):
                folder.save(key, capsule(1))
    assert folder.keys() == ("ada",) and same(folder.load("ada"), capsule())
    assert len(list(folder.path.iterdir())) == 1
    folder.save("ada", capsule(1))
    assert same(folder.load("ada"), capsule(1))


@pytest.mark.slow
def test_a_real_size_limit_is_reported_too(tmp_path):
    """The kernel refuses the bytes, not a fake: a child with a file size limit below the capsule's."""
    code = """
import resource, signal, sys
from pathlib import Path
import torch
from capsules.capsule import Capsule, Fingerprint
from capsules.disk import CapsuleFolder, CapsuleNotSaved
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = CapsuleFolder(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    folder.save("big", Capsule("big", "toy", 1, Fingerprint(()), (), {}, {"w": torch.zeros(100_000)}))
except CapsuleNotSaved as error:
    print(error)
print(list(folder.path.iterdir()))
"""
    ran = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert "'big' (0.4 MB) was not saved" in ran.stdout and "File too large" in ran.stdout
    assert ran.stdout.endswith("[]\n")


def test_the_order_of_system_calls_is_write_sync_rename_sync(folder, monkeypatch):
    """A kill cannot show a missing fsync, only the order of calls can."""
    calls: list[str] = []
    for name in ("write", "fsync", "rename"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (calls.append(name), real(*args))[1])
    folder.save("ada", capsule())
    assert calls[-4:] == ["write", "fsync", "rename", "fsync"]
    assert set(calls[:-3]) == {"write"}


def test_facts_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    place = tmp_path / "talk.json"
    said = ["naïve", 1, None, "half a pair \ud800"]
    write_json(place, {"said": said})
    assert json.loads(place.read_text("utf-8")) == {"said": said} and place.stat().st_mode & 0o077 == 0
    with pytest.raises(TypeError):
        write_json(place, {"x": object()})
    with pytest.raises(ValueError, match="surrogates"):
        write_text(place, said[3])
    monkeypatch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        write_text(place, "something else")
    assert json.loads(place.read_text("utf-8")) == {"said": said}
    assert [file.name for file in tmp_path.iterdir()] == ["talk.json"]
    monkeypatch.undo()
    write_json(place, [1], indent=1)
    assert place.read_text("utf-8") == "[\n 1\n]\n"


@pytest.mark.slow
@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
def test_a_process_killed_while_it_writes_facts_leaves_the_old_ones(tmp_path, call):
    """Killed at each system call in turn, a write halfway through its bytes."""
    place = tmp_path / "facts.json"
    write_json(place, {"version": 1})
    code = (
        "import os, signal, sys, pathlib\n"
        "from capsules.durable import write_json\n"
        f"real = os.{call}\n"
        "def die(*args, **kwargs):\n"
        f"    if {call!r} == 'write': real(args[0], memoryview(args[1])[:7])\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"os.{call} = die\n"
        "write_json(pathlib.Path(sys.argv[1]), {'version': 2, 'more': 'x' * 1000})\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, place], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert json.loads(place.read_text()) == {"version": 1}
    sweep(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["facts.json"]


def test_sweeping_spares_a_writer_that_lives(tmp_path):
    (tmp_path / ".old.safetensors.0.part").write_bytes(b"half")

    def chunks():
        yield b"first half, "
        assert len(list(tmp_path.glob(".*.part"))) == 2
        assert sweep(tmp_path) == 1
        yield b"second half"

    write_durably(tmp_path / "new", chunks())
    assert (tmp_path / "new").read_bytes() == b"first half, second half"
    assert [file.name for file in tmp_path.iterdir()] == ["new"]


@pytest.mark.slow
def test_a_writer_killed_at_random_points_200_times_leaves_old_or_new(tmp_path):
    script = Path(__file__).with_name("crash_child.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run(
        [sys.executable, script, tmp_path / "c", "200"], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.returncode == 0, ran.stderr
    counts = json.loads(ran.stdout)
    assert counts["kills"] == 200
    assert counts["mid_write"] > 20 and counts["old_version_kept"] > 20  # the kills did hit the middle of writes
