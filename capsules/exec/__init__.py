"""The execution contract: Buffer, Graph, Context. See ../README.md.

    away        memory that is let go, at addresses that stay
    backend     what a device must provide, and which one a name means
    buffer      named memory with a role and a live extent
    context     ExecContext, the owner of everything
    cpu         a step as a static graph over the same buffers
    cuda        a step as a CUDA graph
    graph       captured variants by shape
    native      C++ kernels, built once on this machine
    recorder    one run of a step, watched, with what is refused
    recycle     host memory that is used again
    shapekey    the key of a variant
    shelf       recordings kept on disk
    switches    new kernels for a GPU, off until a card has shown their worth
    sync        streams and events
    tape        a recorded run, replayed without Python
"""

from capsules.exec.buffer import Buffer, Prefix, Role, Whole
from capsules.exec.context import ExecContext
from capsules.exec.graph import Graph
from capsules.exec.shapekey import ShapeKey
from capsules.exec.sync import Event, Stream

__all__ = ["Buffer", "Event", "ExecContext", "Graph", "Prefix", "Role", "ShapeKey", "Stream", "Whole"]
