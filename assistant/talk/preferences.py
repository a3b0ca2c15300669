"""Changes of settings, and of the persona. Impossible ones are refused before anything has changed."""

from __future__ import annotations

from dataclasses import replace

from assistant.base.errors import EngineFailed, PeerError, ToolError
from assistant.events import Error, LanguageTold, PersonaSwitched, ServerAsk, Settings, SettingsUpdated, ToolsListed
from assistant.talk.context import TalkContext
from assistant.talk.sync import StateSync
from assistant.talk.view import as_asked


class Preferences:
    """The only place that replaces a session's settings."""

    def __init__(self, context: TalkContext, state_sync: StateSync) -> None:
        self._context, self._state_sync = context, state_sync
        self._language: str | None = None
        """The one that the front was told of."""

    async def update(self, settings: Settings) -> None:
        """Raises PeerError for a persona or a tool choice that does not exist."""
        view, before = self._context.view, self._context.settings
        self._check(settings, "session.persona")
        if not self._context.services.tts.paces:
            settings = replace(settings, speed=1.0)  # the front gets the settings that hold, not those it wished for
        self._context.settings = settings
        await self._context.emit(SettingsUpdated(settings))
        await self.tell_language()
        for ask in settings.servers:
            if ask not in before.servers:
                self._context.group.create_task(self._list_tools(ask))
        # While a reply runs, it owns the models; the next reply brings them in line.
        if not self._context.turn.replying and view.prompt(before) != view.prompt(settings):
            self._state_sync.soon()

    async def _list_tools(self, ask: ServerAsk) -> None:
        """Connect to an MCP server if need be; its tools are there from the next reply on."""
        context = self._context
        item_id, servers, view = context.services.ids("mcpl"), context.services.servers, context.view
        try:
            tools = await servers.tools_of(ask.name) if servers is not None else ()
        except ToolError as error:
            await context.emit(ToolsListed(item_id, ask.label, (), str(error)))
            return
        if view.take_in(ask.name, tools) and not context.turn.replying:
            self._state_sync.soon()
        listed = tuple(one.spec for tool in tools for one in as_asked(tool, ask))
        await context.emit(ToolsListed(item_id, ask.label, listed))

    async def tell_language(self) -> None:
        """Report the language, when another one is chosen, with what cannot be done in it."""
        chosen, self._language, before = self._context.language, self._context.language, self._language
        if chosen != before:
            steered = self._context.known_words is not None
            limits = () if chosen is None else self._context.services.abilities.limits(chosen, steered)
            await self._context.emit(LanguageTold(chosen or "", limits))

    def as_persona(self, name: str) -> Settings:
        """The settings with this persona's own voice and words. Raises PeerError."""
        settings = replace(self._context.settings, persona=name, voice=None, instructions=None)
        self._check(settings, "name")
        return settings

    async def become(self, settings: Settings, asked: float) -> None:
        """Take over while no reply of the conversation runs. The front is informed once both engines could continue the
        talk, or a reply that it asked for meanwhile has them. `asked`: when it was asked for, clock seconds."""
        self._context.settings = settings
        await self.tell_language()
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
