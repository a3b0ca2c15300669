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


@pytest.mark.parametrize("damage", [Path.unlink, lambda model: model.write_bytes(model.read_bytes()[:30_000])])
def test_a_model_that_is_gone_or_damaged_leaves_the_others(tmp_path: Path, caplog, damage) -> None:
    """The package's library would end the process."""
    found = wake_words.importlib.util.find_spec("pymicro_wakeword")
    for kind in ("json", "tflite"):
        shutil.copy(Path(found.origin).parent / f"models/hey_jarvis.{kind}", tmp_path / f"you.{kind}")
    about = json.loads((tmp_path / "you.json").read_text()) | {"wake_word": "Hey you", "model": "you.tflite"}
    (tmp_path / "you.json").write_text(json.dumps(about))
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
