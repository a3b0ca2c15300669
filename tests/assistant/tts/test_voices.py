"""A voice that stays: designed once or given as a recording, the same at every start; what cannot be one is refused."""

import asyncio
import hashlib
import json
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest
import torch

from assistant.app.voices import KeptVoices
from assistant.base.errors import PeerError
from assistant.cli import main
from assistant.device.deployment import Deployment
from assistant.device.thread import EngineThread
from assistant.personas import read_persona
from assistant.tts.local import LocalTTS, VoiceOptions
from assistant.tts.recording import open_recording
from assistant.tts.voice_folder import VoiceFolder
from assistant.tts.voices import load_voices
from capsules import ExecContext
from capsules.registry import Budgets, Registry
from tests.fakes.recordings import hostile, recorded
from tests.tts_engine.miniature import write_miniature
from tts_engine.engine import HiggsTTS
from tts_engine.voice_file import read_voice_file

SAID = "This is how I speak."
TINY = Path(__file__).parents[3] / "tts_engine/tiny"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_miniature(tmp_path_factory.mktemp("model") / "mini")


@pytest.fixture(scope="module")
def higgs(model):
    return HiggsTTS.load(model, ExecContext("cpu"), max_positions=1024)


@pytest.fixture(scope="module")
def ten_bad(tmp_path_factory):
    return hostile(tmp_path_factory.mktemp("bad"))


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def registry(higgs, disk=None):
    budgets = Budgets(host_bytes=1 << 28, disk_bytes=1 << 28 if disk else 0)
    return Registry.standard(higgs._ctx, budgets, lambda: 0.0, disk)


def spoken(voices, higgs, play):
    """`play(tts)` over a local voice that runs."""
    thread = EngineThread()
    tts = LocalTTS(
        Deployment(higgs._ctx, thread, voices._registry), higgs, voices, "mini", VoiceOptions(spoken=lambda text: text)
    )

    async def inside():
        thread.start()
        try:
            return await asyncio.wait_for(play(tts), 120)
        finally:
            thread.stop()
            await asyncio.to_thread(thread.join)

    return asyncio.run(inside())


async def say(tts, voice, text="Good morning."):
    async with aclosing(tts.speak(f"talk {voice}", voice, "p", text)) as sounds:
        return np.concatenate([sound.pcm async for sound in sounds])


@pytest.mark.slow
def test_each_persona_has_a_voice_of_its_own_that_is_designed_once(model, higgs, tmp_path):
    async def first(tts):
        assert tts.voices == ("own",)
        for name in ("ada", "ben"):
            await tts.warm(name)
        made = {path.name: path.read_bytes() for path in (tmp_path / "voices").iterdir()}
        await tts.warm("ada")
        assert {path.name: path.read_bytes() for path in (tmp_path / "voices").iterdir()} == made
        return tts.voices, [await say(tts, name) for name in ("ada", "ben")], made

    async def again(tts):
        return [await say(tts, name) for name in ("ada", "ben")]

    names, sounds, made = spoken(load_voices(higgs, model, registry(higgs), tmp_path / "voices"), higgs, first)
    assert names == ("ada", "ben") and set(made) == {"ada.safetensors", "ben.safetensors"}
    assert not np.array_equal(*(sound[:4800] for sound in sounds))
    later = spoken(load_voices(higgs, model, registry(higgs), tmp_path / "voices"), higgs, again)
    assert all(np.array_equal(one, other) for one, other in zip(sounds, later, strict=True))
    elsewhere = load_voices(higgs, model, registry(higgs), tmp_path / "elsewhere")
    elsewhere.design("ben")  # the same seed for the same name, whichever came first
    assert (tmp_path / "elsewhere/ben.safetensors").read_bytes() == made["ben.safetensors"]


START = """
import sys
from pathlib import Path
import torch
from tests.assistant.tts.test_voices import sounds_at_a_start
from capsules import ExecContext
from tts_engine.engine import HiggsTTS
torch.set_num_threads(1)
model, home = map(Path, sys.argv[1:])
print(sounds_at_a_start(HiggsTTS.load(model, ExecContext("cpu"), max_positions=1024), model, home))
"""


def sounds_at_a_start(higgs, model, home):
    """Codes and samples of a designed and a given voice, as digests."""
    capsules = registry(higgs, home / "capsules")
    voices = load_voices(higgs, model, capsules, home / "voices")
    voices.design("ada")
    found = []
    for name in ("ada", "mine"):
        sound = torch.cat(list(higgs.speak("Good morning to you.", voices[name])))
        found.append((name, voices[name].key, hashlib.sha256(sound.numpy().tobytes()).hexdigest()))
    capsules.flush()
    return found


@pytest.mark.slow
def test_two_processes_speak_with_the_same_codes_and_the_same_samples(model, higgs, home, tmp_path):
    recording = recorded(tmp_path / "mine.wav")
    assert main(["voice", "add", "mine", str(recording), "--transcript", SAID, "--tts", str(model)]) == 0
    torch.set_num_threads(1)
    here = sounds_at_a_start(higgs, model, home)
    there = subprocess.run([sys.executable, "-c", START, model, home], capture_output=True, text=True, check=False)
    assert there.stdout.strip() == str(here), there.stderr


