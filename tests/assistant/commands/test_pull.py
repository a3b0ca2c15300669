"""`assistant pull`: profiles and repositories fetched, a restricting licence only with consent."""

from dataclasses import replace

import pytest
import torch

from assistant.app.config import PROFILES
from assistant.app.ears import REPO as EARS_REPO
from assistant.app.ears import ears_folder, fetched_sizes
from assistant.app.hub import is_present, model_folder
from assistant.asr.streaming import FILES as FILES_OF_EARS
from assistant.asr.streaming import WORD_TIMES
from assistant.base.errors import AssistantError
from assistant.cli import main
from assistant.commands import pull
from tests.fakes.hubserver import FILES, REPO, Hub, running


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100_000)
    with running(Hub({REPO: dict(FILES)}, {"license": "apache-2.0"})) as hub:
        yield hub


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    monkeypatch.setattr("assistant.app.hub.SPARE_BYTES", 0)
    return tmp_path


def test_command_fetches_and_says_so(hub, home, capsys):
    assert main(["pull", REPO, "--endpoint", hub.url]) == 0
    out = capsys.readouterr().out
    assert "apache-2.0" in out and "0.00 GB" in out
    assert is_present(model_folder(home / "models", REPO))
    assert main(["pull", REPO, "--endpoint", hub.url]) == 0
    assert "here already" in capsys.readouterr().out


def test_a_restricting_licence_needs_consent(hub, home, capsys, monkeypatch):
    hub.card.update({"license": "other", "license_name": "research-only"})
    assert main(["pull", REPO, "--endpoint", hub.url]) == 1
    told = capsys.readouterr()
    assert "research-only" in told.out and "--accept-licences" in told.err and hub.ranges == []
    assert main(["pull", REPO, "--endpoint", hub.url, "--accept-licences"]) == 0
    assert pull.ask_consent([REPO], lambda question: "y") and not pull.ask_consent([REPO], lambda question: "")


def test_profiles_are_names_of_repositories(home, capsys):
    assert pull.repos_of(["desk", "maker/model", "desk"])[-1] == "maker/model"
    assert pull.repos_of(["desk"])[0] == "Qwen/Qwen3.5-4B"
    with pytest.raises(AssistantError, match="there is no profile 'dsk'; did you mean desk"):
        pull.repos_of(["dsk"])
    with pytest.raises(AssistantError, match="nothing to fetch"):
        pull.repos_of(["tiny"])
    with pytest.raises(AssistantError, match=r"choose from laptop, .*, ears-tiny-times, or name a repository"):
        pull.repos_of(["xyzzy"])


def test_the_list_fits_80_columns_and_marks_what_fits_the_machine(tmp_path, capsys):
    gib = 1 << 30
    laptop, small = (0, 5 * gib, "laptop", "small"), (0, gib, "tiny", "small")
    for gpu, host, profile, ears in (laptop, (24 * gib, gib, "desk-27b", "medium"), small):
        pull.print_profiles(tmp_path, gpu, host)
        *rows, empty, fits, licences, last = capsys.readouterr().out.splitlines()
        assert max(map(len, rows)) <= 80 and not empty
        columns = [rows[0].index(name) - 1 for name in ("download", "free memory", "here", "models")]
        assert {row[column] for row in rows for column in columns} == {" "}
        assert [row.split()[1] for row in rows if row.startswith("*")] == [profile, f"ears-{ears}"]
        assert {row[2:].split()[0] for row in rows[1:]} >= {*PROFILES, "ears-tiny"}
        assert f"{host / gib:.1f} GiB of memory" in fits and licences.count("Non-Commercial") == 1
        assert last == "fetch one with: assistant pull NAME"


def ears_of(size: str, data: bytes) -> dict[str, bytes]:
    files = dict.fromkeys(FILES_OF_EARS, data) | {"LICENSE": b"MIT", WORD_TIMES: b"times" * 9, "notes.json": b"{}"}
    return {f"model/{size}-streaming-en/quantized_26_07_30/{name}": one for name, one in files.items()}


@pytest.fixture
def with_ears(hub, monkeypatch):
    """The hub has the ears in three sizes, and a profile of its own."""
    hub.repos[EARS_REPO] = {"README.md": b"no", **ears_of("tiny", b"t"), **ears_of("small", b"ss"),
                            **ears_of("medium", b"mmm")}  # fmt: skip
    monkeypatch.setitem(PROFILES, "desk", replace(PROFILES["desk"], llm=REPO, tts=REPO))
    return hub


def fetched(home, size: str) -> set[str]:
    folder = ears_folder(home / "models", size)
    return {path.name for path in folder.iterdir()} if is_present(folder) else set()


@pytest.mark.slow
def test_ears_are_fetched_by_size_into_a_folder_of_their_own(with_ears, home, capsys):
    assert main(["pull", "ears", "--endpoint", with_ears.url]) == 0
    assert fetched(home, "small") == {*FILES_OF_EARS, "LICENSE", "model.json"} and not fetched(home, "medium")
    assert "small-streaming-en" in capsys.readouterr().out
    assert fetched_sizes(home / "models") == ["small"]
    assert main(["pull", "ears", "--endpoint", with_ears.url]) == 0
    assert "here already" in capsys.readouterr().out
    assert main(["pull", "ears-small-times", "--endpoint", with_ears.url]) == 0
    assert WORD_TIMES in fetched(home, "small")
    assert main(["pull", "ears-tiny", "--endpoint", with_ears.url]) == 0
    assert fetched_sizes(home / "models") == ["small", "tiny"]


