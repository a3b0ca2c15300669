"""Every error this package raises: those of capsules and weights, and those of `exec`, handed on."""

from capsules.exec.errors import BufferMisuse, CapsuleError, CaptureError, CompileError, ContractMisuse, GraphMissing

__all__ = [
    "BufferMisuse",
    "CapsuleAbsent",
    "CapsuleDamaged",
    "CapsuleError",
    "CapsuleMismatch",
    "CapsuleTooLarge",
    "CaptureError",
    "CompileError",
    "ContractMisuse",
    "GraphMissing",
    "WeightsError",
]  # fmt: skip


class CapsuleAbsent(CapsuleError, KeyError):
    """There is no capsule of this key or name, or it is gone."""

    __str__ = Exception.__str__  # a KeyError would show the sentence in quotes


class CapsuleMismatch(CapsuleError):
    """The capsule was taken from other weights, precision, shapes or code."""


class CapsuleDamaged(CapsuleError):
    """The bytes on disk are not those that were written."""


class CapsuleTooLarge(CapsuleError):
    """The device has no memory for a copy of the state; continue without it and rebuild from the tokens."""


class WeightsError(CapsuleError):
    """A checkpoint does not fit the model that should load it."""
