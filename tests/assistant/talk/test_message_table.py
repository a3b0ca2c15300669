"""A session's wiring: every message has an answer, and a talk's words lie on the disk whole or not at all."""

import errno
import logging
from typing import get_args

import pytest

from assistant.base.errors import UnknownTalk
from assistant.events import AppendAudio, ClearAudio, CommitAudio, CreateItem, Error, Message, TextPart
from assistant.talk.messages import Inbox
from capsules.durable import EntryFile
from tests.fakes.talk import World


def kinds(union):
    return {kind for part in get_args(union) for kind in (kinds(part) or {part})}


def test_every_message_of_the_inbox_has_an_answer():
    session = World().talks.open()
    sound = {AppendAudio, CommitAudio, ClearAudio}  # hearing's
    assert set(session._answers) == kinds(Inbox) - sound


def typed(item_id):
    return CreateItem(Message(item_id, "user", (TextPart("grüß dich"),)))


def test_the_words_of_a_talk_are_in_its_journal_and_nothing_lies_beside_it(tmp_path):
    (tmp_path / ".conv_7.json.0123abcd.part").write_text('{"items": [{"id"')  # of a process that was killed
    world = World(folder=tmp_path)
    session = world.play((0.0, typed("a")), until=1)
    assert [path.name for path in tmp_path.iterdir()] == [f"{session.talk}.journal"]
    again = World(folder=tmp_path).talks.open(resume=session.talk)
    assert again.items == session.items and again.items[0].content == (TextPart("grüß dich"),)


def test_a_full_disk_costs_the_memory_of_this_talk_only_and_is_told(tmp_path, monkeypatch, caplog):
    def full(file, payload):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(EntryFile, "append", full)
    world = World(folder=tmp_path)
    with caplog.at_level(logging.WARNING):
        session = world.play((0.0, typed("a")), (0.5, typed("b")), until=1)
    assert "will not outlive this process" in caplog.text and "No space left" in caplog.text
    [told] = world.of(Error)
    assert told.code == "talk_not_kept" and "No space left" in told.message
    with pytest.raises(UnknownTalk):
        World(folder=tmp_path).talks.open(resume=session.talk)
    again = world.talks.open(resume=session.talk)
    assert [item.id for item in again.items] == ["a", "b"]


@pytest.mark.parametrize("made", [0, 1])
def test_a_folder_that_is_not_there_yet_is_made(tmp_path, made):
    folder = tmp_path / "talks"
    if made:
        folder.mkdir()
    World(folder=folder).play((0.0, typed("a")), until=1)
    assert len(list(folder.iterdir())) == 1
