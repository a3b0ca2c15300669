"""Every error this package raises."""


class CapsuleError(Exception):
    """Base of all errors of the package."""


class ContractMisuse(CapsuleError, ValueError):
    """A call had an argument that is invalid here: of the wrong kind, or out of range."""


class BufferMisuse(CapsuleError):
    """A buffer was declared twice, does not exist, or left its address."""


class CaptureError(CapsuleError):
    """A step did something that a captured graph cannot replay."""


class GraphMissing(CapsuleError):
    """No variant was captured for the requested shape."""


class CompileError(CapsuleError):
    """The C++ kernels could not be built on this machine."""


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
