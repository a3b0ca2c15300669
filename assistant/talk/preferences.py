"""Changes of settings, and of the persona. Impossible ones are refused before anything has changed."""

from __future__ import annotations

from dataclasses import replace

from assistant.base.errors import EngineFailed, PeerError
from assistant.events import Error, PersonaSwitched, Settings, SettingsUpdated
from assistant.talk.context import TalkContext
from assistant.talk.sync import StateSync


class Preferences:
    """The only place that replaces a session's settings."""

    def __init__(self, context: TalkContext, state_sync: StateSync) -> None:
        self._context, self._state_sync = context, state_sync

    async def update(self, settings: Settings) -> None:
        """Raises PeerError for a persona or a tool choice that does not exist."""
        view, before = self._context.view, self._context.settings
        self._check(settings, "session.persona")
        if not self._context.services.tts.paces:
            settings = replace(settings, speed=1.0)  # the front gets the settings that hold, not those it wished for
        self._context.settings = settings
        await self._context.emit(SettingsUpdated(settings))
        # While a reply runs, it owns the models; the next reply brings them in line.
        if not self._context.turn.replying and view.prompt(before) != view.prompt(settings):
            self._state_sync.soon()

    def as_persona(self, name: str) -> Settings:
        """The settings with this persona's own voice and words. Raises PeerError."""
        settings = replace(self._context.settings, persona=name, voice=None, instructions=None)
        self._check(settings, "name")
        return settings

    async def become(self, settings: Settings, asked: float) -> None:
        """Take over while no reply of the conversation runs. The front is informed once both engines could continue the
        talk, or a reply that it asked for meanwhile has them. `asked`: when it was asked for, clock seconds."""
        self._context.settings = settings
        await self._state_sync.now()
        self._context.group.create_task(self._tell_ready(settings, asked))

    async def _tell_ready(self, settings: Settings, asked: float) -> None:
        context = self._context
        voice = context.view.persona(settings).voice
        try:
            if (llm := context.services.llm.state) is not None:
                await llm.prepare(context.talk, context.view.prompt(settings))
            await context.services.tts.warm(voice)
        except EngineFailed as error:
            await context.emit(Error("server_error", str(error), kind="server_error"))
        await context.emit(PersonaSwitched(settings.persona, voice, (context.now() - asked) * 1000))

    def _check(self, settings: Settings, param: str) -> None:
        personas = self._context.services.personas
        if settings.persona not in personas:
            known = ", ".join(personas)
            raise PeerError("invalid_value", f"there is no persona {settings.persona!r}; known: {known}", param)
        self._context.view.tools(settings)
