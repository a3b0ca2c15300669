"""What `assistant doctor` finds on a machine, and what it says to do."""

import json

import torch

from assistant import cli
from assistant.commands import doctor


def test_doctor_finds_what_this_machine_has(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    cli.main(["doctor", "--json"])
    findings = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert {"Python", "torch", "GPU", "tiny models", "microphone", "storage", "browser"} <= set(findings)
    assert findings["torch"]["verdict"] == "ok" and torch.__version__ in findings["torch"]["found"]
    assert all(finding["todo"] for finding in findings.values() if finding["verdict"] != "ok")
    doctor.print_findings([doctor.Finding("sound", "limited", "none [here]", "plug one in")])
    assert "none [here]" in (told := capsys.readouterr().out) and "plug one in" in told


def test_doctor_names_a_library_that_does_not_load():
    def load(name: str) -> None:
        if name == "soundfile":
            raise OSError("no libsndfile")

    finding = doctor.libraries(load)
    assert finding.verdict == "broken" and "soundfile (no libsndfile)" in finding.found and finding.todo


def test_doctor_sees_a_folder_that_cannot_be_used(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)
    assert doctor.storage(tmp_path / "none" / "such").verdict == "broken"


def test_doctor_offers_what_a_gpu_could_run(tmp_path):
    finding = doctor.fetched_models(tmp_path, 24 << 30)
    assert finding.todo == "assistant pull desk"
    assert doctor.fetched_models(tmp_path, 0).verdict == "limited"
