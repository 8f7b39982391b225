"""Routes: the table, the steps between tags, and the cross products among them."""

from __future__ import annotations

from dataclasses import dataclass

from seustream.compiler.explain.facts.names import View, bracketed
from seustream.compiler.plan.requests import Request
from seustream.compiler.plan.routes import Step


@dataclass(frozen=True, slots=True)
class TagFacts:
    """A row of the route table; `carries` are the streams bound, `inserts` says raw tuple."""

    tag: int
    carries: tuple[str, ...]
    inserts: bool
    probes: tuple[str, ...]
    queries: tuple[str, ...]
    subqueries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StepFacts:
    """A tuple with tag `pre` that agrees with a tuple of `area`'s window becomes `post`. The
    conditions are those of its factors, then those of its selections."""

    pre: int
    area: str
    factors: tuple[int, ...]
    selections: tuple[str, ...]
    conditions: tuple[str, ...]
    cross_product: bool
    post: int


@dataclass(frozen=True, slots=True)
class CrossProduct:
    """A place where every tuple of one side meets every tuple of the other. `asked_for` if the condition
    itself leaves its streams unconnected, not the plan."""

    query: str
    subquery: int
    asked_for: bool
    text: str


@dataclass(frozen=True, slots=True)
class Routes:
    plan: str
    tags: tuple[TagFacts, ...]
    steps: tuple[StepFacts, ...]
    cross_products: tuple[CrossProduct, ...]


def routes(scope: View) -> Routes:
    wanted, tags, steps = scope.subqueries, scope.tags, scope.steps
    areas: dict[int, set[int]] = {}
    for step in steps:
        areas.setdefault(step.pre, set()).add(step.area)
    return Routes(
        scope.c.options.plan,
        tuple(
            TagFacts(
                tag.number,
                scope.slots(tag.bound),
                tag.inserts,
                scope.slots(areas.get(tag.number, ())),
                scope.device_queries(tag.queries),
                tuple(sorted(tag.subqueries & wanted)),
            )
            for tag in scope.c.routes.tags
            if tag.number in tags
        ),
        tuple(_step(scope, step) for step in steps),
        cross_products(scope),
    )


def _step(scope: View, step: Step) -> StepFacts:
    requests, selections = scope.c.requests, scope.step_selections(step)
    return StepFacts(
        step.pre,
        scope.slot(step.area),
        tuple(number + 1 for number in step.factors),
        tuple(scope.selection_mark(slot, bit) for slot, bit in selections),
        (
            *(scope.factor(requests.factors[number]) for number in step.factors),
            *(bracketed(requests.selections[slot][bit]) for slot, bit in selections),
        ),
        step.is_cross_product,
        step.post,
    )


def cross_products(scope: View) -> tuple[CrossProduct, ...]:
    found = []
    wanted = scope.numbers
    for row in scope.c.requests.rows:
        parents = [parent for parent in row.subquery.parents if parent in wanted]
        groups = _connected(scope, row)
        asked_for = len(groups) > 1
        if not parents or not (asked_for or _crossing(scope, row)):
            continue
        if asked_for:
            sides = " and ".join("(" + ", ".join(scope.slots(group)) + ")" for group in groups)
            text = f"no condition between {sides}, so every tuple of one meets all of the other"
        else:
            pairs = sorted(
                {
                    ", ".join(scope.slots(scope.c.routes.tags[step.pre].bound))
                    + " with "
                    + scope.slot(step.area)
                    for step in _crossing(scope, row)
                }
            )
            text = (
                f"plan {scope.c.options.plan} pairs {'; '.join(pairs)} before any condition holds"
            )
            text += "; plan cost does not"
        for query in scope.device_queries(parents):
            found.append(CrossProduct(query, row.subquery.number, asked_for, text))
    return tuple(found)


def _crossing(scope: View, row: Request) -> list[Step]:
    """Steps on a subquery's way that check no factor."""
    number, tags = row.subquery.number, scope.c.routes.tags
    return [
        step
        for step in scope.c.routes.steps
        if step.is_cross_product
        and number in tags[step.post].subqueries
        and (tags[step.pre].inserts or number in tags[step.pre].subqueries)
    ]


def _connected(scope: View, row: Request) -> list[frozenset[int]]:
    """The streams of a subquery in groups that its factors connect."""
    groups = [frozenset((slot,)) for slot in row.slots]
    for number in row.factors:
        factor = scope.c.requests.factors[number]
        pair = {factor.left.slot, factor.right.slot}
        joined = frozenset().union(*(group for group in groups if group & pair))
        groups = [group for group in groups if not group & pair] + [joined]
    return sorted(groups, key=min)
