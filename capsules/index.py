"""Facts about every capsule, found by its key or by the longest prefix of tokens. Policy without bytes."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from capsules.capsule import Base, Capsule, Fingerprint
from capsules.disk import About
from capsules.prefix import StateKey, prefix_digests


@dataclass
class IndexEntry:
    """One capsule.

    state_key    digest of its realm
    prefixes     its position, and those of the checkpoints inside -> digest; empty: it is not found by tokens
    fingerprint  digest
    """

    name: str
    state_key: str
    prefixes: Mapping[int, str]
    label: str
    scope: str
    position: int
    fingerprint: str
    ttl_s: float | None
    used_at: float = 0.0
    base: Base | None = None

    @classmethod
    def of(
        cls, capsule: Capsule, name: str, state_key: StateKey, prefixes: Mapping[int, str], ttl_s: float | None
    ) -> "IndexEntry":
        return cls(
            name, state_key.digest, prefixes, capsule.label, capsule.scope, capsule.position,
            capsule.fingerprint.digest, ttl_s, base=capsule.base,
        )  # fmt: skip

    @classmethod
    def on_disk(cls, about: About) -> "IndexEntry":
        """Read the notes of a file that another process wrote. Notes of another shape find nothing."""
        notes = about.notes
        ttl_s = float(notes["ttl_s"]) if notes.get("ttl_s") else None
        return cls(
            notes.get("name", ""), notes.get("realm", ""), _read_prefixes(notes.get("prefixes", "")), about.label,
            about.scope, about.position, about.fingerprint.digest, ttl_s, about.used_at, about.base,
        )  # fmt: skip

    @property
    def notes(self) -> dict[str, str]:
        """The notes stored with the bytes in a file of this capsule."""
        prefixes = " ".join(f"{position}:{digest}" for position, digest in self.prefixes.items())
        limit = "" if self.ttl_s is None else repr(self.ttl_s)
        return {"name": self.name, "realm": self.state_key, "prefixes": prefixes, "ttl_s": limit}


class CapsuleIndex:
    """Finds entries by key, and by the digests of token prefixes within a realm."""

    def __init__(self) -> None:
        self.entries: dict[str, IndexEntry] = {}
        self._by_prefix: dict[str, list[str]] = {}
        self._lengths: dict[str, Counter[int]] = {}

    def add(self, key: str, entry: IndexEntry) -> None:
        self.entries[key] = entry
        for position, digest in entry.prefixes.items():
            self._by_prefix.setdefault(digest, []).append(key)
            self._lengths.setdefault(entry.state_key, Counter())[position] += 1

    def strike_out(self, key: str) -> None:
        """Remove an entry, if it is here."""
        entry = self.entries.pop(key, None)
        if entry is None:
            return
        for position, digest in entry.prefixes.items():
            siblings, lengths = self._by_prefix[digest], self._lengths[entry.state_key]
            siblings.remove(key)
            lengths[position] -= 1
            if not siblings:
                del self._by_prefix[digest]
            if not lengths[position]:
                del lengths[position]
            if not lengths:
                del self._lengths[entry.state_key]

    def found_by_prefix(self) -> set[str]:
        """Keys of all entries that some prefix finds."""
        return {key for keys in self._by_prefix.values() for key in keys}

    def longest(
        self,
        realms: Iterable[StateKey],
        wanted: Sequence[int],
        ends: Sequence[int] | None,
        fingerprint: Fingerprint | None,
        passed: Collection[str],
    ) -> tuple[int, str] | None:
        """(length, key) of the entry that shares the longest prefix with the wanted tokens.

        ends    lengths that count; None: all
        passed  keys that do not count
        """
        found = (self._longest_in(realm, wanted, ends, fingerprint, passed) for realm in realms)
        return max((one for one in found if one is not None), default=None)

    def _longest_in(
        self,
        realm: StateKey,
        wanted: Sequence[int],
        ends: Sequence[int] | None,
        fingerprint: Fingerprint | None,
        passed: Collection[str],
    ) -> tuple[int, str] | None:
        at = None if ends is None else set(ends)
        lengths = [n for n in self._lengths.get(realm.digest, ()) if n <= len(wanted) and (at is None or n in at)]
        for length, digest in sorted(prefix_digests(realm, wanted, lengths, ends).items(), reverse=True):
            for key in reversed(self._by_prefix.get(digest, ())):
                usable = fingerprint is None or self.entries[key].fingerprint == fingerprint.digest
                if usable and key not in passed:
                    return length, key
        return None


def _read_prefixes(text: str) -> dict[int, str]:
    pairs = (pair.partition(":") for pair in text.split())
    return {int(position): digest for position, _, digest in pairs if position.isdecimal() and digest}
