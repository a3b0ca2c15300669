"""Fetching models from a server that speaks the hub's interface: progress, resumption, verification."""

import errno
import json
import os
from unittest.mock import Mock

import pytest

from assistant.app.hub import HubError, RepoPart, fetch, is_present, list_repo, missing, model_folder, read_mark
from tests.fakes.hubserver import COMMIT, FILES, REPO, WEIGHTS, Hub, running


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100_000)
    with running(Hub({REPO: dict(FILES)}, {"license": "apache-2.0"})) as hub:
        yield hub


def quiet(name: str, n: int) -> None:
    return None


def test_listing_names_size_licence_and_only_what_a_model_needs(hub):
    listing = list_repo(REPO, hub.url)
    assert {file.name for file in listing.files} == set(FILES) - {"pytorch_model.bin", "run_me.py", "onnx/model.onnx"}
    assert (listing.licence, listing.revision, listing.needs_consent) == ("apache-2.0", COMMIT, False)
    assert listing.bytes == sum(len(FILES[file.name]) for file in listing.files)


def test_fetch_verifies_marks_and_reports_every_byte(hub, tmp_path):
    listing = list_repo(REPO, hub.url)
    folder = model_folder(tmp_path, REPO)
    told: dict[str, int] = {}
    fetch(listing, folder, lambda name, n: told.update({name: told.get(name, 0) + n}), hub.url)
    assert is_present(folder) and read_mark(folder) == listing
    assert told == {file.name: file.size for file in listing.files}
    assert all((folder / file.name).read_bytes() == FILES[file.name] for file in listing.files)
    before = len(hub.ranges)
    fetch(listing, folder, quiet, hub.url)
    assert len(hub.ranges) == before, "whole files were fetched again"


@pytest.mark.slow
def test_a_line_that_breaks_is_taken_up_again(hub, tmp_path):
    hub.drops = 1
    listing = list_repo(REPO, hub.url)
    fetch(listing, tmp_path, quiet, hub.url)
    assert (tmp_path / "model-00001-of-00002.safetensors").read_bytes() == WEIGHTS
    assert any(wanted and not wanted.startswith("bytes=0-") for _, wanted in hub.ranges)


def test_an_interrupted_fetch_goes_on_where_it_stopped(hub, tmp_path):
    listing = list_repo(REPO, hub.url)
    seen = 0

    def stop(name: str, n: int) -> None:
        nonlocal seen
        seen += n
        if seen > 1_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(listing, tmp_path, stop, hub.url)
    assert not is_present(tmp_path) and missing(listing, tmp_path)
    hub.ranges.clear()
    fetch(listing, tmp_path, quiet, hub.url)
    assert is_present(tmp_path)
    first = next(wanted for name, wanted in hub.ranges if name.startswith("model-00001"))
    assert first is not None and int(first.removeprefix("bytes=").rstrip("-")) > 0


@pytest.mark.parametrize("name", ["model-00002-of-00002.safetensors", "config.json"])
def test_what_arrives_damaged_is_removed_and_told(hub, tmp_path, name):
    listing = list_repo(REPO, hub.url)
    hub.corrupt.add(name)
    with pytest.raises(HubError, match=name):
        fetch(listing, tmp_path, quiet, hub.url)
    assert not (tmp_path / name).exists() and not is_present(tmp_path)
    hub.corrupt.clear()
    fetch(listing, tmp_path, quiet, hub.url)
    assert is_present(tmp_path)


def test_errors_say_what_to_do(hub, tmp_path):
    with pytest.raises(HubError, match="no repository"):
        list_repo("maker/nothing", hub.url)
    with pytest.raises(HubError, match="not the name"):
        list_repo("a/b/c/d", hub.url)
    with pytest.raises(HubError, match="cannot be reached"):
        list_repo(REPO, "http://127.0.0.1:9")
    listing = list_repo(REPO, hub.url)
    hub.gated = True
    with pytest.raises(HubError, match="consent"):
        fetch(listing, tmp_path, quiet, hub.url)
    hub.repos[REPO] = {"config.json": b"{}"}
    with pytest.raises(HubError, match=r"does not contain \*\.safetensors"):
        list_repo(REPO, hub.url)