@pytest.mark.slow
def test_a_profile_brings_the_medium_ears_and_a_repository_none(with_ears, home):
    assert main(["pull", REPO, "--endpoint", with_ears.url]) == 0
    assert is_present(model_folder(home / "models", REPO)) and fetched_sizes(home / "models") == []
    assert main(["pull", "desk", "--endpoint", with_ears.url]) == 0
    assert fetched_sizes(home / "models") == ["medium"]


def test_missing_ears_are_not_in_a_profiles_way(with_ears, home, capsys):
    del with_ears.repos[EARS_REPO]
    assert main(["pull", "desk", "--endpoint", with_ears.url]) == 0
    assert "without better ears: the hub has no repository" in capsys.readouterr().err
    assert main(["pull", "ears", "--endpoint", with_ears.url]) == 1


def test_ears_need_consent_where_their_licence_restricts(with_ears, home, capsys):
    with_ears.card["license"] = "other"
    assert main(["pull", "ears", "--endpoint", with_ears.url]) == 1
    assert "small-streaming-en" in capsys.readouterr().err and fetched_sizes(home / "models") == []


def test_prepare_is_for_models_that_were_named(hub, home, capsys, monkeypatch):
    asked = []

    def prepare(folder, dtype, bits, eyes, aside, tell, made):
        assert made is None
        asked.append((folder, dtype, bits, eyes))
        return len(asked) == 1

    monkeypatch.setattr("llm_engine.weights.prepare_weights", prepare)
    assert main(["pull", REPO, "--prepare", "--endpoint", hub.url]) == 0
    monkeypatch.setenv("ASSISTANT_DTYPE", "int4")
    monkeypatch.setenv("ASSISTANT_WITHOUT", "vision")
    assert main(["pull", REPO, "--prepare", "--endpoint", hub.url]) == 1, "it could not be kept"
    folder = model_folder(home / "models", REPO)
    assert asked == [(folder, torch.bfloat16, None, True), (folder, torch.bfloat16, 4, False)]
    assert main(["pull", "--prepare"]) != 0
    assert "needs a profile or a repository" in capsys.readouterr().err


def test_a_voice_is_prepared_as_a_processor_holds_it(with_ears, home, monkeypatch):
    asked = []
    monkeypatch.setattr("tts_engine.weights.prepare_weights", lambda folder, dtype, *rest: asked.append(dtype) or True)
    monkeypatch.setitem(PROFILES, "desk", replace(PROFILES["desk-12"], llm="", tts=REPO))
    pulled = ["pull", "desk", "--prepare", "--endpoint", with_ears.url]
    assert main(pulled) == 0
    monkeypatch.setenv("ASSISTANT_DTYPE", "int4")
    assert main(pulled) == 0
    monkeypatch.setenv("ASSISTANT_DTYPE", "int4,int4")
    assert main(pulled) == 0
    assert asked == ["int8", "int8", "int4"]


def test_what_a_gpu_runs_is_prepared_in_its_form(with_ears, home, monkeypatch, capsys):
    """And what it reads straight from the published files is left alone."""
    asked = []
    monkeypatch.setattr("assistant.commands.doctor.free_gpu_bytes", lambda: 24 << 30)
    monkeypatch.setattr("llm_engine.weights.prepare_weights", lambda *given: asked.append(given[1:3] + given[6:]) or 1)
    monkeypatch.setattr("tts_engine.weights.prepare_weights", lambda *given: asked.append(given[1::3]) or 1)
    pulled = ["pull", "desk", "--prepare", "--endpoint", with_ears.url]
    monkeypatch.setitem(PROFILES, "desk", replace(PROFILES["desk-12"], llm=REPO, tts=""))
    assert main(pulled) == 0
    monkeypatch.setenv("ASSISTANT_DEVICE", "cpu")
    assert main(pulled) == 0
    monkeypatch.delenv("ASSISTANT_DEVICE")
    monkeypatch.setitem(PROFILES, "desk", replace(PROFILES["desk-12"], llm="", tts=REPO))
    assert main(pulled) == 0
    assert asked == [(torch.bfloat16, None, "int4"), (torch.bfloat16, 4, None), ("float8", "cuda")]
    monkeypatch.setitem(PROFILES, "desk", replace(PROFILES["desk-12"], llm=REPO, tts="", dtype="bfloat16"))
    assert main(pulled) == 0 and len(asked) == 3
    assert "bfloat16 is read straight onto a GPU" in capsys.readouterr().out


def test_what_is_no_language_model_is_not_prepared(hub, home, capsys):
    assert main(["pull", REPO, "--prepare", "--endpoint", hub.url]) != 0
    assert "the model was not prepared" in capsys.readouterr().err
