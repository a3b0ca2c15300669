"""Personas are capsules from the start on, and again when their files change."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from assistant.app.config import load_config
from assistant.app.listed import LOOK_SECONDS, ListedPersonas
from assistant.app.start import open_talks
from assistant.contracts import Line, PromptReady, ReplyOptions, Synced
from assistant.events import PersonaSwitched, ServersStarting, Settings, StateChanged, SwitchPersona, ToolSpec
from assistant.personas import load_personas
from assistant.tools.mcp import server
from assistant.tools.registry import Tool, ToolRegistry
from tests.fakes.loop import run
from tests.fakes.talk import World

SERVER = Path(__file__).parents[2] / "fakes" / "mcp_server.py"
FILE = 'title = "Cy"\ninstructions = "You are Cy, and {}."\n'


def test_lists_follow_the_files(tmp_path, caplog):
    """Each list is noted with when it was made."""
    world = World()
    lists = []

    async def warm(listed, *, idle_work=False):
        assert idle_work
        lists.append({name: prompt.system for name, prompt in listed.items()})
        return dict.fromkeys(listed, Synced(None, 0, 0.0))

    async def story():
        world.llm.warm = warm
        services = replace(world.talks._services, personas=load_personas(tmp_path))
        task = asyncio.create_task(ListedPersonas(services, Settings(), tmp_path).run())
        await asyncio.sleep(LOOK_SECONDS * 2.5)
        assert len(lists) == 1 and set(lists[0]) == {"persona/ada", "persona/ben"}
        (tmp_path / "cy.toml").write_text(FILE.format("kind"))
        await asyncio.sleep(LOOK_SECONDS * 1.5)
        assert lists[-1]["persona/cy"] == "You are Cy, and kind." and services.personas["cy"].title == "Cy"
        (tmp_path / "cy.toml").write_text("title = 3")
        await asyncio.sleep(LOOK_SECONDS * 1.5)
        assert len(lists) == 2 and "cy" in services.personas and "no instructions" in caplog.text
        (tmp_path / "cy.toml").write_text(FILE.format("not kind"))
        await asyncio.sleep(LOOK_SECONDS * 1.5)
        assert lists[-1]["persona/cy"] == "You are Cy, and not kind."
        (tmp_path / "cy.toml").unlink()
        await asyncio.sleep(LOOK_SECONDS * 1.5)
        assert len(lists) == 4 and "persona/cy" not in lists[-1] and "cy" not in services.personas
        task.cancel()

    run(story())


def test_lists_follow_the_tools_of_servers(tmp_path):
    world, lists = World(), []
    tool = Tool(ToolSpec("look", "Look.", {"type": "object", "properties": {}}), print, server="papers")
    servers = SimpleNamespace(tools=(), starting=())

    async def warm(listed, *, idle_work=False):
        lists.append({name: [tool.name for tool in prompt.tools] for name, prompt in listed.items()})
        return dict.fromkeys(listed, Synced(None, 0, 0.0))

    async def story():
        world.llm.warm = warm
        services = replace(world.talks._services, servers=servers, tools=lambda session: ToolRegistry(servers.tools))
        task = asyncio.create_task(ListedPersonas(services, Settings(), tmp_path).run())
        await asyncio.sleep(LOOK_SECONDS * 2.5)
        servers.tools = (tool,)
        await asyncio.sleep(LOOK_SECONDS * 2.5)
        assert [one["persona/ada"] for one in lists] == [[], ["look"]]
        task.cancel()

    run(story())


@pytest.mark.slow
def test_tools_that_come_after_the_start_are_in_every_beginning(tmp_path, monkeypatch):
    """With the shipped models and a server that is slow to start: talks are opened meanwhile. Once it is there, no
    token of a beginning is folded, nor of that of a talk without words which waited for it."""
    monkeypatch.setattr(server, "START_S", 600.0)
    begin = f"exec {sys.executable} {SERVER} {tmp_path}/done.txt"
    waits = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; {begin}"
    slow = {"command": "sh", "args": ["-c", waits], "tools": ["look"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"papers": slow}}))
    (tmp_path / "mcp.json").chmod(0o600)
    tmp_path.chmod(0o755)

    async def story():
        config = load_config({"profile": "tiny", "asr": "pocketsphinx"}, {"ASSISTANT_HOME": str(tmp_path)})
        async with open_talks(config, pages=True) as app, asyncio.TaskGroup() as group:
            assert app.servers.starting == ("papers",)
            early = app.talks.open()
            group.create_task(early.run())
            assert "look" not in {tool.name for tool in early.prompt_as("ada").tools}
            while await early.events.receive() != ServersStarting(("papers",)):
                pass
            while sum(one.name.startswith("persona/") for one in app.capsules()) < 2:
                await asyncio.sleep(0.01)
            llm = app.models.llm
            before = {one.name: one.position for one in app.capsules() if one.name.startswith("persona/")}
            (tmp_path / "go").touch()
            while await early.events.receive() != ServersStarting(()):
                pass
            fresh = app.talks.open()
            asked = early.prompt_as("ada")
            assert asked == fresh.prompt_as("ada") and "look" in {tool.name for tool in asked.tools}
            while any(one.position == before.get(one.name) for one in app.capsules()):
                await asyncio.sleep(0.1)
            beginning = llm._language.encode(llm._language.layout.system(asked.system, asked.tools))
            for session in (early, fresh):
                line = replace(asked, lines=(Line("user", "hello"),))
                async for piece in llm.reply(session.talk, line, ReplyOptions("r.0", 1)):
                    if isinstance(piece, PromptReady):
                        assert piece.cached_tokens >= len(beginning) > 10
                session.close()

    asyncio.run(asyncio.wait_for(story(), 400))


@pytest.mark.slow
def test_every_switch_restores_the_first_time_and_always(tmp_path):
    """With the shipped models: no token of a persona's beginning is folded after the start."""
    (tmp_path / "personas").mkdir()
    (tmp_path / "personas" / "cy.toml").write_text(FILE.format("kind"))

    async def story():
        config = load_config({"profile": "tiny", "asr": "pocketsphinx"}, {"ASSISTANT_HOME": str(tmp_path)})
        async with open_talks(config) as app:
            llm = app.models.llm
            while sum(one.name.startswith("persona/") for one in app.capsules()) < 3:
                await asyncio.sleep(0.01)
            appended = []
            append = llm.engine.append
            llm.engine.append = lambda ids, cancel=None: appended.append(len(ids)) or append(ids, cancel)
            session = app.talks.open()
            async with asyncio.TaskGroup() as group:
                group.create_task(session.run())
                for name in ("ben", "cy", "ada", "cy", "ben"):
                    await session.send(SwitchPersona(name))
                    async for event in session.events:
                        assert not (isinstance(event, StateChanged) and event.what == "rebuild")
                        if isinstance(event, PersonaSwitched):
                            break
                    assert event.name == name and event.ms < 5000
                    prompt = session.prompt_as(name)
                    ids = llm._language.encode(llm._language.layout.system(prompt.system, prompt.tools))
                    assert list(llm.engine.tokens) == list(ids), "the next token could be made"
                session.close()
            assert appended == []
            assert all(one.pinned for one in app.capsules() if one.name.startswith("persona/"))

    asyncio.run(story())
    asyncio.run(story())
