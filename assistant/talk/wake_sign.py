"""Joins the gate to its talk: tells the ear what it must know, and the front when the gate moves."""

from __future__ import annotations

from assistant.events import Message, SwitchPersona, WakeChanged
from assistant.talk.context import TalkContext
from assistant.talk.conversation import item_text
from assistant.talk.ear import Digested, WakeNow
from assistant.talk.gate import GateIs


class WakeSign:
    """One session's sign."""

    def __init__(self, context: TalkContext) -> None:
        self._context = context
        self._shown: GateIs | None = None
        words = context.services.wake_words
        self._phrases = () if words is None else words.words  # asked once: their files are looked for

    def wake_now(self) -> WakeNow | None:
        """For the next slice of sound. The names are those of all personas, and the wake words."""
        context, turn = self._context, self._context.turn
        if not context.settings.wake:
            return None
        busy = turn.overlap is not None or turn.replying or turn.audible(context.now())
        return WakeNow((*self._personas(), *self._phrases), busy, self._asks())

    async def show(self, digested: Digested) -> None:
        """Report where the gate stands behind a slice, once. A persona's name calls that persona."""
        gate, called = digested.so_far.gate, digested.called
        if called is not None and (persona := self._personas().get(called, self._current)) != self._current:
            await self._context.inbox.send(SwitchPersona(persona))
        if gate is not None and (gate is not self._shown or called is not None):
            await self._context.emit(WakeChanged(gate.value, called or ""))
        self._shown = gate

    @property
    def _current(self) -> str:
        return self._context.settings.persona

    def _personas(self) -> dict[str, str]:
        """Persons by the names that they go by."""
        return {persona.title: name for name, persona in self._context.services.personas.items()}

    def _asks(self) -> bool:
        said = (item for item in reversed(self._context.conversation.items) if isinstance(item, Message))
        last = next((item for item in said if item.role == "assistant"), None)
        return last is not None and item_text(last).rstrip().endswith("?")
