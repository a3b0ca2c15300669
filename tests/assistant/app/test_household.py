"""The store of a home: taken over from older talks, refused to a second program, told on the loudspeaker."""

import asyncio
import datetime as dt

import numpy as np
import pytest

from assistant.app.household import STORE, open_household, speaks_aloud
from assistant.base.errors import AssistantError
from assistant.tools.home import HomeRows
from assistant.tools.kept import Kept
from capsules.journal import Journals
from tests.assistant.tools.test_home import FRIDAY, talk
from tests.fakes.loop import run
from tests.fakes.models import FakeTTS

OLD = {
    "conv_1": {
        "list shopping": [[1, "milk", "", None, ""], [2, "Tea", "", None, ""]],
        "timer": [[3, "3 hours", "roast", "2026-11-20T20:00:00+01:00", "Your roast timer is done."]],
        "alarm": [[4, "7:00 am", "", "2026-11-20T07:00:00+01:00", "It is 7:00 am."]],
        "reminder": [
            [5, "call Anna, at 9 pm", "", "2026-11-20T21:00:00+01:00", "Remember: call Anna."],
            [6, "eat, at noon", "", None, "Remember: eat."],
        ],
    },
    "conv_2": {"list shopping": [[1, "tea", "", None, ""]], "note": [[2, "a note", "", None, ""]]},
    "conv_3": {"alarm": [["damaged"]]},
}


def opened(folder, home):
    told, talks = [], folder / "talks"
    talks.mkdir(exist_ok=True)
    open_household(home, folder, Journals(talks), told.append)
    return told


def test_what_talks_stored_is_taken_over_once_and_nothing_is_removed(tmp_path, caplog):
    journals = Journals(tmp_path / "talks")
    (tmp_path / "talks").mkdir()
    for name, slots in OLD.items():
        journals.open(name).put("kept", slots)
        journals.close(name)

    async def play():
        home = HomeRows(tmp_path / STORE, lambda: FRIDAY)
        told = opened(tmp_path, home)
        assert told == [
            "6 timers, alarms, reminders and list entries of earlier talks now belong to the home",
            "over since an earlier talk: alarm, 7:00 am",
        ]
        tools = talk(home)
        expected = {
            "list_read": "milk, Tea", "list_timers": "roast, 2 hours", "list_alarms": "no alarm is set",
            "list_reminders": "call Anna, at 9 pm", "note_read": "eat, at noon; a note",
        }  # fmt: skip
        for name, answer in expected.items():
            assert (await tools.call(name, "{}")).text == answer
        home.close()
        again = HomeRows(tmp_path / STORE, lambda: FRIDAY)
        assert opened(tmp_path, again) == []
        assert (await talk(again).call("list_read", "{}")).text == "milk, Tea"
        again.close()

    run(play())
    for name, slots in OLD.items():
        assert journals.open(name).table("kept") == slots
    assert "conv_3" in caplog.text


def test_a_second_program_is_named_and_a_damaged_store_is_not_opened(tmp_path):
    async def play():
        first, second = (HomeRows(tmp_path / STORE, lambda: FRIDAY) for _ in range(2))
        assert opened(tmp_path, first) == []
        [told] = opened(tmp_path, second)
        assert "another program (process" in told and "not here" in told
        first.close()
        (tmp_path / STORE).write_text("{")
        with pytest.raises(AssistantError, match="move it away"):
            opened(tmp_path, HomeRows(tmp_path / STORE, lambda: FRIDAY))

    run(play())


def test_words_are_said_on_the_loudspeaker_and_a_lost_one_is_tried_again():
    played = []

    async def play(sound):
        pcm = [block async for block in sound]
        played.append(sum(block.size for block in pcm))
        return len(played) > 1

    async def ring():
        begin = asyncio.get_running_loop().time()
        home = HomeRows(
            now=lambda: FRIDAY + dt.timedelta(seconds=asyncio.get_running_loop().time() - begin),
            aloud=speaks_aloud(FakeTTS(speed=10.0), "ada", play),
        )
        kept = Kept(home)
        await talk(home).call("set_timer", '{"duration": "5 seconds"}')
        await asyncio.sleep(30)
        assert not kept.promises("timer")

    run(ring())
    assert len(played) == 2 and np.min(played) > 0
