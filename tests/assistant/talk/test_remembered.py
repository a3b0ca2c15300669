"""What one talk is told, the next one knows: after a restart, after a kill, and not after it was forgotten."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from assistant.app.forgetting import Forgetting
from assistant.app.remembered import HandsOnMemory
from assistant.base.errors import PeerError
from assistant.base.picture import Picture
from assistant.contracts import Prompt
from assistant.events import (
    AudioDelta,
    AudioPart,
    CreateItem,
    CreateResponse,
    Event,
    MemoryChanged,
    Message,
    PicturePart,
    ResponseDone,
    SemanticVad,
    Settings,
    SpokenText,
    TextPart,
    ToolUsed,
    WordsForgotten,
)
from assistant.talk import Session
from assistant.talk.archive import KeptTalk
from assistant.talk.conversation import Entry, item_text
from assistant.talk.forgotten import MARK, without_fact
from assistant.talk.heard import SpokenPiece
from assistant.talk.view import KNOWN
from assistant.tools.builtin import BuiltinTools, builtin_tools
from assistant.tools.home import HomeRows
from assistant.tools.kept import Kept
from assistant.tools.memory import MemoryFile
from assistant.tools.rows import MEMORY, Thing
from assistant.tools.wall import wall_clock
from capsules.durable import read_entries
from capsules.journal import SUFFIX, Journals
from tests.fakes.loop import run
from tests.fakes.models import Answer
from tests.fakes.talk import World

FACT = "I like Zanzibar tea"
TELLS, ASKS, FORGETS, UNDOES = "remember that I like Zanzibar tea", "what do I like", "forget the tea", "undo that"


def answers(prompt: Prompt) -> list[Answer]:
    last = prompt.lines[-1]
    if last.role == "tool":
        return [f"Okay: {last.text}."]
    calls: dict[str, tuple[str, dict[str, str]]] = {
        TELLS: ("remember", {"fact": FACT}), FORGETS: ("forget", {"fact": "zanzibar tea"}), UNDOES: ("undo", {}),
    }  # fmt: skip
    if last.text in calls:
        return [calls[last.text]]
    return ["You like Zanzibar tea." if FACT in prompt.system else "I do not know."]


class Alone:
    async def call(self, kind: Any, work: Callable[[], Any]) -> Any:
        return work()


class Home:
    """A home folder, whose process may be started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.worlds: list[World] = []

    @property
    def hands(self) -> HandsOnMemory:
        talks = self.worlds[-1].talks

        async def earlier() -> list[KeptTalk]:
            return talks.archive.earlier()

        assert talks._services.forget is not None
        return HandsOnMemory(self.rows, earlier, talks._services.forget)

    def start(self, memory: bool = True) -> World:
        file = MemoryFile(self.folder / "memory.toml")
        rows = HomeRows(self.folder / "household.json", memory=file)
        talks = self.folder / "talks"

        world = World(
            answers, Settings(persona="ada", turn_detection=None, memory=memory), folder=talks, facts=file.facts,
            forget=lambda fact: forgetting.forget(fact),  # noqa: PLW0108 - it is made below
        )  # fmt: skip
        deployment = SimpleNamespace(registry=SimpleNamespace(listing=list), thread=Alone())
        models: Any = SimpleNamespace(llm=world.llm, deployment=deployment, deployments=[deployment])
        forgetting = Forgetting(world.talks, models, rows)
        self.rows, self.go_on = rows, forgetting.go_on
        services = world.talks._services

        def tools(session: Any) -> Any:
            household = BuiltinTools(
                Kept(rows), wall_clock, {"ada": "Ada"}, lambda: "ada", lambda: session.undoing
            )
            return builtin_tools(household, names=("remember", "forget", "what_you_know", "undo"))

        object.__setattr__(services, "tools", tools)
        self.worlds.append(world)
        return world

    def stop(self) -> None:
        self.rows.close()

    def bytes(self) -> bytes:
        """All that lies on the disk, packed entries of journals unpacked."""
        found = []
        for path in self.folder.rglob("*"):
            if path.suffix == SUFFIX:
                found += [zlib.decompress(payload) for payload in read_entries(path).payloads]
            elif path.is_file():
                found.append(path.read_bytes())
        return b"".join(found)


