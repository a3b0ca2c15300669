"""The store of a home: kept over restarts and kills, shared by talks, and told when it is due, however clocks jump."""

import asyncio
import datetime as dt
import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from zoneinfo import ZoneInfo

import pytest

from assistant.tools import home as home_module
from assistant.tools.builtin import BuiltinTools, builtin_tools
from assistant.tools.errors import AnswerError
from assistant.tools.home import HomeRows, HomeTaken
from assistant.tools.kept import Kept
from assistant.tools.moments import Moment, read_moment
from assistant.tools.rows import ALARMS, NOTES, REMINDERS, TIMERS, Promise, composed, from_cells
from assistant.tools.wall import LocalZone, later, naive, seconds_between
from tests.assistant.tools.test_moments import FRIDAY, ZONES, random_text
from tests.fakes.loop import run

SHOPPING = "list shopping"


class Wall:
    """A wall clock beside the loop's: it goes with it, and may be put forward or back."""

    def __init__(self, begin=FRIDAY):
        self._begin, self.jumped = begin, 0.0

    def __call__(self):
        return later(self._begin, asyncio.get_running_loop().time() + self.jumped)


class Front:
    takes_rings = True

    def __init__(self, listens=True):
        self.listens, self.said = listens, []

    def say(self, text):
        self.said.append((round(asyncio.get_running_loop().time(), 3), text))
        return True


def talk(home, front=None, passing=False):
    """The tools of one talk over the home."""
    kept = Kept(home, passing=lambda: passing)
    if front is not None:
        kept.connect(front)
    return builtin_tools(BuiltinTools(kept, home.now, {}, lambda: "ada"))


async def call(tools, name, **arguments):
    return await tools.call(name, json.dumps(arguments))


async def answer(tools, name, **arguments):
    return (await call(tools, name, **arguments)).text


def test_talks_share_the_home_and_an_undo_takes_back_one_talks_effect():
    async def play():
        home = HomeRows(now=Wall())
        one, two = talk(home), talk(home)
        await call(one, "list_add", items="tea")
        milk = (await call(one, "list_add", items="milk; eggs")).changes
        await call(two, "list_add", items="bread")
        await call(two, "list_remove", items="eggs")
        assert await answer(one, "list_read") == await answer(two, "list_read") == "tea, milk, bread"
        timer = (await call(one, "set_timer", duration="5 minutes")).changes
        await call(two, "pause_timer")
        longer = (await call(one, "adjust_timer", to="9 minutes")).changes
        await call(two, "adjust_timer", to="2 minutes")
        assert one.kept.told(longer) == "", "the other talk has changed it since"
        assert one.kept.told(milk) == "I took milk off the shopping list."
        one.kept.put_back(milk)
        one.kept.put_back(timer)
        assert await answer(two, "list_read") == "tea, bread"
        assert await answer(two, "list_timers") == "no timer is running"
        home.close()

    run(play())


def test_all_of_it_survives_a_restart(tmp_path):
    async def play():
        wall, first = Wall(), Front()
        home = HomeRows(tmp_path / "household.json", wall)
        tools = talk(home, first)
        for name, arguments in [
            ("set_timer", {"duration": "5 minutes"}), ("set_timer", {"duration": "2 hours", "label": "tea"}),
            ("pause_timer", {"timer": "tea"}), ("set_alarm", {"time": "7 am"}),
            ("set_alarm", {"time": "every weekday at 6:30 am"}), ("note_add", {"text": "jalapeños for José"}),
            ("set_reminder", {"text": "call Anna", "time": "in 1 minute"}), ("list_add", {"items": "mac and cheese"}),
            ("set_reminder", {"text": "pay rent", "time": "on the 1st of every month at 9 am"}),
        ]:  # fmt: skip
            assert "error" not in await answer(tools, name, **arguments), name
        await asyncio.sleep(90)
        assert first.said == [(60.0, "Remember: call Anna.")]
        before = {slot: home.rows(slot) for slot in home.slots}
        home.close()
        await asyncio.sleep(9000)
        again, front = HomeRows(tmp_path / "household.json", wall), Front()
        again.open()
        assert {slot: again.rows(slot) for slot in again.slots} == before
        tools = talk(again, front)
        await asyncio.sleep(1)
        assert [said for _, said in front.said] == [
            "Your timer is done. That was due at 6:05 pm, 2 hours ago."
        ]
        assert await answer(tools, "list_timers") == "tea, 2 hours"
        assert await answer(tools, "list_alarms") == "7:00 am, tomorrow; 6:30 am, every weekday"
        assert await answer(tools, "note_read") == "jalapeños for José"
        assert await answer(tools, "list_reminders") == "pay rent, on day 1 of every month at 9 am"
        again.close()

    run(play())


