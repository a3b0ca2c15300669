"""Parts that stay while the language model is switched, and parts that have to go."""

from pathlib import Path
from typing import Any, cast

import pytest

from assistant.app.models import _stop
from assistant.app.standing import PartSlot, Standing, StandingVoice, stamps


def test_a_part_stays_only_if_it_was_made_of_the_same() -> None:
    slot = PartSlot[str]()
    assert slot.made_of("oak") is None
    slot.fill("oak", "a table")
    assert slot.made_of("oak") == "a table" == slot.part
    assert slot.made_of("ash") is None and slot.part is None, "the old one is gone before the new one is made"
    assert slot.made_of("oak") is None


def test_another_file_of_the_same_name_is_another_model(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"one")
    before = stamps(tmp_path)
    assert stamps(tmp_path) == before == stamps(tmp_path / "model")
    (tmp_path / "model").write_bytes(b"three")
    assert stamps(tmp_path) != before


@pytest.mark.parametrize(("ended", "asleep_bytes", "stays"), [(True, 0, True), (False, 0, False), (True, 5, False)])
def test_a_voice_that_still_speaks_or_sleeps_does_not_stay(ended: bool, asleep_bytes: int, stays: bool) -> None:
    class AtWork:
        freed_bytes = asleep_bytes
        stopped = discarded = False

        def stop(self) -> None:
            self.stopped = True

        def join(self, _seconds: float) -> bool:
            assert self.stopped and not self.discarded
            return ended

        def discard(self) -> None:
            self.discarded = True

    both, standing = cast(Any, AtWork()), Standing()
    standing.voice.fill("facts", cast(StandingVoice, "a voice"))
    _stop(both, both, standing)
    assert both.discarded and (standing.voice.part is not None) is stays
