"""Everything worth reading about a compilation, in one record."""

from __future__ import annotations

from dataclasses import dataclass

from seustream.compiler.explain.facts.graph import graph
from seustream.compiler.explain.facts.machine import AreaFacts, areas
from seustream.compiler.explain.facts.names import View
from seustream.compiler.explain.facts.plan import RequestTable, SubqueryFacts, requests, subqueries
from seustream.compiler.explain.facts.routes import Routes, routes
from seustream.compiler.explain.facts.source import Predicate, TreeNode, predicates
from seustream.compiler.explain.facts.split import QuerySplit, Split, queries, split


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of everything, of the whole set of queries."""

    queries: int
    streams: int
    subqueries: int
    shared: int
    factors: int
    tags: int
    areas: int
    instructions: int
    image_bytes: int


@dataclass(frozen=True, slots=True)
class Overview:
    name: str
    query: str | None
    plan: str
    configuration: str
    counts: Sizes
    graph: tuple[TreeNode, ...]
    predicates: tuple[Predicate, ...]
    subqueries: tuple[SubqueryFacts, ...]
    requests: RequestTable
    routes: Routes
    areas: tuple[AreaFacts, ...]
    split: Split


def overview(scope: View) -> Overview:
    c = scope.c
    return Overview(
        c.source.name,
        scope.name,
        c.options.plan,
        c.options.config.name,
        Sizes(
            queries=len(c.program.queries),
            streams=len(c.streams),
            subqueries=len(c.subqueries),
            shared=sum(len(s.parents) > 1 for s in c.subqueries),
            factors=len(c.requests.factors),
            tags=len(c.routes.tags),
            areas=len(c.layout.slots),
            instructions=sum(map(len, c.programs)),
            image_bytes=len(c.image),
        ),
        graph(scope),
        predicates(scope),
        subqueries(scope),
        requests(scope),
        routes(scope),
        areas(scope),
        split(scope),
    )


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts that the picture of the machine shows; known as soon as the routes are, but for `areas`,
    of which the picture of the routes has none."""

    name: str
    requests: RequestTable
    routes: Routes
    areas: tuple[AreaFacts, ...]
    queries: tuple[QuerySplit, ...]


def machine_facts(scope: View, with_areas: bool) -> Machine:
    known = areas(scope) if with_areas else ()
    return Machine(scope.c.source.name, requests(scope), routes(scope), known, queries(scope))
