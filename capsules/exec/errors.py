"""Errors of the execution contract, and the base of all errors of the package."""


class CapsuleError(Exception):
    """Base of all errors of the package."""


class ContractMisuse(CapsuleError, ValueError):
    """A call with an argument that means nothing here: of another kind, or out of range."""


class BufferMisuse(CapsuleError):
    """A buffer was declared twice, does not exist, or left its address."""


class CaptureError(CapsuleError):
    """A step did something that a captured graph cannot replay."""


class GraphMissing(CapsuleError):
    """No variant was captured for the requested shape."""


class CompileError(CapsuleError):
    """The C++ kernels could not be built on this machine."""