CHILD = """
import asyncio, datetime as dt, sys
from pathlib import Path
from assistant.tools.home import HomeRows
from assistant.tools.kept import Kept

async def main():
    home = HomeRows(Path(sys.argv[1]))
    kept = Kept(home)
    home.open()
    print("open", flush=True)
    for n in range(100_000):
        kept.add("list shopping", f"thing {n}")
        print(n, flush=True)

asyncio.run(main())
"""


def child(path):
    return subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_kill_loses_nothing_that_was_told_and_leaves_no_lock(tmp_path):
    path, expected = tmp_path / "household.json", 0
    for round_ in range(3):
        with child(path) as process:
            assert process.stdout.readline() == "open\n"
            with pytest.raises(HomeTaken, match=str(process.pid)):
                HomeRows(path).open()
            told = [process.stdout.readline() for _ in range(5 + 7 * round_)]
            process.send_signal(signal.SIGKILL)
            told += process.stdout.readlines()
        expected += len(told)

        async def read():
            home = HomeRows(path)
            home.open()
            rows = home.rows(SHOPPING)
            home.close()
            return rows

        rows = asyncio.run(read())
        assert expected <= len(rows) <= expected + 1, "at most one was stored and not told"
        assert len({row.serial for row in rows}) == len(rows)
        expected = len(rows)


def test_a_second_program_is_told_and_goes_on_when_the_first_has_ended(tmp_path):
    async def play():
        path = tmp_path / "household.json"
        first, second = HomeRows(path, Wall()), HomeRows(path, Wall())
        first.open()
        tools = talk(second)
        result = await call(tools, "list_add", items="milk")
        assert f"process {os.getpid()}" in json.loads(result.text)["error"]
        assert result.say == "Another program has this home open. Please ask me there." and not result.changes
        assert await answer(talk(first), "list_add", items="eggs") == "eggs"
        first.close()
        assert await answer(tools, "list_add", items="milk") == "milk"
        assert await answer(tools, "list_read") == "eggs, milk"
        second.close()

    run(play())


def test_what_cannot_be_stored_is_not_promised(tmp_path, monkeypatch):
    async def play():
        home = HomeRows(tmp_path / "household.json", Wall())
        tools = talk(home)
        await call(tools, "list_add", items="tea")

        def full(*args, **how):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(home_module, "write_json", full)
        result = await call(tools, "set_timer", duration="5 minutes")
        assert "No space left" in result.text and result.say == "I could not store that."
        assert not home.rows(TIMERS) and not result.changes
        home.close()

    run(play())


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"version": 2}', '{"version": 1, "serial": 1, "slots": {"alarm": [[1, ""]]}}']
)
def test_a_file_that_is_damaged_is_not_overwritten(tmp_path, text):
    path = tmp_path / "household.json"
    path.write_text(text)
    with pytest.raises(ValueError):
        HomeRows(path).open()
    assert path.read_text() == text


