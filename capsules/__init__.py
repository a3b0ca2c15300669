"""The execution contract and execution-state capsules. See README.md."""

from capsules.capsule import (
    Capsule,
    Checkpoint,
    Fingerprint,
    checkpoint,
    closure,
    fork,
    restore,
    rollback,
    snapshot,
)
from capsules.errors import CapsuleError
from capsules.exec import Buffer, ExecContext, Graph, Prefix, Role, ShapeKey, Whole
from capsules.prefix import Realm
from capsules.reentry import Live, Reentry, Way
from capsules.registry import Budgets, Registry

__all__ = [
    "Budgets", "Buffer", "Capsule", "CapsuleError", "Checkpoint", "ExecContext", "Fingerprint", "Graph", "Live",
    "Prefix", "Realm", "Reentry", "Registry", "Role", "ShapeKey", "Way", "Whole", "checkpoint", "closure", "fork",
    "restore", "rollback", "snapshot",
]  # fmt: skip
