"""The owner of an engine's state, and where the states of other talks are: in a capsule, on disk, or to be rebuilt.

An engine holds one sequence, and several talks share it. When the engine changes to another talk, the former one's
state goes into a capsule and comes back at its next step. Everything else about a talk is written into its journal at
every turn, so it continues even after its process was killed. A talk whose front has left is parked: its capsule is
saved, and its memory is released. Everything here runs on the engines' thread.
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
"""A front that lost its connection comes back within this time: until then its talk's capsule stays in memory."""
RETURNING = 8
"""So many fronts may come back: the talks of those that left before them rest on disk. One from there takes a few
milliseconds more."""
RESTING = 64
"""Talks without a front that stay in memory because they could not be written down."""

S = TypeVar("S")


class Lessee(Protocol[S]):
    """The engine as a lease needs it. `S`: facts about a talk beside the engine's own state."""

    replaceable: bool
    """Whether a lost state can be rebuilt quickly enough that its capsule may be evicted."""

    def freeze(self, state: S, name: str) -> Capsule | None:
        """The engine's state as a capsule; None if it is not worth storing. Raises CapsuleTooLarge."""

    def thaw(self, state: S, capsule: Capsule) -> bool:
        """Put a capsule back into the engine; False if it belongs to another state, or no longer to this engine."""

    def clear(self, state: S) -> None:
        """Empty the engine and the facts about its state."""

    def to_rows(self, state: S) -> Rows:
        """The facts for the journal."""

    def from_rows(self, rows: Rows) -> S:
        """The inverse. Raises KeyError, TypeError, ValueError or IndexError on rows that `to_rows` did not write."""


