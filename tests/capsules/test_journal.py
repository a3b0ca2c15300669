"""Journals: what was whole comes back, whatever happened to the end of the file, the disk or the process."""

import errno
import os
import signal
import subprocess
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import capsules.journal
from capsules.durable import HEAD, EntryFile, entry_bytes, read_entries
from capsules.journal import Journal, Journals, difference

ROOT = Path(__file__).parents[2]


def at_once(work):
    work()


def reopened(path):
    journal = Journal(path, at_once)
    found = {name: dict(journal.table(name)) for name in ("words", "llm")}
    journal.close_file()
    return found, journal.torn


def write(path, steps):
    """The tables after each step, and where the file ended then."""
    journal = Journal(path, at_once)
    known = [({"words": {}, "llm": {}}, 0)]
    for name, rows in steps:
        assert journal.put(name, rows, ordered=name == "words")
        size = path.stat().st_size if path.exists() else 0
        known.append(({n: dict(journal.table(n)) for n in ("words", "llm")}, size))
    journal.close_file()
    return known


STEPS = [
    ("words", {"a": ["hello", 1], "b": None}), ("llm", {"fold 0": [0, 1, 2, 3]}),
    ("words", {"a": ["hello", 1], "c": 2.5}), ("words", {"x": {"in": "front"}, "a": ["hello", 1], "c": 2.5}),
    ("llm", {}), ("words", {"x": "é\ud83d" * 40}),
]  # fmt: skip


def test_a_file_that_ends_at_any_byte_gives_what_was_whole_and_goes_on(tmp_path):
    path = tmp_path / "t.journal"
    known = write(path, STEPS)
    data = path.read_bytes()
    for end in range(len(data) + 1):
        path.write_bytes(data[:end])
        wanted, whole = max(((tables, at) for tables, at in known if at <= end), key=lambda pair: pair[1])
        found, torn = reopened(path)
        assert found == wanted and torn == end - max(whole, len(HEAD) if end >= len(HEAD) else 0)
        journal = Journal(path, at_once)
        assert journal.put("llm", {"more": end})
        journal.close_file()
        assert reopened(path) == ({**wanted, "llm": {"more": end}}, 0)


def test_tables_that_change_together_have_all_changed_or_none(tmp_path):
    path = tmp_path / "t.journal"
    journal = Journal(path, at_once)
    assert journal.put_all({"llm": {"timer": 1}, "words": {"call": 1}}, ordered=("words",))
    begin = path.stat().st_size
    assert journal.put_all({"llm": {"timer": 2}, "words": {"call": 1, "more": 2}}, ordered=("words",))
    assert journal.put_all({"llm": {"timer": 2}, "words": {"call": 1, "more": 2}}) and not journal.trouble
    data = path.read_bytes()
    journal.close_file()
    before, after = ({"timer": 1}, {"call": 1}), ({"timer": 2}, {"call": 1, "more": 2})
    for end in range(begin, len(data) + 1):
        path.write_bytes(data[:end])
        found, _ = reopened(path)
        assert (found["llm"], found["words"]) == (after if end == len(data) else before)


@pytest.mark.parametrize("junk", [b"\0" * 40, b"\xff" * 40, bytes(range(200))])
def test_junk_behind_the_last_entry_is_cut_off_and_told(tmp_path, junk, caplog):
    path = tmp_path / "t.journal"
    known = write(path, STEPS)
    path.write_bytes(path.read_bytes() + junk)
    assert reopened(path) == (known[-1][0], len(junk))
    assert f"last {len(junk)} bytes were not whole" in caplog.text
    assert reopened(path) == (known[-1][0], 0)


def test_a_changed_byte_anywhere_costs_no_more_than_what_came_behind_it(tmp_path):
    path = tmp_path / "t.journal"
    known = write(path, STEPS)
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :])
        found, torn = reopened(path)
        whole = max(((tables, at) for tables, at in known if at <= place), key=lambda pair: pair[1])
        assert (found == whole[0] and torn) or place < len(HEAD)
        path.write_bytes(data)


