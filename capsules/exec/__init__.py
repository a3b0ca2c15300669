"""The execution contract: Buffer, Graph, Plan, Context. See ../README.md."""

from capsules.exec.buffer import Buffer, Prefix, Role, Whole
from capsules.exec.context import ExecContext
from capsules.exec.graph import Graph
from capsules.exec.shapekey import ShapeKey
from capsules.exec.sync import Event, Stream

__all__ = ["Buffer", "Event", "ExecContext", "Graph", "Prefix", "Role", "ShapeKey", "Stream", "Whole"]