def test_a_reminder_without_a_moment_is_not_a_row():
    with pytest.raises(TypeError):
        Promise(1, "call")
    for cells in ([1, "call"], [1, "call", None, "", None, None], [1, "call", "2026-11-20T18:00:00", "", None, None]):
        with pytest.raises(ValueError):
            from_cells(REMINDERS, cells, dt.UTC)
    with pytest.raises(ValueError):
        from_cells(NOTES, [1, "call", "2026-11-20T18:00:00+00:00", "", None, None], dt.UTC)


# ------------------------------------------------------------------------------------------ clocks that jump


def test_a_timer_rings_at_once_when_the_machine_wakes_and_says_how_late_it_is():
    async def play():
        wall, front = Wall(), Front()
        tools = talk(HomeRows(now=wall), front)
        await call(tools, "set_timer", duration="5 minutes", label="pasta")
        await asyncio.sleep(5)
        wall.jumped = 1800
        await asyncio.sleep(10)
        [(at, said)] = front.said
        assert at <= 6.1 and said == "Your pasta timer is done. That was due at 6:05 pm, 25 minutes ago."

    run(play())


def test_a_timer_keeps_its_length_when_the_wall_clock_is_put_back():
    async def play():
        wall, front = Wall(), Front()
        home = HomeRows(now=wall)
        tools = talk(home, front)
        await call(tools, "set_timer", duration="5 minutes")
        await call(tools, "set_alarm", time="6:10 pm")
        await asyncio.sleep(60)
        wall.jumped = -3600
        await asyncio.sleep(300)
        [(at, said)] = front.said
        assert 299 <= at <= 303 and said == "Your timer is done."
        assert naive(home.rows(ALARMS)[0].at) == dt.datetime(2026, 11, 20, 18, 10)
        home.close()

    run(play())


def test_what_was_missed_while_nobody_was_there_is_told_once_and_a_repeat_goes_on():
    async def play():
        wall, front = Wall(), Front()
        home = HomeRows(now=wall)
        tools = talk(home)
        await call(tools, "set_alarm", time="7 am")
        await call(tools, "set_reminder", text="take the pills", time="every day at 8 am")
        await asyncio.sleep(3 * 86_400 + 3600)
        talk(home, front)
        await asyncio.sleep(2)
        assert [said for _, said in front.said] == [
            "Your alarm was set for 7:00 am. That was due on Saturday, November 21 at 7:00 am, 2 days ago.",
            "Remember: take the pills. That was due on Saturday, November 21 at 8:00 am, 2 days ago.",
        ]
        assert not home.rows(ALARMS)
        assert await answer(tools, "list_reminders") == "take the pills, every day at 8 am"
        await asyncio.sleep(13 * 3600)
        assert [said for _, said in front.said][2:] == ["Remember: take the pills."]
        home.close()

    run(play())


def test_it_waits_until_nobody_speaks():
    async def play():
        front, client = Front(listens=False), Front()
        client.takes_rings = False
        home = HomeRows(now=Wall())
        tools = talk(home, front)
        home.connect(client)
        await call(tools, "set_timer", duration="1 minute")
        await asyncio.sleep(80)
        assert not front.said
        front.listens = True
        await asyncio.sleep(5)
        assert front.said == [(81.0, "Your timer is done.")] and not client.said

    run(play())


def test_with_no_front_it_rings_on_the_loudspeaker_and_is_tried_again():
    async def play():
        spoken = []

        async def aloud(words):
            await asyncio.sleep(2)
            spoken.append((asyncio.get_running_loop().time(), words))
            return len(spoken) > 1

        home = HomeRows(now=Wall(), aloud=aloud)
        await call(talk(home), "set_timer", duration="10 seconds")
        await asyncio.sleep(60)
        assert [words for _, words in spoken] == ["Your timer is done."] * 2 and not home.rows(TIMERS)

    run(play())