def asked(*texts: str) -> list[tuple[float, Any]]:
    steps: list[tuple[float, Any]] = []
    for turn, text in enumerate(texts):
        item = Message(f"item_{turn}_{abs(hash(text))}", "user", (TextPart(text),))
        steps += [(turn * 8 + 0.1, CreateItem(item)), (turn * 8 + 0.2, CreateResponse())]
    return steps


def said(world: World) -> list[str]:
    return [
        "".join(part.transcript or "" for part in item.content)
        for done in world.of(ResponseDone) for item in done.response.output if isinstance(item, Message)
    ]  # fmt: skip


def restarted(home: Home) -> World:
    home.stop()
    return home.start()


def killed(home: Home) -> World:
    """The lock goes with the process; everything else stays as it is."""
    home.rows.close()
    return home.start()


@pytest.mark.parametrize("again", [lambda home: home.worlds[-1], restarted, killed])
def test_told_in_one_talk_and_asked_in_the_next(tmp_path: Path, again: Callable[[Home], World]) -> None:
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        first = await world.talk(*asked(TELLS, ASKS), until=20, microphone=False)
        assert said(world) == [f"Okay: remembered: {FACT}.", "I do not know."], "the talk itself has the words"
        [changed] = world.of(MemoryChanged)
        assert changed.added == (FACT,) and changed.response_id == world.of(ResponseDone)[0].response.id
        after = again(home)
        resumed = await after.talk(until=1, resume=first.talk, microphone=False)
        shown = [one.added if isinstance(one, MemoryChanged) else one.role for one in resumed.history]
        assert shown == ["user", (FACT,), "assistant", "user", "assistant"]
        after.log.clear()
        await after.talk(*asked(ASKS), until=10, microphone=False)
        assert said(after) == ["You like Zanzibar tea."]
        home.stop()

    run(story())


def test_a_sentence_written_by_hand_is_known_by_the_next_talk(tmp_path: Path) -> None:
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        await world.talk(*asked(ASKS), until=10, microphone=False)
        (tmp_path / "memory.toml").write_text(f'facts = ["{FACT}"]  # by hand\n')
        await world.talk(*asked(ASKS), until=10, microphone=False)
        assert said(world) == ["I do not know.", "You like Zanzibar tea."]
        home.stop()

    run(story())


def test_a_client_that_did_not_ask_has_no_memory(tmp_path: Path) -> None:
    (tmp_path / "memory.toml").write_text(f'facts = ["{FACT}"]\n')
    home = Home(tmp_path)
    world = home.start(memory=False)
    session = world.talks.open()
    prompt = session.prompt_as("ada")
    assert KNOWN not in prompt.system and [tool.name for tool in prompt.tools] == ["undo"]
    session.close()
    asks = world.talks.open(Settings(persona="ada", memory=True)).prompt_as("ada")
    assert f"{KNOWN}\n- {FACT}" in asks.system and len(asks.tools) == 4


def test_a_spoken_undo_takes_the_sentence_back(tmp_path: Path) -> None:
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        await world.talk(*asked(TELLS, UNDOES), until=20, microphone=False)
        assert FACT not in (tmp_path / "memory.toml").read_text()
        assert [(event.response_id, event.added, event.removed) for event in world.of(MemoryChanged)] == [
            (world.of(ResponseDone)[0].response.id, (FACT,), ()), ("", (), (FACT,)),
        ]  # fmt: skip
        home.stop()

    run(story())


