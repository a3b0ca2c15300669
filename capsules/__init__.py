"""The execution contract and execution-state capsules. See README.md.

    accounts   the contents of each tier, and which capsules may move
    arguments  callers' arguments, checked at the door
    capsule    Capsule and Checkpoint; snapshot, restore, fork, rollback, an earlier capsule inside one
    delta      a state stored as the difference from another
    digests    a digest of every byte of a checkpoint, taken once
    disk       capsules as checksummed files
    durable    files, and entries in files, that are complete or absent
    errors     every error of the package
    exec/      the contract: buffers, graphs and the context that owns them
    feed       bytes of files into tensors, many reads in flight
    hull       lower convex hulls, for placement
    index      facts about every capsule, found by key or by prefix
    journal    tables whose every change is on disk before it is reported
    ledger     declarations without memory: how much an engine will take
    metrics    counts and levels, readable at any time
    nn/        blocks of networks that both engines share
    pins       pins that end by themselves
    placement  at which boundaries a checkpoint is worth its bytes
    prefix     digests of token prefixes, and the state key they belong to
    prepared   weights in the engine's own form, stored in one file and mapped
    reentry    the way to a state that replays least
    registry   decides which capsules are kept, and finds them again
    safefile   headers of safetensors files, read without trust
    shards     the files of a published checkpoint
    store      places capsules in tiers, under budgets
    tiers      device memory, host memory and disk; moves between them
    weights    checkpoints streamed to their destinations
    worth      the value of a capsule, and when it may be used next
"""

from typing import TYPE_CHECKING

from capsules.exec.lazy import lazy_names

if TYPE_CHECKING:
    from capsules.capsule import (
        Capsule,
        Checkpoint,
        Fingerprint,
        checkpoint,
        closure,
        earlier,
        fork,
        restore,
        rollback,
        snapshot,
    )
    from capsules.errors import CapsuleError
    from capsules.exec import Buffer, ExecContext, Graph, Prefix, Role, ShapeKey, Whole
    from capsules.prefix import StateKey
    from capsules.reentry import Live, Reentry, Way
    from capsules.registry import Budgets, Registry

__all__ = [
    "Budgets",
    "Buffer",
    "Capsule",
    "CapsuleError",
    "Checkpoint",
    "ExecContext",
    "Fingerprint",
    "Graph",
    "Live",
    "Prefix",
    "Reentry",
    "Registry",
    "Role",
    "ShapeKey",
    "StateKey",
    "Way",
    "Whole",
    "checkpoint",
    "closure",
    "earlier",
    "fork",
    "restore",
    "rollback",
    "snapshot",
]  # fmt: skip

__getattr__ = lazy_names(
    __name__,
    {
        "capsule": "Capsule Checkpoint Fingerprint checkpoint closure earlier fork restore rollback snapshot",
        "errors": "CapsuleError",
        "exec": "Buffer ExecContext Graph Prefix Role ShapeKey Whole",
        "prefix": "StateKey",
        "reentry": "Live Reentry Way",
        "registry": "Budgets Registry",
    },
)