def test_an_entry_of_another_place_is_none(tmp_path):
    """What is left of an older file on the disk, whole as it may be, does not count."""
    path = tmp_path / "t"
    one = entry_bytes(len(HEAD), b"one")
    path.write_bytes(HEAD + one + one)
    assert read_entries(path).payloads == (b"one",) and read_entries(path).torn == len(one)


rows = st.dictionaries(st.sampled_from("abcdefg"), st.integers(0, 3), max_size=6)


@given(rows, rows, st.booleans())
def test_a_difference_leads_from_any_table_to_any_other(before, after, ordered):
    gone, new = difference(before, after, ordered)
    found = {key: row for key, row in before.items() if key not in gone} | new
    assert found == after and (not ordered or list(found) == list(after))
    if before == after and (not ordered or list(before) == list(after)):
        assert not gone and not new


def test_a_turn_adds_few_bytes_however_long_the_talk(tmp_path):
    path = tmp_path / "t.journal"
    journal = Journal(path, at_once)
    table = {}
    sizes = []
    for turn in range(200):
        table[f"item {turn}"] = ["user", f"this is turn {turn}"]
        before = path.stat().st_size if path.exists() else 0
        journal.put("words", table, ordered=True)
        sizes.append(path.stat().st_size - before)
    assert max(sizes[1:]) < 120


class FullDisk:
    """Writes fail, the second of them halfway, until there is room again."""

    def __init__(self, monkeypatch):
        self.room = True
        self._half = False
        real = os.write

        def write(file, data):
            if self.room:
                return real(file, data)
            self._half = not self._half
            if self._half:
                return real(file, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "write", write)


def test_a_full_disk_costs_what_comes_after_and_says_so_until_there_is_room(tmp_path, monkeypatch, caplog):
    path = tmp_path / "t.journal"
    journal = Journal(path, at_once)
    disk = FullDisk(monkeypatch)
    assert journal.put("words", {"a": 1}) and not journal.trouble
    for value in (2, 3):
        disk.room = False
        assert not journal.put("words", {"a": value})
        assert "No space left" in journal.trouble and "goes on" in journal.trouble
        assert reopened(path) == ({"words": {"a": 1}, "llm": {}}, 0)
    disk.room = True
    assert journal.put("words", {"a": 3, "b": 4}) and not journal.trouble
    assert reopened(path) == ({"words": {"a": 3, "b": 4}, "llm": {}}, 0)
    assert caplog.text.count("will not outlive") == 1
    disk.room = False
    assert not journal.put("words", {"a": 5})
    assert caplog.text.count("will not outlive") == 2


def test_a_disk_that_does_not_sync_is_told(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "t.journal", at_once)
    monkeypatch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError(errno.EIO, "I/O error")))
    monkeypatch.setattr("capsules.durable.sync_folder", lambda folder: None)
    journal.put("words", {"a": 1})
    assert "I/O error" in journal.trouble


def test_a_sync_that_meets_the_close_is_no_failure(tmp_path, monkeypatch):
    waiting = []
    journal = Journal(tmp_path / "t.journal", waiting.append)
    journal.put("words", {"a": 1})
    closed = EntryFile.close_file
    monkeypatch.setattr(EntryFile, "close_file", lambda file: (closed(file), waiting.pop()()))
    journal.close_file()
    assert not waiting and journal.trouble == ""


def test_what_has_grown_is_written_anew_and_nothing_is_lost_meanwhile(tmp_path):
    path = tmp_path / "t.journal"
    with ThreadPoolExecutor(1) as pool:
        journals = Journals(tmp_path, pool)
        journal = journals.open("t")
        for turn in range(3000):
            assert journal.put("words", {"last": turn, "text": [os.urandom(30).hex()] * 2})
            assert journal.put("llm", {"fold": turn})
    journals.close("t")
    assert path.stat().st_size < 140_000
    found, torn = reopened(path)
    assert found["words"]["last"] == found["llm"]["fold"] == 2999 and not torn
    assert [file.name for file in tmp_path.iterdir()] == ["t.journal"]