def test_forgotten_means_gone_from_every_byte(tmp_path: Path) -> None:
    """Told in one talk, said again in another, forgotten in a third: nothing on the disk holds it any more."""
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        first = await world.talk(*asked(TELLS, ASKS), until=20, microphone=False)
        await world.talk(*asked("I drink it because I like Zanzibar tea."), until=10, microphone=False)
        await world.talk(*asked("which tea do I like", "it is from Zanzibar"), until=20, microphone=False)
        assert home.bytes().count(b"Zanzibar") > 4
        world.log.clear()
        third = await world.talk(*asked(ASKS, FORGETS, ASKS), until=30, microphone=False)
        assert said(world) == ["You like Zanzibar tea.", "Okay: forgotten.", "I do not know."]
        assert [event.removed for event in world.of(MemoryChanged)] == [(FACT,)]
        assert b"anzibar" not in home.bytes() and MARK.encode() in home.bytes()
        again = await world.talk(until=1, resume=first.talk, microphone=False)
        assert len(again.items) == 4 and third.talk in world.talks._journals
        assert b"anzibar" not in home.bytes()
        home.stop()

    run(story())


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_front_is_told_at_once_which_words_are_gone(tmp_path: Path, by_hand: bool) -> None:
    """Forgotten by hand, or by a reply of another talk, while a page is open on the talk that added it."""
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        talking = asyncio.create_task(world.talk(*asked("hello", TELLS, "goodbye"), until=40, microphone=False))
        await asyncio.sleep(25)
        [session] = world.talks._open.values()
        exchange = session.items[2:4]
        assert item_text(exchange[0]) == TELLS
        added = world.of(MemoryChanged)[0].response_id
        world.log.clear()
        if by_hand:
            await home.hands.forget_sentence(FACT)
        else:
            await world.talk(*asked(FORGETS), until=5, microphone=False)
        await asyncio.sleep(0.01)
        assert WordsForgotten(tuple(item.id for item in exchange), (added,), MARK) in world.of(WordsForgotten)
        assert len(world.of(WordsForgotten)) == (1 if by_hand else 2), "the talk that forgot it has words of it too"
        assert [item_text(item) for item in session.items[2:4]] == [MARK] * 2
        await talking
        home.stop()

    run(story())


def test_forgotten_while_a_reply_sounds(tmp_path: Path) -> None:
    """The reply has read the sentence and goes on to say it; nothing of that stays once it is over."""
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        await world.talk(*asked(TELLS), until=10, microphone=False)
        world.log.clear()
        talking = asyncio.create_task(world.talk(*asked("tell me all of it"), until=20, microphone=False))
        while not world.of(SpokenText)[2:]:
            await asyncio.sleep(0.01)
        [open_talk] = world.talks._open
        await home.hands.forget_sentence(FACT)
        while not world.of(ResponseDone):
            assert home.rows.forgetting == (FACT,), "a kill may come at any time"
            await asyncio.sleep(0.01)
        assert "Zanzibar" in said(world)[-1], "the test would find it"
        await asyncio.sleep(0.01)
        assert b"anzibar" not in home.bytes() and not home.rows.forgetting, "while the talk is open"
        assert not any("anzibar" in str(state) for state in (world.llm.folded, world.tts.said))
        [reply] = [item.id for item in world.of(ResponseDone)[-1].response.output]
        told = [event.item_ids for event in world.of(WordsForgotten)]
        assert told == [(reply,)] * 2, "as far as it was said, and once it is over"
        await talking
        assert b"anzibar" not in home.bytes() and open_talk in world.talks._journals
        home.stop()

    run(story())


@pytest.mark.parametrize(("words", "by_hand"), [(1, True), (40, True), (21, False), (60, False)])
def test_a_call_that_was_begun_before_the_forgetting_writes_nothing_behind_it(
    tmp_path: Path, words: int, by_hand: bool
) -> None:
    """A reply that has read the sentence remembers it once more, while it is being forgotten everywhere or when that is
    done: forgotten by hand, or by a reply of another talk, which is out only later. A turn that begins then may."""
    home = Home(tmp_path)
    world = home.start()
    world.llm.answers = lambda prompt: (
        ["word " * words, ("remember", {"fact": f"You said: {FACT}."})] if prompt.lines[-1].text == "slowly"
        else answers(prompt)
    )  # fmt: skip

    async def story() -> None:
        await world.talk(*asked(TELLS), until=10, microphone=False)
        world.log.clear()
        others = [asyncio.create_task(world.talk(*asked("slowly"), until=40, microphone=False))]
        await asyncio.sleep(0.205)
        assert world.llm.running, "it has read the sentence"
        if by_hand:
            await home.hands.forget_sentence(FACT)
        else:
            others.append(asyncio.create_task(world.talk(*asked(FORGETS), until=20, microphone=False)))
        await asyncio.sleep(35)
        assert any("forgotten meanwhile" in text for text in said(world))
        assert not home.rows.rows(MEMORY) and b"anzibar" not in home.bytes()
        await asyncio.gather(*others)
        await world.talk(*asked(TELLS), until=10, microphone=False)
        assert [row.words for row in home.rows.rows(MEMORY)] == [FACT]
        home.stop()

    run(story())