def test_where_nothing_can_ring_nothing_is_promised():
    async def play():
        tools = talk(HomeRows(now=Wall(), stays=False))
        for name, arguments in [
            ("set_timer", {"duration": "5 minutes"}), ("set_alarm", {"time": "7 am"}),
            ("set_reminder", {"text": "call", "time": "at 5 pm"}),
        ]:  # fmt: skip
            result = await call(tools, name, **arguments)
            assert result.say == "I cannot ring here, because this program ends with the talk."
            assert "nothing can ring here" in result.text and not result.changes
        assert await answer(tools, "list_add", items="milk") == "milk"

    run(play())


@pytest.mark.parametrize("zone", ZONES)
def test_every_promise_rings_once_and_never_early_while_clocks_jump(zone):
    rng, zone_ = random.Random(zone), ZoneInfo(zone)

    async def play():
        wall = Wall(dt.datetime.fromtimestamp(rng.randrange(1_780_000_000, 1_900_000_000), zone_))
        front, home = Front(), HomeRows(now=wall)
        kept, due = Kept(home), {}
        kept.connect(front)
        for n in range(40):
            with suppress(AnswerError):
                moment = read_moment(random_text(rng), home.now())
                if moment.repeat is None and seconds_between(home.now(), moment.at) < 40 * 86_400:
                    kept.promise(REMINDERS, f"thing {n}.", moment)
                    due[f"thing {n}."] = moment.at
            seen = len(front.said)
            if rng.random() < 0.5:
                wall.jumped += rng.choice([1800, 3600, 86_400, 7 * 3600])
            await asyncio.sleep(rng.choice([5, 60, 900, 5000]))
            for _, said in front.said[seen:]:
                name = said.removeprefix("Remember: ").split(". ")[0].rstrip(".") + "."
                assert seconds_between(due.pop(name), home.now()) >= 0, "never early"
        left = {row.text: row.at for row in kept.promises(REMINDERS)}
        assert left == due and all(seconds_between(home.now(), at) > 0 for at in left.values())
        assert len(front.said) > 3
        home.close()

    run(play())


@pytest.mark.parametrize("zone", ZONES)
def test_the_told_moment_is_the_stored_one(zone):
    """What is read from the words of the answer is what was stored, to the minute that is told."""
    rng, zone_ = random.Random(zone), ZoneInfo(zone)

    async def play():
        compared = 0
        for _ in range(120):
            begin = dt.datetime.fromtimestamp(rng.randrange(1_780_000_000, 1_900_000_000), zone_)
            home = HomeRows(now=Wall(begin.replace(second=0)))
            told = await answer(talk(home), "set_reminder", text="call", time=random_text(rng))
            if "error" in told:
                assert not home.rows(REMINDERS)
                continue
            [row] = home.rows(REMINDERS)
            words = told.removeprefix("call, ").split("; there is no")[0].split(", first ")[-1]
            meant = read_moment(words, home.now())
            skipped = "there is no" in told
            assert skipped or naive(meant.at).replace(second=0) == naive(row.at).replace(second=0), (told, row)
            assert row.repeat == meant.repeat or row.repeat.time is None, told
            compared += 1
            home.close()
        assert compared > 30

    run(play())


