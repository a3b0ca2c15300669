"""Whose state an engine holds, and where that of the other talks is: in a capsule, on disk, or to be built again.

An engine holds one sequence, and several talks share it. A talk that the engine is taken from leaves its state in a
capsule and gets it back at its next step. Everything else about it is written into its journal at every turn, so a talk
continues even after its process was killed. A talk whose front has left is parked: its capsule is saved, and memory let
go. Everything here runs on the engines' thread.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from capsules import Capsule
from capsules.errors import CapsuleError, CapsuleTooLarge
from capsules.journal import Journals, Rows
from capsules.prefix import StateKey
from capsules.registry import Registry, named_key

log = logging.getLogger(__name__)

RETURN_S = 600.0
"""A front that lost its connection comes back within this: until then its talk's capsule is not evicted."""
RESTING = 64
"""Talks without a front that stay in memory where they could not be written down."""

S = TypeVar("S")


class Lessee(Protocol[S]):
    """The engine as a lease needs it. `S`: facts about a talk beside the engine's own state."""

    replaceable: bool
    """Whether a state that is lost is built again soon enough that its capsule may be evicted."""

    def freeze(self, state: S, name: str) -> Capsule | None:
        """The engine's state as a capsule; None if there is nothing worth keeping. Raises CapsuleTooLarge."""

    def thaw(self, state: S, capsule: Capsule) -> bool:
        """Put a capsule back into the engine; False if it is not this state's, or not this engine's any more."""

    def clear(self, state: S) -> None:
        """The engine begins with nothing, and so does what is known of it."""

    def to_rows(self, state: S) -> Rows:
        """Its facts, for the journal."""

    def from_rows(self, rows: Rows) -> S:
        """The inverse. Raises KeyError, TypeError, ValueError or IndexError on what `to_rows` did not write."""


