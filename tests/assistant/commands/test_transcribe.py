"""`assistant transcribe`: recordings to text, subtitles and JSON; what cannot be read is told and the rest is done."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assistant.asr.moonshine import shipped_weights
from assistant.base.errors import EngineFailed
from assistant.base.pcm import wav_bytes
from assistant.cli import main
from tests.fakes.models import FakeEars

RATE = 16_000


@pytest.fixture
def ears(monkeypatch, tmp_path) -> FakeEars:
    """Fake ears behind the command; `opened` are the settings they were opened with."""
    fake = FakeEars()
    fake.opened = []

    def open_ears(config, report):
        fake.opened.append(config.asr)
        return fake

    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("assistant.app.ears.open_ears", open_ears)
    return fake


@pytest.fixture
def memo(ears, tmp_path) -> Path:
    """Two stretches of speech."""
    path = tmp_path / "memo.wav"
    sound = [ears.spoken("buy milk", 1.0), np.zeros(RATE, np.float32), ears.spoken("call anna", 0.8)]
    path.write_bytes(wav_bytes(np.concatenate(sound), RATE))
    return path


def test_text_is_a_line_for_each_stretch(ears, memo, capsys):
    assert main(["transcribe", str(memo)]) == 0
    told = capsys.readouterr()
    assert told.out == "buy milk\ncall Anna\n" and told.err == "" and ears.opened == ["auto"]


def test_subtitles_and_json(ears, memo, tmp_path, capsys):
    assert main(["transcribe", str(memo), "--format", "srt", "--asr", "moonshine"]) == 0
    assert capsys.readouterr().out.startswith("1\n00:00:00,000 --> 00:00:01,") and ears.opened == ["moonshine"]
    out = tmp_path / "memo.vtt"
    assert main(["transcribe", str(memo), "--format", "vtt", "--out", str(out)]) == 0
    assert out.read_text().startswith("WEBVTT\n\n00:00:00.000") and capsys.readouterr().out == ""
    ears.facts = replace(ears.facts, word_times=True)
    assert main(["transcribe", str(memo), "--format", "json"]) == 0
    [file] = (found := json.loads(capsys.readouterr().out))["files"]
    assert (found["engine"], file["seconds"], file["text"]) == ("fake", 2.8, "buy milk call Anna")
    first, second = file["segments"]
    assert first["confidence"] == 0.9 and first["words"][1] == {"text": "milk", "start": 0.1, "end": 0.19}
    assert second["words"][0]["start"] == second["start"] == pytest.approx(1.75, abs=0.07)


def test_bad_files_are_told_before_the_ears_open_and_the_rest_is_done(ears, memo, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("no sound")
    bad = [str(tmp_path / "notes.txt"), str(tmp_path / "gone.wav"), str(tmp_path)]
    assert main(["transcribe", *bad]) == 1 and ears.opened == []
    text, gone, folder = capsys.readouterr().err.splitlines()
    assert text.startswith(f"{bad[0]} cannot be read as sound") and gone == f"there is no file {bad[1]}"
    assert folder == f"{bad[2]} cannot be read as sound (it is a folder); name a WAV, FLAC, OGG or MP3 file"
    assert main(["transcribe", bad[0], str(memo), bad[1], str(memo)]) == 1
    told = capsys.readouterr()
    assert told.out == f"==> {memo} <==\nbuy milk\ncall Anna\n" * 2 and len(told.err.splitlines()) == 2


def test_a_failure_costs_its_file(ears, memo, monkeypatch, capsys):
    calls = []

    def final(self):
        calls.append(self)
        raise EngineFailed("http://ears/v1 is gone")

    monkeypatch.setattr("tests.fakes.models.FakeTranscriber.final", final)
    assert main(["transcribe", str(memo), str(memo)]) == 1
    assert capsys.readouterr().err.splitlines() == ["http://ears/v1 is gone"] * 2 and len(calls) == 2


def test_what_cannot_be_written_is_told_first(ears, memo, tmp_path, capsys):
    assert main(["transcribe", str(memo), "--out", str(tmp_path)]) == 1
    assert main(["transcribe", str(memo), str(memo), "--format", "srt"]) == 1
    assert "is a folder" in (told := capsys.readouterr().err) and "once for each file" in told
    assert ears.opened == []


@pytest.mark.slow
def test_only_the_ears_are_loaded(tmp_path):
    clip = shipped_weights().parent / "beckett.wav"
    code = (
        "import sys; from assistant.cli import main; status = main(['transcribe', sys.argv[1]]);"
        "print(status, sorted({'torch', 'transformers', 'llm_engine', 'tts_engine'} & set(sys.modules)))"
    )
    env = os.environ | {"ASSISTANT_HOME": str(tmp_path)}
    out = subprocess.run([sys.executable, "-c", code, clip], capture_output=True, text=True, env=env, check=True)
    *text, last = out.stdout.splitlines()
    assert last == "0 []" and len(" ".join(text).split()) > 10


@pytest.mark.slow
def test_ctrl_c_stops_it(tmp_path):
    clip = shipped_weights().parent / "two_cities.wav"
    env = os.environ | {"ASSISTANT_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    hears = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "  # in the background too
    run = f"{hears}from assistant.cli import run_and_exit; sys.argv[0] = 'assistant'; run_and_exit()"
    command = [sys.executable, "-c", run, "transcribe", *[str(clip)] * 50]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout.readline().startswith("==>")  # it is at work
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
    assert process.returncode == 130 and told == "stopped.\n"


def test_a_full_disk_is_one_sentence(ears, memo, capsys):
    assert main(["transcribe", str(memo), "--out", "/dev/full"]) == 1
    assert capsys.readouterr().err == "assistant: /dev/full could not be written: No space left on device\n"