@pytest.mark.parametrize(("at", "answer"), [(2.35, "I do not know."), (2.7, "You like Zanzibar tea.")])
def test_forgotten_while_a_candidate_has_read_it(tmp_path: Path, at: float, answer: str) -> None:
    """The user may have finished, and a reply is made in private: it is made again without the sentence. A moment later
    it is certain, and sounds."""
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        await world.talk(*asked(TELLS), until=10, microphone=False)
        world.talks.defaults = replace(world.talks.defaults, turn_detection=SemanticVad())
        world.log.clear()
        talking = asyncio.create_task(world.talk((0.5, (ASKS, 1.5)), until=14))
        await asyncio.sleep(at)
        assert any(FACT in token for tokens in world.llm.folded.values() for token in tokens), "it has read it"
        await home.hands.forget_sentence(FACT)
        await talking
        assert said(world) == [answer] and b"anzibar" not in home.bytes()
        assert not any("anzibar" in str(state) for state in (world.llm.folded, world.tts.said))
        home.stop()

    run(story())


def test_a_candidate_that_is_dropped_does_not_bring_the_forgotten_state_back(tmp_path: Path) -> None:
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        await world.talk(*asked(TELLS), until=10, microphone=False)
        world.talks.defaults = replace(world.talks.defaults, turn_detection=SemanticVad())
        steps = (*asked(ASKS), (6.5, (ASKS, 1.5)), (8.45, ("or do I not", 1.0)))
        talking = asyncio.create_task(world.talk(*steps, until=20))
        await asyncio.sleep(8.35)
        [session] = world.talks._open.values()
        assert any(FACT in token for token in world.llm.folded[session.talk])
        await home.hands.forget_sentence(FACT)
        await asyncio.sleep(0.65)  # the user went on, so a reply to the words so far is of no use
        assert not any("anzibar" in str(state) for state in world.llm.folded.values())
        await talking
        home.stop()

    run(story())


@pytest.mark.parametrize("event", [ToolUsed, AudioDelta])
def test_forgotten_though_the_front_left_in_the_middle_of_the_answer(tmp_path: Path, event: type[Event]) -> None:
    home = Home(tmp_path)
    world = home.start()

    def leave(session: Session, came: Event) -> tuple[()]:
        if isinstance(came, event) and home.rows.forgetting:
            session.close()
        return ()

    async def story() -> None:
        await world.talk(*asked(TELLS), until=10, microphone=False)
        world.on_event = leave
        await world.talk(*asked("why", FORGETS), until=20, microphone=False)
        assert "forgotten" not in "".join(said(world)), "it was cut off"
        assert b"anzibar" not in home.bytes()
        home.stop()

    run(story())


def test_forgotten_though_the_front_leaves_while_it_is_being_forgotten(tmp_path: Path) -> None:
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        await world.talk(*asked(TELLS), until=10, microphone=False)
        talking = asyncio.create_task(world.talk(*asked("why", FORGETS), until=20, microphone=False))
        await asyncio.sleep(1)
        [session] = world.talks._open.values()
        forget_talk = world.llm.forget_talk

        async def slowly(name: str) -> None:
            session.close()
            await asyncio.sleep(0.5)
            await forget_talk(name)

        world.llm.forget_talk = slowly  # type: ignore[method-assign]
        await talking
        await asyncio.sleep(2)
        assert b"anzibar" not in home.bytes() and not home.rows.forgetting
        home.stop()

    run(story())


def test_a_reply_that_begins_while_something_is_forgotten(tmp_path: Path) -> None:
    """It reads the talk without the sentence."""
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        talking = asyncio.create_task(world.talk(*asked(TELLS, "go on"), until=20, microphone=False))
        await asyncio.sleep(8)
        forget_talk = world.llm.forget_talk

        async def slowly(name: str) -> None:
            await asyncio.sleep(1)
            await forget_talk(name)

        world.llm.forget_talk = slowly  # type: ignore[method-assign]
        asked_for: list[Prompt] = []
        world.llm.answers = lambda prompt: asked_for.append(prompt) or answers(prompt)  # type: ignore[func-returns-value]
        await home.hands.forget_sentence(FACT)
        assert asked_for and "anzibar" not in str(asked_for)
        await talking
        home.stop()

    run(story())


