"""`/v1/talks`: earlier talks are found by their first words, read, named, and gone for good when deleted."""

import asyncio
import os
import sys
import time

import pytest

from assistant.base.errors import TalkElsewhere
from assistant.talk.archive import KEPT_DAYS, Archive
from tests.fakes.talk import World
from tests.fakes.web import run


def answers(prompt):
    return [f"You said {prompt.lines[-1].text}."]


def kept_world(tmp_path):
    return World(answers, speed=100.0, folder=tmp_path / "talks")


def asked(site, method="GET", talk="", status=200, headers=None, **body):
    async def ask():
        url = f"{site.http}/v1/talks{'/' + talk if talk else ''}"
        async with site.client.request(method, url, json=body or None, headers=headers) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    return ask()


async def talked(site, *texts):
    """A talk with these turns; its id."""
    async with site.wire("?extensions=all") as wire:
        for text in texts:
            await wire.say(text)
            await wire.send("response.create")
            await wire.until("response.done")
        return wire.conversation


def test_talks_are_listed_read_named_and_deleted(tmp_path):
    async def story(site):
        first = await talked(site, "where is the red bicycle", "and the blue one")
        async with site.wire("?extensions=all") as wire:
            await wire.say("good morning")
            await wire.send("response.create")
            await wire.until("response.done")
            listed = await asked(site)
            assert [(one["begins"], one["turns"], one["open"]) for one in listed["data"]] == [
                ("good morning", 1, True), ("where is the red bicycle", 2, False),
            ]  # fmt: skip
            assert listed["kept_days"] == KEPT_DAYS and listed["folder"] == str(tmp_path / "talks")
            with pytest.raises(TalkElsewhere):  # reading it took nobody's lock away
                await in_another_process(tmp_path, wire.conversation)

        lines = (await asked(site, talk=first))["lines"]
        assert [line["role"] for line in lines] == ["user", "assistant"] * 2 and lines[2]["text"] == "and the blue one"
        await asked(site, "POST", first, name="Bicycles")
        assert {one["begins"]: one["name"] for one in (await asked(site))["data"]} == {
            "good morning": None, "where is the red bicycle": "Bicycles",
        }  # fmt: skip
        async with site.wire(f"?conversation_id={first}") as wire:  # it goes on as it was
            assert wire.conversation == first
            await wire.until("conversation.item.done")
            await asked(site, "DELETE", first)  # and ends when it is deleted
        assert [one["begins"] for one in (await asked(site))["data"]] == ["good morning"]
        assert not list((tmp_path / "talks").glob(f"{first}*"))
        assert (await asked(site, "DELETE", first, 404))["error"]["code"] == "conversation_not_found"
        assert (await asked(site, "POST", "nobody", 404, name="x"))["error"]["code"] == "conversation_not_found"
        assert (await asked(site, status=403, headers={"Origin": "http://127.0.0.1:1"}))["error"]["code"] == (
            "origin_refused"
        )

    run(story, world=kept_world(tmp_path))


async def in_another_process(tmp_path, talk):
    """Delete a talk as `assistant talks rm` does."""
    archive = f"Archive(Path({str(tmp_path / 'talks')!r}))"
    imports = "from pathlib import Path; from assistant.talk.archive import Archive"
    script = f"{imports}; {archive}.delete_talk({talk!r})"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    if b"TalkElsewhere" in said:
        raise TalkElsewhere(said.decode())
    assert process.returncode == 0, said


def test_a_talk_without_a_name_goes_after_its_time(tmp_path):
    async def story(site):
        old, named, new = [await talked(site, text) for text in ("old one", "named one", "new one")]
        await asked(site, "POST", named, name="keep me")
        then = time.time() - (KEPT_DAYS + 1) * 86_400
        for talk in (old, named):
            os.utime(tmp_path / "talks" / f"{talk}.journal", (then, then))
        assert Archive(tmp_path / "talks").delete_old(time.time()) == 1
        assert {one["id"] for one in (await asked(site))["data"]} == {named, new}

    run(story, world=kept_world(tmp_path))
