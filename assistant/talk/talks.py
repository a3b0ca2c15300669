"""All talks of the process: opens, resumes and parks them over one set of engines, up to a stated limit. The part that
outlives the process stands in the talks' journals: if the process is killed at any moment, nothing is lost that a front
was informed of."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from assistant.base.errors import TalkElsewhere, TalksFull, UnknownTalk
from assistant.events import Settings
from assistant.talk.album import Album
from assistant.talk.archive import Archive
from assistant.talk.context import Services
from assistant.talk.conversation import Conversation
from assistant.talk.keeping import ABOUT, WORDS, Keeping, forget_in, resumed
from assistant.talk.session import Session
from capsules.journal import Journal, Journals

log = logging.getLogger(__name__)

LIMIT = 4
PARKED = 32
"""Talks whose items stay in memory after their front left; older ones are read from disk again."""


class Talks:
    """Opens sessions. Fronts that need an engine without a talk (plain HTTP endpoints) use `engines`.

    `journals` stores the words of talks across restarts, the folder `pictures` stores what was shown in them; without a
    folder both are only in memory.
    """

    def __init__(
        self, services: Services, *, limit: int = LIMIT, settings: Settings | None = None,
        journals: Journals | None = None, pictures: Path | None = None,
    ) -> None:  # fmt: skip
        self.engines = services.engines
        self.limit = limit
        self.personas = services.personas
        self.metrics = services.metrics
        self.wake_words = services.wake_words
        self.defaults = settings if settings is not None else Settings()
        """The settings of a session whose front asks for none."""
        self._services = services
        self._journals = journals if journals is not None else Journals(None)
        self._pictures = pictures
        self.archive = Archive(self._journals.folder, pictures, self._journals)
        self._ending: dict[str, asyncio.Event] = {}
        self._open: dict[str, Session] = {}
        self._parked: dict[str, tuple[Conversation, object]] = {}
        """With the stamp of its journal: another process may go on with the talk meanwhile."""

    @property
    def active(self) -> int:
        """Sessions open now."""
        return len(self._open)

    @property
    def voices_in_use(self) -> set[str]:
        """The voices of the open sessions."""
        asked = [session.settings for session in self._open.values()]
        personas = self.personas
        return {one.voice or (personas[one.persona].voice if one.persona in personas else None) or "" for one in asked}

    def open(self, settings: Settings | None = None, resume: str | None = None) -> Session:
        """Open a new session, or one that goes on with an earlier talk (its `items` are the conversation so far).

        Raises TalksFull when `limit` sessions are open, UnknownTalk when `resume` does not name a stored talk,
        TalkElsewhere when another process has it. A talk that is still open is taken over: the session that had it
        ends.
        """
        conversation = None
        if resume is not None:
            conversation = self._resumed(resume)
            # Taken over before the old session has ended: a front that lost its connection comes back at once, and the
            # server may not yet have noticed that the old connection is gone.
            if (before := self._open.pop(resume, None)) is not None:
                conversation = before.conversation
                before.close(moved=True)
        if len(self._open) >= self.limit:
            self.metrics.refused.inc()
            raise TalksFull(f"all {self.limit} places are taken; close another session or start with more --sessions")
        talk = resume or self._services.ids("conv")
        keeping = Keeping(self._journal(talk), self._album(talk))
        session = Session(talk, self._services, settings or self.defaults, conversation, self._ended, keeping)
        self._open[talk] = session
        self.metrics.sessions.set(len(self._open))
        return session

    def is_open(self, talk: str) -> bool:
        return talk in self._open

    def name_talk(self, talk: str, name: str) -> None:
        """Name a talk that is kept; an empty name takes it away. Raises UnknownTalk, TalkElsewhere."""
        self._claim(talk)
        journal = self._journal(talk) if talk in self._journals else None
        if journal is None:
            raise UnknownTalk(f"no talk {talk[:60]!r} is kept here")
        journal.put(ABOUT, {"name": name} if name else {})
        if not self.is_open(talk):
            self._journals.close(talk)

    async def forget_for_good(self, talk: str) -> None:
        """Delete a talk with its pictures and the engines' states of it; one that is open ends. Raises UnknownTalk,
        TalkElsewhere."""
        if (session := self._open.get(talk)) is not None:
            over = self._ending.setdefault(talk, asyncio.Event())
            session.close()
            await over.wait()
        elif talk not in self._journals:
            raise UnknownTalk(f"no talk {talk[:60]!r} is kept here")
        self._claim(talk)
        for engine in self.engines.stateful:
            await engine.forget_talk(talk)
        self.forget(talk)

    async def forget_words(self, fact: str) -> list[asyncio.Future[bool]]:
        """Take a remembered sentence out of every talk, and drop the engines' states of it. Returns whether it is gone,
        talk by talk: False where another program has the talk open or the disk is full. It is not known yet where a
        reply that has read the sentence is being made."""
        self._parked.clear()
        told = []
        for talk in dict.fromkeys((*self._open, *self.archive.talks())):
            if talk not in self._open:
                for engine in self.engines.stateful:
                    await engine.forget_talk(talk)
            session, gone = None, None
            while (found := self._open.get(talk)) is not session:  # it may have been opened meanwhile, or taken over
                if (session := found) is not None:
                    gone = await session.forget_words(fact)
            if session is None or gone is None:
                gone = asyncio.get_running_loop().create_future()
                gone.set_result(self._forget_kept(talk, fact))
            told.append(gone)
        return told

    def _forget_kept(self, talk: str, fact: str) -> bool:
        """At one go: the journal of a session that opened meanwhile must not be closed."""
        try:
            journal = self._journals.open(talk) if talk in self._journals else None
            return journal is None or forget_in(journal, self._album(talk), fact)
        except OSError as error:
            log.warning("talk %s may still hold what was forgotten: %s", talk, error)
            return False
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            log.warning("talk %s is damaged and cannot be cleared of what was forgotten: %s", talk, error)
            return True
        finally:
            self._journals.close(talk)

    def forget(self, talk: str) -> None:
        """Delete the stored state of a talk that is not open."""
        self._parked.pop(talk, None)
        self._album(talk).remove()
        self._journals.remove(talk)

    def close(self) -> None:
        """End every session."""
        for session in list(self._open.values()):
            session.close()

    def _ended(self, session: Session) -> None:
        if (over := self._ending.pop(session.talk, None)) is not None:
            over.set()
        if self._open.get(session.talk) is not session:  # it was taken over: place and journal belong to the other one
            return
        del self._open[session.talk]
        self.metrics.sessions.set(len(self._open))
        if not len(session.conversation):
            self.forget(session.talk)
            return
        self._journals.close(session.talk)
        self._parked.pop(session.talk, None)
        self._parked[session.talk] = session.conversation, self._journals.stamp(session.talk)
        while len(self._parked) > PARKED:
            self._parked.pop(next(iter(self._parked)))

    def _resumed(self, talk: str) -> Conversation:
        if talk in self._open:
            return self._open[talk].conversation
        self._claim(talk)
        if talk in self._parked:
            conversation, stamp = self._parked[talk]
            if stamp == self._journals.stamp(talk):
                return conversation
            del self._parked[talk]
        if talk not in self._journals:
            raise UnknownTalk(f"no talk {talk!r} is kept here; connect without a conversation id to begin a new one")
        try:
            journal = self._journals.open(talk)
            if journal is not None and journal.table(WORDS):
                return resumed(journal, self._album(talk))
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            raise UnknownTalk(f"what was kept of talk {talk!r} is damaged ({error}); begin a new one") from error
        raise UnknownTalk(f"talk {talk!r} was not kept completely; begin a new one")

    def _claim(self, talk: str) -> None:
        """Keep other processes from a talk that is kept here. Raises TalkElsewhere."""
        try:
            if talk in self._journals:
                self._journals.open(talk)
        except BlockingIOError as error:
            raise TalkElsewhere(f"talk {talk!r} is open at another server; end it there first") from error
        except (OSError, ValueError):
            return  # told where it is read

    def _album(self, talk: str) -> Album:
        """The talk's album, which stores nothing if the talk cannot have a journal either."""
        return Album(None if self._pictures is None or talk not in self._journals else self._pictures / talk)

    def _journal(self, talk: str) -> Journal | None:
        """The talk's journal, or None: a talk whose journal cannot be opened goes on without one."""
        try:
            return self._journals.open(talk)
        except (OSError, ValueError) as error:
            log.warning("talk %s will not outlive this process: its journal cannot be opened (%s)", talk, error)
            return None