def test_remembered_again_before_all_talks_have_forgotten_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.start()

    async def story() -> None:
        row = Thing(1, FACT)
        home.rows.change([(MEMORY, None, row)])
        home.rows.forget(row)
        home.rows.change([(MEMORY, None, row)])
        killed(home)
        home.rows.open()
        await home.go_on()
        assert [row.text for row in home.rows.rows(MEMORY) if isinstance(row, Thing)] == [FACT]
        home.stop()

    run(story())


def test_a_start_goes_on_to_forget_where_a_kill_came_between(tmp_path: Path) -> None:
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        talk = (await world.talk(*asked(TELLS, ASKS), until=20, microphone=False)).talk
        row = next(row for row in home.rows.rows(MEMORY) if isinstance(row, Thing))
        home.rows.forget(row)
        for file in (b"", b'facts = ["I like Zanzibar tea"]'):  # behind the change of the file, and before
            after = killed(home)
            assert b"Zanzibar" in home.bytes()
            (tmp_path / "memory.toml").write_bytes(file or (tmp_path / "memory.toml").read_bytes())
            home.rows.open()
            assert home.rows.forgetting == (FACT,)
            await home.go_on()
            assert b"anzibar" not in home.bytes() and not home.rows.forgetting
            resumed = await after.talk(until=1, resume=talk, microphone=False)
            assert len(resumed.items) == 4
            home.rows.change([(MEMORY, None, row)])
            home.rows.forget(row)
        home.stop()

    run(story())


def test_a_talk_that_is_resumed_while_something_is_forgotten(tmp_path: Path) -> None:
    """In between it has its words from a journal that was not cleared yet."""
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        talk = (await world.talk(*asked(TELLS, ASKS), until=20, microphone=False)).talk
        forget_talk, talking = world.llm.forget_talk, []

        async def meanwhile(name: str) -> None:
            await forget_talk(name)
            if not talking:
                opened = world.talk(*asked("go on"), until=9, resume=talk, microphone=False)
                talking.append(asyncio.create_task(opened))
                await asyncio.sleep(5)

        world.llm.forget_talk = meanwhile  # type: ignore[method-assign]
        await home.hands.forget_sentence(FACT)
        assert b"anzibar" not in home.bytes() and world.talks.is_open(talk)
        session = await talking[0]
        assert b"anzibar" not in home.bytes() and len(session.items) == 6, "its journal was not closed under it"
        again = await world.talk(until=1, resume=talk, microphone=False)
        assert len(again.items) == 6
        home.stop()

    run(story())