def test_a_recording_becomes_a_voice_by_command_and_goes_again(model, home, tmp_path, capsys):
    recording = recorded(tmp_path / "mine.wav", rate=44_100)
    flags = ["--tts", str(model)]
    assert main(["voice", "add", "mine", str(recording), "--transcript", f" {SAID}\n", *flags]) == 0
    told = capsys.readouterr()
    assert SAID in told.out and "agrees" in told.err
    path = home / "voices/mine.safetensors"
    assert path.stat().st_mode & 0o077 == 0 and [one.name for one in path.parent.iterdir()] == [path.name]
    file = read_voice_file(path)
    assert (file.origin, file.voice.transcript, file.voice.codes.shape) == ("given", SAID, (8, 125))
    assert main(["voice", "ls", *flags]) == 0
    assert "a recording" in capsys.readouterr().out

    assert main(["voice", "add", "mine", str(recording), "--transcript", "No.", *flags]) == 1
    assert "there is a voice 'mine'" in capsys.readouterr().err and read_voice_file(path).voice.transcript == SAID
    assert main(["voice", "add", "mine", str(recording), "--transcript", "Yes.", "--replace", *flags]) == 0
    assert read_voice_file(path).voice.transcript == "Yes."
    assert main(["voice", "rm", "yours", *flags]) == 1
    assert "there is no voice 'yours'; choose from mine" in capsys.readouterr().err
    assert main(["voice", "rm", "mine", *flags]) == 0 and not path.exists()


def test_a_running_model_finds_what_was_added_and_speaks_on_with_what_was_removed(model, higgs, tmp_path):
    folder = VoiceFolder(model, tmp_path / "voices")
    voices = load_voices(higgs, model, registry(higgs), tmp_path / "voices")

    async def story(tts):
        made = folder.add("mine", open_recording(recorded(tmp_path / "mine.wav")), SAID)
        assert (made.seconds, tts.voices) == (5.0, ("mine",))
        sound = await say(tts, "mine")
        assert np.array_equal(sound, await say(tts, None))
        folder.remove("mine")
        assert tts.voices == ("own",) and voices["mine"].codes is not None
        with pytest.raises(KeyError):
            voices["nobody"]
        return sound

    sound = spoken(voices, higgs, story)
    codes = voices["mine"].codes
    assert torch.equal(codes, higgs.voice(tmp_path / "mine.wav", SAID).codes)  # as the engine itself encodes it
    assert np.array_equal(sound, torch.cat(list(higgs.speak("Good morning.", voices["mine"]))).numpy())


def test_a_voice_in_use_is_not_removed_but_told(model, tmp_path):
    personas = {"eve": read_persona("eve", 'instructions = "You are Eve."', "eve.toml")}
    voices = KeptVoices(VoiceFolder(model, tmp_path), personas, ears=lambda: None, talking=lambda: ["eve", "mine"])
    recording = recorded(tmp_path / "r.wav")
    for name, users in (("eve", "the persona eve, a talk that is open"), ("mine", "a talk that is open")):
        voices.add(name, recording, SAID)
        with pytest.raises(PeerError, match=f"{name} is in use by {users}") as refused:
            voices.remove(name)
        assert refused.value.code == "voice_in_use" and (tmp_path / f"{name}.safetensors").exists()
        voices.remove(name, anyway=True)
    assert voices.listing() == []


def test_recordings_that_cannot_be_voices_are_refused_in_words_and_change_nothing(model, ten_bad, home, capsys):
    assert len(ten_bad) >= 10
    for what, (path, said) in ten_bad.items():
        assert main(["voice", "add", "mine", str(path), "--transcript", SAID, "--tts", str(model)]) == 1, what
        told = capsys.readouterr().err.splitlines()
        assert len(told) == 2 and said in told[1] and "Traceback" not in told[1], (what, told)
    assert not (home / "voices").exists()


@pytest.mark.parametrize("name", ["", "../ada", "Ada", "a b", "a" * 41, "-a", "ada.safetensors", "ädä", "a\n"])
def test_names_are_checked(model, tmp_path, name):
    with pytest.raises(PeerError, match="a voice cannot be called"):
        VoiceFolder(model, tmp_path).check_new(name)


def test_words_are_checked(model, tmp_path):
    recording = open_recording(recorded(tmp_path / "r.wav"))
    for words, said in ((" \n", "no words were heard"), ("a " * 600, "too long")):
        with pytest.raises(PeerError, match=said):
            VoiceFolder(model, tmp_path).add("mine", recording, words)
    assert list(tmp_path.glob("*.safetensors")) == []


def test_damaged_files_and_those_of_another_codec_are_left_out(model, tmp_path, caplog):
    folder = VoiceFolder(model, tmp_path)
    folder.add("good", open_recording(recorded(tmp_path / "r.wav")), SAID)
    whole = (tmp_path / "good.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-9])
    (tmp_path / "pickle.safetensors").write_bytes(b"\x80\x04]\x94.")
    (tmp_path / "large.safetensors").write_bytes(whole + bytes(2 << 20))
    (tmp_path / "other.safetensors").write_bytes(whole.replace(folder.codec.encode(), b"0" * 32))
    for _ in range(2):  # each is told once
        assert [one.name for one in folder.listing()] == ["good"]
    assert len(caplog.records) == 4 and "another voice model" in caplog.text


def test_a_model_with_voices_of_its_own_says_that_it_takes_no_recordings(home, tmp_path, capsys):
    recording = recorded(tmp_path / "r.wav")
    assert main(["voice", "add", "mine", str(recording), "--transcript", SAID, "--profile", "tiny"]) == 1
    assert "ada, ben and imitates no others. Higgs Audio v3 takes them" in capsys.readouterr().err
    assert main(["voice", "rm", "ada", "--profile", "tiny"]) == 1
    assert "is the model's own and" in capsys.readouterr().err
    assert main(["voice", "ls", "--profile", "tiny"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in json.loads((TINY / "voices.json").read_text()))
    assert main(["voice", "ls", "--tts", "http://127.0.0.1:1/v1"]) == 1
    assert "keeps its own voices" in capsys.readouterr().err
