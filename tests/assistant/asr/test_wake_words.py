"""Wake words: which there are, what is said of a broken one, and that noise is none."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from assistant.asr import wake_words
from assistant.asr.wake_words import open_wake_words
from assistant.base.errors import SettingError

pytest.importorskip("pymicro_wakeword")


def own_model(folder: Path) -> Path:
    """The file that describes a model of one's own: that of "Hey Jarvis", for another phrase."""
    found = wake_words.importlib.util.find_spec("pymicro_wakeword")
    for kind in ("json", "tflite"):
        shutil.copy(Path(found.origin).parent / f"models/hey_jarvis.{kind}", folder / f"you.{kind}")
    path = folder / "you.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"wake_word": "Hey you", "model": "you.tflite"}))
    return path


def test_the_package_brings_four_and_noise_is_none_of_them(tmp_path: Path) -> None:
    found = open_wake_words(tmp_path / "wake")
    assert found is not None and set(found.words) == {"Alexa", "Hey Jarvis", "Hey Mycroft", "Okay Nabu"}
    spotter, rng = found.spotter(), np.random.default_rng(0)
    for level in (0.001, 0.1, 2.0):
        assert spotter.spot((level * rng.standard_normal(16_000)).astype(np.float32)) is None
    spotter.start_over()


@pytest.mark.parametrize("text", ["{", "[]", "{}", json.dumps({"wake_word": "Hey you", "model": "x.tflite"})])
def test_a_model_that_cannot_be_used_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "you.json").write_text(text)
    with pytest.raises(SettingError, match=str(tmp_path)):
        open_wake_words(tmp_path)


@pytest.mark.parametrize("wrong", [{"probability_cutoff": "0.97"}, {"sliding_window_size": 0}])
def test_a_model_is_tried_before_it_is_believed(tmp_path: Path, wrong: dict[str, object]) -> None:
    """The package loads these; they would fail at the first word of a talk."""
    you = own_model(tmp_path)
    about = json.loads(you.read_text())
    you.write_text(json.dumps(about | {"micro": about["micro"] | wrong}))
    with pytest.raises(SettingError, match="cannot be used"):
        open_wake_words(tmp_path)


@pytest.mark.parametrize("damage", [Path.unlink, lambda model: model.write_bytes(model.read_bytes()[:30_000])])
def test_a_model_that_is_gone_or_damaged_leaves_the_others(tmp_path: Path, caplog, damage) -> None:
    """The package's library would end the process."""
    own_model(tmp_path)
    words = open_wake_words(tmp_path)
    damage(tmp_path / "you.tflite")
    assert words.spotter().spot(np.zeros(16_000, np.float32)) is None
    assert "nothing listens for 'Hey you'" in caplog.text
    with pytest.raises(SettingError, match="tflite is not a TensorFlow Lite model"):
        open_wake_words(tmp_path)
    (tmp_path / "you.json").unlink()
    assert words.spotter() and set(words.words) == {"Alexa", "Hey Jarvis", "Hey Mycroft", "Okay Nabu"}


def test_names_alone_call_where_the_package_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_words.importlib.util, "find_spec", lambda name: None)
    assert open_wake_words(tmp_path) is None
