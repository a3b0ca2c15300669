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
from capsules.prefix import Realm
from capsules.reentry import Live, Reentry, Way
from capsules.registry import Budgets, Registry

__all__ = [
    "Budgets", "Buffer", "Capsule", "CapsuleError", "Checkpoint", "ExecContext", "Fingerprint", "Graph", "Live", "Plan",
    "Prefix", "Realm", "Reentry", "Registry", "Restorable", "Role", "ShapeKey", "Step", "Way", "Whole", "checkpoint",
    "closure", "fork", "restore", "rollback", "snapshot",
]  # fmt: skip
