"""A fetch as a state machine: whatever is asked in whatever order, nothing half-written is a model."""

import random
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.app.fetching import AT_WORK, FetchState, ModelFetch
from assistant.app.found import OURS, ModelPlace, find_models
from assistant.app.hub import BEGUN, begun_bytes, is_present, model_folder
from assistant.base.errors import PeerError
from tests.fakes.hubserver import FILES, REPO, Hub, running

WANTED = sum(len(data) for name, data in FILES.items() if name not in ("pytorch_model.bin", "run_me.py")) - 100


KINDS = st.sampled_from(["begin", "listed", "came", "pause", "cancel", "end", "break"])


@given(st.lists(st.tuples(KINDS, st.integers(-9, 9))))
def test_whatever_happens_the_state_is_sound(events: list[tuple[str, int]]) -> None:
    state = FetchState()
    for kind, n in events:
        before = state
        try:
            if kind == "begin":
                state = state.begin("a/b" if n < 5 else "a/c")
                assert before.phase not in AT_WORK and (before.phase != "paused" or state.repo == before.repo)
            elif kind == "pause":
                state = state.pause()
                assert before.phase in ("asking", "fetching")
            elif kind == "cancel":
                state = state.cancel()
                assert state.phase == "cancelling" if before.phase in AT_WORK else state == FetchState()
            elif state.phase in AT_WORK:  # the thread alone says these
                if kind == "listed":
                    state = state.listed(abs(n))
                    assert state.halts == before.halts
                elif kind == "came":
                    state = state.came(n)
                else:
                    state = state.ended("it broke" if kind == "break" else "" if before.halts else None)
                    assert state.phase not in AT_WORK
                    assert (state == FetchState()) == (before.phase == "cancelling")
        except PeerError:
            assert state == before
        assert 0 <= state.done_bytes <= state.total_bytes
        assert bool(state.told) == (state.phase == "failed") and bool(state.repo) == (state.phase != "idle")


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 50_000)
    monkeypatch.setattr("assistant.app.hub.SPARE_BYTES", 0)
    with running(Hub({REPO: dict(FILES)}, {"license": "apache-2.0"})) as hub:
        yield hub


def files(models: Path) -> list[Path]:
    return [path for path in models.rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.mark.parametrize("seed", range(3))
def test_asked_anything_in_any_order_a_model_is_whole_or_not_there(hub, tmp_path: Path, seed: int) -> None:
    chance, fetch, folder = random.Random(seed), ModelFetch(tmp_path, hub.url), model_folder(tmp_path, REPO)
    for _ in range(8):
        step = chance.choice(["begin", "begin", "pause", "cancel", "break"])
        if step == "break":
            hub.drops = 1
            continue
        try:
            fetch.begin(REPO) if step == "begin" else fetch.pause() if step == "pause" else fetch.cancel()
        except PeerError:
            continue
        if chance.random() < 0.7:
            fetch.join()
            phase = fetch.state.phase
            assert (phase == "done") == is_present(folder)
            here = [model for model in find_models([ModelPlace(OURS, tmp_path)]) if not model.trouble]
            assert bool(here) == (phase == "done")
            if phase == "idle":
                assert [path.name for path in files(tmp_path) if path.name != ".lock"] == []
        if fetch.state.phase == "done":
            return
    fetch.join()
    if fetch.state.phase != "done":
        fetch.begin(REPO)
        fetch.join()
    assert fetch.state.phase == "done" and fetch.state.done_bytes == fetch.state.total_bytes == WANTED
    assert all((folder / name).read_bytes() == FILES[name] for name in ("config.json", "tokenizer.json"))


class Watched(ModelFetch):
    """`begun` is set once a piece of a large file is on the disk: the next one has come."""

    def __init__(self, models: Path, endpoint: str) -> None:
        super().__init__(models, endpoint)
        self.begun, self._pieces = threading.Event(), 0

    def _came(self, name: str, nbytes: int) -> None:
        self._pieces += name.startswith("model-00001") and nbytes > 0
        if self._pieces == 2:
            self.begun.set()
        super()._came(name, nbytes)


def test_it_is_paused_goes_on_where_it_stopped_and_is_cancelled_without_a_trace(hub, tmp_path: Path) -> None:
    fetch, folder = Watched(tmp_path, hub.url), model_folder(tmp_path, REPO)
    hub.gate.clear()  # the hub sends a beginning of each large file, and waits
    fetch.begin(REPO)
    assert fetch.begun.wait(60)
    fetch.pause()
    assert fetch.state.phase == "pausing"
    hub.gate.set()
    fetch.join()
    assert fetch.state.phase == "paused" and begun_bytes(folder) > 0 and (folder / BEGUN).is_file()
    with pytest.raises(PeerError, match="half fetched; go on with it or cancel it first"):
        fetch.begin("maker/other")
    hub.ranges.clear()
    fetch.begin(REPO)
    fetch.join()
    assert fetch.state.phase == "done" and is_present(folder)
    assert any(wanted and not wanted.startswith("bytes=0-") for _, wanted in hub.ranges)
    other = Watched(tmp_path / "other", hub.url)
    hub.gate.clear()
    other.begin(REPO)
    assert other.begun.wait(60)
    other.cancel()
    hub.gate.set()
    other.join()
    assert other.state == FetchState() and not model_folder(tmp_path / "other", REPO).exists()


def test_trouble_is_one_sentence(hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = ModelFetch(tmp_path, hub.url)

    def told(repo: str = REPO, **more: bool) -> str:
        fetch.begin(repo, **more)
        fetch.join()
        assert fetch.state.phase == "failed" and "\n" not in fetch.state.told
        return fetch.state.told

    assert "the hub has no repository 'maker/nothing'" in told("maker/nothing")
    hub.card["license"] = "other"
    assert "has the licence other, which restricts its use" in told()
    hub.card["license"] = "apache-2.0"
    hub.corrupt.add("config.json")
    assert "config.json arrived damaged and was removed" in told()
    hub.corrupt.clear()
    monkeypatch.setattr("assistant.app.hub.SPARE_BYTES", 1 << 62)
    assert "GB free" in told()
    fetch.cancel()
    assert fetch.state == FetchState() and files(tmp_path) == []
