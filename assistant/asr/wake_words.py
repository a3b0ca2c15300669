"""Wake words: small networks that find one phrase each, through `pymicro-wakeword` (Apache-2.0, weights inside).

The home folder may hold more, each a `.tflite` with a `.json` beside it, as microWakeWord's training writes them. One
whose `wake_word` is the title of a persona calls that persona.
"""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from assistant.base.errors import SettingError
from assistant.base.sound import HEARING_RATE, Pcm

if TYPE_CHECKING:
    from pymicro_wakeword import MicroWakeWord

BROKEN = (OSError, KeyError, ValueError, TypeError, RuntimeError)
"""Raised for a model that cannot be loaded or used."""
REHEARSED_SAMPLES = HEARING_RATE
"""A second of silence fills the window of every model that we know, so its cutoff is looked at too."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MicroWakeWords:
    """Models of one phrase each, by their files."""

    models: tuple[tuple[str, Path], ...]
    """The phrase, and the file that describes its model."""

    @property
    def words(self) -> tuple[str, ...]:
        """The phrases whose files are there."""
        return tuple(phrase for phrase, path in self.models if path.is_file())

    def spotter(self) -> MicroSpotter:
        """A model whose files are gone or damaged since the start is left out, and named in the log."""
        models = []
        for phrase, path in self.models:
            try:
                models.append((phrase, _loaded(path)))
            except BROKEN as error:
                log.warning("nothing listens for %r until %s can be loaded again: %s", phrase, path, error)
        return MicroSpotter(models)


class MicroSpotter:
    """See `NameSpotter`. All models share one spectrum."""

    def __init__(self, models: Sequence[tuple[str, MicroWakeWord]]) -> None:
        from pymicro_wakeword import MicroWakeWordFeatures

        self._models, self._features = models, MicroWakeWordFeatures()
        self._fresh = True

    def spot(self, sound: Pcm) -> str | None:
        self._fresh = False
        pcm16 = (np.clip(sound, -1.0, 1.0) * 32767).astype("<i2").tobytes()
        found = None
        for features in self._features.process_streaming(pcm16):
            for phrase, model in self._models:
                if model.process_streaming(features):
                    found = phrase
        return found

    def start_over(self) -> None:
        if not self._fresh:  # loading them anew takes 2 ms
            self._features.reset()
            for _, model in self._models:
                model.reset()
        self._fresh = True


def open_wake_words(folder: Path) -> MicroWakeWords | None:
    """The models of the package and of this folder; None where the package is missing.

    Raises SettingError for a model of the folder that cannot be used. Those of the package are not loaded yet.
    """
    found = importlib.util.find_spec("pymicro_wakeword")
    if found is None or found.origin is None:
        return None
    shipped = sorted((Path(found.origin).parent / "models").glob("*.json"))
    own = sorted(folder.glob("*.json"))
    words = MicroWakeWords(tuple((_phrase(path), path) for path in (*shipped, *own)))
    for path in own:
        try:
            MicroSpotter([("", _loaded(path))]).spot(np.zeros(REHEARSED_SAMPLES, np.float32))
        except BROKEN as error:
            raise SettingError(f"{path} describes a wake word that cannot be used: {error}") from error
    return words


def _loaded(path: Path) -> MicroWakeWord:
    """The model that this file describes. Raises one of `BROKEN`."""
    import pymicro_wakeword
    from pymicro_wakeword.wakeword import TfLiteWakeWord

    library = next(Path(pymicro_wakeword.__file__).parent.glob("lib/*tensorflowlite_c.*"), None)
    if library is None:
        raise ValueError("the package pymicro-wakeword has no library for this machine")
    model = path.parent / str(json.loads(path.read_text("utf-8"))["model"])
    # The package hands on what the library returns unseen, so a file that is no model would end the whole process.
    lite = TfLiteWakeWord(library).lib
    opened = lite.TfLiteModelCreateFromFile(str(model).encode())
    interpreter = opened and lite.TfLiteInterpreterCreate(opened, None)
    if opened:
        lite.TfLiteModelDelete(opened)
    if not interpreter:
        raise ValueError(f"{model} is not a TensorFlow Lite model that can be used, or is not there")
    lite.TfLiteInterpreterDelete(interpreter)
    return pymicro_wakeword.MicroWakeWord.from_config(path, library)


def _phrase(path: Path) -> str:
    """The phrase of a model. Raises SettingError."""
    try:
        phrase = json.loads(path.read_text("utf-8"))["wake_word"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingError(f"{path} must be JSON with a `wake_word`, as microWakeWord writes it ({error!r})") from error
    return str(phrase)
