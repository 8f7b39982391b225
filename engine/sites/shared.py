"""Several queries over the same sites, and the work they share.

Queries over the same streams, equal in the same columns, are one join with several members: they
share filter, order and probes. Others are planned separately, by centres at the same node. All
messages from one node to another about a block go as one, and keys that several of them count, plan
or delete are in it once:

    R joined with S by a  ┐  one Delta of R's keys a      one Plan: keep these for the first,
    R joined with T by a  ┘  ─────────────▶ centre        those for the second ───▶ R

So that they delete together, a stream's rows are stored for the largest window of any query that
joins it by the same columns, and up to the lowest of their watermarks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from seustream.engine.sites import messages as m
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.errors import BadQuery
from seustream.engine.sites.layout import SiteLayout, Strategy
from seustream.engine.sites.model import BlockRows, Column, EquiJoin, Result, SiteStream
from seustream.engine.sites.node import Emit, SiteNode
from seustream.engine.sites.store import Store


@dataclass(frozen=True)
class Group:
    """Queries that differ only in their windows. `sites[k]` is the site of the join's stream k.
    `members[m]` is a query and, for each of its streams, the number of that stream in the join."""

    join: EquiJoin
    sites: tuple[int, ...]
    members: tuple[tuple[int, tuple[int, ...]], ...]

    def columns(self, stream: int) -> tuple[str, ...]:
        """Returns the columns by which a stream is joined."""
        return tuple(
            name
            for c in self.join.classes_of(stream)
            for k, name in sorted(self.join.classes[c])
            if k == stream
        )


def groups(sites: Sequence[SiteStream], queries: Sequence[EquiJoin]) -> list[Group]:
    """Groups queries. Their streams are sites by name; a query may use each site at most once."""
    number = {stream.name: k for k, stream in enumerate(sites)}
    found: dict[tuple[object, ...], list[tuple[int, EquiJoin, tuple[int, ...]]]] = {}
    for q, join in enumerate(queries):
        names = [stream.name for stream in join.streams]
        if strangers := [name for name in names if name not in number]:
            raise BadQuery(f"there is no site {strangers[0]}", f"sites: {', '.join(number)}")
        if len(set(names)) < len(names):
            raise BadQuery("a query joins a site with itself", "give it a second, at distance 0")
        order = sorted(range(len(names)), key=lambda k: number[names[k]])
        place = tuple(order.index(k) for k in range(len(names)))
        classes = frozenset(
            frozenset((place[k], column) for k, column in group) for group in join.classes
        )
        # Conditions name streams by their place, so each query with any is a group of its own.
        own = (q,) if join.residuals else ()
        key = (tuple(number[names[k]] for k in order), classes, own, join.by_row)
        found.setdefault(key, []).append((q, join, place))
    made = [_group(some, number) for some in found.values()]
    return [_with_horizons(group, made) for group in made]


def _group(some: list[tuple[int, EquiJoin, tuple[int, ...]]], number: dict[str, int]) -> Group:
    _, first, place = some[0]
    order = range(len(place)) if first.residuals else [place.index(k) for k in range(len(place))]
    at = {k: new for new, k in enumerate(order)}
    streams = tuple(first.streams[k] for k in order)
    equal: list[tuple[Column, Column]] = []
    for columns in first.classes:
        head, *rest = sorted((at[k], column) for k, column in columns)
        equal += [(head, other) for other in rest]
    members, windows = [], []
    for q, join, its in some:
        mine = tuple(range(len(its))) if first.residuals else its
        members.append((q, mine))
        windows.append(tuple(join.windows[0][mine.index(k)] for k in range(len(mine))))
    where = tuple(number[stream.name] for stream in streams)
    join = EquiJoin(streams, tuple(equal), tuple(windows), first.residuals, by_row=first.by_row)
    return Group(join, where, tuple(members))


def _with_horizons(group: Group, every: Sequence[Group]) -> Group:
    """Sets the time for which rows are stored, over all groups that join them by the same
    columns."""
    horizons = tuple(
        max(
            member[j]
            for other in every
            for j, at in enumerate(other.sites)
            if at == site and other.columns(j) == group.columns(k)
            for member in other.join.windows
        )
        for k, site in enumerate(group.sites)
    )
    return replace(group, join=replace(group.join, horizons=horizons))


@dataclass(frozen=True, slots=True)
class Bundle:
    """The messages that one node sends another at one time, by group."""

    parts: tuple[tuple[int, m.SiteMessage], ...]


@dataclass(frozen=True)
class SharedLayout:
    """Like `SiteLayout`, for several queries. Node k is site k; the query node follows. It emits a
    query's number and its results."""

    sites: tuple[SiteStream, ...]
    queries: tuple[EquiJoin, ...]
    costs: UnitCosts
    query_node: int
    planner: str = "auto"
    deliver: bool = True
    retry: float = 20.0
    strategy: Strategy = "planned"

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        return tuple(groups(self.sites, self.queries))

    @cached_property
    def layouts(self) -> tuple[SiteLayout, ...]:
        return tuple(map(self._layout, self.groups))

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(sorted({*range(len(self.sites)), self.query_node}))

    @property
    def sources(self) -> int:
        return len(self.sites)

    @property
    def centre(self) -> int:
        """The node where the centres of all groups begin."""
        return self.costs.centre(range(len(self.sites)))

    def numbers(self, group: Group) -> tuple[int, ...]:
        """Returns a group's nodes in its numbering: its sites, the query node, the common
        centre."""
        rest = [node for node in (self.query_node, self.centre) if node not in group.sites]
        return (*group.sites, *dict.fromkeys(rest))

    def _layout(self, group: Group) -> SiteLayout:
        numbers = self.numbers(group)
        first = numbers.index(self.centre)
        return SiteLayout(
            group.join,
            UnitCosts.of([[self.costs.w[a][b] for b in numbers] for a in numbers]),
            numbers.index(self.query_node),
            self.planner,
            tuple(sorted({*range(len(group.sites)), first})),
            self.deliver,
            retry=self.retry,
            strategy=self.strategy,
            first_centre=first,
        )


