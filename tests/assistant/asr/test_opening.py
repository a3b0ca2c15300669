"""Which ears `auto` takes: the best fetched size that keeps up by a timed pass, else what is shipped."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assistant import asr
from assistant.asr import FOLDERS, open_asr, streaming
from assistant.asr.local import LocalASR
from assistant.asr.rehearsal import KEEPS_UP, SOUND_S, keeps_up, pass_s
from assistant.asr.streaming import size_of
from assistant.base.errors import SettingError
from assistant.contracts import ASR
from tests.fakes.models import FAKE_EARS, FakeEars, FakeTranscriber


@pytest.mark.parametrize(
    ("fetched", "taken", "told"),
    [
        ({"medium": 200, "small": 100}, "medium", ["medium hears: 200 ms"]),
        ({"medium": 300, "small": 100}, "small", ["medium is too slow here: 300 ms", "small hears: 100 ms"]),
        ({"medium": None, "tiny": 240}, "tiny", ["fetched ears are passed over: damaged", "tiny hears: 240 ms"]),
        ({"small": 260}, "moonshine tiny", ["small is too slow here: 260 ms"]),
        ({}, "moonshine tiny", []),
    ],
)
def test_auto_takes_the_best_that_keeps_up(
    fetched: dict[str, int | None], taken: str, told: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def open_folder(folder: Path) -> ASR:
        if fetched[folder.name] is None:
            raise SettingError("damaged")
        return LocalASR(replace(FAKE_EARS, name=folder.name), FakeEars().transcriber)

    def timed(ears: ASR) -> tuple[bool, str]:
        ms = fetched[ears.name] or 0
        return ms <= 250, f"{ms} ms"

    monkeypatch.setattr(streaming, "open_asr", open_folder)
    monkeypatch.setattr(asr, "keeps_up", timed)
    for name in fetched:
        (tmp_path / name).mkdir()
        (tmp_path / name / "streaming_config.json").touch()
    lines: list[str] = []
    assert open_asr("auto", lines.append, [tmp_path / name for name in fetched]).name == taken
    assert lines == told


def test_the_shortest_pass_over_three_seconds_counts_and_nothing_is_left() -> None:
    class Slow(FakeTranscriber):
        """A minute to warm up, and disturbed once."""

        now, heard, costs = 0.0, 0, iter((60.0, 0.4, 0.2, 0.3))

        def push(self, pcm: np.ndarray) -> None:
            self.heard += pcm.size

        def pause(self):
            assert self.heard == SOUND_S * 16_000
            self.now += next(self.costs)

        def reset(self) -> None:
            self.heard = 0

    slow = Slow(FakeEars())
    assert pass_s(slow, lambda: slow.now) == pytest.approx(0.2) and slow.heard == 0
    fits, told = keeps_up(LocalASR(FAKE_EARS, FakeEars().transcriber))
    assert fits and f"{SOUND_S * KEEPS_UP * 1000:.0f} are allowed" in told


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("small-streaming-en", "small"),
        ("moonshine-ai--moonshine-voice-assets--medium", "medium"),
        ("medium-streaming-en/quantized_26_07_30", "medium"),
        ("tiny_streaming", "tiny"),
        ("mine", "small"),
    ],
)
def test_a_folders_name_says_which_size_it_is(name: str, size: str, tmp_path: Path) -> None:
    assert size_of(tmp_path / "around" / name) == size


def test_a_folder_that_is_no_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="does not contain a supported model") as refused:
        open_asr(str(tmp_path))
    assert all(telling in str(refused.value) for telling in FOLDERS)
    (tmp_path / "streaming_config.json").touch()
    with pytest.raises(SettingError, match="is not a Moonshine streaming model"):
        open_asr(str(tmp_path))
    (tmp_path / "streaming_config.json").rename(tmp_path / "model.bin")
    with pytest.raises(SettingError, match=r"is not a Whisper model .*: config\.json, tokenizer\.json missing"):
        open_asr(str(tmp_path))
    with pytest.raises(SettingError, match="there are no ears 'whisper'"):
        open_asr("whisper")
    for name in streaming.FILES:
        (tmp_path / name).write_bytes(b"no graph")
    with pytest.raises(SettingError, match="cannot be loaded as Moonshine small"):
        open_asr(str(tmp_path))
