"""What the chooser offers, and the settings that a choice becomes: the rest of the assistant stays as it is."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.app import chooser
from assistant.app.chooser import SHIPPED, LanguageModels
from assistant.app.config import PROFILES, Config, load_config
from assistant.app.found import FOLDER, LM_STUDIO, OLLAMA, OURS, FoundModel
from assistant.app.hub import model_folder
from assistant.app.switching import Choices
from assistant.app.verdict import Verdict
from assistant.base.errors import PeerError

GIB = 1 << 30


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Models of other programs, and one of ours, each of which needs a gigabyte and runs."""
    monkeypatch.setattr(chooser, "gpu_free_bytes", lambda: 0)
    monkeypatch.setattr("assistant.base.memory.available_bytes", lambda: 5 * GIB)
    monkeypatch.setattr(chooser, "verdict", lambda path, positions, bits: Verdict("runs", GIB))
    ours = model_folder(tmp_path / "models", PROFILES["laptop"].llm)
    ours.mkdir(parents=True)
    found = [FoundModel(ours.name, OURS, ours, 2 * GIB)]
    for place, program, name in (
        ("a", OLLAMA, "tiny:1b"), ("b", LM_STUDIO, "same.gguf"), ("c", OLLAMA, "same.gguf"), ("d", FOLDER, "one.gguf"),
    ):  # fmt: skip
        path = tmp_path / place / name.replace(":", "-")
        path.parent.mkdir()
        path.write_bytes(b"GGUF")
        found.append(FoundModel(name, program, path, 4))
    found.append(FoundModel("half:1b", OLLAMA, tmp_path / "half", 0, "1 of 9 bytes are here"))
    monkeypatch.setattr(chooser, "known_models", lambda models: found)
    return tmp_path


def models_at(home: Path, profile: str = "tiny", **flags: str) -> tuple[LanguageModels, Choices]:
    config, choices = load_config(flags, {"ASSISTANT_HOME": str(home)}), Choices()
    models = LanguageModels(config, choices)
    models.runs(config, PROFILES[profile])
    return models, choices


def chosen(home: Path, name: str, profile: str = "tiny", **flags: str) -> Config:
    async def choose() -> Config:
        models, choices = models_at(home, profile, **flags)
        await models.switch_to(name)
        return await choices.chosen()

    return asyncio.run(choose())


def test_a_choice_changes_the_language_model_and_nothing_else(there: Path) -> None:
    before = load_config({"persona": "ben"}, {"ASSISTANT_HOME": str(there)})
    config = chosen(there, "tiny:1b", persona="ben")
    assert config == replace(before, llm="tiny:1b", profile="tiny", dtype=",float32", origins=config.origins)
    assert chosen(there, "tiny:1b", dtype="int4").dtype == "int4", "as it was asked for at the start"
    assert chosen(there, "same.gguf").llm == str(there / "b" / "same.gguf"), "a name that two have says nothing"
    assert chosen(there, str(there / "d" / "one.gguf")).llm == str(there / "d" / "one.gguf")
    fetched = chosen(there, "Qwen--Qwen3.5-0.8B", "desk-16", llm=str(there / "a" / "tiny-1b"))
    assert (fetched.dtype, fetched.profile) == ("int4,float8", "desk-16"), "each as its profile has it"


def test_what_does_not_run_or_has_no_room_is_refused_in_a_sentence(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, code in (("nobody", "model_not_found"), ("half:1b", "model_does_not_run"), (SHIPPED, "model_answers")):
        with pytest.raises(PeerError) as refused:
            chosen(there, name)
        assert refused.value.code == code
    monkeypatch.setattr("assistant.base.memory.available_bytes", lambda: GIB // 2)
    assert chosen(there, "tiny:1b").llm == "tiny:1b", "the present one makes room"
    needs = {there / "a" / "tiny-1b": 9 * GIB}
    monkeypatch.setattr(chooser, "verdict", lambda path, positions, bits: Verdict("runs", needs.get(path, GIB)))
    with pytest.raises(PeerError, match=r"needs 9\.7 GB, and 1\.6 GB are free once the present model is gone"):
        chosen(there, "tiny:1b")
    rows = {one["name"]: one for one in models_at(there)[0].overview()["here"]}
    assert not rows["tiny:1b"]["runs"] and rows[SHIPPED]["answers"] and rows["half:1b"]["told"].startswith("1 of 9")


def test_what_a_profile_packs_into_four_bits_is_judged_and_held_so(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixture = model_folder(there / "models", PROFILES["laptop-35b"].llm)
    mixture.mkdir()
    both = [FoundModel(mixture.name, OURS, mixture, 72 * GIB), FoundModel("mix:35b", OLLAMA, there / "a" / "x", GIB)]
    (there / "a" / "x").write_bytes(b"GGUF")
    monkeypatch.setattr(chooser, "known_models", lambda models: both)
    monkeypatch.setattr(chooser, "verdict", lambda path, positions, bits: Verdict("runs", bits * GIB))
    monkeypatch.setattr("assistant.base.memory.available_bytes", lambda: 0)
    rows = {one["name"]: one["needs_bytes"] for one in models_at(there)[0].overview()["here"]}
    assert (rows[mixture.name], rows["mix:35b"]) == (4 * GIB, 8 * GIB)
    assert chosen(there, mixture.name).dtype == "int4,float32"
    four = model_folder(there / "models", PROFILES["desk"].llm)
    four.mkdir()
    both.append(FoundModel(four.name, OURS, four, 9 * GIB))
    assert chosen(there, four.name).dtype == "int4,float32", "as the profile that needs the least"


def test_each_repository_is_offered_once_and_only_with_the_shipped_voice(there: Path) -> None:
    models, _ = models_at(there)
    offers = {one["repo"]: one for one in models.overview()["offers"]}
    assert set(offers) == {profile.llm for profile in PROFILES.values() if profile.llm and not profile.tts}
    small, medium = offers["Qwen/Qwen3.5-0.8B"], offers["Qwen/Qwen3.5-2B"]
    assert small["fits"] and not medium["fits"] and small["memory"] == "4 GiB of free memory"
    assert small["licence"] == "Apache-2.0" and small["bytes"] == 1_800_000_000 and small["begun_bytes"] == 0
    with pytest.raises(PeerError, match="'enormous' cannot be fetched; choose from laptop"):
        models.fetch_model("enormous")
