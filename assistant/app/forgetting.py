"""A sentence forgotten for good: gone from every talk's words, from the journals' bytes, and from the models' states.

Every talk of a person begins with the memory, so its state holds the sentence whatever was said in it. The states of
all talks are therefore dropped, and folded again from what was said when they are needed. States that programs named
are theirs and hold no memory.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.contracts import Stateful
from assistant.device.thread import EngineKind
from assistant.talk.forgotten import without_fact
from assistant.talk.keeping import WORDS, entry_of, entry_row
from assistant.talk.talks import Talks

if TYPE_CHECKING:
    from assistant.app.models import Models
    from capsules.journal import Journal

log = logging.getLogger(__name__)


class Forgetting:
    """`folder`: the journals of all talks."""

    def __init__(self, talks: Talks, models: Models, folder: Path) -> None:
        self._talks, self._models, self._folder = talks, models, folder
        self._engines: tuple[Stateful, ...] = talks.engines.stateful

    async def forget(self, fact: str) -> None:
        """The sentence is out of the file already."""
        if self._models.llm.state is not None:
            await self._models.llm.warm({})  # the personas, which are folded anew as the file has changed
        await self._talks.forget_words(fact)
        journals = self._models.deployment.journals
        for path in sorted(self._folder.glob("*.journal")):
            if self._talks.is_open(path.stem):
                continue
            try:
                if (journal := journals.open(path.stem)) is not None:
                    await self._clear(path.stem, journal, fact)
            except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
                log.warning("%s could not be cleared of what was forgotten: %s", path, error)
            finally:
                journals.close(path.stem)
        await self._models.deployment.thread.call(EngineKind.LLM, self._drop_beginnings)

    def _drop_beginnings(self) -> None:
        registry = self._models.deployment.registry
        for one in registry.listing():
            if one.scope == "llm" and not one.name and not one.pinned:
                registry.remove(one.key)

    async def _clear(self, talk: str, journal: Journal, fact: str) -> None:
        for engine in self._engines:
            await engine.forget_talk(talk)
        entries = [entry_of(row) for row in journal.table(WORDS).values()]
        cleared = without_fact(entries, fact)
        rows = {
            entry.item.id: row if entry is before else entry_row(entry)
            for before, entry, row in zip(entries, cleared, journal.table(WORDS).values(), strict=True)
        }
        journal.put(WORDS, rows, ordered=True)
        journal.rewrite()