def test_a_talk_that_ends_while_something_is_forgotten(tmp_path: Path) -> None:
    """Its journal is closed by then, and must not be begun anew."""
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        talking = asyncio.create_task(world.talk(*asked(TELLS, "a bridge"), until=20, microphone=False))
        await asyncio.sleep(18)
        [session] = world.talks._open.values()
        forget_talk = world.llm.forget_talk

        async def meanwhile(name: str) -> None:
            await forget_talk(name)
            session.close()
            await talking

        world.llm.forget_talk = meanwhile  # type: ignore[method-assign]
        await home.hands.forget_sentence(FACT)
        assert b"anzibar" not in home.bytes() and not home.rows.forgetting and b"a bridge" in home.bytes()
        files = [str(file.readlink()) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
        assert not [file for file in files if SUFFIX in file and str(tmp_path) in file], "a journal of nobody's"
        world.llm.forget_talk = forget_talk  # type: ignore[method-assign]
        again = await world.talk(until=1, resume=session.talk, microphone=False)
        assert len(again.items) == 4
        home.stop()

    run(story())


def test_a_reply_that_was_cut_has_its_unheard_words_forgotten() -> None:
    said = Message("item_a", "assistant", (AudioPart("You like"),), "incomplete")
    entry = Entry(said, pieces=(SpokenPiece("item_a.0", "You like Zanzibar tea.", 0, 22, 0, 9_000),))
    [left] = without_fact([entry], FACT)
    assert isinstance(left.item, Message) and not left.pieces and item_text(left.item) == MARK


def test_everything_else_that_is_kept_of_a_talk_forgets_it_too(tmp_path: Path) -> None:
    """Its name, the pictures of the words, and the states of a model that ran here earlier."""
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        shown = PicturePart(Picture.of(np.zeros((8, 8, 3), np.uint8)))
        pictured = Message("item_p", "user", (shown, TextPart("this is why I like Zanzibar tea")))
        first = await world.talk(*asked(TELLS), (9, CreateItem(pictured)), until=20, microphone=False)
        second = await world.talk(*asked("a bridge"), until=10, microphone=False)
        world.talks.name_talk(first.talk, "Zanzibar: the tea I like")
        world.talks.name_talk(second.talk, "Bridges")
        journal = world.talks._journals.open(first.talk)
        assert journal is not None and journal.put("llm", {"log": ["Zanzibar"]})
        world.talks._journals.close(first.talk)
        assert [*(tmp_path / "talks" / "pictures").rglob("*")]
        await home.hands.forget_sentence(FACT)
        assert b"anzibar" not in home.bytes()
        assert not [path for path in (tmp_path / "talks" / "pictures").rglob("*") if path.is_file()]
        assert [one.name for one in world.talks.archive.earlier()] == ["Bridges", ""]
        home.stop()

    run(story())


def test_what_could_not_be_cleared_is_told_and_tried_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        talk = (await world.talk(*asked(TELLS), until=10, microphone=False)).talk
        path = tmp_path / "talks" / f"{talk}{SUFFIX}"
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDS, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ)
        )
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(PeerError, match="another program"):
            await home.hands.forget_sentence(FACT)
        assert b"Zanzibar" in path.read_bytes() or b"Zanzibar" in home.bytes()
        holder.communicate(b"")
        killed(home)
        home.rows.open()
        await home.go_on()
        assert b"anzibar" not in home.bytes()
        home.stop()

    run(story())


HOLDS = """
import sys
from pathlib import Path
from capsules.durable import EntryFile, read_entries
path = Path(sys.argv[1])
file = EntryFile(path, read_entries(path).end)
print("held", flush=True)
sys.stdin.read()
"""


def test_what_was_said_of_other_things_stays(tmp_path: Path) -> None:
    home = Home(tmp_path)
    world = home.start()

    async def story() -> None:
        await world.talk(*asked("the bridge is long", TELLS, FORGETS), until=30, microphone=False)
        journals = Journals(tmp_path / "talks")
        [path] = (tmp_path / "talks").glob("*.journal")
        journal = journals.open(path.stem)
        assert journal is not None and "the bridge is long" in str(journal.table("words"))
        journals.close(path.stem)
        home.stop()

    run(story())


def test_a_person_sees_which_turn_added_what_and_changes_it_by_hand(tmp_path: Path) -> None:
    home = Home(tmp_path)
    world = home.start()

    async def told() -> list[Any]:
        answer: Any = await home.hands.sentences()
        return [(one["text"], one["comment"], one["talk"] and one["talk"]["id"], one["turn"]) for one in answer["data"]]

    async def story() -> None:
        session = await world.talk(*asked("the bridge is long", TELLS), until=20, microphone=False)
        await home.hands.keep_sentence("My  name is Tom ")
        day = f"{home.rows.now():%Y-%m-%d}"
        tea, tom = await told()
        assert tea[0] == FACT and tea[1].startswith(day) and tea[2:] == (session.talk, 2)
        assert tom[0] == "My name is Tom" and tom[1].startswith(day) and tom[2:] == (None, None)
        await home.hands.reword_sentence("My name is Tom", "My name is Tim")
        assert [one[0] for one in await told()] == [FACT, "My name is Tim"]
        await home.hands.take_out(FACT)
        assert b"Zanzibar" not in (tmp_path / "memory.toml").read_bytes() and b"Zanzibar" in home.bytes()
        await home.hands.keep_sentence(FACT)
        await home.hands.forget_sentence(FACT)
        assert [one[0] for one in await told()] == ["My name is Tim"] and b"anzibar" not in home.bytes()
        for refused in (home.hands.take_out(FACT), home.hands.forget_sentence(FACT), home.hands.keep_sentence(" ")):
            with pytest.raises(PeerError):
                await refused
        home.stop()

    run(story())
