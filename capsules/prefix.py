"""Chained digests of token prefixes: equal exactly if everything that shaped the state is equal."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from hashlib import blake2b
from json import dumps

BLOCK = 64  # tokens per link of the chain


@dataclass(frozen=True)
class StateKey:
    """Everything that shapes a state besides its tokens.

    media   digest of images or audio that placeholder tokens stand for
    salt    separates users or purposes that must not share state
    """

    model: str
    precision: str = ""
    adapter: str = ""
    template: str = ""
    media: str = ""
    salt: str = ""

    @property
    def digest(self) -> str:
        """32 hexadecimal digits."""
        return blake2b(dumps(astuple(self)).encode(), digest_size=16).hexdigest()


def prefix_digests(
    state_key: StateKey, tokens: Sequence[int], lengths: Iterable[int], ends: Sequence[int] | None = None
) -> dict[int, str]:
    """The digest of tokens[:n] for every wanted n, in one pass; lengths beyond the tokens are left out.

    Link k is the digest of link k - 1 and tokens [64 k, 64 k + 64); a prefix is its last full link and the rest. So a
    long talk is hashed once for all lengths, and different prefixes or realms never share a digest.

    ends  rising; ends of the calls that folded the tokens. Those up to n are part of the digest of n, because equal
          tokens in other calls give a different state, bit for bit. None: ignore how they were folded
    """
    wanted = sorted({n for n in lengths if 0 <= n <= len(tokens)})
    digests: dict[int, str] = {}
    link, done = bytes.fromhex(state_key.digest), 0
    for n in wanted:
        while done + BLOCK <= n:
            link = _link(link, tokens[done : done + BLOCK])
            done += BLOCK
        digest = _link(link, tokens[done:n], n)
        digests[n] = (digest if ends is None else _link(digest, ends[: bisect_right(ends, n)])).hex()
    return digests


def _link(before: bytes, tokens: Sequence[int], length: int = -1) -> bytes:
    return blake2b(before + array("q", [length, *tokens]).tobytes(), digest_size=16).digest()
