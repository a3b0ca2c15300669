"""The execution contract: Buffer, Graph, Context. See ../README.md.

    away        memory released for a while, at fixed addresses
    backend     what a device must provide, and which backend a name means
    buffer      named memory with a role and a live extent
    context     ExecContext, the owner of everything
    cpu         a step as a static graph over the same buffers
    cuda        a step as a CUDA graph
    errors      what the contract refuses, and the base of all errors of the package
    fixed       device memory that is let go while its addresses stay
    graph       captured variants by shape
    lazy        names of a package, looked up when they are first used
    native      C++ kernels, built once on this machine
    recorder    one watched run of a step; refuses what a capture would refuse
    recycle     host memory that is reused
    shapekey    the key of a variant
    shelf       recordings kept on disk
    switches    new kernels for a GPU, off until a card has shown their worth
    sync        streams and events
    tape        a recorded run, replayed without Python
"""

from typing import TYPE_CHECKING

from capsules.exec.lazy import lazy_names

if TYPE_CHECKING:
    from capsules.exec.buffer import Buffer, Prefix, Role, Whole
    from capsules.exec.context import ExecContext
    from capsules.exec.graph import Graph
    from capsules.exec.shapekey import ShapeKey
    from capsules.exec.sync import Event, Stream

__all__ = ["Buffer", "Event", "ExecContext", "Graph", "Prefix", "Role", "ShapeKey", "Stream", "Whole"]

__getattr__ = lazy_names(
    __name__,
    {
        "buffer": "Buffer Prefix Role Whole",
        "context": "ExecContext",
        "graph": "Graph",
        "shapekey": "ShapeKey",
        "sync": "Event Stream",
    },
)
