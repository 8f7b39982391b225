"""The network that a query becomes: nodes joined by edges, each edge with the attributes it
carries.

A tuple that reaches a node is the array (ts, te, columns of its edge); an edge picks its columns
from the array of the previous node. Expressions find their operands through a `Places`, which maps
reads to the incoming array and writes to the outgoing one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seustream.compiler.apas.expressions import PartialAggregate, Place, Step
from seustream.compiler.apas.streams import Matching, WindowFunction
from seustream.compiler.apas.tree import FIRST_ID, Path
from seustream.compiler.language.expressions import Expression
from seustream.compiler.language.types import Type


@dataclass(frozen=True, slots=True)
class Places:
    """Incoming and outgoing places; `length` is that of the outgoing array."""

    reads: Mapping[Place, int] = field(default_factory=dict)
    writes: Mapping[Place, int] = field(default_factory=dict)
    length: int = FIRST_ID


@dataclass(frozen=True, slots=True)
class Filter:
    """Applies all conditions in order. The outgoing array only holds temporaries."""

    conditions: tuple[Expression, ...] = ()
    frame: Places = Places()


@dataclass(frozen=True, slots=True)
class Map:
    """Runs steps in order; the result is the outgoing array up to `width`."""

    steps: tuple[Step, ...]
    frame: Places
    width: int


@dataclass(frozen=True, slots=True)
class Edge:
    """Leads from a node. `columns` are places in its array, of which 0 and 1 are its times."""

    node: int
    columns: tuple[int, ...]


Leaf = tuple[str, Type]
"""A leaf that leaves a node: the name that people see, and its type."""


@dataclass(frozen=True, slots=True)
class StreamNode:
    """Reads a catalogue stream; the attributes used, by path."""

    stream: str
    paths: tuple[Path, ...]
    leaves: tuple[Leaf, ...]

    @property
    def edges(self) -> tuple[Edge, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class SetEndNode:
    """Applies a window: te := ts + size, or never if size is None."""

    edge: Edge
    size: int | None
    leaves: tuple[Leaf, ...]

    @property
    def edges(self) -> tuple[Edge, ...]:
        return (self.edge,)


@dataclass(frozen=True, slots=True)
class LifetimesNode:
    """Applies a window of a library, which sets the lifetime of every tuple. An argument is a
    filter whose one condition is the value; `shown` is the call."""

    edge: Edge
    function: WindowFunction
    shown: str
    constants: tuple[tuple[str, Any], ...]
    arguments: tuple[Filter, ...]
    types: tuple[Type, ...]
    leaves: tuple[Leaf, ...]

    @property
    def edges(self) -> tuple[Edge, ...]:
        return (self.edge,)


@dataclass(frozen=True, slots=True)
class MatchedNode:
    """Finds the pairs of a join with a library's index: its arguments from the left and from the
    right, and their types. `place` is 0 if its first values are the left side's, 1 if they are the
    right's."""

    function: Matching
    name: str
    left: tuple[Filter, ...]
    right: tuple[Filter, ...]
    place: int
    types: tuple[tuple[Type, ...], ...]


@dataclass(frozen=True, slots=True)
class MergeNode:
    """Merges the streams of a union."""

    edges: tuple[Edge, ...]
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class SelectNode:
    """Filters and maps tuples."""

    edge: Edge
    filter: Filter
    map: Map
    leaves: tuple[Leaf, ...]

    @property
    def edges(self) -> tuple[Edge, ...]:
        return (self.edge,)


@dataclass(frozen=True, slots=True)
class JoinSide:
    """An input of a stateful node: the edge, the place of a time-table's key, and the condition for
    storing a tuple in the collection."""

    edge: Edge
    key: int | None
    guard: Filter


@dataclass(frozen=True, slots=True)
class JoinNode:
    """Joins two inputs. `terms` are equalities between an expression over the left array and one
    over the right. The array of a pair is (ts, te, left columns, right columns)."""

    left: JoinSide
    right: JoinSide
    terms: tuple[tuple[Filter, Filter], ...]
    residual: Filter
    map: Map | None
    leaves: tuple[Leaf, ...]
    index: MatchedNode | None = None

    @property
    def edges(self) -> tuple[Edge, ...]:
        return (self.left.edge, self.right.edge)


@dataclass(frozen=True, slots=True)
class AggregateNode:
    """Runs phase 1, the `partials`, and puts their results at `results` in the array that phase 2
    maps."""

    side: JoinSide
    partials: tuple[PartialAggregate, ...]
    frame: Places
    results: tuple[tuple[int, ...], ...]
    width: int
    map: Map
    leaves: tuple[Leaf, ...]

    @property
    def edges(self) -> tuple[Edge, ...]:
        return (self.side.edge,)


Node = StreamNode | SetEndNode | LifetimesNode | MergeNode | SelectNode | JoinNode | AggregateNode


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes in topological order: every edge comes from an earlier node, and the last node is the
    output. `titles` names the part of the query that each node stands for."""

    nodes: tuple[Node, ...]
    titles: tuple[str, ...]

    @property
    def sources(self) -> dict[str, int]:
        return {n.stream: i for i, n in enumerate(self.nodes) if isinstance(n, StreamNode)}
