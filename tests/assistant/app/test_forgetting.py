"""The memory is part of a persona's capsule: restored and never folded while the file stands, gone once forgotten.

With the shipped weights, which are given what any other model is given.
"""

from __future__ import annotations

import asyncio
import dataclasses
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.app import models
from assistant.app.config import load_config
from assistant.app.start import App, open_talks
from assistant.commands.capsule import Shelf
from assistant.contracts import PromptReady, ReplyOptions
from assistant.device.thread import EngineKind
from assistant.events import CreateItem, CreateResponse, Message, ResponseDone, Settings, TextPart
from capsules.durable import read_entries
from capsules.prefix import StateKey

pytestmark = pytest.mark.slow
FACT = "My cat is called Xerxes"
MINE = Settings(turn_detection=None, memory=True, modality="text")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    opened = models.open_models

    async def as_any_model(*parts):  # type: ignore[no-untyped-def]
        return dataclasses.replace(await opened(*parts), builtin=None, lost=None)

    monkeypatch.setattr(models, "open_models", as_any_model)
    return tmp_path


def contents(home: Path) -> Iterator[bytes]:
    for path in home.rglob("*"):
        if path.suffix == ".journal":
            yield from (zlib.decompress(payload) for payload in read_entries(path).payloads)
        elif path.is_file():
            yield path.read_bytes()


def tokens_on_disk(home: Path) -> Iterator[str]:
    """The tokens of every capsule, and what journals say of the models' states, as text with one number a word."""
    shelf = Shelf(home / "capsules")
    for key in shelf.known_keys():
        yield f" {' '.join(map(str, shelf.about(key).tokens))} "
    for content in contents(home):
        yield f" {content.decode('utf-8', 'replace').replace(',', ' ').replace('[', ' ').replace(']', ' ')} "


async def said(app: App, text: str) -> str:
    session = app.talks.open(MINE)
    async with asyncio.TaskGroup() as group:
        group.create_task(session.run())
        await session.send(CreateItem(Message("item_u", "user", (TextPart(text),))))
        await session.send(CreateResponse())
        async for event in session.events:
            if isinstance(event, ResponseDone):
                session.close()
    return session.talk


async def listed(app: App) -> None:
    async with asyncio.timeout(100):
        while not sum(one.name.startswith("persona/") and one.pinned for one in app.capsules()) >= 4:
            await asyncio.sleep(0.01)


def keep_as_another_model(app: App) -> None:
    """States of a model that ran here earlier: of a talk and a persona, and one that a program named."""
    registry, other = app.models.deployment.registry, StateKey("another model")
    listed = next(one for one in app.capsules() if one.name.startswith("persona/"))
    capsule = registry.get(listed.key)
    assert capsule is not None
    for name in ("talk/conv_gone/llm", "persona/ada"):
        assert registry.put(capsule, other, name=name, save=True)
    assert registry.put(replace(capsule, tokens=capsule.tokens[:1] * len(capsule.tokens)), other, name="mine")


def test_restored_and_never_folded_then_gone(home: Path) -> None:
    (home / "memory.toml").write_text(f'facts = ["{FACT}", "I live by the sea"]\n')
    config = load_config({"profile": "tiny", "asr": "pocketsphinx"}, {"ASSISTANT_HOME": str(home)})

    async def story() -> None:
        async with open_talks(config) as app:
            await listed(app)
            llm, thread = app.models.llm, app.models.deployment.thread
            session = app.talks.open(MINE)
            begins = session.prompt_as("ada")
            session.close()
            assert FACT in begins.system
            line = dataclasses.replace(begins, lines=(*begins.lines, *_line("hello")))
            alone = len(llm._language.encode(llm._language.layout.system(begins.system, begins.tools)))  # type: ignore[attr-defined]
            async for piece in llm.reply("probe", line, ReplyOptions("probe.0", 1)):
                if isinstance(piece, PromptReady):
                    ready = piece
            assert ready.cached_tokens >= alone > 100, "no token of the beginning was folded"
            await llm.forget_talk("probe")  # type: ignore[attr-defined]

            await said(app, "the harbour is full today")
            numbers = " ".join(map(str, llm._language.encode(" Xerxes")))  # type: ignore[attr-defined]
            assert any(b"Xerxes" in content for content in contents(home))
            assert any(f" {numbers} " in told for told in tokens_on_disk(home)), "the test would find its tokens"
            await thread.call(EngineKind.LLM, lambda: keep_as_another_model(app))
            app.home.forget(next(row for row in app.home.rows("memory") if row.text == FACT))  # type: ignore[union-attr,arg-type]
            await app.talks._services.forget(FACT)  # type: ignore[misc]
            for one in app.models.deployments:
                one.registry.flush()
            assert not any(b"Xerxes" in content for content in contents(home))
            assert not any(f" {numbers} " in told for told in tokens_on_disk(home))
            assert any(b"the harbour is full today" in content for content in contents(home))
            assert [one.name for one in app.capsules() if one.name.startswith("mine")] == ["mine"], "a program's"
            await listed(app)
            session = app.talks.open(MINE)
            assert "I live by the sea" in session.prompt_as("ada").system
            session.close()
            await said(app, "why do I live by the sea")
            app.home.forget(next(row for row in app.home.rows("memory")))  # type: ignore[arg-type]

    async def after_a_kill() -> None:
        assert any(b"by the sea" in content for content in contents(home))
        async with open_talks(config) as app:
            assert not app.home.forgetting and not app.home.rows("memory")
        assert not any(b"by the sea" in content for content in contents(home))

    asyncio.run(story())
    asyncio.run(after_a_kill())


def _line(text: str):  # type: ignore[no-untyped-def]
    from assistant.contracts import Line

    return (Line("user", text),)