def test_two_processes_do_not_write_into_one_file(hub, tmp_path):
    """The second is told while the first is in the midst of it, and has spoilt nothing."""
    listing = list_repo(REPO, hub.url)
    told = []

    def again(name: str, n: int) -> None:
        if name.startswith("model-00001") and n and not told:
            with pytest.raises(HubError, match="another process is working in") as refused:
                fetch(listing, tmp_path, quiet, hub.url)
            told.append(str(refused.value))

    fetch(listing, tmp_path, again, hub.url)
    assert len(told) == 1 and is_present(tmp_path)
    assert (tmp_path / "model-00001-of-00002.safetensors").read_bytes() == WEIGHTS


@pytest.mark.parametrize("place", ["mkdir", "mark"])
def test_a_folder_that_takes_no_more_is_told_in_a_line(hub, tmp_path, monkeypatch, place):
    """Where it cannot be made, and where the disk is full once all files are there."""
    listing, folder = list_repo(REPO, hub.url), tmp_path / "model"
    if place == "mkdir":
        folder.write_bytes(b"a file")
    else:
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        monkeypatch.setattr("capsules.durable.write_json", Mock(side_effect=full))
    with pytest.raises(HubError, match=rf"{folder} cannot be written \((File exists|No space left on device)\)"):
        fetch(listing, folder, quiet, hub.url)
    assert not is_present(folder)


def test_no_room_is_told_before_anything_is_fetched(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("assistant.app.hub.SPARE_BYTES", 1 << 60)
    with pytest.raises(HubError, match="make room"):
        fetch(list_repo(REPO, hub.url), tmp_path, quiet, hub.url)
    assert hub.ranges == []


def test_a_damaged_mark_is_no_model(tmp_path):
    for text in ("", "[]", "{}", json.dumps({"files": [{"x": 1}]})):
        (tmp_path / "model.json").write_text(text)
        assert read_mark(tmp_path) is None and not is_present(tmp_path)


SMALL = RepoPart("model/small/of_july", ("*.ort", "*.json", "*.bin", "LICENSE*"), ("encoder.ort", "config.json"))
INSIDE = {"encoder.ort": WEIGHTS, "config.json": b"{}", "tokenizer.bin": b"t" * 900, "LICENSE.txt": b"be nice"}
OUTSIDE = (
    "encoder.ort", "model/small/encoder.ort", "model/small/of_july/x/encoder.ort", "model/small/of_july2/a.ort",
    "model/small/of_july/../../../a.ort", "model/small/of_july/..\\a.ort", "model/small/of_july/C:a.ort",
    "model/small/of_july//etc/a.ort", "/model/small/of_july/a.ort", "model/small/of_july/run.py",
    "model/small/of_july/model.json", "model/small/of_july/..",
)  # fmt: skip


@pytest.mark.slow
def test_a_folder_of_a_repository_is_a_model_of_its_own(hub, tmp_path):
    hub.repos[REPO] = {f"{SMALL.folder}/{name}": data for name, data in INSIDE.items()}
    hub.repos[REPO] |= dict.fromkeys(OUTSIDE, b"no")
    listing = list_repo(REPO, hub.url, SMALL)
    assert {file.name: file.size for file in listing.files} == {name: len(data) for name, data in INSIDE.items()}
    hub.drops = 1
    folder = model_folder(tmp_path, REPO, "small")
    fetch(listing, folder, quiet, hub.url)
    assert folder.name == "maker--model--small" and is_present(folder) and read_mark(folder) == listing
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "model.json"} == INSIDE
    hub.corrupt.add(f"{SMALL.folder}/encoder.ort")
    (folder / "encoder.ort").unlink()
    with pytest.raises(HubError, match=r"encoder\.ort arrived damaged"):
        fetch(listing, folder, quiet, hub.url)


def test_a_folder_without_what_is_needed_is_no_model(hub):
    hub.repos[REPO] = {f"{SMALL.folder}/config.json": b"{}", "encoder.ort": b"elsewhere"}
    with pytest.raises(HubError, match=r"small/of_july.* does not contain encoder\.ort"):
        list_repo(REPO, hub.url, SMALL)