class EngineLease(Generic[S]):
    """`kind` names its table in the journals, which holds the facts about talks with an open journal. For a talk that
    begins with a pinned capsule of `bases`, only the rest is stored."""

    def __init__(
        self, lessee: Lessee[S], registry: Registry, state_key: StateKey, kind: str, journals: Journals,
        bases: Sequence[StateKey] = (),
    ) -> None:  # fmt: skip
        self.owner: str | None = None
        """The talk whose state is in the engine."""
        self._lessee, self._registry, self._state_key = lessee, registry, state_key
        self._kind, self._journals, self._bases = kind, journals, bases
        self._talks: dict[str, S] = {}
        self._keys: dict[str, str] = {}
        """Keys of capsules in the registry, by waiting talk."""
        self._outside: dict[str, Capsule] = {}
        """Capsules that nothing could replace, and that did not fit into the registry."""
        self._pinned: set[str] = set()
        """Talks whose capsule we have pinned."""
        self._resting: dict[str, None] = {}
        self._left: dict[str, None] = {}
        """Capsules in memory of talks whose front may come back, by key; the latest is last."""
        self._private: set[str] = set()
        """Talks whose changes may be taken back: nothing about them is written down."""

    def __contains__(self, talk: str) -> bool:
        return talk in self._talks

    def find(self, talk: str) -> S | None:
        """The facts about a talk, if there are any; its state need not be in the engine."""
        self._resting.pop(talk, None)
        if talk not in self._talks:
            self._read_journal(talk)
        return self._talks.get(talk)

    def begin(self, talk: str, new: Callable[[], S]) -> S:
        """The facts about a talk; a new talk begins with `new`."""
        state = self.find(talk)
        if state is None:
            state = self._talks[talk] = new()
        return state

    def own(self, talk: str) -> bool:
        """Make the engine's state this talk's, which must have begun. False: its state was lost, so it starts again."""
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
        """Move the owner's state into a capsule; if there is no memory for one, the state is rebuilt later, or lost."""
        talk, self.owner = self.owner, None
        if talk is None or talk not in self._talks:
            return
        capsule = None
        with suppress(CapsuleTooLarge):
            capsule = self._lessee.freeze(self._talks[talk], talk)
        if capsule is not None:
            self._set_aside(talk, capsule)

    def fork(self, talk: str, branch: str) -> None:
        """Let `branch` begin with the state that `talk` is in; earlier facts about `branch` are dropped."""
        self._drop_state(branch)
        state, capsule = self.find(talk), None
        if state is None:
            return
        with suppress(CapsuleError):  # without one, the branch's state is rebuilt as a lost one is
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
        """Store a capsule. It may be evicted if it can be rebuilt; otherwise it is pinned until it is taken or
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
        """Treat changes from here on as ones that may be taken back. Any thread may call this."""
        self._private.add(talk)

    def show(self, talk: str) -> None:
        """End `hide`: the changes stay, or were taken back. The caller notes the result."""
        self._private.discard(talk)

    def note(self, talk: str, *, midway: bool = False) -> None:
        """Write the changed facts about a talk into its journal. `midway`: the next change follows at once."""
        journal = self._journals.find(talk)
        if journal is not None and talk in self._talks and talk not in self._private:
            journal.put(self._kind, self._lessee.to_rows(self._talks[talk]), sync=not midway)

    def save_owned(self, talk: str) -> None:
        """Store the owner's state on disk while nobody waits, so that little must be folded again after a kill."""
        if self.owner == talk and self._journals.find(talk) is not None:
            with suppress(CapsuleTooLarge):
                if (capsule := self._lessee.freeze(self._talks[talk], talk)) is not None:
                    self._put(talk, capsule, save=True)

    def inherit(self, talk: str, source: str) -> S:
        """Let a talk go on with the state of another one, which ends."""
        state, owner, key = self._talks.pop(source), self.owner, self._keys.pop(source, None)
        self._drop_state(talk)
        self._talks[talk] = state
        if key is not None:
            self._keys[talk] = key
        if owner == source:
            self.owner = talk
        return state

    def lose(self, talk: str) -> None:
        """Give the engine's state up, because it lies between two boundaries: its next owner begins anew."""
        if self.owner == talk:
            self.owner = None

    def discard(self, talk: str) -> None:
        """Let go of a talk's state, in its journal too: the talk is over, or begins anew."""
        self._drop_state(talk)
        if (journal := self._journals.find(talk)) is not None:
            journal.put(self._kind, {})

    def park(self, talk: str) -> None:
        """Save the capsule of a talk whose front has left, and let go of everything else that the journal holds too."""
        if talk not in self._talks:
            return
        if self.owner == talk:
            self.release()
        self._unpin(talk)
        journal = self._journals.find(talk)
        if journal is not None and journal.put(self._kind, self._lessee.to_rows(self._talks[talk])):
            if (key := self._keys.pop(talk, None)) is not None and self._registry.save(key):
                self._keep_at_hand(key)
            del self._talks[talk]
            return
        self._resting[talk] = None
        while len(self._resting) > RESTING:
            self.discard(next(iter(self._resting)))

    # ---------------------------------------------------------------------------------------- inside

    def _put(self, talk: str, capsule: Capsule, *, pin: bool = False, save: bool = False) -> str | None:
        name = self._name(talk)
        return self._registry.put(capsule, self._state_key, name=name, pin=pin, save=save, bases=self._bases)

    def _keep_at_hand(self, key: str) -> None:
        """Hold a parked talk's capsule in memory, and let those of earlier talks rest on disk to make room."""
        self._left.pop(key, None)
        self._left[key] = None
        while self._left and (len(self._left) > RETURNING or not self._registry.hold(key, RETURN_S)):
            oldest = next(iter(self._left))
            del self._left[oldest]
            self._registry.rest(oldest)

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
        """The name that a talk's capsule is listed under, for people too."""
        return f"talk/{talk}/{self._kind}"

    def _key(self, talk: str) -> str:
        """The key of its capsule in the registry."""
        return named_key(self._name(talk), self._state_key)

    def _taken(self, talk: str) -> Capsule | None:
        """Its capsule. A capsule on disk stays there, in case the process is killed; any other is no longer needed."""
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
        """Its capsule outside the registry, which gives it up here; it counted towards the budget all the same."""
        capsule = self._outside.pop(talk, None)
        if capsule is not None:
            self._registry.charge(self._name(talk), 0)
        return capsule

    def _read_journal(self, talk: str) -> None:
        """Read the facts in a talk's journal. Damaged ones are reported and left out."""
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
