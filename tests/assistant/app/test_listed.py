"""Personas are capsules from the start on, and again when their files change."""

import asyncio
from dataclasses import replace

import pytest

from assistant.app.config import load_config
from assistant.app.listed import LOOK_SECONDS, ListedPersonas
from assistant.app.start import open_talks
from assistant.contracts import Synced
from assistant.events import PersonaSwitched, Settings, StateChanged, SwitchPersona
from assistant.personas import load_personas
from tests.fakes.loop import run
from tests.fakes.talk import World

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
