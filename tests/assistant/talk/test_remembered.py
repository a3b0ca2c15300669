"""What one talk is told, the next one knows: after a restart, after a kill, and not after it was forgotten."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assistant.app.forgetting import Forgetting
from assistant.app.remembered import HandsOnMemory
from assistant.base.errors import PeerError
from assistant.contracts import Prompt
from assistant.events import CreateItem, CreateResponse, MemoryChanged, Message, ResponseDone, Settings, TextPart
from assistant.talk.archive import KeptTalk
from assistant.talk.forgotten import MARK
from assistant.talk.view import KNOWN
from assistant.tools.builtin import BuiltinTools, builtin_tools
from assistant.tools.home import HomeRows
from assistant.tools.kept import Kept
from assistant.tools.memory import MemoryFile
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

        async def forget(fact: str) -> None:
            deployment = SimpleNamespace(
                journals=world.talks._journals, registry=SimpleNamespace(listing=list), thread=Alone()
            )
            models: Any = SimpleNamespace(llm=world.llm, deployment=deployment)
            await Forgetting(world.talks, models, talks).forget(fact)

        world = World(
            answers, Settings(persona="ada", turn_detection=None, memory=memory), folder=talks, facts=file.facts,
            forget=forget,
        )  # fmt: skip
        services = world.talks._services

        def tools(session: Any) -> Any:
            household = BuiltinTools(
                Kept(rows), wall_clock, {"ada": "Ada"}, lambda: "ada", lambda: session.undoing
            )
            return builtin_tools(household, names=("remember", "forget", "what_you_know", "undo"))

        object.__setattr__(services, "tools", tools)
        self.rows = rows
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
