"""What the session decides about a reply: how it is to be, before it begins, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from assistant.contracts import Prompt, ReplyOptions
from assistant.events import Response, ResponseStatus
from assistant.talk.conversation import Conversation
from assistant.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class ReplyOrder:
    """What the session decided about a reply before it began."""

    talk: str
    """Whose engine state it goes on from; a side branch has one of its own."""
    response: Response
    voice: str | None
    speed: float
    paced: bool
    options: ReplyOptions
    prompt: Callable[[Conversation], Prompt]
    """Built when the user's words are in, and again after each of the session's own tools."""
    own_tools: ToolRegistry
    say: str | None = None
    """Words that are spoken as they are, without asking the model."""


def several(orders: Iterable[ReplyOrder]) -> list[ReplyOrder]:
    """Orders of one reply made over into those of several answers from one state.

    The first is the conversation's. The others are made beside it, in a branch of its state: from the very prompt that
    the first began with, with the seeds after its own. What they call is told and not run: it would be done twice.
    """
    first, *others = orders
    shared: list[Prompt] = []

    def make(conversation: Conversation) -> Prompt:
        prompt = first.prompt(conversation)
        if not shared:
            shared.append(prompt)
        return prompt

    def same(conversation: Conversation) -> Prompt:
        """Whoever asks first makes it, and then nothing of any answer is in the conversation yet."""
        return shared[0] if shared else make(conversation)

    found = [replace(first, response=replace(first.response, answer=0), prompt=make)]
    for index, order in enumerate(others, 1):
        response = replace(order.response, answer=index, in_conversation=False)
        options = replace(order.options, seed=(order.options.seed or 0) + index)
        branch = f"{order.talk}/{response.id}"
        found.append(
            replace(order, talk=branch, response=response, options=options, prompt=same, own_tools=ToolRegistry())
        )
    return found


@dataclass(frozen=True, slots=True)
class Ending:
    """How a reply ended. `reason`: why cancelled or incomplete; `error_*`: why failed."""

    status: ResponseStatus
    reason: str | None = None
    error_code: str | None = None
    error_message: str | None = None
