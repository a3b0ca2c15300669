"""Why a client is dropped, and what becomes of its talk."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from assistant.server import socket
from assistant.talk.conversation import item_text
from capsules.durable import EntryFile
from tests.assistant.talk.test_responses import typed
from tests.fakes.loop import run as in_virtual_time
from tests.fakes.talk import World
from tests.fakes.web import Site, Wire, run

HOLD = """
import sys
from pathlib import Path
from capsules.durable import EntryFile, read_entries
file = EntryFile(Path(sys.argv[1]), read_entries(Path(sys.argv[1])).end)
print("held", flush=True)
sys.stdin.read()
"""


async def last_words(wire: Wire) -> tuple[list[str], int | None, str | None]:
    """The codes of errors up to the end, then the close code and its reason."""
    codes = []
    while True:
        message = await asyncio.wait_for(wire.ws.receive(), 10)
        if message.type is aiohttp.WSMsgType.PING:
            continue
        if message.type != aiohttp.WSMsgType.TEXT:
            assert message.type is aiohttp.WSMsgType.CLOSE
            return codes, message.data, message.extra
        frame = json.loads(message.data)
        if frame["type"] == "error":
            codes.append(frame["error"]["code"])


def test_a_talk_that_moves_to_another_connection_says_so_to_the_first_and_is_whole_in_the_other():
    async def story(site: Site) -> None:
        async with site.wire() as first:
            await first.say("hello", "a")
            await first.until("conversation.item.done")
            async with site.wire(f"?conversation_id={first.conversation}") as second:
                assert second.conversation == first.conversation
                codes, code, why = await last_words(first)
                assert (codes, code, why) == (
                    ["conversation_moved"], socket.MOVED, "this talk goes on in another tab or program"
                )  # fmt: skip
                await second.send("response.create")
                done = await second.until("response.done")
                assert done["response"]["output"][0]["content"][0]["transcript"] == "You said hello."

    run(story)


def test_a_client_that_answers_no_ping_is_told_why_it_is_dropped(monkeypatch):
    monkeypatch.setattr(socket, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(socket, "SILENT_SECONDS", 0.3)

    async def story(site: Site) -> None:
        async with site.wire(autoping=False) as wire:
            found = []
            while True:
                message = await asyncio.wait_for(wire.ws.receive(), 10)
                if message.type is aiohttp.WSMsgType.CLOSE:
                    break
                found.append(message.type)
            assert found.count(aiohttp.WSMsgType.PING) >= 3
            assert message.data == aiohttp.WSCloseCode.POLICY_VIOLATION and "no answer to pings" in message.extra
        async with site.wire() as wire:  # this one answers
            await asyncio.sleep(0)
            reading = asyncio.ensure_future(wire.ws.receive())
            done, _ = await asyncio.wait([reading], timeout=0.6)
            assert not done
            reading.cancel()

    run(story)


def test_a_client_that_reads_nothing_finds_the_reason_behind_what_it_left_unread(monkeypatch):
    monkeypatch.setattr(socket, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(socket, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(socket, "LAST_WORD_SECONDS", 0.2)
    monkeypatch.setattr(socket, "LINGER_SECONDS", 3.0)

    async def story(site: Site) -> None:
        async with site.wire(autoping=False) as wire:
            await wire.say("x" * 60_000, "a")
            await wire.until("conversation.item.done")
            connection = wire.ws._conn
            assert connection is not None and connection.transport is not None
            connection.transport.pause_reading()
            for _ in range(200):  # more than any buffer on the way holds
                await wire.send("conversation.item.retrieve", item_id="a")
            while site.world.talks.active:
                await asyncio.sleep(0.05)
            connection.transport.resume_reading()
            _, code, why = await last_words(wire)
            assert code == aiohttp.WSCloseCode.POLICY_VIOLATION and "no answer to pings" in why

    run(story)


def test_pings_of_a_client_are_answered():
    async def story(site: Site) -> None:
        async with site.wire(autoping=False) as wire:
            await wire.ws.ping(b"there?")
            message = await asyncio.wait_for(wire.ws.receive(), 10)
            assert (message.type, message.data) == (aiohttp.WSMsgType.PONG, b"there?")

    run(story)


def held(path: Path) -> subprocess.Popen[str]:
    """Another process that has this journal open."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdout.readline() == "held\n"
    return other


def let_go(other: subprocess.Popen[str]) -> None:
    other.communicate()
    assert other.returncode == 0


def test_a_talk_that_is_open_at_another_server_is_refused_and_another_one_begun(tmp_path):
    world = World(folder=tmp_path, speed=100)

    async def story(site: Site) -> None:
        async with site.wire() as wire:
            await wire.say("hello")
            await wire.until("conversation.item.done")
            talk = wire.conversation
        while world.talks.active:
            await asyncio.sleep(0.01)
        other = held(tmp_path / f"{talk}.journal")
        before = (tmp_path / f"{talk}.journal").read_bytes()
        async with site.wire(f"?conversation_id={talk}") as wire:
            assert wire.conversation != talk
            error = (await wire.until("error"))["error"]
            assert error["code"] == "conversation_elsewhere" and "another server" in error["message"]
        assert (tmp_path / f"{talk}.journal").read_bytes() == before
        let_go(other)
        async with site.wire(f"?conversation_id={talk}") as wire:
            assert wire.conversation == talk

    run(story, world=world)


def test_what_another_server_added_meanwhile_is_found(tmp_path):
    """Both over one home, one after the other: the first still has the talk in memory."""
    first, second = World(folder=tmp_path), World(folder=tmp_path)
    talk = first.play((0.0, typed("one")), until=1).talk
    in_virtual_time(second.talk((0.0, typed("two")), until=1, resume=talk))
    again = in_virtual_time(first.talk((0.0, typed("three")), until=1, resume=talk))
    assert [item_text(item) for item in again.items] == ["one", "two", "three"]


def test_a_second_writer_of_a_journal_is_refused_and_changes_nothing(tmp_path):
    path = tmp_path / "t.journal"
    EntryFile(path).close_file()
    other, before = held(path), path.read_bytes()
    with pytest.raises(BlockingIOError):
        EntryFile(path)
    assert path.read_bytes() == before
    let_go(other)
    EntryFile(path, len(before)).close_file()
