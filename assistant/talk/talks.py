"""All talks of the process: opens, resumes and parks them over one set of engines, up to a stated limit."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from assistant.base.errors import TalksFull, UnknownTalk
from assistant.events import Settings
from assistant.talk.context import Services
from assistant.talk.conversation import Conversation, from_json, to_json
from assistant.talk.session import Session
from capsules.durable import sweep, write_durably

log = logging.getLogger(__name__)

LIMIT = 4
PARKED = 32
"""Talks whose items stay in memory after their front left; older ones are read from disk again."""


class Talks:
    """Opens sessions. Fronts that need an engine without a talk (plain HTTP endpoints) use `engines`.

    `folder` keeps the words of talks over a restart; None keeps them in memory only.
    """

    def __init__(
        self, services: Services, *, limit: int = LIMIT, settings: Settings | None = None, folder: Path | None = None
    ) -> None:
        self.engines = services.engines
        self.limit = limit
        self.personas = services.personas
        self.metrics = services.metrics
        self.defaults = settings if settings is not None else Settings()
        """What a session starts with when its front asks for nothing."""
        self._services = services
        self._folder = folder
        self._open: dict[str, Session] = {}
        self._parked: dict[str, Conversation] = {}
        if folder is not None:
            sweep(folder)

    @property
    def active(self) -> int:
        """Sessions open now."""
        return len(self._open)

    def open(self, settings: Settings | None = None, resume: str | None = None) -> Session:
        """A new session, or one that goes on with an earlier talk (its `items` are the conversation so far).

        Raises TalksFull when `limit` sessions are open, UnknownTalk when `resume` names none that is kept. A talk
        that is still open is taken over: the session that had it ends.
        """
        conversation = None
        if resume is not None:
            conversation = self._resumed(resume)
            if (before := self._open.pop(resume, None)) is not None:
                conversation = before.conversation
                before.close()
        if len(self._open) >= self.limit:
            self.metrics.refused.inc()
            raise TalksFull(f"all {self.limit} places are taken; close another session or start with --sessions")
        talk = resume or self._services.ids("conv")
        session = Session(talk, self._services, settings or self.defaults, conversation, self._ended)
        self._open[talk] = session
        self.metrics.sessions.set(len(self._open))
        return session

    def forget(self, talk: str) -> None:
        """Drop what is kept of a talk that is not open."""
        self._parked.pop(talk, None)
        if (path := self._path(talk)) is not None:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """End every session."""
        for session in list(self._open.values()):
            session.close()

    def _ended(self, session: Session) -> None:
        if self._open.get(session.talk) is session:
            del self._open[session.talk]
        self.metrics.sessions.set(len(self._open))
        if not len(session.conversation) and not session.conversation.kept:
            self.forget(session.talk)
            return
        self._parked.pop(session.talk, None)
        self._parked[session.talk] = session.conversation
        while len(self._parked) > PARKED:
            self._parked.pop(next(iter(self._parked)))
        self._write(session.talk, session.conversation)

    def _resumed(self, talk: str) -> Conversation:
        if talk in self._open:
            return self._open[talk].conversation
        if talk in self._parked:
            return self._parked[talk]
        path = self._path(talk)
        if path is None or not path.is_file():
            raise UnknownTalk(f"no talk {talk!r} is kept here; connect without a conversation id to begin a new one")
        try:
            return from_json(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise UnknownTalk(f"what was kept of talk {talk!r} is damaged ({error}); begin a new one") from error

    def _path(self, talk: str) -> Path | None:
        """Where a talk's words lie. Ids of other shapes than ours name no file."""
        if self._folder is None or not talk.replace("_", "").isalnum() or not talk.isascii():
            return None
        return self._folder / f"{talk}.json"

    def _write(self, talk: str, conversation: Conversation) -> None:
        """A disk that is full costs the memory of this talk over a restart, nothing else."""
        path = self._path(talk)
        if path is None:
            return
        words = json.dumps(to_json(conversation), ensure_ascii=False)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(path, [words.encode("utf-8")])
        except OSError as error:
            log.warning("talk %s will not outlive this process: %s (%s)", talk, path, error.strerror)
