"""Everything worth reading about a compilation, in one record."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.explain.facts import machine, plan, routes, source, split
from compiler.explain.facts.names import Scope


@dataclass(frozen=True, slots=True)
class Counts:
    """How large everything is; of the whole set of queries."""

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
    counts: Counts
    predicates: tuple[source.Predicate, ...]
    subqueries: tuple[plan.SubqueryFacts, ...]
    requests: plan.RequestTable
    routes: routes.Routes
    areas: tuple[machine.AreaFacts, ...]
    split: split.Split


def overview(scope: Scope) -> Overview:
    c = scope.c
    return Overview(
        c.source.name,
        scope.queries[0].name if scope.only is not None else None,
        c.options.plan,
        c.options.config.name,
        Counts(
            len(c.program.queries),
            len(c.streams),
            len(c.subqueries),
            sum(len(s.parents) > 1 for s in c.subqueries),
            len(c.requests.factors),
            len(c.routes.tags),
            len(c.layout.slots),
            sum(map(len, c.programs)),
            len(c.image),
        ),
        source.predicates(scope),
        plan.subqueries(scope),
        plan.requests(scope),
        routes.routes(scope),
        machine.areas(scope),
        split.split(scope),
    )


@dataclass(frozen=True, slots=True)
class Machine:
    """What the picture of the machine shows; known as soon as the routes are."""

    name: str
    requests: plan.RequestTable
    routes: routes.Routes
    queries: tuple[split.QuerySplit, ...]


def machine_facts(scope: Scope) -> Machine:
    return Machine(
        scope.c.source.name,
        plan.requests(scope),
        routes.routes(scope),
        split.queries(scope),
    )
