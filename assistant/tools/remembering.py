"""The tools for what is known in every talk: `memory.toml`."""

from __future__ import annotations

from assistant.tools import answers
from assistant.tools.errors import AnswerError
from assistant.tools.kept import Kept
from assistant.tools.lists import found_things
from assistant.tools.memory import LONGEST
from assistant.tools.registry import ToolResult
from assistant.tools.rows import MEMORY

NAMES = frozenset({"remember", "forget", "what_you_know"})
"""Only talks with a memory have them."""


class MemoryTools:
    """A mixin of `BuiltinTools`."""

    kept: Kept

    async def remember(self, fact: str) -> ToolResult:
        """Keep one short sentence about the user or their people, for every later talk: a name, a like, a plan, or what
        they ask to be remembered. Say that you did."""
        fact = " ".join(fact.split())
        if not fact or len(fact) > LONGEST:
            raise AnswerError(f"a fact has 1 to {LONGEST} characters", "What shall I remember, in a sentence?")
        self.kept.add(MEMORY, fact)
        return ToolResult(f"remembered: {fact}", say="Okay, I will remember that.")

    async def forget(self, fact: str) -> ToolResult:
        "Forget one remembered sentence for good, in every talk; the words in it are enough."
        rows = self.kept.things(MEMORY)
        found = found_things(fact, rows)
        if len(found) != 1:
            known = answers.listed([row.text for row in found or rows], "nothing")
            raise AnswerError(
                f"{'several facts fit' if found else 'no fact fits'}: {known}",
                "Which one do you mean?" if found else "I know nothing of that.",
            )
        self.kept.home.forget(found[0])
        return ToolResult("forgotten", "forget", found[0].text, say="Okay, I forgot that.")

    async def what_you_know(self) -> str:
        "Everything that is remembered of the user, from all talks."
        return answers.listed([row.text for row in self.kept.things(MEMORY)], "nothing yet")