class EngineLease(Generic[S]):
    """`kind` names its table in the journals, where it keeps what is known of talks whose journal is open. For a talk
    that begins with a pinned capsule of `bases`, only the rest is kept."""

    def __init__(
        self, lessee: Lessee[S], registry: Registry, state_key: StateKey, kind: str, journals: Journals,
        bases: Sequence[StateKey] = (),
    ) -> None:  # fmt: skip
        self.owner: str | None = None
        """Whose state is in the engine."""
        self._lessee, self._registry, self._state_key = lessee, registry, state_key
        self._kind, self._journals, self._bases = kind, journals, bases
        self._talks: dict[str, S] = {}
        self._keys: dict[str, str] = {}
        """Keys of capsules in the registry, by waiting talk."""
        self._outside: dict[str, Capsule] = {}
        """Capsules that nothing could replace and the registry had no room for."""
        self._pinned: set[str] = set()
        """Talks whose capsule has a pin of ours."""
        self._resting: dict[str, None] = {}
        self._private: set[str] = set()
        """Talks whose changes may be taken back: nothing of them is written down."""

    def __contains__(self, talk: str) -> bool:
        return talk in self._talks

    def find(self, talk: str) -> S | None:
        """The facts about a talk, if there are any; its state need not be in the engine."""
        self._resting.pop(talk, None)
        if talk not in self._talks:
            self._read_journal(talk)
        return self._talks.get(talk)

    def begin(self, talk: str, new: Callable[[], S]) -> S:
        """The facts about a talk; a new one begins with `new`."""
        state = self.find(talk)
        if state is None:
            state = self._talks[talk] = new()
        return state

    def own(self, talk: str) -> bool:
        """Make the engine's state this talk's, which must have begun. False: its state was gone, so it starts again."""
        if self.owner == talk:
            return True
        state = self._talks[talk]
        self.release()
        self.owner = talk
        capsule = self._taken(talk)
        if capsule is not None and self._lessee.thaw(state, capsule):
            return True
        self._lessee.clear(state)
        return False

    def release(self) -> None:
        """The present owner's state moves into a capsule; without memory for one it is built again, or lost."""
        talk, self.owner = self.owner, None
        if talk is None or talk not in self._talks:
            return
        capsule = None
        with suppress(CapsuleTooLarge):
            capsule = self._lessee.freeze(self._talks[talk], talk)
        if capsule is not None:
            self._set_aside(talk, capsule)

    def fork(self, talk: str, branch: str) -> None:
        """`branch` begins with the state that `talk` is in; what was known of it is dropped."""
        self._drop_state(branch)
        state, capsule = self.find(talk), None
        if state is None:
            return
        with suppress(CapsuleError):  # without one, the branch's state is built again as a lost one is
            if self.owner == talk:
                capsule = self._lessee.freeze(state, branch)
            elif talk in self._outside:
                capsule = self._outside[talk]
            elif talk in self._keys:
                capsule = self._registry.get(self._keys[talk])
        self._talks[branch] = self._lessee.from_rows(json.loads(json.dumps(self._lessee.to_rows(state))))
        if capsule is not None:
            self._set_aside(branch, capsule)

    def _set_aside(self, talk: str, capsule: Capsule) -> None:
        """A capsule that can be rebuilt may be evicted; any other is pinned until its talk has it back, or is
        parked."""
        key = self._put(talk, capsule, pin=not self._lessee.replaceable)
        if key is not None:
            self._keys[talk] = key
            if not self._lessee.replaceable:
                self._pinned.add(talk)
        elif not self._lessee.replaceable:
            self._outside[talk] = capsule
            self._registry.charge(self._name(talk), capsule.nbytes)

    def hide(self, talk: str) -> None:
        """Changes from here on may be taken back. Any thread may say so."""
        self._private.add(talk)

    def show(self, talk: str) -> None:
        """The changes stay, or were taken back: the caller notes the result."""
        self._private.discard(talk)

    def note(self, talk: str, *, midway: bool = False) -> None:
        """Write the changed facts about a talk into its journal. `midway`: more of it will come at once."""
        journal = self._journals.find(talk)
        if journal is not None and talk in self._talks and talk not in self._private:
            journal.put(self._kind, self._lessee.to_rows(self._talks[talk]), sync=not midway)

    def save_owned(self, talk: str) -> None:
        """Nobody waits: see that the owner's state is on disk, so that after a kill little has to be folded again."""
        if self.owner == talk and self._journals.find(talk) is not None:
            with suppress(CapsuleTooLarge):
                if (capsule := self._lessee.freeze(self._talks[talk], talk)) is not None:
                    self._put(talk, capsule, save=True)

    def inherit(self, talk: str, source: str) -> S:
        """A talk goes on with the state of another, which is no more."""
        state, owner, key = self._talks.pop(source), self.owner, self._keys.pop(source, None)
        self._drop_state(talk)
        self._talks[talk] = state
        if key is not None:
            self._keys[talk] = key
        if owner == source:
            self.owner = talk
        return state

    def lose(self, talk: str) -> None:
        """The engine's state lies between two boundaries: whoever has it next begins anew."""
        if self.owner == talk:
            self.owner = None

    def discard(self, talk: str) -> None:
        """The talk is over, or begins anew: let go of its state, in its journal too."""
        self._drop_state(talk)
        if (journal := self._journals.find(talk)) is not None:
            journal.put(self._kind, {})

    def park(self, talk: str) -> None:
        """The talk's front has left: save its capsule and let go of what its journal holds too."""
        if talk not in self._talks:
            return
        if self.owner == talk:
            self.release()
        self._unpin(talk)
        journal = self._journals.find(talk)
        if journal is not None and journal.put(self._kind, self._lessee.to_rows(self._talks[talk])):
            if (key := self._keys.pop(talk, None)) is not None and self._registry.save(key):
                self._registry.hold(key, RETURN_S)
            del self._talks[talk]
            return
        self._resting[talk] = None
        while len(self._resting) > RESTING:
            self.discard(next(iter(self._resting)))

    # ---------------------------------------------------------------------------------------- inside

    def _put(self, talk: str, capsule: Capsule, *, pin: bool = False, save: bool = False) -> str | None:
        name = self._name(talk)
        return self._registry.put(capsule, self._state_key, name=name, pin=pin, save=save, bases=self._bases)

    def _drop_state(self, talk: str) -> None:
        self._resting.pop(talk, None)
        self._talks.pop(talk, None)
        self._outside_of(talk)
        self._pinned.discard(talk)
        self._registry.remove(self._keys.pop(talk, self._key(talk)))
        if self.owner == talk:
            self.owner = None

    def _unpin(self, talk: str) -> None:
        if talk in self._pinned:
            self._pinned.remove(talk)
            self._registry.unpin(self._keys[talk])

    def _name(self, talk: str) -> str:
        """Under which a talk's capsule is listed, for people too."""
        return f"talk/{talk}/{self._kind}"

    def _key(self, talk: str) -> str:
        """The key of its capsule in the registry."""
        return named_key(self._name(talk), self._state_key)

    def _taken(self, talk: str) -> Capsule | None:
        """Its capsule. One that is on disk stays there, for a process that is killed; else it is needed no more."""
        if (capsule := self._outside_of(talk)) is not None:
            return capsule
        self._unpin(talk)
        if (key := self._keys.pop(talk, None)) is None:
            return None
        with suppress(CapsuleError):
            capsule = self._registry.get(key)
        if self._journals.find(talk) is None:
            self._registry.remove(key)
        return capsule

    def _outside_of(self, talk: str) -> Capsule | None:
        """Its capsule outside the registry, which is given up there; it counted for the budget all the same."""
        capsule = self._outside.pop(talk, None)
        if capsule is not None:
            self._registry.charge(self._name(talk), 0)
        return capsule

    def _read_journal(self, talk: str) -> None:
        """The facts in a talk's journal. Damaged ones are reported, and replaced by nothing."""
        journal = self._journals.find(talk)
        rows = {} if journal is None else journal.table(self._kind)
        if not rows:
            return
        try:
            self._talks[talk] = self._lessee.from_rows(rows)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            log.warning("what is kept of talk %s is damaged (%s: %s); its state begins anew", talk, self._kind, error)
        else:
            self._keys[talk] = self._key(talk)
