"""Every persona is a capsule: made while nobody waits, at the start and when its file changes, held while it is listed.

A session is asked for each persona's beginning, so that every talk that becomes one finds its capsule.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

from assistant.base.errors import EngineFailed, SettingError
from assistant.contracts import Prompt
from assistant.events import Settings, ToolSpec
from assistant.personas import load_personas
from assistant.talk import Services, Session

LOOK_SECONDS = 2.0
"""Between two looks at the files."""

log = logging.getLogger(__name__)


class ListedPersonas:
    """`services.personas` is kept in line with the files of `folder`, for everyone who reads it."""

    def __init__(self, services: Services, settings: Settings, folder: Path) -> None:
        self._services, self._settings, self._folder = services, settings, folder
        self._seen = self._files()
        self._told = self._told_now()

    def beginnings(self) -> dict[str, Prompt]:
        """The prompt that a talk begins with, by persona."""
        found: dict[str, Prompt] = {}
        for behind, memory in (("", True), ("/plain", False)):  # a client's talk has no memory unless it asks for it
            session = Session("", self._services, replace(self._settings, memory=memory))
            try:
                for name in self._services.personas:
                    prompt = session.prompt_as(name)
                    if prompt != found.get(f"persona/{name}"):
                        found[f"persona/{name}{behind}"] = prompt
            finally:
                session.close()
        return found

    async def run(self) -> None:
        """Until cancelled, or the engines end."""
        try:
            while True:
                await self._services.llm.warm(self.beginnings(), idle_work=True)
                await self._voices()
                while not self._changed():
                    await asyncio.sleep(LOOK_SECONDS)
        except EngineFailed as error:
            log.warning("personas are folded when they are asked for: %s", error)

    async def _voices(self) -> None:
        """Design a voice for each persona that has none, if the voice model can; otherwise the first voice stands
        in."""
        tts = self._services.tts
        for persona in list(self._services.personas.values()):
            if persona.voice and persona.voice not in tts.voices:
                await tts.warm(persona.voice)

    def _changed(self) -> bool:
        """Take over what the files say now. A file that cannot be read is reported, and changes nothing."""
        if (seen := self._files()) == self._seen:
            told, self._told = self._told, self._told_now()
            return told != self._told
        self._seen = seen
        try:
            found = load_personas(self._folder)
        except SettingError as error:
            log.warning("the personas stay as they were: %s", error)
            return False
        personas = self._services.personas
        changed = found != personas
        for gone in personas.keys() - found.keys():
            del personas[gone]
        personas.update(found)
        return changed

    def _told_now(self) -> tuple[tuple[str, ...], tuple[ToolSpec, ...]]:
        """Everything else in a beginning that may change: what is remembered, and the tools of MCP servers."""
        servers = self._services.servers
        return self._services.facts(), () if servers is None else tuple(tool.spec for tool in servers.tools)

    def _files(self) -> list[tuple[str, int, int]]:
        found = []
        for path in sorted(self._folder.glob("*.toml")):
            try:
                about = path.stat()
            except OSError:  # gone since it was listed
                continue
            found.append((path.name, about.st_mtime_ns, about.st_size))
        return found
