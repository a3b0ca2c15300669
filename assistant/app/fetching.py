"""One model is fetched at a time, on a thread of its own: begun, paused, continued, cancelled, told in one sentence.

`FetchState` is pure: every request and every word of the thread is an event, and the state follows from them alone.
Files are kept by `hub`: what is begun waits in a folder that is not a model until all of it is there and verified.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from assistant.app.hub import FetchHalted, HubError, RepoListing, discard, fetch, list_repo, model_folder
from assistant.base.errors import AssistantError, PeerError

Phase = Literal["idle", "asking", "fetching", "pausing", "paused", "cancelling", "failed", "done"]
AT_WORK = frozenset({"asking", "fetching", "pausing", "cancelling"})
"""A thread works on it."""


@dataclass(frozen=True, slots=True)
class FetchState:
    """`told`: why it failed, in a sentence."""

    phase: Phase = "idle"
    repo: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    told: str = ""

    def begin(self, repo: str) -> FetchState:
        """Somebody asks for a model; asked for the same one again, it goes on. Raises PeerError while another one is
        fetched, or waits half fetched."""
        if self.phase in AT_WORK:
            raise PeerError("fetch_busy", f"{self.repo} is being fetched; pause or cancel that first")
        if self.phase == "paused" and repo != self.repo:
            raise PeerError("fetch_busy", f"{self.repo} is half fetched; go on with it or cancel it first")
        return FetchState("asking", repo)

    def listed(self, nbytes: int) -> FetchState:
        """The hub said how much there is."""
        return replace(self, phase="fetching" if self.phase == "asking" else self.phase, total_bytes=nbytes)

    def came(self, nbytes: int) -> FetchState:
        """So many more bytes are here; fewer than none where the hub begins a file anew."""
        return replace(self, done_bytes=max(0, min(self.total_bytes, self.done_bytes + nbytes)))

    def pause(self) -> FetchState:
        """Raises PeerError if nothing is fetched."""
        if self.phase not in ("asking", "fetching"):
            raise PeerError("nothing_fetched", "nothing is being fetched now")
        return replace(self, phase="pausing")

    def cancel(self) -> FetchState:
        """Raises PeerError if nothing is fetched or half fetched."""
        if self.phase in ("idle", "done", "cancelling"):
            raise PeerError("nothing_fetched", "nothing is being fetched now")
        return replace(self, phase="cancelling") if self.phase in AT_WORK else FetchState()

    @property
    def halts(self) -> bool:
        """Whether the thread should stop at its next piece."""
        return self.phase in ("pausing", "cancelling")

    def ended(self, trouble: str | None) -> FetchState:
        """The thread is over: `trouble` None: everything is here and verified; empty: it was halted."""
        if self.phase == "cancelling":
            return FetchState()
        if trouble is None:
            return replace(self, phase="done", done_bytes=self.total_bytes)
        if trouble:
            return replace(self, phase="failed", told=trouble)
        return replace(self, phase="paused")


class ModelFetch:
    """Fetches into the folder `models`. Every method returns at once; any thread may call them."""

    def __init__(self, models: Path, endpoint: str | None = None) -> None:
        self.state = FetchState()
        self._models, self._endpoint = models, endpoint
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, repo: str, *, accept_licence: bool = False) -> None:
        """Fetch a repository, or go on with it. A licence that restricts use fails unless it was accepted. Raises
        PeerError."""
        with self._lock:
            self.state = self.state.begin(repo)
            work = threading.Thread(target=self._run, args=(repo, accept_licence), name="fetch", daemon=True)
            self._thread = work
        work.start()

    def pause(self) -> None:
        """Stop at the next piece; what is here stays. Raises PeerError."""
        with self._lock:
            self.state = self.state.pause()

    def cancel(self) -> None:
        """Stop at the next piece, and remove what is here of it. Raises PeerError."""
        with self._lock:
            cancelled = self.state.cancel()
            if cancelled.phase == "idle":  # no thread is left to remove it
                discard(model_folder(self._models, self.state.repo))
            self.state = cancelled

    def join(self) -> None:
        """Wait for the thread, for tests."""
        if self._thread is not None:
            self._thread.join()

    def halt(self) -> None:
        """The program ends, and waits for no line: the next one goes on with what is here."""
        with self._lock:
            if self.state.phase in ("asking", "fetching"):
                self.state = self.state.pause()

    # ------------------------------------------------------------------------------------ on the thread

    def _run(self, repo: str, accept_licence: bool) -> None:
        folder = model_folder(self._models, repo)
        trouble: str | None = None
        try:
            listing = list_repo(repo, self._endpoint)
            if listing.needs_consent and not accept_licence:
                raise HubError(_consent(listing))
            self._take(lambda state: state.listed(listing.bytes))
            fetch(listing, folder, self._came, self._endpoint)
        except FetchHalted:
            trouble = ""
        except AssistantError as error:
            trouble = str(error)
        except Exception as error:  # the thread ends here, and its state must not stay "fetching" for ever
            trouble = f"{repo} was not fetched ({type(error).__name__}: {error}); try again, it goes on"
        with self._lock:
            if self.state.phase == "cancelling" and trouble is not None:
                discard(folder)
            self.state = self.state.ended(trouble)

    def _came(self, name: str, nbytes: int) -> None:
        self._take(lambda state: state.came(nbytes))
        if self.state.halts:
            raise FetchHalted

    def _take(self, event: Callable[[FetchState], FetchState]) -> None:
        with self._lock:
            self.state = event(self.state)


def _consent(listing: RepoListing) -> str:
    return (
        f"{listing.repo} has the licence {listing.licence}, which restricts its use ({listing.licence_link}); read it, "
        f"and agree with `assistant pull {listing.repo}`"
    )
