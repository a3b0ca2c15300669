"""The session's decisions about a reply: its order, made before it begins, and its ending."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from assistant.contracts import Prompt, ReplyOptions
from assistant.events import Response, ResponseStatus
from assistant.talk.conversation import Conversation
from assistant.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class ReplyOrder:
    """The session's decisions about a reply before it begins."""

    talk: str
    """The talk whose engine state the reply continues from; a side branch has a state of its own."""
    response: Response
    voice: str | None
    speed: float
    paced: bool
    options: ReplyOptions
    prompt: Callable[[Conversation], Prompt]
    """Builds the prompt when the user's words are in, and again after each of the session's own tools."""
    own_tools: ToolRegistry
    say: str | None = None
    """Words that are spoken as they are, without asking the model."""


def several(orders: Iterable[ReplyOrder]) -> list[ReplyOrder]:
    """Turn copies of one reply's order into orders for several answers from one state.

    The first answer belongs to the conversation. The others are made beside it, in branches of its state: from the very
    prompt that the first one began with, with the seeds after its own. Their tool calls are reported and not run,
    because they would otherwise be carried out twice.
    """
    first, *others = orders
    shared: list[Prompt] = []

    def make(conversation: Conversation) -> Prompt:
        prompt = first.prompt(conversation)
        if not shared:
            shared.append(prompt)
        return prompt

    def same(conversation: Conversation) -> Prompt:
        """Make the prompt at the first call, when no answer is in the conversation yet; then return the same."""
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
    """How a reply ended. `reason`: why it was cancelled or is incomplete; `error_*`: why it failed."""

    status: ResponseStatus
    reason: str | None = None
    error_code: str | None = None
    error_message: str | None = None
