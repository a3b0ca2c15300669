"""The execution contract and execution-state capsules. See README.md."""

from capsules.capsule import (
    Capsule,
    Checkpoint,
    Fingerprint,
    Restorable,
    checkpoint,
    closure,
    fork,
    restore,
    rollback,
    snapshot,
)
from capsules.errors import CapsuleError
from capsules.exec import Buffer, ExecContext, Graph, Plan, Prefix, Role, ShapeKey, Step, Whole

__all__ = [
    "Buffer", "Capsule", "CapsuleError", "Checkpoint", "ExecContext", "Fingerprint", "Graph", "Plan", "Prefix",
    "Restorable", "Role", "ShapeKey", "Step", "Whole", "checkpoint", "closure", "fork", "restore", "rollback",
    "snapshot",
]  # fmt: skip
