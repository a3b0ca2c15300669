"""What Whisper's file decides by itself: words out of timed parts, what is expected, the language, what a folder is."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from assistant.asr import open_asr
from assistant.asr.whisper import FILES, SURE_S, Whisper, WhisperFollower
from assistant.base.errors import SettingError

RATE = 16_000


class Scripted:
    """faster-whisper's model, as far as it is called: says `parts`, 0.2 s each, and keeps what it was asked."""

    def __init__(self, parts: list[str], multilingual: bool = True, logprob: float = -0.1) -> None:
        self.model = SimpleNamespace(is_multilingual=multilingual)
        self.supported_languages = ["en", "de"]
        self.parts, self.logprob = parts, logprob
        self.asked: list[dict[str, Any]] = []

    def transcribe(self, sound: np.ndarray, **options: Any) -> tuple[Any, Any]:
        self.asked.append(options)
        words = [
            SimpleNamespace(word=p, start=n / 5, end=n / 5 + 0.2, probability=0.5) for n, p in enumerate(self.parts)
        ]
        text = "".join(self.parts)
        segment = SimpleNamespace(
            seek=0, words=words, text=text, tokens=list(range(len(words))), avg_logprob=self.logprob
        )
        return iter([segment]), SimpleNamespace(language=options["language"] or "zh")


def heard(model: Scripted, seconds: float = 2.0) -> WhisperFollower:
    follower = WhisperFollower(Whisper(model, "whisper scripted"))
    follower.hear(np.full(int(seconds * RATE), 0.1, np.float32))
    follower.read(whole=True)
    return follower


@pytest.mark.parametrize(
    ("parts", "written"),
    [
        ([" It", " was", " the", " best", "-of", "..."], ["It", "was", "the", "best-of..."]),
        (["你好", "，", "世界", "。"], ["你好，世界。"]),
        ([" ...", " So", " ,", " yes"], ["So,", "yes"]),
    ],
)
def test_what_begins_with_no_space_belongs_to_the_word_before(parts: list[str], written: list[str]) -> None:
    words = heard(Scripted(parts)).end().words
    assert [word.text for word in words] == written
    assert words[-1].end_ms == pytest.approx(200 * len(parts))


def test_words_count_from_the_beginning_though_the_utterance_was_cut() -> None:
    words = heard(Scripted([" one", " two"]), 50.0).end().words
    assert [word.text for word in words] == ["one", "two"] * (len(words) // 2) and len(words) >= 4
    assert all(b.start_ms >= a.start_ms for a, b in pairwise(words))
    assert words[2].start_ms > 19_000


def test_a_language_is_kept_once_there_is_sound_enough_and_forgotten_with_the_utterance() -> None:
    model = Scripted([" x"])
    follower = heard(model, SURE_S)
    follower.read(whole=True)
    follower.end()
    follower.hear(np.full(RATE, 0.1, np.float32))
    follower.read(whole=True)
    assert [options["language"] for options in model.asked] == [None, "zh", None]
    follower.end()
    for told in ("de-AT", "xx", "en", None):
        follower.listen_in(told)
        follower.hear(np.full(RATE, 0.1, np.float32))
        follower.read(whole=True)
        follower.end()
    assert [options["language"] for options in model.asked[3:]] == ["de", None, "en", None]
    english = Scripted([" x"], multilingual=False)
    assert heard(english).facts.languages == ("en",) and english.asked[0]["language"] == "en"


def test_expected_words_reach_it_and_no_doubtful_text_counts_as_speech() -> None:
    model = Scripted([" mumble"], logprob=-3.0)
    follower = heard(model)
    assert follower.end().speech is False
    follower.expect(["Mirela", "", " a\n b\0"])
    follower.hear(np.full(RATE, 0.1, np.float32))
    follower.read(whole=True)
    follower.expect(())
    follower.read(whole=True)
    assert [options["hotwords"] for options in model.asked] == [None, "Mirela, a b", None]


def test_a_damaged_folder_is_told(tmp_path: Path) -> None:
    pytest.importorskip("faster_whisper", reason="not installed; pip install 'voice-assistant[whisper]'")
    for name in FILES:
        (tmp_path / name).write_text("{}")
    with pytest.raises(SettingError, match="cannot be loaded as Whisper"):
        open_asr(str(tmp_path))