def test_this_machines_zone_knows_when_clocks_are_put_forward(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        zone, berlin = LocalZone(), ZoneInfo("Europe/Berlin")
        for at in range(1_760_000_000, 1_830_000_000, 1_800_017):
            one, two = (dt.datetime.fromtimestamp(at, each) for each in (zone, berlin))
            assert one.isoformat() == two.isoformat()
        found = read_moment("7 am", dt.datetime(2027, 3, 27, 22, tzinfo=zone))
        assert found.at.isoformat() == "2027-03-28T07:00:00+02:00"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_moment_is_what_a_promise_is_made_of():
    async def play():
        kept = Kept(HomeRows(now=Wall()))
        row = kept.promise(ALARMS, "", Moment(later(FRIDAY, 60)))
        assert row.at == later(FRIDAY, 60)
        kept.home.close()

    run(play())


def test_a_change_that_the_journal_never_knew_is_taken_back_when_the_talk_opens_again(tmp_path):
    """A kill between the store's write and the journal's note: the talk goes on as if the call had never been."""

    async def story():
        path = tmp_path / "household.json"
        home = HomeRows(path)
        home.open()
        kept = Kept(home)
        kept.connect(Front(), "talk")
        kept.add("list shopping", "milk")
        noted = kept.collect_changes()
        kept.add("list shopping", "eggs")
        home.close()
        for recorded, things in ((noted, ["milk"]), (noted | kept.collect_changes(), ["milk", "eggs"])):
            copy = tmp_path / f"{len(things)}.json"
            copy.write_bytes(path.read_bytes())
            again = HomeRows(copy)
            again.open()
            resumed = Kept(again)
            resumed.connect(Front(), "talk", recorded)
            assert [thing.text for thing in resumed.things("list shopping")] == things
            again.close()

    run(story())


@pytest.mark.parametrize("what", ["added", "removed"])
def test_an_undo_that_the_journal_never_knew_is_undone_and_what_was_deleted_stays(what, tmp_path):
    """A kill right behind the store's write, then the talk with what its journal holds."""

    def opened_again(recorded) -> list[str]:
        copy = tmp_path / "copy.json"
        copy.write_bytes((tmp_path / "household.json").read_bytes())
        again = HomeRows(copy)
        again.open()
        resumed = Kept(again)
        resumed.connect(Front(), "talk", recorded)
        found = [thing.text for thing in resumed.things("list shopping")]
        again.close()
        return found

    async def story():
        home = HomeRows(tmp_path / "household.json")
        home.open()
        kept = Kept(home)
        kept.connect(Front(), "talk")
        kept.add("list shopping", "milk")
        first = kept.collect_changes()
        if what == "added":
            kept.add("list shopping", "eggs")
        else:
            kept.remove("list shopping", *kept.things("list shopping"))
        latest = kept.collect_changes()
        after = ["milk", "eggs"] if what == "added" else []
        both = composed(first, latest)
        assert opened_again(both) == after
        kept.put_back(latest)
        assert [thing.text for thing in kept.things("list shopping")] == ["milk"]
        assert opened_again(both) == after, "the journal still tells of the turn"
        assert opened_again(first) == ["milk"], "the journal knows of the undo"
        kept.add("list shopping", "salt")
        noted = kept.collect_changes()
        assert opened_again(composed(first, noted)) == ["milk", "salt"]
        kept.settle()  # then the items are deleted from the talk, and what they did stays
        assert opened_again({}) == ["milk", "salt"]
        home.close()

    run(story())


def test_a_promise_says_that_it_holds_only_while_a_page_is_open():
    """Once a talk, where the machine has no loudspeaker; a page that is hidden rings by a notification."""

    async def story(aloud, pages, passing=False):
        home = HomeRows(now=Wall(), aloud=aloud, pages=pages)
        said = []
        for tools in (talk(home, passing=passing), talk(home, passing=passing)):
            for name, given in (("set_timer", {"duration": "5 minutes"}), ("set_alarm", {"time": "7 am"})):
                result = await tools.call(name, json.dumps(given))
                said.append((result.text, result.say))
        home.close()
        return said

    async def aloud(words):
        return True

    plain = [("5 minutes", None), ("7:00 am, tomorrow", None)] * 2
    assert run(story(None, False)) == run(story(aloud, True)) == plain
    bounds = "I can ring only while a page of mine is open."
    told = (f"5 minutes. {bounds}", f"Your timer is set: 5 minutes. {bounds}")
    assert run(story(None, True)) == run(story(None, True, passing=True)) == [told, plain[1]] * 2
    elsewhere = "It will sound on the computer that I run on."
    told = (f"5 minutes. {elsewhere}", f"Your timer is set: 5 minutes. {elsewhere}")
    assert run(story(aloud, False, passing=True)) == run(story(aloud, True, passing=True)) == [told, plain[1]] * 2
    assert all("has no loudspeaker" in say for _, say in run(story(None, False, passing=True)))
