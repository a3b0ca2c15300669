"""Delta capsules: a state stored as the continuation of a base, so a beginning shared by many states is stored once.

Rows behind a buffer's prefix never change once they are written. So the first rows of a talk equal, byte for byte,
those of the persona that it began with; the recurrent part differs at every position and is stored whole. A capsule
becomes a base only after its bytes were compared: equal tokens are not trusted. The base itself is a whole capsule,
held by the holder of the delta (`store.py`).
"""

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from capsules.capsule import Base, Capsule, copy_out
from capsules.errors import CapsuleMismatch
from capsules.feed import host_bytes

Allocate = Callable[[int], Tensor]
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_DIGESTS: WeakKeyDictionary[Capsule, str] = WeakKeyDictionary()


def beyond(capsule: Capsule, base: Capsule, key: str, allocate: Allocate) -> Capsule | None:
    """The same state as a delta on `base`, which is stored under `key`; None if its rows do not begin with the base's.

    allocate   gives uninitialised bytes for the remaining rows
    Raises CapsuleTooLarge if there is not enough memory.
    """
    rows = base.position
    if capsule.base is not None or base.base is not None or not base.axes or not 0 < rows <= capsule.position:
        return None
    if (capsule.scope, capsule.fingerprint, capsule.axes) != (base.scope, base.fingerprint, base.axes):
        return None
    if not all(_same(capsule.tensors[name].narrow(axis, 0, rows), base.tensors[name]) for name, axis in _axes(base)):
        return None
    kept = dict(capsule.tensors)
    for name, axis in _axes(base):
        kept[name] = kept[name].narrow(axis, rows, capsule.position - rows)
    nbytes = sum(_nbytes(base.tensors[name]) for name in base.axes)
    found = Base(key, base.label, rows, nbytes, rows_digest(base))
    return replace(capsule, tensors=copy_out(kept, allocate), base=found)


def joined(capsule: Capsule, base: Capsule | None) -> Capsule:
    """A delta with its base's rows attached, ready to restore. Nothing is copied.

    Raises CapsuleMismatch if the base is gone or has been replaced.
    """
    wanted = capsule.base
    if wanted is None:
        return capsule
    if base is None or base.base is not None or rows_digest(base) != wanted.digest:
        what = "is gone" if base is None else "is another one now"
        raise CapsuleMismatch(
            f"capsule {capsule.label!r} was kept as what follows {wanted.label!r} ({wanted.position} tokens), which "
            f"{what}. Rebuild it from its {len(capsule.tokens)} tokens."
        )
    return replace(capsule, base=replace(wanted, rows={name: base.tensors[name] for name in base.axes}))


def completed(capsule: Capsule, allocate: Allocate) -> Capsule:
    """A standalone capsule: a joined delta with its base's rows copied in. Raises CapsuleTooLarge."""
    if capsule.base is None:
        return capsule
    assert capsule.base.rows is not None, "joined first"
    tensors = dict(capsule.tensors)
    for name, axis in capsule.axes.items():
        tensors[name] = torch.cat((capsule.base.rows[name].to(tensors[name].device), tensors[name]), axis)
    return replace(capsule, tensors=copy_out(tensors, allocate), base=None)


def parted(capsule: Capsule) -> Capsule:
    """A delta as it is stored, without the base's rows, which may move."""
    return capsule if capsule.base is None else replace(capsule, base=replace(capsule.base, rows=None))


def rows_digest(base: Capsule) -> str:
    """32 hexadecimal digits over a base's rows and the facts that give them meaning; computed once per capsule."""
    if base not in _DIGESTS:
        facts = [base.fingerprint.digest, base.scope, base.position, list(_axes(base))]
        found = blake2b(json.dumps(facts).encode(), digest_size=16)
        for name, _ in _axes(base):
            found.update(host_bytes(base.tensors[name].cpu().contiguous()))
        _DIGESTS[base] = found.hexdigest()
    return _DIGESTS[base]


def _axes(capsule: Capsule) -> list[tuple[str, int]]:
    return sorted(capsule.axes.items())


def _nbytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _same(one: Tensor, two: Tensor) -> bool:
    """Compare byte by byte: as numbers, 0.0 would equal -0.0, and NaN would differ from itself."""
    if (one.shape, one.dtype) != (two.shape, two.dtype):
        return False
    words = _WORDS[one.element_size()]
    return torch.equal(one.view(words), two.to(one.device).view(words))
