"""A session's wiring: every message has an answer, and a talk's words lie on the disk whole or not at all."""

import errno
import json
import logging
from typing import get_args

import pytest

from assistant.events import AppendAudio, ClearAudio, CommitAudio, CreateItem, Message, TextPart
from assistant.talk import talks
from assistant.talk.messages import Inbox
from tests.fakes.talk import World


def kinds(union):
    return {kind for part in get_args(union) for kind in (kinds(part) or {part})}


def test_every_message_of_the_inbox_has_an_answer():
    session = World().talks.open()
    sound = {AppendAudio, CommitAudio, ClearAudio}  # hearing's
    assert set(session._answers) == kinds(Inbox) - sound


def typed(item_id):
    return CreateItem(Message(item_id, "user", (TextPart("grüß dich"),)))


def test_the_words_of_a_talk_are_written_whole_and_nothing_lies_beside_them(tmp_path):
    (tmp_path / ".conv_7.json.0123abcd.part").write_text('{"items": [{"id"')  # of a process that was killed
    world = World(folder=tmp_path)
    session = world.play((0.0, typed("a")), until=1)
    assert [path.name for path in tmp_path.iterdir()] == [f"{session.talk}.json"]
    written = json.loads((tmp_path / f"{session.talk}.json").read_text("utf-8"))
    assert written["items"][0]["content"] == [{"text": "grüß dich"}]


def test_a_full_disk_costs_the_memory_of_this_talk_only(tmp_path, monkeypatch, caplog):
    def full(path, chunks):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(talks, "write_durably", full)
    world = World(folder=tmp_path)
    with caplog.at_level(logging.WARNING):
        session = world.play((0.0, typed("a")), until=1)
    assert "will not outlive this process" in caplog.text and "No space left" in caplog.text
    assert not list(tmp_path.iterdir())
    again = world.talks.open(resume=session.talk)
    assert [item.id for item in again.items] == ["a"]


@pytest.mark.parametrize("made", [0, 1])
def test_a_folder_that_is_not_there_yet_is_made(tmp_path, made):
    folder = tmp_path / "talks"
    if made:
        folder.mkdir()
    World(folder=folder).play((0.0, typed("a")), until=1)
    assert len(list(folder.iterdir())) == 1