def test_names_that_are_none_have_no_journal(tmp_path):
    journals = Journals(tmp_path)
    assert journals.open("../x") is None and journals.open("a b") is None and Journals(None).open("a") is None
    assert "x" * 5000 not in journals and journals.open("x" * 5000) is None
    assert journals.open("conv_1") is journals.open("conv_1") and "conv_1" in journals and "conv_2" not in journals
    journals.open("conv_1").put("words", {"a": 1})
    journals.close("conv_1")
    assert "conv_1" in journals and journals.find("conv_1") is None
    journals.remove("conv_1")
    assert "conv_1" not in journals and not list(tmp_path.iterdir())


CHILD = """
import os, signal, sys
from pathlib import Path
from capsules.journal import Journal
CALLS, left = ("write", "fsync", "rename", "open", "close", "ftruncate", "lseek"), int(sys.argv[2])
def wrap(name, real):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left < 0:
            if name == "write":
                real(args[0], memoryview(args[1])[: len(args[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    return call
journal = Journal(Path(sys.argv[1]), lambda work: work())
for name in CALLS:
    setattr(os, name, wrap(name, getattr(os, name)))
told = os.dup(1)
for turn in range(6):
    journal.put("words", {"turn": turn, "junk": "x" * 50})
    if turn == 3:
        journal.rewrite()
    print(turn, flush=True)
"""


def test_a_rewrite_waits_for_one_that_began_before_the_change(tmp_path, monkeypatch):
    """What was taken out must not come back from a copy that was made before."""
    journal = Journal(tmp_path / "t.journal", at_once)
    journal.put("words", {"a": "secret"})
    began, goes_on = threading.Event(), threading.Event()
    write = capsules.journal.write_durably

    def slowly(path, chunks):
        if not began.is_set():
            began.set()
            goes_on.wait(60)
        write(path, chunks)

    monkeypatch.setattr(capsules.journal, "write_durably", slowly)
    first = threading.Thread(target=journal.rewrite)
    first.start()
    began.wait(60)
    journal.put("words", {"a": "plain"})
    threading.Timer(0.05, goes_on.set).start()
    assert journal.rewrite()
    first.join()
    [payload] = read_entries(tmp_path / "t.journal").payloads
    assert b"secret" not in zlib.decompress(payload)
    journal.close_file()


def test_a_rewrite_that_failed_says_so(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "t.journal", at_once)
    journal.put("words", {"a": "secret"})

    def full(path, chunks):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(capsules.journal, "write_durably", full)
    assert not journal.rewrite()
    journal.close_file()


@pytest.mark.slow
def test_a_process_killed_at_each_call_into_the_file_system_loses_nothing_that_was_told(tmp_path):
    path = tmp_path / "t.journal"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for call in range(60):
        path.unlink(missing_ok=True)
        ran = subprocess.run(
            [sys.executable, "-c", CHILD, path, str(call)], capture_output=True, text=True, env=environment, check=False
        )
        told = len(ran.stdout.split())
        found = reopened(path)[0]["words"].get("turn", -1)
        assert found in (told - 1, told), (call, told, found)
        Journals(tmp_path)  # a new start sweeps
        assert not list(tmp_path.glob(".*"))
        if ran.returncode == 0:
            break
        assert ran.returncode == -signal.SIGKILL, ran.stderr
    assert call > 20 and told == 6


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["words", "llm"]), rows), min_size=1, max_size=8), st.data())
def test_any_changes_come_back_from_any_beginning_of_the_file(tmp_path_factory, steps, data):
    path = tmp_path_factory.mktemp("j") / "t.journal"
    known = write(path, steps)
    end = data.draw(st.integers(0, path.stat().st_size if path.exists() else 0))
    if path.exists():
        os.truncate(path, end)
    wanted = max(((tables, at) for tables, at in known if at <= end), key=lambda pair: pair[1])[0]
    assert reopened(path)[0] == wanted


def test_an_entry_file_has_one_head(tmp_path):
    file = EntryFile(tmp_path / "f")
    file.append(b"")
    file.append(b"x")
    file.sync_to_disk()
    file.close_file()
    assert read_entries(tmp_path / "f").payloads == (b"", b"x")
