"""The network a query becomes: nodes joined by edges, each edge with the attributes it carries.

A tuple that reaches a node is the array (ts, te, columns of its edge); an edge picks its columns from
the array of the node before. Expressions find their places by a `Places`: what they read from the
incoming array, and where they write in the outgoing one.
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
    """Incoming places and outgoing ones; `length` is that of the outgoing array."""

    reads: Mapping[Place, int] = field(default_factory=dict)
    writes: Mapping[Place, int] = field(default_factory=dict)
    length: int = FIRST_ID


@dataclass(frozen=True, slots=True)
class Filter:
    """All conditions, in order. The outgoing array only holds temporaries."""

    conditions: tuple[Expression, ...] = ()
    frame: Places = Places()


@dataclass(frozen=True, slots=True)
class Map:
    """Steps in order; the result is the outgoing array up to `width`."""

    steps: tuple[Step, ...]
    frame: Places
    width: int


@dataclass(frozen=True, slots=True)
class Edge:
    """From a node; `columns` are places in its array, 0 and 1 its times."""

    node: int
    columns: tuple[int, ...]


Leaf = tuple[str, Type]
"""A leaf on the way out of a node: its name for people, and its type."""


@dataclass(frozen=True, slots=True)
class StreamNode:
    """A catalogue stream; the attributes used, by path."""

    stream: str
    paths: tuple[Path, ...]
    leaves: tuple[Leaf, ...]

    @property
    def edges(self) -> tuple[Edge, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class SetEndNode:
    """A window: te := ts + size; size None is never."""

    edge: Edge
    size: int | None
    leaves: tuple[Leaf, ...]

    @property
    def edges(self) -> tuple[Edge, ...]:
        return (self.edge,)


@dataclass(frozen=True, slots=True)
class LifetimesNode:
    """A window of a library: it says the new lifetime of every tuple. An argument is a filter of one
    condition, the value; `shown` is the call."""

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
    """A library's index finds the pairs of a join: what it takes of the left and of the right, and
    the types of that; `place` is 0 where its first values are the left side's, 1 where the right's."""

    function: Matching
    name: str
    left: tuple[Filter, ...]
    right: tuple[Filter, ...]
    place: int
    types: tuple[tuple[Type, ...], ...]


@dataclass(frozen=True, slots=True)
class MergeNode:
    """A union."""

    edges: tuple[Edge, ...]
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class SelectNode:
    """A filter and a map."""

    edge: Edge
    filter: Filter
    map: Map
    leaves: tuple[Leaf, ...]

    @property
    def edges(self) -> tuple[Edge, ...]:
        return (self.edge,)


@dataclass(frozen=True, slots=True)
class JoinSide:
    """A stateful node's input: the edge, the place of the key of a time-table, and what a tuple
    must satisfy to be put into the collection."""

    edge: Edge
    key: int | None
    guard: Filter


@dataclass(frozen=True, slots=True)
class JoinNode:
    """Two inputs; `terms` are equal pairs of an expression of the left and one of the right, over
    their own arrays. The array of a pair is (ts, te, left columns, right columns)."""

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
    """Phase 1 as `partials`, whose results stand at `results` of the array phase 2 maps."""

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
    """Nodes in an order in which every edge comes from an earlier one; the last is the output.
    `titles` say which part of the query each node is."""

    nodes: tuple[Node, ...]
    titles: tuple[str, ...]

    @property
    def sources(self) -> dict[str, int]:
        return {n.stream: i for i, n in enumerate(self.nodes) if isinstance(n, StreamNode)}
