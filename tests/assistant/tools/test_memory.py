"""`memory.toml`: read as people write it, changed without touching what else stands in it, taken back by an undo."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from assistant.tools.builtin import BuiltinTools, builtin_tools
from assistant.tools.errors import AnswerError
from assistant.tools.home import HomeRows
from assistant.tools.kept import Kept
from assistant.tools.memory import LONGEST, MOST, MemoryFile, serial_of
from assistant.tools.registry import ToolRegistry
from assistant.tools.rows import MEMORY, NOTES, Thing
from assistant.tools.wall import wall_clock
from tests.fakes.loop import run

BY_HAND = """\
# mine
facts = [
  "My name is Tom",   # not Thomas
  "I like   tea",
]

likes = ["jazz"]  # the older kind
"""


def talk(home: Path, small: bool = False) -> ToolRegistry:
    rows = HomeRows(home / "household.json", memory=MemoryFile(home / "memory.toml"))
    rows.open()
    kept = Kept(rows, lambda: MEMORY if small else NOTES)
    return builtin_tools(BuiltinTools(kept, wall_clock, {"ada": "Ada"}, lambda: "ada"))


def call(tools: ToolRegistry, name: str, **arguments: str):  # type: ignore[no-untyped-def]
    return run(tools.call(name, json.dumps(arguments)))


def test_comments_and_other_lists_survive_our_changes(tmp_path: Path) -> None:
    path = tmp_path / "memory.toml"
    path.write_text(BY_HAND)
    memory = MemoryFile(path)
    assert memory.facts() == ("My name is Tom", "I like tea", "jazz")
    memory.change(["jazz"], ["My sister is called Ann"])
    text = path.read_text()
    assert text.startswith("# mine\n") and "# not Thomas" in text and "# the older kind" in text and "jazz" not in text
    assert memory.facts() == ("My name is Tom", "I like tea", "My sister is called Ann")
    memory.change([], ["I am 40"], "2026-11-28 09:30")
    assert memory.comments() == {"My name is Tom": "not Thomas", "I am 40": "2026-11-28 09:30"}
    memory.reword("I like tea", 'I like "green" tea')
    assert memory.facts()[:2] == ("My name is Tom", 'I like "green" tea')
    memory.change(['I like "green" tea', "I am 40"], [])
    assert "tea" not in path.read_text() and "2026" not in path.read_text() and "# not Thomas" in path.read_text()
    text = path.read_text()
    memory.change([], ["My sister is called Ann"])
    assert text == path.read_text(), "known already"


def test_a_file_edited_by_hand_holds_at_once_and_a_broken_one_does_not(tmp_path: Path) -> None:
    path = tmp_path / "memory.toml"
    memory = MemoryFile(path)
    assert memory.facts() == ()
    memory.change([], ["I like tea"])
    assert "# The assistant knows this" in path.read_text()
    path.write_text(BY_HAND)
    assert "jazz" in memory.facts()
    path.write_text("facts = [")
    assert "jazz" in memory.facts() and "cannot be read" in memory.complaint
    with pytest.raises(AnswerError, match="cannot be changed"):
        memory.change([], ["more"])
    assert path.read_text() == "facts = ["
    path.write_text('facts = ["a"]\nnumber = 5\nmore = [1, "b", ""]')
    assert memory.facts() == ("a", "b")
    path.write_text("facts = " + "[" * 5000)
    assert memory.facts() == ("a", "b") and "cannot be read" in memory.complaint and memory.comments() == {}
    path.unlink()
    assert memory.facts() == ()


FORMS = (
    'facts = [ "a" ]', 'facts = ["a", "b", ] # mine', 'facts = [\n"a" # mine\n]', "\ufefffacts = []\r\n# mine", "",
)  # fmt: skip


@pytest.mark.parametrize("text", FORMS)
def test_every_form_of_the_list_takes_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "memory.toml"
    path.write_bytes(text.encode())
    memory = MemoryFile(path)
    before = memory.facts()
    memory.change([], ["I like tea"], "2026-11-28 09:30")
    assert MemoryFile(path).facts() == (*before, "I like tea") and not memory.complaint
    memory.change([*before, "I like tea"], [])
    assert memory.facts() == () and ("# mine" in path.read_text()) == ("# mine" in text and '"a" # mine' not in text)


def test_a_link_stays_a_link_and_a_file_that_may_not_be_written_stays_as_it_is(tmp_path: Path) -> None:
    elsewhere, link = tmp_path / "dotfiles.toml", tmp_path / "memory.toml"
    elsewhere.write_text('facts = ["a"]\n')
    elsewhere.chmod(0o640)
    link.symlink_to(elsewhere)
    memory = MemoryFile(link)
    memory.change([], ["b"])
    assert link.is_symlink() and "b" in elsewhere.read_text() and elsewhere.stat().st_mode & 0o777 == 0o640
    elsewhere.chmod(0o440)
    with pytest.raises(AnswerError, match="read-only"):
        memory.change(["b"], [])
    assert memory.facts() == ("a", "b")
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(AnswerError, match="cannot be changed"):
        memory.change([], ["c"])


def test_a_full_memory_and_a_long_sentence_are_refused(tmp_path: Path) -> None:
    memory = MemoryFile(tmp_path / "memory.toml")
    memory.change([], [f"fact {number}" for number in range(MOST)])
    with pytest.raises(AnswerError, match="full"):
        memory.change([], ["one more"])
    path = tmp_path / "memory.toml"
    path.write_text(path.read_text().replace("]", '  "more", "and more"\n]'))
    assert len(memory.facts()) == MOST and f"has {MOST + 2} sentences" in memory.complaint
    memory.change(["fact 3"], [])
    assert memory.facts()[-1] == "more"
    assert "characters" in call(talk(tmp_path), "remember", fact="x" * (LONGEST + 1)).text


def test_what_is_remembered_is_taken_back_by_an_undo_and_forgotten_for_good(tmp_path: Path) -> None:
    tools = talk(tmp_path)
    first = call(tools, "remember", fact="I like green tea")
    assert first.text == "remembered: I like green tea" and first.say == "Okay, I will remember that."
    second = call(tools, "remember", fact="My cat is called Muz")
    assert call(tools, "what_you_know").text == "I like green tea; My cat is called Muz"
    assert tools.kept.told(second.changes) == "The memory, My cat is called Muz, is gone."
    assert not call(tools, "remember", fact="My cat is called Muz").changes, "an undo must not take away what was known"
    tools.kept.put_back(second.changes)
    assert call(tools, "what_you_know").text == "I like green tea"
    tools.kept.home.close()
    tools = talk(tmp_path)  # after a restart the same change still finds its row
    tools.kept.put_back(first.changes)
    assert call(tools, "what_you_know").text == "nothing yet"
    call(tools, "remember", fact="I like green tea")
    call(tools, "remember", fact="I like black tea")
    assert "several facts fit" in call(tools, "forget", fact="tea").text
    assert "no fact fits" in call(tools, "forget", fact="coffee").text
    forgotten = call(tools, "forget", fact="the green tea")
    assert (forgotten.text, forgotten.effect, forgotten.argument) == ("forgotten", "forget", "I like green tea")
    assert not forgotten.changes and tools.kept.home.forgetting == ("I like green tea",)
    assert "green" not in (tmp_path / "memory.toml").read_text()
    tools.kept.home.forgotten("I like green tea")  # no talk holds it any more
    assert b"green" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    tools.kept.home.close()


def test_an_undone_sentence_is_forgotten_with_its_undo(tmp_path: Path) -> None:
    tools = talk(tmp_path)
    tools.kept.connect(Nobody(), "conv_1")
    tools.kept.put_back(call(tools, "remember", fact="I like tea").changes)
    home = tools.kept.home
    assert b"I like tea" in (tmp_path / "household.json").read_bytes(), "a kill now must undo it all the same"
    home.change([(MEMORY, None, row := Thing(serial_of("I like tea"), "I like tea"))])
    home.forget(row)
    home.forgotten("I like tea")
    assert b"I like tea" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    home.close()


def test_what_could_not_be_forgotten_is_not_being_forgotten(tmp_path: Path) -> None:
    tools = talk(tmp_path)
    call(tools, "remember", fact="I like tea")
    (tmp_path / "memory.toml").chmod(0o400)
    assert "read-only" in call(tools, "forget", fact="tea").text and not tools.kept.home.forgetting
    tools.kept.home.close()
    tools = talk(tmp_path)
    assert not tools.kept.home.forgetting and call(tools, "what_you_know").text == "I like tea"
    tools.kept.home.close()


@pytest.mark.parametrize("name", ["memory.toml", "dotfiles.toml"])
def test_a_killed_writer_leaves_nothing_behind_the_next_start(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / name).write_text(BY_HAND)
    (tmp_path / "memory.toml").symlink_to(elsewhere / name)
    left = (elsewhere / f".{name}.0a1b2c3d.part", tmp_path / ".household.json.0a1b2c3d.part")
    others = elsewhere / ".other.part"
    for path in (*left, others):
        path.write_text("I like tea")
    talk(tmp_path).kept.home.close()
    assert not any(path.exists() for path in left) and others.exists(), "only its own"


def test_a_change_by_hand_while_we_write_is_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memory.toml"
    path.write_text('facts = ["a"]\n')
    memory, sync, synced = MemoryFile(path), os.fsync, []

    def by_hand(file: int) -> None:
        sync(file)
        if not synced:
            path.write_text('facts = ["a", "by hand"]  # mine\n')
        synced.append(file)

    monkeypatch.setattr(os, "fsync", by_hand)
    memory.change(["a"], ["ours"])
    assert memory.facts() == ("by hand", "ours") and "# mine" in path.read_text()
    monkeypatch.setattr(os, "fsync", lambda file: path.write_text(f"facts = [] # {len(path.read_text())}"))
    with pytest.raises(AnswerError, match="another program"):
        memory.change([], ["more"])
    assert not [*tmp_path.glob(".*")]


def test_notes_of_the_small_model_reach_the_file(tmp_path: Path) -> None:
    tools = talk(tmp_path, small=True)
    assert call(tools, "note_add", text="my sister is called ann").text == "noted"
    assert "my sister is called ann" in (tmp_path / "memory.toml").read_text()
    assert call(tools, "note_read").text == "my sister is called ann"
    tools.kept.home.close()


def test_a_kill_before_the_journal_knew_takes_the_sentence_back(tmp_path: Path) -> None:
    tools = talk(tmp_path)
    tools.kept.connect(Nobody(), "conv_1")
    call(tools, "remember", fact="I like tea")
    tools.kept.home.close()  # killed: the talk's journal never heard of it
    tools = talk(tmp_path)
    tools.kept.connect(Nobody(), "conv_1", {})
    assert call(tools, "what_you_know").text == "nothing yet"
    tools.kept.home.close()


class Nobody:
    takes_rings = listens = False

    def say(self, text: str) -> bool:
        return False
