"""The view of a reply: the persona's words or the front's, the tools that it may call, the talk so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from assistant.base.tongues import is_english, knows, name_of
from assistant.contracts import Prompt
from assistant.events import AudioPart, Message, ResponseParams, ServerAsk, Settings, ToolSpec
from assistant.personas import DEFAULT, Persona
from assistant.talk.conversation import Conversation, Entry
from assistant.talk.prompt import NOT_UNDERSTOOD, Lines, build, choose_tools, entries_of
from assistant.tools.kept import Kept
from assistant.tools.registry import Tool, ToolRegistry
from assistant.tools.remembering import NAMES as MEMORY_TOOLS

EYES = (
    "A picture before the user's words is one that they show you, or what their camera or screen shows as they begin to"
    " speak. Speak of it only where they ask about it."
)
"""Extra instructions for personas of a model with eyes: frames come unasked, and it would comment on each."""


KNOWN = "What you know of the user and their people, from earlier talks:"


class ReplyView:
    """`own` holds the session's own tools; settings, persona and reply choose among them. `sees`: the model takes
    pictures. `facts`: what is remembered now. `thinks`: the model's languages, as far as they are known."""

    def __init__(
        self, personas: dict[str, Persona], own: ToolRegistry, conversation: Conversation, sees: bool = True,
        facts: Callable[[], tuple[str, ...]] = tuple, thinks: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self._facts, self._thinks = facts, thinks
        self._begun_with = facts()
        """A talk says by itself what it adds, so its beginning stays and nothing is folded again for it."""
        self.sees = sees
        self._personas, self._own, self._conversation = personas, own, conversation
        self._lines = Lines(sees)
        self._asked: dict[str, tuple[Tool, ...]] = {}
        """The tools of MCP servers that only this talk's client asked for."""

    @property
    def kept(self) -> Kept:
        """The values of the session's own tools."""
        return self._own.kept

    def persona(self, settings: Settings) -> Persona:
        return self._personas.get(settings.persona) or self._personas[DEFAULT]

    def language(self, settings: Settings) -> str | None:
        """The code of the talk's language; None: nobody chose one."""
        return settings.language or self.persona(settings).language

    def tools(self, settings: Settings, params: ResponseParams | None = None) -> tuple[ToolSpec, ...]:
        """The client's tools and the session's own; the client's win if names collide. Raises PeerError."""
        asked = settings.tools if params is None or params.tools is None else params.tools
        names = {tool.name for tool in asked}
        own = self.own_tools(settings, params)
        both = (*asked, *(spec for spec in own.specs if spec.name not in names))
        choice = settings.tool_choice if params is None or params.tool_choice is None else params.tool_choice
        return choose_tools(both, choice)

    def own_tools(self, settings: Settings, params: ResponseParams | None = None) -> ToolRegistry:
        """The session's own tools that the reply may call; a client's MCP servers are among them as it asked."""
        if params is not None and params.conversation == "none":
            return ToolRegistry()
        asked = settings.tools if params is None or params.tools is None else params.tools
        taken = {tool.name for tool in asked}
        servers = {ask.name: ask for ask in settings.servers}
        allowed = self.persona(settings).tools
        found = []
        for tool in (*self._own, *(tool for name in servers for tool in self._asked.get(name, ()))):
            name = tool.spec.name
            if ask := servers.get(tool.server):
                found += as_asked(tool, ask)
            elif name in MEMORY_TOOLS and not settings.memory and not tool.server:
                continue
            elif settings.built_in_tools and (allowed is None or name in allowed):
                found.append(tool)
        return ToolRegistry((tool for tool in found if tool.spec.name not in taken), self._own.kept)

    def renew(self, own: ToolRegistry) -> None:
        """Take over the tools of MCP servers, and the order, from a registry that was made later; the session's own
        tools stay, with their storage."""
        known = {tool.spec.name: tool for tool in self._own if not tool.server}
        self._own = ToolRegistry((known.get(tool.spec.name, tool) for tool in own), self._own.kept)

    def take_in(self, server: str, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """The tools of an MCP server that the client asked for. Returns those that the talk did not have."""
        own = {tool.spec.name for tool in self._own}
        self._asked[server] = tuple(tool for tool in tools if tool.spec.name not in own)
        return self._asked[server]

    def prompt(
        self, settings: Settings, params: ResponseParams | None = None, conversation: Conversation | None = None
    ) -> Prompt:
        """The prompt of the talk's conversation, or of a draft. Raises PeerError if `params` names unknown items."""
        system = settings.instructions if settings.instructions is not None else self._character(settings)
        if params is not None and params.instructions is not None:
            system = params.instructions
        elif settings.memory:
            system = f"{system}{self._remembered()}"
        tools = self.tools(settings, params)
        if params is not None and params.input is not None:
            found = build(system, tools, entries_of(self._conversation, params.input), Lines(self.sees))
        else:
            talk = self._conversation if conversation is None else conversation
            found = build(system, tools, talk, self._lines)
        return replace(found, realm=settings.realm)

    def _character(self, settings: Settings) -> str:
        """The persona's character in its words; a front that gives its own instructions replaces all of it."""
        own, language = self.persona(settings).instructions, self.language(settings)
        if language is not None and not is_english(language) and knows(self._thinks, language):
            own = f"{own}\nAnswer in {name_of(language)}."
        return f"{own}\n{EYES}" if self.sees else own

    def _remembered(self) -> str:
        """The sentences that the talk began with, as far as they still hold."""
        facts = [fact for fact in self._begun_with if fact in self._facts()]
        return "".join((f"\n\n{KNOWN}", *(f"\n- {fact}" for fact in facts))) if facts else ""

    def said(self, settings: Settings, text: str) -> Prompt:
        """The prompt while the user, who may go on, has said `text`, exact to the character, trailing spaces too."""
        draft = Conversation(self._conversation)
        draft.add(Entry(Message("", "user", (AudioPart(text),))))
        prompt = self.prompt(settings, conversation=draft)
        last = prompt.lines[-1]
        whole = last.text.removesuffix(text.strip() or NOT_UNDERSTOOD) + text
        return replace(prompt, lines=(*prompt.lines[:-1], replace(last, text=whole)))


def as_asked(tool: Tool, ask: ServerAsk) -> list[Tool]:
    """A server's tool under a client's conditions; none if the client left it out. The owner's `confirm` holds
    anyway."""
    if ask.allowed is not None and not ask.allowed.takes(tool.there, tool.reads):
        return []
    return [replace(tool, ask=tool.ask or ask.asks(tool.there, tool.reads), label=ask.label)]
