"""A talk begins while MCP servers are still starting: their tools join it, and then it is one that always had them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from assistant.contracts import Prompt
from assistant.events import (
    Command,
    CreateItem,
    CreateResponse,
    Event,
    Message,
    ResponseDone,
    SemanticVad,
    ServersStarting,
    Settings,
    TextPart,
    ToolSpec,
)
from assistant.talk import Session
from assistant.tools.kept import Kept
from assistant.tools.registry import Tool, ToolRegistry
from tests.fakes.models import Answer
from tests.fakes.talk import World


async def look(name: str = "") -> str:
    return "seen"


async def home(name: str = "") -> str:
    await asyncio.sleep(2)
    return "home"


SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
OWN = Tool(ToolSpec("home", "Home.", SCHEMA), home, reads=True)
LATE = {name: Tool(ToolSpec(name, "Look.", SCHEMA), look, reads=True, server=name) for name in ("files", "house")}


class Servers:
    """`ready`: when each is, in seconds; None: it is given up then."""

    def __init__(self, ready: dict[str, float], works: bool = True) -> None:
        self._ready, self._works = ready, works

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def starting(self) -> tuple[str, ...]:
        return tuple(name for name, at in self._ready.items() if at > self._now)

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(LATE[name] for name, at in self._ready.items() if at <= self._now and self._works)

    async def one_is_up(self) -> None:
        await asyncio.sleep(min(self._ready[name] for name in self.starting) - self._now)

    async def tools_of(self, name: str) -> tuple[Tool, ...]:
        return ()


class Noted:
    """A front that notes what the talk's own tools keep things in."""

    def __init__(self) -> None:
        self.found: set[Kept] = set()

    def __call__(self, session: Session, event: Event) -> list[Command]:
        self.found.add(session._context.view.kept)
        return []


def answers(prompt: Prompt) -> list[Answer]:
    last = prompt.lines[-1]
    if last.role == "user" and last.text == "go home":
        return [("home", {})]
    return [f"You said {last.text}."]


def world_of(servers: Servers, prompts: list[Prompt], **kinds: Any) -> World:
    def answer(prompt: Prompt) -> list[Answer]:
        prompts.append(prompt)
        return answers(prompt)

    world = World(answer, Settings(persona="ada", turn_detection=None, **kinds))
    own = replace(OWN)
    services = world.talks._services
    object.__setattr__(services, "servers", servers)
    object.__setattr__(services, "tools", lambda session: ToolRegistry((own, *servers.tools)))
    return world


def typed(at: float, text: str) -> list[tuple[float, Any]]:
    return [(at, CreateItem(Message(f"item_{at}", "user", (TextPart(text),)))), (at + 0.01, CreateResponse())]


def names(prompt: Prompt) -> list[str]:
    return [tool.name for tool in prompt.tools]


@pytest.mark.parametrize("at", [0.05, 0.5, 0.9, 1.3, 3.1, 5.0, 7.0])
def test_tools_join_between_replies_and_the_state_is_that_of_a_talk_that_always_had_them(at: float) -> None:
    """In silence, in the middle of a tool of the first reply, or while its answer sounds."""
    folded, told = [], []
    for ready in ({"files": at + 0.3, "house": at}, {"files": -1.0, "house": -1.0}):
        prompts: list[Prompt] = []
        world = world_of(Servers(ready), prompts)
        kept = Noted()
        world.on_event = kept
        session = world.play(*typed(0.4, "go home"), *typed(8, "hello"), until=14)
        assert names(prompts[0]) == names(prompts[1]), "a reply keeps its tools"
        assert names(prompts[-1]) == ["home", "files", "house"] and len(world.of(ResponseDone)) == 2
        assert len(kept.found) == 1, "what its own tools keep stays where it is"
        folded.append(world.llm.folded[session.talk])
        told.append([event.names for event in world.of(ServersStarting)])
    assert folded[0] == folded[1]
    assert told == [[("files", "house"), ("files",), ()], []]


def test_a_server_that_is_given_up_adds_nothing() -> None:
    prompts: list[Prompt] = []
    world = world_of(Servers({"files": 1.0}, works=False), prompts)
    world.play(*typed(2, "hello"), until=5)
    assert names(prompts[-1]) == ["home"]
    assert [event.names for event in world.of(ServersStarting)] == [("files",), ()]


def test_a_reply_that_was_begun_in_private_without_them_is_made_again() -> None:
    prompts: list[Prompt] = []
    world = world_of(Servers({"files": 1.75}), prompts)
    world.talks.defaults = replace(world.talks.defaults, turn_detection=SemanticVad())
    world.llm.complete = 0.02
    world.play((0.5, ("hello there", 1.0)), until=8)
    assert names(prompts[0]) == ["home"] and len(world.of(ResponseDone)) == 1, "a candidate began"
    assert names(prompts[-1]) == ["home", "files"]