class SharedNode:
    """One of the nodes: a `SiteNode` for each group in which it has a part."""

    def __init__(self, layout: SharedLayout, number: int, emit: Emit, attempt: int = 0) -> None:
        self.layout, self.number = layout, number
        self.numbers = [layout.numbers(group) for group in layout.groups]
        self.members: dict[int, SiteNode] = {}
        self.watermarks: dict[int, float] = {}
        for g, group in enumerate(layout.groups):
            if number in self.numbers[g]:
                local = self.numbers[g].index(number)
                mine = _in_order(group, emit)
                self.members[g] = SiteNode(layout.layouts[g], local, mine, attempt=attempt)
        self.sites = {g: node.site for g, node in self.members.items() if node.site is not None}
        for g, site in self.sites.items():
            site.on_watermark = self._deleting(g)

    def _deleting(self, g: int) -> Callable[[float], None]:
        """Returns a function that deletes, at a site, rows that no group joining it by the same
        columns needs."""

        def columns(group: int) -> tuple[str, ...]:
            return self.layout.groups[group].columns(self.sites[group].stream)

        alike = [other for other in self.sites if columns(other) == columns(g)]

        def advance(watermark: float) -> None:
            self.watermarks[g] = max(watermark, self.watermarks.get(g, -math.inf))
            common = min(self.watermarks.get(other, -math.inf) for other in alike)
            for other in alike:
                self.sites[other].advance(common)

        return advance

    def submit(self, block: BlockRows, now: float) -> None:
        """Passes a block of this site to every group that joins it."""
        columns = self.layout.sites[self.number].columns
        for g, site in self.sites.items():
            places = [columns.index(c) for c in site.join.streams[site.stream].columns]
            rows = tuple(
                replace(row, keys=tuple(row.keys[place] for place in places)) for row in block.rows
            )
            self.members[g].submit(replace(block, stream=site.stream, rows=rows), now)

    def receive(self, sender: int, bundle: Bundle, now: float) -> None:
        for g, message in bundle.parts:
            if g in self.members:
                self.members[g].receive(self.numbers[g].index(sender), message, now)

    def tick(self, now: float) -> None:
        for node in self.members.values():
            node.tick(now)

    def crash_centre(self, attempt: int) -> None:
        for node in self.members.values():
            node.crash_centre(attempt)

    def set_costs(self, costs: UnitCosts) -> None:
        for g, node in self.members.items():
            numbers = self.numbers[g]
            node.set_costs(UnitCosts.of([[costs.w[a][b] for b in numbers] for a in numbers]))

    def drain(self) -> list[tuple[int, Bundle]]:
        """Returns one bundle for each node to which there are messages."""
        bundles: dict[int, list[tuple[int, m.SiteMessage]]] = {}
        for g, node in self.members.items():
            for to, message in node.drain():
                bundles.setdefault(self.numbers[g][to], []).append((g, message))
        return [(to, Bundle(tuple(parts))) for to, parts in bundles.items()]

    @property
    def idle(self) -> bool:
        return all(node.idle for node in self.members.values())


def _in_order(group: Group, emit: Emit) -> Emit:
    """Emits a query's results with rows in the order of its own streams and ids by site."""

    def emit_of(member: int, result: Result) -> None:
        q, place = group.members[member]
        rows = (result.rows[k] for k in place)
        at = (group.sites[k] for k in place)
        ordered = (
            replace(row, tid=(site, *row.tid[1:])) for site, row in zip(at, rows, strict=True)
        )
        emit(q, Result((0,), tuple(ordered)))

    return emit_of


def node_of(
    layout: SiteLayout | SharedLayout,
    number: int,
    emit: Emit,
    store: Store | None = None,
    attempt: int = 0,
) -> SiteNode | SharedNode:
    """Returns a node of a layout of one join, or of several."""
    if isinstance(layout, SharedLayout):
        return SharedNode(layout, number, emit, attempt)
    return SiteNode(layout, number, emit, store, attempt)
